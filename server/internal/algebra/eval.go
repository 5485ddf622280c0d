package algebra

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// eval returns what an expression is.
func (t *translator) eval(n *node, s *scope) (v value, err error) {
	if err := t.enter(); err != nil {
		return v, t.fail(n.at, "nested too deep: %d levels are the most", maxNesting)
	}
	defer t.leave()
	switch n.kind {
	case nodeNumber:
		v = t.number(n)
	case nodeText:
		v = textConstant(n.text, n.at)
	case nodeName:
		v, err = t.name(n, s)
	case nodeMember:
		v, err = t.member(n, s)
	case nodeIndex:
		v, err = t.index(n, s)
	case nodeCall:
		v, err = t.call(n, s)
	case nodeUnary:
		v, err = t.unaryOf(n, s)
	case nodeBinary:
		v, err = t.binaryOf(n, s)
	case nodeChoice:
		v, err = t.choiceOf(n, s)
	case nodeObject:
		v, err = t.objectOf(n, s)
	case nodeCast:
		v, err = t.castOf(n, s)
	case nodeTemplate:
		v, err = t.templateOf(n, s)
	case nodeNew:
		v, err = t.newOf(n, s)
	case nodeQuery:
		v, err = t.queryOf(n, s)
	case nodeArray:
		if t.script && len(n.kids) == 0 {
			v = value{shape: isNothing}
			break
		}
		if t.reducing && len(n.kids) == 1 && n.kids[0].kind == nodeSpread { // [...new Set(values)]
			v, err = t.eval(n.kids[0].kids[0], s)
			break
		}
		if len(n.kids) > 0 && !slices.ContainsFunc(n.kids, func(kid *node) bool { return !isCreated(kid) }) {
			v, err = creating{t}.several(n, s)
			break
		}
		err = t.fail(n.at, "an array that is made is not there: fan out, or name several members")
	case nodeLambda:
		err = t.fail(n.at, "a function does not stand here")
	case nodeSpread:
		err = t.fail(n.at, "... is not there")
	}
	if err != nil {
		return v, err
	}
	v.at = n.at
	return v, t.spend(n.at, v.text+v.cond.text)
}

func (t *translator) number(n *node) value {
	kind := numberKind
	if !t.script {
		switch {
		case n.suffix == "m":
			kind = decimalKind
		case n.suffix == "d", n.suffix == "f", strings.ContainsAny(n.text, ".eE"):
		default:
			kind = integerKind
		}
	}
	return value{text: n.text, kind: kind, constant: true, raw: n.text}
}

func (t *translator) name(n *node, s *scope) (value, error) {
	if v, found := s.find(n.text); found {
		return v, nil
	}
	switch n.text {
	case "true", "false":
		return value{text: n.text, kind: booleanKind, constant: true, raw: n.text}, nil
	case "null":
		return value{text: "null", kind: nullKind, constant: true, maybe: true}, nil
	case "undefined":
		if t.script {
			return value{text: "null", kind: nullKind, constant: true, maybe: true, raw: "undefined"}, nil
		}
	case "docs":
		if !t.script && !t.reducing {
			return value{shape: isRows, rows: &rows{source: true, item: value{shape: isReference, root: ofDocument}}}, nil
		}
	case "results":
		if t.reducing {
			return value{shape: isRows, rows: &rows{source: true, item: value{shape: isReference, root: ofRow}}}, nil
		}
	case "counters", "timeSeries":
		return value{}, t.fail(n.at, "an index of %s is not there", n.text)
	}
	if reason := refused[n.text]; reason != "" {
		return value{}, t.fail(n.at, "%s", reason)
	}
	if r, _ := utf8.DecodeRuneInString(n.text); unicode.IsUpper(r) { // a class
		return value{}, t.fail(n.at, "%.100s is not there", n.text)
	}
	return value{}, t.wrong(n.at, "there is no variable %.100s", n.text)
}

// reference returns what a path reaches.
func (t *translator) reference(from value, s step) (value, error) {
	v := value{shape: isReference, root: from.root, path: append(from.path[:len(from.path):len(from.path)], s), maybe: true}
	if from.root == ofDocument && len(from.path) == 0 {
		t.roots[s.name] = true
	}
	return v, nil
}

