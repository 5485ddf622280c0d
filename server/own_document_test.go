package server_test

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Ensure that one call answers all that is known of a document, and that no digit of it
// changes.
func TestOwn_Document(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=users/ann", `{}`)
	h.want(201, "PUT", "/databases/db/docs?id=orders/1", `{"Total":1.10,"Big":9007199254740993,"By":"USERS/ann","Again":["users/ann",{"x":"users/none"}],"Self":"orders/1","Bad":"a\\b","@metadata":{"@collection":"Orders","Note":"x"}}`)
	a := h.want(200, "GET", own+"/document?id=orders/1", "")
	if !strings.Contains(a.body, `"Total":1.10,"Big":9007199254740993`) {
		t.Errorf("digits have changed: %s", a.body)
	}
	equal(t, "collection", a.text(t, "collection"), "Orders")
	equal(t, "metadata", a.text(t, "document", "@metadata", "Note"), "x")
	equal(t, "references", fmt.Sprint(a.json(t, "references")), "[USERS/ann]")
	equal(t, "moreReferences", a.json(t, "moreReferences"), false)
	equal(t, "revisions", fmt.Sprint(a.json(t, "revisions"), a.json(t, "keepsRevisions")), "0false")
	equal(t, "attachments", fmt.Sprint(a.json(t, "attachments")), "[]")
	equal(t, "ETag", a.header.Get("ETag"), `"`+a.text(t, "changeVector")+`"`)

	h.want(200, "POST", "/databases/db/admin/revisions/config", `{"Default":null,"Collections":{"ORDERS":{}}}`)
	h.want(201, "PUT", "/databases/db/docs?id=orders/1", `{"N":1}`)
	h.want(201, "PUT", "/databases/db/attachments?id=orders/1&name=a.txt&contentType=text/plain", `hello`)
	a = h.want(200, "GET", own+"/document?id=orders/1", "")
	equal(t, "revisions", fmt.Sprint(a.json(t, "revisions"), a.json(t, "keepsRevisions")), "3true")
	equal(t, "attachment", a.text(t, "attachments", 0, "Name"), "a.txt")

	equal(t, "missing", h.want(404, "GET", own+"/document?id=orders/2", "").body, "")
	h.checkProblem(h.do("GET", own+"/document", ""), 400, "BadRequestException")
}

// Ensure that the references of a document are bounded.
func TestOwn_Document_References(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	var list []string
	for i := range 120 {
		list = append(list, fmt.Sprintf(`"u/%d"`, i))
		h.want(201, "PUT", fmt.Sprintf("/databases/db/docs?id=u/%d", i), `{}`)
	}
	h.want(201, "PUT", "/databases/db/docs?id=all", `{"L":[`+strings.Join(list, ",")+`]}`)
	a := h.want(200, "GET", own+"/document?id=all", "")
	equal(t, "references", len(a.json(t, "references").([]any)), 100)
	equal(t, "more", a.json(t, "moreReferences"), true)
	list = nil
	for i := range 1000 {
		list = append(list, fmt.Sprintf(`"none/%d"`, i))
	}
	h.want(201, "PUT", "/databases/db/docs?id=none", `{"L":[`+strings.Join(list, ",")+`,"u/1"]}`)
	a = h.want(200, "GET", own+"/document?id=none", "")
	equal(t, "references", fmt.Sprint(a.json(t, "references"), a.json(t, "moreReferences")), "[] true")
}

