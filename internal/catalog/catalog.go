// Package catalog holds the indexes of a database as they are open, and computes
// the entries that a document has in them: their keys and values. It stages nothing
// and reads no documents; docs/format.md describes the bytes.
package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Bounds of indexes. Those of a document's entries are in extract.go.
const (
	MaxFields        = 8
	MaxPerCollection = 64 // of one collection
	MaxName          = 200
)

// Record is the record of all indexes. Part of the on-disk format.
type Record struct {
	Next    uint32        `json:"next"` // the number of the next index; never used twice
	Indexes []RecordEntry `json:"indexes"`

	Computed []ComputedEntry `json:"computed,omitempty"`
}

// Clone returns a copy that can be changed.
func (r *Record) Clone() Record {
	return Record{Next: r.Next, Indexes: slices.Clone(r.Indexes), Computed: slices.Clone(r.Computed)}
}

// Edit changes the record by a function, and makes the parts of computed indexes follow.
func (r *Record) Edit(edit func(*Record) error) error {
	if err := edit(r); err != nil {
		return err
	}
	return r.settle()
}

// RecordEntry is the record of one index. Part of the on-disk format.
type RecordEntry struct {
	Number   uint32 `json:"number"`
	Replaces uint32 `json:"replaces,omitempty"` // the number of the index of the same name that this one replaces once it is built
	Notes    bool   `json:"notes,omitempty"`    // of another kind than the ordered one: Index.Errors, if it computes
	Part     bool   `json:"part,omitempty"`     // of a computed index
	index.Info
}

// Index is an index that is open. It is immutable, but for Figures and what At keeps.
type Index struct {
	Number     uint32
	Replaces   uint32 // the number of the index that this one replaces, or 0
	Part       bool   // of a computed index
	Info       index.Info
	Unknown    error  // a *index.KindError if no kind of this version has its name, an *index.OptionError if the kind has no such option, or an *index.FunctionError if the program lacks its function; then there is nothing below Collection
	Collection string // folded
	Fields     []Field
	Filter     query.Expr      // nil for none
	Matchers   *sync.Pool      // of *query.Matcher, for Filter
	Keeper     Keeper          // of its kind
	Decoder    Decoder         // the Keeper, or nil
	Stager     Stager          // likewise; one of the two is there
	Settler    Settler         // the Stager, or nil
	Ordered    bool            // it is of the ordered kind
	Errors     bool            // documents for which an expression fails are noted: see errors.go
	Strict     bool            // they are refused instead
	Loads      *loads.Spec     // what it reads of other documents; nil for nothing: see loading.go
	options    []Option        // of its kind
	feature    storage.Feature // that its kind needs

	// Figures are what plans have found out about the entries, nil for nothing yet.
	Figures atomic.Pointer[Figures]

	// Throttled is true while the work of the Settler has become so much that writers must wait: see Pressure.
	Throttled atomic.Bool

	moment atomic.Pointer[Moment] // the last one, nil for none yet: see At
}

// Field is one field of an index.
type Field struct {
	path       jsonpath.Path
	Text       string // canonical, without the sign of descending
	Date       query.Date
	UTC        bool
	Descending bool
	own        *query.Field // of an expression, a part of a date, or a kind that parses its fields; then path is that of own
	byKeeper   bool         // the Keeper reads it
	whole      bool         // an array at the end is a value: see Kind.Whole
}

// Query returns the field as queries have it.
func (f Field) Query() query.Field {
	if f.own != nil {
		return *f.own
	}
	return query.Field{Path: f.path, Date: f.Date, UTC: f.UTC}
}

// Catalog holds all indexes at one time. It is immutable.
type Catalog struct {
	Record       Record
	All          []*Index
	ByCollection map[string]*Collection // those that writes maintain
	AllOrdered   bool                   // they are, in all collections
	Features     []storage.Feature      // that the indexes need
	Computed     []*Computed            // in the order of the record
	Loading      []*Collection          // of one index each: those that writes to any collection maintain, as they load documents
}

