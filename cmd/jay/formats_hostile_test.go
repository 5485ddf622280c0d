package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/transfer"
	"github.com/jaydb/jay/transfer/smuggler"
)

// dumpOfAttachments returns a dump of n documents, half of which have attachments that
// they share.
func dumpOfAttachments(t *testing.T, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := transfer.NewDumpWriter(&out, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Section(transfer.DumpDocuments); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		metadata := fmt.Sprintf(`"@id":"things/%04d","@collection":"Things"`, i)
		if i%2 == 0 {
			hash := fmt.Sprintf("h%d=", i/4) // of two documents
			content := strings.Repeat(fmt.Sprintf("]}%d", i/4), 100)
			if i%4 == 0 {
				if err := w.Attachment(hash, "t", int64(len(content)), strings.NewReader(content)); err != nil {
					t.Fatal(err)
				}
			}
			metadata += fmt.Sprintf(`,"@attachments":[{"Name":"photo","Hash":%q,"ContentType":"","Size":%d}]`, hash, len(content))
		}
		if err := w.Item(fmt.Appendf(nil, `{"n":%d,"@metadata":{%s}}`, i, metadata)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Ensure that an import whose contents cannot wait in the directory for temporary files names
// it, and says how another one is chosen.
func TestFormats_NoPlaceForContents(t *testing.T) {
	db := filepath.Join(t.TempDir(), "x.db")
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("TMPDIR", none)
	t.Setenv("TMP", none) // Windows
	got := runJay(t.Context(), bytes.NewReader(dumpOfAttachments(t, 4)), "--db", db, "import", "--format", "ravendbdump")
	if got.code != 1 || !strings.Contains(got.stderr, none) || !strings.Contains(got.stderr, "set TMPDIR to a directory with room") {
		t.Errorf("got %+v", got)
	}
}

// Ensure that an import with attachments that is stopped anywhere goes on, and leaves
// neither a document nor an attachment out.
func TestFormats_ResumeWithAttachments(t *testing.T) {
	sample.OneGoroutine(t)
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	dump := dumpOfAttachments(t, 60)
	inFresh(t, string(dump), "--db", whole, "import", "--format", "ravendbdump")
	lines := inFresh(t, "", "--db", whole, "export", "-").stdout
	for format, input := range map[string]string{"ravendbdump": string(dump), "ndjson": lines} {
		for i := range 4 {
			db := filepath.Join(dir, format+fmt.Sprint(i))
			args := []string{"--db", db, "import", "--format", format, "--resume", "x"}
			for _, cut := range []int{len(input) * (i + 1) / 9, len(input) * (i + 5) / 9} {
				stdin := io.MultiReader(strings.NewReader(input[:cut]), iotest.ErrReader(io.ErrClosedPipe))
				if got := runJay(t.Context(), stdin, args...); got.code != 1 {
					t.Fatalf("%s cut at %d: %+v", format, cut, got)
				}
			}
			inFresh(t, input, args...)
			inFresh(t, "", "--db", db, "delete", "Raven/Jay/Import/x")
			if n, _ := sameDocuments(t, whole, db); n != 60 {
				t.Errorf("%s: got %d documents", format, n)
			}
		}
	}
}

// checked is a context that ends after it was asked a number of times.
type checked struct {
	context.Context
	left atomic.Int64
}

// Err returns context.Canceled from then on.
func (c *checked) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Ensure that an import that ends wherever it looks at its context leaves nothing out when
// it goes on: not the attachments of a document that is stored, either.
func TestFormats_StoppedAtEveryCheck(t *testing.T) {
	sample.OneGoroutine(t)
	dump := dumpOfAttachments(t, 6)
	stops := 0
	for n := int64(0); ; n++ {
		db, err := jay.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		load := func(ctx context.Context) error {
			im := smuggler.NewImporter(db, smuggler.ImportOptions{MaxBytes: 1 << 20, MaxDepth: 100, Resume: "x"})
			if _, err := im.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			return im.Load(ctx, smuggler.RavenDBDump, smuggler.Input{Reader: bytes.NewReader(dump)})
		}
		ctx := &checked{Context: context.WithoutCancel(t.Context())}
		ctx.left.Store(n)
		first := load(ctx)
		if first != nil {
			stops++
			if !errors.Is(first, context.Canceled) {
				t.Fatalf("stopped at %d: got %v", n, first)
			}
			if err := load(t.Context()); err != nil {
				t.Fatalf("stopped at %d: %v", n, err)
			}
		}
		for i := range 6 {
			doc, err := db.Get(t.Context(), fmt.Sprintf("things/%04d", i))
			if err != nil || len(doc.Metadata().Attachments) != (i+1)%2 {
				t.Fatalf("stopped at %d: document %d: %v, %v", n, i, doc, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			break
		}
	}
	if stops < 10 {
		t.Errorf("stopped %d times, want many", stops)
	}
}

// Ensure that a resumed import adds to the rejects what it rejects, and nothing of what
// was done before.
func TestFormats_ResumeWithRejects(t *testing.T) {
	dir := t.TempDir()
	var input strings.Builder
	for i := range 3000 {
		if i == 10 || i == 2990 {
			fmt.Fprintf(&input, "{\"bad\":%d,}\n", i)
		}
		fmt.Fprintf(&input, "{\"n\":%d}\n", i)
	}
	rejects := filepath.Join(dir, "rejects")
	args := []string{"--db", filepath.Join(dir, "db"), "import", "--collection", "Things", "--resume", "x", "--rejects", rejects}
	half := io.MultiReader(strings.NewReader(input.String()[:input.Len()/2]), iotest.ErrReader(io.ErrClosedPipe))
	if got := runJay(t.Context(), half, args...); got.code != 1 {
		t.Fatalf("%+v", got)
	}
	inFresh(t, input.String(), args...)
	text, err := os.ReadFile(rejects)
	if want := "{\"bad\":10,}\n{\"bad\":2990,}\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
	checkEachOnce(t, filepath.Join(dir, "db"), 3000)
}

// Ensure that hostile input of every format is refused with its place, and stores nothing.
func TestFormats_Hostile(t *testing.T) {
	sample.OneGoroutine(t)
	dir := t.TempDir()
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	for range 64 {
		if _, err := zip.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	quoted := `"` + strings.ReplaceAll(deep, `"`, `""`) + `"`
	for _, c := range []struct {
		name, input, want string
		args              []string
	}{
		{"bomb.csv", "a\n" + bomb.String(), "", nil},
		{"bomb.gz", bomb.String(), "at most 1,000,000 bytes", []string{"--max-input-bytes", "1000000"}},
		{"bomb.ravendbdump", bomb.String(), "it ends before", nil},
		{"deep.csv", "@id,a:json\nx," + quoted + "\n", "(line 2): invalid document: at most 256 levels", nil},
		{"deep.ejson", deep, "at most 256 levels", nil},
		{"deep.json", deep, "at most 256 levels", nil},
		{"deep.ravendbdump", `{"Docs":[` + deep + `]}`, "at most 256 levels", nil},
		{"utf8.csv", "@id,a\nx,\xff\n", "must be valid UTF-8", nil},
		{"utf8.ejson", "{\"_id\":\"x\",\"a\":\"\xff\"}", "must be valid UTF-8", nil},
		{"keys.ejson", `{"_id":"x","a":1,"a":2}`, "keys must not repeat", nil},
		{"metadata.csv", "@id,@metadata:json\nx,\"{\"\"@id\"\":\"\"y\"\"}\"\n", "keys must not repeat", nil},
		{"large.ejson", `{"_id":"x","a":"` + strings.Repeat("x", 2000) + `"}`, "at most 1000 bytes", []string{"--max-document-bytes", "1000"}},
		{"large.ravendbdump", `{"Docs":[{"a":"` + strings.Repeat("x", 2000) + `"}]}`, "at most 1000 bytes", []string{"--max-document-bytes", "1000"}},
		{"large.csv", "a\n" + strings.Repeat("x", 2000) + "\n", "at most 1000 bytes", []string{"--max-document-bytes", "1000"}},
		{"base64.ndjson", "{\"@metadata\":{\"@id\":\"x\"}}\n" + `{"@metadata":{"@jay":"attachment","@collection":{"needs":"a newer version of jay"}},"version":1,"id":"x","name":"n","type":"","size":3,"hash":""}` + "\n" + `{"@metadata":{"@jay":"attachment-data","@collection":{"needs":"a newer version of jay"}},"data":"%%%"}`, "illegal base64", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, c.name)
			if err := os.WriteFile(file, []byte(c.input), 0o666); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--db", filepath.Join(dir, c.name+".db")}, c.args...)
			if len(c.args) > 0 && c.args[0] == "--max-input-bytes" {
				args = append(args[:2], append([]string{"import"}, c.args...)...)
			} else {
				args = append(args, "import")
			}
			got := runJay(t.Context(), nil, append(args, "--collection", "X", file)...)
			if c.want == "" {
				if got.code > 1 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if got.code != 1 || !strings.Contains(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("got %.500v, want %q", got, c.want)
			}
			stored := " 0 documents are stored\n"
			if c.name == "base64.ndjson" {
				stored = " 1 document is stored\n"
			}
			if !strings.HasSuffix(got.stderr, stored) {
				t.Errorf("got %.500q, want%s", got.stderr, stored)
			}
		})
	}
}

// Ensure that a table of SQLite's most columns is imported, with every value as it is
// stored, whatever type its column declares.
func TestFormats_SQLiteManyColumns(t *testing.T) {
	sample.OneGoroutine(t)
	dir := t.TempDir()
	file, at := filepath.Join(dir, "wide.sqlite"), filepath.Join(dir, "wide.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	columns, values := []string{"id"}, []string{"'x'"}
	for i := 1; i < 2000; i++ {
		columns = append(columns, fmt.Sprintf("c%d %s", i, []string{"TIMESTAMP", "BOOLEAN", "DATE", "BLOB", "REAL"}[i%5]))
		values = append(values, []string{"1", "2.5", "'2026-01-02'", "x'00ff'", "NULL"}[i/5%5])
	}
	for _, statement := range []string{"CREATE TABLE t (" + strings.Join(columns, ",") + ")", "INSERT INTO t VALUES (" + strings.Join(values, ",") + ")"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := runJay(t.Context(), nil, "--db", at, "import", "--collection", "T", "--id-column", "id", file); got.code != 0 {
		t.Fatalf("got %.500v", got)
	}
	got := runJay(t.Context(), nil, "--db", at, "get", "x")
	var document map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil {
		t.Fatalf("%v: %.500v", err, got)
	}
	for i := 1; i < 2000; i++ {
		want := []any{1.0, 2.5, "2026-01-02", "AP8=", nil}[i/5%5]
		if name := fmt.Sprintf("c%d", i); document[name] != want {
			t.Errorf("%s is %v, want %v", name, document[name], want)
		}
	}
}

// Ensure that values of a SQLite database that JSON or Jay does not take are refused.
func TestFormats_HostileSQLite(t *testing.T) {
	sample.OneGoroutine(t)
	dir := t.TempDir()
	for name, c := range map[string]struct{ statements, want string }{
		"text":  {`CREATE TABLE t (id, a); INSERT INTO t VALUES ('x', CAST(x'ff' AS TEXT))`, "a text must be UTF-8"},
		"inf":   {`CREATE TABLE t (id, a); INSERT INTO t VALUES ('x', 9e999)`, "one that JSON has"},
		"id":    {`CREATE TABLE t (id, a); INSERT INTO t VALUES (1.5, 1)`, "an ID is a text or a whole number"},
		"deep":  {`CREATE TABLE t (id, a JSON); INSERT INTO t VALUES ('x', '` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `')`, "at most 256 levels"},
		"json":  {`CREATE TABLE t (id, a JSON); INSERT INTO t VALUES ('x', '{')`, "must hold JSON"},
		"large": {`CREATE TABLE t (id, a); INSERT INTO t VALUES ('x', zeroblob(40000000))`, "SQLite: "},
		"bomb":  {`CREATE TABLE t (id, a AS (zeroblob(900000000))); INSERT INTO t (id) VALUES ('x')`, "SQLite: "},
		"utf16": {`PRAGMA encoding = 'UTF-16'; CREATE TABLE t (id, a); INSERT INTO t VALUES ('x', 'é')`, "must be in UTF-8, they are in UTF-16"},
		"none":  {`SELECT 1; CREATE TABLE t (id, a); DROP TABLE t`, "it has none"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name+".sqlite")
			db, err := sql.Open("sqlite", file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(c.statements); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			got := runJay(t.Context(), nil, "--db", filepath.Join(dir, name+".db"), "import", "--collection", "T", "--id-column", "id", file)
			if got.code == 0 || !strings.Contains(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("got %.500v, want %q", got, c.want)
			}
		})
	}
}
