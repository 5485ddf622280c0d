package query

import (
	"cmp"
	"fmt"
	"github.com/jaydb/jay/internal/spelling"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
)

// metadataMember is the member of a document in which RavenDB returns the
// metadata.
const metadataMember = "@metadata"

// metaNames are the members of @metadata. RavenDB's @id is the same as id().
var metaNames = [...]string{MetaNone: "", MetaID: "@id", MetaCollection: "@collection",
	MetaLastModified: "@last-modified", MetaChangeVector: "@change-vector", MetaEtag: "@etag"}

// dateField = operand [ "as" ( "date" | "utc" ) ] .
func (p *parser) dateField(expected string) (Field, error) {
	f, err := p.expr.operand(expected)
	if err != nil || !p.tok.is("as") {
		return f, err
	}
	return p.asDate(f)
}

// asDate parses "as" "date" or "as" "utc" behind a field.
func (p *parser) asDate(f Field) (Field, error) {
	at := p.tok
	p.advance()
	if f.UTC = p.accept("utc"); !f.UTC && !p.accept("date") {
		return f, p.unexpected("date or utc", "date", "utc")
	}
	if !f.mayBeDate() {
		return f, p.fail(at.offset, "%s is no date", f)
	}
	f.Date = DateInstant
	return f, nil
}

// mayBeDate reports whether a field can be read as a date, and is not yet.
func (f Field) mayBeDate() bool {
	return f.Date == DateNone && (f.Meta == MetaNone && !f.Path.IsZero() || f.Meta == MetaLastModified)
}

// part = ( "year" | "month" | "day" | "hour" ) "(" field [ "as" "utc" ] [ "," zone ] ")" .
func (p *parser) part(d Date) (Field, error) {
	p.advance()
	p.advance()
	at := p.tok
	f, err := p.field("the field of " + dateNames[d] + "()")
	if err != nil {
		return f, err
	}
	if !f.mayBeDate() {
		return f, p.fail(at.offset, "%s is no date", f)
	}
	f.Date = d
	if p.accept("as") {
		if f.UTC = p.accept("utc"); !f.UTC {
			return f, p.unexpected("utc", "utc")
		}
	}
	if p.acceptSymbol(",") {
		if p.tok.kind != tokenText {
			return f, p.unexpected("the name of a time zone in quotes, such as 'Europe/Zurich'")
		}
		if f.Zone, err = LoadZone(p.tok.text); err != nil {
			return f, p.fail(p.tok.offset, "%v", err).because(err)
		}
		p.advance()
		return f, p.expectSymbol(")", "behind the time zone")
	}
	return f, p.expectSymbol(")", "behind the field")
}

// isFieldCall reports whether a name that is called is a field: see parser.field.
func isFieldCall(t token) bool { return t.is("id") || t.is("load") || datePart(t) != DateNone }

// field = path | "id" "(" [ alias ] ")" | part | load .
func (p *parser) field(expected string) (Field, error) {
	if p.atCall() {
		if d := datePart(p.tok); d != DateNone {
			return p.part(d)
		}
		switch {
		case p.tok.is("id"):
			return Field{Meta: MetaID}, p.id()
		case p.tok.is("load"):
			return loading{p}.field()
		}
		return Field{}, p.refuseCall(nil, expected)
	}
	if p.atWholeDocument() {
		return Field{}, p.wholeDocument(p.tok.offset)
	}

	start := p.tok
	steps, err := p.steps(expected, false)
	if err != nil {
		return Field{}, err
	}
	if p.tok.isSymbol("(") {
		if message := refusedNamespaces[strings.ToLower(start.text)]; message != "" {
			return Field{}, p.fail(start.offset, "%s", message)
		}
		return Field{}, p.fail(start.offset, "there is no function %s() here", p.lex.text[start.offset:p.tok.offset])
	}
	if p.outerAlias != "" && start.kind == tokenWord && start.text == p.outerAlias {
		return Field{}, p.fail(start.offset, "%s is the document, and elemMatch() asks of one element", start.text).
			hinting("leave out " + start.text + ".; a member of this name stands in quotes")
	}
	// An alias in front of the path is not a part of it.
	if p.alias != "" && start.text == p.alias && (start.kind == tokenWord || p.quoted && start.kind == tokenText && len(steps) > 1) {
		if len(steps) > 1 && steps[1].Kind != jsonpath.Member {
			return Field{}, p.wholeDocument(start.offset)
		}
		steps = steps[1:]
		p.ofAlias[steps[0].Name] = true
	}
	if steps[0].Name == metadataMember {
		return p.metadata(start, steps)
	}
	path, err := p.pathOf(start, steps)
	return Field{Path: path}, err
}

