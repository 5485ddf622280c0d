package jay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage"
)

// These tests are internal as they remove records of deletions at moments of their
// choice, and hold them as a subscription would.

// pull returns the next change of a feed, which must have one.
func pull(t *testing.T, next func() (Change, error, bool)) Change {
	t.Helper()
	c, err, ok := next()
	if err != nil || !ok {
		t.Fatalf("%+v, %v, %t", c, err, ok)
	}
	return c
}

// Ensure that a feed that is open, and slow, keeps the records of deletions that it has
// not come to, however many there are; that the walk of all documents does, too, for
// what it has shown; and that they go when the feed has passed them.
func TestChanges_KeepsDeletions(t *testing.T) {
	ctx := context.Background()
	db := openIn(t, t.TempDir())
	for i := range 1000 {
		mustPut(t, db, fmt.Sprintf("docs/%04d", i), []byte(`{}`))
	}
	next, stop := iter.Pull2(db.Changes(ctx, "", UntilCaughtUp()))
	defer stop()
	have := map[string]bool{pull(t, next).ID: true}

	if _, err := db.DropCollection(ctx, "@empty"); err != nil {
		t.Fatal(err)
	}
	noError(t, db.Compact(ctx))
	if n := deletions(t, db); n != 1000 {
		t.Errorf("%d records of deletions are left, and a feed needs 1000", n)
	}
	for {
		c, err, ok := next()
		noError(t, err)
		if !ok {
			break
		}
		if have[c.ID] = true; c.Deleted {
			delete(have, c.ID)
		}
	}
	if len(have) > 0 {
		t.Errorf("the reader has %d documents that were deleted", len(have))
	}
	noError(t, db.Compact(ctx))
	if n := deletions(t, db); n != 0 {
		t.Errorf("%d records of deletions are left when no feed is open", n)
	}
}

// Ensure that a token that is too old is a typed error that names the oldest usable
// etag; that it is one for a feed, too, that was open and fell behind the bound; and that
// a walk of all documents goes on by its token, whatever was removed that it does
// not need.
func TestChanges_Gone(t *testing.T) {
	defer func(old uint64) { knobs.HeldEtags = old }(knobs.HeldEtags)
	knobs.HeldEtags = 100
	ctx := context.Background()
	db := openIn(t, t.TempDir())
	mustPut(t, db, "first", []byte(`{}`))
	putAndDelete(t, db, 500)
	mustPut(t, db, "second", []byte(`{}`))
	noError(t, db.Compact(ctx))

	// The walk began when these deletions were over.
	next, stop := iter.Pull2(db.Changes(ctx, ""))
	first := pull(t, next)
	token := first.Token()
	stop()
	next, stop = iter.Pull2(db.Changes(ctx, token))
	if c := pull(t, next); c.ID != "second" {
		t.Errorf("behind %s: %+v", token, c)
	}
	stop()
	var gone *ChangesGoneError
	_, err := firstChange(db, first.ChangeVector()) // of who has seen the changes up to 1 then
	if !errors.As(err, &gone) || gone.Oldest < 1001 {
		t.Errorf("behind a removed deletion: %v", err)
	}
	oldest := db.env.ChangeVector(db.env.Node, gone.Oldest)
	if _, err := firstChange(db, oldest); err != nil {
		t.Errorf("behind the oldest usable etag: %v", err)
	}
	if gone.Oldest > 0 {
		if _, err := firstChange(db, db.env.ChangeVector(db.env.Node, gone.Oldest-1)); !errors.Is(err, ErrChangesGone) {
			t.Errorf("one below the oldest usable etag: %v", err)
		}
	}

	// An open feed that falls behind.
	next, stop = iter.Pull2(db.Changes(ctx, ""))
	defer stop()
	pull(t, next)
	putAndDelete(t, db, 500)
	noError(t, db.Compact(ctx))
	pull(t, next) // of the same batch
	if _, err, _ := next(); !errors.Is(err, ErrChangesGone) {
		t.Errorf("a feed that fell behind: %v", err)
	}
	if _, err := firstChange(db, token); !errors.Is(err, ErrChangesGone) {
		t.Errorf("the walk's token, now that deletions since it began are gone: %v", err)
	}
}

func firstChange(db *DB, since string) (Change, error) {
	for c, err := range db.Changes(context.Background(), since, UntilCaughtUp()) {
		return c, err
	}
	return Change{}, nil
}

// Ensure that a feed cannot begin behind records that are about to be removed, and
// that a removal gives way to a feed that has begun since it looked for records.
func TestChanges_BeginsDuringRemoval(t *testing.T) {
	ctx := context.Background()
	db := openIn(t, t.TempDir())
	putAndDelete(t, db, 10)
	if _, err := db.horizon.RemoveSome(ctx); err != nil {
		t.Fatal(err)
	}
	putAndDelete(t, db, 10)
	token := db.env.ChangeVector(db.env.Node, 30)

	// Begun between the walk and the commit.
	began := false
	db.horizon.OnFound = func() {
		next, stop := iter.Pull2(db.Changes(ctx, token))
		if began = true; pull(t, next).Etag != 31 {
			t.Error("not the first change")
		}
		t.Cleanup(stop)
	}
	_, err := db.horizon.RemoveSome(ctx)
	db.horizon.OnFound = nil
	noError(t, err)
	if n := deletions(t, db); !began || n != 10 {
		t.Errorf("%d records of deletions are left, and a feed needs 10", n)
	}
}

// Ensure that a feed that was open at Close can go on in the next process.
func TestChanges_OpenAtClose(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	db := openIn(t, dir)
	for i := range 600 {
		mustPut(t, db, fmt.Sprintf("docs/%04d", i), []byte(`{}`))
	}
	next, stop := iter.Pull2(db.Changes(ctx, ""))
	token := pull(t, next).Token()
	if _, err := db.DropCollection(ctx, "@empty"); err != nil {
		t.Fatal(err)
	}
	noError(t, db.Close())
	stop()

	db = openIn(t, dir)
	n := 0
	for c, err := range db.Changes(ctx, token, UntilCaughtUp()) {
		noError(t, err)
		if n++; !c.Deleted {
			t.Errorf("%+v", c)
		}
	}
	if n != 600 {
		t.Errorf("%d deletions, want 600", n)
	}
}

// Ensure that damage is an error that comes behind the changes before it.
func TestChanges_Corrupt(t *testing.T) {
	ctx := context.Background()
	db := openIn(t, t.TempDir())
	for i := range 4 {
		mustPut(t, db, fmt.Sprint("docs/", i), []byte(`{}`))
	}
	var record []byte
	noError(t, db.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		value, closer, err := tx.Get(format.NewDocumentKey("docs/2"))
		if err != nil {
			return err
		}
		record = bytes.Clone(value)
		tx.Delete(format.NewDocumentKey("docs/2"))
		return closer.Close()
	}))
	next, stop := iter.Pull2(db.Changes(ctx, ""))
	defer stop()
	pull(t, next)
	pull(t, next)
	if _, err, _ := next(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a change without its document: %v", err)
	}
	noError(t, db.env.Engine.Update(ctx, true, func(tx storage.Tx) error { // so that the counts are right again
		tx.Set(format.NewDocumentKey("docs/2"), record, nil)
		return nil
	}))
}