// Collection holds what a write needs to know of the indexes of one collection.
type Collection struct {
	Indexes     []*Index
	Unknown     error         // why nothing may be written: that of one index, or nil
	Stagers     []*Index      // those of Indexes that have one
	Loading     []*Collection // of one index each: those that load documents, which are not among Indexes
	Narrow      bool          // all Indexes are: see NarrowBytes
	extractions *sync.Pool    // of *extraction, for all fields
	slots       [][]int       // by index: the reader's slots of its fields
}

// IsBuilt reports whether no index of the collection is being built. A nil Collection has none.
func (c *Collection) IsBuilt() bool {
	if c == nil {
		return true
	}
	for _, loading := range c.Loading {
		if !loading.IsBuilt() {
			return false
		}
	}
	return !slices.ContainsFunc(c.Indexes, func(ix *Index) bool { return ix.Info.State == index.Building })
}

// New opens the indexes of a record.
func New(record Record) (*Catalog, error) {
	c := &Catalog{Record: record, ByCollection: make(map[string]*Collection), AllOrdered: true}
	for _, e := range record.Indexes {
		ix, err := Open(e)
		if err != nil {
			return nil, err
		}
		c.All = append(c.All, ix)
		if ix.isUTC() {
			c.require(storage.FeatureUTC)
		}
		c.require(ix.feature)
		if ix.computes() || ix.Errors {
			c.require(storage.FeatureExpressions)
		}
		if ix.Loads != nil {
			c.require(storage.FeatureLoads)
		}
	}
	if c.Computed = record.openAll(); len(c.Computed) > 0 {
		c.require(storage.FeatureComputed)
	}
	for _, ix := range c.All {
		if ix.Info.State == index.Dropping {
			continue
		}
		ci := c.ByCollection[ix.Collection]
		if ci == nil {
			ci = new(Collection)
			c.ByCollection[ix.Collection] = ci
		}
		if ix.Unknown != nil {
			ci.Unknown = ix.Unknown
			continue
		}
		c.AllOrdered = c.AllOrdered && ix.Ordered
		ci.Add(ix)
	}
	for _, ci := range c.ByCollection {
		ci.Prepare()
		c.Loading = append(c.Loading, ci.Loading...)
	}
	return c, nil
}

// require adds a feature to those that are needed, if it is one.
func (c *Catalog) require(f storage.Feature) {
	if f.Format != 0 && !slices.Contains(c.Features, f) {
		c.Features = append(c.Features, f)
	}
}

// isUTC reports whether the index takes text without an offset as an instant in UTC.
func (ix *Index) isUTC() bool {
	return slices.ContainsFunc(ix.Fields, func(f Field) bool { return slices.ContainsFunc(f.Query().Operands(), isUTC) }) ||
		slices.ContainsFunc(query.Fields(ix.Filter), func(f query.Field) bool { return slices.ContainsFunc(f.Operands(), isUTC) })
}

// Only returns a Collection of these indexes, which are of one collection, all among Indexes.
func Only(indexes ...*Index) *Collection {
	ci := &Collection{Indexes: indexes}
	ci.Prepare()
	return ci
}

// Prepare makes the pool of readers that extract the values of all fields in one
// pass.
func (ci *Collection) Prepare() {
	var fields []query.Field
	known := make(map[slotKey]int)
	ci.Narrow = true
	for _, ix := range ci.Indexes {
		narrow, is := ix.Keeper.(Narrow)
		ci.Narrow = ci.Narrow && (ix.Ordered || is && narrow.IsNarrow())
		if ix.Stager != nil {
			ci.Stagers = append(ci.Stagers, ix)
		}
		var slots []int
		for _, f := range ix.Fields {
			if f.byKeeper {
				continue
			}
			slot, found := known[slotKey{f.Text, f.whole}]
			if !found {
				slot = len(fields)
				known[slotKey{f.Text, f.whole}] = slot
				fields = append(fields, f.Query())
			}
			slots = append(slots, slot)
		}
		ci.slots = append(ci.slots, slots)
	}
	reader := query.NewReader(fields)
	reader.Apart()
	ci.extractions = &sync.Pool{New: func() any { return ci.newExtraction(reader.Clone(), len(fields)) }}
}