// pathOf returns the path of steps.
func (p *parser) pathOf(start token, steps []jsonpath.Step) (jsonpath.Path, error) {
	var text []byte
	for _, s := range steps {
		switch s.Kind {
		case jsonpath.Member:
			text = jsonpath.AppendMember(text, s.Name)
		case jsonpath.Index:
			text = jsonpath.AppendIndex(text, s.Index)
		case jsonpath.Every:
			text = append(text, "[]"...)
		}
	}
	if len(text) > jsonpath.MaxBytes {
		return jsonpath.Path{}, p.fail(start.offset, "a path of %d bytes is too long: %d are the most", len(text), jsonpath.MaxBytes)
	}
	path, err := jsonpath.Parse(string(text))
	if err != nil {
		return jsonpath.Path{}, p.fail(start.offset, "this is not a path: %v", err).because(err)
	}
	return path, nil
}

// atWholeDocument reports whether tok is the alias, without a member after it.
func (p *parser) atWholeDocument() bool {
	if p.alias == "" || p.tok.kind != tokenWord || p.tok.text != p.alias {
		return false
	}
	next := p.peek()
	return !next.isSymbol(".") && !next.isSymbol("[") && !next.isSymbol("(")
}

// id parses id() or id(alias).
func (p *parser) id() error {
	p.advance()
	p.advance()
	if p.acceptSymbol(")") {
		return nil
	}
	if p.alias == "" || p.tok.kind == tokenWord && p.tok.text != p.alias {
		return p.unexpected(`")" behind id(`)
	}
	if p.tok.kind != tokenWord && p.tok.kind != tokenText {
		return p.unexpected(`")" or the alias ` + p.alias + " behind id(")
	}
	p.advance()
	return p.expectSymbol(")", "behind id("+p.alias)
}

// steps parses path = member { "." member | "[" [ digits ] "]" } .
//
// With inside, the path continues another one after its point, so that its first member may be a reserved word.
func (p *parser) steps(expected string, inside bool) ([]jsonpath.Step, error) {
	var steps []jsonpath.Step
	for {
		switch {
		case p.tok.kind == tokenWord && (inside || len(steps) > 0 || !reserved(p.tok.text) || p.atKeywordColumn()), p.tok.kind == tokenText:
			steps = append(steps, jsonpath.Step{Kind: jsonpath.Member, Name: p.tok.text})
			p.advance()
		default:
			return nil, p.notMember(expected, len(steps) > 0)
		}
		for p.tok.isSymbol("[") {
			element, err := p.element()
			if err != nil {
				return nil, err
			}
			steps = append(steps, element)
		}

		if len(steps) > jsonpath.MaxSteps {
			return nil, p.fail(p.tok.offset, "the path is too long: %d steps are the most", jsonpath.MaxSteps)
		}
		if !p.acceptSymbol(".") {
			return steps, nil
		}
		expected = "the name of a member behind the point"
	}
}

// atKeywordColumn reports whether tok is a keyword in the place of a column of select that
// what follows shows to be a name: select Total, order, limit as most.
func (p *parser) atKeywordColumn() bool {
	if !p.selecting || p.tok.is("true") || p.tok.is("false") || p.tok.is("null") {
		return false
	}
	next := p.peek()
	return next.kind == tokenEnd || next.is("as") || next.isSymbol(",") || next.isSymbol(".") || next.isSymbol("[") || next.isSymbol(")")
}

