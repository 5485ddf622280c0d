package query

import (
	"math"
	"strconv"

	"github.com/jaydb/jay/internal/geo"
)

// Functions of places in expressions. They are written spatial.point(Lat, Lng) and so on.
var (
	pointFunction    = &function{name: "spatial.point", least: 2, most: 2, apply: pointOf}
	distanceFunction = &function{name: "spatial.distance", least: 2, most: 4, choose: distanceOf, last: ValueOf([]byte("1e9"))} // no place is so far, in any unit
)

// Distance is the distance from the places of a document to a point: spatial.distance(Location,
// spatial.point(52, 13), 'miles'). If there are several places, the nearest counts. A document
// without a place has no distance, and is further away than all others in an order.
type Distance struct {
	Place  Field
	Target *geo.Target
	Unit   string  // as in geo.Units
	Round  float64 // the result is the next lower multiple of it; 0 for none

	shown bool // the unit was given
}

// Distance returns the Distance of f. is reports whether f is a distance.
func (f Field) Distance() (d Distance, is bool) {
	if f.Expression == nil || f.Func != FuncNone || f.Expression.root.function != distanceFunction {
		return d, false
	}
	x, root := f.Expression, f.Expression.root
	d = *root.rest.(*Distance)
	place := root.operands[0]
	if place.function == nil {
		d.Place = x.fields[place.field]
		return d, true
	}
	of := &Expression{root: place, fields: x.fields, conditions: x.conditions, size: x.size - 1}
	w := writer{expression: of}
	w.write(place, orderAny)
	of.text = w.String()
	d.Place = Field{Meta: MetaExpression, Expression: of}
	return d, true
}

// IsPoint reports whether the field is spatial.point(...).
func (f Field) IsPoint() bool {
	return f.Expression != nil && f.Func == FuncNone && f.Expression.root.function == pointFunction
}

// Of returns the distance of a place.
func (d *Distance) Of(v geo.Value) float64 {
	n := d.Target.Metres(v) / geo.Units[d.Unit]
	if d.Round > 0 {
		n -= math.Mod(n, d.Round)
	}
	return n
}

func (d *Distance) opening() string { return "" }

// suffix returns what follows the place in the text of a distance.
func (d *Distance) suffix() string {
	text := ", spatial.point(" + numberText(d.Target.Latitude) + ", " + numberText(d.Target.Longitude) + ")"
	if d.shown {
		text += ", " + quote(d.Unit)
	}
	if d.Round > 0 {
		text += ", " + numberText(d.Round)
	}
	return text
}

// unknown returns what an order takes for a field that reaches nothing.
func (o Order) unknown() Value {
	if x := o.Field.Expression; x != nil && x.root.function != nil && o.As == CastNone {
		return x.root.function.last
	}
	return Value{}
}

// pointOf computes spatial.point: the WKT of a point.
func pointOf(c *computation, v []Value) (Value, error) {
	var s geo.Spot
	for i, to := range []*float64{&s.Latitude, &s.Longitude} {
		n, err := strconv.ParseFloat(string(v[i].raw), 64)
		if v[i].kind != KindNumber || err != nil {
			return Value{}, wants("a number", v[i])
		}
		*to = n
	}
	if err := s.Check(); err != nil {
		return Value{}, placeError(err)
	}
	start := len(c.reader.dates)
	c.reader.dates = geo.AppendPoint(c.reader.dates, v[0].raw, v[1].raw)
	return c.textFrom(start), nil
}

// distanceOf computes spatial.distance.
func distanceOf(c *computation, o *operation) (Value, error) {
	distance, least := o.rest.(*Distance), math.Inf(1)
	each := func(v Value) bool {
		place, is := PlaceOf(v)
		if is {
			least = min(least, distance.Of(place))
		}
		work := 1 + len(v.raw)
		if place.Other != nil {
			work *= geo.Work
		}
		return c.reader.pace.Spend(work)
	}
	if place := o.operands[0]; place.function == nil {
		c.reader.Each(c.slots[place.field], each)
	} else {
		v, err := c.value(place)
		if err != nil {
			return Value{}, err
		}
		each(v)
	}
	if math.IsInf(least, 1) {
		return Value{}, nil
	}
	return c.float(least), nil
}

// DistanceText returns the RQL of the distance from the place of a document to a point, in
// kilometers: an order, a column, or an operand of a condition. The place is a path, or
// spatial.point(Lat, Lng). The parser of the text refuses an invalid point.
func DistanceText(place string, latitude, longitude float64) string {
	return "spatial.distance(" + place + ", spatial.point(" + numberText(latitude) + ", " + numberText(longitude) + "))"
}
