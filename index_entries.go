package jay

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Flags of an index: what its entries have been like so far. They are only
// ever set. Part of the on-disk format. Must not change.
const (
	flagMulti  = 1 << 0 // a document had several entries
	flagCut    = 1 << 1 // a value was too long for its key
	flagLossy  = 1 << 2 // a value cannot be told from its key in its own spelling
	flagsKnown = flagMulti | flagCut | flagLossy
)

// entry is what a document has in one index: the key without the document's
// ID. Its bytes belong to an entries.
type entry struct {
	ix     *index
	order  int    // of the index among those of its collection
	values []byte // one part for each field
	alone  bool   // no other document may have the same: the index is unique and nothing is missing
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

// extractEntries returns the entries of a document's body.
func (ci *collectionIndexes) extractEntries(body []byte) (*entries, error) {
	reader := ci.readers.Get().(*query.Reader)
	defer ci.readers.Put(reader)
	reader.Reset(query.Doc{Body: body})
	defer reader.Reset(query.Doc{}) // a pooled reader holds no document

	out := &entries{list: make([]entry, 0, 2*len(ci.indexes)), arena: make([]byte, 0, 64*len(ci.indexes))}
	var scratch [maxIndexFields][]query.Value
	for i, ix := range ci.indexes {
		if !ix.accepts(body) {
			continue
		}
		fields := scratch[:len(ix.fields)]
		for j, slot := range ci.slots[i] {
			if fields[j] = reader.Values(slot); len(fields[j]) == 0 {
				fields[j] = missing
			}
		}
		if err := out.add(ix, i, fields); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// missing is what a field that reaches nothing has in an index.
var missing = []query.Value{{}}

// accepts tells whether a document belongs into a partial index.
func (ix *index) accepts(body []byte) bool {
	if ix.filter == nil {
		return true
	}
	m := ix.matchers.Get().(*query.Matcher)
	defer ix.matchers.Put(m)
	return m.Match(query.Doc{Body: body})
}

// add adds the entries of one index: one for each combination of the fields'
// values.
func (e *entries) add(ix *index, order int, fields [][]query.Value) error {
	count := 1
	for _, values := range fields {
		if count *= len(values); count > maxIndexEntries {
			return &metadata.Error{Rule: fmt.Sprintf("at most %d entries in index %q", maxIndexEntries, ix.info.Name), Limit: maxIndexEntries, Actual: count}
		}
	}
	first := len(e.list)
	var scratch [maxIndexFields]int
	pick := scratch[:len(fields)]
	for range count {
		e.addOne(ix, order, fields, pick)
		for j := len(pick) - 1; j >= 0; j-- {
			if pick[j]++; pick[j] < len(fields[j]) {
				break
			}
			pick[j] = 0
		}
	}
	if count == 1 {
		return nil
	}
	mine := e.list[first:]
	slices.SortFunc(mine, func(a, b entry) int { return bytes.Compare(a.values, b.values) })
	mine = slices.CompactFunc(mine, func(a, b entry) bool { return bytes.Equal(a.values, b.values) })
	e.list = e.list[:first+len(mine)]
	e.flag(ix, flagMulti)
	return nil
}

func (e *entries) addOne(ix *index, order int, fields [][]query.Value, pick []int) {
	start := len(e.arena)
	alone := ix.info.Unique
	for j, f := range ix.fields {
		v := fields[j][pick[j]]
		if v.Kind() <= query.KindNull {
			alone = false
		}
		var truncated bool
		e.arena, truncated = query.AppendKey(e.arena, v, f.descending)
		if truncated {
			e.flag(ix, flagCut|flagLossy)
		} else if !query.Recoverable(v) {
			e.flag(ix, flagLossy)
		}
	}
	e.list = append(e.list, entry{ix: ix, order: order, values: e.arena[start:len(e.arena):len(e.arena)], alone: alone})
}

func (e *entries) flag(ix *index, flags byte) {
	for i := range e.flags {
		if e.flags[i].number == ix.number {
			e.flags[i].flags |= flags
			return
		}
	}
	e.flags = append(e.flags, indexFlag{ix.number, flags})
}

// appendIndexPrefix appends what all keys of an index begin with.
func appendIndexPrefix(dst []byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, spaceIndex), number)
}

// appendEntryKey appends an entry's key. The ID is turned round, bit by bit,
// where the last field is descending, so that the IDs of equal values stand in
// the direction of that field.
func (e *entry) appendKey(dst []byte, folded string) []byte {
	dst = appendIndexPrefix(dst, e.ix.number)
	dst = append(dst, e.values...)
	if e.alone {
		return dst // the ID is the value
	}
	return appendEntryID(dst, folded, e.ix.lastDescending())
}

func (ix *index) lastDescending() bool { return ix.fields[len(ix.fields)-1].descending }

func appendEntryID(dst []byte, folded string, descending bool) []byte {
	start := len(dst)
	dst = append(append(dst, folded...), 0)
	if descending {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// decodeEntryID is the inverse of appendEntryID.
func decodeEntryID(id []byte, descending bool) (string, error) {
	if descending {
		id = bytes.Clone(id)
		for i := range id {
			id[i] = ^id[i]
		}
	}
	if len(id) == 0 || id[len(id)-1] != 0 {
		return "", fmt.Errorf("index entry of %x: %w", id, ErrCorrupt)
	}
	return string(id[:len(id)-1]), nil
}

// indexFlagsKey is where the flags of an index are.
func indexFlagsKey(number uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{spaceIndexState}, number), 'f')
}

// indexCursorKey is where the build of an index is.
func indexCursorKey(number uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{spaceIndexState}, number), 'b')
}

