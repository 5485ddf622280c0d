package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
)

// String returns q as RQL in canonical form: one line, keywords in lower case,
// text in single quotes, values in place of parameters, no alias. Explain shows
// this form.
//
// [Parse] is the inverse of String, with three exceptions: an And or Or of one
// condition becomes that condition, Fold is lost where no text is compared, and a
// query from a builder may exceed the bounds of Parse.
func (q *Query) String() string {
	var b strings.Builder
	if q.Script != nil {
		b.WriteString(q.Script.declared())
	}
	b.WriteString("from ")
	if q.Index != "" {
		b.WriteString("index " + quote(q.Index))
	} else if q.From == "" {
		b.WriteString(allDocuments)
	} else {
		b.WriteString(printName(q.From))
	}
	where, alias := q.printedWhere()
	if q.Script != nil {
		alias = q.Script.alias
	}
	if alias != "" {
		b.WriteString(" as " + printName(alias))
	}
	if !q.Each.IsZero() {
		b.WriteString(" each " + q.Each.String())
	}
	if q.UseIndex != "" {
		b.WriteString(" use index " + quote(q.UseIndex))
	}
	if q.NoIndex {
		b.WriteString(" use no index")
	}

	clause(&b, " group by ", q.GroupBy, Field.String)
	if where != nil {
		b.WriteString(" where ")
		b.WriteString(FormatCondition(where))
	}
	if q.Fused {
		b.WriteString(" order by " + fusedText(q.OrderBy, printOrder))
	} else {
		clause(&b, " order by ", q.OrderBy, printOrder)
	}

	if q.Script != nil {
		b.WriteString(q.Script.loading() + q.selecting() + q.Script.literal(q.Script.result))
	}
	clause(&b, q.selecting(), q.Select, printColumn)
	clause(&b, " select ", q.Facets, printFacet)
	clause(&b, " select ", q.Suggests, printSuggest)
	if q.Distinct && !q.Projects() {
		b.WriteString(" select distinct *")
	}
	q.printIncludes(&b)

	if q.HasLimit {
		b.WriteString(" limit " + strconv.Itoa(q.Limit))
	}
	if q.Offset > 0 {
		b.WriteString(" offset " + strconv.Itoa(q.Offset))
	}
	return b.String()
}

// printIncludes writes what the query includes.
func (q *Query) printIncludes(b *strings.Builder) {
	var all []string
	for _, path := range q.Include {
		all = append(all, pathString(path))
	}
	for _, h := range q.Highlights {
		all = append(all, printHighlight(h))
	}
	if q.Explanations {
		all = append(all, "explanations()")
	}
	if q.Timings {
		all = append(all, "timings()")
	}
	clause(b, " include ", all, func(s string) string { return s })
}

// printedWhere returns the conditions on documents and on groups as one. A field of
// documents that has the name of a function's column needs an alias in front.
func (q *Query) printedWhere() (where Expr, alias string) {
	var all And
	if q.Where != nil {
		e := q.Where
		if slices.ContainsFunc(q.Select, func(c Column) bool { return c.Func != FuncNone }) && slices.ContainsFunc(Fields(e), q.namesFunction) {
			alias = q.freeAlias()
			e, _ = MapFields(e, func(f Field) (Field, error) {
				if q.namesFunction(f) {
					f.Path = jsonpath.MustParse(alias + "." + f.Path.String())
				}
				return f, nil
			})
		}
		if q.Having == nil {
			return e, alias
		}
		all = append(all, conjuncts(e)...)
	}
	if q.Having != nil {
		all = append(all, conjuncts(q.Having)...)
	}
	return joined(all), alias
}

// namesFunction reports whether f, in a condition, would be taken for a column.
func (q *Query) namesFunction(f Field) bool {
	name, ok := f.member()
	return ok && f.Func == FuncNone && slices.ContainsFunc(q.Select, func(c Column) bool { return c.Func != FuncNone && c.Name == name })
}

// freeAlias returns an alias that no path begins with.
func (q *Query) freeAlias() string {
	roots := make(map[string]bool)
	add := func(f Field) { roots[f.Path.Root()] = true }
	for _, f := range Fields(q.Where) {
		add(f)
	}
	_ = walk(q.Where, func(e Expr, _ int) error { // those in an ElemMatch, too
		if f, ok := fieldOf(e); ok {
			add(f)
		}
		if c, ok := e.(CompareFields); ok {
			add(c.Other)
		}
		return nil
	})
	for _, f := range q.GroupBy {
		add(f)
	}
	for _, c := range q.Select {
		add(c.Field)
		if c.Field.By != nil {
			add(*c.Field.By)
		}
		roots[c.Name] = true
	}
	for _, o := range q.OrderBy {
		add(o.Field)
	}
	roots[q.Each.As], roots[q.Each.Path.Root()] = true, true
	alias := "d"
	for roots[alias] {
		alias += "d"
	}
	return alias
}

// clause writes a keyword and a list of items, or nothing if the list is empty.
func clause[T any](b *strings.Builder, keyword string, items []T, text func(T) string) {
	for i, item := range items {
		if i > 0 {
			keyword = ", "
		}
		b.WriteString(keyword)
		b.WriteString(text(item))
	}
}

// fusedText returns the RQL of an order by reciprocal ranks.
func fusedText[T any](orders []T, text func(T) string) string {
	var b strings.Builder
	clause(&b, "rank.fuse(", orders, text)
	return b.String() + ")"
}

