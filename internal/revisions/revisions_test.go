package revisions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that the bytes of revisions are those of docs/format.md, which holds this dump:
// a document of before the rule, one of a rule that keeps two, and a deleted one.
func TestRevisions_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	put := func(id, body string) {
		_, err := db.Put(ctx, id, []byte(body), jay.InCollection("Users"))
		jaytest.Must(t, err)
	}
	put("Ann", `{"n":1}`)
	jaytest.Must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{Keep: 2}, Collections: map[string]jay.RevisionRule{"Logs": {Disabled: true}}}))
	put("ann", `{"n":2}`)
	for n := range 3 {
		put("bob", fmt.Sprintf(`{"n":%d}`, 3+n))
	}
	jaytest.Must(t, db.Delete(ctx, "bob"))
	_, err := db.Revisions().Import(ctx, []json.RawMessage{[]byte(`{"n":6,"@metadata":{"@collection":"Users","@id":"cyd","@flags":"Revision","@change-vector":"B:2-old","@last-modified":"2026-11-21T12:00:00.0000000Z"}}`)})
	jaytest.Must(t, err)

	jaytest.InFormat(t, jaytest.KeysBetween(t, db, format.SpaceDocument, format.SpaceDocument)+
		jaytest.KeysBetween(t, db, format.SpaceCounts, format.SpaceCounts)+
		jaytest.Keys(t, db, []byte("mrev"), []byte("ms"))+
		jaytest.KeysBetween(t, db, format.SpaceRevisions, format.SpaceRevisions))
}

// Ensure that the records of revisions survive their encoding, and that damaged ones
// are refused and do not panic.
func TestRevisions_Records(t *testing.T) {
	h := format.History{First: 300, Last: 1 << 40}
	record := h.Append(nil)
	if got, err := format.DecodeHistory(record); got != h || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for n := range record {
		if _, err := format.DecodeHistory(record[:n]); err == nil {
			t.Errorf("the first %d bytes are taken for a history", n)
		}
	}
	if _, err := format.DecodeHistory(append(record, 0)); err == nil {
		t.Error("a history with more behind it is accepted")
	}
	value := append(format.RevisionHead{Deletion: true, Foreign: []byte("B:2-old")}.Append(nil), "rest"...)
	if head, rest, err := format.SplitRevision(value); !head.Deletion || string(head.Foreign) != "B:2-old" || string(rest) != "rest" || err != nil {
		t.Errorf("got %v, %s, %v", head, rest, err)
	}
	for n := range 9 {
		if _, _, err := format.SplitRevision(value[:n]); err == nil {
			t.Errorf("the first %d bytes are taken for a revision", n)
		}
	}
	if _, _, err := format.SplitRevision([]byte{4, 1}); err == nil {
		t.Error("an unknown flag is accepted")
	}
	for _, number := range []uint64{0, 1, 256, 1 << 60} {
		key := format.RevisionKey(nil, "users/1", number)
		if number == 0 {
			key = format.HistoryKey(nil, "users/1")
		}
		if id, got, err := format.SplitRevisionKey(key); string(id) != "users/1" || got != number || err != nil {
			t.Errorf("%x: %s, %d, %v", key, id, got, err)
		}
		for n := range key {
			if n != 9 { // the key of the history
				if id, _, err := format.SplitRevisionKey(key[:n]); err == nil {
					t.Errorf("%x is taken for a key of %s", key[:n], id)
				}
			}
		}
	}
}

// Ensure that after a loss that was accepted no write takes the number of a revision
// that survived, that those can be read, and that the numbers of the collections are
// right.
func TestRevisions_AcceptedLoss(t *testing.T) {
	ctx := context.Background()
	for name, lose := range map[string]func(tx storage.Tx){
		"nothing": func(tx storage.Tx) {},
		"history": func(tx storage.Tx) {
			tx.Delete(format.HistoryKey(nil, "a"))
			tx.Delete(format.HistoryKey(nil, "b"))
		},
		"revisions": func(tx storage.Tx) {
			tx.Delete(format.RevisionKey(nil, "a", 3))
			tx.Delete(format.RevisionKey(nil, "a", 5))
			tx.Delete(format.RevisionKey(nil, "b", 4))
		},
		"documents": func(tx storage.Tx) {
			tx.Delete(format.DocumentKey(nil, "a"))
		},
		"counts": func(tx storage.Tx) {
			tx.Delete(format.RevisionCountKey(nil, "@empty"))
		},
	} {
		disk := storagetest.NewDisk()
		db, err := jay.Open("db", &jay.Options{FS: disk})
		jaytest.Must(t, err)
		jaytest.Must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
		for n := range 6 {
			for _, id := range []string{"a", "b"} {
				_, err := db.Put(ctx, id, fmt.Appendf(nil, `{"n":%d}`, n))
				jaytest.Must(t, err)
			}
		}
		jaytest.Must(t, db.Delete(ctx, "b"))
		jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error { lose(tx); return nil }))
		left := revisionBodies(t, db)
		jaytest.Must(t, parts.Of(db).Env.Engine.Close())

		db, err = jay.Open("db", &jay.Options{FS: disk, AcceptLoss: func(*jay.DamageError) {}})
		jaytest.Must(t, err)
		for _, id := range []string{"a", "b"} {
			m, err := db.Put(ctx, id, []byte(`{"later":true}`))
			jaytest.Must(t, err)
			_, err = db.Revisions().Get(ctx, id, m.ChangeVector)
			jaytest.Must(t, err)
		}
		after := revisionBodies(t, db)
		for vector, body := range left {
			if after[vector] != body {
				t.Errorf("%s lost: %s was %s and is %q", name, vector, body, after[vector])
			}
		}
		counts, err := db.Revisions().Counts(ctx)
		jaytest.Must(t, err)
		n := int64(0)
		for range db.Revisions().All(ctx, "") {
			n++
		}
		if len(counts) != 1 || counts[0].Revisions != n {
			t.Errorf("%s lost: there are %d revisions, and the numbers are %v", name, n, counts)
		}
		jaytest.Must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{Keep: 1}}))
		for range 3 {
			_, err := db.Put(ctx, "a", []byte(`{}`))
			jaytest.Must(t, err)
		}
		_, err = db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true})
		jaytest.Must(t, err)
		jaytest.Must(t, parts.Of(db).CheckRevisions())
		jaytest.Must(t, db.Close())
	}
}

