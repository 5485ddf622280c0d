package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// importCases are the inputs that both importers must store alike: the command's, and the
// server's, which the studio uses. The parameters are those of the server; the command has
// a flag for each.
var importCases = []struct {
	name   string
	format string
	params string
	input  string
}{
	{"prefix without a collection", "ndjson", "", `{"n":1,"@metadata":{"@id":"users/ann"}}`},
	{"prefix without a collection, with another asked for", "ndjson", "collection=Oaks", `{"n":1,"@metadata":{"@id":"users/ann"}}`},
	{"collection in the metadata", "ndjson", "collection=Oaks", `{"n":1,"@metadata":{"@id":"users/ann","@collection":"Users"}}`},
	{"collection by its older name", "ndjson", "", `{"n":1,"@metadata":{"@id":"users/ann","Raven-Entity-Name":"People"}}`},
	{"empty by name", "ndjson", "", `{"n":1,"@metadata":{"@id":"users/ann","@collection":"@empty"}}`},
	{"no ID, a collection asked for", "ndjson", "collection=Oaks", `{"n":1}` + "\n" + `{"n":2,"@metadata":{"@collection":"Users"}}`},
	{"no ID, an identity asked for", "ndjson", "id=users|", `{"n":1}` + "\n" + `{"n":2,"@metadata":{"@collection":"Oaks"}}`},
	{"an ID asked for that has a prefix", "ndjson", "id=users/", `{"n":1}`},
	{"custom metadata", "ndjson", "", `{"n":1.50,"@metadata":{"@id":"users/ann","Colour":"red","n":1.10}}`},
	{"an array", "json", "", `[{"n":1,"@metadata":{"@id":"users/ann"}},{"n":2,"@metadata":{"@id":"users/bob","@collection":"Users"}}]`},
	{"cells without a collection", "csv", "", "@id,n:number\nusers/ann,1\n"},
	{"cells with an empty collection", "csv", "collection=Oaks", "@id,@collection,n:number\nusers/ann,,1\nusers/bob,Users,2\n"},
	{"cells with a collection asked for", "csv", "collection=Oaks", "@id,n:number\nusers/ann,1\n"},
	{"a column of IDs", "csv", "collection=Oaks&idColumn=key&idPrefix=oaks/&infer=true&delimiter=;", "key;n;t\n1;1.50;x\n2;2;y\n"},
	{"a mixed column", "csv", "collection=P&idColumn=id&infer=true&delimiter=;", "id;plz;n;b;q;z\n1;00123;1;true;\"1\";null\n2;12345;null;;2;null\n3;;2.50;false;3;\n"},
	{"no column of IDs", "csv", "collection=Oaks", "n:number\n1\n"},
	{"extended", "extjson", "collection=Oaks&idPrefix=oaks/", `{"_id":3,"n":{"$numberDecimal":"19.50"}}`},
	{"extended without a collection", "extjson", "idPrefix=users/", `{"_id":"ann","n":1}`},
	{"a dump", "ravendbdump", "", `{"BuildVersion":54000,"Docs":[{"n":1,"@metadata":{"@id":"users/ann"}},{"n":2,"@metadata":{"@id":"users/bob","@collection":"People"}}],"Identities":[{"Key":"users|","Value":"7"}]}`},
}

// commandFlags are the flags of jay import, by the parameters of the server.
var commandFlags = map[string]string{"collection": "--collection", "id": "--id", "idPrefix": "--id-prefix", "idColumn": "--id-column", "delimiter": "--delimiter", "infer": "--infer"}

