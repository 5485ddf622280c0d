package algebra

import (
	"strings"

	"github.com/jaydb/jay/query"
)

// gathering translates what a reduce computes of the entries of a group. Each result is an expression over functions of groups, whose operands
// are expressions over one entry: what filters entries becomes the condition of an if() without a second value, which leaves the others out.
type gathering struct{ *translator }

// each returns what a function gives for one entry.
func (t gathering) each(f *node, s *scope, name string, item value) (value, error) {
	t.entry++
	defer func() { t.entry-- }()
	return t.apply(f, s, name, item)
}

// ofEntry returns what a node is of one entry.
func (t gathering) ofEntry(n *node, s *scope) (value, error) {
	t.entry++
	defer func() { t.entry-- }()
	return t.eval(n, s)
}

// isTrue returns the condition that a value of one entry is.
func (t gathering) isTrue(v value) (condition, error) {
	t.entry++
	defer func() { t.entry-- }()
	return t.translator.condition(v)
}

// condition returns the condition that a function is of one entry.
func (t gathering) condition(f *node, s *scope, name string, item value) (condition, error) {
	v, err := t.each(f, s, name, item)
	if err != nil {
		return condition{}, err
	}
	return t.isTrue(v)
}

// operand returns what a function of groups is of: a member of the maps, or an expression over them.
func (t gathering) operand(at int, item value) (value, error) {
	if item.shape == isReference && item.root == ofRow {
		name, err := t.rowMember(at, item)
		return value{at: at, text: memberText(name), kind: item.kind, maybe: true}, err
	}
	if item.shape == isScalar && item.constant {
		return item, t.fail(at, "a constant is the same for all entries of a group: multiply their number by it")
	}
	t.entry++
	defer func() { t.entry-- }()
	return t.translator.operand(item)
}

// member returns a member of an entry of a group as an operand.
func (t gathering) member(v value) (value, error) {
	if t.entry == 0 {
		return v, t.fail(v.at, "a member of an entry stands in a function of the entries, such as Sum, or in the key")
	}
	name, err := t.rowMember(v.at, v)
	if err != nil {
		return v, err
	}
	out := value{at: v.at, text: asOperand(memberText(name)), kind: v.kind, maybe: true}
	switch v.kind { // of a cast
	case integerKind:
		return truncated(call("coalesce", integerKind, false, out.text, "0"), integerKind), nil
	case decimalKind:
		return call("coalesce", decimalKind, false, out.text, "0"), nil
	}
	return out, nil
}

// among returns an operand of the entries that satisfy a condition.
func among(c condition, text string) string {
	if c.always() {
		return text
	}
	return "if(" + c.in(orderOr) + ", " + asOperand(text) + ")"
}

// asOperand returns the text of a member as an operand of an expression, in which a text in quotes is one.
func asOperand(text string) string {
	if strings.HasPrefix(text, "'") {
		return "field(" + text + ")"
	}
	return text
}

// numberOf returns how many entries satisfy a condition.
func numberOf(c condition) value {
	if c.always() {
		return value{text: "count()", kind: integerKind}
	}
	return value{text: "sum(if(" + c.in(orderOr) + ", 1, 0))", kind: integerKind}
}

// count returns the number of the entries of rows. Null is one of the different values of a list.
func (t gathering) count(n *node, of value) (value, error) {
	if !of.rows.distinct {
		return numberOf(of.rows.where), nil
	}
	v, err := t.operand(n.at, of.rows.item)
	if err != nil {
		return v, err
	}
	text := "count(distinct " + among(of.rows.where, v.text) + ")"
	if !v.maybe {
		return value{text: text, kind: integerKind}, nil
	}
	t.entry++
	defer func() { t.entry-- }()
	nulls := numberOf(and(of.rows.where, t.absent(of.rows.item)))
	return value{text: text + " + if(" + nulls.text + " > 0, 1, 0)", order: orderSum, kind: integerKind}, nil
}

// list returns the values of rows, in their order, as an array.
func (t gathering) list(at int, of value) (value, error) {
	r := of.rows
	switch {
	case r.item.shape == isObject || r.item.shape == isReference && len(r.item.path) == 0:
		return of, t.fail(at, "a list of the entries of a group has one value of each: g.Select(x => x.Name)")
	case r.item.shape == isRows:
		return of, t.fail(at, "a list of lists is not there")
	}
	v, err := t.operand(at, r.item)
	if err != nil {
		return v, err
	}
	if order := r.order; order != "" && (r.descending || memberText(order) != v.text) {
		return v, t.fail(at, "a list of the entries of a group is in the order of its values, and in no other")
	}
	text := v.text
	if v.maybe {
		text = "coalesce(" + asOperand(v.text) + ", null)"
	}
	distinct := ""
	if r.distinct {
		distinct = "distinct "
	}
	return value{at: at, text: "list(" + distinct + among(r.where, text) + ")"}, nil
}

