package query

import (
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/geo"
)

// Place is true if a place that the field reaches stands in the relation Relation to Shape. The
// field reaches texts of WKT or objects of GeoJSON, or is spatial.point(Lat, Lng). A value that is
// not a place, such as a latitude of 91 or a polygon that crosses itself, is ignored.
// docs/places.md has the rules.
type Place struct {
	Field    Field
	Relation Relation
	Shape    Shape
}

var _ leaf = Place{}

func (Place) expr() {}

func (e Place) on() (Field, bool) { return e.Field, true }

func (e Place) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Place) measure(s Size) Size {
	s.Places++
	s.Bytes += len(e.Shape.text)
	return s
}

func (e Place) write(b *strings.Builder) {
	b.WriteString("spatial." + relationNames[e.Relation] + "(" + e.Field.String() + ", " + e.Shape.text + ")")
}

func (Place) looksAtValues() bool { return true }

func (e Place) refold(func(Field, bool) bool) Expr { return e }

func (e Place) complete(_ *compiler, to condition, _ bool) (condition, error) {
	if e.Shape.place == nil || e.Relation > PlaceDisjoint {
		return to, fmt.Errorf("%w: a condition on places has a relation and a shape", ErrCondition)
	}
	to.op, to.place = opPlace, &e
	return to, nil
}

// Holds reports whether a place stands in the relation to the shape.
func (e *Place) Holds(v geo.Value) bool {
	switch e.Relation {
	case PlaceWithin:
		return v.Within(e.Shape.place)
	case PlaceIntersects:
		return v.Intersects(e.Shape.place)
	case PlaceContains:
		return v.Contains(e.Shape.place)
	}
	return !v.Intersects(e.Shape.place)
}

// PlaceOf returns the place of a value, which is a text of WKT, or an object of GeoJSON.
func PlaceOf(v Value) (place geo.Value, is bool) {
	var err error
	switch v.kind {
	case KindText:
		place, err = geo.ReadText(v.Text())
	case KindObject:
		place, err = geo.ReadJSON(v.raw)
	default:
		return place, false
	}
	return place, err == nil
}

// lies reports whether a value satisfies an opPlace.
func (m *Matcher) lies(c *condition, v Value) bool {
	place, is := PlaceOf(v)
	if place.Other != nil && !m.pace.Spend(geo.Work*len(v.raw)) {
		return false
	}
	return is && c.place.Holds(place)
}

// relationFunction is what Functions calls a condition on places.
const relationFunction = "spatial.within"

// AsksOfPlaces reports whether a condition, or a condition in it on the elements of an array, is on
// places. The depth of e must be within the bounds.
func AsksOfPlaces(e Expr) bool {
	return walk(e, func(e Expr, _ int) error {
		if _, is := e.(Place); is {
			return errFound
		}
		return nil
	}) != nil
}
