package query

import (
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
)

// funcNames are the names of the aggregate functions.
var funcNames = [...]string{FuncNone: "", FuncCount: "count", FuncSum: "sum", FuncAvg: "avg", FuncMin: "min", FuncMax: "max", FuncFirst: "first", FuncLast: "last", FuncList: "list"}

// funcText returns the call of an aggregate function, as a query writes it.
func funcText(fn Func, f Field) string {
	switch fn {
	case FuncCount:
		return "count()"
	case FuncCountDistinct:
		return "count(distinct " + f.String() + ")"
	case FuncListDistinct:
		return "list(distinct " + f.String() + ")"
	}
	return funcNames[fn] + "(" + f.String() + f.orderText() + ")"
}

// function returns the aggregate function that tok names, or FuncNone.
func (p *parser) function() Func {
	for fn := FuncCount; int(fn) < len(funcNames); fn++ {
		if funcNames[fn] != "" && p.tok.is(funcNames[fn]) {
			return fn
		}
	}
	return FuncNone
}

// termOrKey = term | "key" "(" ")" . The key is the field of the group by, which
// must have only one.
func (p *parser) termOrKey(q *Query, expected string, refused map[string]string) (term, error) {
	if p.tok.is("score") && p.atCall() {
		return scores{p}.term()
	}
	if !p.tok.is("key") || !p.atCall() {
		return p.term(expected, refused)
	}
	at := term{offset: p.tok.offset}
	p.advance()
	p.advance()
	if err := p.expectSymbol(")", "behind key("); err != nil {
		return at, err
	}

	switch len(q.GroupBy) {
	case 0:
		return at, p.fail(at.offset, "key() is the key of a group, and there is no group by")
	case 1:
		at.field = q.GroupBy[0]
		at.name, _ = at.field.member()
		return at, nil
	}
	return at, p.fail(at.offset, "key() of several fields is not there").hinting("name the fields of group by one by one")
}

// term = operand | "count" "(" [ "distinct" dated ] ")" | ( "sum" | "avg" | "min" | "max" ) "("
// dated ")" | ( "first" | "last" ) "(" dated "order" "by" dated ")" | "list" "(" [ "distinct" ]
// dated ")" . dated = operand [ "as" ( "date" | "utc" ) ] . An alias without a member is the zero
// Field.
func (p *parser) term(expected string, refused map[string]string) (term, error) {
	at := term{offset: p.tok.offset}
	if p.atWholeDocument() {
		p.advance()
		return at, nil
	}

	var err error
	if !p.atCall() || isFieldCall(p.tok) || p.expr.atExpression() {
		at.field, err = p.expr.operand(expected)
		at.name, _ = at.field.member()
		return at, err
	}
	if at.fn = p.function(); at.fn == FuncNone {
		return at, p.refuseCall(refused, expected)
	}

	name := funcNames[at.fn]
	p.advance()
	p.advance()
	if at.fn == FuncCount && p.accept("distinct") {
		at.fn, name = FuncCountDistinct, "count"
	} else if at.fn == FuncList && p.accept("distinct") {
		at.fn = FuncListDistinct
	}
	if at.fn != FuncCount {
		if at.field, err = p.dateField("the field of " + name + "()"); err != nil {
			return at, err
		}
		if at.fn == FuncFirst || at.fn == FuncLast {
			if at.field.By, err = p.expr.orderOf(name); err != nil {
				return at, err
			}
		}
	} else if !p.tok.isSymbol(")") {
		return at, p.unexpected(`")" behind count(, which counts documents, or distinct and a field`)
	}
	if err := p.expectSymbol(")", "behind the field"); err != nil {
		return at, err
	}
	if operatorAt(p.tok) != nil && !p.expr.reducing {
		return at, p.fail(at.offset, "%s() is of groups, and no operand of an expression", name).hinting(operandsOfGroups)
	}
	return at, nil
}

// operandsOfGroups is the hint for an expression of functions of groups.
const operandsOfGroups = "a function of groups takes an expression: sum(Price * Quantity)"

// grouped reports whether q returns groups: it has a group by, or functions, which
// make one group of all documents.
func (p *parser) grouped(q *Query) bool {
	if len(q.GroupBy) > 0 {
		return true
	}
	for _, column := range q.Select {
		if column.Func != FuncNone {
			return true
		}
	}
	return false
}

