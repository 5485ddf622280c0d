package algebra

import (
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
)

// loader translates what definitions load: other documents, whose members are fields.
type loader struct{ *translator }

const (
	wholeLoaded = "a loaded document as a whole is no value: name its members"
	noTracked   = "what is loaded is followed: write %s, which has the document of each commit"
	idOfLoaded  = "the ID of a loaded document is what refers to it"
	noLoadInner = "a condition on elements loads nothing: fan out over the array"
)

// lastLoad returns the number of the last step of a path that leads into another document, or -1.
func lastLoad(path []step) int {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].index == toDocument {
			return i
		}
	}
	return -1
}

// isLoaded reports whether a value is a document that is loaded, or are several, and none of their members.
func (v value) isLoaded() bool {
	return v.shape == isReference && len(v.path) > 0 && v.path[len(v.path)-1].index == toDocument
}

// exists returns the condition that there is a loaded document. Of several there is an array.
func (v value) exists() condition {
	return or(one("type(%s) = 'object'", v.pathText()), one("type(%s) = 'array'", v.pathText()))
}

// loadText returns the member at rest of the document that a path refers to, or the document if there is none, as RQL writes it.
func loadText(from root, to, rest []step) string {
	var b strings.Builder
	b.WriteString("load(")
	switch {
	case from == ofElement, lastLoad(to) >= 0:
		if len(to) == 0 {
			b.WriteString(elementMark)
		} else {
			b.WriteString(pathText(from, to))
		}
	default:
		if name := to[0].name; isPlain(name) {
			b.WriteString(name)
		} else {
			b.WriteString(quote(name))
		}
		for _, s := range to[1:] {
			writeStep(&b, s)
		}
	}
	b.WriteByte(')')
	for _, s := range rest {
		writeStep(&b, s)
	}
	return b.String()
}

// loaded returns the document that LoadDocument, or load, has of an ID, or those of several.
func (t loader) loaded(n *node, name string, args []*node, s *scope) (value, error) {
	switch {
	case t.script != (name == "load"):
		return value{}, t.fail(n.at, "the function %.100s is not there", name)
	case t.reducing:
		return value{}, t.fail(n.at, "%s: a document is loaded in a map", name)
	case t.inner > 0:
		return value{}, t.fail(n.at, "%s: %s", name, noLoadInner)
	case len(args) == 0, len(args) > 2, t.script && len(args) == 1:
		return value{}, t.fail(n.at, "%s takes the member that has the ID, and the name of a collection", name)
	}
	if len(args) == 2 {
		collection, err := t.eval(args[1], s)
		if err != nil {
			return collection, err
		}
		if !collection.constant || collection.kind != textKind {
			return collection, t.fail(args[1].at, "%s: the name of a collection is a constant text", name)
		}
	}
	of := args[0]
	for of.kind == nodeCast && strings.HasPrefix(of.text, "text") { // a reference is a text, or refers to nothing
		of = of.kids[0]
	}
	v, err := t.eval(of, s)
	if err != nil {
		return v, err
	}
	if v.shape == isRows && !v.rows.source && v.rows.each != nil && v.rows.item.shape == isReference {
		r := copied(v.rows)
		if r.item, err = t.through(of.at, name, r.item); err != nil {
			return v, err
		}
		return value{shape: isRows, at: n.at, rows: r}, nil
	}
	return t.through(of.at, name, v)
}

// through returns the document that a reference refers to.
func (t loader) through(at int, name string, of value) (value, error) {
	switch {
	case of.shape == isScalar && of.constant:
		return of, t.fail(at, "%s: an ID is what a member has, and no constant", name)
	case of.shape != isReference || of.kind != anyKind:
		return of, t.fail(at, "%s: an ID is what a member has, and is not computed", name)
	case of.isLoaded():
		return of, t.fail(at, "%s: a document is no ID: name the member of it that has one", name)
	case len(of.path) == 0 && of.root != ofElement:
		return of, t.fail(at, "%s: the document is no ID: name the member of it that has one", name)
	case len(of.path) > 0 && of.path[0].name == "@metadata":
		return of, t.fail(at, "%s: an ID is a member of the document, and not of its metadata", name)
	}
	return t.reference(of, step{index: toDocument})
}

