// Package querytest makes random documents, indexes and queries for tests that
// compare the answers of a database with what they must be.
package querytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Generator makes random documents, indexes and queries that meet each other
// often.
type Generator struct {
	*rand.Rand
	filters []query.Expr // of partial indexes: queries ask for them now and then
	NoStore bool         // no documents under new IDs
	Groups  bool         // some indexes are of the kind groups
}

// New returns a generator, which does the same for the same seed.
func New(seed uint64) *Generator { return &Generator{Rand: rand.New(rand.NewPCG(seed, 5))} }

// Pick returns one of several.
func Pick[T any](g *Generator, of ...T) T { return of[g.IntN(len(of))] }

// Chance is true this often, in percent.
func (g *Generator) Chance(percent int) bool { return g.IntN(100) < percent }

var (
	someTexts = []string{
		`"a"`, `"A"`, `"b"`, `"ab"`, `"Ab"`, `"AB"`, `"abc"`, `""`, `"ä"`, `"Ä"`, `"k"`, `"K"`, "\"\u212a\"", `"ß"`, `"ẞ"`, `"\u0130"`, `"i"`, `"ı"`,
		`"σ"`, `"ς"`, `"Σ"`, `"a\u0000"`, `"a\u0000b"`, `"a\u0001"`, `"12"`, `"1e1"`, `"-7.5"`, `"2020-01-01"`, `"\uffff"`, `"😀"`, `"\ud83d\ude00x"`, `"x'y"`, `"q\"q"`, `"back\\s"`, `"\u00e9"`, `"É"`,
	}
	someNumbers = []string{
		"0", "-0", "0.0", "1", "1.0", "1e0", "10e-1", "2", "2.5", "25e-1", "3", "-1", "-1.0", "-2.5", "10", "1e1", "100",
		"9007199254740993", "9007199254740992", "9007199254740993.0", "9007199254740992.5", "1e400", "1E+400", "-1e400", "1e-400", "0.1", "0.10",
	}
	// someFields are the paths that documents have, most of them.
	someFields = []string{"a", "a", "b", "b", "c", "d.x", "d.y", "l", "l", "ls.p", "ls.q", "ls[].p", "ls[0].p", "l[]", "l[1]", "d", "ls", "nowhere", "'ü.x'", "'from'", "A", "d.x.y"}
)

// scalar makes null, booleans, numbers and texts.
func (g *Generator) scalar() string {
	switch n := g.IntN(100); {
	case n < 8:
		return "null"
	case n < 16:
		return Pick(g, "true", "false")
	case n < 55:
		return Pick(g, someNumbers...)
	case n < 97:
		return Pick(g, someTexts...)
	default:
		filler := Pick(g, "x", "X", "ä")
		return `"` + strings.Repeat(filler, (508+g.IntN(8))/len(filler)) + Pick(g, "", "a", "A", "b") + `"`
	}
}

// small makes a scalar out of few.
func (g *Generator) small() string {
	return Pick(g, "1", "2", "3", "1.0", `"a"`, `"A"`, `"b"`, `"ab"`, "null", "true")
}

func (g *Generator) value(depth int) string {
	switch n := g.IntN(100); {
	case n < 45:
		return g.small()
	case n < 85 || depth == 0:
		return g.scalar()
	case n < 93:
		return g.array(func() string { return g.value(depth - 1) })
	default:
		return g.object([]string{"x", "y", "p"}, depth-1)
	}
}

