package geo

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// ParseGeoJSON parses a geometry, or a Feature, as RFC 7946 has them, longitude first. Coordinates behind the second of a position are
// ignored, as are other members. The JSON must be valid. Errors are *Error.
func ParseGeoJSON(json gjson.Result) (*Place, error) {
	p := new(Place)
	if err := p.addGeoJSON(json, 0); err != nil {
		return nil, err
	}
	return p.built(), nil
}

func (p *Place) addGeoJSON(json gjson.Result, depth int) error {
	if depth > MaxDepth {
		return refused(fmt.Sprintf("collections have at most %d levels", MaxDepth), "there are more")
	}
	if !json.IsObject() {
		return refused("GeoJSON is an object", "%s", json.Raw)
	}
	coordinates := json.Get("coordinates")
	switch kind := json.Get("type").Str; kind {
	case "Point":
		return p.position(coordinates, p.addPoint)
	case "MultiPoint":
		return each(coordinates, func(one gjson.Result) error { return p.position(one, p.addPoint) })
	case "LineString":
		return p.positions(coordinates, p.addLine)
	case "MultiLineString":
		return each(coordinates, func(one gjson.Result) error { return p.positions(one, p.addLine) })
	case "Polygon":
		return p.rings(coordinates)
	case "MultiPolygon":
		return each(coordinates, p.rings)
	case "GeometryCollection":
		return each(json.Get("geometries"), func(one gjson.Result) error { return p.addGeoJSON(one, depth+1) })
	case "Feature":
		if geometry := json.Get("geometry"); geometry.Type != gjson.Null {
			return p.addGeoJSON(geometry, depth+1)
		}
		return nil
	default:
		return refused("the type of GeoJSON is Point, LineString, Polygon, MultiPoint, MultiLineString, MultiPolygon, GeometryCollection or Feature", "%q", kind)
	}
}

// each calls fn with the elements of an array.
func each(array gjson.Result, fn func(gjson.Result) error) (err error) {
	if !array.IsArray() {
		return refused("coordinates and geometries of GeoJSON are arrays", "%s", array.Raw)
	}
	array.ForEach(func(_, one gjson.Result) bool {
		err = fn(one)
		return err == nil
	})
	return err
}

// position reads a position.
func (p *Place) position(array gjson.Result, add func(position) error) error {
	if err := p.count(1); err != nil {
		return err
	}
	var all []float64
	err := each(array, func(one gjson.Result) error {
		if one.Type != gjson.Number {
			return refused("a coordinate is a number", "%s", one.Raw)
		}
		if len(all) < 4 {
			all = append(all, one.Num)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(all) < 2:
		return refused("a position has a longitude and a latitude", "%s", array.Raw)
	}
	return add(position{latitude: all[1], longitude: all[0]})
}

// positions reads several positions.
func (p *Place) positions(array gjson.Result, add func([]position) error) error {
	var all []position
	err := each(array, func(one gjson.Result) error {
		return p.position(one, func(at position) error { all = append(all, at); return nil })
	})
	if err != nil {
		return err
	}
	return add(all)
}

// rings reads the rings of an area.
func (p *Place) rings(array gjson.Result) error {
	var all [][]position
	err := each(array, func(one gjson.Result) error {
		return p.positions(one, func(ring []position) error { all = append(all, ring); return nil })
	})
	if err != nil {
		return err
	}
	return p.addArea(all)
}
