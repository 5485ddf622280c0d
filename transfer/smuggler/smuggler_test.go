package smuggler_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/transfer/smuggler"
)

// open returns an empty database.
func open(t *testing.T) *jay.DB {
	t.Helper()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// meanwhile calls fn at its first write.
type meanwhile struct {
	bytes.Buffer
	fn func()
}

// Write implements io.Writer.
func (m *meanwhile) Write(p []byte) (int, error) {
	if fn := m.fn; fn != nil {
		m.fn = nil
		fn()
	}
	return m.Buffer.Write(p)
}

// Ensure that an export has the documents of one moment and the revisions before them, though
// documents are written and deleted meanwhile: no version twice, and none that is newer.
func TestExporter_OneMoment(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	put := func(id string, n int) {
		t.Helper()
		if _, err := db.Put(ctx, id, fmt.Appendf(nil, `{"n":%d}`, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		put("changed", n)
		put("deleted", n)
	}
	out := &meanwhile{fn: func() {
		put("changed", 3)
		put("changed", 4)
		if err := db.Delete(ctx, "deleted"); err != nil {
			t.Fatal(err)
		}
	}}
	e := smuggler.NewExporter(db, smuggler.ExportOptions{Counters: true})
	if err := e.Write(ctx, smuggler.NDJSON, out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		kind, body, found := "document", "", false
		if body, _, found = strings.Cut(line, `,"@metadata":`); !found {
			continue // counters and the configuration
		}
		if strings.Contains(line, `"@metadata":"jay revision 1`) {
			kind = "revision"
		}
		id := "changed"
		if strings.Contains(line, "deleted") {
			id = "deleted"
		}
		got = append(got, kind+" of "+id+" "+body+"}")
	}
	want := `revision of changed {"n":1}, revision of deleted {"n":1}, document of changed {"n":2}, document of deleted {"n":2}`
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got %s, want %s\n%s", text, want, out)
	}
	if p := e.Progress(); p.Documents != 2 || p.Revisions != 2 || p.Bytes != int64(out.Len()) {
		t.Errorf("got %+v", p)
	}
}

// Ensure that an export has no revisions of a document that was first written while it was
// made, which a copy would list as deleted, and has those of a document that was deleted
// before.
func TestExporter_LaterDocuments(t *testing.T) {
	t.Parallel()
	for _, f := range []*smuggler.Format{smuggler.NDJSON, smuggler.RavenDBDump} {
		db, to := open(t), open(t)
		if err := db.Revisions().Configure(t.Context(), jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}); err != nil {
			t.Fatal(err)
		}
		put(t, db, "deleted", `{"n":1}`)
		if err := db.Delete(t.Context(), "deleted"); err != nil {
			t.Fatal(err)
		}
		out := &meanwhile{fn: func() {
			for _, body := range []string{`{"n":2}`, `{"n":3}`} {
				put(t, db, "later", body)
				put(t, db, "deleted", body)
			}
		}}
		e := smuggler.NewExporter(db, smuggler.ExportOptions{Counters: true})
		if err := e.Write(t.Context(), f, out); err != nil {
			t.Fatal(err)
		}
		if p := e.Progress(); p.Revisions != 2 || p.Documents != 0 {
			t.Errorf("%s: got %+v, want two revisions", f.Name, p)
		}
		if _, err := load(t, to, f, out.Bytes(), smuggler.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		var deleted []string
		for rev, err := range to.Revisions().Deleted(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			deleted = append(deleted, rev.ID())
		}
		if !slices.Equal(deleted, []string{"deleted"}) {
			t.Errorf("%s: got the deleted documents %v", f.Name, deleted)
		}
	}
}

// Ensure that names find their formats, and that others are refused with all that there are.
func TestFormats(t *testing.T) {
	t.Parallel()
	all := smuggler.All()
	for name, want := range map[string]string{"": "ndjson", "x": "ndjson", "x.gz": "ndjson", "a.JSON.gz": "json", "a.tsv": "csv", "a.csv.zst": "csv", "a.ejson": "extjson", "a.ravendbdump": "ravendbdump"} {
		if got := all.OfFile(name).Name; got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
	if f, err := all.Named(""); err != nil || f != smuggler.NDJSON {
		t.Errorf("got %v, %v", f, err)
	}
	_, err := all.Named("sqlite")
	if !errors.Is(err, smuggler.ErrFormat) || !strings.Contains(err.Error(), "ndjson, json, csv, extjson, ravendbdump") {
		t.Errorf("got %v", err)
	}
	for asked, want := range map[string]byte{"": ',', ";": ';', "tab": '\t', `\t`: '\t', "\t": '\t'} {
		if got, err := smuggler.Comma(asked, "x.csv"); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", asked, got, err, want)
		}
	}
	for _, asked := range []string{`"`, "ab", "é", "\n"} {
		if _, err := smuggler.Comma(asked, ""); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%q: got %v", asked, err)
		}
	}
	if got, err := smuggler.Comma("", "x.TSV.gz"); err != nil || got != '\t' {
		t.Errorf("got %q, %v", got, err)
	}
}

// Ensure that what cannot be done is refused before anything is stored: a dump that is to be
// read twice and cannot be, a stream to a file, and a name that a checkpoint may not have.
func TestUsage(t *testing.T) {
	db := open(t)
	im := smuggler.NewImporter(db, smuggler.ImportOptions{Resume: "a|b"})
	once := smuggler.NewImporter(db, smuggler.ImportOptions{Revisions: true})
	dump := smuggler.Input{Name: "in", Reader: strings.NewReader(`{"Docs":[{"@metadata":{"@id":"x"}}]}`)}
	if err := once.Load(t.Context(), smuggler.RavenDBDump, dump); !errors.Is(err, smuggler.ErrReadOnce) {
		t.Errorf("got %v", err)
	}
	if _, err := im.Begin(t.Context()); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v", err)
	}
	if err := im.Load(t.Context(), smuggler.NDJSON, dump); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v", err)
	}
	e := smuggler.NewExporter(db, smuggler.ExportOptions{})
	if err := e.WriteFile(t.Context(), smuggler.CSV, "none"); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v", err)
	}
	if err := e.Write(t.Context(), &smuggler.Format{Name: "file"}, io.Discard); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v", err)
	}
	if found, err := db.Exists(t.Context(), "x"); found || err != nil {
		t.Errorf("got %t, %v", found, err)
	}
}