func (g *Generator) array(item func() string) string {
	var items []string
	for range g.IntN(4) {
		items = append(items, item())
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (g *Generator) object(names []string, depth int) string {
	var members []string
	for _, name := range names {
		if g.Chance(75) {
			members = append(members, fmt.Sprintf("%q:%s", name, g.value(depth)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Body makes a document. u is unique, or missing.
func (g *Generator) Body(u int) string {
	var members []string
	add := func(name, value string) { members = append(members, fmt.Sprintf("%q:%s", name, value)) }
	if g.Chance(85) {
		add("a", g.small())
	}
	if g.Chance(85) {
		add("b", g.value(1))
	}
	if g.Chance(80) {
		add("c", g.value(0))
	}
	if g.Chance(70) {
		add("d", g.object([]string{"x", "y"}, 1))
	}
	if g.Chance(70) {
		add("l", g.array(g.small))
	}
	if g.Chance(60) {
		add("ls", g.array(func() string { return g.object([]string{"p", "q"}, 0) }))
	}
	if g.Chance(20) {
		add("ü.x", g.scalar())
	}
	if g.Chance(20) {
		add("from", g.small())
	}
	if g.Chance(20) {
		add("A", g.small())
	}
	if g.Chance(80) {
		add("u", fmt.Sprint(u))
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// ID makes an ID, at home in its collection or away.
func (g *Generator) ID(i int) string {
	return Pick(g, "orders/", "Orders/", "ORDERS/", "others/", "x/ä", "x/Ä", "k", "") + Pick(g, fmt.Sprint(i), fmt.Sprint("A", i), fmt.Sprint("a", i/2), fmt.Sprintf("ß%d", i))
}

// Metadata makes the custom metadata of a document, nil for none.
func (g *Generator) Metadata() []byte {
	if g.Chance(60) {
		return nil
	}
	return []byte(fmt.Sprintf(`{"Source":%s,"Raven-Kind":%s,"tags":%s,"d":%s}`, g.small(), g.scalar(), g.array(g.small), g.object([]string{"x"}, 0)))
}

// Collection names the collection of a document, "" for none.
func (g *Generator) Collection() string {
	switch n := g.IntN(10); {
	case n < 8:
		return "Orders"
	case n < 9:
		return "Others"
	}
	return ""
}

func (g *Generator) path() jsonpath.Path { return jsonpath.MustParse(Pick(g, someFields...)) }

func (g *Generator) field() query.Field {
	if g.Chance(8) {
		f := query.Field{Meta: query.Meta(1 + g.IntN(6))}
		if f.Meta == query.MetaCustom {
			f.Path = jsonpath.MustParse(Pick(g, "Source", "Raven-Kind", "tags[]", "d.x", "nowhere"))
		}
		return f
	}
	if g.Chance(4) {
		return g.expression()
	}
	return query.Field{Path: g.path()}
}

// expression makes a field that is computed from others.
func (g *Generator) expression() query.Field {
	a, b := "field("+query.Field{Path: g.path()}.String()+")", "field("+query.Field{Path: g.path()}.String()+")"
	text := fmt.Sprintf(Pick(g, "%s + %s", "%s * 2 - %s", "%s / %s", "coalesce(%s, %s)", "concat(%s, %s)", "if(%s > 1, %s, 'else')", "lower(%s) + text(%s)"), a, b)
	f, err := query.ParseExpression(text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return f
}

// Index makes a declaration.
func (g *Generator) Index() jay.Index {
	var ix jay.Index
	seen := make(map[string]bool)
	for range 1 + g.IntN(3) {
		p := g.path().String()
		if g.Chance(10) {
			p = "u"
		}
		if seen[p] {
			continue
		}
		seen[p] = true
		if g.Chance(35) {
			p = "-" + p
		}
		ix.Fields = append(ix.Fields, p)
	}
	if g.Chance(10) {
		ix.Unique, ix.Fields = true, []string{Pick(g, "u", "-u")}
		if g.Chance(50) {
			ix.Fields = append(ix.Fields, Pick(g, "a", "-a", "l"))
		}
	}
	if g.Groups && !ix.Unique && g.Chance(15) { // of groups, some of which have the values of several documents
		ix.Kind = "groups"
		for i, f := range ix.Fields {
			if ix.Fields[i] = strings.TrimPrefix(f, "-"); ix.Fields[i] == "from" { // here fields are expressions
				ix.Fields[i] = "'from'"
			}
		}
	}
	if g.Chance(25) || ix.Kind != "" && g.Chance(50) {
		e := g.condition(1)
		if ix.Kind != "" && g.Chance(80) { // which bounds a member
			e = g.bindFirst(jay.Index{Fields: ix.Fields[:1]})
		}
		for usesMeta(e) {
			e = g.condition(1)
		}
		ix.Where = query.FormatCondition(e)
		if g.filters = append(g.filters, e); len(g.filters) > 4 {
			g.filters = g.filters[1:]
		}
	}
	return ix
}

func usesMeta(e query.Expr) bool {
	for _, f := range query.Fields(e) {
		if f.Meta != query.MetaNone {
			return true
		}
	}
	return false
}

func (g *Generator) operand() query.Value {
	if g.Chance(70) {
		return query.ValueOf([]byte(g.small()))
	}
	return query.ValueOf([]byte(g.scalar()))
}

func isBool(v query.Value) bool { return v.Kind() == query.KindFalse || v.Kind() == query.KindTrue }

func (g *Generator) textOperand() string {
	for {
		if v := g.operand(); v.Kind() == query.KindText {
			text := []rune(v.Text())
			return string(text[:g.IntN(len(text)+1)])
		}
	}
}

// condition makes conditions of at most depth levels.
func (g *Generator) condition(depth int) query.Expr {
	n := g.IntN(100)
	if depth > 0 && n < 50 {
		var kids []query.Expr
		for range g.IntN(4) {
			kids = append(kids, g.condition(depth-1))
		}
		if len(kids) == 0 && g.Chance(80) {
			kids = []query.Expr{g.leaf()}
		}
		switch {
		case n < 25:
			return query.And(kids)
		case n < 42:
			return query.Or(kids)
		}
		return query.Not{Expr: g.condition(depth - 1)}
	}
	return g.leaf()
}

func (g *Generator) leaf() query.Expr {
	if g.Chance(8) && len(g.filters) > 0 {
		return Pick(g, g.filters...)
	}
	f, fold := g.field(), g.Chance(50)
	if g.Chance(4) { // a range of etags
		f = query.Field{Meta: query.MetaEtag}
		n := func() query.Value { return query.ValueOf([]byte(fmt.Sprint(g.IntN(200)))) }
		if g.Chance(30) {
			return query.Between{Field: f, Lo: n(), Hi: n(), Fold: fold}
		}
		return query.Compare{Field: f, Op: query.Op(g.IntN(5)), Value: n(), Fold: fold}
	}
	if g.Chance(8) {
		f = query.Field{Meta: query.MetaID}
		text := query.TextValue(g.ID(g.IntN(60)))
		switch g.IntN(5) {
		case 3:
			return query.Compare{Field: f, Op: query.Op(1 + g.IntN(4)), Value: text, Fold: fold}
		case 4:
			return query.Between{Field: f, Lo: text, Hi: query.TextValue(g.ID(g.IntN(60))), Fold: fold}
		case 0:
			return query.Compare{Field: f, Value: text, Fold: fold}
		case 1:
			return query.In{Field: f, Values: []query.Value{text, query.TextValue(g.ID(g.IntN(60))), g.operand()}, Fold: fold}
		}
		return query.StartsWith{Field: f, Text: Pick(g, "orders/", "Orders/A", "x/Ä", "o", "K", "", "ORDERS/ẞ"), Fold: fold}
	}
	if g.Chance(8) {
		return g.ofElements(1)
	}
	if g.Chance(8) {
		return g.ofFields(g.field(), g.field())
	}
	switch g.IntN(14) {
	case 0, 1, 2, 3:
		return query.Compare{Field: f, Value: g.operand(), Fold: fold}
	case 4, 5, 6:
		return query.Compare{Field: f, Op: query.Op(1 + g.IntN(4)), Value: g.operand(), Fold: fold}
	case 7:
		lo, hi := g.operand(), g.operand()
		for lo.Kind() != hi.Kind() && !(isBool(lo) && isBool(hi)) {
			lo, hi = g.operand(), g.operand() // a text refuses bounds of two kinds
		}
		return query.Between{Field: f, Lo: lo, Hi: hi, Fold: fold}
	case 8, 9:
		e := query.In{Field: f, Fold: fold, All: g.Chance(30)}
		for range g.IntN(5) {
			e.Values = append(e.Values, g.operand())
		}
		return e
	case 10:
		return query.StartsWith{Field: f, Text: g.textOperand(), Fold: fold}
	case 11:
		return Pick[query.Expr](g, query.EndsWith{Field: f, Text: g.textOperand(), Fold: fold}, query.Contains{Field: f, Text: g.textOperand(), Fold: fold})
	case 12:
		return query.Regexp{Field: f, Pattern: Pick(g, "^a", "b$", "[kz]", "^.?$", "A.*b"), Fold: fold}
	}
	return query.Exists{Field: f}
}

// ofFields makes a comparison of two fields.
func (g *Generator) ofFields(f, other query.Field) query.Expr {
	return query.CompareFields{Field: f, Op: query.Op(g.IntN(5)), Other: other, Fold: g.Chance(50)}
}

// ofElements makes a condition on the elements of an array, or on their number or type.
func (g *Generator) ofElements(depth int) query.Expr {
	switch g.IntN(5) {
	case 0:
		return query.HasSize{Field: query.Field{Path: g.path()}, Op: query.Op(g.IntN(5)), N: g.IntN(4)}
	case 1:
		return query.HasType{Field: query.Field{Path: g.path()}, Type: Pick(g, "null", "boolean", "number", "string", "array", "object")}
	}
	compare := func() query.Expr {
		path := func() query.Field {
			return query.Field{Path: jsonpath.MustParse(Pick(g, "p", "q", "p", "q", "x"))}
		}
		f := path()
		switch g.IntN(9) {
		case 3:
			return g.ofFields(f, path())
		case 0:
			return query.Exists{Field: f}
		case 1:
			return query.Not{Expr: query.Compare{Field: f, Value: g.operand(), Fold: g.Chance(50)}}
		case 2:
			return query.In{Field: f, Values: []query.Value{g.operand(), g.operand()}, Fold: g.Chance(50), All: g.Chance(20)}
		}
		return query.Compare{Field: f, Op: query.Op(g.IntN(5)), Value: g.operand(), Fold: g.Chance(50)}
	}
	e := query.ElemMatch{Field: query.Field{Path: jsonpath.MustParse(Pick(g, "ls", "ls", "ls[]", "ls[0]", "d", "b"))}}
	switch g.IntN(4) {
	case 0:
		e.Where = compare()
	case 1, 2:
		e.Where = query.And{compare(), compare()}
	case 3:
		e.Where = query.Or{compare(), compare()}
	}
	return e
}

func (g *Generator) orders() []query.Order {
	var out []query.Order
	for range g.IntN(4) {
		o := query.Order{Field: g.field(), Descending: g.Chance(40)}
		if g.Chance(20) {
			o.Field = query.Field{Meta: Pick(g, query.MetaID, query.MetaEtag)}
		}
		if g.Chance(10) {
			o.As = query.Cast(1 + g.IntN(3))
		}
		out = append(out, o)
	}
	return out
}

// indexOrders makes an order that an index may have.
func (g *Generator) indexOrders(indexes []jay.Index) []query.Order {
	if len(indexes) == 0 {
		return nil
	}
	var out []query.Order
	turned := g.Chance(50)
	fields := Pick(g, indexes...).Fields
	if len(fields) > 1 && g.Chance(30) {
		fields = fields[1:]
	}
	for _, f := range fields {
		path, descending := strings.CutPrefix(f, "-")
		out = append(out, query.Order{Field: query.Field{Path: jsonpath.MustParse(path)}, Descending: descending != turned})
	}
	if g.Chance(30) { // ties, in the direction of the index or against it
		out = append(out, query.Order{Field: query.Field{Meta: query.MetaID}, Descending: g.Chance(50)})
	}
	return out
}

// Query makes a query.
func (g *Generator) Query(indexes []jay.Index) *query.Query {
	q := &query.Query{From: Pick(g, "Orders", "Orders", "Orders", "Orders", "Orders", "orders", "ORDERS", "Others", "@empty", "None", "")}
	if g.Chance(85) {
		q.Where = g.condition(2)
		if g.Chance(40) {
			q.Where = query.And{q.Where, g.leaf()}
		}
		if g.Chance(25) && len(g.filters) > 0 {
			q.Where = query.And{q.Where, Pick(g, g.filters...)}
		}
	}
	if g.Chance(55) && len(indexes) > 0 {
		q.From, q.Where = Pick(g, "Orders", "Orders", "orders"), g.bound(indexes)
	}
	if g.Chance(30) {
		q.HasLimit, q.Limit = true, g.IntN(12)
	}
	if g.Chance(20) {
		q.Offset = g.IntN(6)
	}
	switch n := g.IntN(100); {
	case n < 15 && len(indexes) > 0:
		g.covered(q, Pick(g, indexes...))
	case n < 22: // newest first, or oldest
		q.OrderBy = []query.Order{{Field: query.Field{Meta: Pick(g, query.MetaID, query.MetaEtag)}, Descending: g.Chance(50)}}
	case n < 70:
		q.OrderBy = g.orders()
		if g.Chance(50) {
			q.OrderBy = g.indexOrders(indexes)
		}
		if g.Chance(20) {
			q.Select = g.columns()
			q.Distinct = g.Chance(50)
		}
	default:
		if g.grouping(q); len(indexes) > 0 && g.Chance(40) {
			g.kept(q, Pick(g, indexes...))
		}
	}
	return q
}

// kept makes a query of groups that an index of groups keeps: by its members, or some of them, with its condition, perhaps, and no other.
func (g *Generator) kept(q *query.Query, ix jay.Index) {
	if ix.Kind == "" {
		return
	}
	*q = query.Query{From: "Orders"}
	for i, f := range ix.Fields {
		if field := (query.Field{Path: jsonpath.MustParse(f)}); i == 0 || g.Chance(70) {
			q.GroupBy = append(q.GroupBy, field)
			q.Select = append(q.Select, query.Column{Name: fmt.Sprint("k", i), Field: field})
		}
	}
	q.Select = append(q.Select, query.Column{Name: "n", Func: query.FuncCount})
	if ix.Where != "" && g.Chance(90) {
		filter, err := query.Parse("from Orders where "+ix.Where, nil)
		if err != nil {
			panic(err)
		}
		q.Where = filter.Where
	}
}

// bound makes a condition that finds its way into indexes: one, several at
// once, or one of several.
func (g *Generator) bound(indexes []jay.Index) query.Expr {
	bind := func() query.Expr { return g.bindFirst(Pick(g, indexes...)) }
	switch g.IntN(6) {
	case 0, 1:
		return bind()
	case 2:
		return query.And{bind(), bind()}
	case 3:
		return query.And{bind(), bind(), g.leaf()}
	case 4:
		return query.Or{bind(), bind()}
	}
	return query.And{g.leaf(), query.Or{bind(), bind(), query.And{bind(), g.leaf()}}}
}

// bindFirst makes a condition that binds the first fields of an index.
func (g *Generator) bindFirst(ix jay.Index) query.Expr {
	var all query.And
	for i, f := range ix.Fields {
		path := strings.TrimPrefix(f, "-")
		e := query.Compare{Field: query.Field{Path: jsonpath.MustParse(path)}, Value: query.ValueOf([]byte(g.small())), Fold: g.Chance(30)}
		if i == len(ix.Fields)-1 && g.Chance(60) {
			e.Op = query.Op(g.IntN(5))
		}
		if all = append(all, e); g.Chance(40) {
			break
		}
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (g *Generator) columns() []query.Column {
	var out []query.Column
	for i := range 1 + g.IntN(3) {
		out = append(out, query.Column{Name: fmt.Sprint("c", i), Field: g.field()})
	}
	return out
}

// covered makes a query that looks at what one index has, IDs, and nothing
// else.
func (g *Generator) covered(q *query.Query, ix jay.Index) {
	q.From, q.Where = "Orders", nil
	field := func() query.Field {
		if g.Chance(15) {
			return query.Field{Meta: query.MetaID}
		}
		return query.Field{Path: jsonpath.MustParse(strings.TrimPrefix(Pick(g, ix.Fields...), "-"))}
	}
	if g.Chance(60) {
		q.Where = g.bindFirst(ix)
	}
	if g.Chance(30) { // something to look for in every entry
		e := query.Compare{Field: field(), Op: query.Op(g.IntN(5)), Value: g.operand()}
		q.Where = query.And{query.Or{e, query.Exists{Field: field()}}}
		if g.Chance(40) {
			q.Where = g.ofFields(field(), field())
		}
	}
	if f := field(); g.Chance(20) && f.Meta == query.MetaNone {
		q.Where = Pick[query.Expr](g, query.HasType{Field: f, Type: Pick(g, "null", "number", "string", "array", "object")},
			query.HasSize{Field: f, Op: query.Op(g.IntN(5)), N: g.IntN(3)}, query.ElemMatch{Field: f, Where: query.And{}}, g.ofElements(1))
	}
	if ix.Where != "" && g.Chance(80) { // else a partial index is of no use
		filter, err := query.Parse("from Orders where "+ix.Where, nil)
		if err != nil {
			panic(err)
		}
		if q.Where == nil {
			q.Where = filter.Where
		} else {
			q.Where = query.And{q.Where, filter.Where}
		}
	}
	for i := range 1 + g.IntN(3) {
		q.Select = append(q.Select, query.Column{Name: fmt.Sprint("c", i), Field: field()})
	}
	switch g.IntN(5) {
	case 4: // the ends of a range
		f := field()
		q.Select = []query.Column{{Name: "least", Func: query.FuncMin, Field: f}, {Name: "most", Func: query.FuncMax, Field: f}}
	case 0:
		q.OrderBy = g.indexOrders([]jay.Index{ix})
	case 1:
		q.OrderBy = []query.Order{{Field: field(), Descending: g.Chance(50)}}
	case 2:
		q.Distinct = true
	case 3:
		q.Select, q.GroupBy = nil, []query.Field{field()}
		q.Select = append(q.Select, query.Column{Name: "k", Field: q.GroupBy[0]}, query.Column{Name: "n", Func: query.FuncCount})
		for _, f := range []query.Func{query.FuncSum, query.FuncAvg, query.FuncMin, query.FuncMax, query.FuncCountDistinct, query.FuncList, query.FuncListDistinct} {
			q.Select = append(q.Select, query.Column{Name: fmt.Sprint("f", f), Func: f, Field: field()})
		}
		if g.Chance(60) {
			q.Select = append(q.Select[:2], g.picked("p", field(), field()))
		}
		if len(ix.Fields) > 2 && g.Chance(60) { // as an index has it
			of := func(i int) query.Field {
				return query.Field{Path: jsonpath.MustParse(strings.TrimPrefix(ix.Fields[i], "-"))}
			}
			q.GroupBy[0] = of(0)
			q.Select = []query.Column{{Name: "k", Field: of(0)}, g.picked("p", of(2), of(1)), g.picked("o", of(2), of(1))}
			if g.Chance(50) {
				q.Select = append(q.Select, query.Column{Name: "n", Func: query.Func(1 + g.IntN(6)), Field: of(1)})
			}
		}
	}
}

func (g *Generator) grouping(q *query.Query) {
	for range g.IntN(3) {
		f := g.field()
		for _, other := range q.GroupBy {
			if other.String() == f.String() {
				f = query.Field{Meta: query.MetaID}
			}
		}
		q.GroupBy = append(q.GroupBy, f)
	}
	for i, f := range q.GroupBy {
		q.Select = append(q.Select, query.Column{Name: fmt.Sprint("k", i), Field: f})
	}
	for i := range 1 + g.IntN(3) {
		c := query.Column{Name: fmt.Sprint("f", i), Func: query.Func(1 + g.IntN(6))}
		if c.Func != query.FuncCount {
			c.Field = query.Field{Path: g.path()}
		}
		if g.Chance(20) {
			c = g.picked(c.Name, query.Field{Path: g.path()}, query.Field{Path: g.path()})
		} else if g.Chance(15) {
			c.Func, c.Field = Pick(g, query.FuncList, query.FuncListDistinct), query.Field{Path: g.path()}
		}
		q.Select = append(q.Select, c)
	}
	for _, c := range q.Select {
		if g.Chance(30) && c.Func < query.FuncList {
			q.OrderBy = append(q.OrderBy, query.Order{Column: c.Name, Descending: g.Chance(40)})
		}
	}
	if g.Chance(35) {
		q.Having = g.having(q)
	}
}

// picked makes a column with first or last.
func (g *Generator) picked(name string, of, by query.Field) query.Column {
	of.By = &by
	return query.Column{Name: name, Func: Pick(g, query.FuncFirst, query.FuncLast), Field: of}
}

// having makes a condition on groups, of functions that are selected or not.
func (g *Generator) having(q *query.Query) query.Expr {
	leaf := func() query.Expr {
		f := query.Field{Func: query.Func(1 + g.IntN(6))}
		if f.Func != query.FuncCount {
			f.Path = g.path()
		}
		if c := Pick(g, q.Select...); c.Func != query.FuncNone && c.Func < query.FuncList && g.Chance(50) {
			f = c.Field
			f.Func = c.Func
		}
		v := query.ValueOf([]byte(Pick(g, "0", "1", "2", "3", "2.0", "5", `"a"`, "null")))
		if g.Chance(10) {
			return query.In{Field: f, Values: []query.Value{v, query.ValueOf([]byte("2"))}}
		}
		return query.Compare{Field: f, Op: query.Op(g.IntN(5)), Value: v, Fold: g.Chance(50)}
	}
	switch g.IntN(4) {
	case 0:
		return query.And{leaf(), leaf()}
	case 1:
		return query.Or{leaf(), query.Not{Expr: leaf()}}
	}
	return leaf()
}

// Rounds is how many databases the random tests of queries make;
// JAY_QUERY_ROUNDS asks for more.
func Rounds(t testing.TB, normally int) int {
	t.Helper()
	if text := os.Getenv("JAY_QUERY_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		jaytest.Must(t, err)
		return n
	}
	if testing.Short() {
		return max(1, normally/4)
	}
	return normally
}

// Seed is the seed of the first round; JAY_QUERY_SEED repeats one.
func Seed(t testing.TB) uint64 {
	t.Helper()
	if text := os.Getenv("JAY_QUERY_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		jaytest.Must(t, err)
		return n
	}
	return rand.Uint64N(1 << 32)
}

// ChangeIndexes drops some indexes and makes others.
func ChangeIndexes(t testing.TB, g *Generator, db *jay.DB, indexes []jay.Index) []jay.Index {
	t.Helper()
	for len(indexes) > 0 && g.Chance(40) {
		i := g.IntN(len(indexes))
		jaytest.Must(t, db.DropIndex(t.Context(), "Orders", indexes[i].Name))
		indexes = slices.Delete(indexes, i, i+1)
	}
	for range 1 + g.IntN(5) {
		ix := g.Index()
		ix.Name = fmt.Sprint("ix", g.IntN(1_000_000))
		err := db.EnsureIndex(t.Context(), "Orders", ix)
		if errors.Is(err, jay.ErrUnique) && ix.Unique {
			continue
		}
		if err != nil {
			t.Fatalf("index %+v: %v", ix, err)
		}
		indexes = append(indexes, ix)
	}
	if g.Chance(30) {
		jaytest.Must(t, db.EnsureIndex(t.Context(), "@empty", jay.Index{Fields: []string{"a", "b"}}))
	}
	return indexes
}
