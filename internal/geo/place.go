package geo

import (
	"fmt"
	"math"
	"sync"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// Radius is the mean radius of the earth, in metres.
const Radius = 6_371_008.8

// MaxVertices is how many vertices a place has at most.
const MaxVertices = 20_000

// Work is what the reading of a byte of a place with several vertices counts, in units of a byte that is looked at:
// its lines are compared with one another.
const Work = 20

// Touching is up to which distance, in metres, a point lies on a line, and two lines touch.
const Touching = 0.001

// Error says why something is not a place.
type Error struct {
	Rule  string // such as "a latitude is between -90 and 90"
	Value string // what breaks it
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %.100s", e.Rule, e.Value) }

func refused(rule, format string, args ...any) error {
	return &Error{Rule: rule, Value: fmt.Sprintf(format, args...)}
}

// Place is a set of points on the earth. The zero value has none.
type Place struct {
	points  []s2.Point
	lines   []*s2.Polyline
	areas   []*s2.Polygon
	circles []s2.Cap
	boxes   []s2.Rect

	vertices int
	only     *Spot          // of a place that is one point
	index    *s2.ShapeIndex // of points, lines and areas

	outline  sync.Once
	outlined *s2.ShapeIndex // see edged

	cut    sync.Once
	pieces [][]*s2.Polygon // see piecesOf
}

// Point returns the place of a latitude and a longitude, in degrees.
func Point(latitude, longitude float64) (*Place, error) {
	p := new(Place)
	at, err := vertex(latitude, longitude)
	if err != nil {
		return nil, err
	}
	p.points = append(p.points, at)
	p.setOnly(position{latitude, longitude})
	return p.built(), nil
}

// Circle returns all points that are at most so many metres from a point.
func Circle(latitude, longitude, metres float64) (*Place, error) {
	p := new(Place)
	if err := p.addCircle(latitude, longitude, metres); err != nil {
		return nil, err
	}
	return p.built(), nil
}

func (p *Place) addCircle(latitude, longitude, metres float64) error {
	at, err := vertex(latitude, longitude)
	if err != nil {
		return err
	}
	if !(metres >= 0 && metres <= math.Pi*Radius) {
		return refused("the radius of a circle is between 0 and 20,015 km", "%v m", metres)
	}
	p.circles = append(p.circles, s2.CapFromCenterAngle(at, angle(metres)))
	return nil
}

// Box returns all points between two parallels and two meridians. It goes east from west, over the antimeridian if that is where east
// is.
func Box(south, west, north, east float64) (*Place, error) {
	p := new(Place)
	if err := p.addBox(south, west, north, east); err != nil {
		return nil, err
	}
	return p.built(), nil
}

func (p *Place) addBox(south, west, north, east float64) error {
	for _, corner := range [][2]float64{{south, west}, {north, east}} {
		if _, err := vertex(corner[0], corner[1]); err != nil {
			return err
		}
	}
	if south > north {
		return refused("the south of a box is not north of its north", "%v, %v", south, north)
	}
	r := s2.RectFromLatLng(s2.LatLngFromDegrees(south, west))
	r.Lat.Hi = s2.LatLngFromDegrees(north, east).Lat.Radians()
	r.Lng.Hi = s2.LatLngFromDegrees(north, east).Lng.Radians()
	if r.Lng.Lo == math.Pi && r.Lng.Hi != math.Pi {
		r.Lng.Lo = -math.Pi
	}
	if r.Lng.Hi == -math.Pi && r.Lng.Lo != -math.Pi {
		r.Lng.Hi = math.Pi
	}
	p.boxes = append(p.boxes, r)
	return nil
}

// onEarth refuses a latitude and a longitude that are none.
func onEarth(latitude, longitude float64) error {
	switch {
	case !(latitude >= -90 && latitude <= 90):
		return refused("a latitude is between -90 and 90", "%v", latitude)
	case !(longitude >= -180 && longitude <= 180):
		return refused("a longitude is between -180 and 180", "%v", longitude)
	}
	return nil
}

// vertex returns the point of a latitude and a longitude.
func vertex(latitude, longitude float64) (s2.Point, error) {
	if err := onEarth(latitude, longitude); err != nil {
		return s2.Point{}, err
	}
	return s2.PointFromLatLng(s2.LatLngFromDegrees(latitude, longitude)), nil
}

// position is a latitude and a longitude as they are written.
type position struct{ latitude, longitude float64 }

// count counts vertices.
func (p *Place) count(n int) error {
	if p.vertices += n; p.vertices > MaxVertices {
		return refused(fmt.Sprintf("a place has at most %d vertices", MaxVertices), "there are more")
	}
	return nil
}

func (p *Place) addPoint(at position) error {
	v, err := vertex(at.latitude, at.longitude)
	p.points = append(p.points, v)
	p.setOnly(at)
	return err
}

// path returns the vertices of a line, of which neighbours that are the same are one.
func path(all []position) ([]s2.Point, error) {
	var points []s2.Point
	for _, at := range all {
		v, err := vertex(at.latitude, at.longitude)
		if err != nil {
			return nil, err
		}
		if n := len(points); n > 0 {
			if points[n-1] == v {
				continue
			}
			if points[n-1].Distance(v) > math.Pi-1e-9 {
				return nil, refused("neighbouring vertices are not opposite to each other on the earth", "%v, %v", at.latitude, at.longitude)
			}
		}
		points = append(points, v)
	}
	return points, nil
}

func (p *Place) addLine(all []position) error {
	points, err := path(all)
	if err != nil {
		return err
	}
	if len(points) < 2 {
		return refused("a line has at least two vertices that differ", "%d", len(points))
	}
	line := s2.Polyline(points)
	p.lines = append(p.lines, &line)
	return nil
}

// addArea adds an area: a ring around it, and rings around its holes. Which way a ring goes does not matter; inside is the smaller
// side.
func (p *Place) addArea(rings [][]position) error {
	var loops []*s2.Loop
	for i, ring := range rings {
		if len(ring) > 0 && ring[0] != ring[len(ring)-1] {
			return refused("a ring ends where it begins", "ring %d", i+1)
		}
		points, err := path(ring)
		if err != nil {
			return err
		}
		if len(points) < 4 {
			return refused("a ring has at least three vertices that differ", "ring %d has %d", i+1, max(len(points)-1, 0))
		}
		loop := s2.LoopFromPoints(points[:len(points)-1])
		loop.Normalize()
		if err := loop.Validate(); err != nil {
			return refused("a ring has each vertex once and does not cross itself", "ring %d: %v", i+1, err)
		}
		loops = append(loops, loop)
	}
	if len(loops) == 0 {
		return refused("an area has a ring", "none")
	}
	if err := simple(loops); err != nil {
		return err
	}
	for i, hole := range loops[1:] {
		if !loops[0].ContainsNested(hole) {
			return refused("holes are inside of the first ring", "ring %d", i+2)
		}
	}
	area := s2.PolygonFromLoops(loops)
	if area.NumLoops() != len(loops) {
		return refused("rings of an area do not touch along an edge", "%d rings", len(loops))
	}
	for i := 1; i < area.NumLoops(); i++ {
		if !area.Loop(i).IsHole() {
			return refused("a hole is not in another one", "ring %d", i+1)
		}
	}
	p.areas = append(p.areas, area)
	return nil
}

// simple refuses rings that cross themselves or one another, or have an edge together.
func simple(loops []*s2.Loop) error {
	edges := make(map[s2.Edge]bool)
	var inOrder []s2.Edge // so that an error is the same each time
	index := s2.NewShapeIndex()
	for _, loop := range loops {
		seen := make(map[s2.Point]bool, loop.NumVertices())
		for i := range loop.NumVertices() {
			if v := loop.Vertex(i); seen[v] {
				return refused("a ring has each vertex once", "%v", s2.LatLngFromPoint(v))
			} else {
				seen[v] = true
			}
			e := loop.Edge(i)
			if edges[e] || edges[s2.Edge{V0: e.V1, V1: e.V0}] {
				return refused("rings do not have an edge together", "%v", s2.LatLngFromPoint(e.V0))
			}
			edges[e] = true
			inOrder = append(inOrder, e)
		}
		index.Add(loop)
	}
	crossings := s2.NewCrossingEdgeQuery(index)
	for _, e := range inOrder {
		for shape, all := range crossings.CrossingsEdgeMap(e.V0, e.V1, s2.CrossingTypeInterior) {
			for _, other := range all {
				if o := shape.Edge(other); o != e {
					return refused("a ring does not cross itself or another one", "at about %v", s2.LatLngFromPoint(e.V0))
				}
			}
		}
	}
	return nil
}

// built makes the index.
func (p *Place) built() *Place {
	if len(p.lines)+len(p.areas)+len(p.circles)+len(p.boxes) > 0 {
		p.only = nil
	}
	p.index = s2.NewShapeIndex()
	if len(p.points) > 0 {
		points := s2.PointVector(p.points)
		p.index.Add(&points)
	}
	for _, line := range p.lines {
		p.index.Add(line)
	}
	for _, area := range p.areas {
		p.index.Add(area)
	}
	p.index.Build()
	return p
}

// IsEmpty reports whether the place has no points at all.
func (p *Place) IsEmpty() bool {
	return len(p.points)+len(p.lines)+len(p.areas)+len(p.circles)+len(p.boxes) == 0
}

func angle(metres float64) s1.Angle { return s1.Angle(metres / Radius) }

func metres(a s1.Angle) float64 { return float64(a) * Radius }
