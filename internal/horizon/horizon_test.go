package horizon_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// These tests count records of deletions, which the public API does not show.

// Ensure that deletions leave no records for ever: the worker removes them, Close
// removes those that are left, and Compact frees what they took.
func TestDeletions_LeaveNothing(t *testing.T) {
	sample.OneGoroutine(t)
	dir := filepath.Join(t.TempDir(), "db")
	db := jaytest.OpenForgetting(t, dir)
	jaytest.PutAndDelete(t, db, 20_000)
	jaytest.Must(t, db.Compact(context.Background()))
	if n := jaytest.Deletions(t, db); n != 0 {
		t.Errorf("%d records of deletions are left after Compact", n)
	}
	jaytest.PutAndDelete(t, db, 100)
	jaytest.Must(t, db.Close())
	db = jaytest.OpenForgetting(t, dir)
	if n := jaytest.Deletions(t, db); n != 0 {
		t.Errorf("%d records of deletions are left after Close", n)
	}
	jaytest.Must(t, db.Close())

	var tables, all int64
	jaytest.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if filepath.Ext(path) == ".sst" {
			tables += info.Size()
		}
		all += info.Size()
		return err
	}))
	t.Logf("%d bytes, %d of them in tables", all, tables)
	if all > 100<<10 {
		t.Errorf("the empty database takes %d bytes, %d of them in tables", all, tables)
	}
}

// Ensure that the newest changes keep their records, so that InspectIDs can say which
// numbers were deleted.
func TestDeletions_NewestKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed})
		jaytest.Must(t, err)
		jaytest.PutAndDelete(t, db, 5000)
		jaytest.Must(t, db.Compact(context.Background()))
		if n := jaytest.Deletions(t, db); n != 1000 {
			t.Errorf("%d records are left, want 1000", n)
		}
		jaytest.Must(t, db.Close())
		db, err = jay.Open(dir, nil)
		jaytest.Must(t, err)
		if n := jaytest.Deletions(t, db); n != 1000 {
			t.Errorf("%d records are left after Close, want 1000", n)
		}
		jaytest.Must(t, db.Close())
	}
}

// Ensure that the record of a deletion goes that commits while a batch is looked for,
// after it was staged: a count of deletions would not show it to the next batch.
func TestDeletions_CommittedMeanwhile(t *testing.T) {
	db := jaytest.OpenForgetting(t, t.TempDir())
	ctx := context.Background()
	_, err := db.Put(ctx, "docs/1", []byte(`{}`))
	jaytest.Must(t, err)
	jaytest.Must(t, parts.Of(db).Writer.Transact(ctx, true, func(tx *write.Txn) error {
		etag, err := tx.Sequence()
		if err != nil {
			return err
		}
		parts.Of(db).Horizon.Staged(etag)
		if _, err := parts.Of(db).Horizon.RemoveSome(ctx); err != nil {
			return err
		}
		tx.Tx.Set(format.ChangeKey(nil, parts.Of(db).Env.Node, etag), format.AppendChange(nil, format.ChangeDelete, "Docs", "docs/2"), nil)
		return nil
	}))
	if n := jaytest.Deletions(t, db); n != 1 {
		t.Fatalf("%d records, want 1", n)
	}
	jaytest.Must(t, db.Compact(ctx))
	if n := jaytest.Deletions(t, db); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// Ensure that the worker runs without Compact and Close.
func TestDeletions_Worker(t *testing.T) {
	db := jaytest.OpenForgetting(t, t.TempDir())
	jaytest.PutAndDelete(t, db, 5000)
	for deadline := time.Now().Add(time.Minute); jaytest.Deletions(t, db) > 2000; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d records are left", jaytest.Deletions(t, db))
		}
	}
	parts.Of(db).Horizon.Stop()
	jaytest.PutAndDelete(t, db, 2000)
	if n := jaytest.Deletions(t, db); n < 2000 {
		t.Errorf("%d records are left after 2000 deletions: a worker runs after Stop", n)
	}
}

