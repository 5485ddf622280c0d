package simulation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

func exchangeValue(w *world) {
	name := fmt.Sprintf("lock/%d", w.intn(6))
	key := exchange + name
	old := w.model.state[key]
	var index uint64
	var want error
	if old != nil {
		index = old.index
	}
	if index == 0 && old != nil { // it is not known since a crash
		x, err := w.db.CompareExchange().Get(ctx, name)
		w.must(err)
		index = x.Index
	}
	if w.intn(4) == 0 {
		index, want = index+1, jay.ErrConflict
	}
	if old != nil && w.intn(3) == 0 {
		w.call(&entry{changes: []change{{key, nil}}}, want, func() (func(), error) {
			return nil, w.db.CompareExchange().Delete(ctx, name, index)
		})
		return
	}
	w.model.serial++
	to := &doc{id: name, n: w.model.serial}
	e := &entry{changes: []change{{key, to}}}
	fmt.Fprintf(w.log, "%s = %d. ", name, to.n)
	w.call(e, want, func() (func(), error) {
		next, err := w.db.CompareExchange().Put(ctx, name, to.n, index)
		return func() {
			if next <= index {
				w.fail("%s has index %d after %d", name, next, index)
			}
			w.giveIndex(name, next)
			to.index = next
		}, err
	})
}

// giveIndex notes the index of a value: none comes twice.
func (w *world) giveIndex(name string, index uint64) {
	if before, given := w.model.given[index]; given {
		w.fail("%s has the index %d, which %s has had", name, index, before)
	}
	w.model.given[index] = name
}

func attach(w *world) {
	key := w.pick(w.model.documents(""))
	if key == "" {
		return
	}
	old := w.model.state[key]
	w.model.serial++
	name, d := w.pick(names), *old
	d.files, d.version = maps.Clone(old.files), ""
	if d.files == nil {
		d.files = make(map[string]int)
	}
	d.files[name] = []int{0, 1, 2, 57, 130, 399}[w.intn(6)] // documents share contents
	to := &d
	if w.settings.revisions {
		to.revisions = append([]int{d.n}, old.revisions...)
	}
	fmt.Fprintf(w.log, "%s = %d of %s. ", name, d.files[name], old.id)
	w.call(&entry{changes: []change{{key, to}}}, nil, func() (func(), error) {
		_, err := w.db.Attachments(old.id).Put(ctx, name, strings.NewReader(content(d.files[name])))
		return nil, err
	})
}

func detach(w *world) {
	var keys []string
	for _, key := range w.model.documents("") {
		if len(w.model.state[key].files) > 0 {
			keys = append(keys, key)
		}
	}
	key := w.pick(keys)
	if key == "" {
		return
	}
	old := w.model.state[key]
	name := w.pick(slices.Sorted(maps.Keys(old.files)))
	d := *old
	d.files, d.version = maps.Clone(old.files), ""
	if delete(d.files, name); len(d.files) == 0 {
		d.files = nil
	}
	if w.settings.revisions {
		d.revisions = append([]int{d.n}, old.revisions...)
	}
	fmt.Fprintf(w.log, "%s of %s. ", name, old.id)
	w.call(&entry{changes: []change{{key, &d}}}, nil, func() (func(), error) {
		return nil, w.db.Attachments(old.id).Delete(ctx, name)
	})
}
