package jay

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"

	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Flags of an index: what its entries have been like so far. They are only
// ever set. Part of the on-disk format. Must not change.
const (
	flagMulti  = 1 << 0 // a document had several entries
	flagCut    = 1 << 1 // a value was too long for its key
	flagsKnown = flagMulti | flagCut
)

// entry is what a document has in one index: the key without the document's
// ID. Its bytes belong to an entries.
type entry struct {
	ix     *openIndex
	order  int    // of the index among those of its collection
	values []byte // one part for each field
	alone  bool   // no other document may have the same: the index is unique and nothing is missing
	tells  bool   // all that the document has at the fields, and how it is spelt there
}

// entries are those of one document, by index and key.
type entries struct {
	list  []entry
	arena []byte
	flags []indexFlag // that the entries need
}

// indexFlag are flags of one index.
type indexFlag struct {
	number uint32
	flags  byte
}

func (e *entries) flag(ix *openIndex, flags byte) {
	for i := range e.flags {
		if e.flags[i].number == ix.number {
			e.flags[i].flags |= flags
			return
		}
	}
	e.flags = append(e.flags, indexFlag{ix.number, flags})
}

// appendEntryKey appends an entry's key. The ID is turned round, bit by bit,
// where the last field is descending, so that the IDs of equal values stand in
// the direction of that field.
func (e *entry) appendKey(dst []byte, folded string) []byte {
	dst = format.AppendIndexPrefix(dst, e.ix.number)
	dst = append(dst, e.values...)
	if e.alone {
		return dst // the ID is the value
	}
	return format.AppendEntryID(dst, folded, e.ix.lastDescending())
}

func (ix *openIndex) lastDescending() bool { return ix.fields[len(ix.fields)-1].descending }

// entryTellsNot is all of an entry's value, but for an ID in it, if the
// document must be looked at to know what it has at the index's fields, or how
// its ID is spelt. Part of the on-disk format. Must not change.
const entryTellsNot = 0

// appendValue appends an entry's value: the folded ID if it is not in the key,
// and behind it, or alone, how the ID is spelt. See appendSpelling.
func (e *entry) appendValue(dst []byte, id, folded string) []byte {
	if e.alone {
		dst = append(append(dst, folded...), 0)
	}
	start := len(dst)
	spelt := e.tells
	if spelt {
		dst, spelt = appendSpelling(dst, id, folded)
	}
	if !spelt {
		return append(dst[:start], entryTellsNot)
	}
	if e.alone && len(dst) == start {
		return dst[:start-1]
	}
	return dst
}

// splitValue is the inverse of appendValue.
func splitValue(value []byte, alone bool) (folded, spelling []byte) {
	if !alone {
		return nil, value
	}
	folded, spelling, _ = bytes.Cut(value, []byte{0})
	return folded, spelling
}

// appendSpelling appends the places, counted from 1, of the capital letters A
// to Z that make an ID differ from its folded form. It returns false if it
// differs in another way, or beyond the place that a byte can tell.
func appendSpelling(dst []byte, id, folded string) ([]byte, bool) {
	if id == folded {
		return dst, true
	}
	if len(id) != len(folded) {
		return dst, false
	}
	for i := range len(id) {
		if id[i] == folded[i] {
			continue
		}
		if id[i] < 'A' || id[i] > 'Z' || folded[i] != id[i]+('a'-'A') || i >= math.MaxUint8 {
			return dst, false
		}
		dst = append(dst, byte(i+1))
	}
	return dst, true
}

// appendSpelt appends the ID that appendSpelling was given. It returns false
// for what appendSpelling does not make.
func appendSpelt(dst, folded, spelling []byte) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, folded...)
	for _, place := range spelling {
		i := start + int(place) - 1
		if i < start || i >= len(dst) || dst[i] < 'a' || dst[i] > 'z' {
			return dst[:start], false
		}
		dst[i] -= 'a' - 'A'
	}
	return dst, true
}

