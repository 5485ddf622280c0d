package indexer_test

// This file puts states into the catalog that no call makes.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/query"
)

// Ensure that an index makes only the transitions that the table in
// internal/indexer/task.go lists, and that no other can be committed.
func TestIndexRecord_Move(t *testing.T) {
	states := []jay.IndexState{catalog.Gone, jay.IndexBuilding, jay.IndexReady, jay.IndexDropping}
	var got []string
	for _, from := range states {
		for _, to := range states {
			r := catalog.Record{Next: 3, Indexes: []catalog.RecordEntry{{Number: 1, Info: jay.IndexInfo{State: jay.IndexReady}}}}
			if from != catalog.Gone {
				r.Indexes = append(r.Indexes, catalog.RecordEntry{Number: 2, Info: jay.IndexInfo{State: from}})
			}
			before := slices.Clone(r.Indexes)
			moved := func() (ok bool) {
				defer func() { ok = recover() == nil }()
				r.Move(2, to)
				return
			}()
			if moved {
				got = append(got, fmt.Sprintf("%s→%s", from, to))
			} else if fmt.Sprint(r.Indexes) != fmt.Sprint(before) {
				t.Errorf("%q → %q is refused, and changes the record to %+v", from, to, r.Indexes)
			}
			if r.Indexes[0].State != jay.IndexReady {
				t.Errorf("%q → %q changes another index", from, to)
			}
		}
	}
	want := "[building→ready building→dropping ready→dropping dropping→]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Ensure that a build that panics does not end the process, that EnsureIndex
// returns the panic whenever it is asked, and that the index can be dropped.
func TestEnsureIndex_BuildPanics(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "things/1", []byte(`{"a":1}`), jay.InCollection("Things")); err != nil {
		t.Fatal(err)
	}
	broken := jay.Index{Name: "a", Fields: []string{"a"}}
	c := *parts.Of(db).Indexes.Load()
	c.Record.Next = 2
	c.Record.Indexes = []catalog.RecordEntry{{Number: 1, Info: jay.IndexInfo{Index: broken, Collection: "Things", State: jay.IndexBuilding}}}
	ix, err := catalog.Open(c.Record.Indexes[0])
	if err != nil {
		t.Fatal(err)
	}
	ix.Filter = query.Exists{}
	ix.Matchers = &sync.Pool{New: func() any { panic("a bug") }}
	c.All = []*catalog.Index{ix}
	parts.Of(db).Indexes.Replace(&c)

	for range 2 {
		err := db.EnsureIndex(ctx, "Things", broken)
		if !errors.Is(err, indexer.ErrTaskEnded) || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("got %v", err)
		}
	}
	if err := db.DropIndex(ctx, "Things", "a"); err != nil {
		t.Error(err)
	}
	if infos, err := db.Indexes(ctx, ""); err != nil || len(infos) != 0 {
		t.Errorf("indexes: %+v, %v", infos, err)
	}
	if err := db.EnsureIndex(ctx, "Things", broken); err != nil {
		t.Errorf("after the drop: %v", err)
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
}
