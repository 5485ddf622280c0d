package server_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/server"
)

const guide = "../docs/server.md"

// pages returns the files of the guide: docs/server.md, and the pages in the order in which it links them first.
func pages(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{guide}
	for _, m := range regexp.MustCompile(`\]\((server/[a-z]+\.md)\)`).FindAllStringSubmatch(string(text), -1) {
		if file := "../docs/" + m[1]; !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// Ensure that docs/server.md links every page.
func TestGuide_Pages(t *testing.T) {
	t.Parallel()
	want, err := filepath.Glob("../docs/server/*.md")
	if err != nil {
		t.Fatal(err)
	}
	got := pages(t)[1:]
	for i := range want {
		want[i] = filepath.ToSlash(want[i])
	}
	slices.Sort(got)
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("%s links %q, want %q", guide, got, want)
	}
}

// changing are the parts of replies that differ from run to run.
var changing = []struct{ pattern, text string }{
	{`A:\d+-[A-Za-z0-9+/]{22}`, "A:…"},
	{`TRXN:\d+-[A-Za-z0-9+/]{22}`, "TRXN:…"},
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z`, "…"},
	{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "…"},
	{`"(begun|ended)":"[^"]+"`, `"$1":"…"`},
	{`"number":\d+`, `"number":…`},
	{`"elapsedNs":\d+`, `"elapsedNs":…`},
	{`"(ResultEtag|DurationInMs|OperationId)":-?\d+`, `"$1":…`},
	{`"Id":\d{13}`, `"Id":…`},
	{`"HumaneSize":"[^"]*[1-9][^"]*","SizeInBytes":\d+`, `"HumaneSize":"…","SizeInBytes":…`},
}

// Ensure that every curl line of the guide has the reply that stands below it. One
// server answers the lines of all pages, in their order. JAY_REWRITE=1 writes the replies.
func TestGuide_Curl(t *testing.T) {
	t.Parallel()
	h := start(t, withSchemas)
	used := make(map[string]bool)
	for _, page := range pages(t) {
		h.runPage(page, used)
	}
	for _, r := range server.Routes() {
		if r.Refused == "" && !used[r.Method+" "+r.Path] {
			t.Errorf("the guide has no curl line of %s %s", r.Method, r.Path)
		}
	}
}

