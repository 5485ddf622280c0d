package places

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/golang/geo/s2"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/geo"
)

// The keys of an index, behind its number. A cell is the ID of a cell of S2, 8 bytes; of a point it is the one of the lowest level.
//
//	63 cell id 00   of a document that has anything but one point, of a cell that covers a part of its places: nothing
//	64 id 00        of a document: its record
//	6e id 00        of a document without a place: nothing
//	70 cell id 00   of a document with one point, and no other place: latitude and longitude, 8 bytes each as IEEE 754 has them
//
// A record is a uvarint of the number of points, of each its cell, latitude and longitude; a uvarint of the number of cells of other places, and
// these, ascending; and each other place: a uvarint of the length of what follows, 74 and its WKT, or 6a and its GeoJSON.
//
// Which cells a place has is computed in floating point, of which processors differ in the last digit. So what a document has in the index is
// what its record says, and is removed by that, and never by computing it again.
//
// Part of the on-disk format. Must not change.
const (
	keyCell   = 'c'
	keyOf     = 'd'
	keyNone   = 'n'
	keyPoint  = 'p'
	isText    = 't'
	isGeoJSON = 'j'
)

// bytesOfPoint is how many bytes a point has in a record.
const bytesOfPoint = 24

func (k keeper) key(kind byte) []byte {
	return append(format.AppendIndexPrefix(make([]byte, 0, 64), k.ix.Number), kind)
}

// documentKey returns a key that has the ID of a document only.
func (k keeper) documentKey(kind byte, folded []byte) []byte {
	return append(append(k.key(kind), folded...), 0)
}

// cellKey returns the beginning of the keys of a cell.
func (k keeper) cellKey(kind byte, cell s2.CellID) []byte {
	return binary.BigEndian.AppendUint64(k.key(kind), uint64(cell))
}

// cutCell returns the cell and the folded ID in a key of a cell.
func cutCell(key []byte) (cell s2.CellID, folded []byte, err error) {
	if len(key) < 16 || key[len(key)-1] != 0 || bytes.IndexByte(key[14:], 0) != len(key)-15 {
		return 0, nil, fmt.Errorf("key %x of places: %w", key, errs.ErrCorrupt)
	}
	return s2.CellID(binary.BigEndian.Uint64(key[6:])), key[14 : len(key)-1], nil
}

// cutID returns the folded ID in a key that has it only.
func cutID(key []byte) ([]byte, error) {
	folded, ok := catalog.CutID(key)
	if !ok {
		return nil, fmt.Errorf("key %x of places: %w", key, errs.ErrCorrupt)
	}
	return folded, nil
}

// point is a point of a document.
type point struct {
	cell s2.CellID
	spot geo.Spot
}

func appendSpot(dst []byte, s geo.Spot) []byte {
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(s.Latitude))
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(s.Longitude))
}

// spotAt returns the spot in 16 bytes.
func spotAt(b []byte) geo.Spot {
	return geo.Spot{Latitude: math.Float64frombits(binary.BigEndian.Uint64(b)), Longitude: math.Float64frombits(binary.BigEndian.Uint64(b[8:]))}
}

// pointAt decodes the value of a key of a point.
func pointAt(value []byte) (s geo.Spot, err error) {
	if len(value) == 16 {
		s = spotAt(value)
	}
	if len(value) != 16 || s.Check() != nil {
		return s, fmt.Errorf("point %x: %w", value, errs.ErrCorrupt)
	}
	return s, nil
}

// other is a place that is no point.
type other struct {
	isText bool
	text   []byte
}

// record is what a document has in the index.
type record struct {
	points []point
	cells  []s2.CellID // of others
	others []other
}

// isEmpty reports whether the document has no place.
func (r *record) isEmpty() bool { return len(r.points)+len(r.others) == 0 }

// isOnly reports whether the document has one point, and no other place.
func (r *record) isOnly() bool { return len(r.points) == 1 && len(r.others) == 0 }

func (r *record) append(dst []byte) []byte {
	slices.Sort(r.cells)
	r.cells = slices.Compact(r.cells)
	dst = binary.AppendUvarint(dst, uint64(len(r.points)))
	for _, p := range r.points {
		dst = appendSpot(binary.BigEndian.AppendUint64(dst, uint64(p.cell)), p.spot)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.cells)))
	for _, c := range r.cells {
		dst = binary.BigEndian.AppendUint64(dst, uint64(c))
	}
	for _, o := range r.others {
		dst = binary.AppendUvarint(dst, uint64(len(o.text)+1))
		kind := byte(isGeoJSON)
		if o.isText {
			kind = isText
		}
		dst = append(append(dst, kind), o.text...)
	}
	return dst
}

// decodeRecord decodes a record, in its memory.
func decodeRecord(value []byte) (r record, err error) {
	bad := fmt.Errorf("places %.60x: %w", value, errs.ErrCorrupt)
	count := func(each int) int {
		n, size := binary.Uvarint(value)
		if size <= 0 || n > uint64(len(value)-size)/uint64(each) {
			return -1
		}
		value = value[size:]
		return int(n)
	}
	n := count(bytesOfPoint)
	if n < 0 {
		return r, bad
	}
	for range n {
		p := point{s2.CellID(binary.BigEndian.Uint64(value)), spotAt(value[8:])}
		if !p.cell.IsValid() || p.spot.Check() != nil {
			return r, bad
		}
		r.points, value = append(r.points, p), value[bytesOfPoint:]
	}
	if n = count(8); n < 0 {
		return r, bad
	}
	for range n {
		c := s2.CellID(binary.BigEndian.Uint64(value))
		if !c.IsValid() {
			return r, bad
		}
		r.cells, value = append(r.cells, c), value[8:]
	}
	for len(value) > 0 {
		n := count(1)
		if n < 1 || value[0] != isText && value[0] != isGeoJSON {
			return r, bad
		}
		r.others, value = append(r.others, other{value[0] == isText, value[1:n:n]}), value[n:]
	}
	return r, nil
}

// each calls fn with the places of a record, until it returns false.
func (r *record) each(fn func(geo.Value) bool) error {
	for _, p := range r.points {
		if !fn(geo.Value{Spot: p.spot}) {
			return nil
		}
	}
	for _, o := range r.others {
		var v geo.Value
		var err error
		if o.isText {
			v, err = geo.ReadText(string(o.text))
		} else {
			v, err = geo.ReadJSON(o.text)
		}
		if err != nil {
			return fmt.Errorf("place %.60q: %w: %w", o.text, errs.ErrCorrupt, err)
		}
		if !fn(v) {
			return nil
		}
	}
	return nil
}

// Describe implements catalog.Keeper.
func (k keeper) Describe(key []byte) string {
	if len(key) < 6 {
		return "one of its keys"
	}
	switch key[5] {
	case keyCell, keyPoint:
		if cell, folded, err := cutCell(key); err == nil {
			return fmt.Sprintf("cell %s of document %.100q", cell.ToToken(), folded)
		}
	case keyOf, keyNone:
		if folded, err := cutID(key); err == nil {
			return fmt.Sprintf("the places of document %.100q", folded)
		}
	}
	return catalog.Hex(key)
}