// resolve checks group by, order by and select against one another, and resolves
// the orders of groups to columns.
func (p *parser) resolve(q *Query) error {
	if err := p.splitWhere(q); err != nil {
		return err
	}
	if len(q.Facets) > 0 && (q.IncludesMore() || q.HasLimit || q.Offset > 0) {
		return p.fail(p.tok.offset, "facets count documents, and a query with them has neither include nor limit").hinting("the options of a facet have Start and PageSize")
	}
	if len(q.Suggests) > 0 && (q.IncludesMore() || q.HasLimit || q.Offset > 0) {
		return p.fail(p.tok.offset, "a query of words has neither include nor limit").hinting("the options of suggest() have PageSize")
	}
	if !p.grouped(q) {
		for _, key := range p.orders {
			if key.fn != FuncNone {
				return p.fail(key.offset, "%s is of groups, and there are none", funcText(key.fn, key.field)).
					expecting("group by, or a function in select")
			}
		}
		return nil
	}

	if len(q.Select) == 0 {
		return p.fail(p.tok.offset, "a query with group by has to say what it selects").
			expecting("select").hinting("for instance select key(), count()")
	}
	for i, column := range q.Select {
		if column.Func == FuncNone && !isKey(q, column.Field) {
			return p.fail(p.columns[i].offset, "%s is not the same for all documents of a group", column.Field).
				expecting("a field of group by, or a function")
		}
	}
	for i := range q.OrderBy {
		if err := p.resolveOrder(q, &q.OrderBy[i], p.orders[i]); err != nil {
			return err
		}
	}
	return nil
}

