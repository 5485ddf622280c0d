package server_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// Ensure that the values of a field are listed once each, in the order of their texts, and in pages.
func TestIndexes_Terms(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{"1": `{"name":"Bob","n":10,"order":{"by":"x"},"tags":["b","A"]}`, "2": `{"name":"ada","n":9,"tags":["b"]}`, "3": `{"name":"","n":null,"tags":[]}`, "4": `{"name":"BOB","n":9.50}`} {
		h.want(201, "PUT", "/databases/a/docs?id=u/"+id, body[:len(body)-1]+`,"@metadata":{"@collection":"Users"}}`)
	}
	if a := h.put("Users/All", "map('Users', u => ({ name: u.name, n: u.n, 'order.by': u.order.by, tags: u.tags }))", ""); a.status != 201 {
		t.Fatal(a.body)
	}
	terms := func(query string) string {
		return h.want(200, "GET", "/databases/a/indexes/terms?name=users/all&"+query, "").text(t, "Terms")
	}
	equal(t, "texts", terms("field=name"), "[EMPTY_STRING ada bob]")
	equal(t, "numbers", terms("field=n"), "[10 9 9.5 NULL_VALUE]")
	equal(t, "a path", terms("field=order.by"), "[x]")
	equal(t, "an array", terms("field=tags"), "[a b]")
	equal(t, "a page", terms("field=name&pageSize=1&fromValue=EMPTY_STRING"), "[ada]")
	equal(t, "the last page", terms("field=name&pageSize=1&fromValue=bob"), "[]")
	equal(t, "between two", terms("field=name&fromValue=az"), "[bob]")
	equal(t, "name", h.want(200, "GET", "/databases/a/indexes/terms?name=users/all&field=n", "").text(t, "IndexName"), "Users/All")
	h.checkProblem(h.do("GET", "/databases/a/indexes/terms?name=Users/All&field=x", ""), 400, "BadRequestException")
	h.checkProblem(h.do("GET", "/databases/a/indexes/terms?name=None&field=x", ""), 400, "IndexDoesNotExistException")
}

