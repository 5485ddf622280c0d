package odd_test

import (
	"fmt"
	"strings"
)

// orders makes an order.
func (o *odds) orders(q *rql) []string {
	var list []string
	for range 1 + o.IntN(2) {
		switch n := o.IntN(100); {
		case n < 80:
			list = append(list, o.field()+o.pick("", "", "", " as long", " as double", " as string")+o.pick("", " desc", " asc"))
		case n < 88:
			list = append(list, "spatial.distance("+o.pick(places...)+", "+o.pick("spatial.point(52.52, 13.4)", "spatial.point(0, 0)")+")"+o.pick("", " desc"))
		case n < 94:
			v := "vector.distance(V, " + q.bind(o.pick(vectors[:5]...)) + o.pick("", ", 'euclidean'", ", 'dot'") + ")"
			list = append(list, o.pick(v, "exact("+v+")")+o.pick("", " desc"))
		default:
			list = append(list, "id()"+o.pick("", " desc"))
		}
	}
	return list
}

// columns adds columns to a query.
func (o *odds) columns(q *rql) {
	list := make([]string, 1+o.IntN(3))
	for i := range list {
		list[i] = o.field() + fmt.Sprintf(" as C%d", i)
	}
	q.selected = strings.Join(list, ", ")
	if o.chance(30) {
		q.distinct, q.selected = true, "distinct "+q.selected
	} else if o.chance(50) && q.order == nil {
		q.order = o.orders(q)
	}
}

var grouped = []string{"count() as Count", "sum(N) as SumN", "sum(M) as SumM", "avg(M) as Avg", "min(M) as MinM", "max(N) as MaxN", "min(A) as MinA", "max(B) as MaxB", "count(distinct M) as Different", "count(distinct Tags) as Tagged", "list(distinct M) as ListM", "list(M) as Ms", "first(M order by At) as FirstM", "last(M order by At as date) as LastM", "sum(N * M) as Product", "sum(if(M > 2, M)) as Large", "min(At as date) as Since", "sum(Lines.Q) as Q", "avg(N) as AvgN", "last(A order by M) as LastA"}

// groups makes a query one of groups.
func (o *odds) groups(q *rql) {
	by := o.pick("B", "B", "M", "A", "Tags", "Tags[]", "Lines.P", "O.N", "year(At)", "At as date", "B, M", "N", "M, B", "Lines.P, Lines.Q", "Nil", "nowhere", "if(M > 2, 'big', B)", "load(Ref).B", "dateTrunc('month', At)", "")
	q.group, q.order = by, nil
	var list []string
	if by != "" && o.chance(80) {
		for i, f := range strings.Split(by, ", ") {
			if strings.Contains(by, "(") {
				list = append(list, "key() as Key")
				break
			}
			list = append(list, fmt.Sprintf("%s as Key%d", f, i))
		}
	}
	for range 1 + o.IntN(3) {
		list = append(list, o.pick(grouped...))
	}
	seen := make(map[string]bool)
	kept := list[:0]
	for _, c := range list {
		if !seen[c] {
			seen[c] = true
			kept = append(kept, c)
		}
	}
	q.selected = strings.Join(kept, ", ")
	if o.chance(40) && by != "" {
		q.where = append(q.where, o.pick("count() > 1", "sum(M) > 3", "count() between 1 and 3", "max(M) = 3", "min(M) < max(N)"))
	}
	if o.chance(30) && by != "" && strings.Contains(q.selected, "count()") {
		q.order = []string{o.pick("count()", "count() desc")}
	}
}

// facetsOf makes a query one of facets.
func (o *odds) facetsOf(q *rql) {
	q.facets, q.order = true, nil
	list := make([]string, 1+o.IntN(2))
	for i := range list {
		list[i] = o.pick("facet(B)", "facet(B, sum(M))", "facet(M, avg(N), max(N))", "facet(Tags)", "facet(M < 2, M >= 2)", "facet(A)", "facet(N <= 1, N > 1 and N < 100, N >= 100)", "facet(Lines.P)", "facet(B, $v0)", "facet(At < '2026-01-01T00:00:00Z', At >= '2026-01-01T00:00:00Z')", "facet(Nil)", "facet(O)", "facet(sum(M))", "facet(B, min(A))", "facet(id('odd/1'))", "facet(id('facets/1'))") + fmt.Sprintf(" as F%d", i)
	}
	q.values["v0"] = o.pick(`{"PageSize":2}`, `{"TermSortMode":"CountDesc"}`, `{"TermSortMode":"ValueDesc","Start":1}`, `{"IncludeRemainingTerms":true,"PageSize":1}`, `{}`, `{"PageSize":-1}`, `{"None":1}`, `null`, `[]`)
	q.selected = strings.Join(list, ", ")
}

// projection makes rows by JavaScript.
func (o *odds) projection(q *rql) {
	q.from += " as o"
	if o.chance(50) && q.order == nil {
		q.order = o.orders(q)
	}
	row := o.pick("{ A: o.A, N: o.N }", "{ X: o.N + o.M, Y: o.B + '' }", "{ L: o.Lines.map(l => l.P) }", "{ Id: id(o), C: getMetadata(o)['@collection'] }", "{ X: o['x.y'], E: o[''] }", "{ J: JSON.stringify(o.A), K: Object.keys(o.O || {}) }", "{ T: typeof o.A, S: String(o.N) }", "{ R: load(o.Ref) }", "{ D: new Date(o.At).getFullYear() }", "{ A: o.A.A.A, N: -o.N, M: o.M * 1.5, Q: o.N === o.M }", "{ F: (o.Tags || []).length, G: o.T.toUpperCase() }", "{ P: parseInt(o.A), Q: Number(o.A), R: o.N.toFixed(2) }", "{ ...o }", "{ S: [...o.Tags].sort() }", "{ M: Math.max(o.N, o.M), Z: o.N / o.M, Y: o.N % o.M }")
	if o.chance(50) {
		row = o.row()
	}
	switch o.IntN(3) {
	case 0:
		q.load, q.selected = "o.Ref as r", "{ B: r.B, R: r }"
	case 1:
		q.declare, q.selected = "declare function f(o) { return "+row+"; }", "f(o)"
	default:
		q.selected = row
	}
}

// elements makes a query one of elements.
func (o *odds) elements(q *rql) {
	q.order = nil
	q.each = "each " + o.pick("Lines as line", "Tags as line", "A as line", "Lines.P as line", "O as line")
	if o.chance(40) {
		q.where = append(q.where, o.pick("line.Q > 1", "line.P = 'a'", "exists(line.P)", "line.P = 1 or line.Q = 2", "line = 'a'"))
	}
	if o.chance(50) {
		q.group = o.pick("line.P", "line.P", "line.Q", "B", "line")
		q.selected = "key() as Key, " + o.pick("count() as Count", "sum(line.Q) as Sum, sum(line.Q * M) as Product", "min(line.Q) as Min, max(line.Q) as Max", "count(distinct line.Q) as Different, count() as Count")
	} else {
		q.selected = o.pick("line as L, id() as Id", "line.P as P, B", "line.Q * M as X")
	}
}
