package odd_test

import (
	"regexp"
	"strings"
)

// rql is a query in parts, so that a failing one can be made smaller.
type rql struct {
	declare, from, each string
	use                 string // the name of an index, which the other database does not have
	group               string
	where               []string // joined by and
	order               []string
	load, selected      string
	include             string
	limit               string
	values              map[string]string // of parameters, as JSON

	facets, distinct, unordered bool // what comes has no order that is decided
}

// text is the query.
func (q *rql) text() string {
	parts := []string{q.declare, q.from, q.each}
	if q.use != "" {
		parts = append(parts, "use index '"+q.use+"'")
	}
	if q.group != "" {
		parts = append(parts, "group by "+q.group)
	}
	if len(q.where) > 0 {
		parts = append(parts, "where "+strings.Join(q.where, " and "))
	}
	if len(q.order) > 0 {
		parts = append(parts, "order by "+strings.Join(q.order, ", "))
	}
	if q.load != "" {
		parts = append(parts, "load "+q.load)
	}
	if q.selected != "" {
		parts = append(parts, "select "+q.selected)
	}
	if q.include != "" {
		parts = append(parts, "include "+q.include)
	}
	parts = append(parts, q.limit)
	var b strings.Builder
	for _, part := range parts {
		if part != "" && b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(part)
	}
	return b.String()
}

var parameter = regexp.MustCompile(`\$[pv][0-9]+`)

// parameters are the values of the parameters that the text names, as a JSON object.
func (q *rql) parameters() string {
	var parts []string
	seen := make(map[string]bool)
	for _, name := range parameter.FindAllString(q.text(), -1) {
		if value, has := q.values[name[1:]]; has && !seen[name] {
			seen[name] = true
			parts = append(parts, member(name[1:], value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// ordered reports whether the order of all answers is decided.
func (q *rql) ordered() bool {
	return (len(q.order) > 0 && q.group == "" && !q.unordered && !q.distinct && q.each == "") || q.facets
}

// needsIndex reports whether the guide says that the answer depends on an index: words that are known to it, and its
// analyzers.
func (q *rql) needsIndex() bool {
	text := q.text()
	return strings.Contains(text, "moreLikeThis(") || strings.HasPrefix(q.selected, "suggest(") || strings.HasPrefix(q.selected, "complete(")
}

// whole reports whether every answer comes, so that the answers are decided if their order is not.
func (q *rql) whole() bool { return q.limit == "" }

// smaller returns queries with one part less.
func (q *rql) smaller() []*rql {
	var list []*rql
	less := func(change func(c *rql)) {
		c := *q
		c.where, c.order = append([]string(nil), q.where...), append([]string(nil), q.order...)
		change(&c)
		if c.text() != q.text() {
			list = append(list, &c)
		}
	}
	less(func(c *rql) { c.limit = "" })
	less(func(c *rql) { c.include = "" })
	less(func(c *rql) { c.order = nil })
	less(func(c *rql) {
		c.selected, c.load, c.declare, c.group, c.distinct, c.facets = "", "", "", "", false, false
	})
	less(func(c *rql) { c.where = nil })
	for i := range q.where {
		less(func(c *rql) { c.where = append(c.where[:i:i], c.where[i+1:]...) })
	}
	for i := range q.order {
		less(func(c *rql) { c.order = append(c.order[:i:i], c.order[i+1:]...) })
	}
	return list
}

// along makes conditions and an order that an index can answer.
func (o *odds) along(q *rql, d declaration) {
	q.from = "from Odd"
	if len(q.where) > 1 {
		q.where = q.where[:1]
	}
	if d.Where != "" && o.chance(80) {
		q.where = append(q.where, d.Where)
	}
	if d.Kind != "" {
		return
	}
	bound := o.IntN(len(d.Fields) + 1)
	for i, f := range d.Fields {
		f, down := strings.CutPrefix(f, "-")
		switch {
		case i < bound && o.chance(50):
			q.where = append(q.where, f+" = "+o.near(q, f))
		case i < bound && o.chance(30):
			q.where = append(q.where, f+" in ("+o.near(q, f)+", "+o.near(q, f)+")")
		case i < bound:
			q.where = append(q.where, o.pick(f+" "+o.pick("<", "<=", ">", ">=")+" "+o.near(q, f), o.between(q, f), o.between(q, f), "startsWith("+f+", 'a')", "exact("+f+" = "+o.near(q, f)+")", f+" = null"))
		case o.chance(60):
			order := f
			if down != o.chance(20) {
				order += " desc"
			}
			q.order = append(q.order, order)
		}
	}
}

// query makes a query of the collection. Half of them are what one of these indexes can answer.
func (o *odds) query(named ...declaration) *rql {
	q := &rql{values: make(map[string]string)}
	switch n := o.IntN(100); {
	case n < 88:
		q.from = "from Odd"
	case n < 92:
		q.from = "from Even"
	case n < 97:
		q.from = "from @all_docs"
	default:
		q.from = o.pick("from 'Wei rd'", "from odd", "from @empty", "from Nothing", "from 'Odd'")
	}
	for range []int{0, 1, 1, 1, 1, 2, 2, 3}[o.IntN(8)] {
		q.where = append(q.where, o.condition(q, 2))
	}
	if len(named) > 0 && o.chance(50) {
		o.along(q, named[o.IntN(len(named))])
	}
	switch n := o.IntN(100); {
	case n < 45:
		if o.chance(50) && q.order == nil {
			q.order = o.orders(q)
		}
		if o.chance(25) {
			q.include = o.pick("Ref", "Ref, A", "Tags", "Lines.P", "O", "Nil", "N", "nowhere", "A", "timings()", "'x.y'", "explanations()", "highlight(T)", "highlight(A, 20, 2)", "highlight(Tags, 18)", "highlight(O.T, 0, 0)", "Ref.A", "Lines[].P", "load(Ref)", "O.$Keys")
		}
	case n < 60:
		o.columns(q)
	case n < 78:
		o.groups(q)
	case n < 84:
		o.facetsOf(q)
	case n < 92:
		o.projection(q)
	case n < 99:
		o.elements(q)
	default:
		q.where, q.selected = q.where[:min(len(q.where), 1)], o.pick("suggest", "complete")+"("+o.pick("T", "B", "A", "Tags")+", "+o.pick("'ok'", "'oka'", "'a'", "''", "('oak', 'lef')")+")"
	}
	if o.chance(25) && !q.facets {
		q.limit = o.pick("limit 3", "limit 5 offset 2", "offset 4", "limit 2, 3", "limit 0", "limit 1000000", "limit $p0")
		q.values["p0"] = o.pick("2", "null", "0", "-1", "1.5", `"2"`, "1e3", "9223372036854775808")
	}
	return q
}
