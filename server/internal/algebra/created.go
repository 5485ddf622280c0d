package algebra

import (
	"fmt"
	"slices"
	"strings"
)

// CreatedField has the options that CreateField gives a member of an entry.
type CreatedField struct {
	Stored     bool
	Indexing   string // "" for the default
	TermVector string
}

// creating translates the fields that a map creates by their names.
type creating struct{ *translator }

const noDynamic = "the name of a created field is a constant text, or a member of an element: _ = p.Attributes.Select(a => CreateField(a.Name, a.Value)), in JavaScript _: p.attributes.map(a => createField(a.name, a.value))"

// DynamicField is the member that stands for fields with names in the document. In Translated.Created it has their options. Further ones have a number
// behind it.
const DynamicField = "_"

// isCreated reports whether a node calls CreateField, or createField.
func isCreated(n *node) bool {
	if n.kind != nodeCall {
		return false
	}
	f := n.kids[0]
	if f.kind == nodeMember && f.kids[0].kind == nodeName && f.kids[0].text == "this" {
		return f.text == "CreateField"
	}
	return f.kind == nodeName && (f.text == "CreateField" || f.text == "createField")
}

// made returns the field that CreateField makes: a member of the entry with the name that it says, wherever it stands in it.
func (t creating) made(n *node, name string, args []*node, s *scope) (value, error) {
	if err := t.checkCall(n, name, args); err != nil {
		return value{}, err
	}
	of, err := t.eval(args[0], s)
	if err != nil {
		return of, err
	}
	if !of.constant || of.kind != textKind {
		return of, t.fail(args[0].at, noDynamic)
	}
	if of.raw == "" || len(of.raw) > 256 {
		return of, t.fail(args[0].at, "the name of a field has 1 to 256 bytes")
	}
	v, err := t.eval(args[1], s)
	if err != nil {
		return v, err
	}
	if v.shape == isFields {
		return v, t.fail(args[1].at, "a field is a member of an entry as it is")
	}
	options, err := t.options(args[2:])
	if err != nil {
		return v, err
	}
	if before, found := t.created[of.raw]; found && before != options {
		return v, t.fail(n.at, "the field %.100q has other options before", of.raw)
	}
	if t.created == nil {
		t.created = make(map[string]CreatedField)
	}
	t.created[of.raw] = options
	return value{shape: isFields, at: n.at, names: []string{of.raw}, ats: []int{n.at}, values: []value{v}}, nil
}

// checkCall refuses a call that creates no field.
func (t creating) checkCall(n *node, name string, args []*node) error {
	switch {
	case t.script != (name == "createField"):
		return t.fail(n.at, "the function %.100s is not there", name)
	case t.reducing || t.reduced:
		return t.fail(n.at, "%s: with a reduce the members of an entry are named", name)
	case len(args) < 2 || len(args) > 4 || t.script && len(args) > 3:
		return t.fail(n.at, "%s takes a name, a value and options", name)
	}
	return nil
}

