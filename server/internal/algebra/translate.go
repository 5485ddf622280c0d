package algebra

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
)

// Translated is what a definition declares.
type Translated struct {
	index.Computed
	Places  []string                // the members that CreateSpatialField makes, in the order of their names
	Created map[string]CreatedField // the members that CreateField makes, with the options that it gives them
}

// Translate returns the declaration of the index that maps and a reduce define; an empty reduce is none. All are of one
// language: C# or JavaScript. An error is an [*Error].
func Translate(name string, maps []string, reduce string) (Translated, error) {
	declared := Translated{Computed: index.Computed{Name: name}}
	if len(maps) == 0 || len(maps) > MaxMaps {
		return declared, &Error{Part: "the definition", Line: 1, Column: 1, Reason: fmt.Sprintf("it has %d maps: 1 to %d", len(maps), MaxMaps)}
	}
	budget := maxWritten
	script := isScript(maps[0])
	for i, text := range maps {
		part := fmt.Sprintf("map %d", i+1)
		if isScript(text) != script {
			return declared, &Error{Part: part, Line: 1, Column: 1, Reason: "the maps of a definition are of one language, C# or JavaScript", Syntax: true, Text: text}
		}
		t, err := newTranslator(part, text, script, &budget)
		if err != nil {
			return declared, err
		}
		t.reduced, t.created = strings.TrimSpace(reduce) != "", declared.Created // a name has the same options in all maps
		one, err := t.translateMap()
		if err != nil {
			return declared, err
		}
		declared.Places, declared.Created = append(declared.Places, t.places...), t.created
		if i > 0 && !slices.Equal(sortedNames(one.Select), sortedNames(declared.Maps[0].Select)) {
			return declared, &Error{Part: part, Line: 1, Column: 1, Syntax: true, Text: text, Reason: fmt.Sprintf("the maps give members of the same names: %s in map 1, %s here",
				strings.Join(sortedNames(declared.Maps[0].Select), ", "), strings.Join(sortedNames(one.Select), ", "))}
		}
		declared.Maps = append(declared.Maps, one)
	}
	slices.Sort(declared.Places)
	declared.Places = slices.Compact(declared.Places)
	if strings.TrimSpace(reduce) == "" {
		return declared, nil
	}
	var err error
	declared.Reduce, err = translateReduce(reduce, script, sortedNames(declared.Maps[0].Select), &budget)
	return declared, err
}

func sortedNames(members []index.Member) []string {
	names := namesOf(members)
	slices.Sort(names)
	return names
}

