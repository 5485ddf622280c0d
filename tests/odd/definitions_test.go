package odd_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// queriesOfIndexes compares the answers of each definition with what is computed from documents, and with what it is
// after it was built again.
func (w *twins) queriesOfIndexes() {
	w.t.Helper()
	for _, d := range w.made {
		var list []*rql
		var asked []int
		var before []answers
		for range 5 {
			q, way := w.o.ofIndex(d), 0
			if w.o.chance(50) {
				way = w.o.IntN(len(ways))
			}
			a, fault := ways[way].ask(w.host, q, indexed)
			if fault != "" {
				w.t.Fatalf("%s: %s %s: %s", ways[way].name, q.text(), q.parameters(), fault)
			}
			list, asked, before = append(list, q), append(asked, way), append(before, a)
		}
		if w.o.chance(40) {
			if a, fault := w.send(request{method: "RESET", path: "/databases/" + indexed + "/indexes?name=" + url.QueryEscape(d.name)}, 0); fault != "" {
				w.t.Fatalf("reset %s: %s %d %s", d.name, fault, a.status, a.body)
			}
		}
		for i, q := range list {
			w.sameOfIndex(q, asked[i], before[i], "after a reset")
			c := *q
			c.from += " use no index"
			w.sameOfIndex(&c, asked[i], before[i], "without the index")
		}
		w.optionsOfIndex(w.o.ofIndex(d))
		q := w.o.ofIndex(d)
		w.alsoStreamed(q)
		w.alsoInParts(q)
	}
}

// sameOfIndex asks a query again, whose answers are known.
func (w *twins) sameOfIndex(q *rql, way int, before answers, when string) {
	w.t.Helper()
	a, fault := ways[way].ask(w.host, q, indexed)
	if fault == "" {
		fault = compare(q, before, a)
	}
	if fault != "" {
		w.t.Errorf("%s: %s %s: %s\nbefore: %s\n%s: %s", ways[way].name, q.text(), q.parameters(), fault, before, when, a)
	}
}

// alsoInParts compares pages by number with a page of all answers.
func (w *twins) alsoInParts(q *rql) {
	w.t.Helper()
	if !w.o.chance(30) || !q.whole() || !q.ordered() || q.facets {
		return
	}
	whole, fault := posted(w.host, q, indexed)
	if fault != "" || whole.status >= http.StatusBadRequest {
		return // the same request was looked at
	}
	var parts []string
	for start, size := 0, 1+w.o.IntN(9); ; start += size {
		body := strings.TrimSuffix(q.body(), "}") + fmt.Sprintf(`,"Start":%d,"PageSize":%d}`, start, size)
		r := request{method: http.MethodPost, path: "/databases/" + indexed + "/queries", body: body}
		a, fault := w.send(r, 0)
		if fault != "" || a.status >= http.StatusBadRequest {
			w.t.Errorf("%s: %s: %d %s", r, fault, a.status, a.body)
			return
		}
		part, fault := resultOf(a.status, []byte(a.body))
		if fault != "" || !slices.Equal(part.rest, whole.rest) {
			w.t.Errorf("%s: %s: %s, and of all %s", r, fault, part, whole)
			return
		}
		parts = append(parts, part.rows...)
		if len(part.rows) < size {
			break
		}
	}
	if !slices.Equal(parts, whole.rows) {
		w.t.Errorf("%s %s: the pages are %s, and all answers %s", q.text(), q.parameters(), clip(strings.Join(parts, " "), 3000), whole)
	}
}

// optionsOfIndex asks a query with options that change the answers, which may be any.
func (w *twins) optionsOfIndex(q *rql) {
	w.t.Helper()
	r := request{method: http.MethodPost, path: "/databases/" + indexed + w.o.pick("/queries", "/queries?debug=entries", "/queries?metadataOnly=true", "/queries?debug=explain", "/streams/queries", "/streams/queries?format=jsonl"), body: w.o.options(q.body())}
	w.try(r, 0)
}

// ofIndex makes a query of an index.
func (o *odds) ofIndex(d definition) *rql {
	q := &rql{from: fmt.Sprintf("from index '%s'", d.name), values: make(map[string]string), unordered: d.reduced}
	for range o.IntN(3) {
		f := o.pick(d.fields...)
		switch o.IntN(6) {
		case 0:
			q.where = append(q.where, "exists("+f+")")
		case 1:
			q.where = append(q.where, f+" in ("+o.operand(q)+", "+o.near(q, f)+")")
		case 2:
			q.where = append(q.where, o.pick("not ", "exact", "")+"("+o.between(q, f)+")")
		case 3:
			q.where = append(q.where, o.pick("startsWith", "search", "endsWith", "contains")+"("+f+", "+o.literal(q, o.pick(`"a"`, `"oak"`, `""`, `"b*"`))+")")
		default:
			q.where = append(q.where, f+" "+o.pick(operators...)+" "+o.near(q, f))
		}
	}
	if o.chance(40) {
		q.order = []string{o.pick(d.fields...) + o.pick("", " desc", " as long", " as string desc")}
	}
	switch n := o.IntN(100); {
	case n < 25:
		q.selected = o.pick(d.fields...) + o.pick("", ", A", ", Ref as R, Lines[].P as P", ", id()", ", "+d.fields[0]+" as F0")
	case n < 32:
		q.selected, q.distinct = "distinct "+o.pick(d.fields...), true
	case n < 40:
		q.from += " as o"
		q.selected = o.pick("{ F: o."+d.fields[0]+" }", o.row())
	case n < 45:
		q.selected, q.facets, q.order = "facet("+o.pick(d.fields...)+")", true, nil
	}
	if o.chance(40) && !q.facets {
		q.include = o.pick("Ref", "A", "N", "Nil", "Tags", "Lines", "Lines[].P", "O", "'x.y'", "B", "V", "At", "nowhere", strings.Join(d.fields, ", "), d.fields[0])
	}
	if o.chance(15) && !q.facets {
		q.limit = o.pick("limit 3", "limit 2 offset 1", "limit 0")
	}
	return q
}
