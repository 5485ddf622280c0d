package jay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// These tests are internal as records of deletions cannot be seen from outside.

// deletions returns how many records of deletions there are.
func deletions(t *testing.T, db *DB) (n int) {
	t.Helper()
	it, err := db.env.Engine.Iterate([]byte{format.SpaceChanges}, []byte{format.SpaceChanges + 1})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if it.Value()[0] == format.ChangeDelete {
			n++
		}
	}
	return n
}

// putAndDelete puts and deletes n documents, in batches.
func putAndDelete(t *testing.T, db *DB, n int) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		var puts, deletes Batch
		for i := from; i < min(n, from+1000); i++ {
			puts.Put(fmt.Sprintf("docs/%d", i), []byte(`{"name":"x"}`))
			deletes.Delete(fmt.Sprintf("docs/%d", i))
		}
		for _, b := range []*Batch{&puts, &deletes} {
			if _, err := db.Apply(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// openIn opens a database that keeps no record of a deletion without need.
func openIn(t *testing.T, dir string) *DB {
	t.Helper()
	defer func(old uint64) { knobs.KeptEtags = old }(knobs.KeptEtags)
	knobs.KeptEtags = 0
	db, err := Open(dir, &Options{Durability: Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that deletions leave no records for ever: the worker removes them, Close
// removes those that are left, and Compact frees what they took.
func TestDeletions_LeaveNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db := openIn(t, dir)
	putAndDelete(t, db, 20_000)
	noError(t, db.Compact(context.Background()))
	if n := deletions(t, db); n != 0 {
		t.Errorf("%d records of deletions are left after Compact", n)
	}
	putAndDelete(t, db, 100)
	noError(t, db.Close())
	db = openIn(t, dir)
	if n := deletions(t, db); n != 0 {
		t.Errorf("%d records of deletions are left after Close", n)
	}
	noError(t, db.Close())

	var tables, all int64
	noError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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
		db, err := Open(dir, &Options{Durability: Relaxed})
		noError(t, err)
		putAndDelete(t, db, 5000)
		noError(t, db.Compact(context.Background()))
		if n := deletions(t, db); n != 1000 {
			t.Errorf("%d records are left, want 1000", n)
		}
		noError(t, db.Close())
		db, err = Open(dir, nil)
		noError(t, err)
		if n := deletions(t, db); n != 1000 {
			t.Errorf("%d records are left after Close, want 1000", n)
		}
		noError(t, db.Close())
	}
}

// Ensure that the record of a deletion goes that commits while a batch is looked for,
// after it was staged: a count of deletions would not show it to the next batch.
func TestDeletions_CommittedMeanwhile(t *testing.T) {
	db := openIn(t, t.TempDir())
	ctx := context.Background()
	_, err := db.Put(ctx, "docs/1", []byte(`{}`))
	noError(t, err)
	noError(t, db.writer.Transact(ctx, true, func(tx *write.Txn) error {
		etag, err := tx.Sequence()
		if err != nil {
			return err
		}
		db.horizon.Staged(etag)
		if _, err := db.horizon.RemoveSome(ctx); err != nil {
			return err
		}
		tx.Tx.Set(format.ChangeKey(nil, db.env.Node, etag), format.AppendChange(nil, format.ChangeDelete, "Docs", "docs/2"), nil)
		return nil
	}))
	if n := deletions(t, db); n != 1 {
		t.Fatalf("%d records, want 1", n)
	}
	noError(t, db.Compact(ctx))
	if n := deletions(t, db); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// Ensure that the worker runs without Compact and Close.
func TestDeletions_Worker(t *testing.T) {
	db := openIn(t, t.TempDir())
	putAndDelete(t, db, 5000)
	for deadline := time.Now().Add(time.Minute); deletions(t, db) > 2000; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d records are left", deletions(t, db))
		}
	}
	db.horizon.Stop()
	putAndDelete(t, db, 2000)
	if n := deletions(t, db); n < 2000 {
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
		db := openIn(t, dir)
		for range 3 {
			meta, err := db.Put(ctx, "a/", []byte(`{}`))
			noError(t, err)
			if meta.Etag <= last {
				t.Fatalf("run %d: etag %d after %d", run, meta.Etag, last)
			}
			noError(t, db.Delete(ctx, meta.ID))
			last = meta.Etag + 1 // of the deletion
			if run%2 == 0 {
				noError(t, db.Compact(ctx))
			}
			c, err := db.Counters(ctx)
			noError(t, err)
			if c.Etag != last {
				t.Errorf("run %d: Counters has etag %d, want %d", run, c.Etag, last)
			}
			if meta.Etag+1 != last {
				t.Errorf("etag %d", meta.Etag)
			}
		}
		noError(t, db.Close())
		db = openIn(t, dir)
		c, err := db.Counters(ctx)
		noError(t, err)
		if c.Etag != last {
			t.Errorf("run %d: Counters has etag %d after Open, want %d", run, c.Etag, last)
		}
		if n := deletions(t, db); n != 0 {
			t.Errorf("run %d: %d records are left", run, n)
		}
		noError(t, db.Close())
	}
}

// Ensure that a transaction conflicts with a deletion in a range that it read, when
// all records that may go are removed before it commits; and that the records which
// it needed go when it has ended.
func TestDeletions_OpenTransaction(t *testing.T) {
	db := openIn(t, t.TempDir())
	ctx := context.Background()
	put := func(id string) { _, err := db.Put(ctx, id, []byte(`{}`)); noError(t, err) }
	put("docs/1")
	put("other")
	noError(t, db.Delete(ctx, "other"))
	noError(t, db.Compact(ctx))

	err := db.Update(ctx, func(tx *Tx) error {
		for _, err := range tx.Documents(ctx, Scan{Prefix: "docs/"}) {
			noError(t, err)
		}
		noError(t, db.Delete(ctx, "docs/1"))
		noError(t, db.Compact(ctx))
		if n := deletions(t, db); n != 1 {
			t.Errorf("%d records are left, want 1", n)
		}
		_, err := tx.Put(ctx, "result", []byte(`{}`))
		return err
	})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || conflict.ID == "" {
		t.Errorf("got %v, want a conflict that names the document", err)
	}
	noError(t, db.Compact(ctx))
	if n := deletions(t, db); n != 0 {
		t.Errorf("%d records are left after the transaction", n)
	}

	// Deletions elsewhere, and removals, are no conflict.
	put("docs/2")
	put("other")
	err = db.Update(ctx, func(tx *Tx) error {
		for _, err := range tx.Documents(ctx, Scan{Prefix: "docs/"}) {
			noError(t, err)
		}
		noError(t, db.Delete(ctx, "other"))
		noError(t, db.Compact(ctx))
		_, err := tx.Put(ctx, "result", []byte(`{}`))
		return err
	})
	noError(t, err)
}

// Ensure that a transaction of a process whose holds the remover does not know
// conflicts, when records that it needs may be gone.
func TestDeletions_MarkPassesTransaction(t *testing.T) {
	db := openIn(t, t.TempDir())
	ctx := context.Background()
	_, err := db.Put(ctx, "docs/1", []byte(`{}`))
	noError(t, err)
	err = db.Update(ctx, func(tx *Tx) error {
		for _, err := range tx.Documents(ctx, Scan{Prefix: "docs/"}) {
			noError(t, err)
		}
		noError(t, db.Delete(ctx, "docs/1"))
		tx.deletes.Release() // as if it were held in another process
		noError(t, db.Compact(ctx))
		if n := deletions(t, db); n != 0 {
			t.Errorf("%d records are left", n)
		}
		tx.deletes = db.horizon.Hold()
		_, err := tx.Put(ctx, "result", []byte(`{}`))
		return err
	})
	if !errors.Is(err, ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// Ensure that a floor keeps the records of deletions after it, through Close and
// Open, until it is raised or forgotten, and that one below the mark is refused.
func TestDeletions_Floor(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	update := func(db *DB, fn func(storage.Tx) error) error { return db.env.Engine.Update(ctx, true, fn) }
	db := openIn(t, dir)
	var etags []uint64
	for i := range 6 {
		meta, err := db.Put(ctx, fmt.Sprint("docs/", i), []byte(`{}`))
		noError(t, err)
		etags = append(etags, meta.Etag+1)
		noError(t, db.Delete(ctx, meta.ID))
	}
	noError(t, update(db, func(tx storage.Tx) error {
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
		noError(t, update(db, step.fn))
		noError(t, db.Compact(ctx))
		if n := deletions(t, db); n != step.want {
			t.Errorf("%s: %d records, want %d", step.name, n, step.want)
		}
		if i%2 == 0 {
			noError(t, db.Close())
			db = openIn(t, dir)
		}
		if n := deletions(t, db); n != step.want {
			t.Errorf("%s, after Open: %d records, want %d", step.name, n, step.want)
		}
	}
	mark, err := counters.Mark(db.env.Engine)
	noError(t, err)
	if mark != etags[5] {
		t.Errorf("the mark is %d, want %d", mark, etags[5])
	}
	err = update(db, func(tx storage.Tx) error { return horizon.SetFloor(tx, "late", mark-1) })
	if !errors.Is(err, horizon.ErrPassed) {
		t.Errorf("a floor below the mark: %v, want ErrPassed", err)
	}
	noError(t, update(db, func(tx storage.Tx) error { return horizon.SetFloor(tx, "new", mark) }))
}
