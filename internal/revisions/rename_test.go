package revisions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// This file looks at the engine: it makes the undated deletions that older versions of
// Jay have left.

// renamed returns a database in which a document of January was renamed on 10 February,
// under a rule with KeepFor of 30 days, the time just before that, and what moves its clock.
func renamed(t *testing.T) (db *jay.DB, before time.Time, now *time.Time) {
	t.Helper()
	ctx := context.Background()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	db, err := jay.OpenMemory(&jay.Options{Now: func() time.Time { return at }})
	jaytest.Must(t, err)
	t.Cleanup(func() { jaytest.Must(t, db.Close()) })
	jaytest.Must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{KeepFor: 30 * 24 * time.Hour}}))
	_, err = db.Put(ctx, "users/ann", json.RawMessage(`{"v":1}`), jay.InCollection("Users"))
	jaytest.Must(t, err)
	before = at.Add(40 * 24 * time.Hour)
	at = before.Add(time.Second)
	_, err = db.RenameCollection(ctx, "Users", "People")
	jaytest.Must(t, err)
	return db, before, &at
}

// undate makes the deletion of a rename one that says nothing of its time.
func undate(t *testing.T, db *jay.DB) {
	t.Helper()
	key := format.RevisionKey(nil, "users/ann", 2)
	value, closer, err := parts.Of(db).Env.Engine.Get(key)
	jaytest.Must(t, err)
	value = bytes.Clone(value)
	jaytest.Must(t, closer.Close())
	head, record, err := format.SplitRevision(value)
	jaytest.Must(t, err)
	h, body, err := metadata.Decode(record)
	jaytest.Must(t, err)
	if !head.Deletion {
		t.Fatal("revision 2 is no deletion")
	}
	h.Modified = 0
	undated := h.AppendTail(h.AppendHead(format.RevisionHead{Deletion: true}.Append(nil)))
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		tx.Set(key, undated, body)
		return nil
	}))
}

// checkRenamed checks what is known of the document, and that the version that was
// current until the rename stays for 30 days after it.
func checkRenamed(t *testing.T, db *jay.DB, before time.Time, now *time.Time) {
	t.Helper()
	ctx := context.Background()
	rev, err := db.Revisions().AsOf(ctx, "users/ann", before)
	if err != nil || string(rev.Body()) != `{"v":1}` || rev.Collection() != "Users" {
		t.Fatalf("as of the moment before: %v, %v", rev, err)
	}
	if rev, err = db.Revisions().AsOf(ctx, "users/ann", *now); err != nil || rev.Collection() != "People" {
		t.Fatalf("as of the rename: %v, %v", rev, err)
	}
	found := 0
	for rev, err := range db.Revisions().List(ctx, "users/ann", jay.RevisionPage{}) {
		jaytest.Must(t, err)
		want := before.Add(time.Second)
		if found++; found == 3 {
			want = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		if !rev.LastModified().Equal(want) || rev.Deletion() != (found == 2) {
			t.Errorf("revision %d from above: of %v, a deletion: %v", found, rev.LastModified(), rev.Deletion())
		}
	}
	for _, step := range []struct {
		after time.Duration
		gone  int64
	}{{time.Second, 0}, {29 * 24 * time.Hour, 0}, {2 * 24 * time.Hour, 2}} {
		*now = now.Add(step.after)
		done, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true})
		jaytest.Must(t, err)
		if done.Revisions != step.gone {
			t.Errorf("%v later a purge removes %d revisions, want %d", step.after, done.Revisions, step.gone)
		}
	}
}

// Ensure that a rename keeps the deletion of each document with the time of the rename:
// the version before it is known as of then, and stays as long as its rule says.
func TestRenameCollection_TimeOfRevisions(t *testing.T) {
	db, before, now := renamed(t)
	checkRenamed(t, db, before, now)
}

// Ensure the same of a database in which an older Jay has renamed a collection, and left
// deletions without a time.
func TestRevisions_UndatedDeletion(t *testing.T) {
	db, before, now := renamed(t)
	undate(t, db)
	checkRenamed(t, db, before, now)
}