// ofElements returns the fields that a function creates of each element of an array, whose names are in the elements. Is is false for another function.
func (t creating) ofElements(of value, f *node, s *scope) (v value, is bool, err error) {
	for f.kind == nodeCast {
		f = f.kids[0]
	}
	if f.kind != nodeLambda || len(f.names) != 1 {
		return v, false, nil
	}
	n := f.returned()
	if n == nil || !isCreated(n) {
		return v, false, nil
	}
	args := n.kids[1:]
	if err := t.checkCall(n, n.kids[0].text, args); err != nil {
		return v, true, err
	}
	if args[0].kind == nodeText {
		return v, false, nil
	}
	if of.shape != isReference || of.root != ofDocument || of.kind != anyKind || of.isLoaded() {
		return v, true, t.fail(n.at, "fields with names in the document are created of the elements of one of its arrays")
	}
	t.inner++
	defer func() { t.inner-- }()
	element := s.with(f.names[0], value{shape: isReference, root: ofInner, maybe: true})
	var texts [2]string
	for i := range texts {
		part, err := t.eval(args[i], element)
		if err == nil {
			part, err = t.operand(part)
		}
		if err == nil && part.constant {
			err = t.fail(args[i].at, noDynamic)
		}
		if err != nil {
			return part, true, err
		}
		texts[i] = part.text
	}
	options, err := t.options(args[2:])
	switch before, found := t.created[DynamicField]; {
	case err != nil:
		return v, true, err
	case options.Stored:
		return v, true, t.fail(n.at, "a field whose name is in the document is not stored: rows have it of the document, as Attributes")
	case options.Indexing == "Search":
		return v, true, t.fail(n.at, "the words of a field whose name is in the document have no index: give it a constant name")
	case found && before != options:
		return v, true, t.fail(n.at, "the fields whose names are in the document have other options before")
	}
	if t.created == nil {
		t.created = make(map[string]CreatedField)
	}
	t.created[DynamicField] = options
	v = value{shape: isNamed, at: n.at, text: "fields(" + pathText(ofDocument, of.path) + ", " + texts[0] + ", " + texts[1] + ")"}
	return value{shape: isFields, at: n.at, names: []string{DynamicField}, ats: []int{n.at}, values: []value{v}}, true, nil
}

// nameOf returns the name of a member of an entry that stands for fields with names in the document.
func (t creating) nameOf(before []string) string {
	name := DynamicField
	for n := 2; slices.Contains(before, name); n++ {
		name = fmt.Sprint(DynamicField, n)
	}
	return name
}

// several returns the fields of an array of calls.
func (t creating) several(n *node, s *scope) (value, error) {
	all := value{shape: isFields, at: n.at}
	for _, kid := range n.kids {
		one, err := t.eval(kid, s)
		if err != nil {
			return one, err
		}
		all.addAll(one)
	}
	return all, nil
}

// options reads what stands behind the value of a field.
func (t creating) options(args []*node) (o CreatedField, err error) {
	if len(args) == 0 {
		return o, nil
	}
	if first := args[0]; first.kind == nodeObject {
		if len(args) > 1 {
			return o, t.fail(args[1].at, "nothing follows the options of a field")
		}
		for i, name := range first.names {
			if err := t.option(&o, name, first.kids[i]); err != nil {
				return o, err
			}
		}
		return o, nil
	}
	for i, one := range args { // stored, analyzed
		on := one.kind == nodeName && one.text == "true"
		switch off := one.kind == nodeName && one.text == "false"; {
		case t.script || !on && !off && !(i == 1 && one.kind == nodeName && one.text == "null"):
			return o, t.fail(one.at, "the options of a field are an object of Storage, Indexing and TermVector")
		case i == 0:
			o.Stored = on
		case on:
			o.Indexing = "Search"
		case off:
			o.Indexing = "Exact"
		}
	}
	return o, nil
}

// option reads an option of a field.
func (t creating) option(o *CreatedField, name string, n *node) error {
	text := n.text // of FieldStorage.Yes, 'Yes', true, and null
	switch known := n.kind == nodeMember || n.kind == nodeText || n.kind == nodeName; {
	case !known:
		return t.fail(n.at, "the option %.100s of a field is a constant", name)
	case text == "null" && n.kind == nodeName:
		return nil
	}
	allowed := map[string][]string{"storage": {"Yes", "No", "true", "false"}, "indexing": {"Default", "Search", "Exact"}, "termvector": {"No", "Yes", "WithPositions", "WithOffsets", "WithPositionsAndOffsets"}}[strings.ToLower(name)]
	switch {
	case allowed == nil:
		return t.fail(n.at, "the option %.100s of a field is not there: Storage, Indexing and TermVector are", name)
	case !slices.Contains(allowed, text):
		return t.fail(n.at, "%.100s %.100s of a field is not there: it is %s", name, text, strings.Join(allowed, ", "))
	}
	switch strings.ToLower(name) {
	case "storage":
		o.Stored = text == "Yes" || text == "true"
	case "indexing":
		if o.Indexing = text; text == "Default" {
			o.Indexing = ""
		}
	default:
		o.TermVector = text
	}
	return nil
}
