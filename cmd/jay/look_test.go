package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// jayOn runs the command on a directory, and returns what it prints.
func jayOn(t *testing.T, want int, dir, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"--db", dir}, args...)
	if got := run(context.Background(), args, strings.NewReader(stdin), &out, &errs, func(string) string { return "" }); got != want {
		t.Fatalf("jay %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, &errs)
	}
	return out.String(), errs.String()
}

// jayAt runs the command on a database of a server, and returns what it prints.
func jayAt(t *testing.T, want int, url, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"--url", url}, args...)
	if got := run(context.Background(), args, strings.NewReader(stdin), &out, &errs, func(string) string { return "" }); got != want {
		t.Fatalf("jay %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, &errs)
	}
	return out.String(), errs.String()
}

// Ensure that each command that reads prints of a database that a program has open, and of one that a server serves, byte by byte, what it prints of the
// closed directory, and that figures have the same members; and that commands that write say why they cannot.
func TestLook_SameOutput(t *testing.T) {
	sample.OneGoroutine(t)
	t.Setenv("HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "shop")
	for _, args := range [][]string{
		{"put", "--id", "users/ann", "--collection", "Users"},
		{"put", "--id", "users|", "--collection", "Users"},
		{"put", "--collection", "Orders"},
		{"put", "--id", "gone"},
		{"revisions", "configure", "Users", "--all"},
		{"index", "create", "Users", "Name"},
		{"index", "create", "Users", "Name", "--kind", "text", "--name", "Words"},
		{"put", "--id", "users/ann", "--collection", "Users"},
		{"delete", "gone"},
		{"cmpxchg", "put", "lock", "1"},
	} {
		jayOn(t, 0, dir, `{"Name":"Ann","n":1.50}`, args...)
	}
	same := [][]string{
		{"get", "users/ann", "users/1"},
		{"list"}, {"list", "--system"}, {"list", "--prefix", "users/", "--ids-only"},
		{"query", "from Users where Name = 'ann'"}, {"query", "--json", "from Users"}, {"query", "--explain", "--no-scan", "from Users where Name = 'ann'"},
		{"query", "from Users select Name, n"}, {"query", "from @all_docs group by @metadata.@collection select key(), count()"}, {"query", "from Users where Name = 'nobody'"},
		{"query", "--json", "from Users where search(Name, 'ann') order by score() select id(), score() include highlight(Name, 18, 1), explanations()"},
		{"query", "--explain", "--no-scan", "from Users where lucene(Name, 'ann OR bob')"}, {"query", "from Users where fuzzy(Name = 'amn', 0.5)"},
		{"query", "from Users select suggest(Name, 'anm'), complete(Name, 'a')"}, {"index", "terms", "Users", "Words"},
		{"query", "from Users where moreLikeThis(id() = 'users/ann', '{\"MinimumTermFrequency\":1,\"MinimumDocumentFrequency\":1}')"},
		{"ids"}, {"ids", "list"}, {"index", "list"}, {"index", "list", "--json"}, {"collections", "list"},
		{"query", "--live", "--until-caught-up", "from Users where Name = 'ann'"}, {"query", "--json", "--live", "--until-caught-up", "from Users select Name"},
		{"changes"}, {"changes", "--documents", "--collection", "Users"},
		{"export", "-"}, {"export", "--collection", "Users", "--format", "csv"}, {"export", "--format", "extjson", "-"}, {"revisions", "list", "users/ann"}, {"cmpxchg", "list"}, {"subscriptions", "list"}, {"expiration"},
		{"shell"},
	}
	members := [][]string{{"stats", "--json"}, {"stats", "--json", "--disk"}, {"check", "--json"}, {"backup", "--json", "--once", filepath.Join(t.TempDir(), "backup")}}
	const script = "from Orders;\nfrom Users where Name = 'ann';"

	took := regexp.MustCompile(`, [0-9.]+[nµm]?s\n`)
	closed := make(map[string]string)
	for _, args := range append(same, members...) {
		out, _ := jayOn(t, 0, dir, script, args...)
		closed[strings.Join(args, " ")] = took.ReplaceAllString(out, "")
		if quiet := strings.Contains(args[len(args)-1], "nobody"); (out == "") != quiet {
			t.Errorf("jay %s: %q", strings.Join(args, " "), out)
		}
	}
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(run func(t *testing.T, status int, at, in string, args ...string) (string, string), at string) {
		for _, args := range same {
			got, _ := run(t, 0, at, script, args...)
			if want := closed[strings.Join(args, " ")]; took.ReplaceAllString(got, "") != want {
				t.Errorf("%s: jay %s: got\n%s\nwant\n%s", at, strings.Join(args, " "), got, want)
			}
		}
		for _, args := range members {
			got, _ := run(t, 0, at, "", args...)
			if got, want := membersOf(t, got), membersOf(t, closed[strings.Join(args, " ")]); !slices.Equal(got, want) {
				t.Errorf("%s: jay %s: got the members %q, want %q", at, strings.Join(args, " "), got, want)
			}
		}
	}
	compare(jayOn, dir)
	full := filepath.Join(t.TempDir(), "full")
	jayOn(t, 0, dir, "", "backup", full)
	if _, said := jayOn(t, 1, dir, "", "backup", "--since", full, full+".next"); !strings.Contains(said, "no backup can follow") {
		t.Errorf("a backup that follows one through the program: %s", said)
	}
	served, err := server.Open(server.Options{Data: t.TempDir(), Mounted: map[string]*jay.DB{"shop": db}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(served)
	at := h.URL + "/databases/shop"
	compare(jayAt, at)
	_, said := jayAt(t, 1, at, "put users/x {}", "shell")
	if !strings.Contains(said, "only looks into it") {
		t.Errorf("a write of a shell: %s", said)
	}
	h.Close()
	if err := served.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"put", "--id", "x"}, {"delete", "users/ann"}, {"ids", "next", "users|"}, {"compact"}, {"index", "create", "Users", "n"}, {"import", "-"},
		{"update", "--yes", "from Users update { this.n = 2 }"},
	} {
		_, said := jayOn(t, 1, dir, `{"@metadata":{"@id":"y"}}`, args...)
		if !strings.Contains(said, "another program has it open") {
			t.Errorf("jay %s: %s", strings.Join(args, " "), said)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	after, _ := jayOn(t, 0, dir, "", "export", "-")
	if after != closed["export -"] {
		t.Errorf("a refused command has written: %s", after)
	}
}

// changing are parts of outputs that differ from run to run: times, durations, random IDs, sizes, and the etags, of which a database that is closed
// after each command uses some more.
var changing = regexp.MustCompile(`A:\d+-|"etag":\d+|"hilo":{"users":\d+}|index"?[ :]\d+|\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|in [0-9.]+ s|"seconds":[0-9.e-]+|[0-9.]+ [kM]?i?B`)

// Ensure that each command that writes prints of a database that a program has open, and that lets others write, what it prints of the closed directory,
// errors as well, and leaves the same documents behind; that the program itself goes on with the next numbers; and that what
// is not carried out says so.
func TestLook_SameWrites(t *testing.T) {
	sample.OneGoroutine(t)
	t.Setenv("HOME", t.TempDir())
	base := filepath.Join(t.TempDir(), "shop")
	dirs := []string{base}
	for _, args := range [][]string{
		{"put", "--id", "users/ann", "--collection", "Users"},
		{"put", "--collection", "Users"},
		{"put", "--id", "users/bob", "--collection", "Users"},
	} {
		jayOn(t, 0, base, `{"Name":"Ann","n":1.50}`, args...)
	}
	open := filepath.Join(t.TempDir(), "shop")
	if err := os.CopyFS(open, os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	dirs = append(dirs, open)
	export, _ := jayOn(t, 0, base, "", "export", "-")
	lines := filepath.Join(t.TempDir(), "more.ndjson")
	if err := os.WriteFile(lines, []byte(strings.Repeat(`{"Name":"<Cyd>","@metadata":{"@collection":"Users"}}`+"\n", 2500)+"{}\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := jay.Open(open, &jay.Options{LookWrites: true})
	if err != nil {
		t.Fatal(err)
	}
	old, _ := jayOn(t, 0, base, "", "get", "users/bob")
	vector := regexp.MustCompile(`"@change-vector":"([^"]*)"`).FindStringSubmatch(old)[1]
	const body = `{"Name":"Eve","Tags":["<a>"],"n":2.50}`
	type command struct {
		exit  int
		stdin string
		args  []string
	}
	for _, c := range []command{
		{0, body, []string{"put", "--id", "users/eve", "--collection", "Users"}},
		{0, body, []string{"put", "--id", "users|", "--collection", "Users"}},
		{0, body, []string{"put", "--id", "users/", "--collection", "Users", "--json"}},
		{0, body, []string{"put", "--id", "", "--collection", "Users"}},
		{0, body, []string{"put", "--collection", "Users"}},
		{0, body, []string{"put", "--id", "users/bob", "--if-match", vector}},
		{1, body, []string{"put", "--id", "users/bob", "--if-match", vector}},
		{1, body, []string{"put", "--id", "users/bob", "--if-match", vector, "--json"}},
		{1, body, []string{"put", "--id", "users/bob", "--insert"}},
		{0, body, []string{"put", "--id", "users/ttl", "--ttl", "24h", "--collection", "Users"}},
		{1, `{"x"`, []string{"put", "--id", "users/x"}},
		{1, body, []string{"put", "--id", "users/bob", "--collection", "Others"}},
		{1, "", []string{"delete", "users/bob", "--if-match", vector}},
		{0, "", []string{"delete", "users/bob", "users/nobody", "--json"}},
		{0, "", []string{"ids", "next", "users|"}},
		{0, "", []string{"ids", "next", "bills", "--json"}},
		{0, "", []string{"ids", "seed", "bills", "41"}},
		{2, "", []string{"ids", "next", "users/"}},
		{0, "", []string{"index", "create", "Users", "Name"}},
		{0, "", []string{"index", "create", "Users", "Name", "--json"}},
		{1, "", []string{"index", "create", "Users", "n", "--name", "Name"}},
		{1, "", []string{"index", "create", "Users", "Name", "--unique", "--name", "u"}},
		{0, "", []string{"update", "--yes", "from Users where n >= 2 update { this.n += 1; this.Tags.push('<b>') }"}},
		{0, "", []string{"update", "--yes", "--json", "--param", "n=3.50", "from Users where n = $n update { this.Large = true }"}},
		{1, "", []string{"update", "--yes", "from Users where n = 1.50 update { this.Name.x = 1 }"}},
		{0, "", []string{"update", "--dry-run", "from Users where n = 1.50 update { this.Name = 1 }"}},
		{0, "", []string{"cmpxchg", "put", "lock", `{"by":"<me>"}`, "--json"}},
		{1, "", []string{"cmpxchg", "put", "lock", "2"}},
		{0, "", []string{"cmpxchg", "delete", "lock"}},
		{0, "", []string{"import", lines, "--rejects", filepath.Join(t.TempDir(), "rejects"), "--json"}},
		{0, export, []string{"import", "-"}},
		{0, "", []string{"delete", "--query", "from Users where Name = '<Cyd>'", "--yes"}},
		{0, "", []string{"index", "drop", "Users", "Name"}},
		{0, body, []string{"put", "--id", "gone/1", "--collection", "Gone"}},
		{0, "", []string{"collections", "rename", "Users", "People"}},
		{0, "", []string{"collections", "drop", "Gone", "--yes"}},
		{0, "", []string{"expiration", "off"}},
		{0, "", []string{"compact"}},
		{1, "put notes/1 {\"a\":1}\ninsert notes/1 {}\n", []string{"shell"}},
		{0, "put notes/2 {\"a\":\"<\"}\npatch notes/2 {\"b\":2}\ndelete notes/1\nget notes/2\n", []string{"shell"}},
		{0, "", []string{"revert", "users/ann", "--as-of", "2100-01-01"}},
	} {
		var said [2]string
		for i, dir := range dirs {
			if at := slices.Index(c.args, "--rejects"); at >= 0 {
				_ = os.Remove(c.args[at+1]) // the other run has made it
			}
			out, errs := jayOn(t, c.exit, dir, c.stdin, c.args...)
			said[i] = strings.ReplaceAll(changing.ReplaceAllString(out+errs, "…"), dir, "DIR")
		}
		if said[0] != said[1] {
			t.Errorf("jay %s: got\n%s\nwant\n%s", strings.Join(c.args, " "), said[1], said[0])
		}
	}
	m, err := db.Put(t.Context(), "users|", json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := jayOn(t, 0, base, "{}", "put", "--id", "users|"); strings.TrimSpace(out) != m.ID {
		t.Errorf("the program's next number: %s, want %s", m.ID, out)
	}

	for _, args := range [][]string{
		{"attach", "put", "users/ann", "a.txt"}, {"revisions", "configure", "Users", "--all"}, {"subscriptions", "create", "s", "from Users"},
		{"hilo", "next", "users"},
	} {
		if _, said := jayOn(t, 1, open, "x", args...); !strings.Contains(said, "makes no such change for this one: let that program make it, or end it") {
			t.Errorf("jay %s: %s", strings.Join(args, " "), said)
		}
	}
	if _, said := jayOn(t, 1, open, body, "--read-only", "put", "--id", "x"); !strings.Contains(said, "Options.ReadOnly") {
		t.Errorf("jay --read-only put: %s", said)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if checked, _ := jayOn(t, 0, open, "", "check"); checked == "" {
		t.Error("jay check says nothing")
	}
	var exports [2]string
	for i, dir := range dirs {
		exports[i], _ = jayOn(t, 0, dir, "", "export", "-")
		exports[i] = changing.ReplaceAllString(exports[i], "…")
	}
	if exports[0] != exports[1] {
		t.Errorf("the exports differ: got\n%.4000s\nwant\n%.4000s", exports[1], exports[0])
	}
}

// Ensure that top shows the figures of a database that a program has open, with the members that it has of metrics.
func TestLook_Top(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	shop(t, dir)
	_, said := jayOn(t, 1, dir, "", "top", "--count", "1")
	if !strings.Contains(said, "no program listens") {
		t.Errorf("a closed database: %s", said)
	}
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_, _ = db.Put(ctx, "orders/2", json.RawMessage(`{}`))
		}
	}()
	got, _ := jayOn(t, 0, dir, "", "--json", "top", "--count", "1", "--interval", "200ms")
	var all []topResult
	if err := json.Unmarshal([]byte(got), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, got)
	}
	if r := all[0]; !r.Up || r.Documents != 2 && r.Documents != 1 || r.Commits <= 0 || r.DiskBytes <= 0 || len(r.Collections) != 1 {
		t.Errorf("got %s", got)
	}
}

// membersOf returns the names of the members of a line of JSON.
func membersOf(t *testing.T, line string) []string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &all); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return slices.Sorted(maps.Keys(all))
}

// studioBeside makes the shop, opens it as its program would, and starts a studio on it, which a browser has visited.
func studioBeside(t *testing.T, dir string, opts *jay.Options) (db *jay.DB, at *url.URL, own *http.Client) {
	t.Helper()
	shop(t, dir)
	db, err := jay.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	r := startStudio(t, &studioCommand{}, dir, jay.Options{})
	t.Cleanup(func() { _ = db.Close() })
	at, own = r.address(), browser(t)
	if status, _ := visit(t, own, "GET", at, "", ""); status != 200 {
		t.Fatalf("the studio: got %d", status)
	}
	return db, at, own
}

// Ensure that the studio shows a database that another program has open, follows it, and changes nothing.
func TestLook_Studio(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	db, u, own := studioBeside(t, dir, nil)
	if status, text := visit(t, own, "GET", u, "/databases/shop/docs?id=orders/1", ""); status != 200 || !strings.Contains(text, `"Total":1.10`) {
		t.Errorf("got %d %s", status, text)
	}
	if _, err := db.Put(t.Context(), "orders/2", json.RawMessage(`{"Total":2.20}`)); err != nil {
		t.Fatal(err)
	}
	if status, text := visit(t, own, "GET", u, "/databases/shop/docs?id=orders/2", ""); status != 200 || !strings.Contains(text, `"Total":2.20`) {
		t.Errorf("a new document: got %d %s", status, text)
	}
	if status, text := visit(t, own, "PUT", u, "/databases/shop/docs?id=x", `{}`); status != 403 {
		t.Errorf("a write: got %d %s", status, text)
	}
	if _, err := os.Lstat(filepath.Join(dir, "LOOK")); err != nil {
		t.Error(err)
	}
}

// Ensure that the studio writes documents through a program that lets others write.
func TestLook_StudioWrites(t *testing.T) {
	db, u, own := studioBeside(t, filepath.Join(t.TempDir(), "shop"), &jay.Options{LookWrites: true})
	if status, text := visit(t, own, "PUT", u, "/databases/shop/docs?id=orders/9", `{"Total":9}`); status != 201 {
		t.Errorf("a write: got %d %s", status, text)
	}
	if doc, err := db.Get(t.Context(), "orders/9"); err != nil || string(doc.Body()) != `{"Total":9}` {
		t.Errorf("the program has %v, %v", doc, err)
	}
	if status, text := visit(t, own, "DELETE", u, "/databases/shop/docs?id=orders/9", ""); status != 204 {
		t.Errorf("a deletion: got %d %s", status, text)
	}
	if _, err := db.Get(t.Context(), "orders/9"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("the program still has it: %v", err)
	}
}

// lines is the output of a command that runs, line by line.
type lines struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Scanner
	errs  *bytes.Buffer
	ended chan int
}

// begin runs a command on a directory.
func begin(t *testing.T, ctx context.Context, dir string, args ...string) *lines {
	t.Helper()
	stdin, in := io.Pipe()
	output, stdout := io.Pipe()
	l := &lines{t, in, bufio.NewScanner(output), new(bytes.Buffer), make(chan int, 1)}
	go func() {
		code := run(ctx, append([]string{"--db", dir}, args...), stdin, stdout, l.errs, func(string) string { return "" })
		_ = stdout.Close()
		l.ended <- code
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, output)
	})
	return l
}