// revisionBodies returns the bodies of the revisions of a and b by change vector, read
// by Get as well.
func revisionBodies(t *testing.T, db *jay.DB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, id := range []string{"a", "b"} {
		for rev, err := range db.Revisions().List(context.Background(), id, jay.RevisionPage{}) {
			jaytest.Must(t, err)
			all[rev.ChangeVector()] = string(rev.Body())
			got, err := db.Revisions().Get(context.Background(), id, rev.ChangeVector())
			jaytest.Must(t, err)
			if !bytes.Equal(got.Body(), rev.Body()) {
				t.Errorf("%s is %s by its change vector, and %s in the list", rev.ChangeVector(), got.Body(), rev.Body())
			}
		}
	}
	return all
}

// Ensure that no rule removes imported revisions before their document arrives, as the newest
// of them is not replaced until then; that a purge that names them does; and that the history
// of a document that is deleted goes, also if the deletion was not recorded.
func TestPurge_BeforeTheDocument(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	db, err := jay.OpenMemory(&jay.Options{Now: func() time.Time { return now }})
	jaytest.Must(t, err)
	defer func() { jaytest.Must(t, db.Close()) }()
	r := db.Revisions()
	rule := jay.RevisionsConfiguration{Default: &jay.RevisionRule{KeepFor: time.Hour}}
	jaytest.Must(t, r.Configure(ctx, rule))
	load := func(id, vector, flags string) {
		t.Helper()
		_, err := r.Import(ctx, []json.RawMessage{fmt.Appendf(nil, `{"@metadata":{"@id":%q,"@flags":%q,"@change-vector":%q,"@last-modified":"2025-01-01T12:00:00.0000000Z"}}`, id, flags, vector)})
		jaytest.Must(t, err)
	}
	for _, id := range []string{"arrives", "missing", "named"} {
		load(id, "A:1-x", "HasRevisions, Revision")
		load(id, "A:2-x", "HasRevisions, Revision")
	}
	load("deleted", "A:3-x", "HasRevisions, Revision")
	load("deleted", "A:4-x", "HasRevisions, DeleteRevision")
	_, err = db.Put(ctx, "unrecorded", []byte(`{"n":1}`))
	jaytest.Must(t, err)
	jaytest.Must(t, r.Configure(ctx, jay.RevisionsConfiguration{}))
	_, err = db.Put(ctx, "unrecorded", []byte(`{"n":2}`))
	jaytest.Must(t, err)
	jaytest.Must(t, db.Delete(ctx, "unrecorded"))
	jaytest.Must(t, r.Configure(ctx, rule))
	now = now.Add(2 * time.Hour)

	check := func(p jay.RevisionPurge, removed int64, left ...string) {
		t.Helper()
		done, err := r.Purge(ctx, p)
		jaytest.Must(t, err)
		var got []string
		for rev, err := range r.All(ctx, "") {
			jaytest.Must(t, err)
			got = append(got, rev.ID())
		}
		if done.Revisions != removed || !slices.Equal(got, left) {
			t.Errorf("%+v: got %d revisions removed and those of %v left, want %d and %v", p, done.Revisions, got, removed, left)
		}
	}
	retention := jay.RevisionPurge{Retention: true}
	check(retention, 3, "arrives", "arrives", "missing", "missing", "named", "named")
	_, err = db.Put(ctx, "arrives", []byte(`{"n":3}`))
	jaytest.Must(t, err)
	check(retention, 1, "arrives", "missing", "missing", "named", "named") // the newest of them was replaced now
	check(jay.RevisionPurge{ID: "named"}, 2, "arrives", "missing", "missing")
	check(jay.RevisionPurge{Before: now}, 2, "arrives")
	now = now.Add(2 * time.Hour)
	check(retention, 1)
	jaytest.Must(t, parts.Of(db).CheckRevisions())
}
