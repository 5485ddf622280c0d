package plan

import (
	"errors"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// Cover makes documents from the entries of a covering index. Such a document has
// what one query looks at and nothing else, so that the document itself need not be
// read. An entry that is not covering is left to its document.
type Cover struct {
	ix     *catalog.Index
	wanted [catalog.MaxFields]bool // fields of the index that the query looks at
	root   outline
	wants  bool // any of them
	ids    bool // the query looks at IDs

	body   []byte
	texts  [catalog.MaxFields][]byte // the JSON of the fields that are wanted, empty if missing
	header metadata.Header
	id     []byte
}

// outline is the template of a projection: a JSON object around the values of an
// index.
type outline struct {
	names   [][]byte // `"Name":`
	members []member // parallel to names
}

// member is one member of an outline: the value of a field, or another outline.
type member struct {
	field int
	inner *outline // nil for a value
}

// NewCover returns the Cover of ix for a query, with where as the condition still
// to be checked. It returns nil if the entries lack something that the query looks
// at, or if the query asks for whole documents.
func NewCover(q *query.Query, counting bool, ix *catalog.Index, where query.Expr) *Cover {
	if !ix.Ordered || !asksForParts(q, counting) {
		return nil
	}
	c := &Cover{ix: ix}
	for _, f := range fieldsOf(q, where) {
		if f.Meta == query.MetaID {
			c.ids = true
			continue
		}
		i := entryHas(ix, f)
		if i < 0 {
			return nil
		}
		if c.wanted[i] {
			continue
		}
		c.wanted[i], c.wants = true, true
		if !c.root.put(f.Path, i) {
			return nil
		}
	}
	return c
}

// entryHas returns which field of an index a covering entry answers f from, or -1.
func entryHas(ix *catalog.Index, f query.Field) int {
	if f.Meta != query.MetaNone || f.Path.IsZero() {
		return -1
	}
	i := slices.IndexFunc(ix.Fields, func(g catalog.Field) bool { return f.Date <= query.DateInstant && g.Is(f) })
	if i < 0 { // an instant in a covering entry is the text of the document
		i = slices.IndexFunc(ix.Fields, func(g catalog.Field) bool { return g.Date == query.DateInstant && g.HasPath(f) })
	}
	return i
}

// asksForParts reports whether a query can be answered without whole documents.
func asksForParts(q *query.Query, counting bool) bool {
	return (len(q.Select) > 0 || counting) && !q.IncludesMore()
}

// covers reports whether the index of a path has all that the query looks at, apart from
// what the ranges of the path decide.
func (p *planner) covers(a *Path) bool {
	return p.mayCover(a) && NewCover(p.q, p.options.Counting, a.Index, p.residual(a)) != nil
}

// mayCover is covers as far as it can be told without allocations, which is enough for most indexes.
func (p *planner) mayCover(a *Path) bool {
	if !asksForParts(p.q, p.options.Counting) || !a.Index.Ordered {
		return false
	}
	lacks := func(f query.Field) bool { return f.Meta != query.MetaID && entryHas(a.Index, f) < 0 }
	if p.asked == nil {
		p.asked = append([]query.Field{}, fieldsOf(p.q, nil)...)
	}
	if slices.ContainsFunc(p.asked, lacks) {
		return false
	}
	for i, e := range p.conjuncts[:p.own] {
		// What a partial index has in its own condition needs no check either: see residual.
		if a.Index.Filter == nil && !slices.Contains(a.exact, i) && anyField(e, lacks) {
			return false
		}
	}
	return true
}

// anyField reports whether a field of a condition is as asked.
func anyField(e query.Expr, is func(query.Field) bool) bool {
	return query.EachField(e, func(f query.Field) error {
		if is(f) {
			return errFound
		}
		return nil
	}) != nil
}

// errFound ends a walk over fields.
var errFound = errors.New("found")

// fieldsOf returns the fields that a query looks at, each at least once.
func fieldsOf(q *query.Query, where query.Expr) []query.Field {
	var fields []query.Field
	_ = query.EachField(where, func(f query.Field) error {
		fields = append(fields, f)
		return nil
	})
	for _, c := range q.Select {
		if c.Func != query.FuncCount {
			fields = append(fields, c.Field)
		}
		if c.Field.By != nil {
			fields = append(fields, *c.Field.By)
		}
	}
	if q.Having != nil {
		for _, f := range query.Fields(q.Having) {
			if f.Func != query.FuncCount {
				f.Func = query.FuncNone
				fields = append(fields, f)
			}
			if f.By != nil {
				fields = append(fields, *f.By)
			}
		}
	}
	for _, o := range q.OrderBy {
		if o.Column == "" {
			fields = append(fields, o.Field)
		}
	}
	return append(fields, q.GroupBy...)
}

// put adds the value of a field at its path. It returns false for a path into an
// array, and for a path that leads through or to another value: an index can have
// only one of the two.
func (s *outline) put(path jsonpath.Path, field int) bool {
	for i := range path.Len() {
		step := path.At(i)
		if step.Kind != jsonpath.Member {
			return false
		}
		name := append(jsonpath.AppendQuoted(nil, step.Name), ':')
		at := slices.IndexFunc(s.names, func(n []byte) bool { return string(n) == string(name) })
		last := i == path.Len()-1
		if at < 0 {
			m := member{field: field}
			if !last {
				m.inner = new(outline)
			}
			s.names, s.members = append(s.names, name), append(s.members, m)
			at = len(s.names) - 1
		} else if last || s.members[at].inner == nil {
			return false
		}
		s = s.members[at].inner
	}
	return true
}

// append appends the object to dst. Members without a value are left out.
func (s *outline) append(dst []byte, texts *[catalog.MaxFields][]byte) []byte {
	dst = append(dst, '{')
	first := true
	for i, m := range s.members {
		if m.inner == nil && len(texts[m.field]) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, s.names[i]...)
		if m.inner != nil {
			dst = m.inner.append(dst, texts)
		} else {
			dst = append(dst, texts[m.field]...)
		}
	}
	return append(dst, '}')
}

// NotCovering reports whether an entry with this value is not covering.
func NotCovering(value []byte) bool {
	return len(value) > 0 && value[len(value)-1] == catalog.NotCovering
}

// Document makes the document of an entry, whose folded ID is given: those parts of
// its header and body that the query looks at. Both are valid until the next call.
// It returns false if the document must be read.
func (c *Cover) Document(key, value, folded []byte) (h *metadata.Header, body []byte, ok bool) {
	looks := c.wants || c.ids
	if looks && NotCovering(value) {
		return nil, nil, false
	}
	rest := key[5:]
	for i := range c.ix.Fields {
		if c.wanted[i] {
			c.texts[i], rest, ok = query.AppendDecoded(c.texts[i][:0], rest)
		} else {
			rest, ok = query.SkipKey(rest)
		}
		if !ok {
			return nil, nil, false
		}
	}
	c.header.ID = nil
	_, cased := catalog.SplitValue(value, len(rest) == 0)
	if c.ids && len(cased) > 0 {
		if c.id, ok = catalog.AppendCased(c.id[:0], folded, cased); !ok {
			return nil, nil, false
		}
		c.header.ID = c.id
	}
	c.body = c.root.append(c.body[:0], &c.texts)
	return &c.header, c.body, true
}
