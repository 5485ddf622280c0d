package geo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxDepth is how many levels of geometry collections there are at most.
const MaxDepth = 8

// ParseWKT parses a place as text: POINT, LINESTRING, POLYGON, MULTIPOINT, MULTILINESTRING, MULTIPOLYGON, GEOMETRYCOLLECTION, each in front of EMPTY or of
// coordinates, longitude first, as OGC 06-103r4 has them, in any case of letters; also CIRCLE(longitude latitude d=radius), with a radius in units of so many
// metres, and ENVELOPE(west, east, north, south), as RavenDB has them. A third and a fourth coordinate are ignored. Errors are *Error.
func ParseWKT(text string, unit float64) (*Place, error) {
	w := wkt{text: text, unit: unit, place: new(Place)}
	if err := w.geometry(0); err != nil {
		return nil, err
	}
	if w.space(); w.at < len(w.text) {
		return nil, w.expected("the end")
	}
	return w.place.built(), nil
}

// wkt parses a text.
type wkt struct {
	text  string
	at    int
	unit  float64
	place *Place
}

// expected is the error where something else stands.
func (w *wkt) expected(what string) error {
	rest := w.text[w.at:]
	if rest == "" {
		rest = "the end"
	}
	return refused(fmt.Sprintf("WKT has %s at offset %d", what, w.at), "%.40s", rest)
}

func (w *wkt) space() {
	for w.at < len(w.text) && strings.IndexByte(" \t\r\n", w.text[w.at]) >= 0 {
		w.at++
	}
}

// next skips a byte, and reports whether it was there.
func (w *wkt) next(c byte) bool {
	if w.space(); w.at < len(w.text) && w.text[w.at] == c {
		w.at++
		return true
	}
	return false
}

// word reads letters, in capitals.
func (w *wkt) word() string {
	w.space()
	begin := w.at
	for w.at < len(w.text) && (w.text[w.at]|0x20 >= 'a' && w.text[w.at]|0x20 <= 'z') {
		w.at++
	}
	return strings.ToUpper(w.text[begin:w.at])
}

// number reads a number.
func (w *wkt) number() (float64, error) {
	w.space()
	end := w.at
	for end < len(w.text) && strings.IndexByte("+-.0123456789eE", w.text[end]) >= 0 {
		end++
	}
	n, err := strconv.ParseFloat(w.text[w.at:end], 64)
	if err != nil || math.IsInf(n, 0) {
		return 0, w.expected("a number")
	}
	w.at = end
	return n, nil
}

// geometry reads any geometry.
func (w *wkt) geometry(depth int) error {
	begin := w.at
	name := w.word()
	dimensions := w.at
	if d := w.word(); d != "Z" && d != "M" && d != "ZM" {
		w.at = dimensions
	}
	switch name {
	case "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION":
		before := w.at
		if w.word() == "EMPTY" {
			return nil
		}
		w.at = before
	}
	p := w.place
	switch name {
	case "POINT":
		return w.list(func() error { return w.vertex(p.addPoint) }, true)
	case "MULTIPOINT":
		return w.list(func() error {
			if w.space(); w.at < len(w.text) && w.text[w.at] == '(' {
				return w.list(func() error { return w.vertex(p.addPoint) }, true)
			}
			return w.vertex(p.addPoint)
		}, false)
	case "LINESTRING":
		return w.line(p.addLine)
	case "MULTILINESTRING":
		return w.list(func() error { return w.line(p.addLine) }, false)
	case "POLYGON":
		return w.area()
	case "MULTIPOLYGON":
		return w.list(w.area, false)
	case "GEOMETRYCOLLECTION":
		if depth == MaxDepth {
			return refused(fmt.Sprintf("collections have at most %d levels", MaxDepth), "there are more")
		}
		return w.list(func() error { return w.geometry(depth + 1) }, false)
	case "CIRCLE":
		return w.circle()
	case "ENVELOPE":
		return w.envelope()
	}
	w.at = begin
	w.space()
	return w.expected("POINT, LINESTRING, POLYGON, MULTIPOINT, MULTILINESTRING, MULTIPOLYGON, GEOMETRYCOLLECTION, CIRCLE or ENVELOPE")
}

// list reads what is in parentheses: one, or several with commas between them.
func (w *wkt) list(one func() error, single bool) error {
	if !w.next('(') {
		return w.expected("'('")
	}
	for {
		if err := one(); err != nil {
			return err
		}
		if w.next(')') {
			return nil
		}
		if single || !w.next(',') {
			return w.expected("')'")
		}
	}
}

// vertex reads a vertex.
func (w *wkt) vertex(add func(position) error) error {
	if err := w.place.count(1); err != nil {
		return err
	}
	var all [4]float64
	for i := range all {
		if w.space(); i >= 2 && (w.at == len(w.text) || strings.IndexByte("+-.0123456789", w.text[w.at]) < 0) {
			break
		}
		n, err := w.number()
		if err != nil {
			return err
		}
		all[i] = n
	}
	return add(position{latitude: all[1], longitude: all[0]})
}

// line reads the vertices of a line or a ring.
func (w *wkt) line(add func([]position) error) error {
	var all []position
	if err := w.list(func() error { return w.vertex(func(at position) error { all = append(all, at); return nil }) }, false); err != nil {
		return err
	}
	return add(all)
}

// area reads the rings of an area.
func (w *wkt) area() error {
	var rings [][]position
	err := w.list(func() error { return w.line(func(ring []position) error { rings = append(rings, ring); return nil }) }, false)
	if err != nil {
		return err
	}
	return w.place.addArea(rings)
}

// circle reads a circle.
func (w *wkt) circle() error {
	if !w.next('(') {
		return w.expected("'('")
	}
	var center position
	if err := w.vertex(func(at position) error { center = at; return nil }); err != nil {
		return err
	}
	if w.next(','); w.word() != "D" || !w.next('=') {
		return w.expected("d= and a radius")
	}
	radius, err := w.number()
	if err != nil {
		return err
	}
	if !w.next(')') {
		return w.expected("')'")
	}
	return w.place.addCircle(center.latitude, center.longitude, radius*w.unit)
}

// envelope reads a box.
func (w *wkt) envelope() error {
	var sides []float64
	if err := w.list(func() error {
		n, err := w.number()
		sides = append(sides, n)
		return err
	}, false); err != nil {
		return err
	}
	if len(sides) != 4 {
		return refused("ENVELOPE has west, east, north and south", "%d numbers", len(sides))
	}
	if err := w.place.count(4); err != nil {
		return err
	}
	return w.place.addBox(sides[3], sides[0], sides[2], sides[1])
}
