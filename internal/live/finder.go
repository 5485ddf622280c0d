package live

import (
	"bytes"
	"slices"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// finder finds the watches that a document may satisfy: those of its collection whose
// conditions bound no field, and those with a bound that a value of the document lies in.
// So a document is not matched against every watch. The zero value has none.
type finder struct {
	of   map[string]*group // by folded collection; "" are the watches of all documents
	view exec.DocView
}

// group are the watches of one collection.
type group struct {
	watches map[*watch]struct{}
	stale   bool // the rest must be made anew

	rest   []*watch // without bounds
	reader *query.Reader
	fields []*intervals // of the reader
	key    []byte       // scratch
}

func (f *finder) add(w *watch) {
	if f.of == nil {
		f.of = make(map[string]*group)
	}
	g := f.of[w.collection]
	if g == nil {
		g = &group{watches: make(map[*watch]struct{})}
		f.of[w.collection] = g
	}
	g.watches[w], g.stale = struct{}{}, true
}

func (f *finder) remove(w *watch) {
	g := f.of[w.collection]
	if delete(g.watches, w); len(g.watches) == 0 {
		delete(f.of, w.collection)
	}
	g.stale = true
}

// watchesOf reports whether a document of this collection, as written, may satisfy a watch.
func (f *finder) watchesOf(collection []byte) bool {
	for name := range f.of {
		if name == "" || docs.SameCollection(collection, name) {
			return true
		}
	}
	return false
}

// find calls fn with the watches that the document may satisfy, with some of them more
// than once.
func (f *finder) find(e *env.Env, d *docs.Document, fn func(*watch)) {
	var doc query.Doc
	for name, g := range f.of {
		if name != "" && !d.IsIn(name) {
			continue
		}
		if doc.Meta == nil {
			doc = f.view.Of(e, d)
		}
		g.find(doc, fn)
	}
}

func (g *group) find(doc query.Doc, fn func(*watch)) {
	if g.stale {
		g.build()
	}
	for _, w := range g.rest {
		fn(w)
	}
	if g.reader == nil {
		return
	}
	g.reader.Reset(doc)
	for i, of := range g.fields {
		values := 0
		g.reader.Each(i, func(v query.Value) bool {
			values++
			g.key, _ = query.AppendKey(g.key[:0], v, false)
			of.find(g.key, fn)
			return true
		})
		if values > 1 {
			for _, w := range of.merged {
				fn(w)
			}
		}
	}
}

// build makes what find looks at.
func (g *group) build() {
	g.stale, g.rest, g.reader, g.fields = false, nil, nil, nil
	at := make(map[string]int)
	var fields []query.Field
	for w := range g.watches {
		if !w.bounded {
			g.rest = append(g.rest, w)
			continue
		}
		for _, b := range w.bounds {
			name := b.field.String()
			i, found := at[name]
			if !found {
				i = len(fields)
				at[name] = i
				fields, g.fields = append(fields, b.field), append(g.fields, new(intervals))
			}
			if g.fields[i].all = append(g.fields[i].all, interval{b.Lo, b.Hi, w}); b.merged {
				g.fields[i].merged = append(g.fields[i].merged, w)
			}
		}
	}
	for _, of := range g.fields {
		of.build()
	}
	if len(fields) > 0 {
		g.reader = query.NewReader(fields)
	}
}

// intervals finds the intervals that a key lies in. They are a search tree in an array:
// the middle of each part is its root.
type intervals struct {
	all  []interval // in the order of lo
	most [][]byte   // the greatest hi in the part of which this is the middle

	merged []*watch // those whose interval is of one value, and not of several: see bound
}

// interval is the keys from lo, inclusive, to hi, exclusive.
type interval struct {
	lo, hi []byte
	w      *watch
}

func (t *intervals) build() {
	slices.SortFunc(t.all, func(a, b interval) int { return bytes.Compare(a.lo, b.lo) })
	t.most = make([][]byte, len(t.all))
	t.measure(0, len(t.all))
}

// measure fills in most for the part from i to j, and returns the greatest hi of it.
func (t *intervals) measure(i, j int) (most []byte) {
	if i == j {
		return nil
	}
	middle := i + (j-i)/2
	most = t.all[middle].hi
	for _, hi := range [][]byte{t.measure(i, middle), t.measure(middle+1, j)} {
		if bytes.Compare(hi, most) > 0 {
			most = hi
		}
	}
	t.most[middle] = most
	return most
}

// find calls fn with the watches of the intervals that key lies in.
func (t *intervals) find(key []byte, fn func(*watch)) { t.findIn(0, len(t.all), key, fn) }

func (t *intervals) findIn(i, j int, key []byte, fn func(*watch)) {
	for i < j {
		middle := i + (j-i)/2
		if bytes.Compare(t.most[middle], key) <= 0 {
			return
		}
		t.findIn(i, middle, key, fn)
		if bytes.Compare(t.all[middle].lo, key) > 0 {
			return
		}
		if bytes.Compare(key, t.all[middle].hi) < 0 {
			fn(t.all[middle].w)
		}
		i = middle + 1
	}
}