// slotKey is what fields have in common that are read once.
type slotKey struct {
	text  string
	whole bool
}

// Open parses the declaration of one index. One of an unknown kind, or with an unknown option, is opened,
// too, so that the database can be read: see Index.Unknown.
func Open(e RecordEntry) (*Index, error) {
	ix := &Index{Number: e.Number, Replaces: e.Replaces, Part: e.Part, Info: e.Info, Collection: format.FoldName(e.Collection)}
	kind, known := kindOf(e.Kind)
	if !known {
		ix.Unknown = &index.KindError{Index: e.Name, Collection: e.Collection, Kind: e.Kind}
		return ix, nil
	}
	if _, ix.Unknown = kind.canonical(e.Index, e.Collection); ix.Unknown != nil {
		return ix, nil
	}
	ix.options, ix.feature, ix.Errors = kind.Options, kind.Feature, e.Notes
	if ix.Ordered = e.Kind == ""; !ix.Ordered && e.Unique {
		return nil, fmt.Errorf("%w: index %q: only an ordered index can be unique", errs.ErrIndex, e.Name)
	}
	for _, text := range e.Fields {
		f, err := kind.parseField(text)
		if err != nil {
			return nil, fmt.Errorf("index %q: %w", e.Name, err)
		}
		ix.Fields = append(ix.Fields, f)
	}
	var err error
	if ix.Keeper, err = kind.Open(ix); err != nil {
		if missing := (*index.FunctionError)(nil); errors.As(err, &missing) {
			return &Index{Number: ix.Number, Replaces: ix.Replaces, Part: ix.Part, Info: ix.Info, Collection: ix.Collection, Unknown: missing}, nil
		}
		return nil, fmt.Errorf("index %q: %w", e.Name, err)
	}
	if _, computes := ix.Keeper.(Computer); !computes {
		ix.Errors = false
	}
	decodes, stages := false, false
	ix.Decoder, decodes = ix.Keeper.(Decoder)
	if ix.Stager, stages = ix.Keeper.(Stager); decodes == stages {
		panic(fmt.Sprintf("jay: a kind of indexes is a Decoder or a Stager, and %q is both or neither", e.Kind))
	}
	ix.Settler, _ = ix.Keeper.(Settler)
	if e.Where == "" {
		return ix, ix.setLoads()
	}
	if ix.Filter, err = query.ParseCondition(e.Where, nil); err != nil {
		return nil, fmt.Errorf("index %q: where: %w", e.Name, err)
	}
	if why := filterNotKept(ix.Filter); why != "" {
		return nil, fmt.Errorf("%w: index %q: where: %s", errs.ErrIndex, e.Name, why)
	}
	m, err := query.Compile(ix.Filter)
	if err != nil {
		return nil, fmt.Errorf("index %q: where: %w", e.Name, err)
	}
	ix.Matchers = &sync.Pool{New: func() any { return m.Clone() }}
	return ix, ix.setLoads()
}

// parseField parses a field of a declaration.
func (k Kind) parseField(text string) (Field, error) {
	if k.Field == nil {
		f, err := parseIndexField(text)
		if err == nil && k.Whole {
			whole := f.Query().Whole()
			f.own, f.whole = &whole, true
		}
		return f, err
	}
	f, err := k.Field(text)
	if err != nil {
		return Field{}, err
	}
	return Field{path: f.Path, Text: f.String(), Date: f.Date, UTC: f.UTC, own: &f, byKeeper: true}, nil
}

// What is behind the path of a field that holds instants; with AsUTC a text without an offset is one,
// in UTC. Part of the on-disk format: the record of an index has its fields as text. Must not change.
const (
	AsDate = " as date"
	AsUTC  = " as utc"
)

