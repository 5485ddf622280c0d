package algebra

import "slices"

// queryOf follows a query of C#.
func (t *translator) queryOf(n *node, s *scope) (value, error) {
	var r *rows
	group := false // the variable of into is a group
	for _, c := range n.query {
		if c.kind == "from" {
			v, err := t.eval(c.of, s)
			if err != nil {
				return v, err
			}
			if r == nil && v.shape == isRows {
				r = copied(v.rows)
			} else if r, err = t.fanned(c.at, r, v, c.name); err != nil {
				return v, err
			}
			s = s.with(c.name, r.item)
			continue
		}
		if c.kind == "where" && t.reducing {
			return value{}, t.fail(c.at, "a reduce does not filter: a map does")
		}
		of, err := t.eval(c.of, s)
		if err != nil {
			return of, err
		}
		switch c.kind {
		case "where":
			asked, err := t.condition(of)
			if err != nil {
				return of, err
			}
			r.where = and(r.where, asked)
			if err := t.spend(c.at, r.where.text); err != nil {
				return of, err
			}
		case "let":
			s = s.with(c.name, of)
		case "select":
			r.item = of
			r.grouped = group
			if c.name != "" {
				s = s.with(c.name, of)
			}
		case "group":
			if of.shape != isReference || of.root != ofRow || len(of.path) > 0 {
				return of, t.fail(c.at, "a reduce groups the results of maps: group r by r.Name")
			}
			by, err := t.eval(c.by, s)
			if err != nil {
				return by, err
			}
			groups, err := t.groupsBy(c.by.at, by)
			if err != nil || c.name == "" {
				return groups, err
			}
			group = true
			s = s.with(c.name, value{shape: isGroup, rows: groups.rows})
			r.key = groups.rows.key
		}
	}
	return value{shape: isRows, rows: r}, nil
}

func copied(r *rows) *rows {
	c := *r
	return &c
}

// fanned returns rows for each element of an array, which a second from names.
func (t *translator) fanned(at int, r *rows, array value, name string) (*rows, error) {
	list, err := t.listOf(at, array)
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = copied(list.rows)
	} else {
		if r.each != nil {
			return nil, t.fail(at, "an index fans out over one array of a document")
		}
		r = copied(r)
		r.each, r.at, r.item, r.where = list.rows.each, list.rows.at, list.rows.item, and(r.where, list.rows.where)
	}
	if r.as == "" {
		r.as = name
	}
	return r, nil
}

// listOf returns the elements of an array of the document.
func (t *translator) listOf(at int, v value) (value, error) {
	if v.shape == isRows && !v.rows.source && v.rows.each != nil {
		return v, nil
	}
	switch {
	case v.shape != isReference || v.root == ofRow || v.kind != anyKind:
		return v, t.fail(at, "this is no array of the document")
	case v.root == ofElement:
		return v, t.fail(at, "an index fans out over one array of a document, not over arrays in its elements")
	case v.root == ofInner || len(v.path) == 0:
		return v, t.fail(at, "an index fans out over an array of the document")
	}
	if v.isLoaded() {
		return loader{t}.listOf(at, v), nil
	}
	return value{shape: isRows, at: at, rows: &rows{each: v.path, at: at, item: value{shape: isReference, root: ofElement, maybe: true}}}, nil
}

// flattened returns the rows that a function gives for each of others: an object for each, or a list.
func (t *translator) flattened(at int, of value, got value, name string) (value, error) {
	r := copied(of.rows)
	if r.as == "" && r.each != nil {
		r.as = name
	}
	switch got.shape {
	case isNothing:
		return got, t.fail(at, "the function returns no entry")
	case isRows:
		if got.rows.source || got.rows.each != nil && r.each != nil {
			return got, t.fail(at, "an index fans out over one array of a document")
		}
		if got.rows.each != nil {
			r.each, r.at, r.as = got.rows.each, got.rows.at, got.rows.as
		}
		r.where = and(r.where, got.rows.where)
		r.item = got.rows.item
	default:
		r.item = got
	}
	return value{shape: isRows, at: at, rows: r}, t.spend(at, r.where.text)
}

