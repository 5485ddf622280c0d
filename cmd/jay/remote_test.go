package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/schema/jsonschema"
	"github.com/jaydb/jay/server"
)

// acornsServed serves a data directory with the database acorns, for those who have the token.
func acornsServed(t *testing.T, data string) (h *httptest.Server, token string) {
	t.Helper()
	token, err := server.AccessOf(data).CreateToken("t", server.Rights{"*": server.AdminRight}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Open(server.Options{Data: data, Authenticate: true, Database: jay.Options{Schemas: jsonschema.New()}})
	if err != nil {
		t.Fatal(err)
	}
	h = httptest.NewServer(s)
	t.Cleanup(func() {
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &remote{access{token, h.Client()}, h.URL}
	if _, err := r.read(t.Context(), "PUT", "/admin/databases", map[string][]string{"name": {"acorns"}}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return h, token
}

// Ensure that the commands that work on a running server do, with its token, and that
// others say so.
func TestRemote(t *testing.T) {
	dir := t.TempDir()
	h, token := acornsServed(t, filepath.Join(dir, "data"))
	call := func(want int, stdin string, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		getenv := func(name string) string {
			if name == "JAY_TOKEN" {
				return token
			}
			return ""
		}
		if got := run(context.Background(), args, strings.NewReader(stdin), &out, &errs, getenv); got != want {
			t.Fatalf("jay %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, &errs)
		}
		return out.String(), errs.String()
	}
	contains := func(what, text, part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q lacks %q", what, text, part)
		}
	}
	at := "--url=" + h.URL + "/databases/acorns"

	out, _ := call(0, `{"Name":"Ann & Co","n":1.50,"@metadata":{"@collection":"Users"}}`, at, "put", "--id", "users/ann")
	contains("put", out, "users/ann\n")
	out, _ = call(0, `{}`, at, "put", "--id", "users|", "--json")
	contains("identity", out, `{"id":"users/1"}`)
	out, _ = call(0, "", at, "get", "users/ann")
	contains("get", out, `{"Name":"Ann & Co","n":1.50,"@metadata":{"@collection":"Users",`)
	_, errs := call(1, "", at, "get", "users/none")
	contains("missing", errs, `no document "users/none"`)
	out, errs = call(1, "", at, "get", "users/ann", "users/none")
	contains("one of two", out, "Ann & Co")
	contains("the other", errs, "users/none")
	_, errs = call(1, `{}`, at, "put", "--id", "users/ann", "--if-match", "A:1-x", "--json")
	contains("conflict", errs, `"kind":"conflict"`)
	_, errs = call(1, `{`, at, "put", "--id", "users/ann")
	contains("bad document", errs, "must be JSON")
	out, _ = call(0, "", at, "query", "from Users where n > $least", "--param", "least=1", "--json")
	contains("query", out, `"Name":"Ann & Co"`)
	_, errs = call(1, "", at, "query", "frm Users")
	contains("bad query", errs, "unexpected")
	out, _ = call(0, "", at, "ids", "list", "--json")
	contains("identities", out, `{"users|":1}`)
	out, _ = call(0, "", at, "ids", "next", "users")
	contains("next", out, "2\n")
	out, _ = call(0, "", at, "ids", "next", "users", "--json")
	contains("next", out, `{"next":3}`)
	file := filepath.Join(dir, "all.ndjson")
	call(0, "", at, "export", file)
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("export: %q, %v", text, err)
	}
	call(0, "", "--db", filepath.Join(dir, "copy"), "import", file)

	// Backups are read to their end on their way.
	monday, tuesday := filepath.Join(dir, "monday.backup"), filepath.Join(dir, "tuesday.backup")
	out, _ = call(0, "", at, "backup", monday)
	contains("backup", out, "backed up 2 documents")
	call(0, `{}`, at, "put", "--id", "users/bob")
	out, _ = call(0, "", at, "backup", "--since", monday, tuesday, "--json")
	contains("incremental backup", out, `"base":`)
	call(0, "", "restore", "--copy-tag", "B", filepath.Join(dir, "restored"), monday, tuesday)
	out, _ = call(0, "", "--db", filepath.Join(dir, "restored"), "get", "users/ann", "users/bob")
	contains("restored", out, "Ann & Co")
	_, errs = call(1, "", "--url", h.URL+"/databases/none", "backup", filepath.Join(dir, "none.backup"))
	contains("backup of no database", errs, "does not exist")
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		whole, err := os.ReadFile(monday)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(whole[:len(whole)-10])
	}))
	defer broken.Close()
	_, errs = call(1, "", "--url", broken.URL+"/databases/acorns", "backup", filepath.Join(dir, "cut.backup"))
	contains("a backup that was cut", errs, "backup")
	for _, name := range []string{"none.backup", "cut.backup"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was kept: %v", name, err)
		}
	}

	out, _ = call(0, "", at, "top", "--count", "1", "--interval", "10ms", "--json")
	contains("top", out, `"up":true`)
	out, _ = call(0, "", at, "check", "--json")
	contains("check", out, `"dir":"`+h.URL)
	out, _ = call(0, "from Users;", at, "shell")
	contains("shell", out, "users/ann")

	declared := `{"name":"Users/Next","maps":[{"collection":"Users","select":[{"name":"Next","expression":"n + 1"}]}]}`
	out, _ = call(0, declared, at, "index", "computed", "create", "-")
	contains("a computed index", out, `computed index "Users/Next" is ready`)
	call(0, declared, at, "index", "computed", "create", "-")
	_, errs = call(1, strings.Replace(declared, "n + 1", "n + 2", 1), at, "index", "computed", "create", "-")
	contains("another declaration", errs, "map Users select n + 1 as Next")
	call(0, strings.Replace(declared, "n + 1", "n + 2", 1), at, "index", "computed", "create", "--replace", "-")
	out, _ = call(0, "", at, "index", "computed", "list")
	contains("computed indexes", out, "map Users select n + 2 as Next")
	out, _ = call(0, "", at, "query", "from index 'Users/Next' select id()")
	contains("its query", out, "users/ann")
	out, _ = call(0, "", at, "index", "computed", "drop", "users/next", "--json")
	contains("dropped", out, `"dropped":true`)
	_, errs = call(1, "", at, "index", "computed", "drop", "Users/Next")
	contains("dropped already", errs, "there is none of that name")

	for _, args := range [][]string{{"delete", "users/ann"}, {"compact"}, {"index", "create", "Users", "n"}, {"import", "-"}, {"studio"}} {
		_, errs = call(2, "", append([]string{at}, args...)...)
		contains(strings.Join(args, " "), errs, "works on a directory")
	}
	for _, args := range [][]string{{"--db", "x", "get", "a"}, {"shell", "x"}, {"check", "x"}} {
		_, errs = call(2, "", append([]string{at}, args...)...)
		contains("two databases", errs, "are two databases")
	}
	_, errs = call(2, "", at, "top", h.URL+"/metrics")
	contains("two addresses", errs, "not both")
	_, errs = call(1, "", at, "--token", "jay_wrong", "get", "users/ann")
	contains("a wrong token", errs, "the token is not valid (401)")
	_, errs = call(1, "", "--url", h.URL+"/databases/none", "stats")
	contains("no database", errs, "does not exist")
	for _, bad := range []string{"ftp://x/databases/a", "http://", h.URL, h.URL + "/databases/", h.URL + "/databases/a/docs", "http://u:p@x/databases/a", "%"} {
		if _, errs = call(2, "", "--url", bad, "stats"); !strings.Contains(errs, "--url") {
			t.Errorf("%s: %s", bad, errs)
		}
	}
	_, errs = call(2, "", "--url", "http://jay.example/databases/a", "stats")
	contains("a token in the open", errs, "without TLS")
}