// Ensure that revisions come in pages, and each with its text.
func TestOwn_Revisions(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	h.want(200, "POST", "/databases/db/admin/revisions/config", `{"Default":{}}`)
	for i := range 5 {
		h.want(201, "PUT", "/databases/db/docs?id=a", fmt.Sprintf(`{"N":%d.10}`, i))
	}
	h.want(204, "DELETE", "/databases/db/docs?id=a", "")
	var vectors []string
	before := ""
	for range 10 {
		a := h.want(200, "GET", own+"/revisions?id=a&pageSize=2&before="+url.QueryEscape(before), "")
		for i := range a.json(t, "rows").([]any) {
			vectors = append(vectors, a.text(t, "rows", i, "changeVector"))
			equal(t, "deletion", a.json(t, "rows", i, "deletion"), len(vectors) == 1)
		}
		next, more := a.json(t, "next").(string)
		if !more {
			break
		}
		before = next
	}
	equal(t, "revisions", len(vectors), 6)
	a := h.want(200, "GET", own+"/revisions?id=a&changeVector="+url.QueryEscape(vectors[1]), "")
	if !strings.Contains(a.body, `"N":4.10`) {
		t.Errorf("got %s", a.body)
	}
	h.want(404, "GET", own+"/revisions?id=a&changeVector=A:1-none", "")
	h.checkProblem(h.do("GET", own+"/revisions?id=a&before=A:1-none", ""), 400, "BadRequestException")
	h.checkProblem(h.do("GET", own+"/revisions?id=a&pageSize=0", ""), 400, "BadRequestException")
	h.checkProblem(h.do("GET", own+"/revisions", ""), 400, "BadRequestException")
	equal(t, "none", h.want(200, "GET", own+"/revisions?id=b", "").body, `{"rows":[]}`)
}

// Ensure that the ID that is foretold is the one that the write gets, and that asking uses
// up no number.
func TestOwn_NextID(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=users/1", `{}`)
	for _, c := range []struct{ request, strategy, form string }{
		{"users/ann", "semantic", "users/ann"},
		{"users|", "identity", "users/…"},
		{"users/", "server-side", "users/…-A"},
	} {
		for range 2 {
			a := h.want(200, "GET", own+"/nextid?id="+url.QueryEscape(c.request), "")
			equal(t, c.request, a.text(t, "strategy")+" "+a.text(t, "form"), c.strategy+" "+c.form)
			stored := h.want(201, "PUT", "/databases/db/docs?id="+c.request, `{}`)
			equal(t, c.request, a.text(t, "id"), stored.text(t, "Id"))
		}
	}
	a := h.want(200, "GET", own+"/nextid?id=", "")
	equal(t, "GUID", a.body, `{"strategy":"guid","form":"…","taken":false}`)
	equal(t, "taken", h.want(200, "GET", own+"/nextid?id=Users/ANN", "").json(t, "taken"), true)
	equal(t, "free", h.want(200, "GET", own+"/nextid?id=users/bob", "").json(t, "taken"), false)

	a = h.want(200, "GET", own+"/nextid?hilo=true&collection=OrderLines", "")
	equal(t, "HiLo", a.body, `{"strategy":"hilo","form":"OrderLines/…-A","taken":false}`)
	for i := range 3 {
		a := h.want(201, "POST", own+"/documents?collection=OrderLines", `{"N":1.10}`)
		equal(t, "HiLo", a.text(t, "id"), fmt.Sprintf("OrderLines/%d-A", i+1))
	}
	equal(t, "HiLo", h.want(201, "POST", own+"/documents", `{"@metadata":{"@collection":"Users"}}`).text(t, "id"), "users/1-A")
	doc := h.want(200, "GET", own+"/document?id=OrderLines/1-A", "")
	equal(t, "collection", doc.text(t, "collection"), "OrderLines")

	for _, query := range []string{"", "?hilo=true", "?hilo=x&id=a", `?id=a%5Cb`, "?id=" + strings.Repeat("x", 2026)} {
		h.checkProblem(h.do("GET", own+"/nextid"+query, ""), 400, "BadRequestException")
	}
	h.checkProblem(h.do("POST", own+"/documents", `{}`), 400, "BadRequestException")
	h.checkProblem(h.do("POST", own+"/documents?collection=Users", ``), 400, "BadRequestException")
	h.checkProblem(h.do("POST", own+"/documents?collection=Users", `{"a":}`), 400, "BadRequestException")
}