// parameter returns the name of the first parameter of a function.
func parameter(n *node) string {
	for n.kind == nodeCast {
		n = n.kids[0]
	}
	if len(n.names) > 0 {
		return n.names[0]
	}
	return ""
}

// passed are functions that change nothing of a list.
var passed = []string{"AsEnumerable", "ToList", "ToArray", "Cast", "AsQueryable", "Reverse"}

// methodOfRows calls a function of documents, or of elements.
func (t *translator) methodOfRows(n *node, of value, name string, args []*node, s *scope) (value, error) {
	switch {
	case slices.Contains(passed, name) && len(args) == 0 && name != "Reverse":
		return of, nil
	case name == "WhereEntityIs" && of.rows.source && len(args) == 1 && args[0].kind == nodeText:
		return collection(of, args[0].text), nil
	case len(args) == 0:
		return of, t.fail(n.at, "%s() of a list is not there", name)
	}
	switch name {
	case "Where", "filter":
		if t.reducing {
			return of, t.fail(n.at, "a reduce does not filter: a map does")
		}
		v, err := t.apply(args[0], s, name, of.rows.item)
		if err != nil {
			return v, err
		}
		c, err := t.condition(v)
		if err != nil {
			return v, err
		}
		r := copied(of.rows)
		if r.as == "" && r.each != nil {
			r.as = parameter(args[0])
		}
		r.where = and(r.where, c)
		return value{shape: isRows, rows: r}, t.spend(n.at, r.where.text)
	case "Select", "map":
		got, err := t.apply(args[0], s, name, of.rows.item)
		if err != nil {
			return got, err
		}
		if of.rows.source && (got.shape == isRows || got.shape == isNothing) {
			return got, t.fail(n.at, "SelectMany fans out, Select gives an object for each")
		}
		return t.flattened(n.at, of, got, parameter(args[0]))
	case "SelectMany", "flatMap":
		return t.selectMany(n, of, args, s)
	case "GroupBy", "groupBy":
		if !t.reducing || !of.rows.source {
			return of, t.fail(n.at, "a map does not group: a reduce does")
		}
		if len(args) != 1 {
			return of, t.fail(n.at, "%s takes one function, of the key", name)
		}
		by, err := t.apply(args[0], s, name, of.rows.item)
		if err != nil {
			return by, err
		}
		return t.groupsBy(args[0].at, by)
	}
	return of, t.fail(n.at, "%s of a list is not there", name)
}

// selectMany fans out: documents.SelectMany(x => x.Lines, (x, line) => new { ... }).
func (t *translator) selectMany(n *node, of value, args []*node, s *scope) (value, error) {
	got, err := t.apply(args[0], s, "SelectMany", of.rows.item)
	if err != nil {
		return got, err
	}
	list, err := t.listOf(args[0].at, got)
	if err != nil {
		return list, err
	}
	document := of.rows.item
	if len(args) == 1 {
		return t.flattened(n.at, of, list, "")
	}
	item, err := t.apply(args[1], s, "SelectMany", document, list.rows.item)
	if err != nil {
		return item, err
	}
	f, _ := t.function(args[1], "SelectMany", 2)
	r := copied(list.rows)
	r.item = item
	if r.as == "" && len(f.names) > 1 {
		r.as = f.names[1]
	}
	return t.flattened(n.at, of, value{shape: isRows, rows: r}, "")
}

// memberOfRows returns a member of a list: a collection of docs, or the number of the entries of a group.
func (t *translator) memberOfRows(n *node, of value) (value, error) {
	switch {
	case of.rows.source && !t.reducing && of.rows.collection == "" && of.rows.item.shape == isReference && of.rows.item.root == ofDocument:
		return collection(of, n.text), nil
	case t.reducing && !of.rows.source && (n.text == "length" && t.script || n.text == "Count" && !t.script || n.text == "size" && of.rows.distinct && t.script):
		return gathering{t}.count(n, of)
	}
	return of, t.fail(n.at, "a list has no member %.100s", n.text)
}