// Ensure that a record that costs more than the caller pays for ends the import or the export
// with the caller's error.
func TestRoom(t *testing.T) {
	db := open(t)
	refused := errors.New("no room")
	most := int64(0)
	room := func(n int64) error {
		if most = max(most, n); n > 6<<20 {
			return refused
		}
		return nil
	}
	load := func(size int) error {
		im := smuggler.NewImporter(db, smuggler.ImportOptions{MaxBytes: 100 << 20, MaxDepth: 10, Room: room})
		text := fmt.Sprintf(`{"t":"%s","@metadata":{"@id":"x"}}`, strings.Repeat("x", size))
		return im.Load(t.Context(), smuggler.NDJSON, smuggler.Input{Name: "in", Reader: strings.NewReader(text)})
	}
	if err := load(1 << 20); err != nil || most < 3<<20 {
		t.Errorf("got %v with %d bytes, want at least three copies", err, most)
	}
	if err := load(8 << 20); !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
	for _, f := range smuggler.All() {
		e := smuggler.NewExporter(db, smuggler.ExportOptions{Room: func(int64) error { return refused }})
		if err := e.Write(t.Context(), f, io.Discard); !errors.Is(err, refused) {
			t.Errorf("%s: got %v, want %v", f.Name, err, refused)
		}
	}
}

// named is a schema.Compiler whose schemas have only the keyword "required".
type named struct{ Required []string }

// Compile implements schema.Compiler.
func (named) Compile(text []byte) (schema.Validator, error) {
	var n named
	return &n, json.Unmarshal(text, &n)
}

// Validate implements schema.Validator.
func (n *named) Validate(body []byte, most int) (all []schema.Violation, count int) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(body, &members)
	for _, name := range n.Required {
		if members[name] == nil {
			all = append(all, schema.Violation{Keyword: "required", Message: "missing " + name})
		}
	}
	return all[:min(len(all), most)], len(all)
}

// refused has the records that were refused, and why.
type refused struct {
	bytes.Buffer
	whys []*smuggler.ImportError
}

// Reject implements smuggler.Rejects.
func (r *refused) Reject(why *smuggler.ImportError) { r.whys = append(r.whys, why) }