// Ensure that the fields of a collection are those of documents at both of its ends, as RQL
// writes them.
func TestOwn_Fields(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	equal(t, "none", h.want(200, "GET", own+"/fields?collection=Logs", "").body, `{"documents":0,"fields":[],"more":false}`)
	for i := range 250 {
		body := `{"N":1,"order":"x","Lines":[{"a b":true}],"@metadata":{"@collection":"Logs"}}`
		if i == 0 {
			body = `{"First":null,"@metadata":{"@collection":"Logs"}}`
		} else if i == 249 {
			body = `{"N":"last","@metadata":{"@collection":"Logs"}}`
		}
		h.want(201, "PUT", fmt.Sprintf("/databases/db/docs?id=logs/%03d", i), body)
	}
	a := h.want(200, "GET", own+"/fields?collection=Logs", "")
	equal(t, "documents", a.text(t, "documents"), 200)
	var got []string
	for i := range a.json(t, "fields").([]any) {
		got = append(got, fmt.Sprint(a.text(t, "fields", i, "path"), a.json(t, "fields", i, "types"), a.text(t, "fields", i, "documents")))
	}
	equal(t, "fields", strings.Join(got, "; "), "First[null]1; N[number string]199; 'order'[string]198; Lines[array]198; Lines[][object]198; Lines[].'a b'[boolean]198")
}

// Ensure that an export has all answers of a query with every digit, and that no text in
// it is a formula.
func TestOwn_Export(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=a/1", `{"N":9007199254740993,"P":-1.10,"T":"=1+1","L":[1,{"x":1.0}],"@metadata":{"@collection":"Things"}}`)
	h.want(201, "PUT", "/databases/db/docs?id=a/2", `{"T":"a \"b\", c\nd","E":"","U":"é","M":null,"B":true,"@metadata":{"@collection":"Things"}}`)
	csvOf := func(query, more string) string {
		t.Helper()
		a := h.want(200, "POST", own+"/export", fmt.Sprintf(`{"query":%q,"format":"csv"%s}`, query, more))
		if _, err := csv.NewReader(strings.NewReader(a.body)).ReadAll(); err != nil {
			t.Errorf("no CSV: %v\n%s", err, a.body)
		}
		return strings.ReplaceAll(a.body, "\r\n", "|")
	}
	equal(t, "documents", csvOf("from Things order by id()", ""),
		`id(),N,P,T,L,E,U,M,B|a/1,9007199254740993,-1.10,'=1+1,"[1,{""x"":1.0}]",,,,|a/2,,,"a ""b"", c`+"\n"+`d",,"",é,,true|`)
	equal(t, "exact", csvOf("from Things where exists(N) select T, P", `,"exact":true`), `T,P|=1+1,-1.10|`)
	equal(t, "rows", csvOf("from Things group by @metadata.@collection select key() as C, count() as Sum", ""), `C,Sum|Things,2|`)
	equal(t, "none", csvOf("from Nothing", ""), ``)
	equal(t, "parameters", csvOf("from Things where id() = $id select id()", `,"parameters":{"id":"a/2"}`), `id()|a/2|`)
	a := h.want(200, "POST", own+"/export", `{"query":"from Things where id() = 'a/1' select N, P","format":"ndjson"}`)
	equal(t, "lines", a.body, "{\"N\":9007199254740993,\"P\":-1.10}\n")
	a = h.want(200, "POST", own+"/export", `{"query":"from Things order by id()","format":"ndjson"}`)
	equal(t, "lines", strings.Count(a.body, "\n"), 2)

	for _, bad := range []string{`{"query":"from Things"}`, `{"query":"from Things","format":"xml"}`, `{"query":"fro","format":"csv"}`, `{"format":"csv"}`, `{"query":"from Things where N = $n","format":"csv"}`} {
		if a := h.do("POST", own+"/export", bad); a.status != 400 {
			t.Errorf("%s: got %d %s", bad, a.status, a.body)
		}
	}
}

