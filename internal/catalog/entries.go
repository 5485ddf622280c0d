package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Flags of an index: properties that any of its entries so far has had. They are
// only ever set. Part of the on-disk format. Must not change.
const (
	FlagMultiple = 1 << 0 // a document had several entries
	FlagCut      = 1 << 1 // a value was too long for its key
	FlagsKnown   = FlagMultiple | FlagCut
)

// Entry is one entry of a document in an index: the key without the document's ID.
// Its bytes belong to an Entries.
type Entry struct {
	Index    *Index
	Values   []byte // one part for each field; of an added entry the Keeper's part of the key, and then the value
	order    int32  // of the index among those of its collection
	cut      int32  // where the value begins in Values, of an added entry
	added    bool   // Entries.Add has made it: the index is not ordered
	Unique   bool   // no other document may have these values: the index is unique and none is missing
	Covering bool   // the entry holds all values of the document at the fields, as they are written there
}

// Entries are the entries of one document, sorted by index and key.
type Entries struct {
	List  []Entry
	Arena []byte
	Flags []Flag // that the entries set
}

// Flag is the flags of one index.
type Flag struct {
	Number uint32
	Flags  byte
}

func (e *Entries) flag(ix *Index, flags byte) {
	for i := range e.Flags {
		if e.Flags[i].Number == ix.Number {
			e.Flags[i].Flags |= flags
			return
		}
	}
	e.Flags = append(e.Flags, Flag{ix.Number, flags})
}

// AppendKey appends an entry's key. The bits of the ID are inverted if the last
// field is descending, so that the IDs of equal values sort in the direction of
// that field.
func (e *Entry) AppendKey(dst []byte, folded string) []byte { return AppendEntryKey(dst, e, folded) }

// AppendEntryKey is Entry.AppendKey for an ID of either type.
func AppendEntryKey[ID string | []byte](dst []byte, e *Entry, folded ID) []byte {
	dst = format.AppendIndexPrefix(dst, e.Index.Number)
	if e.added {
		return format.AppendEntryID(append(dst, e.Values[:e.cut]...), folded, false)
	}
	dst = append(dst, e.Values...)
	if e.Unique {
		return dst // the ID is the value
	}
	return format.AppendEntryID(dst, folded, e.Index.LastDescending())
}

// NotCovering is the value of an entry that is not covering: the document must be
// read for its values at the index's fields, or for the original case of its ID. In
// the value of a unique entry it follows the ID. Part of the on-disk format. Must
// not change.
const NotCovering = 0

// AppendValue appends an entry's value: the folded ID and 00 if the key does not
// hold the ID, and then the original case of the ID, as appendCase encodes it.
func (e *Entry) AppendValue(dst []byte, id, folded string) []byte {
	return AppendEntryValue(dst, e, id, folded)
}

// AppendEntryValue is Entry.AppendValue for IDs of either type.
func AppendEntryValue[ID string | []byte](dst []byte, e *Entry, id, folded ID) []byte {
	if e.added {
		return append(dst, e.Values[e.cut:]...)
	}
	if e.Unique {
		dst = append(append(dst, folded...), 0)
	}
	start := len(dst)
	cased := e.Covering
	if cased {
		dst, cased = appendCase(dst, id, folded)
	}
	if !cased {
		return append(dst[:start], NotCovering)
	}
	if e.Unique && len(dst) == start {
		return dst[:start-1]
	}
	return dst
}

// SplitValue is the inverse of AppendValue: it returns the folded ID of a unique
// entry, and the positions of the capital letters.
func SplitValue(value []byte, unique bool) (folded, letters []byte) {
	if !unique {
		return nil, value
	}
	folded, letters, _ = bytes.Cut(value, []byte{0})
	return folded, letters
}