// notMember returns the error for a token in place of a member.
func (p *parser) notMember(expected string, inside bool) error {
	err := p.unexpected(expected)
	syntax, ok := err.(*SyntaxError)
	switch {
	case !ok || syntax.Hint != "" || p.tok.kind == tokenBad:
	case p.tok.kind == tokenWord:
		syntax.Hint = "a member that is named like a keyword stands in quotes"
	case p.tok.kind == tokenNumber && inside:
		syntax.Hint = "a member that begins with a digit stands in quotes; an element stands in brackets"
	}
	return err
}

// element parses [] or [digits].
func (p *parser) element() (jsonpath.Step, error) {
	p.advance()
	if p.tok.kind != tokenNumber {
		return jsonpath.Step{Kind: jsonpath.Every}, p.expectSymbol("]", "or the number of an element behind [")
	}
	index, err := strconv.ParseUint(p.tok.text, 10, 64)
	if err != nil || index > jsonpath.MaxIndex {
		return jsonpath.Step{}, p.fail(p.tok.offset, "unexpected %s", p.tok).
			expecting("an element's number from 0 to " + strconv.Itoa(jsonpath.MaxIndex))
	}
	p.advance()
	return jsonpath.Step{Kind: jsonpath.Index, Index: int(index)}, p.expectSymbol("]", "behind the number of an element")
}

// metadata returns the field at a path into @metadata.
func (p *parser) metadata(start token, steps []jsonpath.Step) (Field, error) {
	if len(steps) < 2 || steps[1].Kind != jsonpath.Member {
		return Field{}, p.fail(start.offset, "@metadata as a whole cannot be asked for").expecting("one of its members, such as @metadata.@collection")
	}
	path, err := p.pathOf(start, steps)
	if err != nil {
		return Field{}, err
	}
	f, err := NewField(path)
	if err != nil {
		return Field{}, p.fail(start.offset, "%v", err).hinting(nearestWord(steps[1].Name, metaNames[1:]))
	}
	return f, nil
}

// NewField returns the field at a path. A path that begins with @metadata leads to a part of the
// metadata, or into the custom metadata. It returns an error for @metadata itself, for a path
// through a part that is a single value, and for a member that is spelled nearly like one that Jay
// makes.
func NewField(path jsonpath.Path) (Field, error) {
	if path.Root() != metadataMember {
		return Field{Path: path}, nil
	}
	if path.Len() < 2 || path.At(1).Kind != jsonpath.Member {
		return Field{}, fmt.Errorf("%s as a whole cannot be asked for: name one of its members, such as @metadata.@collection", metadataMember)
	}
	name := path.At(1).Name
	for meta := MetaID; int(meta) < len(metaNames); meta++ {
		if !strings.EqualFold(name, metaNames[meta]) {
			continue
		}
		if path.Len() > 2 {
			return Field{}, fmt.Errorf("%s.%s is one value, and has no members", metadataMember, name)
		}
		return Field{Meta: meta}, nil
	}
	if strings.HasPrefix(name, "@") && spelling.Nearest(name, metaNames[1:]) != "" {
		return Field{}, fmt.Errorf("%s has no member %s: Jay makes %s", metadataMember, name, strings.Join(metaNames[1:], ", "))
	}
	return Field{Meta: MetaCustom, Path: path.Suffix(1)}, nil
}

// isValid reports whether f is a field that a document can have.
func (f Field) isValid() bool {
	if f.Func != FuncNone || f.By != nil {
		return false
	}
	switch f.Meta {
	case MetaNone, MetaCustom, MetaElement:
		return !f.Path.IsZero()
	case MetaExpression:
		return f.Expression != nil && f.Date == DateNone
	}
	return f.Meta < MetaCustom
}