// Ensure that an export of documents for a spreadsheet has no formulas, that one for an
// import has every text as it is, and that the other formats refuse the switch.
func TestOwn_Download_Formulas(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=a/1", `{"N":-5,"T":"x;=1+1","L":["=1+1"],"@metadata":{"@collection":"Things"}}`)
	equal(t, "as it is", h.want(200, "GET", own+"/export?format=csv", "").body, "@id,@collection,N:number,T,L:json\na/1,Things,-5,x;=1+1,\"[\"\"=1+1\"\"]\"\n")
	equal(t, "guarded", h.want(200, "GET", own+"/export?format=csv&spreadsheet=true", "").body, "@id,@collection,N:number,T,L:json\na/1,Things,-5,x;'=1+1,\"[\"\"=1+1\"\"]\"\n")
	equal(t, "the answers of a query", h.want(200, "POST", own+"/export", `{"query":"from Things select T, L","format":"csv"}`).body, "T,L\r\nx;'=1+1,\"[\"\"=1+1\"\"]\"\r\n")
	h.want(400, "GET", own+"/export?format=json&spreadsheet=true", "")
}

// Ensure that an import says what an input is that no format can be, and that plain JSON
// looks like Extended JSON.
func TestOwn_Import_AnotherFormat(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for input, want := range map[string]string{
		"SQLite format 3\x00":                  "a SQLite database",
		"{\x00\"\x00a\x00":                     "UTF-16",
		"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00": "a zstd stream has a window of at most 32 MiB",
	} {
		if a := h.want(400, "POST", own+"/import?collection=A", input); !strings.Contains(a.body, want) {
			t.Errorf("got %s, want %q", a.body, want)
		}
	}
	a := h.want(200, "POST", own+"/import?collection=A", `{"_id":{"$oid":"507f1f77bcf86cd799439011"}}`)
	if !strings.Contains(a.body, `"note":"the first documents look like Extended JSON`) {
		t.Errorf("got %s", a.body)
	}
	if a := h.want(200, "POST", own+"/import?collection=A&format=extjson", `{"_id":{"$oid":"507f1f77bcf86cd799439011"}}`); strings.Contains(a.body, "note") {
		t.Errorf("got %s", a.body)
	}
}

// Ensure that answers with too many different members make no CSV.
func TestOwn_Export_Columns(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	var members []string
	for i := range 10_001 {
		members = append(members, fmt.Sprintf(`"m%d":1`, i))
	}
	h.want(201, "PUT", "/databases/db/docs?id=a", `{`+strings.Join(members, ",")+`}`)
	h.checkProblem(h.do("POST", own+"/export", `{"query":"from @all_docs","format":"csv"}`), 413, "RequestTooLargeException")
}

// Ensure that groups and distinct rows, which have no cursor, are answered, and that the
// reply says when there are more.
func TestOwn_Groups(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for i := range 12 {
		h.want(201, "PUT", fmt.Sprintf("/databases/db/docs?id=logs/%02d", i), fmt.Sprintf(`{"N":%d,"@metadata":{"@collection":"Logs"}}`, i/2))
	}
	rows := func(query string, size int) (n int, more any) {
		t.Helper()
		a := h.want(200, "POST", own+"/query", fmt.Sprintf(`{"query":%q,"pageSize":%d}`, query, size))
		return len(a.json(t, "rows").([]any)), a.json(t, "more")
	}
	for _, c := range []struct {
		query string
		size  int
		n     int
		more  any
	}{
		{"from Logs group by N select key(), count()", 10, 6, nil},
		{"from Logs group by N select key(), count()", 6, 6, nil},
		{"from Logs group by N select key(), count()", 5, 5, true},
		{"from Logs group by N order by count() select key(), count() limit 3", 5, 3, nil},
		{"from Logs select distinct N", 4, 4, true},
		{"from Logs select sum(N)", 1, 1, nil},
	} {
		n, more := rows(c.query, c.size)
		equal(t, c.query, fmt.Sprint(n, more), fmt.Sprint(c.n, c.more))
	}
	h.checkProblem(h.do("POST", own+"/query", `{"query":"from Logs select distinct N","after":"x"}`), 400, "InvalidQueryException")
}
