package algebra

import (
	"slices"

	"github.com/jaydb/jay/index"
)

func translateReduce(text string, script bool, members []string, budget *int) (*index.Reduce, error) {
	t, err := newTranslator("reduce", text, script, budget)
	if err != nil {
		return nil, err
	}
	n, err := t.all()
	if err != nil {
		return nil, err
	}
	t.reducing, t.members = true, members
	var found value
	if script && n.kind == nodeLambda {
		results, err := t.name(&node{at: n.at, text: "results"}, nil)
		if err != nil {
			return nil, err
		}
		found, err = t.apply(n, nil, "reduce", results)
		if err != nil {
			return nil, err
		}
	} else if found, err = t.eval(n, nil); err != nil {
		return nil, err
	}
	if found.shape != isRows || !found.rows.grouped || found.rows.item.shape != isObject {
		return nil, t.fail(n.at, "a reduce groups, and gives an object for each group: from r in results group r by r.Name into g select new { Name = g.Key, ... }, or groupBy(x => x.name).aggregate(g => ({ name: g.key, ... }))")
	}
	object := found.rows.item
	reduce := &index.Reduce{}
	key := found.rows.key
	keys := key.values
	if key.shape == isScalar {
		keys = []value{key}
	}
	for _, k := range keys {
		if !slices.Contains(reduce.GroupBy, k.raw) {
			reduce.GroupBy = append(reduce.GroupBy, k.raw)
		}
	}
	for i, name := range object.names {
		if slices.Contains(object.names[:i], name) {
			return nil, t.wrong(object.ats[i], "the member %.100q is there twice", name)
		}
		if !slices.Contains(members, name) {
			return nil, t.wrong(object.ats[i], "the reduce gives a member %.100q that the maps do not give", name)
		}
		v, err := gathering{t}.result(object.ats[i], object.values[i])
		if err != nil {
			return nil, err
		}
		switch {
		case v.shape == isKey:
			return nil, t.fail(object.ats[i], "a member that is an object is not there: name the members of the key")
		case v.shape != isScalar:
			return nil, t.fail(object.ats[i], "a result of a group is one of its members, or made of functions of its entries")
		case v.constant:
			return nil, t.fail(object.ats[i], "a result of a group that is the same for all is not there")
		case v.keyed && v.raw == name:
			v.text = ""
		}
		reduce.Select = append(reduce.Select, index.Member{Name: name, Expression: v.text})
	}
	for _, m := range members {
		if !slices.Contains(object.names, m) {
			return nil, t.wrong(object.at, "the reduce does not give the member %.100q that the maps give", m)
		}
	}
	return reduce, nil
}

// rowMember returns the name of a member of the maps.
func (t *translator) rowMember(at int, v value) (string, error) {
	if v.shape != isReference || v.root != ofRow || len(v.path) != 1 || v.path[0].index >= 0 {
		return "", t.fail(at, "this is no member of the maps: compute it in a map, and name it here")
	}
	if name := v.path[0].name; slices.Contains(t.members, name) {
		return name, nil
	}
	return "", t.wrong(at, "the maps give no member %.100q", v.path[0].name)
}

func memberText(name string) string {
	if isPlain(name) {
		return name
	}
	return quote(name)
}

// groupsBy returns groups by a key: a member of the maps, or an object of such.
func (t *translator) groupsBy(at int, by value) (value, error) {
	member := func(v value) (value, error) {
		name, err := t.rowMember(v.at, v)
		return value{at: v.at, text: memberText(name), raw: name, keyed: true, maybe: true}, err
	}
	key, err := value{}, error(nil)
	if by.shape == isObject {
		key = value{shape: isKey, at: at, names: by.names}
		if n := len(by.names); n == 0 || n > MaxGroupMembers {
			return key, t.fail(at, "a key has %d members: 1 to %d", n, MaxGroupMembers)
		}
		for _, v := range by.values {
			k, err := member(v)
			if err != nil {
				return k, err
			}
			key.values = append(key.values, k)
		}
	} else if key, err = member(by); err != nil {
		return key, err
	}
	if t.key = key.values; key.shape == isScalar {
		t.key = []value{key}
	}
	return value{shape: isGroups, at: at, rows: &rows{key: key}}, nil
}

// methodOfGroups gives an object for each group.
func (t *translator) methodOfGroups(n *node, of value, name string, args []*node, s *scope) (value, error) {
	if name != "Select" && name != "aggregate" || len(args) != 1 {
		return of, t.fail(n.at, "%.100s of groups is not there: Select, or aggregate, gives an object for each", name)
	}
	item, err := t.apply(args[0], s, name, value{shape: isGroup, rows: of.rows})
	return value{shape: isRows, rows: &rows{source: true, grouped: true, item: item, key: of.rows.key}}, err
}

