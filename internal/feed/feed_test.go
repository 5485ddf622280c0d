package feed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// These tests remove records of deletions at moments of their
// choice, and hold them as a subscription would. No public call does.

// pull returns the next change of a feed, which must have one.
func pull(t *testing.T, next func() (jay.Change, error, bool)) jay.Change {
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
	db := jaytest.OpenForgetting(t, t.TempDir())
	for i := range 1000 {
		jaytest.Put(t, db, fmt.Sprintf("docs/%04d", i), `{}`)
	}
	next, stop := iter.Pull2(db.Changes(ctx, "", jay.UntilCaughtUp()))
	defer stop()
	have := map[string]bool{pull(t, next).ID: true}

	if _, err := db.DropCollection(ctx, "@empty"); err != nil {
		t.Fatal(err)
	}
	jaytest.Must(t, db.Compact(ctx))
	if n := jaytest.Deletions(t, db); n != 1000 {
		t.Errorf("%d records of deletions are left, and a feed needs 1000", n)
	}
	for {
		c, err, ok := next()
		jaytest.Must(t, err)
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
	jaytest.Must(t, db.Compact(ctx))
	if n := jaytest.Deletions(t, db); n != 0 {
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
	db := jaytest.OpenForgetting(t, t.TempDir())
	jaytest.Put(t, db, "first", `{}`)
	jaytest.PutAndDelete(t, db, 500)
	jaytest.Put(t, db, "second", `{}`)
	jaytest.Must(t, db.Compact(ctx))

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
	var gone *jay.ChangesGoneError
	_, err := firstChange(db, first.ChangeVector()) // of who has seen the changes up to 1 then
	if !errors.As(err, &gone) || gone.Oldest < 1001 {
		t.Errorf("behind a removed deletion: %v", err)
	}
	oldest := parts.Of(db).Env.ChangeVector(parts.Of(db).Env.Node, gone.Oldest)
	if _, err := firstChange(db, oldest); err != nil {
		t.Errorf("behind the oldest usable etag: %v", err)
	}
	if gone.Oldest > 0 {
		if _, err := firstChange(db, parts.Of(db).Env.ChangeVector(parts.Of(db).Env.Node, gone.Oldest-1)); !errors.Is(err, jay.ErrChangesGone) {
			t.Errorf("one below the oldest usable etag: %v", err)
		}
	}

	// An open feed that falls behind.
	next, stop = iter.Pull2(db.Changes(ctx, ""))
	defer stop()
	pull(t, next)
	jaytest.PutAndDelete(t, db, 500)
	jaytest.Must(t, db.Compact(ctx))
	pull(t, next) // of the same batch
	if _, err, _ := next(); !errors.Is(err, jay.ErrChangesGone) {
		t.Errorf("a feed that fell behind: %v", err)
	}
	if _, err := firstChange(db, token); !errors.Is(err, jay.ErrChangesGone) {
		t.Errorf("the walk's token, now that deletions since it began are gone: %v", err)
	}
}

func firstChange(db *jay.DB, since string) (jay.Change, error) {
	for c, err := range db.Changes(context.Background(), since, jay.UntilCaughtUp()) {
		return c, err
	}
	return jay.Change{}, nil
}

// Ensure that a feed cannot begin behind records that are about to be removed, and
// that a removal gives way to a feed that has begun since it looked for records.
func TestChanges_BeginsDuringRemoval(t *testing.T) {
	ctx := context.Background()
	db := jaytest.OpenForgetting(t, t.TempDir())
	jaytest.PutAndDelete(t, db, 10)
	if _, err := parts.Of(db).Horizon.RemoveSome(ctx); err != nil {
		t.Fatal(err)
	}
	jaytest.PutAndDelete(t, db, 10)
	token := parts.Of(db).Env.ChangeVector(parts.Of(db).Env.Node, 30)

	// Begun between the walk and the commit.
	began := false
	parts.Of(db).Horizon.OnFound = func() {
		next, stop := iter.Pull2(db.Changes(ctx, token))
		if began = true; pull(t, next).Etag != 31 {
			t.Error("not the first change")
		}
		t.Cleanup(stop)
	}
	_, err := parts.Of(db).Horizon.RemoveSome(ctx)
	parts.Of(db).Horizon.OnFound = nil
	jaytest.Must(t, err)
	if n := jaytest.Deletions(t, db); !began || n != 10 {
		t.Errorf("%d records of deletions are left, and a feed needs 10", n)
	}
}

// Ensure that a feed that was open at Close can go on in the next process.
func TestChanges_OpenAtClose(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	db := jaytest.OpenForgetting(t, dir)
	for i := range 600 {
		jaytest.Put(t, db, fmt.Sprintf("docs/%04d", i), `{}`)
	}
	next, stop := iter.Pull2(db.Changes(ctx, ""))
	token := pull(t, next).Token()
	if _, err := db.DropCollection(ctx, "@empty"); err != nil {
		t.Fatal(err)
	}
	jaytest.Must(t, db.Close())
	stop()

	db = jaytest.OpenForgetting(t, dir)
	n := 0
	for c, err := range db.Changes(ctx, token, jay.UntilCaughtUp()) {
		jaytest.Must(t, err)
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
	db := jaytest.OpenForgetting(t, t.TempDir())
	for i := range 4 {
		jaytest.Put(t, db, fmt.Sprint("docs/", i), `{}`)
	}
	var record []byte
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
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
	if _, err, _ := next(); !errors.Is(err, jay.ErrCorrupt) {
		t.Errorf("a change without its document: %v", err)
	}
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error { // so that the counts are right again
		tx.Set(format.NewDocumentKey("docs/2"), record, nil)
		return nil
	}))
}
