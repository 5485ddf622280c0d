package geo

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
	"github.com/tidwall/gjson"
)

// Units are the lengths of units of distance, in metres, by their names.
var Units = map[string]float64{"kilometers": 1000, "miles": 1609.344, "meters": 1}

// UnitOf returns the name of a unit as Units has it, for any spelling of it: km, kilometres, mi, metre, in any case of letters.
func UnitOf(name string) (unit string, found bool) {
	switch strings.ToLower(name) {
	case "kilometers", "kilometres", "kilometer", "kilometre", "km":
		return "kilometers", true
	case "miles", "mile", "mi":
		return "miles", true
	case "meters", "metres", "meter", "metre", "m":
		return "meters", true
	}
	return "", false
}

// Spot is a point, in degrees. Most places of documents are one, so that it needs no memory of its own.
type Spot struct{ Latitude, Longitude float64 }

// Check returns an *Error for a spot that is not on the earth.
func (s Spot) Check() error {
	return onEarth(s.Latitude, s.Longitude)
}

// vector returns the point of a spot that is one: see Check.
func (s Spot) vector() s2.Point {
	return s2.PointFromLatLng(s2.LatLngFromDegrees(s.Latitude, s.Longitude))
}

// Value is the place that a value of a document is: a spot, or any other place, which has at least one point.
type Value struct {
	Spot
	Other *Place // nil for a spot
}

// AppendPoint appends the WKT of a point whose coordinates are written as JSON has them.
func AppendPoint(dst, latitude, longitude []byte) []byte {
	dst = append(append(dst, "POINT("...), longitude...)
	return append(append(append(dst, ' '), latitude...), ')')
}

// ReadText returns the place of a text of WKT: see ParseWKT, with metres as the unit. Errors are *Error.
func ReadText(text string) (Value, error) {
	if inside, is := strings.CutPrefix(text, "POINT("); is && strings.HasSuffix(inside, ")") {
		lng, lat, two := strings.Cut(inside[:len(inside)-1], " ")
		longitude, err := strconv.ParseFloat(lng, 64)
		latitude, other := strconv.ParseFloat(lat, 64)
		if two && err == nil && other == nil {
			s := Spot{latitude, longitude}
			return Value{Spot: s}, s.Check()
		}
	}
	p, err := ParseWKT(text, 1)
	return valueOf(p, err)
}

// ReadJSON returns the place of GeoJSON: see ParseGeoJSON. The JSON must be valid. Errors are *Error.
func ReadJSON(raw []byte) (Value, error) {
	json := gjson.ParseBytes(raw)
	p, err := ParseGeoJSON(json)
	return valueOf(p, err)
}

// valueOf returns the value of a parsed place.
func valueOf(p *Place, err error) (Value, error) {
	switch {
	case err != nil:
		return Value{}, err
	case p.IsEmpty():
		return Value{}, refused("a place has a point", "none")
	case p.only != nil:
		return Value{Spot: *p.only}, nil
	}
	return Value{Other: p}, nil
}

// place returns the value as a place.
func (v Value) place() *Place {
	if v.Other != nil {
		return v.Other
	}
	p := &Place{points: []s2.Point{v.vector()}}
	return p.built()
}

// Within reports whether a shape contains the value.
func (v Value) Within(shape *Place) bool {
	if v.Other != nil {
		return shape.Contains(v.Other)
	}
	return shape.has(v.vector())
}

// Contains reports whether the value contains a shape.
func (v Value) Contains(shape *Place) bool { return v.place().Contains(shape) }

// Intersects reports whether the value and a shape have a point together.
func (v Value) Intersects(shape *Place) bool {
	if v.Other != nil {
		return shape.Intersects(v.Other)
	}
	at := v.vector()
	return shape.has(at) || len(shape.areas) > 0 && shape.angleToEdges(at) <= angle(Touching)
}

// Target is where distances are measured from. It is immutable.
type Target struct {
	Spot
	at s2.Point
}

// NewTarget returns the target of a spot, or an *Error.
func NewTarget(s Spot) (*Target, error) {
	at, err := vertex(s.Latitude, s.Longitude)
	return &Target{s, at}, err
}

// Metres returns how far a value is from the target: 0 in it.
func (t *Target) Metres(v Value) float64 {
	if v.Other == nil {
		return metres(v.vector().Distance(t.at))
	}
	d := v.Other.angleTo(t.at)
	for _, c := range v.Other.circles {
		d = min(d, max(0, c.Center().Distance(t.at)-c.Radius()))
	}
	return metres(d)
}

// angleToEdges returns how far lines, areas and points are from a point.
func (p *Place) angleToEdges(at s2.Point) s1.Angle {
	q := s2.NewClosestEdgeQuery(p.index, s2.NewClosestEdgeQueryOptions().IncludeInteriors(true))
	return q.Distance(s2.NewMinDistanceToPointTarget(at)).Angle()
}

// Single returns the point that the place is, if it is one.
func (p *Place) Single() (Spot, bool) {
	if p.only == nil {
		return Spot{}, false
	}
	return *p.only, true
}