// String returns f as a query writes it.
func (f Field) String() string {
	if fn := f.Func; fn != FuncNone {
		f.Func = FuncNone
		return funcText(fn, f)
	}
	d, zone, utc := f.Date, f.Zone, ""
	if f.UTC {
		utc = " as utc"
	}
	f.Date, f.Zone, f.UTC = DateNone, nil, false
	switch {
	case d == DateInstant:
		return f.String() + cmp.Or(utc, " as date")
	case d > DateInstant && int(d) < len(dateNames) && zone != nil:
		return dateNames[d] + "(" + f.String() + utc + ", " + quote(zone.name) + ")"
	case d > DateInstant && int(d) < len(dateNames):
		return dateNames[d] + "(" + f.String() + utc + ")"
	}
	switch f.Meta {
	case MetaNone, MetaElement:
		return pathString(f.Path)
	case MetaID:
		return "id()"
	case MetaScore:
		return "score()"
	case MetaCustom:
		return metadataMember + memberString(f.Path)
	case MetaExpression:
		return f.Expression.text
	}
	return metadataMember + "." + metaNames[f.Meta]
}

// GoString is f as fmt prints it with %#v. The hashes that are stored with the results of calls are
// made of it, so that a field without a zone is printed as before there were zones, one that is not
// UTC as before there was "as utc", and one without an expression as before there were any.
//
// Part of the on-disk format. Must not change.
func (f Field) GoString() string {
	type unzoned struct {
		Meta Meta
		Path jsonpath.Path
		Date Date
		Func Func

		ends bool
	}
	text := strings.Replace(fmt.Sprintf("%#v", unzoned{f.Meta, f.Path, f.Date, f.Func, f.ends}), "query.unzoned{", "query.Field{", 1)
	if f.UTC {
		text = strings.TrimSuffix(text, "}") + ", UTC:true}"
	}
	if f.By != nil {
		text = strings.TrimSuffix(text, "}") + ", By:" + f.By.GoString() + "}"
	}
	if f.Expression != nil {
		text = strings.TrimSuffix(text, "}") + ", Expression:" + strconv.Quote(f.Expression.text) + "}"
	}
	if f.Zone == nil {
		return text
	}
	return strings.TrimSuffix(text, "}") + ", Zone:" + strconv.Quote(f.Zone.name) + "}"
}

// sameField reports whether a and b are the same field, and of first and last in the same order.
func sameField(a, b Field) bool { return a.String() == b.String() && a.orderText() == b.orderText() }

// orderText returns the order of first and last as a query writes it, or "".
func (f Field) orderText() string {
	if f.By == nil {
		return ""
	}
	return " order by " + f.By.String()
}

// ShownAs reports whether a column of field shows groups by f: by instants, it has no
// "as date" or "as utc", which would name the column.
func (f Field) ShownAs(column Field) bool {
	if f.Date == DateInstant {
		f.Date, f.UTC = DateNone, false
	}
	return sameField(f, column)
}

// isZero reports whether f is the zero Field, the document itself.
func (f Field) isZero() bool { return f.Meta == MetaNone && f.Path.IsZero() && f.Func == FuncNone }

// member returns the name of the top-level member that f is, and false if f is
// another field.
func (f Field) member() (string, bool) {
	return f.Path.Root(), f.Meta == MetaNone && f.Date == DateNone && f.Path.Len() == 1
}

// pathString returns a path as a query writes it. Unlike Path.String, it puts
// keywords at the beginning of the path in quotes, and all names that are not
// single words.
func pathString(path jsonpath.Path) string {
	if path.Loads() {
		return loadString(path)
	}
	if path.IsZero() || path.At(0).Kind != jsonpath.Member {
		return memberString(path)
	}
	return printName(path.At(0).Name) + memberString(path.Suffix(1))
}

// memberString returns a path as a query writes it behind another.
func memberString(path jsonpath.Path) string {
	var b strings.Builder
	for i := range path.Len() {
		switch s := path.At(i); {
		case s.Kind == jsonpath.Every:
			b.WriteString("[]")
		case s.Kind == jsonpath.Index:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case isWord(s.Name):
			b.WriteString("." + s.Name)
		default:
			b.WriteString("." + quote(s.Name))
		}
	}
	return b.String()
}
