package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	internal "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/memory"
)

// within returns a context that ends before the test seems to hang.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Ensure that with ExactExpiry a live query never brings a document that has expired, and
// that a loop that has it is told of its deletion, also one that came back between the two.
func TestLive_ExactExpiry(t *testing.T) {
	ctx := within(t)
	restore := checks.NoSweeper()
	clock := internal.NewClock()
	db := internal.Memory(t, &jay.Options{Now: clock.Now, ExactExpiry: true})
	restore()
	q := db.Query("Ants").Where(jay.Gt("N", 0))
	for _, id := range []string{"a/early", "a/goes", "a/turns"} {
		internal.Put(t, db, id, `{"N":1}`, jay.InCollection("Ants"), jay.WithTTL(time.Hour))
	}
	put(t, db, "Ants", "a/stays", 1)
	pull, stop := iter.Pull2(q.Live(ctx, ""))
	token := expect(t, pull, "enter a/early", "enter a/goes", "enter a/stays", "enter a/turns", "current").Token
	stop()
	internal.Put(t, db, "a/turns", `{"N":0}`, jay.InCollection("Ants"), jay.WithTTL(time.Minute))
	clock.Advance(2 * time.Hour)

	pull, stop = iter.Pull2(q.Live(ctx, ""))
	expect(t, pull, "enter a/stays", "current")
	again, stopAgain := iter.Pull2(q.Live(ctx, token))
	expect(t, again, "leave a/turns again", "current")
	internal.Put(t, db, "a/late", `{"N":1}`, jay.InCollection("Ants"), jay.WithTTL(time.Hour))
	expect(t, again, "enter a/late", "current")
	_, err := db.Sweep(ctx)
	internal.Must(t, err)
	expect(t, again, "leave a/early", "leave a/goes", "current")
	stopAgain()
	stop()

	again, stop = iter.Pull2(q.Live(ctx, token)) // alone, and after the deletions
	defer stop()
	expect(t, again, "enter a/late again", "leave a/turns again", "leave a/early again", "leave a/goes again", "current")
}

// Ensure that the token of a database is refused by what was restored from its backup,
// which begins anew.
func TestLive_Restore(t *testing.T) {
	ctx := within(t)
	db := internal.Memory(t, nil)
	put(t, db, "Ants", "a/1", 1)
	pull, stop := iter.Pull2(db.Query("Ants").Live(ctx, ""))
	token := expect(t, pull, "enter a/1", "current").Token
	stop()
	_, stream := internal.BackUp(t, db)
	dir := filepath.Join(t.TempDir(), "copy")
	_, err := jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(stream))
	internal.Must(t, err)
	restored := internal.Open(t, dir, nil)
	if err := firstError(restored.Query("Ants").Live(ctx, token)); !errors.Is(err, jay.ErrChangesGone) {
		t.Errorf("%v, want ErrChangesGone", err)
	}
	pull, stop = iter.Pull2(restored.Query("Ants").Live(ctx, ""))
	defer stop()
	expect(t, pull, "enter a/1", "current")
	internal.Must(t, restored.Delete(ctx, "a/1"))
	expect(t, pull, "leave a/1", "current")
}