// methodOfArray calls a function of what a path reaches, if it is one of arrays.
func (t *translator) methodOfArray(n *node, of value, name string, args []*node, s *scope) (v value, found bool, err error) {
	switch name {
	case "Where", "Select", "SelectMany", "filter", "map", "flatMap", "AsEnumerable", "ToList", "ToArray", "Cast":
		if len(args) == 1 && (name == "Select" || name == "map") {
			if v, is, err := (creating{t}).ofElements(of, args[0], s); is {
				return v, true, err
			}
		}
		list, err := t.listOf(n.at, of)
		if err != nil {
			return list, true, err
		}
		v, err = t.methodOfRows(n, list, name, args, s)
		return v, true, err
	case "Count", "LongCount", "Length":
		if len(args) > 0 {
			return v, true, t.fail(n.at, "a number of some elements is not there: fan out and reduce")
		}
		of.shape, of.text, of.called = isMeasure, "Count", true
		return of, true, nil
	case "Any", "some", "All", "every":
		v, err = t.quantified(n, of, name, args, s)
		return v, true, err
	case "First", "FirstOrDefault":
		if len(args) > 0 {
			return v, true, t.fail(n.at, "the first of some elements is not there")
		}
		if of.isLoaded() {
			v, err = loader{t}.element(of, 0)
		} else {
			v, err = t.reference(of, step{index: 0})
		}
		return v, true, err
	case "Contains", "includes":
		if len(args) != 1 {
			return v, true, t.fail(n.at, "%s takes one value", name)
		}
		arg, err := t.eval(args[0], s)
		if err != nil {
			return arg, true, err
		}
		c, err := t.contains(n, of, arg)
		return value{shape: isCondition, kind: booleanKind, cond: c}, true, err
	case "Sum", "Min", "Max", "Average", "reduce", "Aggregate", "Distinct", "OrderBy", "OrderByDescending", "Concat", "Union", "Last", "LastOrDefault", "Single", "SingleOrDefault", "find", "sort", "flat", "join", "DefaultIfEmpty", "Take", "Skip", "Zip", "Except", "Intersect", "GroupBy":
		return v, true, t.fail(n.at, "%s of an array is no expression of RQL: fan out over the array, and reduce", name)
	}
	return v, false, nil
}

// quantified returns a condition on some element, or on all.
func (t *translator) quantified(n *node, of value, name string, args []*node, s *scope) (value, error) {
	if len(args) == 0 {
		of.shape, of.text, of.called = isMeasure, "Count", true
		c, err := t.compareMeasure(n, ">", of, value{text: "0", raw: "0", kind: integerKind, constant: true})
		return value{shape: isCondition, kind: booleanKind, cond: c}, err
	}
	if t.inner > 0 {
		return of, t.fail(n.at, "a condition on elements of elements is not there")
	}
	t.inner++
	got, err := t.apply(args[0], s, name, value{shape: isReference, root: ofInner, maybe: true})
	if err != nil {
		t.inner--
		return got, err
	}
	c, err := t.condition(got)
	if name == "All" || name == "every" {
		c = not(c)
	}
	t.inner--
	if err != nil {
		return got, err
	}
	c = one("elemMatch(%s, %s)", of.pathText(), c.in(orderOr))
	if name == "All" || name == "every" {
		c = not(c)
	}
	return value{shape: isCondition, kind: booleanKind, cond: c}, nil
}

// contains returns the condition that an array has an element, or a text has another in it.
func (t *translator) contains(n *node, of, arg value) (condition, error) {
	if !arg.constant || arg.kind == nullKind {
		return condition{}, t.fail(arg.at, "what is looked for is a constant")
	}
	o, err := t.operand(of)
	if err != nil {
		return condition{}, err
	}
	inText := one("exact(contains(%s, %s))", o.text, arg.text)
	switch {
	case of.shape != isReference && arg.kind == textKind:
		return inText, nil
	case of.shape != isReference:
		return condition{}, t.fail(n.at, "a text is looked for in a text")
	}
	inArray := and(one("type(%s) = 'array'", o.text), one("exact(%s = %s)", o.text, arg.text))
	if arg.kind != textKind {
		return inArray, nil
	}
	return or(inArray, and(one("type(%s) = 'string'", o.text), inText)), nil
}