// splitWhere moves the conditions on groups from where to having. A name in them that
// is that of a function's column means the column, as in RavenDB, unless the alias
// stands before it.
func (p *parser) splitWhere(q *Query) error {
	if q.Where == nil {
		return nil
	}
	if !p.grouped(q) {
		if f, found := GroupField(q.Where); found {
			return p.fail(p.where, "%s is of groups, and there are none", f).expecting("group by, or a function in select")
		}
		return nil
	}
	where, err := MapFields(q.Where, func(f Field) (Field, error) {
		name, ok := f.member()
		if !ok || p.ofAlias[name] {
			return f, nil
		}
		for _, column := range q.Select {
			if column.Func == FuncNone || column.Name != name {
				continue
			}
			if column.Func != FuncCount && column.Field.String() == f.String() {
				return f, p.fail(p.where, "%s is a field of documents and a column of groups", name).
					expecting("another name for the column, with as").
					hinting("a condition on groups names the function: " + funcText(column.Func, column.Field) + "; one on documents an alias: from ... as d where d." + name)
			}
			column.Field.Func = column.Func
			return column.Field, nil
		}
		return f, nil
	})
	if err != nil {
		return err
	}
	var documents, groups And
	for _, e := range conjuncts(where) {
		ofGroups, ofDocuments := false, false
		for _, f := range Fields(e) {
			ofGroups, ofDocuments = ofGroups || f.Func != FuncNone, ofDocuments || f.Func == FuncNone
		}
		_, compares := e.(CompareFields)
		switch {
		case ofGroups && ofDocuments && compares:
			return p.fail(p.where, "%s compares a field of documents with a function of groups", FormatCondition(e)).expecting("two of a kind")
		case ofGroups && ofDocuments:
			return p.fail(p.where, "a condition on documents and one on groups are joined by or, or by not").expecting("only and between them").
				hinting("documents are chosen before they are grouped, groups behind that")
		case ofGroups:
			groups = append(groups, e)
		default:
			documents = append(documents, e)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	q.Where, q.Having = joined(documents), joined(groups)
	return nil
}

// GroupField returns a field of e that has a Func, if there is one. The depth of e must
// be within the bounds.
func GroupField(e Expr) (f Field, found bool) {
	_ = EachField(e, func(g Field) error {
		if g.Func != FuncNone && !found {
			f, found = g, true
		}
		return nil
	})
	return f, found
}

// EachField calls fn with the field of each condition in e, or with both fields of a CompareFields,
// until fn returns an error. The depth of e must be within the bounds. The fields in an ElemMatch
// count as fields of the document, such as Lines.Product. Without an ElemMatch it allocates
// nothing.
func EachField(e Expr, fn func(Field) error) error {
	switch e := e.(type) {
	case nil:
		return nil
	case And:
		for _, kid := range e {
			if err := EachField(kid, fn); err != nil {
				return err
			}
		}
		return nil
	case Or:
		for _, kid := range e {
			if err := EachField(kid, fn); err != nil {
				return err
			}
		}
		return nil
	case Not:
		return EachField(e.Expr, fn)
	case Boost:
		return EachField(e.Expr, fn)
	}
	f, ok := fieldOf(e)
	if !ok {
		return nil
	}
	if err := fn(f); err != nil {
		return err
	}
	if c, ok := e.(CompareFields); ok {
		return fn(c.Other)
	}
	if m, ok := e.(ElemMatch); ok {
		return EachField(m.Where, func(inner Field) error {
			if checkWithin(f.Path, inner) != nil {
				return nil // Compile refuses the condition
			}
			return eachWithin(f.Path, inner, func(inner Field) error {
				inner.Meta = f.Meta
				return fn(inner)
			})
		})
	}
	return nil
}

// Conjuncts returns the conditions that And joins in e, those of nested Ands included. It returns
// none for a nil e.
func Conjuncts(e Expr) (all []Expr) {
	and, ok := e.(And)
	switch {
	case e == nil:
		return nil
	case !ok:
		return []Expr{e}
	}
	for _, kid := range and {
		all = append(all, Conjuncts(kid)...)
	}
	return all
}

// conjuncts returns the conditions that an And joins at the top.
func conjuncts(e Expr) []Expr {
	if and, ok := e.(And); ok && len(and) > 0 {
		return and
	}
	return []Expr{e}
}

// joined is the inverse of conjuncts; it is nil for none.
func joined(list And) Expr {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

// MapFields returns e with each field replaced by the result of fn, or the first error of fn. In an
// ElemMatch it replaces the field of the elements, and not the fields in Where. It does not change
// e, whose depth must be within the bounds.
func MapFields(e Expr, fn func(Field) (Field, error)) (Expr, error) {
	return MapConditions(e, func(e Expr) (Expr, error) {
		if l, is := e.(leaf); is {
			return l.mapFields(fn)
		}
		return e, nil
	})
}

// GroupColumns returns the columns that a query with groups computes: the columns of select, and
// after them further columns that its condition on groups needs. having is this condition, on rows
// with these columns.
func (q *Query) GroupColumns() (columns []Column, having Expr, err error) {
	columns = q.Select[:len(q.Select):len(q.Select)]
	if q.Having == nil {
		return columns, nil, nil
	}
	having, err = MapFields(q.Having, func(f Field) (Field, error) {
		if f.Func == FuncNone {
			return f, fmt.Errorf("%w: %s is no function of a group", ErrCondition, f)
		}
		plain := f
		plain.Func = FuncNone
		at := slices.IndexFunc(columns, func(c Column) bool {
			return c.Func == f.Func && (f.Func == FuncCount || keyOf(c.Field) == keyOf(plain))
		})
		if at < 0 {
			at = len(columns)
			columns = append(columns, Column{Name: fmt.Sprintf("%s\x00%d", f, at), Func: f.Func, Field: plain})
		}
		path, err := jsonpath.Parse(string(jsonpath.AppendMember(nil, columns[at].Name)))
		column := Field{Path: path}
		if f.Date == DateInstant && (f.Func == FuncMin || f.Func == FuncMax || f.Func == FuncFirst || f.Func == FuncLast) {
			column.Date, column.UTC = DateInstant, f.UTC // the row has its text
		}
		return column, err
	})
	return columns, having, err
}

// isKey reports whether f is a field of q's group by.
func isKey(q *Query, f Field) bool {
	for _, key := range q.GroupBy {
		if sameField(key, f) || key.ShownAs(f) {
			return true
		}
	}
	return false
}

// sumOf returns the index of the column that is the sum of a field, if there is one.
func sumOf(columns []Column, key term) (at int, found bool) {
	if key.fn != FuncNone || key.field.Date != DateNone {
		return 0, false
	}
	at = slices.IndexFunc(columns, func(c Column) bool { return c.Func == FuncSum && sameField(c.Field, key.field) })
	return at, at >= 0
}

// resolveOrder makes an order of groups refer to a column: the one with this name,
// or else the one of the same field and function, or else the sum of the field. Columns are instants or are not: only
// a field of group by can be ordered by as date, and has this order anyway.
func (p *parser) resolveOrder(q *Query, order *Order, key term) error {
	if key.fn == FuncNone && key.name != "" && key.field.Date == DateNone {
		for _, column := range q.Select {
			if column.Name == key.name {
				order.Field, order.Column = Field{}, column.Name
				return nil
			}
		}
	}
	for _, column := range q.Select {
		if column.Func == key.fn && (sameField(column.Field, key.field) || key.fn == FuncNone && isKey(q, key.field) && key.field.ShownAs(column.Field)) {
			order.Field, order.Column = Field{}, column.Name
			return nil
		}
	}
	if at, found := sumOf(q.Select, key); found { // RavenDB names a sum after its field
		order.Field, order.Column = Field{}, q.Select[at].Name
		return nil
	}
	return p.fail(key.offset, "select has no such column to order groups by").expecting("a column of select, by its name or as it is written there")
}
