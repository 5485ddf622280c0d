package query_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// This file answers queries a second time, slowly: over documents decoded by
// encoding/json, with big.Rat for numbers and Go's own Unicode tables, without
// indexes, and with nothing of package query but its AST.

// node is a JSON value, or the absence of one (rank 0).
type node struct {
	rank    int // the place of its kind in the order of all values
	raw     string
	text    string
	folded  string
	number  *big.Rat
	items   []*node
	members map[string]*node
}

const (
	rankMissing = iota
	rankNull
	rankFalse
	rankTrue
	rankNumber
	rankText
	rankArray
	rankObject
)

var missingNode, nullNode = &node{}, &node{rank: rankNull, raw: "null"}

// decodeNode decodes valid JSON.
func decodeNode(raw []byte) *node {
	raw = bytes.TrimSpace(raw)
	n := &node{raw: string(raw)}
	var err error
	switch raw[0] {
	case 'n':
		n.rank = rankNull
	case 'f':
		n.rank = rankFalse
	case 't':
		n.rank = rankTrue
	case '"':
		n.rank = rankText
		err = json.Unmarshal(raw, &n.text)
		n.folded = foldNaively(n.text)
	case '[':
		n.rank = rankArray
		var items []json.RawMessage
		err = json.Unmarshal(raw, &items)
		for _, item := range items {
			n.items = append(n.items, decodeNode(item))
		}
	case '{':
		n.rank, n.members = rankObject, make(map[string]*node)
		var members map[string]json.RawMessage
		err = json.Unmarshal(raw, &members)
		for name, member := range members {
			n.members[name] = decodeNode(member)
		}
	default:
		n.rank = rankNumber
		var ok bool
		if n.number, ok = new(big.Rat).SetString(n.raw); !ok {
			err = fmt.Errorf("no number")
		}
	}
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, raw))
	}
	return n
}

func textNode(text string) *node {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return &node{rank: rankText, raw: string(raw), text: text, folded: foldNaively(text)}
}

func numberNode(r *big.Rat) *node {
	return &node{rank: rankNumber, raw: r.RatString(), number: r}
}

func foldNaively(text string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); r <= 0xffff && lower <= 0xffff {
			return lower
		}
		return r
	}, text)
}

// compareNodes orders all values.
func compareNodes(v, w *node, folds bool) int {
	if v.rank != w.rank {
		return v.rank - w.rank
	}
	switch v.rank {
	case rankNumber:
		return v.number.Cmp(w.number)
	case rankText:
		if c := strings.Compare(v.folded, w.folded); c != 0 || folds {
			return c
		}
		return strings.Compare(v.text, w.text)
	case rankArray, rankObject:
		return strings.Compare(v.raw, w.raw)
	}
	return 0
}

// naiveDoc is a document, decoded.
type naiveDoc struct {
	id     string
	order  string // by which ties are broken
	body   *node
	meta   map[query.Meta]*node
	folds  bool // IDs do not regard case
	source *jay.Document
}

func newNaiveDoc(doc *jay.Document, sensitive bool) *naiveDoc {
	n := &naiveDoc{id: doc.ID(), order: foldNaively(doc.ID()), body: decodeNode(doc.Body()), meta: make(map[query.Meta]*node), folds: !sensitive, source: doc}
	if sensitive {
		n.order = doc.ID()
	}
	m := doc.Metadata()
	n.meta[query.MetaID] = textNode(doc.ID())
	n.meta[query.MetaCollection] = textNode(doc.Collection())
	n.meta[query.MetaLastModified] = textNode(m.LastModified.UTC().Format("2006-01-02T15:04:05.0000000Z"))
	n.meta[query.MetaChangeVector] = textNode(m.ChangeVector)
	if m.Etag > 0 {
		n.meta[query.MetaEtag] = numberNode(new(big.Rat).SetInt(new(big.Int).SetUint64(m.Etag)))
	}
	if m.Custom != nil {
		n.meta[query.MetaCustom] = decodeNode(m.Custom)
	}
	return n
}