// CutDate cuts "as date" or "as utc" off the text of a field, in any case and after any number of
// spaces, and returns which of AsDate and AsUTC it was, or "". No path ends in that way: a name with
// spaces stands in quotes.
func CutDate(text string) (path, as string) {
	for _, as := range []string{AsDate, AsUTC} {
		rest, found := cutWord(strings.TrimRight(text, " "), strings.TrimPrefix(as, " as "))
		if found {
			rest, found = cutWord(rest, "as")
		}
		if found {
			return rest, as
		}
	}
	return text, ""
}

// cutWord cuts a word and the spaces in front of it off the end of a text.
func cutWord(text, word string) (rest string, found bool) {
	at := len(text) - len(word)
	if at < 1 || !strings.EqualFold(text[at:], word) || text[at-1] != ' ' {
		return text, false
	}
	return strings.TrimRight(text[:at], " "), true
}

// FieldText returns the text of an ascending field of an index that holds what f reaches.
func FieldText(f query.Field) string {
	switch text := f.Path.String(); {
	case f.UTC:
		return text + AsUTC
	case f.Date != query.DateNone:
		return text + AsDate
	default:
		return text
	}
}

// Find returns the index of a collection with this name, or nil. While an index is
// replaced there are two of one name: the old one until the new one is ready, and then
// the new one.
func (c *Catalog) Find(collection, name string) (found *Index) {
	for _, ix := range c.Named(collection, name) {
		if ix.Replaces != 0 {
			continue
		}
		if found == nil || found.Info.State == index.Dropping {
			found = ix
		}
	}
	return found
}

// Named returns all indexes of a collection with this name, those that replace others
// and those that are being dropped among them.
func (c *Catalog) Named(collection, name string) []*Index {
	var named []*Index
	for _, ix := range c.All {
		if ix.Collection == format.FoldName(collection) && format.FoldName(ix.Info.Name) == format.FoldName(name) {
			named = append(named, ix)
		}
	}
	return named
}

// Of returns the indexes that writes to a collection maintain, or nil.
func (c *Catalog) Of(foldedCollection string) *Collection {
	if len(c.ByCollection) == 0 {
		return nil
	}
	return c.ByCollection[foldedCollection]
}

// ByNumber returns the index with this number, or nil.
func (c *Catalog) ByNumber(number uint32) *Index {
	i := slices.IndexFunc(c.All, func(ix *Index) bool { return ix.Number == number })
	if i < 0 {
		return nil
	}
	return c.All[i]
}

// Automatic returns the number of automatic indexes.
func (c *Catalog) Automatic() int {
	n := 0
	for _, ix := range c.All {
		if ix.Info.Automatic {
			n++
		}
	}
	return n
}

// LastDescending reports whether the last field of the index is descending.
func (ix *Index) LastDescending() bool { return ix.Fields[len(ix.Fields)-1].Descending }

// Count returns how many indexes of a collection writes maintain, and how many of
// all indexes are automatic.
func (r *Record) Count(foldedCollection string) (kept, automatic int) {
	for _, e := range r.Indexes {
		if e.Automatic {
			automatic++
		}
		if e.State != index.Dropping && format.FoldName(e.Collection) == foldedCollection {
			kept++
		}
	}
	return kept, automatic
}

// Entry returns the record of an index, or nil.
func (r *Record) Entry(number uint32) *RecordEntry {
	i := slices.IndexFunc(r.Indexes, func(e RecordEntry) bool { return e.Number == number })
	if i < 0 {
		return nil
	}
	return &r.Indexes[i]
}

// Move changes the state of an index. It panics for a transition that the table in
// internal/indexer/task.go does not have.
func (r *Record) Move(number uint32, to index.State) {
	e, from := r.Entry(number), Gone
	if e != nil {
		from = e.State
	}
	switch {
	case from == index.Building && (to == index.Ready || to == index.Dropping),
		from == index.Ready && to == index.Dropping:
		if to == index.Dropping && e.Part {
			r.withdraw(e)
		}
		e.State = to
		if to == index.Dropping {
			r.release(number)
		}
	case from == index.Dropping && to == Gone:
		r.Indexes = slices.DeleteFunc(r.Indexes, func(e RecordEntry) bool { return e.Number == number })
	default:
		panic(fmt.Sprintf("jay: index %d cannot go from state %q to %q", number, from, to))
	}
}