// Ensure that a command prints of a server what it prints of a directory: query printed JSON where the
// directory has a table, stats the object of RavenDB, and collections and index were refused.
func TestRemote_PrintsAsOfDirectory(t *testing.T) {
	sample.OneGoroutine(t)
	data := filepath.Join(t.TempDir(), "data")
	s, err := server.Open(server.Options{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	call := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(context.Background(), args, strings.NewReader(""), &out, &errs, func(string) string { return "" }); got != 0 {
			t.Fatalf("jay %s: exit %d: %s", strings.Join(args, " "), got, &errs)
		}
		return out.String() + regexp.MustCompile(`, \d+ ms`).ReplaceAllString(errs.String(), "")
	}
	r, err := newRemote(h.URL+"/databases/acorns", access{client: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, address, body string) {
		t.Helper()
		if _, err := r.readAt(t.Context(), method, address, nil, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	ask("PUT", h.URL+"/admin/databases", `{"DatabaseName":"acorns"}`)
	ask("POST", r.base+"/bulk_docs", `{"Commands":[
		{"Type":"PUT","Id":"users/ann","Document":{"Name":"Ann","n":1.50,"Tags":["x"],"Like":[1,0.5],"Lat":48.2,"Lng":16.4,"@metadata":{"@collection":"Users"}}},
		{"Type":"PUT","Id":"users/bob","Document":{"Name":"Bob \u001b[2J","n":2,"Like":[-1,0.25],"Lat":-33.9,"Lng":18.4,"@metadata":{"@collection":"Users"}}},
		{"Type":"PUT","Id":"orders/1","Document":{"@metadata":{"@collection":"Orders"}}}]}`)
	ask("PUT", r.own("/indexes"), `{"Collection":"Users","Index":{"Fields":["Name"]}}`)
	declared := `{"name":"Halves","maps":[{"collection":"Users","select":[{"name":"Half","expression":"n / (n - 2)"}]}]}`
	ask("PUT", r.own("/indexes/computed"), `{"Index":`+declared+`}`)
	ask("PUT", r.own("/indexes"), `{"Collection":"Users","Index":{"Name":"Alike","Kind":"vectors","Fields":["Like"],"Options":{"dimensions":"2"}}}`)
	ask("PUT", r.own("/indexes"), `{"Collection":"Users","Index":{"Name":"Spots","Kind":"places","Fields":["spatial.point(Lat, Lng)"]}}`)
	file := filepath.Join(t.TempDir(), "halves.json")
	if err := os.WriteFile(file, []byte(declared), 0o600); err != nil {
		t.Fatal(err)
	}

	commands := [][]string{
		{"query", "from Users"}, {"query", "from Users select Name, n"}, {"query", "from Users where Name = 'nobody'"}, {"query", "from Users select count()"},
		{"stats"}, {"collections"}, {"collections", "--json"}, {"collections", "--all"}, {"index", "list"}, {"index", "list", "Users", "--json"}, {"index", "list", "Orders"},
		{"query", "from Users order by vector.distance(Like, [-2, 1]) select Name, vector.distance(Like, [-2, 1]) as Far limit 2"}, {"query", "from Users where vector.search(Like, [1, 0], 0.5)"},
		{"query", "from Users where spatial.within(spatial.point(Lat, Lng), spatial.circle(50, 48, 16)) order by spatial.distance(spatial.point(Lat, Lng), spatial.point(48, 16)) limit 2"},
		{"index", "computed", "list"}, {"index", "computed", "preview", file}, {"index", "computed", "preview", file, "users/bob", "--json"}, {"index", "errors", "Users", "computed:Halves:2"},
	}
	of := make(map[string]string)
	for _, args := range commands {
		of[strings.Join(args, " ")] = call(append([]string{"--url", r.base}, args...)...)
	}
	var figures statsResult
	if err := json.Unmarshal([]byte(call("--url", r.base, "stats", "--json")), &figures); err != nil || figures.Dir != r.base || figures.Documents != 3 || figures.Engine.Commits == 0 {
		t.Errorf("figures: %+v, %v", figures, err)
	}
	if shown := call("--url", r.base, "index", "computed", "show", "halves"); !strings.Contains(shown, "users/bob") || !strings.Contains(shown, "1 error") {
		t.Errorf("shown: %s", shown) // but for sizes, which the server does not know yet, it is that of the directory
	}
	h.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(data, "databases", "acorns")
	size := regexp.MustCompile(`Database .*: .* on disk`)
	for _, args := range commands {
		name := strings.Join(args, " ")
		want := size.ReplaceAllString(call(append([]string{"--db", dir}, args...)...), "")
		if got := size.ReplaceAllString(of[name], ""); got != want {
			t.Errorf("%s of a server:\n%s\nof its directory:\n%s", name, got, want)
		}
	}
	for _, args := range commands { // of the nearest, Bob is in front; Ann is in front of those that are alike, and in Vienna
		name := strings.Join(args, " ")
		if ann, bob := strings.Index(of[name], "Ann"), strings.Index(of[name], "Bob"); strings.Contains(name, "[-2, 1]") && (bob < 0 || ann < bob) || strings.Contains(name, "where vector") && (ann < 0 || bob >= 0) || strings.Contains(name, "where spatial") && (ann < 0 || bob >= 0) {
			t.Errorf("%s: %s", name, of[name])
		}
	}
	if !strings.Contains(of["query from Users"], "│ users/ann │ Ann") || !strings.Contains(of["stats"], "Users") {
		t.Errorf("%q", of)
	}
}

// Ensure that profiles are for programs of this machine.
func TestServePprof(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := servePprof(ctx, "0.0.0.0:0", http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("another address: got %v", err)
	}
	address := atFreePort(t, func(address string) error {
		return servePprof(ctx, address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	})
	for _, test := range []struct {
		host, origin, site string
		status             int
	}{{"", "", "", 418}, {"localhost", "", "none", 418}, {"evil.example", "", "", 403}, {"", "http://evil.example", "", 403}, {"", "", "cross-site", 403}, {"", "", "same-site", 403}} {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/debug/pprof/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = test.host; test.host == "" {
			r.Host = address
		}
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		if test.site != "" {
			r.Header.Set("Sec-Fetch-Site", test.site)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Body.Close(); reply.StatusCode != test.status {
			t.Errorf("%+v: status %d", test, reply.StatusCode)
		}
	}
}

// Ensure that the commands for schemas work on a server: that they set, show, use, switch and remove one.
func TestRemote_Schemas(t *testing.T) {
	t.Parallel()
	h, token := acornsServed(t, filepath.Join(t.TempDir(), "data"))
	call := func(want int, stdin string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		args = append([]string{"--url=" + h.URL + "/databases/acorns"}, args...)
		if got := run(t.Context(), args, strings.NewReader(stdin), &out, &errs, func(name string) string { return map[string]string{"JAY_TOKEN": token}[name] }); got != want {
			t.Fatalf("jay %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, &errs)
		}
		return out.String() + errs.String()
	}
	for _, step := range []struct {
		want        int
		stdin, args string
		part        string
	}{
		{0, `{"total":"x","@metadata":{"@collection":"Orders"}}`, "put --id orders/1", "orders/1"},
		{0, "", "schema infer Orders", `"total"`},
		{1, `{"required":["customer"]}`, "schema check Orders -", "orders/1 the document: missing property"},
		{0, `{"properties":{"total":{"type":"number"}}}`, "schema set Orders - --mode warn", "orders/1 /total: got string, want number"},
		{0, "", "schema set Orders --json", `"mode":"refuse"`},
		{1, `{"total":"x","@metadata":{"@collection":"Orders"}}`, "put --id orders/2", "violates the schema"},
		{0, "", "schema set Orders --mode off", "the schema of Orders is off"},
		{0, "", "schema get Orders", `{"properties":{"total":{"type":"number"}}}`},
		{1, `{"type":"nothing"}`, "schema set Orders -", "/type"},
		{1, "", "schema set Orders -", "a schema is a JSON object"},
		{0, "", "schema list --json", `"collection":"Orders"`},
		{0, "", "schema remove Orders", "removed the schema of Orders"},
		{0, "", "schema list", "no schemas"},
	} {
		if out := call(step.want, step.stdin, strings.Fields(step.args)...); !strings.Contains(out, step.part) {
			t.Errorf("jay %s: %q lacks %q", step.args, out, step.part)
		}
	}
}
