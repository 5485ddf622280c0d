package algebra

// run follows the statements of a function of JavaScript, and returns what it returns: an entry, entries of an array, or nothing. Where it
// returns different things, they are chosen by the conditions on the way to them.
func (t *translator) run(list []*statement, s *scope) (value, error) {
	if err := t.enter(); err != nil {
		return value{}, err
	}
	defer t.leave()
	if len(list) == 0 {
		return value{shape: isNothing}, nil
	}
	first, rest := list[0], list[1:]
	if err := t.spend(first.at, ""); err != nil {
		return value{}, err
	}
	switch first.kind {
	case "declare":
		v := value{shape: isNothing}
		if first.of != nil {
			var err error
			if v, err = t.eval(first.of, s); err != nil {
				return v, err
			}
		}
		return t.run(rest, s.with(first.name, v))
	case "block":
		return t.run(append(first.yes[:len(first.yes):len(first.yes)], rest...), s)
	case "continue":
		return value{shape: isNothing}, nil
	case "return":
		if first.of == nil {
			return value{shape: isNothing}, nil
		}
		v, err := t.eval(first.of, s)
		if err == nil && v.kind == nullKind && v.constant {
			v = value{shape: isNothing, at: v.at}
		}
		return v, err
	case "if":
		return t.branches(first, rest, s)
	case "each":
		array, err := t.eval(first.of, s)
		if err != nil {
			return array, err
		}
		return t.gathered(first.at, array, first.name, first.yes, rest, s)
	}
	return t.called(first, rest, s)
}

// branches follows both branches of an if, each with the statements behind it.
func (t *translator) branches(first *statement, rest []*statement, s *scope) (value, error) {
	of, err := t.eval(first.of, s)
	if err != nil {
		return of, err
	}
	c, err := t.condition(of)
	if err != nil {
		return of, err
	}
	yes, err := t.run(append(first.yes[:len(first.yes):len(first.yes)], rest...), s)
	if err != nil {
		return yes, err
	}
	no, err := t.run(append(first.no[:len(first.no):len(first.no)], rest...), s)
	if err != nil {
		return no, err
	}
	return t.chosen(first.at, c, yes, no)
}

// called follows a statement that is a call: an array that gathers entries has push, the array of a document forEach.
func (t *translator) called(first *statement, rest []*statement, s *scope) (value, error) {
	n := first.of
	if n.kind != nodeCall || n.kids[0].kind != nodeMember || len(n.kids) != 2 {
		return value{}, t.fail(first.at, "the statement has no effect on the result")
	}
	switch of := n.kids[0].kids[0]; n.kids[0].text {
	case "forEach":
		array, err := t.eval(of, s)
		if err != nil {
			return array, err
		}
		f, err := t.function(n.kids[1], "forEach", 1)
		if err != nil {
			return value{}, err
		}
		body := f.body
		if !f.block {
			body = []*statement{{kind: "call", at: f.kids[0].at, of: f.kids[0]}}
		}
		name := ""
		if len(f.names) > 0 {
			name = f.names[0]
		}
		return t.gathered(first.at, array, name, body, rest, s)
	case "push":
		if of.kind != nodeName {
			return value{}, t.fail(first.at, "push is of an array that the function returns")
		}
		gathers, found := s.find(of.text)
		if !found || gathers.shape != isNothing {
			return value{}, t.fail(first.at, "push is of an array that the function returns, once for each entry")
		}
		for _, other := range rest {
			if other.kind != "return" || other.of != nil {
				if other.kind == "return" && other.of.kind == nodeName && other.of.text == of.text {
					continue
				}
				return value{}, t.fail(other.at, "nothing follows the push of an entry: an element has one")
			}
		}
		v, err := t.eval(n.kids[1], s)
		if err == nil && v.shape != isObject {
			err = t.fail(n.kids[1].at, "an entry is an object of members")
		}
		return v, err
	}
	return value{}, t.fail(first.at, "the statement has no effect on the result: forEach of an array of the document, and push, gather entries")
}

// gathered follows a loop over an array of the document, whose body pushes entries into an array.
func (t *translator) gathered(at int, array value, name string, body, rest []*statement, s *scope) (value, error) {
	into := pushedTo(body)
	if gathers, found := s.find(into); !found || gathers.shape != isNothing {
		return value{}, t.fail(at, "a loop pushes entries into one array, which the function returns")
	}
	list, err := t.listOf(at, array)
	if err != nil {
		return value{}, err
	}
	got, err := t.run(body, s.with(name, list.rows.item))
	if err != nil {
		return got, err
	}
	v, err := t.flattened(at, list, got, name)
	if err != nil {
		return v, err
	}
	return t.run(rest, s.with(into, v))
}

// pushedTo returns the name of the array into which statements push.
func pushedTo(list []*statement) string {
	for _, s := range list {
		if s.kind == "call" && s.of.kind == nodeCall && s.of.kids[0].kind == nodeMember && s.of.kids[0].text == "push" && s.of.kids[0].kids[0].kind == nodeName {
			return s.of.kids[0].kids[0].text
		}
		for _, inner := range [][]*statement{s.yes, s.no} {
			if name := pushedTo(inner); name != "" {
				return name
			}
		}
	}
	return ""
}

// chosenEntry returns one of two entries, or of two lists of them, by a condition. Nothing is no entry.
func (t *translator) chosenEntry(at int, c condition, yes, no value) (value, error) {
	nothing := func(v value) bool {
		return v.shape == isNothing || v.shape == isScalar && v.constant && v.kind == nullKind
	}
	guarded := func(v value, by condition) value {
		r := rows{item: v}
		if v.shape == isRows {
			r = *v.rows
		}
		r.where = and(by, r.where)
		return value{shape: isRows, at: at, rows: &r}
	}
	switch {
	case nothing(yes) && nothing(no):
		return value{shape: isNothing}, nil
	case nothing(no):
		return guarded(yes, c), nil
	case nothing(yes):
		return guarded(no, not(c)), nil
	}
	a, b := guarded(yes, condition{}), guarded(no, condition{})
	x, y := a.rows, b.rows
	switch {
	case x.source || y.source || x.item.shape != isObject || y.item.shape != isObject:
		return a, t.fail(at, "a function returns one entry, or those of one array")
	case pathKey(x.each) != pathKey(y.each):
		return a, t.fail(at, "an index fans out over one array, not now over one and now over another")
	case len(x.item.names) != len(y.item.names):
		return a, t.fail(at, "the entries have members of the same names")
	}
	both := rows{each: x.each, at: x.at, as: x.as, where: or(and(c, x.where), and(not(c), y.where))}
	if x.where.always() && y.where.always() {
		both.where = condition{}
	}
	both.item = value{shape: isObject, at: at, names: x.item.names, ats: x.item.ats}
	for i, name := range x.item.names {
		other := value{}
		found := false
		for j, n := range y.item.names {
			if n == name {
				other, found = y.item.values[j], true
			}
		}
		if !found {
			return a, t.fail(at, "the entries have members of the same names: %.100q is in one of them", name)
		}
		v, err := t.chosen(x.item.ats[i], c, x.item.values[i], other)
		if err != nil {
			return a, err
		}
		both.item.values = append(both.item.values, v)
	}
	return value{shape: isRows, at: at, rows: &both}, t.spend(at, both.where.text)
}

func pathKey(path []step) string {
	if path == nil {
		return ""
	}
	return pathText(ofDocument, path)
}
