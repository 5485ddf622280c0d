// Package places is the kind of index that finds documents by where their places lie: entries by cells of S2, which a commit writes
// with the document, and which lead from a region to its documents, and from a point to the nearest ones. docs/format.md describes its keys.
package places

import (
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/geo"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Name is the name of the kind in declarations. Part of the on-disk format. Must not change.
const Name = "places"

// Kind is the kind.
var Kind = catalog.Kind{Open: open, Feature: storage.FeaturePlaces}

// keeper is the Keeper of an index.
type keeper struct{ ix *catalog.Index }

// open is catalog.Kind.Open.
func open(ix *catalog.Index) (catalog.Keeper, error) {
	if len(ix.Fields) > 1 {
		return nil, fmt.Errorf("%w: index %q: an index of places has one field, such as Location or spatial.point(Lat, Lng), and not %d", errs.ErrIndex, ix.Info.Name, len(ix.Fields))
	}
	for _, f := range ix.Fields {
		q := f.Query()
		if f.Descending || f.Date != query.DateNone || q.Expression != nil && !q.IsPoint() {
			return nil, fmt.Errorf("%w: index %q: %s: an index of places has the field of a text of WKT or an object of GeoJSON, or spatial.point(Lat, Lng)", errs.ErrIndex, ix.Info.Name, f.Text)
		}
	}
	return keeper{ix}, nil
}

// entryKey is the Keeper's part of the key of the only entry of a document.
var entryKey = []byte{'p'}

// otherCells is about how many cells cover a place that is no point, and mostCells how many at most.
const (
	otherCells = 8
	mostCells  = 32
)

// Count implements catalog.Keeper.
func (k keeper) Count(d *catalog.Document) int { return max(1, d.Reached(0)) }

// Bytes implements catalog.Keeper: a point has one key, any other place its text and keys for its cells.
func (k keeper) Bytes(d *catalog.Document, count int, p catalog.Precision) int {
	const ofPoint, ofOther = catalog.EntryBytes + bytesOfPoint, mostCells * (catalog.EntryBytes + 8)
	if p == catalog.Roughly {
		return catalog.EntryBytes + count*(ofPoint+ofOther) + 2*len(d.Body)
	}
	n := catalog.EntryBytes
	for _, v := range d.Values(0) {
		if n += ofPoint; p == catalog.Exactly {
			if place, is := query.PlaceOf(v); !is || place.Other == nil {
				continue
			}
		}
		n += ofOther + len(v.Raw())
	}
	return n
}

// Extract implements catalog.Keeper: an entry with all places of the document, also with none.
func (k keeper) Extract(d *catalog.Document, e *catalog.Entries) error {
	var r record
	for _, v := range d.Values(0) {
		place, is := query.PlaceOf(v)
		switch {
		case !is:
		case place.Other == nil:
			r.points = append(r.points, point{place.Cell(), place.Spot})
		default:
			r.addOther(v, place.Other)
		}
	}
	e.Add(d, entryKey, r.append(nil))
	return nil
}

// addOther adds a place that is no point.
func (r *record) addOther(v query.Value, place *geo.Place) {
	cells := place.Cover(otherCells)
	if len(cells) > mostCells {
		cells = place.Cover(1) // as few as there may be
	}
	r.cells = append(r.cells, cells...)
	if v.Kind() == query.KindText {
		r.others = append(r.others, other{isText: true, text: []byte(v.Text())})
	} else {
		r.others = append(r.others, other{text: v.Raw()})
	}
}