// member returns a member of a value.
func (t *translator) member(n *node, s *scope) (value, error) {
	if difference := n.kids[0]; !t.script && n.text == "Days" && difference.kind == nodeBinary && difference.text == "-" {
		return t.days(difference, s)
	}
	of, err := t.eval(n.kids[0], s)
	if err != nil {
		return of, err
	}
	switch of.shape {
	case isReference:
		return t.memberOfReference(n, of)
	case isObject, isKey:
		for i, name := range of.names {
			if name == n.text {
				return of.values[i], nil
			}
		}
		return of, t.fail(n.at, "there is no member %.100s in the object", n.text)
	case isGroup:
		return t.memberOfGroup(n, of)
	case isRows:
		return t.memberOfRows(n, of)
	case isScalar:
		if v, found := t.part(n.text, of); found {
			return v, nil
		}
	}
	return of, t.fail(n.at, "a computed value has no member %.100s", n.text)
}

// dateParts are the parts of instants, by their names in C#.
var dateParts = map[string]string{"Year": "year", "Month": "month", "Day": "day", "Hour": "hour", "Minute": "minute", "Second": "second", "Millisecond": "millisecond", "DayOfYear": "dayOfYear"}

// part returns a part of a scalar: a part of a date, or the length of a text.
func (t *translator) part(name string, of value) (v value, found bool) {
	instant := of.text
	if of.kind == anyKind || of.kind == instantKind {
		instant = asUTC(of)
	}
	switch {
	case name == "Length" && !t.script, name == "length" && t.script:
		return call("length", integerKind, of.maybe, of.text), of.kind == textKind || of.kind == anyKind
	case t.script || of.kind != anyKind && of.kind != instantKind:
		return v, false
	case name == "Date":
		return call("dateTrunc", instantKind, of.maybe, "'day'", instant), true
	}
	unit, found := dateParts[name]
	return call("datePart", integerKind, of.maybe, quote(unit), instant), found
}

// asUTC returns a scalar as an instant. Only a path is read so.
func asUTC(v value) string {
	if v.shape == isReference {
		return pathText(v.root, v.path) + " as utc"
	}
	return v.text
}

// days returns (a - b).Days, the whole days between two instants, towards zero.
func (t *translator) days(n *node, s *scope) (value, error) {
	var instants [2]string
	for i, kid := range n.kids {
		v, err := t.eval(kid, s)
		if err != nil {
			return v, err
		}
		if v.shape != isReference && v.kind != instantKind || v.root == ofRow {
			return v, t.fail(kid.at, "days lie between two dates")
		}
		if _, err := t.operand(v); err != nil {
			return v, err
		}
		instants[i] = asUTC(v)
	}
	return call("dateDiff", integerKind, true, "'day'", instants[1], instants[0]), nil
}

// lostMembers are members of values of C# that would be read as members of documents.
var lostMembers = map[string]string{
	"DayOfWeek": "a day of the week has a name in C#, and a number in RQL", "TimeOfDay": "a time of the day is not there", "Ticks": "ticks are not there", "Kind": "",
	"TotalDays": "fractions of days are not there: .Days has whole ones", "TotalHours": "fractions of hours are not there", "TotalMinutes": "fractions of minutes are not there",
	"TotalSeconds": "fractions of seconds are not there", "TotalMilliseconds": "fractions of milliseconds are not there",
}

