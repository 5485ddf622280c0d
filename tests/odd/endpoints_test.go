package odd_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// endpoint is a line of the list of endpoints.
type endpoint struct {
	method, path string
	parameters   []string
}

var (
	lineOfEndpoint = regexp.MustCompile("(?m)^\\| `([A-Z]+) ([^` ]+)` \\| (.*) \\|$")
	quotedWord     = regexp.MustCompile("`([a-zA-Z]+)`")
)

// readEndpoints reads the endpoints of the guide, with the parameters that it names.
func readEndpoints(t *testing.T) []endpoint {
	t.Helper()
	text, err := os.ReadFile("../../docs/server/endpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []endpoint
	for _, m := range lineOfEndpoint.FindAllStringSubmatch(string(text), -1) {
		e := endpoint{method: m[1], path: m[2]}
		for _, word := range quotedWord.FindAllStringSubmatch(m[3], -1) {
			if c := word[1][0]; c >= 'a' && c <= 'z' && word[1] != "jay" {
				e.parameters = append(e.parameters, word[1])
			}
		}
		list = append(list, e)
	}
	if len(list) < 150 {
		t.Fatalf("the guide lists %d endpoints", len(list))
	}
	return list
}

// usualValues are values of parameters that mean something.
var usualValues = map[string][]string{
	"id":           {"odd/1", "odd/2", "odd/3", "ODD/4", "odd/", "odd|", "", "none", "odd/x y", "1", "2", "3"},
	"name":         {"wild", "other", "note.txt", "A", "Odd/Computed", "Odd/ByB", "odd|", "words", "byB", ""},
	"collection":   {"Odd", "Even", "odd", "Wei rd", "@empty", "Nothing", "@hilo", ""},
	"startsWith":   {"odd/", "o", "", "ODD/", "none"},
	"matches":      {"*", "1*", "?", "*|?", "", "**", "1|2"},
	"exclude":      {"*", "1*", "?", "|"},
	"startAfter":   {"odd/1", "odd/3", "", "z"},
	"after":        {"odd/1", "odd/3", "", "z", "1"},
	"before":       {"2026-01-01T00:00:00Z", "1999-12-31T23:59:59.0000000Z", "A:1-x", "", "9999-12-31T23:59:59Z"},
	"from":         {"odd/1", "z", ""},
	"at":           {"0", "0.5", "1", "NaN", "-1", "1e400", "2"},
	"order":        {"newest", "id", ""},
	"start":        {"0", "1", "5", "1000000", "-1", "9223372036854775807"},
	"pageSize":     {"0", "1", "2", "5", "1000000", "-1", "2147483648"},
	"limit":        {"0", "1", "10", "-1"},
	"format":       {"ndjson", "json", "csv", "extjson", "ravendbdump", "jsonl", "xml"},
	"query":        {"from Odd", "from Odd where M > $p", "from Odd select N, Tags, Lines", "from Odd group by B select key(), count()", "from index 'Odd/Computed'", "from index 'Odd/ByB'", "from Odd include Ref", "frm", "", "from Odd as o select { A: o.A.A.A }", "from Odd select facet(B)", "from Odd where M = 1 update { this.M = 2 }"},
	"parameters":   {"{}", `{"p":1}`, `{"p":null}`, "[]", "null", "{", `{"p":[1,2]}`},
	"reverse":      {"true", "false", "1", ""},
	"metadataOnly": {"true", "false"},
	"column":       {"A", "@preview", "Lines[].P", "O.N", "", "'x.y'", "@metadata.@id", "[", "A..B"},
	"include":      {"Ref", "Lines[].P", "O.$Keys", "O.$Values", "Ref(odd/)", "Ref[odd/{0}]", "Tags", "A", "", "N", "Nil", "[", "A[]..", "Ref(", "$Keys"},
	"changeVector": {"A:1-x", "", "A:1", "A:9999-none", "B:1-x"},
	"operation":    {"1", "2", "3", "0", "-1", "99"},
	"delimiter":    {",", ";", "tab", "", "ab", "\x00", "\n", "\""},
	"compression":  {"gzip", "zstd", "none"},
	"infer":        {"true", "false"},
	"insert":       {"true", "false"},
	"rejects":      {"0", "10", "-1"},
	"since":        {"", "now", "1", "A:1-x", "x~1"},
	"mode":         {"refuse", "warn", "off", "x"},
	"key":          {"k", "emails/ann", "", "ä", "rvn-atomic/odd/1"},
	"index":        {"0", "1", "-1", "9223372036854775808"},
	"value":        {"1", "10", "-1", "4611686018427387905", "x"},
	"force":        {"true", "false"},
	"field":        {"B", "N", "X", "P", "none", ""},
	"fromValue":    {"a", "", "NULL_VALUE"},
	"hilo":         {"true", "false"},
	"idColumn":     {"A", "N", "@id"},
	"idPrefix":     {"odd/", "", "x/"},
	"details":      {"true", "false"},
	"maxOpsPerSec": {"1000", "0", "-1"},
	"contentType":  {"text/plain", "", "x/y; z", "a\r\nb"},
	"bare":         {"true", "false"},
	"spreadsheet":  {"true", "false"},
	"once":         {"true"},
	"background":   {"true", "false"},
	"positions":    {"true"},
	"namesOnly":    {"true", "false"},
	"debug":        {"true", "entries", "explain"},
	"test":         {"true"},
	"database":     {"wild", "indexed", "none", ""},

	"untilCaughtUp": {"true"},
}

var oddValues = []string{"", "%", "%zz", "%00", "\x00", "ä", "😀", "a&b", "a=b", "'", "\"", "-0", "1.0", "1e400", "NaN", "null", "true", "[]", "{}", "../..", "@all_docs", " ", "+", strings.Repeat("x", 600), "$p", "odd/1", "0", "-1", "99999999999999999999"}

// parameterOf makes a value of a parameter, as a URL has it.
func (o *odds) parameterOf(name string) string {
	list := usualValues[name]
	if len(list) == 0 || o.chance(12) {
		list = oddValues
	}
	value := o.pick(list...)
	if o.chance(3) && !strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return value // as it is; net/http refuses the line of a request with a blank
	}
	return escaped(value)
}

// escaped escapes a value, but leaves what is escaped badly.
func escaped(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