// prefixDatabase returns the directory of a new database as the command makes it, in which
// prefixes of IDs suggest collections.
func prefixDatabase(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "acorns")
	db, err := jay.Open(dir, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// jayCommand runs the command, and returns what it prints.
func jayCommand(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(context.Background(), args, bytes.NewReader(stdin), &out, &errs, func(string) string { return "" }); got != 0 {
		t.Fatalf("jay %s: exit %d: %s", strings.Join(args, " "), got, &errs)
	}
	return out.Bytes()
}

// served runs fn with the address of a server of the directory, as jay studio has one.
func served(t *testing.T, dir string, fn func(address string)) {
	t.Helper()
	s, err := server.Open(server.Options{Data: t.TempDir(), Directories: map[string]string{"acorns": dir}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	fn(h.URL + "/jay/v1/databases/acorns")
	h.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// asked sends a request that must succeed, and returns the reply.
func asked(t *testing.T, method, address string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(reply.Body); err != nil {
		t.Fatal(err)
	}
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, address, &text)
	}
	return text.Bytes()
}

// importBoth imports an input with the command and with the server, each into a new
// database, and returns what they have then.
func importBoth(t *testing.T, format, params string, input []byte) (command, server string) {
	t.Helper()
	values, err := url.ParseQuery(params)
	if err != nil {
		t.Fatal(err)
	}
	dir := prefixDatabase(t)
	args := []string{"--db", dir, "import", "--format", format}
	for name := range values {
		if name == "infer" {
			args = append(args, commandFlags[name])
			continue
		}
		args = append(args, commandFlags[name]+"="+values.Get(name))
	}
	jayCommand(t, input, args...)
	command = contents(t, dir)

	dir = prefixDatabase(t)
	values.Set("format", format)
	served(t, dir, func(address string) { asked(t, "POST", address+"/import?"+values.Encode(), input) })
	return command, contents(t, dir)
}

// contents lists what an import can have brought into a database.
func contents(t *testing.T, dir string) string {
	t.Helper()
	db, err := jay.Open(dir, &jay.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all strings.Builder
	for doc, err := range db.Documents(t.Context(), jay.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		m := doc.Metadata()
		fmt.Fprintf(&all, "%s in %s: %s %s\n", m.ID, m.Collection, doc.Body(), m.Custom)
		for _, a := range m.Attachments {
			r, err := db.Attachments(m.ID).Get(t.Context(), a.Name)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "  with %s of %s: %d bytes, %x\n", a.Name, a.ContentType, len(content), sha256.Sum256(content))
		}
	}
	for rev, err := range db.Revisions().All(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "revision %s of %s: %s, deletion %t, %s\n", rev.ChangeVector(), rev.ID(), rev.Body(), rev.Deletion(), rev.LastModified())
	}
	configuration, err := json.Marshal(db.Revisions().Configuration())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&all, "configuration %s\n", configuration)
	subs, err := db.Subscriptions().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range subs {
		fmt.Fprintf(&all, "subscription %s: %s\n", sub.Name, sub.Query)
	}
	values, err := db.CompareExchange().List(t.Context(), "", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		fmt.Fprintf(&all, "value %s: %s %s\n", v.Key, v.Value, v.Metadata)
	}
	counters, err := db.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&all, "identities %v\n", counters.Identities)
	return all.String()
}

// Ensure that the server imports what the command imports, in each format: the same
// documents, under the same IDs, in the same collections.
func TestImport_ServerAndCommandDiffer(t *testing.T) {
	sample.OneGoroutine(t)
	for _, c := range importCases {
		t.Run(c.format+", "+c.name, func(t *testing.T) {
			command, server := importBoth(t, c.format, strings.ReplaceAll(c.params, ";", "%3B"), []byte(c.input))
			if command != server {
				t.Errorf("the command stores\n%s\nthe server\n%s", command, server)
			}
		})
	}
}

