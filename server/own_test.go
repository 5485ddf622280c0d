package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

const own = "/jay/v1/databases/db"

// Ensure that pages follow one another without gaps or repetitions, in both directions,
// and that no digit changes.
func TestOwn_Pages(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("logs/%02d", i)
		h.want(201, "PUT", "/databases/db/docs?id="+id, `{"N":9007199254740993,"P":1.10,"@metadata":{"@collection":"Logs"}}`)
		want = append(want, id)
	}
	for _, order := range []string{"", " desc"} {
		var got []string
		after := ""
		for page := 0; ; page++ {
			a := h.want(200, "POST", own+"/query", fmt.Sprintf(`{"query":"from Logs order by id()%s","pageSize":10,"after":%q}`, order, after))
			rows := a.json(t, "rows").([]any)
			for i := range rows {
				got = append(got, a.json(t, "rows", i, "id").(string))
			}
			if !strings.Contains(a.body, `"N":9007199254740993,"P":1.10`) {
				t.Fatalf("digits have changed: %s", a.body)
			}
			next, more := a.json(t, "next").(string)
			if !more {
				break
			}
			if after = next; page > 3 {
				t.Fatal("the pages do not end")
			}
		}
		if order != "" {
			for i, j := 0, len(got)-1; i < j; i, j = i+1, j-1 {
				got[i], got[j] = got[j], got[i]
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("order by id()%s: got %v", order, got)
		}
	}
}

// Ensure that a page of large documents ends early, and that the next one goes on.
func TestOwn_Pages_OfLargeDocuments(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("db")
	body := `{"T":"` + strings.Repeat("x", 1<<20) + `","@metadata":{"@collection":"Files"}}`
	for i := range 7 {
		h.want(201, "PUT", fmt.Sprintf("/databases/db/docs?id=files/%d", i), body)
	}
	a := h.want(200, "POST", own+"/query", `{"query":"from Files"}`)
	if n := len(a.json(t, "rows").([]any)); n != 4 {
		t.Errorf("got %d documents of 1 MiB, want the 4 that fill a page", n)
	}
	a = h.want(200, "POST", own+"/query", fmt.Sprintf(`{"query":"from Files","after":%q}`, a.json(t, "next")))
	if n := len(a.json(t, "rows").([]any)); n != 3 || a.json(t, "next") != nil {
		t.Errorf("got %d further documents, and then %v", n, a.json(t, "next"))
	}
}

// Ensure that requests that mean nothing are refused.
func TestOwn_Bad(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for _, bad := range []struct{ method, path, body string }{
		{"POST", "/query", `{"query":"from Logs","pageSize":0}`},
		{"POST", "/query", `{"query":"from Logs","pageSize":1001}`},
		{"POST", "/query", `{"query":"from"}`},
		{"POST", "/query", `{"query":"from Logs","after":"nonsense"}`},
		{"POST", "/query", ``},
		{"POST", "/explain", `{"query":"fro"}`},
		{"PUT", "/indexes", `{"collection":"Logs","index":{"fields":[]}}`},
		{"PUT", "/indexes", `[]`},
		{"DELETE", "/indexes?collection=Logs&name=none", ""},
		{"GET", "/changes?since=nonsense", ""},
		{"GET", "/changes?untilCaughtUp=perhaps", ""},
		{"GET", "/live", ""},
		{"GET", "/live?query=fro", ""},
		{"GET", "/live?query=from+Logs+order+by+n", ""},
		{"GET", "/live?query=from+Logs&since=nonsense", ""},
		{"GET", "/live?query=from+Logs&parameters=7", ""},
		{"GET", "/live?query=from+Logs&untilCaughtUp=perhaps", ""},
	} {
		if a := h.do(bad.method, own+bad.path, bad.body); a.status < 400 || a.status >= 500 || a.json(t, "Type") == "" {
			t.Errorf("%s %s %s: got %d %s", bad.method, bad.path, bad.body, a.status, a.body)
		}
	}
	if a := h.do("GET", "/jay/v1/databases/none/collections", ""); a.status != 503 && a.status != 404 {
		t.Errorf("a database that is not there: got %d %s", a.status, a.body)
	}
}

