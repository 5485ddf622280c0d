package simulation_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay"
)

func renameCollection(w *world) {
	from, to := w.pick(collections), w.pick(collections)
	again := w.renaming != nil
	if again { // it was cut off, and others are refused until it has gone on
		from, to = w.renaming[0], w.renaming[1]
		for _, key := range w.model.documents(from) {
			if w.model.taken(to, w.model.state[key].u, key) {
				return // a document that was written meanwhile is in its way
			}
		}
	} else if from == to || len(w.model.documents(from)) == 0 || len(w.model.documents(to)) > 0 || w.hasIndexes(to) {
		return
	}
	e := &entry{each: true}
	for _, key := range w.model.documents(from) {
		d := *w.model.state[key]
		d.collection, d.version = to, ""
		if w.settings.revisions { // it is deleted in the one and new in the other
			d.revisions = append([]int{d.n, deleted}, d.revisions...)
		}
		e.changes = append(e.changes, change{key, &d})
	}
	fmt.Fprintf(w.log, "%s is now %s. ", from, to)
	if w.call(e, nil, func() (func(), error) {
		_, err := w.db.RenameCollection(ctx, from, to)
		if again && errors.Is(err, jay.ErrUsage) && len(w.model.documents(to)) > 0 { // it had not begun when it was cut off
			e.changes, w.renaming, err = nil, nil, nil
		}
		if again && len(e.changes) == 0 && errors.Is(err, jay.ErrNotFound) { // neither, and what there was has been deleted
			w.renaming, w.unready, err = nil, true, nil
		}
		return nil, err
	}) {
		if again && w.renaming == nil {
			return
		}
		for name, there := range w.model.indexes[from] {
			if there {
				w.index(to, name, true)
			}
		}
		delete(w.model.indexes, from)
		w.renaming = nil
		return
	}
	w.renaming = &[2]string{from, to}
	w.unready = true
}

// changeAll is a call that changes documents of a collection, each for itself.
func (w *world) changeAll(keys []string, to func(d *doc) *doc, fn func() error) bool {
	e := &entry{each: true}
	for _, key := range keys {
		e.changes = append(e.changes, change{key, to(w.model.state[key])})
	}
	fmt.Fprintf(w.log, "%d documents. ", len(keys))
	return w.call(e, nil, func() (func(), error) { return nil, fn() })
}

func dropCollection(w *world) {
	collection := w.pick(collections)
	if len(w.model.documents(collection)) == 0 && !w.hasIndexes(collection) {
		return
	}
	w.dropCollection(collection)
}

func (w *world) dropCollection(collection string) {
	fmt.Fprintf(w.log, "%s. ", collection)
	if w.changeAll(w.model.documents(collection), w.deletion, func() error { return second(w.db.DropCollection(ctx, collection)) }) {
		delete(w.model.indexes, collection)
		return
	}
	w.unready, w.again = true, func() { w.dropCollection(collection) }
}

// withA returns the documents of a collection with this a.
func (w *world) withA(collection string, a int) []string {
	keys := w.model.documents(collection)
	return slices.DeleteFunc(keys, func(key string) bool { return w.model.state[key].a != a })
}

func deleteByQuery(w *world) {
	collection, a := w.pick(collections), w.intn(7)
	w.changeAll(w.withA(collection, a), w.deletion, func() error {
		return second(w.db.Query(collection).Where(jay.Eq("a", a)).Delete(ctx))
	})
}

func patchByQuery(w *world) {
	patchMatching(w, func(collection string, a int, text string) error {
		return second(w.db.Query(collection).Where(jay.Eq("a", a)).Patch(ctx, jay.Set("t", text)))
	})
}

// patchMatching sets the text of the documents of a collection that have a value of a: run does so.
func patchMatching(w *world, run func(collection string, a int, text string) error) {
	collection, a := w.pick(collections), w.intn(7)
	text := texts[1+w.intn(len(texts)-1)]
	keys := slices.DeleteFunc(w.withA(collection, a), func(key string) bool { return w.model.state[key].text == text })
	w.changeAll(keys, func(d *doc) *doc {
		to := *d
		to.text, to.version = text, ""
		return w.after(d, &to)
	}, func() error { return run(collection, a, text) })
}