// Ensure that no etag is lower than one that was used, when the record of the newest
// change is gone: neither after Close nor with what Counters returns.
func TestDeletions_EtagsRise(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	last := uint64(0)
	for run := range 4 {
		db := jaytest.OpenForgetting(t, dir)
		for range 3 {
			meta, err := db.Put(ctx, "a/", []byte(`{}`))
			jaytest.Must(t, err)
			if meta.Etag <= last {
				t.Fatalf("run %d: etag %d after %d", run, meta.Etag, last)
			}
			jaytest.Must(t, db.Delete(ctx, meta.ID))
			last = meta.Etag + 1 // of the deletion
			if run%2 == 0 {
				jaytest.Must(t, db.Compact(ctx))
			}
			c, err := db.Counters(ctx)
			jaytest.Must(t, err)
			if c.Etag != last {
				t.Errorf("run %d: Counters has etag %d, want %d", run, c.Etag, last)
			}
			if meta.Etag+1 != last {
				t.Errorf("etag %d", meta.Etag)
			}
		}
		jaytest.Must(t, db.Close())
		db = jaytest.OpenForgetting(t, dir)
		c, err := db.Counters(ctx)
		jaytest.Must(t, err)
		if c.Etag != last {
			t.Errorf("run %d: Counters has etag %d after Open, want %d", run, c.Etag, last)
		}
		if n := jaytest.Deletions(t, db); n != 0 {
			t.Errorf("run %d: %d records are left", run, n)
		}
		jaytest.Must(t, db.Close())
	}
}

// Ensure that a transaction conflicts with a deletion in a range that it read, when
// all records that may go are removed before it commits; and that the records which
// it needed go when it has ended.
func TestDeletions_OpenTransaction(t *testing.T) {
	db := jaytest.OpenForgetting(t, t.TempDir())
	ctx := context.Background()
	put := func(id string) { _, err := db.Put(ctx, id, []byte(`{}`)); jaytest.Must(t, err) }
	put("docs/1")
	put("other")
	jaytest.Must(t, db.Delete(ctx, "other"))
	jaytest.Must(t, db.Compact(ctx))

	err := db.Update(ctx, func(tx *jay.Tx) error {
		for _, err := range tx.Documents(ctx, jay.Scan{Prefix: "docs/"}) {
			jaytest.Must(t, err)
		}
		jaytest.Must(t, db.Delete(ctx, "docs/1"))
		jaytest.Must(t, db.Compact(ctx))
		if n := jaytest.Deletions(t, db); n != 1 {
			t.Errorf("%d records are left, want 1", n)
		}
		_, err := tx.Put(ctx, "result", []byte(`{}`))
		return err
	})
	var conflict *jay.ConflictError
	if !errors.As(err, &conflict) || conflict.ID == "" {
		t.Errorf("got %v, want a conflict that names the document", err)
	}
	jaytest.Must(t, db.Compact(ctx))
	if n := jaytest.Deletions(t, db); n != 0 {
		t.Errorf("%d records are left after the transaction", n)
	}

	// Deletions elsewhere, and removals, are no conflict.
	put("docs/2")
	put("other")
	err = db.Update(ctx, func(tx *jay.Tx) error {
		for _, err := range tx.Documents(ctx, jay.Scan{Prefix: "docs/"}) {
			jaytest.Must(t, err)
		}
		jaytest.Must(t, db.Delete(ctx, "other"))
		jaytest.Must(t, db.Compact(ctx))
		_, err := tx.Put(ctx, "result", []byte(`{}`))
		return err
	})
	jaytest.Must(t, err)
}