func namesOf(members []index.Member) (names []string) {
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

// translator follows one text.
type translator struct {
	*parser
	budget   *int            // bytes of RQL that may still be written
	roots    map[string]bool // members of the document that are named
	reducing bool
	members  []string // of the maps, in a reduce
	key      []value  // the members by which it groups
	sorted   *rows    // the entries of a group since JavaScript has sorted them; nil before
	reduced  bool     // a reduce follows the map
	places   []string // the members that are places
	created  map[string]CreatedField
	ats      []int // where the members of the entry stand
	inner    int   // how many Any and All are around
	entry    int   // how many functions of one entry of a group are around
}

// spend counts the RQL of a value.
func (t *translator) spend(at int, text string) error {
	if len(text) > maxExpression {
		return t.fail(at, "the expression is too long in RQL: %d bytes are the most", maxExpression)
	}
	if *t.budget -= len(text) + 16; *t.budget < 0 {
		return t.fail(at, "the definition is too long in RQL: %d bytes are the most", maxWritten)
	}
	return nil
}

func newTranslator(part, text string, script bool, budget *int) (*translator, error) {
	p, err := newParser(part, text, script)
	return &translator{parser: p, budget: budget, roots: make(map[string]bool)}, err
}

func (t *translator) translateMap() (m index.Map, err error) {
	n, err := t.all()
	if err != nil {
		return m, err
	}
	if m, err = t.mapOf(n); err != nil {
		return m, err
	}
	return m, loader{t}.check(n.at, m)
}

// mapOf returns what a map declares.
func (t *translator) mapOf(n *node) (m index.Map, err error) {
	var found value
	if t.script {
		found, err = t.scriptMap(n)
	} else {
		found, err = t.eval(n, nil)
	}
	if err != nil {
		return m, err
	}
	switch {
	case found.shape != isRows || !found.rows.source:
		return m, t.fail(n.at, "a map begins with documents: from x in docs.Users, docs.Users.Select(...), or map('Users', x => ...)")
	case found.rows.grouped:
		return m, t.fail(n.at, "a map does not group: a reduce does")
	case found.rows.item.shape != isObject:
		return m, t.wrong(n.at, "a map gives an object of members: new { x.Name }, or ({ name: x.name })")
	case found.rows.where.never:
		return m, t.fail(n.at, "no document has an entry")
	}
	r := found.rows
	m.Collection, t.ats = r.collection, r.item.ats
	if m.Select, err = t.membersOf(r.item); err != nil {
		return m, err
	}
	if r.each != nil {
		if lastLoad(r.each) >= 0 {
			return m, t.fail(r.at, "an index fans out over an array of the document, and not of one that is loaded")
		}
		m.Each = pathText(ofDocument, r.each)
	}
	as := t.elementName(r.as)
	if m.Each != "" {
		if m.Each, err = t.eachPath(n.at, m.Each); err != nil {
			return m, err
		}
		m.As = as
	}
	if !r.where.always() {
		if m.Where, err = t.conditionText(n.at, strings.ReplaceAll(r.where.text, elementMark, as)); err != nil {
			return m, err
		}
	}
	for i := range m.Select {
		one := &m.Select[i]
		if one.Expression, err = t.expressionText(r.item.ats[i], one.Name, strings.ReplaceAll(one.Expression, elementMark, as)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// membersOf returns the members of an entry.
func (t *translator) membersOf(object value) (list []index.Member, err error) {
	if n := len(object.names); n == 0 || n > MaxMembers {
		return nil, t.fail(object.at, "an entry has %d members: 1 to %d", n, MaxMembers)
	}
	for i, name := range object.names {
		if v := object.values[i]; v.shape == isNamed {
			list = append(list, index.Member{Name: (creating{t}).nameOf(namesOf(list)), Expression: v.text})
			continue
		}
		if slices.Contains(object.names[:i], name) {
			if _, created := t.created[name]; created {
				return nil, t.fail(object.ats[i], "the field %.100q is there twice", name)
			}
			return nil, t.wrong(object.ats[i], "the member %.100q is there twice", name)
		}
		if name == "_" || strings.HasPrefix(name, "__") {
			return nil, t.fail(object.ats[i], "the member %.100q stands for fields that are created: CreateField(\"Color\", ...)", name)
		}
		if name == "" || len(name) > 256 {
			return nil, t.fail(object.ats[i], "the name of a member has 1 to 256 bytes")
		}
		v := object.values[i]
		if v.shape == isPlace {
			t.places = append(t.places, name)
		} else if v.shape == isRows {
			if v, err = t.list(v); err != nil {
				return nil, err
			}
		} else if v, err = t.scalar(v); err != nil {
			return nil, err
		}
		list = append(list, index.Member{Name: name, Expression: v.text})
	}
	return list, nil
}

// elementName returns a name for the element that no member of the document has which the map names.
func (t *translator) elementName(given string) string {
	name := given
	if !isPlain(name) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || isFunction(name) {
		name = "element"
	}
	for t.roots[name] {
		name += "_"
	}
	return name
}

// isFunction reports whether RQL has a function of this name.
func isFunction(name string) bool {
	_, err := query.ParseExpression(name + "(x)")
	var syntax *query.SyntaxError
	return err == nil || errors.As(err, &syntax) && !strings.Contains(syntax.Error(), "there is no function")
}

// eachPath checks the path of an array.
func (t *translator) eachPath(at int, text string) (string, error) {
	f, err := query.ParseExpression(text)
	if err != nil || f.Meta != query.MetaNone {
		return "", t.fail(at, "an index does not fan out over %.100s", text)
	}
	return f.String(), nil
}

// expressionText returns an expression as RQL prints it, and checks that RQL reads it.
func (t *translator) expressionText(at int, name, text string) (string, error) {
	if created, is, err := query.ParseCreated(text); is {
		if err != nil {
			return "", t.fail(at, "RQL does not have this: %v", err)
		}
		return created.String(), nil
	}
	f, err := query.ParseExpression(text)
	if err != nil { // a constant alone
		if f, err = query.ParseExpression("(" + text + ")"); err != nil {
			return "", t.fail(at, "RQL does not have this: %v", err)
		}
		return "(" + f.String() + ")", nil
	}
	if f.String() == name && f.Meta == query.MetaNone {
		return "", nil
	}
	if _, err := query.ParseExpression(f.String()); err != nil || strings.HasPrefix(f.String(), "'") { // a name in quotes is a text in an expression
		return text, nil
	}
	return f.String(), nil
}

// conditionText returns a condition as RQL prints it, and checks that RQL reads it.
func (t *translator) conditionText(at int, text string) (string, error) {
	e, err := query.ParseCondition(text, nil)
	if err == nil {
		_, err = query.Measure(e)
	}
	if err != nil {
		return "", t.fail(at, "RQL does not have this condition: %v", err)
	}
	return query.FormatCondition(e), nil
}
