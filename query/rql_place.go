package query

import (
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/geo"
)

// places parses what queries have for places.
type places struct{ *parser }

// at returns the name of the function of places that tok begins, "within" of spatial.within(, or "".
func (p places) at() string { return spaces(p).at("spatial") }

// relation returns the relation that tok begins a condition on.
func (p places) relation() (Relation, bool) {
	at := slices.Index(relationNames[:], p.at())
	return Relation(max(at, 0)), at >= 0
}

// condition = "spatial." ( "within" | "intersects" | "contains" | "disjoint" ) "(" place "," shape [ "," number ] ")" .
func (p places) condition(r Relation) (Expr, error) {
	if p.exact {
		return nil, p.fail(p.tok.offset, "spatial.%s() has no exact form", relationNames[r])
	}
	spaces(p).begin()
	e := Place{Relation: r}
	var err error
	if e.Field, err = p.place(); err != nil {
		return nil, err
	}
	if err := p.expectSymbol(",", "and a shape behind the place"); err != nil {
		return nil, err
	}
	if e.Shape, err = p.shape(); err != nil {
		return nil, err
	}
	if p.acceptSymbol(",") { // by which answers of RavenDB may be wrong
		at := p.tok
		if n, err := spaces(p).number("the share of the shape by which an answer may be wrong"); err != nil {
			return nil, err
		} else if !(n >= 0 && n <= 0.5) {
			return nil, p.fail(at.offset, "answers are exact, and may be wrong by a share from 0 to 0.5, not by %v", n)
		}
	}
	return e, p.expectSymbol(")", "behind the shape")
}

// place = "'" place "'" | "spatial." ( "point" "(" operand "," operand ")" | "wkt" "(" path ")" ) | path .
func (p places) place() (Field, error) {
	at := p.tok
	if p.isQuoted() {
		return unquoted(p, p.place)
	}
	switch p.at() {
	case "":
		return p.path()
	case "wkt":
		spaces(p).begin()
		f, err := p.path()
		if err != nil {
			return f, err
		}
		return f, p.expectSymbol(")", "behind the field")
	case "point":
		f, err := p.expr.expression(nil)
		if err == nil && (f.Expression == nil || f.Expression.root.function != pointFunction) {
			err = p.fail(at.offset, "a place is a field, spatial.point(Lat, Lng) or spatial.wkt(Field), and not computed from one")
		}
		return f, err
	}
	return Field{}, p.unknown("a field, spatial.point(Lat, Lng) or spatial.wkt(Field)")
}

// isQuoted reports whether tok is the text of a function of places: RavenDB's clients put it in
// quotes in spatial.distance('spatial.point(Lat, Lng)', ...).
func (p places) isQuoted() bool {
	if p.tok.kind != tokenText || !strings.HasPrefix(strings.ToLower(p.tok.text), "spatial.") {
		return false
	}
	inside := spaces{&parser{lex: lexer{text: p.tok.text}}}
	inside.advance()
	return inside.at("spatial") != ""
}

// unquoted parses the text that tok has in its quotes.
func unquoted[T any](p places, parse func() (T, error)) (of T, err error) {
	if err := p.enter(); err != nil {
		return of, err
	}
	defer p.leave()
	at, outer := p.tok, p.lex
	p.lex = lexer{text: at.text}
	p.advance()
	if of, err = parse(); err == nil && p.tok.kind != tokenEnd {
		err = p.unexpected("the end of the place")
	}
	p.lex, p.tok = outer, at
	if err != nil {
		return of, p.fail(at.offset, "the place in quotes: %v", err).because(err)
	}
	p.advance()
	return of, nil
}

// path parses the field of a place.
func (p places) path() (Field, error) {
	return spaces(p).path("place", "the field of a place, spatial.point(Lat, Lng) or spatial.wkt(Field)")
}

// unknown is the error for another spatial function at tok.
func (p places) unknown(expected string) error {
	return p.fail(p.tok.offset, "there is no spatial.%s() here", p.at()).expecting(expected).
		hinting("conditions are spatial.within, intersects, contains and disjoint; shapes circle, box, point and wkt; spatial.distance is a number")
}

// numbers parses numbers with commas between them.
func (p places) numbers(to ...*float64) (err error) {
	for i, n := range to {
		if i > 0 {
			if err := p.expectSymbol(",", "and a number"); err != nil {
				return err
			}
		}
		if *n, err = spaces(p).number("a number"); err != nil {
			return err
		}
	}
	return nil
}

// unit = [ "," text ] .
func (p places) unit() (string, error) {
	if !p.tok.isSymbol(",") {
		return "", nil
	}
	p.advance()
	at := p.tok
	name, err := p.textValue("kilometers, miles or meters")
	if err == nil {
		if _, _, bad := unitNamed(name); bad != nil {
			err = p.fail(at.offset, "%v", bad).because(bad)
		}
	}
	return name, err
}

