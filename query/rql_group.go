package query

// funcNames are the names of the aggregate functions.
var funcNames = [...]string{FuncNone: "", FuncCount: "count", FuncSum: "sum", FuncAvg: "avg", FuncMin: "min", FuncMax: "max"}

// function returns the aggregate function that tok names, or FuncNone.
func (p *parser) function() Func {
	for fn := FuncCount; int(fn) < len(funcNames); fn++ {
		if p.tok.is(funcNames[fn]) {
			return fn
		}
	}
	return FuncNone
}

// termOrKey = term | "key" "(" ")" . The key is the field of the group by, which
// must have only one.
func (p *parser) termOrKey(q *Query, expected string, refused map[string]string) (term, error) {
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

// term = field | "count" "(" ")" | ( "sum" | "avg" | "min" | "max" ) "(" field ")" .
// An alias without a member is the zero Field.
func (p *parser) term(expected string, refused map[string]string) (term, error) {
	at := term{offset: p.tok.offset}
	if p.atWholeDocument() {
		p.advance()
		return at, nil
	}

	var err error
	if !p.atCall() || p.tok.is("id") || datePart(p.tok) != DateNone {
		at.field, err = p.field(expected)
		at.name, _ = at.field.member()
		return at, err
	}
	if at.fn = p.function(); at.fn == FuncNone {
		return at, p.refuseCall(refused, expected)
	}

	name := funcNames[at.fn]
	p.advance()
	p.advance()
	if at.fn != FuncCount {
		if at.field, err = p.dateField("the field of " + name + "()"); err != nil {
			return at, err
		}
	} else if !p.tok.isSymbol(")") {
		return at, p.unexpected(`")" behind count(, which counts documents`)
	}
	return at, p.expectSymbol(")", "behind the field")
}

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
	if !p.grouped(q) {
		for _, key := range p.orders {
			if key.fn != FuncNone {
				return p.fail(key.offset, "%s() is of groups, and there are none", funcNames[key.fn]).
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

// isKey reports whether f is a field of q's group by.
func isKey(q *Query, f Field) bool {
	for _, key := range q.GroupBy {
		if sameField(key, f) || key.shownAs(f) {
			return true
		}
	}
	return false
}

// resolveOrder makes an order of groups refer to a column: the one with this name,
// or else the one of the same field and function. Columns are instants or are not: only
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
		if column.Func == key.fn && (sameField(column.Field, key.field) || key.fn == FuncNone && isKey(q, key.field) && key.field.shownAs(column.Field)) {
			order.Field, order.Column = Field{}, column.Name
			return nil
		}
	}
	return p.fail(key.offset, "select has no such column to order groups by").expecting("a column of select, by its name or as it is written there")
}