// joined returns the texts of rows with another text between them.
func (t gathering) joined(at int, of value, between value) (value, error) {
	if !between.constant || between.kind != textKind {
		return of, t.fail(between.at, "what stands between joined texts is a constant text")
	}
	list, err := t.list(at, of)
	if err != nil {
		return list, err
	}
	v := call("join", textKind, false, list.text, between.text)
	if !of.rows.where.always() { // perhaps no entry is left
		v = call("coalesce", textKind, false, v.text, "''")
	}
	return v, nil
}

// some returns the condition that an entry satisfies a function, and all that each does.
func (t gathering) some(n *node, of value, args []*node, all bool, s *scope) (value, error) {
	c, err := condition{}, error(nil)
	if len(args) > 0 {
		if c, err = t.condition(args[0], s, "a condition", of.rows.item); err != nil {
			return of, err
		}
	}
	if all {
		if c = and(of.rows.where, not(c)); c.never {
			return value{text: "true", kind: booleanKind}, nil
		}
		return value{shape: isCondition, kind: booleanKind, cond: one("%s = 0", numberOf(c).text)}, nil
	}
	return value{shape: isCondition, kind: booleanKind, cond: one("%s > 0", numberOf(and(of.rows.where, c)).text)}, nil
}

// filtered returns the entries that satisfy a function.
func (t gathering) filtered(n *node, of value, f *node, name string, s *scope) (value, error) {
	c, err := t.condition(f, s, name, of.rows.item)
	if err != nil {
		return of, err
	}
	r := copied(of.rows)
	r.where = and(r.where, c)
	return value{shape: isRows, at: n.at, rows: r}, t.spend(n.at, r.where.text)
}

// method calls a function of the entries of a group. Found is false for one that is not there.
func (t gathering) method(n *node, of value, name string, args []*node, s *scope) (v value, found bool, err error) {
	if of.shape != isRows {
		return of, false, nil
	}
	sharp := !t.script
	switch {
	case len(args) == 1 && (sharp && name == "Where" || t.script && name == "filter"):
		v, err = t.filtered(n, of, args[0], name, s)
	case len(args) == 1 && (sharp && firsts[name] != "" || t.script && name == "find"):
		if v, err = t.filtered(n, of, args[0], name, s); err == nil {
			which := firsts[name]
			if t.script {
				which = "first"
			}
			v, err = ordering(t).first(n.at, v, which)
		}
	case sharp && (name == "Count" || name == "LongCount") && len(args) <= 1:
		if len(args) == 1 {
			if of, err = t.filtered(n, of, args[0], name, s); err != nil {
				return of, true, err
			}
		}
		v, err = t.count(n, of)
	case sharp && name == "Any" && len(args) <= 1, t.script && name == "some" && len(args) == 1:
		v, err = t.some(n, of, args, false, s)
	case len(args) == 1 && (sharp && name == "All" || t.script && name == "every"):
		v, err = t.some(n, of, args, true, s)
	case sharp && name == "Distinct" && len(args) == 0:
		r := copied(of.rows)
		r.distinct = true
		v = value{shape: isRows, at: n.at, rows: r}
	case t.script && name == "join" && len(args) <= 1:
		between := textConstant(",", n.at)
		if len(args) == 1 {
			if between, err = t.eval(args[0], s); err != nil {
				return between, true, err
			}
		}
		v, err = t.joined(n.at, of, between)
	default:
		return of, false, nil
	}
	return v, true, err
}

// set returns the different values that new Set(values) has.
func (t gathering) set(n *node, s *scope) (value, error) {
	const only = "a Set is made of values of the entries of a group: new Set(g.values.map(x => x.name))"
	if !t.reducing || len(n.kids) != 1 {
		return value{}, t.fail(n.at, only)
	}
	of, err := t.eval(n.kids[0], s)
	if err == nil && (of.shape != isRows || of.rows.source) {
		err = t.fail(n.at, only)
	}
	if err != nil {
		return of, err
	}
	r := copied(of.rows)
	r.distinct = true
	return value{shape: isRows, at: n.at, rows: r}, nil
}

// result returns what a member of the result is: a list, a condition, or an expression, which RQL must have.
func (t gathering) result(at int, v value) (value, error) {
	var err error
	switch v.shape {
	case isRows:
		if v.rows.source || v.rows.grouped {
			return v, t.fail(at, "a result of a group is made of its entries")
		}
		v, err = t.list(at, v)
	case isCondition:
		v, err = t.translator.operand(v)
	}
	if err != nil || v.shape != isScalar || v.keyed || v.constant {
		return v, err
	}
	var columns []query.Column
	f, err := query.ParseReduction(v.text, &columns)
	if err != nil {
		return v, t.fail(at, "RQL does not have this: %v", err)
	}
	if len(columns) == 0 && f.Expression != nil { // without parentheses that need not be
		v.text = f.String()
	}
	return v, nil
}