// shape = "spatial." ( "circle" "(" radius "," latitude "," longitude [ unit ] | "box" "(" south
// "," west "," north "," east | "point" "(" latitude "," longitude | "wkt" "(" text [ unit ] ) ")"
// .
func (p places) shape() (s Shape, err error) {
	at := p.tok
	const expected = "a shape: spatial.circle(radius, latitude, longitude), spatial.box(south, west, north, east), spatial.point(latitude, longitude) or spatial.wkt('...')"
	var a, b, c, d float64
	unit := ""
	switch p.at() {
	case "circle":
		spaces(p).begin()
		if err = p.numbers(&a, &b, &c); err == nil {
			unit, err = p.unit()
		}
		if err == nil {
			s, err = CircleShape(b, c, a, unit)
		}
	case "box":
		spaces(p).begin()
		if err = p.numbers(&a, &b, &c, &d); err == nil {
			s, err = BoxShape(a, b, c, d)
		}
	case "point":
		spaces(p).begin()
		if err = p.numbers(&a, &b); err == nil {
			s, err = PointShape(a, b)
		}
	case "wkt":
		spaces(p).begin()
		text := ""
		if text, err = p.textValue("a text of WKT"); err == nil {
			unit, err = p.unit()
		}
		if err == nil {
			s, err = WKTShape(text, unit)
		}
	case "":
		return s, p.unexpected(expected)
	default:
		return s, p.unknown(expected)
	}
	switch bad := err.(type) {
	case nil:
		return s, p.expectSymbol(")", "behind the shape")
	case *PlaceError:
		return s, p.fail(at.offset, "%v", bad).because(bad)
	}
	return s, err
}

// isOperand reports whether tok begins a function of places that is an operand.
func (p places) isOperand() bool {
	name := p.at()
	return name == "distance" || name == "point"
}

// operand = "spatial." ( "point" "(" argument "," argument ")" | distance ) .
func (p places) operand() (*operation, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if p.at() == "distance" {
		spaces(p).begin()
		return p.distance()
	}
	spaces(p).begin()
	o := &operation{function: pointFunction}
	for i := range 2 {
		if i > 0 {
			if err := p.expectSymbol(",", "and the longitude"); err != nil {
				return nil, err
			}
		}
		operand, err := p.expr.argument()
		if err != nil {
			return nil, err
		}
		o.operands = append(o.operands, operand)
	}
	if err := p.expectSymbol(")", "behind the longitude"); err != nil {
		return nil, err
	}
	return p.expr.newOperation(o)
}

// distance = place "," ( point | wkt ) [ unit ] [ "," number ] ")" .
func (p places) distance() (*operation, error) {
	place, err := p.placeOperand()
	if err != nil {
		return nil, err
	}
	if err := p.expectSymbol(",", "and a point behind the place"); err != nil {
		return nil, err
	}
	d := &Distance{Unit: "kilometers"}
	if d.Target, err = p.target(); err != nil {
		return nil, err
	}
	for p.tok.isSymbol(",") {
		if next := p.peek(); !d.shown && d.Round == 0 && (next.kind == tokenText || next.kind == tokenParameter && p.isText(next)) {
			unit, err := p.unit()
			if err != nil {
				return nil, err
			}
			d.Unit, _, _ = unitNamed(unit)
			d.shown = true
			continue
		}
		if d.Round != 0 {
			break
		}
		p.advance()
		at := p.tok
		if d.Round, err = spaces(p).number("a unit in quotes, or a number to a multiple of which the distance is rounded down"); err != nil {
			return nil, err
		}
		if !(d.Round >= 0) || math.IsInf(d.Round, 0) {
			return nil, p.fail(at.offset, "a distance is rounded to a multiple of a number above 0, not of %v", d.Round)
		}
		if d.Round == 0 { // none
			break
		}
	}
	if err := p.expectSymbol(")", "behind the point"); err != nil {
		return nil, err
	}
	return p.expr.newOperation(&operation{function: distanceFunction, operands: []*operation{place}, rest: d})
}

// placeOperand parses the place that is measured.
func (p places) placeOperand() (*operation, error) {
	if p.isQuoted() {
		return unquoted(p, p.placeOperand)
	}
	if p.at() == "point" {
		return p.expr.primaryOperand()
	}
	f, err := p.place()
	if err != nil {
		return nil, err
	}
	return p.expr.fieldOperand(f)
}

// isText reports whether a parameter is a text.
func (p places) isText(t token) bool {
	_, is := p.params[t.text].(string)
	return is
}

// target parses the point that distances are measured from.
func (p places) target() (*geo.Target, error) {
	at := p.tok
	const expected = "a point: spatial.point(latitude, longitude) of numbers, or spatial.wkt('POINT(longitude latitude)')"
	if name := p.at(); name != "point" && name != "wkt" {
		return nil, p.unexpected(expected)
	}
	s, err := p.shape()
	if err != nil {
		return nil, err
	}
	spot, is := s.place.Single()
	if !is {
		return nil, p.fail(at.offset, "%.100s is no point, and distances are measured from one", s.text).expecting(expected)
	}
	return geo.NewTarget(spot)
}
