package query

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// allDocuments is RavenDB's name for the documents of all collections.
const allDocuments = "@all_docs"

// from = "from" ( name | "@all_docs" | "index" name ) [ "as" name ] [ "each" path "as" name ] useIndex .
func (p *parser) from(q *Query) (err error) {
	if !p.accept("from") {
		return p.notFrom()
	}
	if p.tok.is("index") && p.indexNamed() {
		p.advance()
		start := p.tok
		if q.Index, err = p.name("the name of a computed index"); err == nil && q.Index == "" {
			err = p.fail(start.offset, "an index has a name")
		}
		if err != nil {
			return err
		}
	}

	start := p.tok
	name := allDocuments
	if q.Index == "" {
		name, err = p.name("a collection or @all_docs")
	}
	switch {
	case err != nil:
		return err
	case name == "":
		return p.fail(start.offset, "a collection has a name").hinting("from @all_docs asks every document")
	case !strings.EqualFold(name, allDocuments):
		q.From = name
	}

	if p.accept("as") {
		start = p.tok
		p.quoted = start.kind == tokenText
		p.alias, err = p.name("an alias for the documents")
		if err == nil && p.alias == "" {
			err = p.fail(start.offset, "an alias has a name")
		}
		if err != nil {
			return err
		}
	}
	if q.Index == "" && p.accept("each") {
		if q.Each, err = (eachParser{p}).parse(); err != nil {
			return err
		}
	}
	return p.useIndex(q)
}

// useIndex = [ "use" ( "index" name | "no" "index" ) ] .
func (p *parser) useIndex(q *Query) (err error) {
	if !p.tok.is("use") {
		return nil
	}
	at := p.tok
	p.advance()
	if q.NoIndex = p.accept("no"); q.NoIndex {
		if !p.accept("index") {
			return p.unexpected("index behind use no", "index")
		}
		return nil
	}
	if !p.accept("index") {
		return p.unexpected("index behind use, or no index", "index", "no")
	}
	start := p.tok
	if q.UseIndex, err = p.name("the name of an index"); err != nil {
		return err
	}
	switch {
	case q.UseIndex == "":
		return p.fail(start.offset, "an index has a name")
	case q.Index != "":
		return p.fail(at.offset, "a computed index is answered by its parts, and by no index that the query names").hinting("use no index asks for none of them")
	case q.From == "":
		return p.fail(at.offset, "an index is of one collection, and the query asks all documents").expecting("a collection behind from")
	}
	return nil
}

// indexNamed reports whether tok, the word index, precedes the name of an index.
// Otherwise it is the name of a collection.
func (p *parser) indexNamed() bool {
	next := p.peek()
	return next.kind == tokenText || next.kind == tokenWord && !reserved(next.text) && !next.is("use") && !next.is("each")
}

// notFrom returns the error for a query that does not begin with from.
func (p *parser) notFrom() error {
	if p.tok.kind == tokenEnd {
		return p.fail(p.tok.offset, "the query is empty").expecting("from")
	}
	if p.tok.kind == tokenWord {
		if message, ok := refusedStarts[strings.ToLower(p.tok.text)]; ok {
			return p.fail(p.tok.offset, "%s", message)
		}
	}
	return p.unexpected("from", "from")
}

// name parses a name: a word that is not a keyword, or a text.
func (p *parser) name(expected string) (string, error) {
	name := p.tok
	switch {
	case name.kind == tokenText && len(name.text) > MaxName:
		return "", p.fail(name.offset, "a name of %d bytes is too long: %d are the most", len(name.text), MaxName)
	case name.kind == tokenWord && !reserved(name.text), name.kind == tokenText:
		p.advance()
		return name.text, nil
	}
	return "", p.unexpected(expected)
}

// groupBy = field { "," field } .
func (p *parser) groupBy(q *Query) error {
	return p.list("fields in group by", func() error {
		field, err := p.dateField("a field to group by")
		q.GroupBy = append(q.GroupBy, field)
		return err
	})
}

// cast = [ "as" ( "long" | "double" | "string" ) ] . "as" "date" and "as" "utc" are not casts but parts
// of the field, so that an index can have it.
func (p *parser) cast() (Cast, error) {
	if !p.accept("as") {
		return CastNone, nil
	}
	for cast := CastLong; int(cast) < len(castNames); cast++ {
		if p.accept(castNames[cast]) {
			return cast, nil
		}
	}
	if p.tok.is("alphaNumeric") {
		return 0, p.fail(p.tok.offset, "order by ... as alphaNumeric is not there yet").
			hinting("as long orders text that is a number by its number")
	}
	return 0, p.unexpected("long, double, string, date or utc", append(castNames[1:], "date", "utc")...)
}

// castNames are the names of casts.
var castNames = [...]string{CastNone: "", CastLong: "long", CastDouble: "double", CastString: "string"}

// descending = [ "asc" | "ascending" | "desc" | "descending" ] .
func (p *parser) descending() bool {
	if p.accept("desc") || p.accept("descending") {
		return true
	}
	_ = p.accept("asc") || p.accept("ascending")
	return false
}