// Ensure that an import names the documents that violate the schema of their collection, and stores the others; and that it ends at the first one
// without a place for rejects, and names that.
func TestImporter_Schemas(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const lines = `{"n":1,"@metadata":{"@id":"as/1","@collection":"As"}}` + "\n" + `{"@metadata":{"@id":"as/2","@collection":"As"}}` + "\n" + `{"n":3,"@metadata":{"@id":"as/3","@collection":"As"}}` + "\n"
	for _, skips := range []bool{true, false} {
		db, err := jay.OpenMemory(&jay.Options{Schemas: named{}})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Definitions().Schemas().Set(ctx, schema.Rule{Collection: "As", Mode: schema.Refuse, Schema: []byte(`{"required":["n"]}`)}); err != nil {
			t.Fatal(err)
		}
		var rejects refused
		o := smuggler.ImportOptions{}
		if skips {
			o.Rejects = &rejects
		}
		im := smuggler.NewImporter(db, o)
		err = im.Load(ctx, smuggler.NDJSON, smuggler.Input{Name: "as.ndjson", Reader: strings.NewReader(lines)})
		var why *smuggler.ImportError
		if skips {
			if err != nil || len(rejects.whys) != 1 || !strings.Contains(rejects.String(), "as/2") {
				t.Fatalf("got %v, and the rejects %s", err, rejects.String())
			}
			why = rejects.whys[0]
		} else if !errors.As(err, &why) {
			t.Fatalf("got %v", err)
		}
		var violates *jay.SchemaError
		if !errors.As(why, &violates) || why.Number != 2 || why.Line != 2 || violates.ID != "as/2" || violates.Violations[0].Message != "missing n" {
			t.Errorf("got %v", why)
		}
		if found, err := db.Exists(ctx, "as/3"); found != skips || err != nil {
			t.Errorf("skipping %v: the document after it is there: %v, %v", skips, found, err)
		}
	}
}

// Ensure that a subscription that the database has with another definition is a reject, and
// that what follows it is stored.
func TestImporter_RefusedSubscription(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := open(t), open(t)
	for db, query := range map[*jay.DB]string{from: "from Users", to: "from Orders"} {
		if err := db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: query}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := from.CompareExchange().Put(ctx, "key", 1, 0); err != nil {
		t.Fatal(err)
	}
	var rejects refused
	_, err := load(t, to, smuggler.NDJSON, export(t, from, smuggler.NDJSON), smuggler.ImportOptions{Rejects: &rejects})
	if err != nil || len(rejects.whys) != 1 || !errors.Is(rejects.whys[0], jay.ErrSubscription) {
		t.Errorf("got %v and the rejects %v, want the subscription", err, rejects.whys)
	}
	if _, err := to.CompareExchange().Get(ctx, "key"); err != nil {
		t.Errorf("got %v, want the value that follows", err)
	}
}

// Ensure that an import that is resumed stores no compare-exchange value again, over one that
// a program has stored meanwhile, wherever the earlier run has ended.
func TestImporter_Exchange_Resumed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, next := open(t), open(t)
	put(t, from, "users/1", `{"n":1}`)
	for _, key := range []string{"a", "b"} {
		if _, err := from.CompareExchange().Put(ctx, key, "old", 0); err != nil {
			t.Fatal(err)
		}
	}
	put(t, next, "users/2", `{"n":2}`)
	put(t, next, "users/3", `{"n":3}`)
	for _, f := range []*smuggler.Format{smuggler.NDJSON, smuggler.JSON, smuggler.RavenDBDump} {
		first, second := export(t, from, f), export(t, next, f)
		run := func(to *jay.DB, first, second []byte) error {
			im := smuggler.NewImporter(to, smuggler.ImportOptions{Resume: "r"})
			if _, err := im.Begin(ctx); err != nil {
				t.Fatal(err)
			}
			for _, input := range [][]byte{first, second} {
				if err := im.Load(ctx, f, smuggler.Input{Name: "in", Reader: bytes.NewReader(input)}); err != nil {
					return err
				}
			}
			return im.Finish(ctx)
		}
		for name, cut := range map[string][2]int{
			"behind the first value":    {bytes.LastIndex(first, []byte("old")), len(second)},
			"in the next input":         {len(first), bytes.Index(second, []byte(`{"n":2`)) + 1},
			"behind a document of that": {len(first), bytes.Index(second, []byte(`{"n":3`)) + 1},
		} {
			to := open(t)
			if err := run(to, first[:cut[0]], second[:cut[1]]); err == nil {
				t.Fatal("got no error of an input that is cut off")
			}
			value, err := to.CompareExchange().Get(ctx, "a")
			if err == nil {
				_, err = to.CompareExchange().Put(ctx, "a", "new", value.Index)
			}
			if err != nil {
				t.Fatalf("%s, %s: %v", f.Name, name, err)
			}
			if err := run(to, first, second); err != nil {
				t.Fatalf("%s, %s: %v", f.Name, name, err)
			}
			for key, want := range map[string]string{"a": `"new"`, "b": `"old"`} {
				got, err := to.CompareExchange().Get(ctx, key)
				if err != nil || string(got.Value) != want {
					t.Errorf("%s, %s: got %v, %v for %s, want %s", f.Name, name, got, err, key, want)
				}
			}
		}
	}
}