// memberOfReference returns a member of what a path reaches. In C# a part of a date, or a length, is read as a member is, so both are asked for.
func (t *translator) memberOfReference(n *node, of value) (value, error) {
	v, err := t.reference(of, step{name: n.text, index: -1})
	if err != nil || of.root == ofRow {
		return v, err
	}
	if of.isLoaded() {
		return loader{t}.member(n, of)
	}
	if len(of.path) == 0 && of.root == ofDocument {
		switch {
		case !t.script && n.text == "Id" && t.inner == 0:
			return call("coalesce", textKind, true, v.pathText(), "id()"), nil
		case n.text == "@metadata":
			return v, nil
		}
		return v, nil
	}
	if len(of.path) == 0 && of.root != ofElement || len(of.path) > 0 && of.path[0].name == "@metadata" {
		return v, nil
	}
	switch n.text {
	case "Length", "Count", "length":
		if t.script == (n.text == "length") {
			of.shape, of.text = isMeasure, n.text
			return of, nil
		}
	}
	if t.script || len(of.path) == 0 {
		return v, nil
	}
	if reason := lostMembers[n.text]; reason != "" {
		return v, t.fail(n.at, "%s; a member of this name is asked for as x[%q]", reason, n.text)
	}
	if n.text == "HasValue" {
		return value{shape: isCondition, cond: not(t.absent(of)), kind: booleanKind}, nil
	}
	p, found := t.part(n.text, value{shape: isReference, root: of.root, path: of.path, kind: anyKind, maybe: true})
	if !found {
		return v, nil
	}
	if of.kind == instantKind {
		return p, nil
	}
	kind := integerKind
	if n.text == "Date" {
		kind = anyKind
	}
	return call("coalesce", kind, true, v.pathText(), p.text), nil
}

func (v value) pathText() string { return pathText(v.root, v.path) }

// index returns an element, or a member whose name stands in quotes.
func (t *translator) index(n *node, s *scope) (value, error) {
	of, err := t.eval(n.kids[0], s)
	if err != nil {
		return of, err
	}
	at, err := t.eval(n.kids[1], s)
	if err != nil {
		return of, err
	}
	if !at.constant || at.kind != textKind && at.kind != integerKind && at.kind != numberKind {
		return of, t.fail(n.kids[1].at, "the name of a member, or the number of an element, is a constant")
	}
	if at.kind == textKind {
		switch {
		case of.shape == isRows && of.rows.source && of.rows.collection == "" && !t.reducing && of.rows.item.root == ofDocument && len(of.rows.item.path) == 0:
			return collection(of, at.raw), nil
		case of.isLoaded() && at.raw == "@metadata":
			return loader{t}.member(&node{at: n.kids[1].at, text: at.raw}, of)
		case of.shape == isReference:
			return t.reference(of, step{name: at.raw, index: -1})
		}
		return of, t.fail(n.at, "a computed value has no members")
	}
	i, err := strconv.Atoi(at.raw)
	if err != nil || i < 0 || i > 1<<20 {
		return of, t.fail(n.kids[1].at, "the number of an element is from 0 to %d", 1<<20)
	}
	switch {
	case of.shape == isRows && t.reducing && i == 0:
		return ordering{t}.first(n.at, of, "first")
	case of.shape != isReference || len(of.path) == 0 || of.root == ofRow:
		return of, t.fail(n.at, "this has no elements")
	case of.isLoaded():
		return loader{t}.element(of, i)
	case of.path[len(of.path)-1].index >= 0:
		return of, t.fail(n.at, "an element of an element is not there")
	}
	// RQL's path goes through objects and arrays alike: a text has no element, as a missing member.
	return t.reference(of, step{index: i})
}

// collection returns the documents of a collection.
func collection(docs value, name string) value {
	if strings.EqualFold(name, "@all_docs") {
		name = ""
	}
	r := *docs.rows
	r.collection = name
	return value{shape: isRows, rows: &r}
}

// objectOf returns an object.
func (t *translator) objectOf(n *node, s *scope) (value, error) {
	o := value{shape: isObject}
	for i, kid := range n.kids {
		v, err := t.eval(kid, s)
		if err != nil {
			return o, err
		}
		if v.shape == isFields { // they have names of their own
			o.addAll(v)
		} else {
			o.add(n.names[i], kid.at, v)
		}
		if len(o.names) > MaxMembers {
			return o, t.fail(n.at, "an object has at most %d members", MaxMembers)
		}
	}
	return o, nil
}

