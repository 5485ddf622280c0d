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
	refused      bool // each request to it
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
	answered, refused, _ := strings.Cut(string(text), "The server refuses these endpoints")
	for i, part := range []string{answered, refused} {
		for _, m := range lineOfEndpoint.FindAllStringSubmatch(part, -1) {
			e := endpoint{method: m[1], path: m[2], refused: i == 1}
			for _, word := range quotedWord.FindAllStringSubmatch(m[3], -1) {
				if c := word[1][0]; c >= 'a' && c <= 'z' && !strings.HasSuffix(e.path, "/multi_get") {
					e.parameters = append(e.parameters, word[1])
				}
			}
			list = append(list, e)
		}
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
	"query":        {"from Odd", "from Odd where M > $p", "from Odd select N, Tags, Lines", "from Odd group by B select key(), count()", "from index 'Odd/Computed'", "from index 'Odd/ByB'", "from Odd include Ref", "frm", "", "from Odd as o select { A: o.A.A.A }", "from Odd select facet(B)", "from Odd where M = 1 update { this.M = 2 }", "from Odd where N > 1 or Tags = 'a'", "from Odd where search(T, 'oak') order by score()", "from Even", "from @all_docs", "from Odd where load(Ref).B = 'b'", "from Odd where A = null and exists(Lines)"},
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

var indexNames = []string{"Odd/Fields", "Odd/Computed", "Odd/Script", "Odd/Fan", "Odd/Two", "Odd/Loaded", "Odd/ByB", "Odd/Ends", "Odd/ByLine", "Odd/Mean", "odd/byb", "Odd/1", "Odd/2", "Own/1", "none"}

// valuesAt are values of parameters of some endpoints, by the end of a path and the name.
var valuesAt = []struct {
	path, name string
	values     []string
}{
	{"/attachments", "name", []string{"note.txt", "b", "ä", "x y"}},
	{"{J}/indexes", "name", []string{"A", "B-N", "words", "byB", "spots", "alike", "ratio", "endsP", "none"}},
	{"{J}/indexes/errors", "name", []string{"ratio", "sum", "length", "byBM", "year"}},
	{"{J}/indexes/computed", "name", []string{"Own/0", "Own/1", "Own/2", "Odd/ByB"}},
	{"/computed/errors", "name", indexNames},
	{"{D}/indexes", "name", indexNames},
	{"{D}/indexes/stats", "name", indexNames},
	{"{D}/indexes/errors", "name", indexNames},
	{"/indexes/staleness", "name", indexNames},
	{"/indexes/terms", "name", indexNames},
	{"/indexes/disable", "name", indexNames[:5]},
	{"/indexes/enable", "name", indexNames[:5]},
	{"/indexes/terms", "field", []string{"B", "N", "X", "Y", "P", "Q", "Name", "Of", "M", "Count", "Sum", "none"}},
	{"/databases", "name", []string{wild, "other", "none"}},
	{"/topology", "name", []string{wild, "other", "none"}},
	{"/identity/next", "name", []string{"odd|", "ä|", "odd", "|"}},
	{"/identity/seed", "name", []string{"odd|", "x|"}},
	{"/operations/state", "id", []string{"1", "2", "3", "4", "5", "99"}},
	{"/operations/kill", "id", []string{"1", "2", "3", "4", "5", "99"}},
	{"/collections", "name", []string{"Even2", "Wei rd", "Nothing", "@empty"}},
	{"/schemas/rule", "collection", []string{"Odd", "Even", "Nothing"}},
	{"/hilo/next", "tag", []string{"odd", "x", "ä", "x/y"}},
	{"/hilo/return", "tag", []string{"odd", "x"}},
}

// parameterOf makes a value of a parameter of an endpoint, as a URL has it.
func (o *odds) parameterOf(path, name string) string {
	list := usualValues[name]
	for _, at := range valuesAt {
		if at.name == name && strings.HasSuffix(path, at.path) {
			list = at.values
		}
	}
	if len(list) == 0 || o.chance(7) {
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