// appendDecodedID is the inverse of appendEntryID.
func appendDecodedID(dst, id []byte, descending bool) ([]byte, error) {
	start := len(dst)
	dst = append(dst, id...)
	if descending {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	if len(id) < 2 || dst[len(dst)-1] != 0 {
		return nil, fmt.Errorf("index entry of %x: %w", id, ErrCorrupt)
	}
	return dst[:len(dst)-1], nil
}

// stageIndexes stages the entries of a document instead of those that it had.
// before is the document so far, without a body if it was not there; after is
// nil if it is deleted.
func (t *transaction) stageIndexes(ci *collectionIndexes, id, folded string, before oldDocument, after *entries) error {
	var kept []bool // by position in after: the entry is there already
	if before.Body != nil {
		if after != nil {
			kept = make([]bool, len(after.list))
		}
		err := ci.eachStored(before.Body, func(old *entries) error {
			for i := range old.list {
				e := &old.list[i]
				if same := after.like(e); same >= 0 {
					kept[same] = after.list[same].tells == e.tells
				} else if err := t.stageRemoval(e, folded); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("old entries of %q: %w", folded, err)
		}
	}
	if after == nil {
		return nil
	}
	for i := range after.list {
		e := &after.list[i]
		if kept != nil && kept[i] && before.ID == id && e.ix.info.State == IndexReady {
			continue // a build may not have entered the document yet, and will not: it changes
		}
		if err := t.stageEntry(e, id, folded); err != nil {
			return err
		}
	}
	for _, f := range after.flags {
		if err := t.stageFlags(f); err != nil {
			return err
		}
	}
	return nil
}

// stageRemoval stages that a document has an entry no more. In a unique index
// under construction the document may not have got it yet, and another may
// have: of two that have the same values, one may go before the build comes to
// it.
func (t *transaction) stageRemoval(e *entry, folded string) error {
	t.key = e.appendKey(t.key[:0], folded)
	if e.alone && e.ix.info.State == IndexBuilding {
		value, closer, err := t.tx.Get(t.key)
		if err == storage.ErrNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		owner, _ := splitValue(value, true)
		mine := string(owner) == folded
		if err := closer.Close(); err != nil || !mine {
			return err
		}
	}
	t.tx.Delete(t.key)
	return nil
}

// like returns the position of the entry that has the key of e, or -1. es may be
// nil.
func (es *entries) like(e *entry) int {
	if es == nil {
		return -1
	}
	i, found := slices.BinarySearchFunc(es.list, e, func(a entry, b *entry) int {
		return cmp.Or(a.order-b.order, bytes.Compare(a.values, b.values))
	})
	if !found {
		return -1
	}
	return i
}

func (t *transaction) stageEntry(e *entry, id, folded string) error {
	t.key = e.appendKey(t.key[:0], folded)
	t.value = e.appendValue(t.value[:0], id, folded)
	if !e.alone {
		t.tx.Set(t.key, t.value, nil)
		return nil
	}
	value, closer, err := t.tx.Get(t.key)
	if err == nil {
		taken, _ := splitValue(value, true)
		other := string(taken)
		if err := closer.Close(); err != nil {
			return err
		}
		if other != folded {
			return &UniqueError{Index: e.ix.info.Name, Collection: e.ix.info.Collection, Value: e.text(), ID: id, Other: t.written(other)}
		}
	} else if err != storage.ErrNotFound {
		return err
	}
	t.tx.Set(t.key, t.value, nil)
	return nil
}

// written returns the ID of a document as it was written.
func (t *transaction) written(folded string) string {
	record, err := t.record(folded)
	if err != nil {
		return folded
	}
	if h, _, err := metadata.Decode(record); err == nil && h.ID != nil {
		return string(h.ID)
	}
	return folded
}

// text returns the entry's values as a JSON array.
func (e *entry) text() string {
	text := []byte{'['}
	rest := e.values
	for i := range e.ix.fields {
		if i > 0 {
			text = append(text, ',')
		}
		v, _ := query.DecodeKey(rest)
		text = append(text, v.Raw()...)
		rest, _ = query.SkipKey(rest)
	}
	return string(append(text, ']'))
}

// stageFlags adds to the flags of an index.
func (t *transaction) stageFlags(f indexFlag) error {
	if t.flags[f.number]&f.flags == f.flags {
		return nil
	}
	known, err := indexFlags(t.tx, f.number)
	if err != nil {
		return err
	}
	if known&f.flags != f.flags {
		t.tx.Set(format.IndexFlagsKey(f.number), []byte{known | f.flags}, nil)
	}
	if t.flags == nil {
		t.flags = make(map[uint32]byte)
	}
	t.flags[f.number] = known | f.flags
	return nil
}

func indexFlags(r getter, number uint32) (byte, error) {
	value, closer, err := r.Get(format.IndexFlagsKey(number))
	if err == storage.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(value) != 1 || value[0]&^flagsKnown != 0 {
		return 0, errs.First(fmt.Errorf("flags of index %d: %w", number, ErrCorrupt), closer.Close())
	}
	flags := value[0]
	return flags, closer.Close()
}
