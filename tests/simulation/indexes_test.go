package simulation_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jaydb/jay"
)

func createIndex(w *world) {
	w.createIndex(collections[w.intn(2)], w.pick(slices.Sorted(maps.Keys(declarations))))
}

func (w *world) createIndex(collection, name string) {
	var want error
	if name == "u" && !w.model.indexes[collection]["u"] {
		seen := make(map[int]bool)
		for _, key := range w.model.documents(collection) {
			u := w.model.state[key].u
			if u >= 0 && seen[u] {
				want = jay.ErrUnique
			}
			seen[u] = true
		}
	}
	fmt.Fprintf(w.log, "%s of %s. ", name, collection)
	if w.call(new(entry), want, func() (func(), error) {
		return nil, w.db.EnsureIndex(ctx, collection, declarations[name])
	}) {
		w.index(collection, name, true)
	} else if want == nil || w.failed {
		w.unready, w.again = true, func() { w.createIndex(collection, name) }
	}
}

func dropIndex(w *world) {
	collection, name := collections[w.intn(2)], w.pick(slices.Sorted(maps.Keys(declarations)))
	var want error
	if !w.model.indexes[collection][name] {
		want = jay.ErrIndex
	}
	fmt.Fprintf(w.log, "%s of %s. ", name, collection)
	if w.call(new(entry), want, func() (func(), error) { return nil, w.db.DropIndex(ctx, collection, name) }) {
		w.index(collection, name, false)
	} else if want == nil || w.failed {
		w.unready, w.again = true, func() {
			if err := w.db.DropIndex(ctx, collection, name); err != nil && !errors.Is(err, jay.ErrIndex) {
				w.fail("drop index, again: %v", err)
			}
			w.index(collection, name, false)
		}
	}
}

func (w *world) index(collection, name string, there bool) {
	if w.model.indexes[collection] == nil {
		w.model.indexes[collection] = make(map[string]bool)
	}
	w.model.indexes[collection][name] = there
}

// hasIndexes reports whether a collection has indexes.
func (w *world) hasIndexes(collection string) bool {
	for _, there := range w.model.indexes[collection] {
		if there {
			return true
		}
	}
	return false
}