// ends returns what is at the end of a field's path.
func (d *naiveDoc) ends(f query.Field) []*node {
	n := d.meta[f.Meta]
	switch {
	case f.Expression != nil:
		// TestExpression has what is computed. Here every plan must come to the same.
		r := query.NewReader([]query.Field{f})
		r.Reset(query.Doc{Body: []byte(d.body.raw)})
		for _, v := range r.Values(0) {
			return []*node{decodeNode(v.Raw())}
		}
		return nil
	case f.Meta == query.MetaNone:
		return endsOf(d.body, f.Path, 0)
	case n == nil || n.rank == rankText && n.text == "":
		return nil
	case f.Meta == query.MetaCustom:
		return endsOf(n, f.Path, 0)
	}
	return []*node{n}
}

func endsOf(v *node, p jsonpath.Path, i int) []*node {
	if i == p.Len() {
		return []*node{v}
	}
	var ends []*node
	isArray := v.rank == rankArray
	switch step := p.At(i); {
	case step.Kind == jsonpath.Index && isArray && step.Index < len(v.items):
		return endsOf(v.items[step.Index], p, i+1)
	case step.Kind == jsonpath.Every:
		for _, item := range v.items {
			ends = append(ends, endsOf(item, p, i+1)...)
		}
	case step.Kind == jsonpath.Member && isArray:
		for _, item := range v.items {
			ends = append(ends, endsOf(item, p, i)...)
		}
	case step.Kind == jsonpath.Member:
		if member, found := v.members[step.Name]; found {
			return endsOf(member, p, i+1)
		}
	}
	return ends
}

// reached returns the values that a field reaches: an array stands for its
// elements.
func (d *naiveDoc) reached(f query.Field) []*node {
	var values []*node
	for _, v := range d.ends(f) {
		if v.rank == rankArray && f.Expression == nil {
			values = append(values, v.items...)
		} else {
			values = append(values, v)
		}
	}
	return values
}

func (d *naiveDoc) any(f query.Field, test func(v *node) bool) bool {
	return slices.ContainsFunc(d.reached(f), test)
}

func (d *naiveDoc) foldsCase(f query.Field, folds bool) bool {
	return folds || f.Meta == query.MetaID && d.folds || f.Meta == query.MetaCollection
}

func operandNode(v query.Value) *node { return decodeNode(v.Raw()) }

// classOf is the kind that ranges match within: both booleans are one.
func classOf(v *node) int {
	if v.rank == rankTrue {
		return rankFalse
	}
	return v.rank
}

// holds reports whether a condition is true of the document.
func (d *naiveDoc) holds(e query.Expr) bool {
	switch e := e.(type) {
	case nil:
		return true
	case query.And:
		return !slices.ContainsFunc(e, func(kid query.Expr) bool { return !d.holds(kid) })
	case query.Or:
		return slices.ContainsFunc(e, d.holds)
	case query.Not:
		return !d.holds(e.Expr)
	case query.Exists:
		return len(d.ends(e.Field)) > 0
	case query.ElemMatch:
		return d.any(e.Field, func(v *node) bool {
			return v.rank == rankObject && (&naiveDoc{body: v}).holds(e.Where)
		})
	case query.HasSize:
		return slices.ContainsFunc(d.ends(e.Field), func(v *node) bool {
			c := len(v.items) - e.N
			return v.rank == rankArray && [...]bool{c == 0, c < 0, c <= 0, c > 0, c >= 0}[e.Op]
		})
	case query.HasType:
		types := map[int]string{rankNull: "null", rankFalse: "boolean", rankTrue: "boolean", rankNumber: "number", rankText: "string", rankArray: "array", rankObject: "object"}
		return slices.ContainsFunc(d.ends(e.Field), func(v *node) bool { return types[v.rank] == e.Type })
	case query.Compare:
		w, folds := operandNode(e.Value), d.foldsCase(e.Field, e.Fold)
		return d.any(e.Field, func(v *node) bool {
			if classOf(v) != classOf(w) {
				return false
			}
			c := compareNodes(v, w, folds)
			return [...]bool{c == 0, c < 0, c <= 0, c > 0, c >= 0}[e.Op]
		})
	case query.CompareFields:
		folds := d.foldsCase(e.Field, e.Fold) || d.foldsCase(e.Other, e.Fold)
		return d.any(e.Field, func(v *node) bool {
			return d.any(e.Other, func(w *node) bool {
				if v.rank > rankText || classOf(v) != classOf(w) {
					return false
				}
				c := compareNodes(v, w, folds)
				return [...]bool{c == 0, c < 0, c <= 0, c > 0, c >= 0}[e.Op]
			})
		})
	case query.Between:
		lo, hi, folds := operandNode(e.Lo), operandNode(e.Hi), d.foldsCase(e.Field, e.Fold)
		return d.any(e.Field, func(v *node) bool {
			return classOf(v) == classOf(lo) && classOf(v) == classOf(hi) && compareNodes(lo, v, folds) <= 0 && compareNodes(v, hi, folds) <= 0
		})
	case query.In:
		folds := d.foldsCase(e.Field, e.Fold)
		equals := func(value query.Value) bool {
			w := operandNode(value)
			return d.any(e.Field, func(v *node) bool { return compareNodes(v, w, folds) == 0 })
		}
		if e.All {
			return !slices.ContainsFunc(e.Values, func(v query.Value) bool { return !equals(v) })
		}
		return slices.ContainsFunc(e.Values, equals)
	case query.StartsWith:
		return d.text(e.Field, e.Fold, e.Text, strings.HasPrefix)
	case query.EndsWith:
		return d.text(e.Field, e.Fold, e.Text, strings.HasSuffix)
	case query.Contains:
		return d.text(e.Field, e.Fold, e.Text, strings.Contains)
	case query.Regexp:
		pattern := e.Pattern
		if d.foldsCase(e.Field, e.Fold) {
			pattern = "(?i)" + pattern
		}
		compiled := regexp.MustCompile(pattern)
		return d.any(e.Field, func(v *node) bool { return v.rank == rankText && compiled.MatchString(v.text) })
	}
	panic(fmt.Sprintf("%T", e))
}