// Ensure that an export is imported as it was, whoever writes it and whoever reads it: a
// document without a collection stays without, although its ID has a prefix.
func TestImport_ExportChangesCollections(t *testing.T) {
	sample.OneGoroutine(t)
	dir := prefixDatabase(t)
	jayCommand(t, []byte(`{"n":1,"@metadata":{"@id":"users/ann","@collection":"@empty"}}
{"n":2,"@metadata":{"@id":"users/bob","@collection":"Users","Colour":"red"}}
{"n":3,"@metadata":{"@id":"oaks/1","@collection":"Trees"}}
`), "--db", dir, "import")
	want := contents(t, dir)
	if !strings.Contains(want, "users/ann in @empty") {
		t.Fatalf("the database has %s", want)
	}
	for _, format := range []string{"ndjson", "json", "csv", "extjson", "ravendbdump"} {
		byCommand := jayCommand(t, nil, "--db", dir, "export", "--format", format)
		var byServer []byte
		served(t, dir, func(address string) { byServer = asked(t, "GET", address+"/export?format="+format, nil) })
		for writer, text := range map[string][]byte{"the command": byCommand, "the server": byServer} {
			command, server := importBoth(t, format, "", text)
			for reader, got := range map[string]string{"the command": command, "the server": server} {
				if got != want {
					t.Errorf("%s: %s writes, %s reads\n%s\nwant\n%s", format, writer, reader, got, want)
				}
			}
		}
	}
}

// fullDatabase returns the directory of a database that has one of everything that an export
// carries.
func fullDatabase(t *testing.T) (dir string) {
	t.Helper()
	dir = prefixDatabase(t)
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Users": {}, "@empty": {}}}))
	for i, id := range []string{"users/ann", "users/bob", "users/cyd", "users/ann", "users/bob"} {
		_, err := db.Put(ctx, id, fmt.Appendf(nil, `{"n":%d}`, i), jay.InCollection([]string{"@empty", "Users", "Users"}[i%3]))
		must(err)
	}
	must(db.Delete(ctx, "users/cyd"))
	for range 2 {
		_, err = db.Put(ctx, "logs|", []byte(`{}`), jay.InCollection("Logs"))
		must(err)
	}
	// An attachment changes its document, which would be a version more in the copy.
	for i, id := range []string{"logs/1", "logs/2", "logs/2"} {
		_, err := db.Attachments(id).Put(ctx, fmt.Sprintf("photo%d", i), strings.NewReader(strings.Repeat("]}", i*50_000)), jay.ContentType("image/png"))
		must(err)
	}
	_, err = db.CompareExchange().Put(ctx, "names/ann", []byte(`"users/ann"`), 0)
	must(err)
	must(db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "all", Query: "from Users"}))
	must(db.Close())
	return dir
}

// Ensure that an export and an import by the server lose nothing that the command's keep:
// documents, attachments, revisions, counters, values and subscriptions; and that both write
// the same bytes.
func TestImport_ServerLosesNothing(t *testing.T) {
	sample.OneGoroutine(t)
	dir := fullDatabase(t)
	want := contents(t, dir)
	for _, part := range []string{"with photo2 of image/png", "revision ", "deletion true", "subscription all", "value names/ann", "logs|:2"} {
		if !strings.Contains(want, part) {
			t.Fatalf("the database has no %q:\n%s", part, want)
		}
	}
	for _, format := range []string{"ndjson", "json", "ravendbdump"} {
		byCommand := jayCommand(t, nil, "--db", dir, "export", "--format", format)
		var byServer []byte
		served(t, dir, func(address string) { byServer = asked(t, "GET", address+"/export?format="+format, nil) })
		if !bytes.Equal(byCommand, byServer) {
			t.Errorf("%s: the command writes\n%.2000s\nthe server\n%.2000s", format, byCommand, byServer)
		}
		command, server := importBoth(t, format, "", byServer)
		if command != server {
			t.Errorf("%s: the command stores\n%.2000s\nthe server\n%.2000s", format, command, server)
		}
		if format != "ravendbdump" && server != want { // a dump has no configuration and no subscriptions
			t.Errorf("%s: got\n%.3000s\nwant\n%.3000s", format, server, want)
		}
		for line := range strings.Lines(want) {
			if known := strings.HasPrefix(line, "configuration") || strings.HasPrefix(line, "subscription"); !known && !strings.Contains(server, line) {
				t.Errorf("%s: lost %.200s", format, line)
			}
		}
	}
}