// Ensure that a live query on a standby sees what arrives there, in whole commits, goes on
// with a token of the standby, and ends when the standby is closed.
func TestLive_Standby(t *testing.T) {
	ctx := within(t)
	source := internal.Memory(t, nil)
	put(t, source, "Ants", "a/1", 1)
	s, err := standby.Open(filepath.Join(t.TempDir(), "copy"), standby.From(source), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
	internal.Must(t, err)
	defer s.Close()
	copied, err := s.DB(ctx)
	internal.Must(t, err)
	await := func(id string, there bool) {
		t.Helper()
		for more := internal.Patience(); ; {
			if is, err := copied.Exists(ctx, id); !more(err == nil && is == there) {
				internal.Must(t, err)
				return
			}
		}
	}
	await("a/1", true)
	q := copied.Query("Ants").Where(jay.Gt("N", 0))
	pull, stop := iter.Pull2(q.Live(ctx, ""))
	expect(t, pull, "enter a/1", "current")
	internal.Must(t, source.Update(ctx, func(tx *jay.Tx) error {
		for i := range 3 {
			if _, err := tx.Put(ctx, fmt.Sprint("a/", i), []byte(fmt.Sprintf(`{"N":%d}`, i)), jay.InCollection("Ants")); err != nil {
				return err
			}
		}
		return nil
	}))
	token := expect(t, pull, "change a/1", "enter a/2", "current").Token
	stop()
	internal.Must(t, source.Delete(ctx, "a/2"))
	await("a/2", false)
	pull, stop = iter.Pull2(q.Live(ctx, token))
	defer func() { stop() }()
	expect(t, pull, "leave a/2 again", "current")
	internal.Must(t, s.Close())
	if _, err, ok := pull(); !ok || !errors.Is(err, jay.ErrClosed) {
		t.Errorf("of a closed standby: %v, want ErrClosed", err)
	}
}

// Ensure that on an engine whose snapshots expire, wherever that happens, a live query has
// the answers, or ends with ErrSnapshotExpired; and that the goroutine that serves it does not try for ever.
func TestLive_ShortSnapshots(t *testing.T) {
	ctx := within(t)
	const age = 1_000_000
	var now, step atomic.Int64
	db := internal.Open(t, "a", &jay.Options{Engine: &memory.Driver{Limits: storage.Limits{SnapshotAge: age}, Now: func() time.Time { return time.Unix(0, now.Add(step.Load())) }}})
	for i := range 20 {
		put(t, db, "Ants", fmt.Sprint("a/", i), i)
	}
	q := db.Query("Ants").Where(jay.Ge("N", 10))
	pull, stop := iter.Pull2(q.Live(ctx, ""))
	for range 10 {
		next(t, pull)
	}
	token := expect(t, pull, "current").Token
	stop()
	want := make(map[string]bool)
	for i := range 20 {
		put(t, db, "Ants", fmt.Sprint("a/", i), i+3)
		if i+3 >= 10 {
			want[fmt.Sprint("a/", i)] = true
		}
	}
	ended, came := 0, 0
	for reads := int64(1); reads < 400 && came < 3; reads += 1 + reads/20 {
		for _, token := range []string{"", token} {
			has := make(map[string]bool)
			if token != "" {
				for i := 10; i < 20; i++ {
					has[fmt.Sprint("a/", i)] = true
				}
			}
			step.Store(age/reads + 1)
			for e, err := range q.Live(ctx, token) {
				if err != nil {
					if ended++; !errors.Is(err, jay.ErrSnapshotExpired) {
						t.Fatalf("after %d reads: %v", reads, err)
					}
					break
				}
				if e.Kind == jay.LiveLeave {
					delete(has, e.ID)
				} else if e.Kind != jay.LiveCurrent {
					has[e.ID] = true
				} else {
					if len(has) != len(want) {
						t.Fatalf("after %d reads it has %v, want %v", reads, has, want)
					}
					if token != "" {
						came++
					}
					break
				}
			}
			step.Store(0)
		}
	}
	if ended == 0 || came < 3 {
		t.Errorf("%d ended, %d came to the answers", ended, came)
	}
}

// Ensure that a live query that the dispatcher serves, and the clock of the program panics
// there, panics in its loop; and that the next live query is served.
func TestLive_Panic(t *testing.T) {
	ctx := within(t)
	var panics atomic.Bool
	restore := checks.NoSweeper()
	db := internal.Memory(t, &jay.Options{ExactExpiry: true, Now: func() time.Time {
		if panics.Load() && strings.Contains(string(debug.Stack()), "live.(*Queries).dispatch") {
			panic("of the clock")
		}
		return time.Now()
	}})
	restore()
	pull, stop := iter.Pull2(db.Query("Ants").Live(ctx, ""))
	expect(t, pull, "current")
	put(t, db, "Ants", "a/1", 1)
	expect(t, pull, "enter a/1", "current")
	panics.Store(true)
	internal.Put(t, db, "a/2", `{"N":1}`, jay.InCollection("Ants"), jay.WithTTL(time.Hour))
	func() {
		defer func() {
			if r := recover(); r != "of the clock" {
				t.Errorf("panicked with %v", r)
			}
		}()
		pull()
	}()
	stop()
	panics.Store(false)
	pull, stop = iter.Pull2(db.Query("Ants").Live(ctx, ""))
	defer stop()
	expect(t, pull, "enter a/1", "enter a/2", "current")
	put(t, db, "Ants", "a/3", 1)
	expect(t, pull, "enter a/3", "current")
}

// Ensure that a live query can use all the memory that there is for answers: while it joins, they are not held twice.
func TestLive_MemoryOfOne(t *testing.T) {
	ctx := within(t)
	db := jaytest.Open(t, &jay.Options{MaxMemory: 64 << 20})
	w, err := db.BulkInsert(nil)
	internal.Must(t, err)
	long := strings.Repeat("x", 400)
	for i := range 15_000 {
		_, err := w.Put(ctx, fmt.Sprintf("all/%s%05d", long, i), fmt.Appendf(nil, `{"N":%d}`, i), jay.InCollection("All"))
		internal.Must(t, err)
	}
	internal.Must(t, w.Close())
	var last error
	for _, err := range db.Query("All").Live(ctx, "") {
		if last = err; err != nil {
			break
		}
	}
	var full *jay.MemoryError
	if !errors.As(last, &full) {
		t.Fatalf("%v, want a *MemoryError", last)
	}
	n := int(full.Most * 7 / 10 / (96 + 409))
	pull, stop := iter.Pull2(db.Query("All").Where(jay.Lt("N", n)).Live(ctx, ""))
	defer stop()
	for range n {
		next(t, pull)
	}
	expect(t, pull, "current")
	internal.Must(t, db.Delete(ctx, fmt.Sprintf("all/%s%05d", long, 7)))
	if text, _ := next(t, pull); !strings.HasPrefix(text, "leave ") {
		t.Error(text)
	}
}

// Ensure that a live query of a program that looks into the database of another one sees what that commits, and ends when
// the other one closes it.
func TestLive_Look(t *testing.T) {
	ctx := within(t)
	dir := filepath.Join(t.TempDir(), "shop")
	db := internal.Open(t, dir, nil)
	put(t, db, "Ants", "a/1", 1)
	internal.Must(t, db.Flush(ctx))
	seen, err := jay.Look(dir, nil)
	internal.Must(t, err)
	defer seen.Close()
	pull, stop := iter.Pull2(seen.Query("Ants").Where(jay.Gt("N", 0)).Live(ctx, ""))
	defer stop()
	expect(t, pull, "enter a/1", "current")
	put(t, db, "Ants", "a/2", 2)
	expect(t, pull, "enter a/2", "current")
	put(t, db, "Ants", "a/1", 0)
	expect(t, pull, "leave a/1", "current")
	internal.Must(t, db.Close())
	if _, err, ok := pull(); !ok || err == nil || ctx.Err() != nil {
		t.Errorf("of a database that its program has closed: %v", err)
	}
}

// Ensure that a group has each document at most once, also one that was deleted and stored again: the deletion came as well, and an answer that
// had never left was told to have.
func TestLive_DeletedAndStored(t *testing.T) {
	ctx := within(t)
	db := internal.Memory(t, nil)
	for _, c := range []struct {
		name, collection, want string
		act                    func() error
	}{
		{"in one transaction", "Ants", "change a/1", func() error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if err := tx.Delete(ctx, "a/1"); err != nil {
					return err
				}
				_, err := tx.Put(ctx, "a/1", []byte(`{"N":7}`), jay.InCollection("Ants"))
				return err
			})
		}},
		{"respelled", "Ants", "change a/1", func() error {
			_, err := db.RenameCollection(ctx, "Ants", "ANTS")
			return err
		}},
		{"renamed, all documents", "", "change a/1", func() error {
			_, err := db.RenameCollection(ctx, "Ants", "Bees")
			return err
		}},
		{"renamed, its own", "Ants", "leave a/1", func() error {
			_, err := db.RenameCollection(ctx, "Ants", "Bees")
			return err
		}},
	} {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, resumed %t", c.name, resumed), func(t *testing.T) {
				_, err := db.DropCollection(ctx, "Bees")
				internal.Must(t, err)
				put(t, db, "Ants", "a/1", 1)
				query := db.Query(c.collection)
				pull, stop := iter.Pull2(query.Live(ctx, ""))
				last := expect(t, pull, "enter a/1", "current")
				want := c.want
				if resumed {
					stop()
					internal.Must(t, c.act())
					pull, stop = iter.Pull2(query.Live(ctx, last.Token))
					want = strings.Replace(want, "change", "enter", 1) + " again" // it is not known what the caller has
				} else {
					internal.Must(t, c.act())
				}
				defer stop()
				expect(t, pull, want, "current")
			})
		}
	}
}

// Ensure that a token goes on after crashes, each of which takes many etags: the records of deletions were kept for the newest 1,000 etags, so
// that one crash made all tokens before it useless.
func TestLive_TokenAfterCrashes(t *testing.T) {
	ctx := within(t)
	db := jaytest.Open(t, nil)
	for i := range 3 {
		put(t, db.DB, "Ants", fmt.Sprint("a/", i), i)
	}
	pull, stop := iter.Pull2(db.Query("Ants").Live(ctx, ""))
	last := expect(t, pull, "enter a/0", "enter a/1", "enter a/2", "current")
	stop()
	internal.Must(t, db.Delete(ctx, "a/1"))
	for range 3 {
		db.CutPower(0)
		put(t, db.DB, "Bees", "b/1", 1)
		internal.Must(t, db.Delete(ctx, "b/1")) // else nothing would be removed
		db.Restart()
	}
	pull, stop = iter.Pull2(db.Query("Ants").Live(ctx, last.Token))
	defer stop()
	expect(t, pull, "leave a/1 again", "leave b/1 again", "leave b/1 again", "leave b/1 again", "current")
}
