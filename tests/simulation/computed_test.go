package simulation_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// partPrefix begins the names of the parts of computed indexes, which the model does not have: what they are follows from the declarations.
const partPrefix = "computed:"

// computedOf is a declaration over some collections, whose maps are alike, so that a rename can make one of two.
func computedOf(name string, more bool, of ...string) (c jay.Computed) {
	var maps []string
	for _, collection := range of {
		maps = append(maps, fmt.Sprintf(`{"collection":%q,"select":[{"name":"a"},{"name":"n"},{"name":"u"}]}`, collection))
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
	declared := computedOf(name, w.intn(2) == 0, of...)
	fmt.Fprintf(w.log, "%s of %v, %d members. ", name, of, len(declared.Reduce.Select))
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
	groups := make(map[int][]*doc)
	for _, collection := range collections {
		of := false
		for _, m := range info.Maps {
			of = of || strings.EqualFold(m.Collection, collection)
		}
		if !of {
			continue
		}
		for _, key := range w.model.documents(collection) {
			if d := w.model.state[key]; d.a >= 0 {
				groups[d.a] = append(groups[d.a], d)
			}
		}
	}
	for _, a := range slices.Sorted(maps.Keys(groups)) {
		sum, most := 0, 0
		first := (*doc)(nil)
		for _, d := range groups[a] {
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