// appendCase appends the positions, counted from 1, of the capital letters A to Z
// that distinguish an ID from its folded form. It returns false if the ID differs
// in another way, or at a position beyond 255.
func appendCase[ID string | []byte](dst []byte, id, folded ID) ([]byte, bool) {
	if string(id) == string(folded) {
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

// AppendCased appends the ID in its original case, the inverse of appendCase. It
// returns false for positions that appendCase does not write.
func AppendCased(dst, folded, letters []byte) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, folded...)
	for _, place := range letters {
		i := start + int(place) - 1
		if i < start || i >= len(dst) || dst[i] < 'a' || dst[i] > 'z' {
			return dst[:start], false
		}
		dst[i] -= 'a' - 'A'
	}
	return dst, true
}

// appendDecodedID is the inverse of format.AppendEntryID.
func appendDecodedID(dst, id []byte, descending bool) ([]byte, error) {
	start := len(dst)
	dst = append(dst, id...)
	if descending {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	if len(id) < 2 || dst[len(dst)-1] != 0 {
		return nil, fmt.Errorf("index entry of %x: %w", id, errs.ErrCorrupt)
	}
	return dst[:len(dst)-1], nil
}

// Like returns the position of the entry with the key of e, or -1. es may be nil.
func (es *Entries) Like(e *Entry) int {
	if es == nil {
		return -1
	}
	i, found := slices.BinarySearchFunc(es.List, e, func(a Entry, b *Entry) int {
		return cmp.Or(int(a.order-b.order), a.compare(b))
	})
	if !found {
		return -1
	}
	return i
}

// compare orders the entries of a document in one index. It is 0 for those that are the same.
func (e *Entry) compare(other *Entry) int {
	return cmp.Or(bytes.Compare(e.Values, other.Values), int(e.cut-other.cut))
}

// sort sorts the entries of one index, from first on, and leaves one of equal ones. It notes that the
// document has several.
func (es *Entries) sort(ix *Index, first int) {
	mine := es.List[first:]
	slices.SortFunc(mine, func(a, b Entry) int { return a.compare(&b) })
	mine = slices.CompactFunc(mine, func(a, b Entry) bool { return a.compare(&b) == 0 })
	es.List = es.List[:first+len(mine)]
	es.flag(ix, FlagMultiple)
}

// sortAdded sorts the entries of one index that a Keeper has added, from first on. The note of an error stays behind them, and is
// none of several.
func (es *Entries) sortAdded(ix *Index, first int) {
	n := len(es.List)
	noted := ix.Errors && n > first && es.List[n-1].isNote()
	if noted {
		n--
	}
	if n-first < 2 {
		return
	}
	note := es.List[len(es.List)-1]
	es.List = es.List[:n]
	if es.sort(ix, first); noted {
		es.List = append(es.List, note)
	}
}

// Of returns the entries in one index. es may be nil.
func (es *Entries) Of(ix *Index) []Entry {
	if es == nil {
		return nil
	}
	first := slices.IndexFunc(es.List, func(e Entry) bool { return e.Index.Number == ix.Number })
	if first < 0 {
		return nil
	}
	n := slices.IndexFunc(es.List[first:], func(e Entry) bool { return e.Index.Number != ix.Number })
	if n < 0 {
		return es.List[first:]
	}
	return es.List[first : first+n]
}

// Text returns the entry's values as a JSON array.
func (e *Entry) Text() string {
	text := []byte{'['}
	rest := e.Values
	for i := range e.Index.Fields {
		if i > 0 {
			text = append(text, ',')
		}
		v, _ := query.DecodeKey(rest)
		text = append(text, v.Raw()...)
		rest, _ = query.SkipKey(rest)
	}
	return string(append(text, ']'))
}

// Gone is the state of an index that is not in the catalog.
const Gone index.State = ""

// ReadFlags returns the committed flags of an index.
func ReadFlags(r interface {
	Get(key []byte) ([]byte, io.Closer, error)
}, number uint32) (byte, error) {
	value, closer, err := r.Get(format.IndexFlagsKey(number))
	if err == storage.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(value) != 1 || value[0]&^FlagsKnown != 0 {
		return 0, errs.First(fmt.Errorf("flags of index %d: %w", number, errs.ErrCorrupt), closer.Close())
	}
	flags := value[0]
	return flags, closer.Close()
}
