package algebra

import "slices"

// ordering translates what a reduce has of single entries of a group: the first one and the last one, in an order.
type ordering struct{ *translator }

// firsts are the functions of C# that have one entry of a group.
var firsts = map[string]string{"First": "first", "FirstOrDefault": "first", "Last": "last", "LastOrDefault": "last"}

// method calls a function that orders the entries of a group, or has one of them.
func (t ordering) method(n *node, of value, name string, args []*node, s *scope) (value, error) {
	switch {
	case firsts[name] != "":
		return t.first(n.at, of, firsts[name])
	case of.rows.order != "" || name == "ThenBy" || name == "ThenByDescending":
		return of, t.fail(n.at, "the entries of a group have one order")
	case len(args) != 1:
		return of, t.fail(n.at, "%s takes one function", name)
	}
	r := copied(of.rows)
	var err error
	if name == "sort" {
		r.order, r.descending, err = t.compared(args[0], of.rows.item, s)
		if sorted := t.sorted; err == nil && sorted != nil && (sorted.order != r.order || sorted.descending != r.descending) {
			err = t.fail(n.at, "sort changes the values themselves, which have one order")
		}
		t.sorted = r
	} else {
		r.descending = name == "OrderByDescending"
		r.order, err = t.by(args[0], name, of.rows.item, s)
	}
	return value{shape: isRows, at: n.at, rows: r}, err
}

// by returns the member that a function has of an entry.
func (t ordering) by(f *node, name string, item value, s *scope) (string, error) {
	v, err := t.apply(f, s, name, item)
	if err != nil {
		return "", err
	}
	return t.rowMember(f.at, v)
}

// compared returns the member by which a function of JavaScript orders two entries: (a, b) => a.n - b.n.
func (t ordering) compared(f *node, item value, s *scope) (member string, descending bool, err error) {
	const only = "sort takes the difference of a member: (a, b) => a.n - b.n, or (a, b) => b.n - a.n"
	if f.kind != nodeLambda || f.block || len(f.names) != 2 || f.kids[0].kind != nodeBinary || f.kids[0].text != "-" {
		return "", false, t.fail(f.at, only)
	}
	var names [2]string // the members of the operands, and of which parameters they are
	var parameters [2]int
	for i, operand := range f.kids[0].kids {
		for j, name := range f.names {
			v, err := t.eval(operand, s.with(f.names[0], value{shape: isNothing}).with(f.names[1], value{shape: isNothing}).with(name, item))
			if err != nil {
				continue
			}
			if names[i], err = t.rowMember(operand.at, v); err != nil {
				return "", false, err
			}
			parameters[i] = j
		}
	}
	if names[0] == "" || names[0] != names[1] || parameters[0] == parameters[1] {
		return "", false, t.fail(f.at, only)
	}
	return names[0], parameters[0] == 1, nil
}

// first returns the first or the last entry of a group, whose members are known, or what was selected of it.
func (t ordering) first(at int, of value, which string) (value, error) {
	item := of.rows.item
	if item.shape == isReference && len(item.path) == 0 {
		item = value{shape: isObject, at: at}
		for _, m := range t.members {
			item.add(m, at, value{shape: isReference, at: at, root: ofRow, path: []step{{name: m, index: -1}}})
		}
	}
	if item.shape != isObject {
		return t.member(at, of, item, which)
	}
	o := value{shape: isObject, at: at, names: item.names, ats: item.ats}
	for _, one := range item.values {
		v, err := t.member(at, of, one, which)
		if err != nil {
			return v, err
		}
		o.values = append(o.values, v)
	}
	return o, nil
}

// member returns a member of the first or of the last entry. Without an order it is that of any entry: the least value for the first one, the
// greatest for the last.
func (t ordering) member(at int, of, item value, which string) (value, error) {
	name, err := t.rowMember(at, item)
	if err != nil {
		return item, err
	}
	isKey := func(name string) int {
		return slices.IndexFunc(t.key, func(k value) bool { return k.raw == name })
	}
	where := of.rows.where
	if n := isKey(name); n >= 0 && where.always() { // all entries have it
		return t.key[n], nil
	}
	order, descending := of.rows.order, of.rows.descending
	if order == "" && t.sorted != nil {
		order, descending = t.sorted.order, t.sorted.descending
	}
	if descending {
		which = map[string]string{"first": "last", "last": "first"}[which]
	}
	if order == "" || order == name || isKey(order) >= 0 {
		end := map[string]string{"first": "min", "last": "max"}[which]
		return value{at: at, text: end + "(" + among(where, memberText(name)) + ")", kind: unknownKind, maybe: true}, nil
	}
	return value{at: at, text: which + "(" + memberText(name) + " order by " + among(where, memberText(order)) + ")", kind: unknownKind, maybe: true}, nil
}