// Ensure that changes come as they happen, and go on behind the last one that was seen.
func TestOwn_Changes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=users/0", `{}`)
	follow := func(query string, last string) (next func() (id, data string), end func()) {
		r, err := http.NewRequest("GET", h.http.URL+own+"/changes"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		reply, err := h.http.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if reply.StatusCode != 200 || reply.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("got %v", reply)
		}
		lines := bufio.NewScanner(reply.Body)
		return func() (id, data string) {
			for lines.Scan() {
				if text, found := strings.CutPrefix(lines.Text(), "id: "); found {
					id = text
				} else if text, found := strings.CutPrefix(lines.Text(), "data: "); found {
					return id, text
				}
			}
			return "", "ended"
		}, func() { reply.Body.Close() }
	}
	next, end := follow("?since=now&prefix=users/", "")
	h.want(201, "PUT", "/databases/db/docs?id=others/1", `{}`)
	h.want(201, "PUT", "/databases/db/docs?id=users/1", `{}`)
	token, data := next()
	if !strings.Contains(data, `"id":"users/1"`) || !strings.Contains(data, `"type":"put"`) {
		t.Errorf("got %s", data)
	}
	end()
	h.want(204, "DELETE", "/databases/db/docs?id=users/1", "")
	next, end = follow("?since=now&prefix=users/", token)
	defer end()
	if _, data := next(); !strings.Contains(data, `"id":"users/1"`) || !strings.Contains(data, `"type":"delete"`) {
		t.Errorf("behind the token: got %s", data)
	}
}

// Ensure that a reply which ends at the newest change is whole if there is none.
func TestOwn_Changes_None(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	equal(t, "changes", h.want(200, "GET", own+"/changes?untilCaughtUp=true", "").body, "")
	equal(t, "of a new database", h.want(200, "GET", own+"/changes?since=&untilCaughtUp=true", "").body, "")
}

// Ensure that documents come in the order of their IDs in both directions, page by page.
func TestOwn_Documents(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, id := range []string{"a/1", "a/2", "a/3", "b/1"} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{"@metadata":{"@collection":"`+strings.ToUpper(id[:1])+`s"}}`)
	}
	walk := func(query string) (ids []string) {
		t.Helper()
		after := ""
		for {
			page := h.want(200, "GET", "/jay/v1/databases/a/documents?pageSize=2&"+query+after, "")
			var rows struct {
				Rows []struct{ ID string }
				Next string
			}
			if err := json.Unmarshal([]byte(page.body), &rows); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows.Rows {
				ids = append(ids, row.ID)
			}
			if rows.Next == "" {
				return ids
			}
			after = "&after=" + url.QueryEscape(rows.Next)
		}
	}
	equal(t, "all", walk(""), "[a/1 a/2 a/3 b/1]")
	equal(t, "reverse", walk("reverse=true"), "[b/1 a/3 a/2 a/1]")
	equal(t, "collection", walk("collection=As"), "[a/1 a/2 a/3]")
	equal(t, "collection, reverse", walk("collection=As&reverse=true"), "[a/3 a/2 a/1]")
	equal(t, "prefix, reverse", walk("startsWith=a/&reverse=true"), "[a/3 a/2 a/1]")
	equal(t, "none", walk("startsWith=x"), "[]")
	for _, query := range []string{"pageSize=0", "pageSize=1001", "pageSize=x", "reverse=maybe"} {
		h.checkProblem(h.do("GET", "/jay/v1/databases/a/documents?"+query, ""), 400, "BadRequestException")
	}
}

// Ensure that what a stream of documents writes can be imported, and that an import which
// is wrong says where, and how much it has stored.
func TestOwn_Import(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.create("b")
	h.want(201, "PUT", "/databases/a/docs?id=a/1", `{"n":1.50,"t":"\u003c\"}","@metadata":{"@collection":"As","Note":"x"}}`)
	h.want(201, "PUT", "/databases/a/docs?id=%C3%A9", `{}`)
	lines := h.want(200, "GET", "/databases/a/streams/docs?format=jsonl", "").body
	equal(t, "imported", h.want(200, "POST", "/jay/v1/databases/b/import", lines).body, `{"documents":2}`)
	equal(t, "none", h.want(200, "POST", "/jay/v1/databases/b/import", " \n").body, `{"documents":0}`)
	doc := h.want(200, "GET", "/databases/b/docs?id=a/1", "")
	equal(t, "document", doc.text(t, "Results", 0, "n")+doc.text(t, "Results", 0, "t")+doc.text(t, "Results", 0, "@metadata", "Note"), `1.50<"}x`)
	h.want(200, "GET", "/databases/b/docs?id=%C3%A9", "")

	good := `{"n":1,"@metadata":{"@id":"good"}}` + "\n"
	for _, bad := range []string{`{}`, `{"@metadata":{}}`, `{"@metadata":{"@id":7}}`, `{"@metadata":{"@id":""}}`, `[]`, `1`, `{"a"`, `{"a":tru,"@metadata":{"@id":"x"}}`, `{"@metadata":{"@id":"x","@expires":"never"}}`} {
		a := h.do("POST", "/jay/v1/databases/b/import", good+bad)
		h.checkProblem(a, 400, "BadRequestException")
		equal(t, bad, a.text(t, "documents"), 1)
		h.want(404, "GET", "/databases/b/docs?id=x", "")
	}
	h.checkProblem(h.do("POST", "/jay/v1/databases/b/import", good, "Content-Encoding", "gzip"), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/jay/v1/databases/b/import", good, "Content-Encoding", "br"), 415, "UnsupportedContentTypeException")
	h.idle()
}

// Ensure that an import whose body is cut off fails, whatever its format is, and also where it is cut
// between two records; the part of a record that arrived is not stored.
func TestOwn_Import_CutOff(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for params, body := range map[string]string{
		"format=csv&id-column=id":              "id,n\n1,10\n2,2",
		"format=csv&id-column=id&infer=true":   "id,n\n1,10\n2,2",
		"format=csv&id-column=id&infer=true&x": "id,n\n1,10\n",
		"format=ndjson":                        `{"@metadata":{"@id":"1"}}` + "\n" + `{"@metadata":{"@id":"2"}}`,
		"format=json":                          `[{"@metadata":{"@id":"1"}},{"@metadata":{"@id":"2"}}`,
		"format=extjson":                       `{"_id":"1"}` + "\n" + `{"_id":"2"`,
	} {
		params = strings.TrimSuffix(params, "&x")
		head := "POST /jay/v1/databases/a/import?collection=A&" + params + " HTTP/1.1\r\nHost: localhost\r\n"
		for _, rest := range []string{
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body)+5, body),
			fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body),
		} {
			if reply := h.raw(head+rest, true); !strings.HasPrefix(reply, "HTTP/1.1 400 ") && !strings.Contains(reply, "the import was cut short") {
				t.Errorf("%s: %q", params, reply)
			}
		}
		if strings.Contains(params, "csv") {
			h.want(404, "GET", "/databases/a/docs?id=2", "")
		}
	}
}