// memberOfGroup returns the key of a group, or its entries.
func (t *translator) memberOfGroup(n *node, of value) (value, error) {
	switch {
	case n.text == "Key" && !t.script, n.text == "key" && t.script:
		return of.rows.key, nil
	case n.text == "values" && t.script:
		return entriesOf(), nil
	}
	return of, t.fail(n.at, "a group has no member %.100s", n.text)
}

func entriesOf() value {
	return value{shape: isRows, rows: &rows{item: value{shape: isReference, root: ofRow}}}
}

// aggregates are the functions of the entries of a group, and what RQL calls them.
var aggregates = map[string]string{"Sum": "sum", "Min": "min", "Max": "max", "Average": "avg"}

// methodOfGroup calls a function of the entries of a group, or of a member of them.
func (t *translator) methodOfGroup(n *node, of value, name string, args []*node, s *scope) (value, error) {
	if of.shape == isGroup {
		if t.script {
			return of, t.fail(n.at, "the entries of a group are its values")
		}
		of = entriesOf()
	}
	switch {
	case slices.Contains(passed, name) && len(args) == 0 && name != "Reverse":
		return of, nil
	case (name == "Select" && !t.script || name == "map" && t.script) && len(args) == 1:
		if of.rows.distinct {
			return of, t.fail(n.at, "%s stands before what is distinct", name)
		}
		r := copied(of.rows)
		var err error
		r.item, err = gathering{t}.each(args[0], s, name, of.rows.item)
		return value{shape: isRows, rows: r}, err
	case name == "reduce" && t.script:
		return t.folded(n, of, args, s)
	case firsts[name] != "" && !t.script && len(args) == 0, name == "sort" && t.script, slices.Contains([]string{"OrderBy", "OrderByDescending", "ThenBy", "ThenByDescending"}, name) && !t.script:
		return ordering{t}.method(n, of, name, args, s)
	case !t.script && aggregates[name] != "" && len(args) <= 1:
		var f *node
		if len(args) == 1 {
			f = args[0]
		}
		return t.aggregate(n, of, name, f, s)
	}
	if v, found, err := (gathering{t}).method(n, of, name, args, s); found {
		return v, err
	}
	return of, t.fail(n.at, "%.100s of a group is not there: Sum, Count, Min, Max, Average, First, Last, Any, All, Where, Select and Distinct are", name)
}

// aggregate returns an aggregate of a member of the entries.
func (t *translator) aggregate(n *node, of value, name string, f *node, s *scope) (value, error) {
	if of.shape != isRows {
		return of, t.fail(n.at, "%.100s is of the entries of a group", name)
	}
	item := of.rows.item
	if f != nil {
		var err error
		if item, err = (gathering{t}).each(f, s, name, item); err != nil {
			return item, err
		}
	}
	if name == "Sum" && item.constant && item.raw == "1" {
		return numberOf(of.rows.where), nil
	}
	if of.rows.distinct && (name == "Sum" || name == "Average") {
		return item, t.fail(n.at, "%s of distinct values is not there", name)
	}
	operand, err := (gathering{t}).operand(n.at, item)
	if err != nil {
		return item, err
	}
	kind := decimalKind // without a cast, sums are decimals
	if t.script {
		kind = numberKind
	}
	switch of := operand.kind; {
	case name != "Sum" && name != "Average":
		if kind = of; kind == anyKind {
			kind = unknownKind
		}
	case of == textKind || of == booleanKind || of == instantKind:
		return operand, t.fail(n.at, "%s takes numbers, and this is %s", name, kindNames[of])
	case name == "Sum" && of != anyKind, of == numberKind:
		kind = of
	}
	return value{text: aggregates[name] + "(" + among(of.rows.where, operand.text) + ")", kind: kind, maybe: name != "Sum"}, nil
}

// scriptMap follows map('Users', x => ...).
func (t *translator) scriptMap(n *node) (value, error) {
	if n.kind == nodeCall && n.kids[0].kind == nodeMember && n.kids[0].kids[0].kind == nodeName && (n.kids[0].kids[0].text == "counters" || n.kids[0].kids[0].text == "timeSeries") {
		return value{}, t.fail(n.at, "an index of %s is not there", n.kids[0].kids[0].text)
	}
	if n.kind != nodeCall || n.kids[0].kind != nodeName || n.kids[0].text != "map" {
		return value{}, t.fail(n.at, "a map of JavaScript is map('Users', x => ...)")
	}
	if len(n.kids) != 3 || n.kids[1].kind != nodeText {
		return value{}, t.fail(n.at, "map takes the name of a collection, and a function")
	}
	docs := value{shape: isRows, rows: &rows{source: true, item: value{shape: isReference, root: ofDocument}}}
	docs = collection(docs, n.kids[1].text)
	got, err := t.apply(n.kids[2], nil, "map", docs.rows.item)
	if err != nil {
		return got, err
	}
	return t.flattened(n.kids[2].at, docs, got, "")
}
