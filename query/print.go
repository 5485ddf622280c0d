package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// String returns q as a query's text, in one line and in one way of writing:
// keywords in lower case, text in single quotes, parameters as their values, no
// alias. [Parse] makes of it what q is, except that an And or Or of one
// condition is this condition, and that a Fold where there is no text is not
// kept; a query that a builder made beyond the bounds of texts is printed, and
// not parsed. It is what Explain shows.
func (q *Query) String() string {
	var b strings.Builder
	b.WriteString("from ")
	if q.From == "" {
		b.WriteString(allDocuments)
	} else {
		b.WriteString(printName(q.From))
	}

	clause(&b, " group by ", q.GroupBy, Field.String)
	if q.Where != nil {
		b.WriteString(" where ")
		b.WriteString(FormatCondition(q.Where))
	}
	clause(&b, " order by ", q.OrderBy, printOrder)

	clause(&b, q.selecting(), q.Select, printColumn)
	if q.Distinct && len(q.Select) == 0 {
		b.WriteString(" select distinct *")
	}
	clause(&b, " include ", q.Include, pathString)

	if q.HasLimit {
		b.WriteString(" limit " + strconv.Itoa(q.Limit))
	}
	if q.Offset > 0 {
		b.WriteString(" offset " + strconv.Itoa(q.Offset))
	}
	return b.String()
}

// clause writes a list behind its keyword, or nothing if it is empty.
func clause[T any](b *strings.Builder, keyword string, items []T, text func(T) string) {
	for i, item := range items {
		if i > 0 {
			keyword = ", "
		}
		b.WriteString(keyword)
		b.WriteString(text(item))
	}
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
	if o.Descending {
		s += " desc"
	}
	return s
}

// printColumn returns one column, with its name if it is not the usual one.
func printColumn(c Column) string {
	s := c.Field.String()
	switch c.Func {
	case FuncNone:
	case FuncCount:
		s = "count()"
	default:
		s = funcNames[c.Func] + "(" + s + ")"
	}
	if c.Name != columnName(c.Field, c.Func) {
		s += " as " + printName(c.Name)
	}
	return s
}

// FormatCondition returns e as it stands behind where, in the way of writing of
// [Query.String]. [ParseCondition] is its inverse. Of a condition that is deeper
// than [MaxConditionDepth] it says only that.
func FormatCondition(e Expr) string {
	err := walk(e, func(_ Expr, depth int) error { return Size{Depth: depth}.Check() })
	if err != nil {
		return "<" + err.Error() + ">"
	}
	var b strings.Builder
	writeExpr(&b, e, bindsOr)
	return b.String()
}

// How strongly conditions hold together; a weaker one within a stronger one
// stands in parentheses.
const (
	bindsOr = iota
	bindsAnd
	bindsNot
)

// writeExpr writes e, in parentheses if it holds together less than binds.
func writeExpr(b *strings.Builder, e Expr, binds int) {
	switch e := e.(type) {
	case And:
		writeExprs(b, e, " and ", "true", bindsAnd, binds)
	case Or:
		writeExprs(b, e, " or ", "false", bindsOr, binds)
	case Not:
		if c, ok := e.Expr.(Compare); ok && c.Op == Equal {
			writeExact(b, c.Fold || !isText(c.Value), c.Field.String()+" != "+literal(c.Value))
			return
		}
		b.WriteString("not ")
		writeExpr(b, e.Expr, bindsNot)
	default:
		writeLeaf(b, e)
	}
}

// writeExprs writes conditions with a word between them.
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

// writeLeaf writes a condition without others in it.
func writeLeaf(b *strings.Builder, e Expr) {
	switch e := e.(type) {
	case Compare:
		writeExact(b, e.Fold || !isText(e.Value), e.Field.String()+" "+opNames[e.Op]+" "+literal(e.Value))
	case Between:
		writeExact(b, e.Fold || !isText(e.Lo), e.Field.String()+" between "+literal(e.Lo)+" and "+literal(e.Hi))
	case In:
		writeIn(b, e)
	case StartsWith:
		writeCall(b, "startsWith", e.Field, e.Text, e.Fold)
	case EndsWith:
		writeCall(b, "endsWith", e.Field, e.Text, e.Fold)
	case Contains:
		writeCall(b, "contains", e.Field, e.Text, e.Fold)
	case Regexp:
		writeCall(b, "regex", e.Field, e.Pattern, e.Fold)
	case Exists:
		b.WriteString("exists(" + e.Field.String() + ")")
	default:
		fmt.Fprintf(b, "<%T>", e)
	}
}

// opNames are the symbols of comparisons.
var opNames = [...]string{Equal: "=", Less: "<", LessOrEqual: "<=", Greater: ">", GreaterOrEqual: ">="}

// writeExact writes a condition, within exact() if it does not fold.
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

// writeCall writes a function of a field and a text.
func writeCall(b *strings.Builder, name string, f Field, text string, fold bool) {
	writeExact(b, fold, name+"("+f.String()+", "+quote(text)+")")
}

// printName returns a name, in quotes unless it is a word and no keyword.
func printName(name string) string {
	if isWord(name) && !reserved(name) {
		return name
	}
	return quote(name)
}

// isWord tells whether the lexer takes s for one word.
func isWord(s string) bool {
	if s == "" || strings.HasPrefix(s, "\ufeff") {
		return false
	}
	l := lexer{text: s}
	t := l.next()
	return t.kind == tokenWord && t.text == s
}

// quote returns s as a text in single quotes.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.Is(unicode.Cc, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
