package jay

import (
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Index declares a secondary index on one collection: see [index.Index].
type Index = index.Index

// IndexState is what an index can be used for.
type IndexState = index.State

const (
	// IndexBuilding is an index that existing documents are being entered
	// into. New ones are entered already; queries do not use it yet.
	IndexBuilding = index.Building

	// IndexReady is an index that queries use.
	IndexReady = index.Ready

	// IndexDropping is an index whose entries are being removed.
	IndexDropping = index.Dropping
)

// IndexInfo is an index as it stands: see [index.Info].
type IndexInfo = index.Info

// UniqueError says that a document has values that a unique index keeps for
// another. errors.Is(err, ErrUnique).
type UniqueError = index.UniqueError

// Bounds of indexes. Those of a document's entries are in index_extract.go.
const (
	maxIndexFields = 8
	maxIndexes     = 64 // of one collection
	maxIndexName   = 200
)

// indexRecord is the record of all indexes. Part of the on-disk format.
type indexRecord struct {
	Next    uint32       `json:"next"` // the number of the next index; never used twice
	Indexes []indexEntry `json:"indexes"`
}

// indexEntry is the record of one index. Part of the on-disk format.
type indexEntry struct {
	Number uint32 `json:"number"`
	IndexInfo
}

// index is an index that is open. It is immutable.
type openIndex struct {
	number     uint32
	info       IndexInfo
	collection string // folded
	fields     []indexField
	filter     query.Expr // nil for none
	matchers   *sync.Pool // of *query.Matcher, for filter
}

type indexField struct {
	path       jsonpath.Path
	text       string // canonical
	descending bool
}

// catalog is all indexes at one time. It is immutable.
type catalog struct {
	record       indexRecord
	all          []*openIndex
	byCollection map[string]*collectionIndexes // those that writes maintain
}

// collectionIndexes is what writes need to know of a collection's indexes.
type collectionIndexes struct {
	indexes     []*openIndex
	extractions *sync.Pool // of *extraction, for all fields
	slots       [][]int    // by index: where the values of its fields are
}

// newCatalog opens the indexes of a record.
func newCatalog(record indexRecord) (*catalog, error) {
	c := &catalog{record: record, byCollection: make(map[string]*collectionIndexes)}
	for _, e := range record.Indexes {
		ix, err := newIndex(e)
		if err != nil {
			return nil, err
		}
		c.all = append(c.all, ix)
	}
	for _, ix := range c.all {
		if ix.info.State == IndexDropping {
			continue
		}
		ci := c.byCollection[ix.collection]
		if ci == nil {
			ci = new(collectionIndexes)
			c.byCollection[ix.collection] = ci
		}
		ci.indexes = append(ci.indexes, ix)
	}
	for _, ci := range c.byCollection {
		ci.prepare()
	}
	return c, nil
}

// prepare makes the one reader of all fields.
func (ci *collectionIndexes) prepare() {
	var fields []query.Field
	known := make(map[string]int)
	for _, ix := range ci.indexes {
		var slots []int
		for _, f := range ix.fields {
			slot, found := known[f.text]
			if !found {
				slot = len(fields)
				known[f.text] = slot
				fields = append(fields, query.Field{Path: f.path})
			}
			slots = append(slots, slot)
		}
		ci.slots = append(ci.slots, slots)
	}
	reader := query.NewReader(fields)
	ci.extractions = &sync.Pool{New: func() any { return ci.newExtraction(reader.Clone(), len(fields)) }}
}

func newIndex(e indexEntry) (*openIndex, error) {
	ix := &openIndex{number: e.Number, info: e.IndexInfo, collection: format.FoldName(e.Collection)}
	for _, text := range e.Fields {
		f, err := parseIndexField(text)
		if err != nil {
			return nil, fmt.Errorf("index %q: %w", e.Name, err)
		}
		ix.fields = append(ix.fields, f)
	}
	if e.Where == "" {
		return ix, nil
	}
	var err error
	if ix.filter, err = query.ParseCondition(e.Where, nil); err != nil {
		return nil, fmt.Errorf("index %q: where: %w", e.Name, err)
	}
	if usesMetadata(ix.filter) {
		return nil, fmt.Errorf("%w: index %q: where looks at metadata, which indexes do not hold", ErrIndex, e.Name)
	}
	m, err := query.Compile(ix.filter)
	if err != nil {
		return nil, fmt.Errorf("index %q: where: %w", e.Name, err)
	}
	ix.matchers = &sync.Pool{New: func() any { return m.Clone() }}
	return ix, nil
}

func usesMetadata(e query.Expr) bool {
	return slices.ContainsFunc(query.Fields(e), func(f query.Field) bool { return f.Meta != query.MetaNone })
}

func parseIndexField(text string) (indexField, error) {
	path, descending := strings.CutPrefix(text, "-")
	p, err := jsonpath.Parse(path)
	if err != nil {
		return indexField{}, err
	}
	return indexField{path: p, text: p.String(), descending: descending}, nil
}

// canonical checks a declaration and writes it in its one form.
func canonical(ix Index, collection string) (Index, error) {
	if err := metadata.CheckCollection(collection); err != nil || collection == "" {
		return ix, errs.First(err, fmt.Errorf("%w: an index needs a collection", ErrIndex))
	}
	if len(ix.Fields) == 0 || len(ix.Fields) > maxIndexFields {
		return ix, fmt.Errorf("%w: an index has 1 to %d fields, not %d", ErrIndex, maxIndexFields, len(ix.Fields))
	}
	fields := make([]string, len(ix.Fields))
	seen := make(map[string]bool)
	for i, text := range ix.Fields {
		f, err := parseIndexField(strings.TrimSpace(text))
		if err != nil {
			return ix, fmt.Errorf("%w: %w", ErrIndex, err)
		}
		if step := f.path.At(0); step.Name == "id()" || step.Name == "@metadata" {
			return ix, fmt.Errorf("%w: %s is no field of the body, and needs no index", ErrIndex, f.text)
		}
		if seen[f.text] {
			return ix, fmt.Errorf("%w: field %s is there twice", ErrIndex, f.text)
		}
		seen[f.text] = true
		fields[i] = f.text
		if f.descending {
			fields[i] = "-" + f.text
		}
	}
	ix.Fields = fields
	ix.Where = strings.TrimSpace(ix.Where)
	if ix.Name = strings.TrimSpace(ix.Name); ix.Name == "" {
		ix.Name = strings.Join(fields, ",")
		if ix.Where != "" {
			ix.Name += " where " + ix.Where
		}
		ix.Name = cut(ix.Name, maxIndexName)
	}
	if len(ix.Name) > maxIndexName || strings.ContainsFunc(ix.Name, func(r rune) bool { return r < ' ' }) {
		return ix, fmt.Errorf("%w: the name %q has more than %d bytes or control characters", ErrIndex, errs.Shorten(ix.Name), maxIndexName)
	}
	_, err := newIndex(indexEntry{IndexInfo: IndexInfo{Index: ix, Collection: collection}})
	return ix, err
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// isSame reports whether two declarations make the same index, whatever their names.
func isSame(ix, other Index) bool {
	return slices.Equal(ix.Fields, other.Fields) && ix.Unique == other.Unique && ix.Where == other.Where
}

// find returns the index of a collection with this name, or nil.
func (c *catalog) find(collection, name string) *openIndex {
	for _, ix := range c.all {
		if ix.collection == format.FoldName(collection) && format.FoldName(ix.info.Name) == format.FoldName(name) {
			return ix
		}
	}
	return nil
}

// of returns the indexes that writes of a collection maintain, or nil.
func (c *catalog) of(foldedCollection string) *collectionIndexes {
	if len(c.byCollection) == 0 {
		return nil
	}
	return c.byCollection[foldedCollection]
}

// byNumber returns an index, or nil.
func (c *catalog) byNumber(number uint32) *openIndex {
	i := slices.IndexFunc(c.all, func(ix *openIndex) bool { return ix.number == number })
	if i < 0 {
		return nil
	}
	return c.all[i]
}

// automatic returns how many indexes queries have made.
func (c *catalog) automatic() int {
	n := 0
	for _, ix := range c.all {
		if ix.info.Automatic {
			n++
		}
	}
	return n
}

// indexing is what DB needs to change its indexes. See index_task.go.
type indexing struct {
	mu      sync.Mutex // never held while waiting
	tasks   map[taskKey]*indexTask
	stopped bool // no task may begin. Guarded by mu.

	ctx     context.Context // of all tasks; cancelled by Close
	stop    context.CancelFunc
	workers sync.WaitGroup // the tasks that run

	changing chan struct{} // of one element, which is in it while the catalog is changed

	// view is held for reading while a query takes its catalog and its
	// snapshot, so that they agree, and for writing while the catalog is
	// replaced.
	view    sync.RWMutex
	current atomic.Pointer[catalog]
}

// indexes returns the catalog as it is now.
func (db *DB) indexes() *catalog { return db.indexing.current.Load() }

// loadIndexes opens the catalog, for Open.
func (db *DB) loadIndexes() error {
	db.indexing.ctx, db.indexing.stop = context.WithCancel(context.Background())
	db.indexing.tasks = make(map[taskKey]*indexTask)
	db.indexing.changing = make(chan struct{}, 1)
	record := indexRecord{Next: 1}
	value, closer, err := db.env.Engine.Get(format.AppendKey(nil, format.SpaceMeta, format.IndexesName))
	switch {
	case err == nil:
		err = json.Unmarshal(value, &record)
		if err := errs.First(err, closer.Close()); err != nil {
			return fmt.Errorf("record of indexes: %w: %w", ErrCorrupt, err)
		}
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	c, err := newCatalog(record)
	if err != nil {
		return fmt.Errorf("record of indexes: %w: %w", ErrCorrupt, err)
	}
	db.indexing.current.Store(c)
	return nil
}

// changeIndexes commits a new list of indexes and makes it the current one. It
// is for tasks only, and no change overtakes another. edit may refuse.
func (db *DB) changeIndexes(edit func(*indexRecord) error) error {
	in := &db.indexing
	select {
	case in.changing <- struct{}{}:
		defer func() { <-in.changing }()
	case <-in.ctx.Done():
		return in.ctx.Err()
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()

	old := db.indexes()
	record := indexRecord{Next: old.record.Next, Indexes: slices.Clone(old.record.Indexes)}
	if err := edit(&record); err != nil {
		return err
	}
	c, err := newCatalog(record)
	if err != nil {
		return err
	}
	err = db.env.Engine.Update(in.ctx, true, func(tx storage.Tx) error {
		return setJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.IndexesName), record)
	})
	if err != nil {
		return err
	}
	in.view.Lock()
	defer in.view.Unlock()
	in.current.Store(c)
	return nil
}

// Indexes returns the indexes of a collection, or all of them if collection
// is "", by collection and name.
func (db *DB) Indexes(ctx context.Context, collection string) ([]IndexInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	out := []IndexInfo{}
	for _, ix := range db.indexes().all {
		if collection == "" || format.FoldName(collection) == ix.collection {
			out = append(out, ix.info)
		}
	}
	slices.SortFunc(out, func(a, b IndexInfo) int {
		return cmp.Or(strings.Compare(format.FoldName(a.Collection), format.FoldName(b.Collection)), strings.Compare(format.FoldName(a.Name), format.FoldName(b.Name)))
	})
	return out, nil
}