func (d *naiveDoc) text(f query.Field, folds bool, want string, test func(text, want string) bool) bool {
	return d.any(f, func(v *node) bool {
		if v.rank != rankText {
			return false
		}
		if d.foldsCase(f, folds) {
			return test(v.folded, foldNaively(want))
		}
		return test(v.text, want)
	})
}

// cast returns a value as an order compares it.
func cast(v *node, as query.Cast) *node {
	switch as {
	case query.CastNone:
		return v
	case query.CastString:
		switch v.rank {
		case rankText:
			return v
		case rankFalse, rankTrue, rankNumber:
			return textNode(v.raw)
		}
		return missingNode
	}
	n := v.number
	if v.rank == rankText && jsonNumber.MatchString(v.text) {
		n, _ = new(big.Rat).SetString(v.text)
	}
	if n == nil {
		return missingNode
	}
	if as == query.CastLong {
		n = new(big.Rat).SetInt(new(big.Int).Quo(n.Num(), n.Denom()))
	}
	return numberNode(n)
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// keyOf returns what an order goes by in a document.
func (d *naiveDoc) keyOf(o query.Order) *node { return pickNode(o, d.reached(o.Field)) }

func pickNode(o query.Order, values []*node) *node {
	best := missingNode
	for _, v := range values {
		if v = cast(v, o.As); v.rank == rankMissing {
			continue
		}
		if best.rank == rankMissing || (compareNodes(v, best, false) < 0) != o.Descending && compareNodes(v, best, false) != 0 {
			best = v
		}
	}
	return best
}

// naiveAnswer is what a query must answer.
type naiveAnswer struct {
	docs []*naiveDoc // those that match, in order if there is an order
	rows []string    // each answer, in one spelling, Skip and Limit not yet applied
	keys [][]*node   // of groups that are ordered: what they are ordered by
}

// answer answers a query over documents, which must be in the order of their
// IDs.
func answer(q *query.Query, docs []*naiveDoc) naiveAnswer {
	var a naiveAnswer
	for _, d := range docs {
		if q.From != "" && foldNaively(d.source.Collection()) != foldNaively(q.From) {
			continue
		}
		if d.holds(q.Where) {
			a.docs = append(a.docs, d)
		}
	}
	if isGroupedQuery(q) {
		a.group(q)
		return a
	}
	if len(q.OrderBy) > 0 {
		keys := make(map[*naiveDoc][]*node, len(a.docs))
		for _, d := range a.docs {
			for _, o := range q.OrderBy {
				keys[d] = append(keys[d], d.keyOf(o))
			}
		}
		slices.SortFunc(a.docs, func(x, y *naiveDoc) int {
			if c := compareKeys(q.OrderBy, keys[x], keys[y]); c != 0 {
				return c
			}
			if q.OrderBy[len(q.OrderBy)-1].Descending {
				return strings.Compare(y.order, x.order)
			}
			return strings.Compare(x.order, y.order)
		})
	}
	seen := make(map[string]bool)
	for _, d := range a.docs {
		if len(q.Select) == 0 {
			a.rows = append(a.rows, d.id)
			continue
		}
		row := canonicalRow(d.project(q.Select))
		if q.Distinct && seen[row] {
			continue
		}
		seen[row] = true
		a.rows = append(a.rows, row)
	}
	return a
}

func isGroupedQuery(q *query.Query) bool {
	return len(q.GroupBy) > 0 || slices.ContainsFunc(q.Select, func(c query.Column) bool { return c.Func != query.FuncNone })
}

func compareKeys(orders []query.Order, x, y []*node) int {
	for i, o := range orders {
		c := compareNodes(x[i], y[i], false)
		if o.Descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// project returns the columns of a document as a JSON object.
func (d *naiveDoc) project(columns []query.Column) string {
	var parts []string
	for _, c := range columns {
		name, err := json.Marshal(c.Name)
		if err != nil {
			panic(err)
		}
		ends := d.ends(c.Field)
		value := "null"
		switch {
		case c.Field.Meta == query.MetaNone && throughArray(d.body, c.Field.Path), c.Field.Meta == query.MetaCustom && d.meta[query.MetaCustom] != nil && throughArray(d.meta[query.MetaCustom], c.Field.Path):
			if len(ends) > 0 {
				var raws []string
				for _, end := range ends {
					raws = append(raws, end.raw)
				}
				value = "[" + strings.Join(raws, ",") + "]"
			}
		case len(ends) > 0:
			value = ends[0].raw
		}
		parts = append(parts, string(name)+":"+value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// throughArray reports whether a path goes through every element of an array.
func throughArray(v *node, p jsonpath.Path) bool {
	for i := range p.Len() {
		switch step := p.At(i); {
		case step.Kind == jsonpath.Every, step.Kind == jsonpath.Member && v.rank == rankArray:
			return true
		case step.Kind == jsonpath.Index:
			if v.rank != rankArray || step.Index >= len(v.items) {
				return false
			}
			v = v.items[step.Index]
		default:
			if v = v.members[step.Name]; v == nil {
				return false
			}
		}
	}
	return false
}

// canonicalRow spells a JSON object in one way: members sorted, numbers as
// fractions.
func canonicalRow(raw string) string { return canonicalNode(decodeNode([]byte(raw))) }

func canonicalNode(n *node) string {
	switch n.rank {
	case rankNumber:
		return n.number.RatString()
	case rankText:
		return fmt.Sprintf("%q", n.text)
	case rankArray:
		var items []string
		for _, item := range n.items {
			items = append(items, canonicalNode(item))
		}
		return "[" + strings.Join(items, ",") + "]"
	case rankObject:
		var members []string
		for name, member := range n.members {
			members = append(members, fmt.Sprintf("%q:%s", name, canonicalNode(member)))
		}
		slices.Sort(members)
		return "{" + strings.Join(members, ",") + "}"
	}
	return n.raw
}

// naiveGroup is a group with the documents in it.
type naiveGroup struct {
	keys []*node
	docs []*naiveDoc
}

// group makes rows of groups.
func (a *naiveAnswer) group(q *query.Query) {
	groups := make(map[string]*naiveGroup)
	if len(q.GroupBy) == 0 {
		groups[""] = &naiveGroup{docs: a.docs}
	} else {
		for _, d := range a.docs {
			for name, keys := range d.groupKeys(q.GroupBy) {
				if groups[name] == nil {
					groups[name] = &naiveGroup{keys: keys}
				}
				groups[name].docs = append(groups[name].docs, d)
			}
		}
	}
	type row struct {
		text string
		keys []*node
	}
	var rows []row
	for _, g := range groups {
		if q.Having != nil && !g.satisfies(q) {
			continue
		}
		var parts []string
		cells := make(map[string]*node)
		for _, c := range q.Select {
			cell := g.cell(q, c)
			cells[c.Name] = cell
			parts = append(parts, fmt.Sprintf("%q:%s", c.Name, canonicalNode(cell)))
		}
		slices.Sort(parts)
		r := row{text: "{" + strings.Join(parts, ",") + "}"}
		for _, o := range q.OrderBy {
			r.keys = append(r.keys, pickNode(o, []*node{cells[o.Column]}))
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(compareKeys(q.OrderBy, x.keys, y.keys), strings.Compare(x.text, y.text))
	})
	for _, r := range rows {
		a.rows, a.keys = append(a.rows, r.text), append(a.keys, r.keys)
	}
}

// satisfies reports whether the condition on groups is true of a group: of an object with
// a member for each function in it.
func (g *naiveGroup) satisfies(q *query.Query) bool {
	d := &naiveDoc{body: &node{rank: rankObject, members: make(map[string]*node)}, meta: make(map[query.Meta]*node)}
	e, err := query.MapFields(q.Having, func(f query.Field) (query.Field, error) {
		name := "f" + strconv.Itoa(len(d.body.members))
		c := query.Column{Func: f.Func, Field: f}
		c.Field.Func = query.FuncNone
		d.body.members[name] = g.cell(q, c)
		return query.Field{Path: jsonpath.MustParse(name)}, nil
	})
	if err != nil {
		panic(err)
	}
	return d.holds(e)
}

// groupRows returns the combinations of values that fields reach.
func (d *naiveDoc) groupRows(by []query.Field) []naiveRow {
	rows := []naiveRow{{}}
	done := make(map[int]bool)
	for i, f := range by {
		if done[i] {
			continue
		}
		var part []naiveRow
		if f.Meta == query.MetaNone || f.Meta == query.MetaCustom {
			at := make(map[int]int)
			for j, g := range by {
				if g.Meta == f.Meta && g.Path.Root() == f.Path.Root() {
					at[j], done[j] = 0, true
				}
			}
			if object := d.body; f.Meta == query.MetaNone {
				part = joinNaively(object, by, at)
			} else if object = d.meta[query.MetaCustom]; object != nil {
				part = joinNaively(object, by, at)
			}
		} else {
			for _, v := range d.reached(f) {
				part = append(part, naiveRow{i: v})
			}
		}
		rows = combineNaively(rows, part)
	}
	return rows
}

// groupKeys returns the groups that a document is in.
func (d *naiveDoc) groupKeys(by []query.Field) map[string][]*node {
	out := make(map[string][]*node)
	for _, row := range d.groupRows(by) {
		name, keys := "", []*node{}
		for i := range by {
			v := row[i]
			if v == nil {
				v = nullNode
			}
			key := fmt.Sprint(v.rank, v.raw)
			if v.rank == rankNumber || v.rank == rankText {
				key = fmt.Sprint(v.rank, canonicalNode(v))
			}
			name, keys = name+"\x00"+key, append(keys, v)
		}
		out[name] = keys
	}
	return out
}

// naiveRow has a value for some of the fields of a group by, by their indexes.
type naiveRow map[int]*node

// combineNaively returns all combinations; of no rows the others.
func combineNaively(rows, others []naiveRow) (all []naiveRow) {
	if len(others) == 0 {
		return rows
	}
	for _, row := range rows {
		for _, other := range others {
			both := naiveRow{}
			maps.Copy(both, row)
			maps.Copy(both, other)
			all = append(all, both)
		}
	}
	return all
}

// joinNaively returns the values that fields reach from v: at has the step of each. A step
// beyond the end is that of an element of the array at the end.
func joinNaively(v *node, by []query.Field, at map[int]int) []naiveRow {
	row, elements := naiveRow{}, make(map[int]int)
	inner := make(map[string]map[int]int)
	values := make(map[string]*node)
	for i, step := range at {
		p := by[i].Path
		switch {
		case step > p.Len(), step == p.Len() && v.rank != rankArray:
			row[i] = v
		case step == p.Len():
			elements[i] = step + 1
		case v.rank == rankArray && p.At(step).Kind == jsonpath.Every:
			elements[i] = step + 1
		case v.rank == rankArray && p.At(step).Kind == jsonpath.Member:
			elements[i] = step
		default:
			name := fmt.Sprint(p.At(step))
			var member *node
			if s := p.At(step); s.Kind == jsonpath.Member && v.rank == rankObject {
				member = v.members[s.Name]
			} else if s.Kind == jsonpath.Index && v.rank == rankArray && s.Index < len(v.items) {
				member = v.items[s.Index]
			}
			if member == nil {
				continue
			}
			if inner[name] == nil {
				inner[name] = make(map[int]int)
			}
			inner[name][i], values[name] = step+1, member
		}
	}
	rows, found := []naiveRow{row}, len(row) > 0
	if len(elements) > 0 {
		var all []naiveRow
		for _, item := range v.items {
			all = append(all, joinNaively(item, by, elements)...)
		}
		rows, found = combineNaively(rows, all), found || len(all) > 0
	}
	for name, below := range inner {
		all := joinNaively(values[name], by, below)
		rows, found = combineNaively(rows, all), found || len(all) > 0
	}
	if !found {
		return nil
	}
	return rows
}

// cell returns one column of a group.
func (g *naiveGroup) cell(q *query.Query, c query.Column) *node {
	if c.Func == query.FuncNone {
		return g.keys[slices.IndexFunc(q.GroupBy, func(f query.Field) bool { return f.String() == c.Field.String() })]
	}
	if c.Func == query.FuncCount {
		return numberNode(big.NewRat(int64(len(g.docs)), 1))
	}
	if c.Func == query.FuncFirst || c.Func == query.FuncLast {
		return g.picked(c)
	}
	var values []*node
	for _, d := range g.docs {
		values = append(values, d.reached(c.Field)...)
	}
	switch c.Func {
	case query.FuncMin, query.FuncMax:
		if len(values) == 0 {
			return nullNode
		}
		return pickNode(query.Order{Descending: c.Func == query.FuncMax}, values)
	}
	if c.Func == query.FuncList || c.Func == query.FuncListDistinct {
		list := &node{rank: rankArray}
		slices.SortStableFunc(values, func(a, b *node) int { return compareNodes(a, b, false) })
		for i, v := range values {
			if c.Func == query.FuncList || i == 0 || compareNodes(v, values[i-1], false) != 0 {
				list.items = append(list.items, v)
			}
		}
		return list
	}
	if c.Func == query.FuncCountDistinct {
		var different []*node
		for _, v := range values {
			if v.rank != rankNull && !slices.ContainsFunc(different, func(other *node) bool { return compareNodes(v, other, false) == 0 }) {
				different = append(different, v)
			}
		}
		return numberNode(big.NewRat(int64(len(different)), 1))
	}
	sum, n := new(big.Rat), int64(0)
	for _, v := range values {
		if v.rank == rankNumber {
			sum.Add(sum, v.number)
			n++
		}
	}
	if c.Func == query.FuncSum {
		return numberNode(sum)
	}
	if n == 0 {
		return nullNode
	}
	return numberNode(roundTo(sum.Quo(sum, big.NewRat(n, 1)), 17))
}

// picked returns the value of first or last: of all pairs of an order and a value, the value of the least or the greatest one.
func (g *naiveGroup) picked(c query.Column) *node {
	by, of := *c.Field.By, c.Field
	of.By = nil
	var order, value *node
	for _, d := range g.docs {
		for _, row := range d.groupRows([]query.Field{by, of}) {
			if row[0] == nil {
				continue
			}
			v := row[1]
			if v == nil {
				v = nullNode
			}
			less := 0
			if order != nil {
				less = cmp.Or(compareNodes(row[0], order, false), compareNodes(v, value, false))
			}
			if order == nil || c.Func == query.FuncFirst && less < 0 || c.Func == query.FuncLast && less > 0 {
				order, value = row[0], v
			}
		}
	}
	if value == nil {
		return nullNode
	}
	return value
}

// roundTo rounds to significant digits, half to even.
func roundTo(r *big.Rat, digits int) *big.Rat {
	if r.Sign() == 0 {
		return r
	}
	abs := new(big.Rat).Abs(r)
	ten := big.NewRat(10, 1)
	lo := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits-1)), nil))
	hi := new(big.Rat).Mul(lo, ten)
	scale := big.NewRat(1, 1)
	for new(big.Rat).Mul(abs, scale).Cmp(lo) < 0 {
		scale.Mul(scale, ten)
	}
	for new(big.Rat).Mul(abs, scale).Cmp(hi) >= 0 {
		scale.Quo(scale, ten)
	}
	shifted := new(big.Rat).Mul(abs, scale)
	whole, rest := new(big.Int).QuoRem(shifted.Num(), shifted.Denom(), new(big.Int))
	switch twice := rest.Lsh(rest, 1).Cmp(shifted.Denom()); {
	case twice > 0, twice == 0 && whole.Bit(0) == 1:
		whole.Add(whole, big.NewInt(1))
	}
	out := new(big.Rat).Quo(new(big.Rat).SetInt(whole), scale)
	if r.Sign() < 0 {
		out.Neg(out)
	}
	return out
}
