package query

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/jaydb/jay/internal/geo"
)

// Relation is a spatial relation of the place of a document to a shape.
type Relation uint8

const (
	PlaceWithin     Relation = iota // the shape has all points of it
	PlaceIntersects                 // they have a point together
	PlaceContains                   // it has all points of the shape
	PlaceDisjoint                   // they have no point together
)

// relationNames are the names of relations, as functions of RQL behind "spatial.".
var relationNames = [...]string{PlaceWithin: "within", PlaceIntersects: "intersects", PlaceContains: "contains", PlaceDisjoint: "disjoint"}

// MaxVertices is how many vertices a shape, and a place of a document, has at most.
const MaxVertices = geo.MaxVertices

// PlaceError says why numbers or a text are not a place.
type PlaceError struct {
	Rule  string // such as "a latitude is between -90 and 90"
	Value string // what breaks it
}

func (e *PlaceError) Error() string { return fmt.Sprintf("%s: %.100s", e.Rule, e.Value) }

// placeError returns an error of package geo as a PlaceError.
func placeError(err error) error {
	var e *geo.Error
	if errors.As(err, &e) {
		return &PlaceError{e.Rule, e.Value}
	}
	return err
}

// Shape is the shape of a Place condition. Make one with CircleShape, BoxShape, PointShape or
// WKTShape. It is immutable.
type Shape struct {
	text  string // as RQL has it
	place *geo.Place
}

// CircleShape returns all points that are up to radius from a point, in "kilometers", "miles" or
// "meters"; "" is kilometers. Errors are *PlaceError.
func CircleShape(latitude, longitude, radius float64, unit string) (Shape, error) {
	name, length, err := unitNamed(unit)
	if err != nil {
		return Shape{}, err
	}
	p, err := geo.Circle(latitude, longitude, radius*length)
	return Shape{"spatial.circle(" + numberText(radius) + ", " + numberText(latitude) + ", " + numberText(longitude) + ", " + quote(name) + ")", p}, placeError(err)
}

// BoxShape returns all points between two parallels and two meridians. The box extends eastward
// from west to east, across the antimeridian if east is less than west. Errors are *PlaceError.
func BoxShape(south, west, north, east float64) (Shape, error) {
	p, err := geo.Box(south, west, north, east)
	return Shape{"spatial.box(" + numberText(south) + ", " + numberText(west) + ", " + numberText(north) + ", " + numberText(east) + ")", p}, placeError(err)
}

// PointShape returns a point. Errors are *PlaceError.
func PointShape(latitude, longitude float64) (Shape, error) {
	p, err := geo.Point(latitude, longitude)
	return Shape{"spatial.point(" + numberText(latitude) + ", " + numberText(longitude) + ")", p}, placeError(err)
}

// WKTShape returns the shape of a text of WKT, longitude first. The unit is the unit of the radius
// of a CIRCLE in the text; "" means kilometers. Errors are *PlaceError.
func WKTShape(text, unit string) (Shape, error) {
	name, length, err := unitNamed(unit)
	if err != nil {
		return Shape{}, err
	}
	p, err := geo.ParseWKT(text, length)
	if err == nil && p.IsEmpty() {
		err = &geo.Error{Rule: "a shape has a point", Value: text}
	}
	s := Shape{"spatial.wkt(" + quote(text), p}
	if unit != "" {
		s.text += ", " + quote(name)
	}
	s.text += ")"
	return s, placeError(err)
}

// unitNamed returns the name of a unit and its length in metres.
func unitNamed(unit string) (name string, length float64, err error) {
	if unit == "" {
		unit = "kilometers"
	}
	name, found := geo.UnitOf(unit)
	if !found {
		return "", 0, &PlaceError{"a unit of distance is kilometers, miles or meters", unit}
	}
	return name, geo.Units[name], nil
}

func numberText(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// String returns the shape as RQL has it.
func (s Shape) String() string { return s.text }

// GoString is the shape as fmt prints it with %#v: by its text, as a hash that is kept with the
// result of a call is made of it.
//
// Part of the on-disk format. Must not change.
func (s Shape) GoString() string { return "query.Shape(" + strconv.Quote(s.text) + ")" }

// Geometry returns the shape for package geo.
func (s Shape) Geometry() *geo.Place { return s.place }
