package jay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/invariants"
)

// staleRecords makes a database in which older records of documents are seen again, as
// where the table with the newest ones was lost.
func staleRecords(t *testing.T, dir string) (records map[string][]byte) {
	t.Helper()
	ctx := context.Background()
	db := open(t, dir, nil)
	defer func() { must(t, db.Close()) }() // with the damage in it
	p := &planting{t: t, engine: checks.Engine(db), before: make(map[string][]byte)}
	must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"V"}}))
	put := func(id string, v int, opts ...jay.WriteOption) {
		_, err := db.Put(ctx, id, json.RawMessage(fmt.Sprintf(`{"V":%d}`, v)), opts...)
		must(t, err)
	}
	records = make(map[string][]byte)
	keep := func(id string) { records[id] = p.get(format.NewDocumentKey(id)) }
	notes, old := jay.InCollection("Notes"), jay.InCollection("Old")

	put("early", 1, notes) // before there was a rule
	put("early", 2, notes)
	keep("early")
	put("imported", 1, old)
	keep("imported")
	must(t, db.Delete(ctx, "imported"))
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	must(t, second(db.Revisions().Import(ctx, []json.RawMessage{
		json.RawMessage(`{"V":2,"@metadata":{"@id":"imported","@collection":"Notes","@change-vector":"B:900000-kKRSXHCbUUOAD9V3vs1NPA","@last-modified":"2024-01-01T00:00:00Z","@flags":"Revision"}}`),
	})))
	put("early", 3, notes)

	for _, id := range []string{"moved", "gone", "same", "last", "broken"} {
		put(id, 1, old)
		put(id, 2, old)
		keep(id)
	}
	must(t, db.Delete(ctx, "moved"))
	put("moved", 3, notes, jay.WithTTL(1000*time.Hour))
	put("moved", 4, notes)
	must(t, db.Delete(ctx, "gone"))
	put("same", 3, old)
	put("last", 3, old)
	p.remove(format.RevisionKey(nil, "last", 1))
	for v := 3; v < 6; v++ {
		put("broken", v, old)
	}
	newest := format.RevisionKey(nil, "broken", 4)
	p.set(newest, append(p.get(newest), '}'))

	put("file", 1, notes)
	keep("file")
	must(t, second(db.Attachments("file").Put(ctx, "f", strings.NewReader("text"))))
	put("file", 3, notes)
	for id, record := range records {
		p.set(format.NewDocumentKey(id), record)
	}
	return records
}

// Ensure that a repair takes the newest version of a document that is left, also where its
// record is an older one, and lists the document once.
func TestRepair_NewestVersion(t *testing.T) {
	if invariants.Enabled {
		t.Skip("a build with invariants stops where it meets damage")
	}
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "old")
	into := filepath.Join(t.TempDir(), "new")
	records := staleRecords(t, dir)
	r, err := jay.Repair(ctx, dir, into, nil, nil)
	must(t, err)
	if r.After.Found+r.After.Warned > 0 || r.Indexes != 1 {
		t.Errorf("after: %+v", r.After)
	}
	listed := make(map[string]string)
	for _, l := range r.Lost {
		if l.What == "document" {
			listed[l.ID] += l.Why
		}
	}
	db := open(t, into, nil)
	defer closeDB(t, db)
	for _, want := range []struct {
		id         string
		body       string // "" for none
		collection string
		revisions  string // the bodies of all, from the newest on
		why        string
	}{
		{"early", `{"V":2}`, "Notes", `{"V":2}`, "its newest versions are lost; the version of etag 2 is kept"},
		{"imported", `{"V":2}`, "Notes", `{"V":2}{"V":2}`, "its newest versions are lost; the imported version B:900000-kKRSXHCbUUOAD9V3vs1NPA is kept; its record is an older version, of etag 3, and is left out"},
		{"moved", `{"V":3}`, "Notes", `{"V":3}{}{"V":2}{"V":1}`, "its newest versions are lost; the version of etag 900013 is kept; its record is an older version, of etag 900003, and is left out"},
		{"gone", "", "", `{}{"V":2}{"V":1}`, "it was deleted with etag 900015; its record is an older version, of etag 900005, and is left out"},
		{"same", `{"V":2}`, "Old", `{"V":2}{"V":1}`, "its newest versions are lost; the version of etag 900007 is kept"},
		{"last", `{"V":2}`, "Old", `{"V":2}`, "its newest versions are lost; the version of etag 900009 is kept"},
		{"broken", `{"V":3}`, "Old", `{"V":3}{"V":2}{"V":1}`, "its newest versions are lost; the version of etag 900018 is kept; its record is an older version, of etag 900011, and is left out"},
		{"file", `{"V":1}`, "Notes", `{"V":1}{"V":1}`, "its newest versions are lost; the version of etag 900022 is kept; its record is an older version, of etag 900021, and is left out"},
	} {
		if listed[want.id] != want.why {
			t.Errorf("%s: listed with %q, want %q", want.id, listed[want.id], want.why)
		}
		delete(listed, want.id)
		doc, err := db.Get(ctx, want.id)
		if there := err == nil; there != (want.body != "") || there && (string(doc.Body()) != want.body || doc.Collection() != want.collection) {
			t.Errorf("%s: %v, %v", want.id, doc, err)
		}
		got := ""
		for rev, err := range db.Revisions().List(ctx, want.id, jay.RevisionPage{}) {
			must(t, err)
			got += string(rev.Body())
		}
		if got != want.revisions {
			t.Errorf("%s: revisions %s, want %s", want.id, got, want.revisions)
		}
	}
	if len(listed) > 0 {
		t.Errorf("listed as well: %v", listed)
	}

	due, err := db.Get(ctx, "moved")
	must(t, err)
	if text, err := due.MarshalJSON(); err != nil || !strings.Contains(string(text), `"@expires"`) {
		t.Error("the version that expires does so no longer")
	}
	if _, err := db.Revisions().Get(ctx, "imported", "B:900000-kKRSXHCbUUOAD9V3vs1NPA"); err != nil {
		t.Errorf("by the change vector that it had: %v", err)
	}
	reader, err := db.Attachments("file").Get(ctx, "f")
	must(t, err)
	text, err := io.ReadAll(reader)
	must(t, err)
	must(t, reader.Close())
	if string(text) != "text" {
		t.Errorf("the attachment is %q", text)
	}

	for id := range records {
		in := "Notes"
		if doc, err := db.Get(ctx, id); err == nil {
			in = doc.Collection()
		}
		must(t, second(db.Put(ctx, id, json.RawMessage(`{"V":9}`), jay.InCollection(in))))
	}
	after, err := db.Verify(ctx, nil)
	must(t, err)
	if after.Found > 0 {
		t.Errorf("after another write of each: %v", after.Damages)
	}
}
