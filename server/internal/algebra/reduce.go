package algebra

import (
	"slices"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
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
		v := object.values[i]
		switch {
		case v.shape == isKey:
			return nil, t.fail(object.ats[i], "a member that is an object is not there: name the members of the key")
		case v.shape != isScalar:
			return nil, t.fail(object.ats[i], "a result of a group is one of its members, or made of its sums")
		case v.constant:
			return nil, t.fail(object.ats[i], "a result of a group that is the same for all is not there")
		case v.keyed && v.raw == name:
			v.text = ""
		case !v.keyed:
			if f, err := query.ParseExpression(v.text); err == nil && f.Expression != nil { // without parentheses that need not be
				v.text = f.String()
			}
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
	case !t.script && (name == "Count" || name == "LongCount") && len(args) == 0:
		return value{text: "count()", kind: integerKind}, nil
	case (name == "Select" && !t.script || name == "map" && t.script) && len(args) == 1:
		item, err := t.apply(args[0], s, name, of.rows.item)
		return value{shape: isRows, rows: &rows{item: item, order: of.rows.order, descending: of.rows.descending}}, err
	case name == "reduce" && t.script:
		return t.folded(n, of, args, s)
	case firsts[name] != "" && !t.script, name == "sort" && t.script, slices.Contains([]string{"OrderBy", "OrderByDescending", "ThenBy", "ThenByDescending"}, name) && !t.script:
		return ordering{t}.method(n, of, name, args, s)
	case !t.script && aggregates[name] != "" && len(args) <= 1:
		var f *node
		if len(args) == 1 {
			f = args[0]
		}
		return t.aggregate(n, of, name, f, s)
	}
	return of, t.fail(n.at, "%.100s of a group is not there: Sum, Count, Min, Max, Average, First and Last are", name)
}

// aggregate returns an aggregate of a member of the entries.
func (t *translator) aggregate(n *node, of value, name string, f *node, s *scope) (value, error) {
	if of.shape != isRows {
		return of, t.fail(n.at, "%.100s is of the entries of a group", name)
	}
	item := of.rows.item
	if f != nil {
		var err error
		if item, err = t.apply(f, s, name, item); err != nil {
			return item, err
		}
	}
	if name == "Sum" && item.constant && item.raw == "1" {
		return value{text: "count()", kind: integerKind}, nil
	}
	member, err := t.rowMember(n.at, item)
	if err != nil {
		return item, err
	}
	kind := decimalKind // without a cast, sums are decimals
	if t.script {
		kind = numberKind
	}
	switch name {
	case "Sum":
		if item.kind != anyKind {
			kind = item.kind
		}
	case "Average":
		if item.kind == numberKind {
			kind = numberKind
		}
	default:
		kind = item.kind
		if kind == anyKind {
			kind = textKind // what it is is not known, so that nothing is computed with it
		}
	}
	return value{text: aggregates[name] + "(" + memberText(member) + ")", kind: kind}, nil
}

// folded returns what a reduce of JavaScript sums: values.reduce((sum, x) => sum + x.n, 0).
func (t *translator) folded(n *node, of value, args []*node, s *scope) (value, error) {
	const only = "a reduce sums a member from 0: (sum, x) => sum + x.n, 0"
	if len(args) != 2 || args[1].kind != nodeNumber || args[1].text != "0" {
		return of, t.fail(n.at, only)
	}
	f, err := t.function(args[0], "reduce", 2)
	if err != nil {
		return of, err
	}
	body := f.kids
	if f.block {
		if len(f.body) != 1 || f.body[0].kind != "return" || f.body[0].of == nil {
			return of, t.fail(f.at, only)
		}
		body = []*node{f.body[0].of}
	}
	if len(f.names) != 2 || body[0].kind != nodeBinary || body[0].text != "+" {
		return of, t.fail(f.at, only)
	}
	kids := body[0].kids
	isSum := func(n *node) bool { return n.kind == nodeName && n.text == f.names[0] }
	if isSum(kids[1]) {
		kids = []*node{kids[1], kids[0]}
	}
	if !isSum(kids[0]) {
		return of, t.fail(f.at, only)
	}
	item, err := t.eval(kids[1], s.with(f.names[0], value{shape: isNothing}).with(f.names[1], of.rows.item))
	if err != nil {
		return item, err
	}
	return t.aggregate(n, value{shape: isRows, rows: &rows{item: item}}, "Sum", nil, s)
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