// setOnly notes the only position of a place that is a point.
func (p *Place) setOnly(at position) {
	p.only = nil
	if len(p.points) == 1 && len(p.lines)+len(p.areas)+len(p.circles)+len(p.boxes) == 0 {
		p.only = &Spot{at.latitude, at.longitude}
	}
}

// isRound reports whether a place is circles and boxes only.
func (p *Place) isRound() bool { return len(p.points)+len(p.lines)+len(p.areas) == 0 }

// Cells

// Slack is by how many metres a covering is larger than its place at least: more than Touching, and than what rounding may
// make of a distance.
const Slack = 0.05

// Cover returns the cells of S2, up to about so many, that have all of a place and Slack around it: sorted, none in another one.
func (p *Place) Cover(cells int) s2.CellUnion {
	c := s2.RegionCoverer{MaxLevel: s2.MaxLevel, LevelMod: 1, MaxCells: cells}
	u := c.Covering(grown{p, s1.ChordAngleFromAngle(angle(Slack))})
	u.Normalize()
	return u
}

// Cell returns the smallest cell that has a spot.
func (s Spot) Cell() s2.CellID { return s2.CellFromPoint(s.vector()).ID() }

// Edge returns how far the edge of a cell is at least, in metres, which has the target: what is outside of the cell is as far. It is a little less, as Reach.
func (t *Target) Edge(id s2.CellID) float64 {
	return max(0, metres(s2.CellFromCellID(id).BoundaryDistance(t.at).Angle())-Slack)
}

// Reach returns how far a cell is from the target at least, in metres: a little less, so that rounding does not matter.
func (t *Target) Reach(id s2.CellID) float64 {
	return max(0, metres(s2.CellFromCellID(id).Distance(t.at).Angle())-Slack)
}

// grown is a place and what is around it, as a region.
type grown struct {
	place *Place
	by    s1.ChordAngle
}

// CapBound implements s2.Region.
func (g grown) CapBound() s2.Cap { return g.RectBound().CapBound() }

// RectBound implements s2.Region.
func (g grown) RectBound() s2.Rect {
	bound := s2.EmptyRect()
	add := func(r s2.Rect) {
		// Of a place at a pole or near it all meridians count.
		if r.Lat.Hi > math.Pi/2-1e-6 || r.Lat.Lo < -math.Pi/2+1e-6 {
			r.Lng = r.Lng.Expanded(2 * math.Pi)
		}
		bound = bound.Union(g.widened(r))
	}
	for _, v := range g.place.points {
		add(s2.RectFromLatLng(s2.LatLngFromPoint(v)))
	}
	for _, line := range g.place.lines {
		add(line.RectBound())
	}
	for _, a := range g.place.areas {
		add(a.RectBound())
	}
	for _, c := range g.place.circles {
		add(c.RectBound())
	}
	for _, b := range g.place.boxes {
		add(b)
	}
	return bound
}

// widened returns a box with what is around it.
func (g grown) widened(r s2.Rect) s2.Rect {
	by := float64(g.by.Angle())
	r.Lng = r.Lng.Expanded(by / max(1e-6, math.Cos(max(math.Abs(r.Lat.Lo), math.Abs(r.Lat.Hi)))))
	r.Lat.Lo, r.Lat.Hi = max(-math.Pi/2, r.Lat.Lo-by), min(math.Pi/2, r.Lat.Hi+by)
	return r
}

// ContainsCell implements s2.Region.
func (g grown) ContainsCell(cell s2.Cell) bool {
	return slices.ContainsFunc(g.place.areas, func(a *s2.Polygon) bool { return a.ContainsCell(cell) }) ||
		slices.ContainsFunc(g.place.boxes, func(b s2.Rect) bool { return b.ContainsCell(cell) }) ||
		slices.ContainsFunc(g.place.circles, func(c s2.Cap) bool { return c.ContainsCell(cell) })
}

// IntersectsCell implements s2.Region.
func (g grown) IntersectsCell(cell s2.Cell) bool {
	if !g.place.isRound() {
		q := s2.NewClosestEdgeQuery(g.place.index, s2.NewClosestEdgeQueryOptions().IncludeInteriors(true))
		if q.IsConservativeDistanceLessOrEqual(s2.NewMinDistanceToCellTarget(cell), g.by) {
			return true
		}
	}
	by := g.by.Angle()
	for _, c := range g.place.circles {
		if cell.Distance(c.Center()).Angle() <= c.Radius()+by {
			return true
		}
	}
	for _, b := range g.place.boxes {
		if g.widened(b).IntersectsCell(cell) {
			return true
		}
	}
	return false
}

// ContainsPoint implements s2.Region.
func (g grown) ContainsPoint(at s2.Point) bool { return g.IntersectsCell(s2.CellFromPoint(at)) }

// CellUnionBound implements s2.Region.
func (g grown) CellUnionBound() []s2.CellID { return g.CapBound().CellUnionBound() }