// release makes the indexes that are to replace an index, which is dropped, stand for themselves: the name is theirs.
func (r *Record) release(number uint32) {
	for i := range r.Indexes {
		if e := &r.Indexes[i]; e.Replaces == number {
			e.Replaces = 0
		}
	}
}

// Replace makes an index that replaces another one ready, and begins to drop the other
// one. It panics if the index is not being built, or replaces none.
func (r *Record) Replace(number uint32) {
	e := r.Entry(number)
	if e == nil || e.Replaces == 0 {
		panic(fmt.Sprintf("jay: index %d replaces none", number))
	}
	old := e.Replaces
	r.Move(number, index.Ready)
	e.Replaces = 0
	if slices.ContainsFunc(r.Indexes, func(e RecordEntry) bool { return e.Number == old && e.State != index.Dropping }) {
		r.Move(old, index.Dropping)
	}
}

// Is reports whether field is this field of the index.
func (f Field) Is(field query.Field) bool {
	if f.own != nil {
		return isSame(f.own, &field)
	}
	return f.Date == field.Date && f.UTC == field.UTC && f.HasPath(field)
}

// HasBehind reports whether field i of an ordered index is followed by this field, in the same direction: the entries with the same value
// of the one are in the order of the other.
func (ix *Index) HasBehind(i int, field query.Field) bool {
	return i+1 < len(ix.Fields) && ix.Fields[i+1].Is(field) && ix.Fields[i+1].Descending == ix.Fields[i].Descending
}

// HasPath reports whether field is at the path of this field of the index, be they read
// as dates or not.
func (f Field) HasPath(field query.Field) bool {
	return field.Meta == query.MetaNone && !f.isComputed() && field.Path.String() == f.path.String()
}

// IsUnique reports whether only one document may have these values: the index is
// unique and no value is missing.
func (ix *Index) IsUnique(values []byte) bool {
	if !ix.Info.Unique {
		return false
	}
	for range ix.Fields {
		v, _ := query.DecodeKey(values)
		if v.Kind() <= query.KindNull {
			return false
		}
		values, _ = query.SkipKey(values)
	}
	return true
}

// AppendDecodedID appends the folded ID of the document that an entry of an ordered index belongs to.
func (ix *Index) AppendDecodedID(dst, key, value []byte) ([]byte, error) {
	rest := key[5:]
	if ix.Errors && len(rest) > 0 && rest[0] == format.SpaceErrors {
		return appendErrorID(dst, key)
	}
	for range ix.Fields {
		var ok bool
		if rest, ok = query.SkipKey(rest); !ok {
			return nil, fmt.Errorf("entry %x of index %q: %w", key, ix.Info.Name, errs.ErrCorrupt)
		}
	}
	if len(rest) == 0 {
		folded, _ := SplitValue(value, true)
		if len(folded) == 0 {
			return nil, fmt.Errorf("entry %x of index %q: %w", key, ix.Info.Name, errs.ErrCorrupt)
		}
		return append(dst, folded...), nil
	}
	return appendDecodedID(dst, rest, ix.LastDescending())
}

// Current is the catalog of an open database, which changes as indexes come and go.
type Current struct {
	catalog atomic.Pointer[Catalog]

	// view is held for reading while a query takes its catalog and its snapshot, so
	// that they agree, and for writing while the catalog is replaced.
	view sync.RWMutex
}

// Load returns the catalog as it is now.
func (c *Current) Load() *Catalog { return c.catalog.Load() }

// Replace makes next, which is committed, the current catalog.
func (c *Current) Replace(next *Catalog) {
	c.view.Lock()
	defer c.view.Unlock()
	c.catalog.Store(next)
}

// View returns the catalog and a snapshot from take that agree: the indexes are in the
// snapshot as the catalog has them.
func (c *Current) View(take func() storage.Snapshot) (*Catalog, storage.Snapshot) {
	c.view.RLock()
	defer c.view.RUnlock()
	return c.Load(), take()
}