// selecting returns the keyword of q's select.
func (q *Query) selecting() string {
	if q.Distinct {
		return " select distinct "
	}
	return " select "
}

// printOrder returns one key of an order.
func printOrder(o Order) string {
	s := o.Field.String()
	if o.Column != "" {
		s = printName(o.Column)
	}
	if o.As != CastNone {
		s += " as " + castNames[o.As]
	}
	switch {
	case o.Field.Meta == MetaScore && o.Column == "": // the best first, if nothing is said
		if !o.Descending {
			s += " desc"
		}
	case o.Descending:
		s += " desc"
	}
	return s
}

// printColumn returns one column, with its name unless that is the default.
func printColumn(c Column) string {
	s := c.Field.String()
	if c.Func != FuncNone {
		s = funcText(c.Func, c.Field)
	}
	if c.Name != columnName(c.Field, c.Func) {
		s += " as " + printName(c.Name)
	}
	return s
}

// FormatCondition returns e as RQL, in the canonical form of [Query.String].
// [ParseCondition] is its inverse. For a condition deeper than
// [MaxConditionDepth] it returns only the error, in angle brackets.
func FormatCondition(e Expr) string {
	err := walk(e, func(_ Expr, depth int) error { return Size{Depth: depth}.Check() })
	if err != nil {
		return "<" + err.Error() + ">"
	}
	var b strings.Builder
	writeExpr(&b, e, bindsOr)
	return b.String()
}

// Binding strengths of the operators. An operand that binds less strongly than its
// operator needs parentheses.
const (
	bindsOr = iota
	bindsAnd
	bindsNot
)

// writeExpr writes e, in parentheses if it binds less strongly than binds.
func writeExpr(b *strings.Builder, e Expr, binds int) {
	switch e := e.(type) {
	case And:
		writeExprs(b, e, " and ", "true", bindsAnd, binds)
	case Or:
		writeExprs(b, e, " or ", "false", bindsOr, binds)
	case Not:
		switch c := e.Expr.(type) { // != is its own operator in RQL
		case Compare:
			if c.Op == Equal {
				writeExact(b, c.Fold || !isText(c.Value), c.Field.String()+" != "+literal(c.Value))
				return
			}
		case CompareFields:
			if c.Op == Equal {
				writeExact(b, c.Fold, c.Field.String()+" != "+otherString(c.Other))
				return
			}
		}
		b.WriteString("not ")
		writeExpr(b, e.Expr, bindsNot)
	case Boost:
		b.WriteString("boost(")
		writeExpr(b, e.Expr, bindsOr)
		b.WriteString(", " + strconv.FormatFloat(e.By, 'f', -1, 64) + ")")
	case leaf:
		e.write(b)
	default:
		fmt.Fprintf(b, "<%T>", e)
	}
}

// writeExprs writes the conditions of an And or Or: the operator is word, and none
// stands for an empty list.
func writeExprs(b *strings.Builder, list []Expr, word, none string, own, binds int) {
	switch {
	case len(list) == 0:
		b.WriteString(none)
		return
	case len(list) == 1:
		writeExpr(b, list[0], binds)
		return
	case own < binds:
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	for i, e := range list {
		if i > 0 {
			b.WriteString(word)
		}
		writeExpr(b, e, own+1)
	}
}

// otherString returns a field as a query writes it behind an operator, where text in
// quotes is a value.
func otherString(f Field) string {
	text := f.String()
	if f.Expression != nil {
		return text
	}
	if !strings.HasPrefix(text, "'") && (f.Meta != MetaNone || f.Func != FuncNone || f.Date > DateInstant || !isNoValue(f.Path.Root())) {
		return text
	}
	path := f
	path.Date, path.UTC = DateNone, false
	return "field(" + path.String() + ")" + strings.TrimPrefix(text, path.String())
}

// opNames are the operators of comparisons.
var opNames = [...]string{Equal: "=", Less: "<", LessOrEqual: "<=", Greater: ">", GreaterOrEqual: ">="}

// writeExact writes a condition, in exact() unless it folds.
func writeExact(b *strings.Builder, folds bool, condition string) {
	if !folds {
		condition = "exact(" + condition + ")"
	}
	b.WriteString(condition)
}

// writeIn writes an In.
func writeIn(b *strings.Builder, e In) {
	folds := true
	values := make([]string, len(e.Values))
	for i, v := range e.Values {
		values[i] = literal(v)
		folds = folds && (e.Fold || !isText(v))
	}
	word := " in ("
	if e.All {
		word = " all in ("
	}
	writeExact(b, folds, e.Field.String()+word+strings.Join(values, ", ")+")")
}

// writeCall writes a call of a function on a field and a text.
func writeCall(b *strings.Builder, name string, f Field, text string, fold bool) {
	writeExact(b, fold, name+"("+f.String()+", "+quote(text)+")")
}

// printName returns a name, in quotes if it is a keyword or not a single word.
func printName(name string) string {
	if isWord(name) && !reserved(name) {
		return name
	}
	return quote(name)
}

// isWord reports whether the lexer reads s as one word.
func isWord(s string) bool {
	if s == "" || strings.HasPrefix(s, "\ufeff") {
		return false
	}
	l := lexer{text: s}
	t := l.next()
	return t.kind == tokenWord && t.text == s
}