// Ensure that a backup over HTTP can be restored, and that one of an unknown base is
// refused before anything is sent.
func TestOwn_Backup(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=a/1", `{"n":7}`)
	a := h.want(200, "GET", "/jay/v1/databases/a/backup", "")
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := jay.Restore(t.Context(), dir, jay.RestoreOptions{CopyTag: "C"}, strings.NewReader(a.body)); err != nil {
		t.Fatal(err)
	}
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	doc, err := db.Get(t.Context(), "a/1")
	if err != nil || string(doc.Body()) != `{"n":7}` {
		t.Errorf("%v, %v", doc, err)
	}
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/backup?since=none", ""), 400, "BadRequestException")
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/backup?once=x", ""), 400, "BadRequestException")
	stats := h.want(200, "GET", "/jay/v1/databases/a/stats", "")
	equal(t, "documents", stats.text(t, "collections", 0, "documents"), 1)
}

// Ensure that events of changes end with their database: its deletion does not wait for
// a reader that never leaves.
func TestOwn_ChangesEndWithTheDatabase(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=a/1", `{}`)
	reply, err := h.http.Client().Get(h.http.URL + "/jay/v1/databases/a/changes?since=")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	_, _ = io.ReadAll(reply.Body) // it ends
}

// Ensure that a query is explained instead of answered.
func TestQueries_Explain(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"As/ByN","Maps":["map('As', a => ({ n: a.n }))"]}]}`)
	a := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index 'As/ByN' where n = $p","QueryParameters":{"p":1}}`)
	equal(t, "index", a.text(t, "IndexName"), "As/ByN")
	equal(t, "plan", strings.Contains(a.text(t, "Results"), "As/ByN:n"), true)
	h.checkProblem(h.do("POST", "/databases/a/queries?debug=entries", `{"Query":"from As"}`), 501, "NotSupportedException")
}
