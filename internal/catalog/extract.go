package catalog

import (
	"fmt"
	"math"
	"slices"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// Bounds of one document's entries. They bound the work of a write before the first
// entry is made: counting takes one pass over the body. docs/limits.md lists them.
const (
	// maxIndexEntries is how many entries a document may have in one index: one for
	// each combination of the values of its fields.
	maxIndexEntries = 10_000

	// EntryBytes is what an entry counts beside the bytes of its values: about the
	// memory it takes on its way to the disk.
	EntryBytes = 64

	// maxFilterValues is how many values of a document each field of an index's
	// condition may reach.
	maxFilterValues = 250_000

	// maxStoredEntries is how many entries of a stored document in one index are
	// plausible: no version of Jay has written as many. More mean corruption.
	maxStoredEntries = 1 << 24
)

// MaxEntryBytes is how many bytes of entries a document may have in all indexes of
// its collection: their values, and EntryBytes for each. That is enough for 10,000
// lines under eight indexes or more, and for a commit that blocks others for some
// hundred milliseconds at most. Without the bound a document of 14 KB could ask for
// gigabytes, as its arrays multiply. A variable for tests.
var MaxEntryBytes = 8 << 20

// StoredChunk is about how many bytes of a stored document's entries are in memory
// at once: all that it can have, unless it was written before there was
// MaxEntryBytes. A variable for tests.
var StoredChunk = MaxEntryBytes

// extraction finds the entries of documents, one document after another, in the
// indexes of one collection. It is not safe for concurrent use.
type extraction struct {
	ci     *Collection
	reader *query.Reader
	slots  []slotValues // by the reader's slot
	counts []int        // by index: how many entries there may be, 0 for none
	doc    Document     // the current one
}

// slotValues are the values of one field, and their encoded key parts once these
// are needed more than once.
type slotValues struct {
	known  bool // the values are those of the current document
	values []query.Value
	bound  int // upper bound of the bytes of all parts together
	arena  []byte
	parts  []keyPart // empty until they are encoded
}

// keyPart is an ascending part of a key, in the arena of its slot.
type keyPart struct {
	start, end int
	truncated  bool
}

func (ci *Collection) newExtraction(reader *query.Reader, fields int) *extraction {
	x := &extraction{ci: ci, reader: reader, slots: make([]slotValues, fields), counts: make([]int, len(ci.Indexes))}
	x.doc.x = x
	return x
}

// purpose says what entries are extracted for, and so which bounds hold.
type purpose uint8

const (
	toWrite  purpose = iota // all bounds hold, for all indexes
	toBuild                 // they hold for the indexes being built, together with the others
	toRemove                // none holds: the document is stored already
)

// begin makes body the current document and counts its entries in every index.
// wanted says which indexes are to be built; nil for none.
func (x *extraction) begin(body []byte, p purpose, wanted []bool) error {
	x.reset(body, maxIndexEntries)
	for i, ix := range x.ci.Indexes {
		accepted, err := ix.accepts(body, p)
		if err != nil && (p == toWrite || p == toBuild && wanted[i]) {
			return err
		}
		if x.counts[i] = 0; !accepted {
			continue
		}
		count := ix.Keeper.Count(x.of(i))
		if count <= maxIndexEntries {
			x.counts[i] = count
			continue
		}
		switch {
		case p == toWrite, p == toBuild && wanted[i]:
			return &metadata.Error{Rule: fmt.Sprintf("at most %d entries in index %q", maxIndexEntries, ix.Info.Name), Limit: maxIndexEntries, Actual: count}
		case p == toRemove && ix.Info.State == index.Ready:
			// An older version has written these entries. Start again without the
			// bound.
			return x.beginUnbounded(body)
		}
		// The build of this index fails at this document, and has written none of
		// its entries.
	}
	if p == toRemove {
		return nil
	}
	return x.checkBytes()
}

// beginUnbounded is begin for a stored document with more entries than a write
// would accept today.
func (x *extraction) beginUnbounded(body []byte) error {
	x.reset(body, 0)
	for i, ix := range x.ci.Indexes {
		x.counts[i] = 0
		accepted, err := ix.accepts(body, toRemove)
		if err != nil {
			return err
		}
		count := ix.Keeper.Count(x.of(i))
		switch {
		case !accepted || count > maxIndexEntries && ix.Info.State != index.Ready:
		case count > maxStoredEntries:
			return fmt.Errorf("%w: it has %d entries in index %q", errs.ErrCorrupt, count, ix.Info.Name)
		default:
			x.counts[i] = count
		}
	}
	return nil
}

// reset makes body the current document. At most limit values of each field are
// kept, or one more to show that there are more; all if limit is 0.
func (x *extraction) reset(body []byte, limit int) {
	x.reader.Reset(query.Doc{Body: body})
	x.reader.Limit(limit)
	x.doc.Body, x.doc.chunk, x.doc.flush = body, math.MaxInt, nil
	for i := range x.slots {
		s := &x.slots[i]
		s.known, s.values, s.parts = false, nil, s.parts[:0]
		if cap(s.arena) > 1<<16 || cap(s.parts) > 1<<12 {
			s.arena, s.parts = nil, nil
		}
	}
}

// of returns the current document, for the Keeper of an index.
func (x *extraction) of(i int) *Document {
	x.doc.index = i
	return &x.doc
}

// entries adds the entries of the current document in an index to out.
func (x *extraction) entries(i int, out *Entries) error {
	if x.counts[i] == 0 {
		return nil
	}
	ix, first := x.ci.Indexes[i], len(out.List)
	err := ix.Keeper.Extract(x.of(i), out)
	if ix.Ordered {
		return err
	}
	if err != nil {
		out.List = out.List[:first]
		return err
	}
	out.sortAdded(ix, first)
	return x.doc.flushFull(out)
}

// missing is the value of a field that reaches nothing.
var missing = []query.Value{{}}

// slot returns the values of a field, reading them on the first call for a
// document.
func (x *extraction) slot(i int) *slotValues {
	s := &x.slots[i]
	if s.known {
		return s
	}
	s.known, s.bound = true, 0
	if s.values = x.reader.Values(i); len(s.values) == 0 {
		s.values = missing
	}
	for _, v := range s.values {
		s.bound += v.KeyBound()
	}
	return s
}

// combinations returns how many entries the document has in an index.
func (x *extraction) combinations(i int) int {
	count := 1
	for _, slot := range x.ci.slots[i] {
		n := max(1, x.reader.Reached(slot))
		if n > math.MaxInt32/count {
			return math.MaxInt32
		}
		count *= n
	}
	return count
}

// checkBytes refuses a document whose entries have too many bytes. It computes the
// total without making an entry. A first estimate from upper bounds accepts most documents
// without encoding a value.
func (x *extraction) checkBytes() error {
	total := 0
	for _, p := range [...]Precision{Roughly, Closely, Exactly} {
		if total = x.bytes(p); total <= MaxEntryBytes {
			return nil
		}
	}
	place, most := 0, 0
	for i := range x.counts {
		if n := x.indexBytes(i, Exactly); n > most {
			most, place = n, i
		}
	}
	return &metadata.Error{
		Rule:   fmt.Sprintf("at most %d bytes of entries in the indexes of its collection", MaxEntryBytes),
		Detail: fmt.Sprintf("%d of them in index %q: keep fewer or shorter values in its fields, or drop it", most, x.ci.Indexes[place].Info.Name),
		Limit:  MaxEntryBytes,
		Actual: total,
	}
}

// bytes returns how many bytes all entries have.
func (x *extraction) bytes(p Precision) int {
	total := 0
	for i := range x.counts {
		total += x.indexBytes(i, p)
	}
	return total
}

func (x *extraction) indexBytes(i int, p Precision) int {
	if x.counts[i] == 0 {
		return 0
	}
	return x.ci.Indexes[i].Keeper.Bytes(x.of(i), x.counts[i], p)
}

// encode encodes the key parts of all values, once for all indexes: a long value is
// hashed for its part, which must not be repeated for each entry.
func (s *slotValues) encode() {
	if len(s.parts) > 0 {
		return
	}
	s.arena = s.arena[:0]
	for _, v := range s.values {
		start := len(s.arena)
		var truncated bool
		s.arena, truncated = query.AppendKey(s.arena, v, false)
		s.parts = append(s.parts, keyPart{start, len(s.arena), truncated})
	}
}

// manyParts is the number of bytes of values from which each value is encoded once
// for all entries, and not for each.
const manyParts = 1 << 10

// appendPart appends the key part of value i to dst.
func (s *slotValues) appendPart(dst []byte, i int, descending bool) (key []byte, truncated bool) {
	if len(s.parts) == 0 {
		if s.bound < manyParts {
			return query.AppendKey(dst, s.values[i], descending)
		}
		s.encode()
	}
	part := s.parts[i]
	start := len(dst)
	dst = append(dst, s.arena[part.start:part.end]...)
	if descending {
		for j := start; j < len(dst); j++ {
			dst[j] = ^dst[j]
		}
	}
	return dst, part.truncated
}

// entryWalk iterates over the combinations of values that are the entries in one
// index.
type entryWalk struct {
	x      *extraction
	order  int // of the index
	left   int
	single bool // no field's value came out of an array
	pick   [MaxFields]int
}

func (x *extraction) entryWalk(i int) entryWalk {
	c := entryWalk{x: x, order: i, left: x.counts[i], single: true}
	for _, slot := range x.ci.slots[i] {
		c.single = c.single && x.reader.Single(slot)
	}
	return c
}

// take appends entries until none is left or the arena has bytesWanted bytes.
// Entries of several combinations are sorted, and equal ones appended once.
func (e *Entries) take(c *entryWalk, bytesWanted int) {
	ix := c.x.ci.Indexes[c.order]
	slots := c.x.ci.slots[c.order]
	several := c.left > 1
	first := len(e.List)
	for ; c.left > 0 && len(e.Arena) < bytesWanted; c.left-- {
		e.takeOne(ix, c, slots)
		if !several {
			continue
		}
		for j := len(slots) - 1; j >= 0; j-- {
			if c.pick[j]++; c.pick[j] < len(c.x.slot(slots[j]).values) {
				break
			}
			c.pick[j] = 0
		}
	}
	if !several {
		return
	}
	e.sort(ix, first)
}

func (e *Entries) takeOne(ix *Index, c *entryWalk, slots []int) {
	start := len(e.Arena)
	unique, covering := ix.Info.Unique, c.single
	for j := range ix.Fields {
		v, truncated := e.appendPart(c, slots[j], c.pick[j], ix.Fields[j].Descending)
		if v.Kind() <= query.KindNull {
			unique = false
		}
		if truncated {
			e.flag(ix, FlagCut)
		}
		covering = covering && !truncated && query.Recoverable(v)
	}
	e.List = append(e.List, Entry{Index: ix, order: int32(c.order), Values: e.Arena[start:len(e.Arena):len(e.Arena)], Unique: unique, Covering: covering})
}

// appendPart appends the key part of one value to the arena, and returns the value.
func (e *Entries) appendPart(c *entryWalk, slot, pick int, descending bool) (v query.Value, truncated bool) {
	if values := c.x.reader.Values(slot); len(values) == 0 {
		e.Arena, truncated = query.AppendKey(e.Arena, v, descending)
		return v, truncated
	} else if v = values[pick]; len(values) == 1 && v.KeyBound() < manyParts {
		e.Arena, truncated = query.AppendKey(e.Arena, v, descending)
		return v, truncated
	}
	e.Arena, truncated = c.x.slot(slot).appendPart(e.Arena, pick, descending)
	return v, truncated
}

// newEntries returns Entries with capacity for a document with about one entry in
// each index.
func newEntries(indexes int) *Entries {
	return &Entries{List: make([]Entry, 0, 2*indexes), Arena: make([]byte, 0, 64*indexes)}
}

// Extract returns the entries of a document's body in all indexes, or the
// *metadata.Error of an index whose bounds it exceeds. They lie in slab, which may be nil.
func (ci *Collection) Extract(body []byte, slab *Slab) (*Entries, error) {
	if ci.Unknown != nil {
		return nil, ci.Unknown
	}
	x := ci.extraction()
	defer ci.release(x)
	if err := x.begin(body, toWrite, nil); err != nil {
		return nil, err
	}
	out := slab.begin(len(ci.Indexes))
	for i := range ci.Indexes {
		if err := x.entries(i, out); err != nil {
			return nil, err
		}
	}
	slab.end(out)
	return out, nil
}

// ExtractForBuild returns the entries of a stored document in the index being
// built, which has this number. Together with those in the other indexes they must
// be within the bounds: otherwise the document could not be written again.
func (ci *Collection) ExtractForBuild(body []byte, number uint32) (*Entries, error) {
	b := ci.NewBuilder(number)
	defer ci.release(b.x)
	out := newEntries(1)
	return out, b.Extract(out, body)
}

// Builder makes the entries that stored documents have in indexes that are being built. It
// is not safe for concurrent use, and keeps the last document in memory.
type Builder struct {
	ci     *Collection
	x      *extraction
	wanted []bool // by index: it is being built
}

// NewBuilder returns a Builder for the indexes with these numbers, which ci must have.
func (ci *Collection) NewBuilder(numbers ...uint32) *Builder {
	b := &Builder{ci, ci.extraction(), make([]bool, len(ci.Indexes))}
	for i, ix := range ci.Indexes {
		b.wanted[i] = slices.Contains(numbers, ix.Number)
	}
	return b
}

// Extract replaces the entries of out by those of a document in the indexes being built. The
// bounds are those of ExtractForBuild.
func (b *Builder) Extract(out *Entries, body []byte) error {
	out.List, out.Arena, out.Flags = out.List[:0], out.Arena[:0], out.Flags[:0]
	if err := b.x.begin(body, toBuild, b.wanted); err != nil {
		return err
	}
	for i, wanted := range b.wanted {
		if !wanted {
			continue
		}
		if err := b.x.entries(i, out); err != nil {
			return err
		}
	}
	return nil
}

// EachStored calls fn with the entries of a stored document, in chunks, in all
// indexes that may have them. The list is sorted if it comes in one chunk;
// otherwise an entry may come twice. A document with too many entries for an index
// that is being built has none in it: the build fails at the document, unless the
// document is changed before.
func (ci *Collection) EachStored(body []byte, fn func(*Entries) error) error {
	x := ci.extraction()
	defer ci.release(x)
	if err := x.begin(body, toRemove, nil); err != nil {
		return err
	}
	out := newEntries(len(ci.Indexes))
	x.doc.chunk, x.doc.flush = StoredChunk, fn
	for i, ix := range ci.Indexes {
		err := x.entries(i, out)
		if isRefusal(err) && ix.Info.State != index.Ready {
			continue // as one with too many entries
		}
		if err != nil {
			return err
		}
	}
	return fn(out)
}

// isRefusal reports whether err says that a document cannot be in an index.
func isRefusal(err error) bool {
	switch err.(type) {
	case *metadata.Error, *index.ComputeError, *index.ValueError:
		return true
	}
	return false
}

func (ci *Collection) extraction() *extraction { return ci.extractions.Get().(*extraction) }

// release returns an extraction to the pool, without the document.
func (ci *Collection) release(x *extraction) {
	x.reset(nil, 0)
	ci.extractions.Put(x)
}

// accepts reports whether a document belongs in a partial index.
func (ix *Index) accepts(body []byte, p purpose) (bool, error) {
	if ix.Filter == nil {
		return true, nil
	}
	m := ix.Matchers.Get().(*query.Matcher)
	defer ix.Matchers.Put(m)
	limit := maxFilterValues
	if p == toRemove {
		limit = 0
	}
	m.Limit(limit)
	accepted := m.Match(query.Doc{Body: body})
	if n := m.Reached(); limit > 0 && n > limit {
		return false, &metadata.Error{Rule: fmt.Sprintf("at most %d values for a field of the condition of index %q", maxFilterValues, ix.Info.Name), Limit: maxFilterValues, Actual: n}
	}
	return accepted, nil
}
