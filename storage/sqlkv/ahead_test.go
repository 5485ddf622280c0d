package sqlkv_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// Ensure that a snapshot has read the keys that the two before it were asked for, as they were at its own
// moment: it answers although its connection is lost. Keys that are not there are remembered, too.
func TestSnapshot_ReadsAhead(t *testing.T) {
	p := newProxy(t)
	e := open(t, new(sqlkv.Driver), p.name(newName(t)))
	defer e.Close()
	must(t, put(e, "there", "one"))
	for range 2 {
		s := e.Snapshot()
		equal(t, get(t, s, "there"), "one")
		equal(t, get(t, s, "absent"), "absent")
		must(t, s.Close())
	}
	s := e.Snapshot()
	defer s.Close()
	must(t, put(e, "there", "two"))
	must(t, put(e, "absent", "new"))
	p.closeAll()
	equal(t, get(t, s, "there"), "one")
	equal(t, get(t, s, "absent"), "absent")
	if _, _, err := s.Get([]byte("other")); err == nil || err == storage.ErrNotFound {
		t.Errorf("a key that was not read ahead, without a connection: got %v", err)
	}
	next := e.Snapshot()
	defer next.Close()
	equal(t, get(t, next, "there"), "two")
	equal(t, get(t, next, "absent"), "new")
}

// Ensure that a tracker that gets many keys finds each of them once although the connection is lost in
// the middle.
func TestTracker_GetsAgain(t *testing.T) {
	p := newProxy(t)
	e := open(t, new(sqlkv.Driver), p.name(newName(t)))
	defer e.Close()
	const many = 200
	keys := make([][]byte, many)
	must(t, e.Update(ctx, true, func(tx storage.Tx) error {
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "key%03d", i)
			tx.Set(keys[i], []byte(strings.Repeat(string(rune('a'+i%26)), 100<<10)), nil)
		}
		return nil
	}))
	w := e.TrackWrites()
	defer w.Close()
	found := make([]int, many)
	calls := 0
	must(t, w.(storage.ManyGetter).GetMany(keys, func(i int, value []byte) error {
		if len(value) != 100<<10 || value[0] != byte('a'+i%26) {
			t.Errorf("key %d has %d bytes of %q", i, len(value), value[0])
		}
		found[i]++
		if calls++; calls == 20 {
			p.closeAll()
		}
		return nil
	}))
	for i, n := range found {
		if n != 1 {
			t.Errorf("key %d is found %d times", i, n)
		}
	}
}

// someIDs returns IDs of which all but the last are there, one of them twice.
func someIDs(n int) []string {
	ids := []string{"notes/0", "notes/0"}
	for i := range 40 {
		ids = append(ids, fmt.Sprint("notes/", n-1-i))
	}
	return append(ids, "notes/none")
}

// Ensure that calls of a database take few round trips: a read one, and a commit two, whatever it
// writes. Other work of the database may fall into a call, so the least of many tries counts.
func TestTrips(t *testing.T) {
	p := newProxy(t)
	db, err := jay.Open(p.name(newName(t)), &jay.Options{Engine: new(sqlkv.Driver)})
	must(t, err)
	defer db.Close()
	must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"N"}}))
	n, other := 0, 0
	body := func() json.RawMessage { n++; return fmt.Appendf(nil, `{"N":%d}`, n) }
	put := func(tx interface {
		Put(ctx context.Context, id string, body json.RawMessage, opts ...jay.WriteOption) (jay.Metadata, error)
	}) {
		_, err := tx.Put(ctx, fmt.Sprint("notes/", n), body(), jay.InCollection("Notes"))
		must(t, err)
	}
	for _, call := range []struct {
		name string
		want int64
		do   func()
	}{
		{"put", 2, func() { put(db) }},
		{"batch", 2, func() {
			var b jay.Batch
			for range 50 {
				b.Put(fmt.Sprint("notes/", n), body(), jay.InCollection("Notes"))
			}
			_, err := db.Apply(ctx, &b)
			must(t, err)
		}},
		{"patch", 4, func() { // asks for the newest commit, reads the document, and commits
			_, err := db.Patch(ctx, "notes/0", jay.Increment("/N", 1))
			must(t, err)
		}},
		{"insert that is refused", 2, func() {
			_, err := db.Insert(ctx, "notes/0", json.RawMessage(`{}`), jay.InCollection("Notes"))
			if !errors.Is(err, jay.ErrExists) {
				t.Errorf("got %v", err)
			}
		}},
		{"get", 1, func() { _, err := db.Get(ctx, "notes/0"); must(t, err) }},
		{"exists", 1, func() { _, err := db.Exists(ctx, "notes/0"); must(t, err) }},
		{"many documents", 3, func() { // begins, reads, ends
			all, err := db.GetMany(ctx, someIDs(n)...)
			must(t, err)
			if all[0] == nil || all[1] == nil || all[len(all)-1] != nil {
				t.Errorf("got %v", all)
			}
		}},
		{"many documents in a view", 3, func() {
			must(t, db.View(ctx, func(tx *jay.Tx) error {
				all, err := tx.GetMany(ctx, someIDs(n)...)
				if err == nil && (all[0] == nil || all[1] == nil || all[len(all)-1] != nil) {
					t.Errorf("got %v", all)
				}
				return err
			}))
		}},
		{"query", 4, func() { // begins, reads entries and documents, ends
			all, err := db.Query("Notes").Where(jay.Lt("N", 5)).NoScan().All(ctx)
			must(t, err)
			if len(all) == 0 {
				t.Error("the query finds nothing")
			}
		}},
		{"view of two documents", 4, func() {
			must(t, db.View(ctx, func(tx *jay.Tx) error {
				other++ // else the keys are read ahead
				_, err := tx.Get(ctx, fmt.Sprint("notes/", other))
				_, err2 := tx.Get(ctx, fmt.Sprint("notes/", n-other))
				return errors.Join(err, err2)
			}))
		}},
		{"transaction that reads and writes three documents", 7, func() {
			must(t, db.Update(ctx, func(tx *jay.Tx) error {
				for range 3 {
					_, err := tx.Get(ctx, fmt.Sprint("notes/", n))
					if !errors.Is(err, jay.ErrNotFound) {
						return fmt.Errorf("got %w", err)
					}
					put(tx)
				}
				return nil
			}))
		}},
	} {
		var trips []int64
		for range 30 {
			before := p.trips.Load()
			call.do()
			time.Sleep(5 * time.Millisecond) // for the ends of snapshots; on a busy machine one may count for the next call
			trips = append(trips, p.trips.Load()-before)
		}
		slices.Sort(trips)
		if median := trips[len(trips)/2]; median != call.want {
			t.Errorf("%s: %d round trips, want %d: %v", call.name, median, call.want, trips)
		}
	}
}