// runPage runs the curl lines of a page, whose routes it adds to used, and compares the replies.
func (h *host) runPage(page string, used map[string]bool) {
	t := h.t
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	inside := false
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		switch {
		case line == "```console":
			inside = true
		case line == "```":
			inside = false
		case inside && !strings.HasPrefix(line, "$ "):
			continue // a reply: it is made anew
		}
		out = append(out, line)
		if inside && strings.HasPrefix(line, "$ ") {
			c := parseCurl(t, strings.TrimPrefix(line, "$ "))
			used[c.method+" "+generic(c.path)] = true
			if reply := h.run(c); reply != "" {
				out = append(out, reply)
			}
		}
	}
	got := strings.Join(out, "\n") + "\n"
	if os.Getenv("JAY_REWRITE") != "" {
		if err := os.WriteFile(page, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if got != string(text) {
		want := strings.Split(string(text), "\n")
		for i, line := range strings.Split(got, "\n") {
			if i >= len(want) || line != want[i] {
				t.Fatalf("%s:%d:\n%s\nthe guide has\n%s", page, i+1, line, strings.Join(want[min(i, len(want)):min(i+1, len(want))], ""))
			}
		}
	}
}

// curl is a command.
type curl struct {
	method, path, body, write string
	file                      string // that takes the body, which is not printed
	headers                   []string
}

// parseCurl reads the options that the guide uses. Arguments are words, or in single
// quotes.
func parseCurl(t *testing.T, line string) (c curl) {
	t.Helper()
	args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	asQuery, query := false, ""
	for i := 1; i < len(args); i++ {
		next := func() string {
			i++
			return strings.Trim(args[i], "'")
		}
		switch arg := strings.Trim(args[i], "'"); arg {
		case "-X":
			c.method = next()
		case "-H":
			name, value, _ := strings.Cut(next(), ": ")
			c.headers = append(c.headers, name, value)
		case "-d":
			c.body = next()
		case "-w":
			c.write = next()
		case "--head":
			c.method = "HEAD"
		case "-o":
			c.file = next()
		case "-G":
			asQuery = true
		case "--data-urlencode":
			name, value, _ := strings.Cut(next(), "=")
			query = name + "=" + url.QueryEscape(value)
		case "-g":
		default:
			var found bool
			if c.path, found = strings.CutPrefix(arg, "http://127.0.0.1:8080"); !found {
				t.Fatalf("%s: what is %q?", line, arg)
			}
		}
	}
	if args[0] != "curl" || c.path == "" {
		t.Fatalf("%s: no command of curl's", line)
	}
	if asQuery {
		c.path += "?" + query
	}
	if c.method == "" {
		c.method = "GET"
		if c.body != "" {
			c.method = "POST"
		}
	}
	if c.body != "" {
		c.headers = append(c.headers, "Content-Type", "application/x-www-form-urlencoded")
	}
	return c
}

// operationNumber finds the number of an operation in a reply.
var operationNumber = regexp.MustCompile(`"(?:OperationId|Id)":(\d{13})`)

// run sends the request of a command, and returns what curl prints. $ID is the number of
// the last operation, whose end it awaits before its state is shown, as it does with that of a validation of documents.
func (h *host) run(c curl) string {
	h.t.Helper()
	c.path = strings.ReplaceAll(c.path, "$ID", h.operation)
	a := h.do(c.method, c.path, c.body, c.headers...)
	for strings.Contains(a.body, `"Status":"InProgress"`) || strings.Contains(a.body, `"running":true`) || strings.Contains(a.body, `"begun":"0001-`) {
		time.Sleep(time.Millisecond)
		a = h.do(c.method, c.path, c.body, c.headers...)
	}
	if m := operationNumber.FindStringSubmatch(a.body); m != nil {
		h.operation = m[1]
	}
	if c.file != "" {
		a.body = ""
	}
	out := strings.ReplaceAll(a.body, h.http.URL, "http://127.0.0.1:8080")
	if c.method == "HEAD" {
		out = fmt.Sprintf("HTTP/1.1 %d …\nEtag: %s\n…", a.status, a.header.Get("ETag"))
	}
	out += strings.ReplaceAll(c.write, "%{http_code}", fmt.Sprint(a.status))
	for _, one := range changing {
		out = regexp.MustCompile(one.pattern).ReplaceAllString(out, one.text)
	}
	return strings.TrimRight(out, "\n")
}

// generic returns the path of a URL as routes have it.
func generic(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path = regexp.MustCompile(`^/jay/v1/databases/[^/]+/`).ReplaceAllString(path, "{J}/")
	return regexp.MustCompile(`^/databases/[^/]+/`).ReplaceAllString(path, "{D}/")
}

// Ensure that the tables of the guide are the routes.
func TestGuide_Tables(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/server/endpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z]+ [{/][^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1)
	var got, want []string
	for _, row := range rows {
		got = append(got, row[1])
	}
	for _, r := range server.Routes() {
		name := r.Method + " " + r.Path
		want = append(want, name)
		i := slices.IndexFunc(rows, func(row []string) bool { return row[1] == name })
		if i >= 0 && r.Refused != "" && rows[i][2] != r.Refused {
			t.Errorf("%s is refused since %q, and the guide says %q", name, r.Refused, rows[i][2])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("the guide lacks %s", name)
			}
		}
		for _, name := range got {
			if !slices.Contains(want, name) {
				t.Errorf("there is no %s", name)
			}
		}
	}
}