// scalar returns a value as a scalar.
func (t *translator) scalar(v value) (value, error) {
	switch v.shape {
	case isScalar:
		if v.constant {
			v.text = "(" + v.text + ")"
		}
		return v, nil
	case isReference, isCondition, isMeasure:
		return t.operand(v)
	case isObject, isKey:
		return v, t.fail(v.at, "a member that is an object is not there: name its members")
	case isRows:
		return v, t.fail(v.at, "a list is a member of an entry as it is, and in no expression")
	case isGroups, isGroup:
		return v, t.fail(v.at, "a member that is a list is not there: fan out over the array")
	case isFields:
		return v, t.fail(v.at, "a field is a member of an entry as it is, and in no expression")
	case isPlace:
		return v, t.fail(v.at, "a place is a member of an entry as it is, and in no expression")
	}
	return v, t.fail(v.at, "a member is a value")
}

// operand returns a value as an operand.
func (t *translator) operand(v value) (value, error) {
	switch v.shape {
	case isScalar:
		if v.keyed { // a result is the member as it is
			v = value{at: v.at, text: asOperand(v.text), maybe: true}
		}
		return v, nil
	case isReference:
		if len(v.path) == 0 && v.root == ofInner {
			return v, t.fail(v.at, "a condition on elements asks for their members; .Contains asks for an element")
		}
		if len(v.path) == 0 && v.root != ofElement {
			return v, t.fail(v.at, "a document as a whole is no value: name its members")
		}
		if v.isLoaded() {
			return v, t.fail(v.at, wholeLoaded)
		}
		if t.inner > 0 && v.root != ofInner {
			return v, t.fail(v.at, "a condition on the elements of an array asks nothing of the document around it")
		}
		if t.script && v.kind == instantKind {
			return v, t.fail(v.at, "a Date as a whole is no value: its getUTC functions are")
		}
		if v.root == ofRow {
			return gathering{t}.member(v)
		}
		out := value{at: v.at, text: v.pathText(), kind: v.kind, maybe: true}
		if v.kind == instantKind {
			out.kind = anyKind
		}
		return out, nil
	case isCondition:
		return value{at: v.at, text: "if(" + v.cond.in(orderOr) + ", true, false)", kind: booleanKind}, nil
	case isMeasure:
		return t.measured(v)
	}
	return t.scalar(v)
}

// measured returns a length or a count as a value: that of a text, or a member of this name. RQL does not count elements, so an array is
// an error of its document.
func (t *translator) measured(v value) (value, error) {
	if v.called {
		return v, t.fail(v.at, "the number of elements is no value in RQL: compare it with a number, or fan out and reduce")
	}
	path := v.pathText()
	member := pathText(v.root, append(v.path[:len(v.path):len(v.path)], step{name: v.text, index: -1}))
	other := member
	if v.text != "Count" {
		other = "coalesce(" + member + ", length(" + path + "))"
	}
	return value{at: v.at, text: "if(type(" + path + ") = 'array', 1 / 0, " + other + ")", kind: integerKind, maybe: true}, nil
}

// apply returns what a function gives for values.
func (t *translator) apply(n *node, s *scope, what string, args ...value) (value, error) {
	f, err := t.function(n, what, len(args))
	if err != nil {
		return value{}, err
	}
	for i, name := range f.names {
		s = s.with(name, args[i])
	}
	if !f.block {
		return t.eval(f.kids[0], s)
	}
	got, err := t.run(f.body, s)
	if err != nil {
		return value{}, err
	}
	return got, nil
}

// returned returns the expression that a function is, or nil if there are further statements.
func (f *node) returned() *node {
	switch {
	case !f.block:
		return f.kids[0]
	case len(f.body) == 1 && f.body[0].kind == "return":
		return f.body[0].of
	}
	return nil
}

// function returns a function of at most so many parameters.
func (t *translator) function(n *node, what string, most int) (*node, error) {
	for n.kind == nodeCast {
		n = n.kids[0]
	}
	if n.kind != nodeLambda {
		return nil, t.fail(n.at, "%s takes a function, such as x => x.Name", what)
	}
	if len(n.names) > most {
		return nil, t.fail(n.at, "the function of %s has %d parameters: %d are the most", what, len(n.names), most)
	}
	return n, nil
}
