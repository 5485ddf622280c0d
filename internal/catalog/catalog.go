// Package catalog holds the indexes of a database as they are open, and computes
// the entries that a document has in them: their keys and values. It stages nothing
// and reads no documents; docs/format.md describes the bytes.
package catalog

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
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
}

// RecordEntry is the record of one index. Part of the on-disk format.
type RecordEntry struct {
	Number uint32 `json:"number"`
	index.Info
}

// Index is an index that is open. It is immutable.
type Index struct {
	Number     uint32
	Info       index.Info
	Collection string // folded
	Fields     []Field
	Filter     query.Expr // nil for none
	Matchers   *sync.Pool // of *query.Matcher, for Filter
}

// Field is one field of an index.
type Field struct {
	path       jsonpath.Path
	Text       string // canonical
	Descending bool
}

// Catalog holds all indexes at one time. It is immutable.
type Catalog struct {
	Record       Record
	All          []*Index
	ByCollection map[string]*Collection // those that writes maintain
}

// Collection holds what a write needs to know of the indexes of one collection.
type Collection struct {
	Indexes     []*Index
	extractions *sync.Pool // of *extraction, for all fields
	slots       [][]int    // by index: the reader's slots of its fields
}

// New opens the indexes of a record.
func New(record Record) (*Catalog, error) {
	c := &Catalog{Record: record, ByCollection: make(map[string]*Collection)}
	for _, e := range record.Indexes {
		ix, err := Open(e)
		if err != nil {
			return nil, err
		}
		c.All = append(c.All, ix)
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
		ci.Indexes = append(ci.Indexes, ix)
	}
	for _, ci := range c.ByCollection {
		ci.Prepare()
	}
	return c, nil
}

// Prepare makes the pool of readers that extract the values of all fields in one
// pass.
func (ci *Collection) Prepare() {
	var fields []query.Field
	known := make(map[string]int)
	for _, ix := range ci.Indexes {
		var slots []int
		for _, f := range ix.Fields {
			slot, found := known[f.Text]
			if !found {
				slot = len(fields)
				known[f.Text] = slot
				fields = append(fields, query.Field{Path: f.path})
			}
			slots = append(slots, slot)
		}
		ci.slots = append(ci.slots, slots)
	}
	reader := query.NewReader(fields)
	ci.extractions = &sync.Pool{New: func() any { return ci.newExtraction(reader.Clone(), len(fields)) }}
}

// Open parses the declaration of one index.
func Open(e RecordEntry) (*Index, error) {
	ix := &Index{Number: e.Number, Info: e.Info, Collection: format.FoldName(e.Collection)}
	for _, text := range e.Fields {
		f, err := parseIndexField(text)
		if err != nil {
			return nil, fmt.Errorf("index %q: %w", e.Name, err)
		}
		ix.Fields = append(ix.Fields, f)
	}
	if e.Where == "" {
		return ix, nil
	}
	var err error
	if ix.Filter, err = query.ParseCondition(e.Where, nil); err != nil {
		return nil, fmt.Errorf("index %q: where: %w", e.Name, err)
	}
	if usesMetadata(ix.Filter) {
		return nil, fmt.Errorf("%w: index %q: where looks at metadata, which indexes do not hold", errs.ErrIndex, e.Name)
	}
	m, err := query.Compile(ix.Filter)
	if err != nil {
		return nil, fmt.Errorf("index %q: where: %w", e.Name, err)
	}
	ix.Matchers = &sync.Pool{New: func() any { return m.Clone() }}
	return ix, nil
}

func usesMetadata(e query.Expr) bool {
	return slices.ContainsFunc(query.Fields(e), func(f query.Field) bool { return f.Meta != query.MetaNone })
}

func parseIndexField(text string) (Field, error) {
	path, descending := strings.CutPrefix(text, "-")
	p, err := jsonpath.Parse(path)
	if err != nil {
		return Field{}, err
	}
	return Field{path: p, Text: p.String(), Descending: descending}, nil
}

// Find returns the index of a collection with this name, or nil.
func (c *Catalog) Find(collection, name string) *Index {
	for _, ix := range c.All {
		if ix.Collection == format.FoldName(collection) && format.FoldName(ix.Info.Name) == format.FoldName(name) {
			return ix
		}
	}
	return nil
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

// Move changes the state of an index. It panics for a transition that the table in
// index_task.go of the root does not have.
func (r *Record) Move(number uint32, to index.State) {
	i := slices.IndexFunc(r.Indexes, func(e RecordEntry) bool { return e.Number == number })
	from := Gone
	if i >= 0 {
		from = r.Indexes[i].State
	}
	switch {
	case from == index.Building && (to == index.Ready || to == index.Dropping),
		from == index.Ready && to == index.Dropping:
		r.Indexes[i].State = to
	case from == index.Dropping && to == Gone:
		r.Indexes = slices.Delete(r.Indexes, i, i+1)
	default:
		panic(fmt.Sprintf("jay: index %d cannot go from state %q to %q", number, from, to))
	}
}

// Is reports whether field is this field of the index.
func (f Field) Is(field query.Field) bool {
	return field.Meta == query.MetaNone && field.Path.String() == f.Text
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

// AppendDecodedID appends the folded ID of the document that an entry belongs to.
func (ix *Index) AppendDecodedID(dst, key, value []byte) ([]byte, error) {
	rest := key[5:]
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