// member returns a member of a loaded document.
func (t loader) member(n *node, of value) (value, error) {
	v, err := t.reference(of, step{name: n.text, index: -1})
	switch {
	case err != nil:
		return v, err
	case !t.script && n.text == "Id":
		return v, t.fail(n.at, "%s; a member of this name is asked for as x[%q]", idOfLoaded, n.text)
	case n.text == "@metadata":
		return v, t.fail(n.at, "the metadata of a loaded document is not there")
	case t.script && n.text == "length", !t.script && (n.text == "Length" || n.text == "Count"):
		return v, t.fail(n.at, "a number of loaded documents is not there; a member of this name is asked for as x[%q]", n.text)
	case !t.script && n.text == "HasValue":
		return v, t.fail(n.at, wholeLoaded)
	}
	return v, nil
}

// element returns one of the documents that an array of references loads.
func (t loader) element(of value, i int) (value, error) {
	last := len(of.path) - 1
	of.path = of.path[:last:last]
	if last > 0 && of.path[last-1].index >= 0 {
		return of, t.fail(of.at, "an element of an element is not there")
	}
	v, err := t.reference(of, step{index: i})
	if err != nil {
		return v, err
	}
	return t.reference(v, step{index: toDocument})
}

// listOf returns the documents that an array of references loads.
func (t loader) listOf(at int, v value) value {
	last := len(v.path) - 1
	item := value{shape: isReference, root: ofElement, path: []step{{index: toDocument}}, maybe: true}
	return value{shape: isRows, at: at, rows: &rows{each: v.path[:last:last], at: at, item: item}}
}

// list returns the values of the elements of an array as a member, which has several: the name of each line.
func (t *translator) list(v value) (value, error) {
	const named = "a list in an entry has a member of each element, as it is: o.Lines.Select(l => l.Product)"
	r := v.rows
	switch {
	case r.source || r.each == nil || r.grouped || t.reducing:
		return v, t.fail(v.at, "a member that is a list is not there: fan out over the array")
	case t.reduced:
		return v, t.fail(v.at, "with a reduce a member is one value, and no list: fan out over the array")
	case !r.where.always():
		return v, t.fail(v.at, "a list of some elements is not there: fan out over the array, with a condition")
	case r.item.shape != isReference || r.item.root != ofElement || r.item.kind != anyKind:
		return v, t.fail(v.at, "%s", named)
	case r.item.isLoaded():
		return v, t.fail(v.at, wholeLoaded)
	}
	path := append(append(r.each[:len(r.each):len(r.each)], step{index: everyElement}), r.item.path...)
	return value{at: v.at, text: pathText(ofDocument, path), maybe: true}, nil
}

// check refuses a map whose members cannot be read of documents with what they load, at the first member for which that is so.
func (t loader) check(at int, m index.Map) error {
	each, err := query.Each{}, error(nil)
	if m.Each != "" {
		if each, err = query.ParseEach(m.Each + " as " + quote(m.As)); err != nil {
			return t.fail(at, "RQL does not have this: %v", err)
		}
	}
	var fields []query.Field
	if m.Where != "" {
		on, err := query.ParseCondition(m.Where, nil)
		if err == nil {
			on, err = each.Condition(on)
		}
		if err != nil {
			return t.fail(at, "RQL does not have this condition: %v", err)
		}
		fields = query.Fields(on)
		if _, err := query.LoadedPaths(each, fields); err != nil {
			return t.fail(at, "%v", err)
		}
	}
	for i, one := range m.Select {
		text := one.Expression
		if text == "" {
			text = "field(" + quote(one.Name) + ")"
		}
		if _, is, _ := query.ParseCreated(text); is { // in elements nothing is loaded
			continue
		}
		f, err := query.ParseMember(text)
		if err == nil {
			f, err = each.Field(f)
		}
		if err == nil {
			fields = append(fields, f)
			_, err = query.LoadedPaths(each, fields)
		}
		if err != nil {
			return t.fail(t.ats[i], "%v", err)
		}
	}
	return nil
}