// selects = [ "distinct" ] ( "*" | column { "," column } ) .
func (p *parser) selects(q *Query) error {
	q.Distinct = p.accept("distinct")
	if p.acceptSymbol("*") {
		return nil
	}

	if p.tok.is("facet") && p.atCall() {
		return facets{p}.all(q)
	}
	if (suggests{p}).begins() {
		return suggests{p}.all(q)
	}
	if p.scripts.begins() {
		return p.scripts.selects(q)
	}
	whole := -1 // offset of a column that is the document itself
	p.selecting = true
	err := p.list("columns in select", func() error {
		column, at, err := p.column(q)
		if at.field.isZero() && at.fn == FuncNone {
			whole = at.offset
		}
		q.Select = append(q.Select, column)
		p.columns = append(p.columns, at)
		return err
	})
	p.selecting = false
	switch {
	case err != nil:
		return err
	case whole < 0:
		return p.distinctNames(q)
	case len(q.Select) > 1:
		return p.wholeDocument(whole)
	}
	q.Select, p.columns = nil, nil
	return nil
}

// column = ( term | "key" "(" ")" ) [ "as" member ] .
func (p *parser) column(q *Query) (Column, term, error) {
	if p.tok.isSymbol("{") {
		return Column{}, term{}, p.fail(p.tok.offset, "an object of JavaScript stands alone in select").
			hinting("name the fields: select Name, Address.City as City")
	}
	what, err := p.termOrKey(q, "a field, count(), count(distinct field), sum(), avg(), min(), max(), first(), last(), key() or id()", refusedSelects)
	if err != nil {
		return Column{}, what, err
	}

	column := Column{Field: what.field, Func: what.fn, Name: columnName(what.field, what.fn)}
	if !p.accept("as") {
		return column, what, nil
	}
	start := p.tok
	if start.kind == tokenWord && reserved(start.text) {
		p.advance() // nothing but a name can stand here
		column.Name = start.text
		return column, what, nil
	}
	column.Name, err = p.name("a name for the column")
	if err == nil && column.Name == "" {
		err = p.fail(start.offset, "a column has a name")
	}
	return column, what, err
}

// columnName returns the default name of a column: the path as a query writes it,
// or the function. For count() it is Count, as in RavenDB.
func columnName(f Field, fn Func) string {
	switch fn {
	case FuncNone:
		if name, ok := f.member(); ok {
			return name
		}
		return f.String()
	case FuncCount:
		return "Count"
	}
	return funcText(fn, f)
}

// distinctNames returns an error if two columns have the same name.
func (p *parser) distinctNames(q *Query) error {
	seen := map[string]bool{}
	for i, column := range q.Select {
		if seen[column.Name] {
			return p.fail(p.columns[i].offset, "a second column named %s", quote(column.Name)).hinting("name one of them with as")
		}
		seen[column.Name] = true
	}
	return nil
}

// wholeDocument returns the error for an alias without a member.
func (p *parser) wholeDocument(offset int) error {
	return p.fail(offset, "%s is the alias of the whole document", p.alias).hinting("name a member of it: " + p.alias + ".Name")
}

// include = included { "," included } .
// included = path | highlight | explanations | "timings" "(" ")" .
func (p *parser) include(q *Query) error {
	start := p.tok
	err := p.list("paths in include", func() error {
		if p.atCall() {
			if found, err := (beside{p}).call(q); found {
				return err
			}
			return p.refuseCall(refusedIncludes, "include")
		}
		start := p.tok
		field, err := p.field("the path of the IDs of documents to include")
		if err == nil && field.Meta != MetaNone {
			err = p.fail(start.offset, "metadata holds no IDs of documents to include")
		}
		q.Include = append(q.Include, field.Path)
		return err
	})
	if err == nil && p.grouped(q) {
		err = p.fail(start.offset, "include is of documents, and a query with groups answers with groups")
	}
	return err
}

// limit = count ( [ "," count ] | "offset" count ) . Of two counts with a comma
// the first is the offset.
func (p *parser) limit(q *Query) (err error) {
	if q.Limit, q.HasLimit, err = p.count("limit"); err != nil || !p.acceptSymbol(",") {
		return err
	}
	// limit offset, count
	q.Offset = q.Limit
	if q.Limit, q.HasLimit, err = p.count("limit"); err == nil && p.tok.is("offset") {
		err = p.fail(p.tok.offset, "a second offset: the number before the comma is one").
			hinting(fmt.Sprintf("write limit %d offset %d", q.Limit, q.Offset))
	}
	return err
}

// count parses an integer that is not negative, or a parameter for one. A parameter
// that is null is none: the clients of RavenDB send all parameters of a limit, whether
// or not they have a value.
func (p *parser) count(clause string) (n int, given bool, err error) {
	at := p.tok
	digits := at.text
	switch at.kind {
	case tokenParameter:
		value, err := p.parameter()
		if err != nil {
			return 0, false, err
		}
		if value == nil {
			return 0, false, nil
		}
		digits = wholeNumber(value)
	case tokenNumber:
		p.advance()
	default:
		return 0, false, p.unexpected("a number or a parameter for the " + clause)
	}

	whole, err := strconv.ParseUint(digits, 10, strconv.IntSize-1)
	if err != nil {
		return 0, false, p.fail(at.offset, "%s is no %s", at, clause).expecting("a whole number from 0 to " + strconv.Itoa(math.MaxInt))
	}
	return int(whole), true, nil
}

// wholeNumber returns the digits of a numeric parameter; count refuses all but
// integers. It returns "" for a parameter that is not a number.
func wholeNumber(value any) string {
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		return ""
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	if n, ok := value.(json.Number); ok {
		return n.String()
	}
	return ""
}
