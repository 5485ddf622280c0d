package geo

import (
	"math"
	"slices"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// Intersects reports whether two places have a point together.
func (p *Place) Intersects(o *Place) bool {
	if p.meets(o) || p.circlesMeet(o) || o.circlesMeet(p) {
		return true
	}
	return slices.ContainsFunc(p.circles, func(a s2.Cap) bool {
		return slices.ContainsFunc(o.circles, func(b s2.Cap) bool { return a.Center().Distance(b.Center()) <= a.Radius()+b.Radius() })
	})
}

// meets is Intersects for all but circles.
func (p *Place) meets(o *Place) bool {
	if hasIn(p, o) || hasIn(o, p) {
		return true
	}
	a, b := p.edged(), o.edged()
	if a.NumEdges() == 0 || b.NumEdges() == 0 {
		return false
	}
	if a.NumEdges() > b.NumEdges() {
		a, b = b, a
	}
	return edgesMeet(a, b) || beginsIn(b, a)
}

// edgesMeet reports whether an edge of a meets anything of b. (A query with an index as its target misses edges: it looks on the other side of
// the earth.)
func edgesMeet(a, b *s2.ShapeIndex) bool {
	limit := s1.ChordAngleFromAngle(angle(Touching))
	q := s2.NewClosestEdgeQuery(b, s2.NewClosestEdgeQueryOptions().IncludeInteriors(true))
	for i := range a.Len() {
		shape := a.Shape(int32(i))
		for n := range shape.NumEdges() {
			e := shape.Edge(n)
			if e.V0 == e.V1 && q.IsDistanceLess(s2.NewMinDistanceToPointTarget(e.V0), limit) || e.V0 != e.V1 && q.IsDistanceLess(s2.NewMinDistanceToEdgeTarget(e), limit) {
				return true
			}
		}
	}
	return false
}

// beginsIn reports whether a ring, a line or a point of a begins in b, which may have all of it.
func beginsIn(a, b *s2.ShapeIndex) bool {
	limit := s1.ChordAngleFromAngle(angle(Touching))
	q := s2.NewClosestEdgeQuery(b, s2.NewClosestEdgeQueryOptions().IncludeInteriors(true))
	for i := range a.Len() {
		shape := a.Shape(int32(i))
		for chain := range shape.NumChains() {
			if shape.Chain(chain).Length > 0 && q.IsDistanceLess(s2.NewMinDistanceToPointTarget(shape.ChainEdge(chain, 0).V0), limit) {
				return true
			}
		}
	}
	return false
}

// hasIn reports whether a box of p has a point of o.
func hasIn(p, o *Place) bool {
	return slices.ContainsFunc(p.boxes, func(b s2.Rect) bool {
		return slices.ContainsFunc(o.points, b.ContainsPoint) || slices.ContainsFunc(o.boxes, b.Intersects)
	})
}

// circlesMeet reports whether a circle of p meets something of o but a circle.
func (p *Place) circlesMeet(o *Place) bool {
	return slices.ContainsFunc(p.circles, func(c s2.Cap) bool { return o.angleTo(c.Center()) <= c.Radius() })
}

// angleTo returns how far all but circles are from a point.
func (p *Place) angleTo(at s2.Point) s1.Angle {
	d := s1.InfAngle()
	for _, v := range p.points {
		d = min(d, v.Distance(at))
	}
	for _, b := range p.boxes {
		d = min(d, b.DistanceToLatLng(s2.LatLngFromPoint(at)))
	}
	if len(p.lines)+len(p.areas) > 0 {
		d = min(d, p.angleToEdges(at))
	}
	return d
}

// Contains reports whether a place has all points of another one, which has some. A line has its points only, and lines that are the same;
// the areas of a place have together what each of them has, but not what lies in two of them.
func (p *Place) Contains(o *Place) bool {
	if o.IsEmpty() {
		return false
	}
	for _, at := range o.points {
		if !p.has(at) {
			return false
		}
	}
	for _, line := range o.lines {
		if !p.hasLine(line) {
			return false
		}
	}
	for _, area := range o.areas {
		if !p.hasArea(area) {
			return false
		}
	}
	for _, c := range o.circles {
		if !p.hasCircle(c) {
			return false
		}
	}
	for i := range o.boxes {
		if !p.hasBox(o, i) {
			return false
		}
	}
	return true
}

// has reports whether the place has a point.
func (p *Place) has(at s2.Point) bool {
	if len(p.points)+len(p.lines) > 0 && p.angleTo(at) <= angle(Touching) {
		for _, v := range p.points {
			if v.Distance(at) <= angle(Touching) {
				return true
			}
		}
		for _, line := range p.lines {
			if near, _ := line.Project(at); near.Distance(at) <= angle(Touching) {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.areas, func(a *s2.Polygon) bool { return a.ContainsPoint(at) }) ||
		slices.ContainsFunc(p.boxes, func(b s2.Rect) bool { return b.ContainsPoint(at) }) ||
		slices.ContainsFunc(p.circles, func(c s2.Cap) bool { return c.Center().Distance(at) <= c.Radius() })
}

// hasLine reports whether one part of the place has a line.
func (p *Place) hasLine(line *s2.Polyline) bool {
	for _, l := range p.lines {
		if l.Equal(line) {
			return true
		}
	}
	for _, a := range p.areas {
		if slices.ContainsFunc(*line, func(v s2.Point) bool { return !a.ContainsPoint(v) }) {
			continue
		}
		if !crosses(a, line) {
			return true
		}
	}
	return p.hasBound(line, line.RectBound())
}

// hasArea reports whether one part of the place has an area.
func (p *Place) hasArea(area *s2.Polygon) bool {
	return slices.ContainsFunc(p.areas, func(a *s2.Polygon) bool { return a.Contains(area) }) || p.hasBound(area, area.RectBound())
}

// hasBound reports whether a circle or a box has a shape.
func (p *Place) hasBound(shape s2.Shape, bound s2.Rect) bool {
	const slack = 1e-13 // of bounds, which are a little larger than what they are of
	for _, b := range p.boxes {
		b.Lat.Lo, b.Lat.Hi = b.Lat.Lo-slack, b.Lat.Hi+slack
		b.Lng = b.Lng.Expanded(slack)
		if b.Contains(bound) {
			return true
		}
	}
	if len(p.circles) == 0 {
		return false
	}
	index := s2.NewShapeIndex()
	index.Add(shape)
	furthest := s2.NewFurthestEdgeQuery(index, s2.NewFurthestEdgeQueryOptions().IncludeInteriors(true))
	return slices.ContainsFunc(p.circles, func(c s2.Cap) bool {
		return furthest.Distance(s2.NewMaxDistanceToPointTarget(c.Center())).Angle() <= c.Radius()
	})
}

// hasCircle reports whether one part of the place has a circle.
func (p *Place) hasCircle(c s2.Cap) bool {
	if c.Radius() == 0 {
		return p.has(c.Center())
	}
	for _, o := range p.circles {
		if o.Center().Distance(c.Center())+c.Radius() <= o.Radius() {
			return true
		}
	}
	for _, b := range p.boxes {
		if b.Contains(c.RectBound()) {
			return true
		}
	}
	return slices.ContainsFunc(p.areas, func(a *s2.Polygon) bool {
		if !a.ContainsPoint(c.Center()) {
			return false
		}
		index := s2.NewShapeIndex()
		index.Add(a)
		border := s2.NewClosestEdgeQuery(index, s2.NewClosestEdgeQueryOptions().IncludeInteriors(false))
		return border.Distance(s2.NewMinDistanceToPointTarget(c.Center())).Angle() >= c.Radius()
	})
}

// hasBox reports whether one part of the place has a box of o.
func (p *Place) hasBox(o *Place, i int) bool {
	b := o.boxes[i]
	for _, own := range p.boxes {
		if own.Contains(b) {
			return true
		}
	}
	if isFlat(b) {
		flat := new(Place)
		flat.addFlat(b)
		return p.Contains(flat)
	}
	for _, piece := range o.piecesOf(i) {
		if !p.hasArea(piece) {
			return false
		}
	}
	return true
}

// piecesOf returns a box as areas. They are made once for all boxes of the place, which a query compares with many others.
func (p *Place) piecesOf(box int) []*s2.Polygon {
	p.cut.Do(func() {
		p.pieces = make([][]*s2.Polygon, len(p.boxes))
		for i, b := range p.boxes {
			if !isFlat(b) {
				p.pieces[i] = outlined(b)
			}
		}
	})
	return p.pieces[box]
}

// crosses reports whether a line crosses the border of an area.
func crosses(a *s2.Polygon, line *s2.Polyline) bool {
	index := s2.NewShapeIndex()
	index.Add(a)
	q := s2.NewCrossingEdgeQuery(index)
	for i := range line.NumEdges() {
		e := line.Edge(i)
		if len(q.CrossingsEdgeMap(e.V0, e.V1, s2.CrossingTypeInterior)) > 0 {
			return true
		}
	}
	return false
}

// edged returns the index of the place with its boxes as areas and lines. It is made once.
func (p *Place) edged() *s2.ShapeIndex {
	if len(p.boxes) == 0 {
		return p.index
	}
	p.outline.Do(func() {
		all := Place{points: slices.Clone(p.points), lines: slices.Clone(p.lines), areas: slices.Clone(p.areas)}
		for _, b := range p.boxes {
			if isFlat(b) {
				all.addFlat(b)
				continue
			}
			all.areas = append(all.areas, outlined(b)...)
		}
		p.outlined = all.built().index
	})
	return p.outlined
}

// isFlat reports whether a box has no inside.
func isFlat(b s2.Rect) bool { return b.Lng.Length() < 1e-12 || b.Lat.Length() < 1e-12 }

// addFlat adds a box without an inside: a line, or a point.
func (p *Place) addFlat(b s2.Rect) {
	var line s2.Polyline
	add := func(lat, lng float64) {
		v := s2.PointFromLatLng(s2.LatLng{Lat: s1.Angle(lat), Lng: s1.Angle(lng)}.Normalized())
		if n := len(line); n == 0 || line[n-1].Distance(v) > 1e-14 {
			line = append(line, v)
		}
	}
	if b.Lng.Length() < 1e-12 {
		for _, lat := range []float64{b.Lat.Lo, (b.Lat.Lo + b.Lat.Hi) / 2, b.Lat.Hi} {
			add(lat, b.Lng.Lo)
		}
	} else {
		n := max(1, int(math.Ceil(b.Lng.Length()/step)))
		for i := range n + 1 {
			add(b.Lat.Lo, b.Lng.Lo+b.Lng.Length()*float64(i)/float64(n))
		}
	}
	if len(line) == 1 {
		p.points = append(p.points, line[0])
		return
	}
	p.lines = append(p.lines, &line)
}

// step is how far apart the vertices of a parallel are at most: so it is less than a metre from the lines between them.
const step = 0.05 * math.Pi / 180

// outlined returns a box as areas with vertices along its parallels, each at most a third of the way around the earth.
func outlined(b s2.Rect) (pieces []*s2.Polygon) {
	width := b.Lng.Length()
	n := max(1, int(math.Ceil(width/(2*math.Pi/3)-1e-9)))
	for i := range n {
		from, to := b.Lng.Lo+width*float64(i)/float64(n), b.Lng.Lo+width*float64(i+1)/float64(n)
		if points := outline(b.Lat.Lo, b.Lat.Hi, from, to); len(points) >= 3 {
			pieces = append(pieces, s2.PolygonFromOrientedLoops([]*s2.Loop{s2.LoopFromPoints(points)}))
		}
	}
	return pieces
}

// outline returns the vertices of a box, to the left of which it lies.
func outline(south, north, west, east float64) (points []s2.Point) {
	add := func(lat, lng float64) {
		v := s2.PointFromLatLng(s2.LatLng{Lat: s1.Angle(lat), Lng: s1.Angle(lng)}.Normalized())
		for _, other := range []int{0, len(points) - 1} { // a pole is one vertex
			if len(points) > 0 && points[other].Distance(v) < 1e-14 {
				return
			}
		}
		points = append(points, v)
	}
	n := max(1, int(math.Ceil((east-west)/step)))
	for i := range n + 1 {
		add(south, west+(east-west)*float64(i)/float64(n))
	}
	middle := (south + north) / 2 // so that no side is half of the way around the earth
	add(middle, east)
	for i := range n + 1 {
		add(north, east-(east-west)*float64(i)/float64(n))
	}
	add(middle, west)
	return points
}