// stageIndexes stages the entries of a document instead of those that it had.
// before is its body so far, nil if it was not there; after is nil if it is
// deleted.
func (t *transaction) stageIndexes(ci *collectionIndexes, id, folded string, before []byte, after *entries) error {
	var old *entries
	if before != nil {
		var err error
		if old, err = ci.extractEntries(before); err != nil {
			return fmt.Errorf("entries of %q: %w: %w", folded, ErrCorrupt, err)
		}
	}
	if old != nil {
		for i := range old.list {
			if e := &old.list[i]; after == nil || !after.has(e) {
				t.tx.Delete(e.appendKey(t.key[:0], folded))
			}
		}
	}
	if after == nil {
		return nil
	}
	for i := range after.list {
		e := &after.list[i]
		if old != nil && old.has(e) && e.ix.info.State == IndexReady {
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

// has tells whether e is among the entries.
func (es *entries) has(e *entry) bool {
	_, found := slices.BinarySearchFunc(es.list, e, func(a entry, b *entry) int {
		return cmp.Or(a.order-b.order, bytes.Compare(a.values, b.values))
	})
	return found
}

func (t *transaction) stageEntry(e *entry, id, folded string) error {
	t.key = e.appendKey(t.key[:0], folded)
	if !e.alone {
		t.tx.Set(t.key, nil, nil)
		return nil
	}
	value, closer, err := t.tx.Get(t.key)
	if err == nil {
		other := string(value)
		if err := closer.Close(); err != nil {
			return err
		}
		if other != folded {
			return &UniqueError{Index: e.ix.info.Name, Collection: e.ix.info.Collection, Value: e.text(), ID: id, Other: t.written(other)}
		}
	} else if err != storage.ErrNotFound {
		return err
	}
	t.tx.Set(t.key, []byte(folded), nil)
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
		t.tx.Set(indexFlagsKey(f.number), []byte{known | f.flags}, nil)
	}
	if t.flags == nil {
		t.flags = make(map[uint32]byte)
	}
	t.flags[f.number] = known | f.flags
	return nil
}

func indexFlags(r getter, number uint32) (byte, error) {
	value, closer, err := r.Get(indexFlagsKey(number))
	if err == storage.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(value) != 1 || value[0]&^flagsKnown != 0 {
		return 0, firstError(fmt.Errorf("flags of index %d: %w", number, ErrCorrupt), closer.Close())
	}
	flags := value[0]
	return flags, closer.Close()
}