func (l *lines) next() string {
	l.t.Helper()
	if !l.out.Scan() {
		l.t.Fatalf("it has ended with %d: %s", <-l.ended, l.errs)
	}
	return l.out.Text()
}

// Ensure that a shell goes on with the next statement when the program that has the database open was started again, and says so when
// none has it open.
func TestLook_ShellReconnects(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	shop(t, dir)
	opened := func(n string) *jay.DB {
		t.Helper()
		db, err := jay.Open(dir, nil)
		if err == nil {
			_, err = db.Put(t.Context(), "orders/1", json.RawMessage(`{"n":`+n+`}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := opened("1")
	l := begin(t, t.Context(), dir, "shell")
	ask := func(statement string) { _, _ = io.WriteString(l.in, statement+"\n") }
	go ask("format json\nget orders/1")
	if got := l.next(); !strings.Contains(got, `"n":1`) {
		t.Errorf("got %s", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = opened("2")
	go ask("get orders/1")
	if got := l.next(); !strings.Contains(got, `"n":2`) {
		t.Errorf("after a new start: got %s", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(l.in, "get orders/1\n") }() // it may end before it has read all
	if code := <-l.ended; code != 1 || !strings.Contains(l.errs.String(), "was not run") || !strings.Contains(l.errs.String(), "another one has it open now") {
		t.Errorf("exit %d: %s", code, l.errs)
	}
}

// Ensure that top shows that no program has the database open, and goes on when one has.
func TestLook_TopReconnects(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	shop(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var l *lines
	for range 2 {
		db, err := jay.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			l = begin(t, ctx, dir, "top", "--json", "--interval", "10ms")
		}
		for !strings.Contains(l.next(), `"up":true`) {
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(l.next(), `"up":false`) {
		}
	}
	cancel()
	for l.out.Scan() {
	}
	if code := <-l.ended; code != 0 || l.errs.Len() > 0 {
		t.Errorf("exit %d: %s", code, l.errs)
	}
}
