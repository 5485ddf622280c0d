package simulation_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// partPrefix begins the names of the parts of computed indexes, which the model does not have: what they are follows from the declarations.
const partPrefix = "computed:"

// What the maps of a computed index read. The model knows them by the member as of the map.
const (
	ofDocuments = ""       // each document
	ofHalves    = "half"   // what the function halves makes of it, in its first version
	ofThirds    = "third"  // what it makes in its second version
	ofLoaded    = "loaded" // the document that the text t names
)

// halved is what a function makes entries of, and an entry.
type halved struct {
	N int    `json:"n"`
	A *int   `json:"a"`
	T string `json:"t,omitempty"`
	U *int   `json:"u,omitempty"`
}

// halves makes two entries of a document, or fails. The model has the same in entriesOf.
func halves(d halved) ([]halved, error) {
	if d.T == unsplit {
		return nil, errors.New("a text that it does not take")
	}
	other := d
	other.A, other.N = nil, -d.N
	if d.A != nil {
		next := *d.A + 1
		other.A = &next
	}
	return []halved{d, other}, nil
}

// thirds makes one entry more.
func thirds(d halved) ([]halved, error) {
	all, err := halves(d)
	return append(all, d), err
}

// unsplit is the text of documents for which the functions fail.
const unsplit = "Red"

func init() {
	jay.RegisterFunction("simulation/halves", "1", halves)
	jay.RegisterFunction("simulation/halves", "2", thirds)
}

// computedOf is a declaration over some collections, whose maps are alike, so that a rename can make one of two.
func computedOf(name, source string, more bool, of ...string) (c jay.Computed) {
	member := ""
	switch source {
	case ofHalves:
		member = `"function":"simulation/halves","version":"1","as":"half",`
	case ofThirds:
		member = `"function":"simulation/halves","version":"2","as":"third",`
	}
	var maps []string
	for _, collection := range of {
		m := fmt.Sprintf(`{"collection":%q,%s"select":[`, collection, member)
		for i, path := range []string{"a", "n", "u"} {
			expression := path
			switch {
			case member != "":
				expression = source + "." + path
			case source == ofLoaded && path != "n":
				expression = "load(t)." + path
			}
			m += map[bool]string{true: ","}[i > 0] + fmt.Sprintf(`{"name":%q,"expression":%q}`, path, expression)
		}
		maps = append(maps, m+"]}")
	}
	results := `{"name":"a"},{"name":"c","expression":"count()"},{"name":"s","expression":"sum(n)"}`
	if more {
		results += `,{"name":"m","expression":"max(n)"},{"name":"f","expression":"first(n order by u)"}`
	}
	text := fmt.Sprintf(`{"name":%q,"maps":[%s],"reduce":{"groupBy":["a"],"select":[%s]}}`, name, strings.Join(maps, ","), results)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	return c
}

// sourceOf returns what the maps of a declaration read.
func sourceOf(m jay.Computed) string {
	if m.Maps[0].As == "" && strings.HasPrefix(m.Maps[0].Select[0].Expression, "load(") {
		return ofLoaded
	}
	return m.Maps[0].As
}

// entriesOf returns what a document is in a computed index of a source.
func (w *world) entriesOf(source string, d *doc) []doc {
	other := doc{a: d.a, n: -d.n, u: d.u}
	if d.a >= 0 {
		other.a++
	}
	switch {
	case source == ofDocuments:
		return []doc{*d}
	case source == ofLoaded:
		entry := doc{n: d.n, a: -1, u: -1}
		if to := w.there(ids.Fold(d.text)); to != nil {
			entry.a, entry.u = to.a, to.u
		}
		return []doc{entry}
	case d.text == unsplit:
		return nil
	case source == ofThirds:
		return []doc{*d, other, *d}
	}
	return []doc{*d, other}
}

// computedIndex declares a computed index, in place of one that is declared otherwise, or drops it. Whether it is there is not a part of
// the model: what is there must answer rightly.
func computedIndex(w *world) {
	name := []string{"one", "two"}[w.intn(2)]
	if w.intn(4) == 0 {
		fmt.Fprintf(w.log, "drop %s. ", name)
		list, err := jay.ComputedOf(w.db).List(ctx)
		w.must(err)
		if slices.ContainsFunc(list, func(info jay.ComputedInfo) bool { return info.Name == name }) {
			w.changeComputed(func() error { return jay.ComputedOf(w.db).Drop(ctx, name) })
		}
		return
	}
	of := slices.Clone(collections[w.intn(len(collections)):])
	declared := computedOf(name, w.pick([]string{ofDocuments, ofHalves, ofThirds, ofLoaded}), w.intn(2) == 0, of...)
	fmt.Fprintf(w.log, "%s of %v %s, %d members. ", name, of, sourceOf(declared), len(declared.Reduce.Select))
	w.changeComputed(func() error { return jay.ComputedOf(w.db).Ensure(ctx, declared, jay.ReplaceIndex()) })
}

// changeComputed makes a call that declares or drops a computed index. One that was cut off leaves either.
func (w *world) changeComputed(fn func() error) {
	if !w.call(new(entry), nil, func() (func(), error) { return nil, fn() }) {
		w.again = func() {
			if err := fn(); err != nil && !errors.Is(err, jay.ErrIndex) {
				w.fail("computed index, again: %v", err)
			}
		}
	}
}

// askComputed compares the answers of each computed index with those of the model, by its parts and without them.
func askComputed(w *world) { w.askComputed(w.db) }

func (w *world) askComputed(db *jay.DB) {
	list, err := jay.ComputedOf(db).List(ctx)
	w.must(err)
	for _, info := range list {
		want := w.wantComputed(info)
		for _, how := range []string{"", " use no index"} {
			text := "from index '" + info.Name + "'" + how + " where a >= 0 order by a"
			q, err := db.RQL(text, nil)
			w.must(err)
			var got []string
			for row, err := range q.Iter(ctx) {
				w.must(err)
				got = append(got, string(row.JSON))
			}
			if !slices.Equal(got, want) {
				w.fail("%s, %s: gives %v, want %v", text, info.Algebra, got, want)
			}
		}
		fmt.Fprintf(w.log, "%s has %d groups. ", info.Name, len(want))
	}
}

// wantComputed returns what a computed index must answer.
func (w *world) wantComputed(info jay.ComputedInfo) (want []string) {
	groups, source := make(map[int][]doc), sourceOf(info.Computed)
	for _, collection := range collections {
		of := false
		for _, m := range info.Maps {
			of = of || strings.EqualFold(m.Collection, collection)
		}
		if !of {
			continue
		}
		for _, key := range w.model.documents(collection) {
			for _, entry := range w.entriesOf(source, w.model.state[key]) {
				if entry.a >= 0 {
					groups[entry.a] = append(groups[entry.a], entry)
				}
			}
		}
	}
	for _, a := range slices.Sorted(maps.Keys(groups)) {
		sum, most := 0, math.MinInt
		first := (*doc)(nil)
		for i := range groups[a] {
			d := &groups[a][i]
			sum, most = sum+d.n, max(most, d.n)
			if d.u >= 0 && (first == nil || cmp.Or(d.u-first.u, d.n-first.n) < 0) {
				first = d
			}
		}
		row := fmt.Sprintf(`{"a":%d,"c":%d,"s":%d`, a, len(groups[a]), sum)
		if len(info.Reduce.Select) > 3 {
			row += fmt.Sprintf(`,"m":%d`, most)
			if first == nil {
				row += `,"f":null`
			} else {
				row += fmt.Sprintf(`,"f":%d`, first.n)
			}
		}
		want = append(want, row+"}")
	}
	return want
}
