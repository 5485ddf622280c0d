package places

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// Stage implements catalog.Stager.
func (k keeper) Stage(tx storage.Tx, folded string, given []catalog.Entry) error {
	before, err := catalog.ValueAt(tx, k.documentKey(keyOf, []byte(folded)))
	if err != nil {
		return err
	}
	return k.stage(tx, folded, before, given)
}

// StageNew implements catalog.NewStager.
func (k keeper) StageNew(tx storage.Tx, folded string, given []catalog.Entry) error {
	return k.stage(tx, folded, nil, given)
}

// Fill implements catalog.Tabler.
func (k keeper) Fill(s catalog.Staging, folded []byte, given []catalog.Entry) error {
	return k.stage(s, string(folded), nil, given)
}

// stage is Stage for a document whose record is before, nil for none.
func (k keeper) stage(tx catalog.Staging, folded string, before []byte, given []catalog.Entry) error {
	id := []byte(folded)
	var now []byte
	if len(given) > 0 {
		_, now = given[0].Given()
	}
	if bytes.Equal(before, now) && (before == nil) == (now == nil) {
		return nil
	}
	if before != nil {
		old, err := decodeRecord(before)
		if err != nil {
			return fmt.Errorf("document %q: %w", folded, err)
		}
		for _, key := range k.keysOf(&old, id) {
			tx.Delete(key.key)
		}
	}
	mine := k.documentKey(keyOf, id)
	if now == nil {
		if before != nil {
			tx.Delete(mine)
		}
		return nil
	}
	r, err := decodeRecord(now)
	if err != nil {
		return err
	}
	for _, key := range k.keysOf(&r, id) {
		tx.Set(key.key, key.value, nil)
	}
	tx.Set(mine, now, nil)
	return nil
}

// keyed is a key of the index.
type keyed struct{ key, value []byte }

// keysOf returns the keys that a record stands for.
func (k keeper) keysOf(r *record, folded []byte) (keys []keyed) {
	if r.isEmpty() {
		return []keyed{{key: k.documentKey(keyNone, folded)}}
	}
	if r.isOnly() {
		return []keyed{{append(append(k.cellKey(keyPoint, r.points[0].cell), folded...), 0), appendSpot(nil, r.points[0].spot)}}
	}
	cells := slices.Clone(r.cells)
	for _, p := range r.points {
		cells = append(cells, p.cell)
	}
	slices.Sort(cells)
	for _, c := range slices.Compact(cells) {
		keys = append(keys, keyed{key: append(append(k.cellKey(keyCell, c), folded...), 0)})
	}
	return keys
}

// What is counted of an index: of each document its places, which its record says, too; and each key of a cell, which weighs 1 by the
// record and -1 by itself. So cells are compared with the record, and not with what this processor makes of the places.

// placesFact is the fact that a document has some places.
func placesFact(folded []byte, r *record) []byte {
	bare := record{others: r.others}
	for _, p := range r.points {
		bare.points = append(bare.points, point{spot: p.spot})
	}
	return bare.append(append(append([]byte{keyOf}, folded...), 0))
}

// keyFact is the fact that a key is there.
func keyFact(key keyed) []byte {
	return append(append([]byte{keyCell}, key.key[5:]...), key.value...)
}

// GivenFacts implements catalog.Stager.
func (k keeper) GivenFacts(folded string, e *catalog.Entry, add func(fact []byte, weight int64) error) error {
	_, value := e.Given()
	r, err := decodeRecord(value)
	if err != nil {
		return err
	}
	return add(placesFact([]byte(folded), &r), 1)
}

// StoredFacts implements catalog.Stager.
func (k keeper) StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	bad := fmt.Errorf("key %x, value %.60x, of places: %w", key, value, errs.ErrCorrupt)
	if len(key) < 7 {
		return bad
	}
	switch key[5] {
	case keyOf:
		folded, err := cutID(key)
		if err != nil {
			return err
		}
		r, err := decodeRecord(value)
		if err != nil {
			return err
		}
		for _, key := range k.keysOf(&r, folded) {
			if err := add(keyFact(key), 1); err != nil {
				return err
			}
		}
		return add(placesFact(folded, &r), 1)
	case keyNone:
		if _, err := cutID(key); err != nil || len(value) > 0 {
			return bad
		}
	case keyCell, keyPoint:
		if _, _, err := cutCell(key); err != nil {
			return err
		}
		if key[5] == keyCell && len(value) > 0 {
			return bad
		}
		if key[5] == keyPoint {
			if _, err := pointAt(value); err != nil {
				return err
			}
		}
	default:
		return bad
	}
	return add(keyFact(keyed{key, value}), -1)
}