// Ensure that a floor keeps the records of deletions after it, through Close and
// Open, until it is raised or forgotten, and that one below the mark is refused.
func TestDeletions_Floor(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	update := func(db *jay.DB, fn func(storage.Tx) error) error {
		return parts.Of(db).Env.Engine.Update(ctx, true, fn)
	}
	db := jaytest.OpenForgetting(t, dir)
	var etags []uint64
	for i := range 6 {
		meta, err := db.Put(ctx, fmt.Sprint("docs/", i), []byte(`{}`))
		jaytest.Must(t, err)
		etags = append(etags, meta.Etag+1)
		jaytest.Must(t, db.Delete(ctx, meta.ID))
	}
	jaytest.Must(t, update(db, func(tx storage.Tx) error {
		if err := horizon.SetFloor(tx, "feed", etags[3]); err != nil {
			return err
		}
		return horizon.SetFloor(tx, "backup", etags[1])
	}))
	steps := []struct {
		name string
		fn   func(storage.Tx) error
		want int
	}{
		{"two floors", func(storage.Tx) error { return nil }, 4},
		{"one is raised", func(tx storage.Tx) error { return horizon.SetFloor(tx, "backup", etags[2]) }, 3},
		{"one is forgotten", func(tx storage.Tx) error { horizon.ForgetFloor(tx, "backup"); return nil }, 2},
		{"both are", func(tx storage.Tx) error { horizon.ForgetFloor(tx, "feed"); return nil }, 0},
	}
	for i, step := range steps {
		jaytest.Must(t, update(db, step.fn))
		jaytest.Must(t, db.Compact(ctx))
		if n := jaytest.Deletions(t, db); n != step.want {
			t.Errorf("%s: %d records, want %d", step.name, n, step.want)
		}
		if i%2 == 0 {
			jaytest.Must(t, db.Close())
			db = jaytest.OpenForgetting(t, dir)
		}
		if n := jaytest.Deletions(t, db); n != step.want {
			t.Errorf("%s, after Open: %d records, want %d", step.name, n, step.want)
		}
	}
	mark, err := counters.Mark(parts.Of(db).Env.Engine)
	jaytest.Must(t, err)
	if mark != etags[5] {
		t.Errorf("the mark is %d, want %d", mark, etags[5])
	}
	err = update(db, func(tx storage.Tx) error { return horizon.SetFloor(tx, "late", mark-1) })
	if !errors.Is(err, horizon.ErrPassed) {
		t.Errorf("a floor below the mark: %v, want ErrPassed", err)
	}
	jaytest.Must(t, update(db, func(tx storage.Tx) error { return horizon.SetFloor(tx, "new", mark) }))
}

// Ensure that Close succeeds, and commits what it is to commit, when something needs the
// records after an etag that is between the last record that was removed and the end of
// the walk that removed it.
func TestDeletions_FloorInTheWalk(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "db")
	db := jaytest.OpenForgetting(t, dir)
	jaytest.PutAndDelete(t, db, 1)
	meta, err := db.Put(ctx, "kept/1", []byte(`{}`), jay.InCollection("Kept"))
	jaytest.Must(t, err)
	for n := range 5 {
		_, err := db.Put(ctx, fmt.Sprint("kept/", 2+n), []byte(`{}`), jay.InCollection("Kept"))
		jaytest.Must(t, err)
	}
	jaytest.Must(t, db.Close()) // removes the record, and has walked over all changes

	db = jaytest.OpenForgetting(t, dir)
	jaytest.Must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: "from Kept", Since: meta.ChangeVector, Deletions: true}))
	made, err := db.Store(ctx, "Users", []byte(`{}`))
	jaytest.Must(t, err)
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	db = jaytest.OpenForgetting(t, dir)
	jaytest.Must(t, db.Delete(ctx, made.ID))
	jaytest.PutAndDelete(t, db, 1)
	jaytest.Must(t, db.Close())
	db = jaytest.OpenForgetting(t, dir)
	if n := jaytest.Deletions(t, db); n != 2 {
		t.Errorf("%d records of deletions are there, want the 2 that the subscription needs", n)
	}
	jaytest.Must(t, db.Close())
}