// Ensure that a disabled index is in no commit and no query, also after a restart and a new definition, until it is enabled, which builds it
// of what was written meanwhile.
func TestIndexes_Disable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.put("Users/ByName", "map('Users', u => ({ name: u.name }))", "")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{"name":"Ada","@metadata":{"@collection":"Users"}}`)
	own := func() int {
		return len(h.want(200, "GET", "/jay/v1/databases/a/indexes", "").json(t, "indexes").([]any))
	}
	state := func(want string) {
		t.Helper()
		equal(t, "state", h.want(200, "GET", "/databases/a/indexes?name=Users/ByName", "").text(t, "Results", 0, "State"), want)
		stats := h.want(200, "GET", "/databases/a/indexes/stats?name=Users/ByName", "")
		equal(t, "stats", stats.text(t, "Results", 0, "State"), want)
		equal(t, "stale", stats.text(t, "Results", 0, "IsStale"), want == "Disabled")
		equal(t, "of the database", h.want(200, "GET", "/databases/a/stats", "").text(t, "Indexes", 0, "State"), want)
		equal(t, "status", h.want(200, "GET", "/databases/a/indexes/status", "").text(t, "Indexes", 0, "Status"), map[string]string{"Disabled": "Disabled", "Normal": "Running"}[want])
	}
	state("Normal")
	for range 2 {
		h.want(204, "POST", "/databases/a/admin/indexes/disable?name=users/byname&clusterWide=true", "")
		state("Disabled")
		equal(t, "indexes", own(), 0)
	}
	query := `{"Query":"from index 'Users/ByName' where name = 'Ada'"}`
	a := h.do("POST", "/databases/a/queries", query)
	h.checkProblem(a, 400, "BadRequestException")
	if !strings.Contains(a.body, "is disabled") {
		t.Error(a.body)
	}
	h.checkProblem(h.do("GET", "/databases/a/indexes/terms?name=Users/ByName&field=name", ""), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/admin/indexes/start?name=Users/ByName", ""), 400, "BadRequestException")
	h.want(201, "RESET", "/databases/a/indexes?name=Users/ByName", "")
	h.put("Users/ByName", "map('Users', u => ({ name: u.name, age: u.age }))", "")
	equal(t, "indexes of another definition", own(), 0)
	h.want(201, "PUT", "/databases/a/docs?id=u/2", `{"name":"Ada","@metadata":{"@collection":"Users"}}`)
	h.stop()

	h = startIn(t, dir)
	state("Disabled")
	h.want(204, "POST", "/databases/a/admin/indexes/enable?name=Users/ByName", "")
	state("Normal")
	equal(t, "indexes", own(), 2)
	equal(t, "found", h.want(200, "POST", "/databases/a/queries", query).text(t, "TotalResults"), 2)
	h.want(204, "POST", "/databases/a/admin/indexes/enable?name=Users/ByName", "")
	h.want(204, "POST", "/databases/a/admin/indexes/start?name=Users/ByName", "")
	a = h.do("POST", "/databases/a/admin/indexes/stop?name=Users/ByName", "")
	h.checkProblem(a, 501, "NotSupportedException")
	for _, verb := range []string{"enable", "disable"} {
		h.checkProblem(h.do("POST", "/databases/a/admin/indexes/"+verb+"?name=None", ""), 400, "IndexDoesNotExistException")
		h.checkProblem(h.do("POST", "/databases/a/admin/indexes/"+verb, ""), 400, "BadRequestException")
	}
}

// Ensure that definitions which one could replace are suggested, and that the suggested map is taken.
func TestIndexes_SuggestMerge(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.put("A/1", "map('As', u => ({ x: u.x }))", "")
	h.put("A/2", "from u in docs.As select new { u.y, u.x }", "")
	h.put("B/1", "map('Bs', u => ({ 'x.z': u.x.z }))", "")
	h.put("B/2", "map('Bs', u => ({ y: u.y }))", "")
	h.put("C/1", "map('Cs', u => ({ y: u.y }))", "")
	a := h.want(200, "GET", "/databases/a/indexes/suggest-index-merge", "")
	equal(t, "suggestions", len(a.json(t, "Suggestions").([]any)), 2)
	equal(t, "one has all", a.text(t, "Suggestions", 0, "SurpassingIndex")+a.text(t, "Suggestions", 0, "CanDelete"), "A/2[A/1]")
	equal(t, "several", a.text(t, "Suggestions", 1, "CanMerge")+a.text(t, "Suggestions", 1, "Collection"), "[B/1 B/2]Bs")
	merged := a.text(t, "Suggestions", 1, "MergedIndex", "Maps", 0)
	if a := h.put("B", merged, ""); a.status != 201 {
		t.Errorf("%s: %s", merged, a.body)
	}
	equal(t, "it has all", h.want(200, "GET", "/databases/a/indexes/suggest-index-merge", "").text(t, "Suggestions", 1, "SurpassingIndex"), "B")
}

// Ensure that the indexes which queries have made are listed, queried and dropped by RavenDB's names.
func TestIndexes_Automatic(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	db, err := jay.Open(dir, &jay.Options{AutoIndexes: 8})
	if err != nil {
		t.Fatal(err)
	}
	var b jay.Batch
	for range 3000 {
		b.Put("users|", json.RawMessage(`{"Name":"Bob","Age":5}`), jay.InCollection("Users"))
	}
	b.Put("users|", json.RawMessage(`{"Name":"Ada","Age":5}`), jay.InCollection("Users"))
	if _, err := db.Apply(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := db.Query("Users").Where(jay.Eq("Name", "Ada")).All(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list, err := db.Indexes(t.Context(), "Users")
	if err != nil || len(list) == 0 || !list[0].Automatic {
		t.Fatalf("queries have made no index: %v, %v", list, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	h := start(t, func(o *server.Options) { o.Directories = map[string]string{"a": dir} })
	equal(t, "names", h.want(200, "GET", "/databases/a/indexes?namesOnly=true", "").text(t, "Results"), "[Auto/Users/ByName]")
	one := h.want(200, "GET", "/databases/a/indexes?name=auto/users/byname", "")
	equal(t, "definition", one.text(t, "Results", 0, "Type")+one.text(t, "Results", 0, "Maps"), "AutoMap[Users:[Name]]")
	found := h.want(200, "POST", "/databases/a/queries", `{"Query":"from index 'Auto/Users/ByName' where Name = 'Ada'"}`)
	equal(t, "found", found.text(t, "IndexName")+found.text(t, "TotalResults"), "Auto/Users/ByName1")
	equal(t, "terms", h.want(200, "GET", "/databases/a/indexes/terms?name=Auto/Users/ByName&field=Name", "").text(t, "Terms"), "[ada bob]")
	equal(t, "stats", h.want(200, "GET", "/databases/a/stats", "").text(t, "Indexes", 0, "Name"), "Auto/Users/ByName")
	h.checkProblem(h.do("RESET", "/databases/a/indexes?name=Auto/Users/ByName", ""), 501, "NotSupportedException")
	h.checkProblem(h.do("POST", "/databases/a/admin/indexes/disable?name=Auto/Users/ByName", ""), 501, "NotSupportedException")
	h.want(404, "POST", "/databases/a/queries", `{"Query":"from index 'Auto/Users/ByAge'"}`)
	h.want(204, "DELETE", "/databases/a/indexes?name=Auto/Users/ByName", "")
	equal(t, "none", h.want(200, "GET", "/databases/a/indexes?namesOnly=true", "").text(t, "Results"), "[]")
}
