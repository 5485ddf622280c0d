package jay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// run is a query under way, on one snapshot.
type run struct {
	db   *DB
	tx   *Tx // or nil
	q    *query.Query
	plan *plan.Plan

	mu       sync.Mutex // guards what follows, against DB.Close and the end of the transaction
	closed   error
	snapshot storage.Reader
	owned    storage.Snapshot // to be closed with the run, or nil
	source   source
	matcher  *query.Matcher // of the plan's residual; nil for none
	covers   []*plan.Cover  // parallel to the plan's paths; nil if documents must be read
	meta     docMeta
	options  runOptions
	key      []byte // scratch
	sorter   *query.Sorter

	pace query.Pace // of all that works on documents; ends with the context, and with the run

	answers   answers // what next returns; nil before the first call
	projector *query.Projector
	distinct  *query.Distinct
	included  map[string]bool // included documents so far, by folded ID
	skip      int
	left      int // answers to come; below 0 for no limit

	hidden  map[string]bool  // documents that the transaction has written, by folded ID
	own     []*docs.Document // those of them that can be answers
	stats   queryStats
	started time.Time
}

// runOptions are what is asked of a run beside the query.
type runOptions struct {
	noScan   bool    // fail rather than look at every document
	paging   bool    // every row needs its cursor
	counting bool    // only the number of answers is wanted
	after    *cursor // begin behind it; nil for the beginning
}

// queryStats are the cost of a run.
type queryStats struct {
	keys, documents, returned int64
	untold                    int64 // documents read because their entries were not covering
	counted                   bool  // entries were, instead of documents
	ends                      bool  // only the ends of a range were examined
	sorted                    bool
	elapsed                   time.Duration
}

// source yields the documents that may be answers.
type source interface {
	// next returns the next document that want accepts, or nil at the end.
	// What want is given is valid until it returns.
	next(ctx context.Context, want docs.Filter) (*docs.Document, error)
	close() error
}

// answers yields rows in their order, nil at the end.
type answers func(ctx context.Context) (*Row, error)

// docMeta is the query.Metadata of the document that is looked at.
type docMeta struct {
	db     *DB
	folded []byte
	header *metadata.Header
}

// AppendMeta implements query.Metadata.
func (m *docMeta) AppendMeta(dst []byte, part query.Meta) []byte {
	switch part {
	case query.MetaID:
		if m.header.ID != nil {
			return append(dst, m.header.ID...)
		}
		return append(dst, m.folded...)
	case query.MetaCollection:
		if len(m.header.Collection) == 0 {
			return append(dst, metadata.Empty...)
		}
		return append(dst, m.header.Collection...)
	case query.MetaLastModified:
		return metadata.AppendTime(dst, metadata.Time(m.header.Modified))
	case query.MetaChangeVector:
		return append(dst, m.db.env.ChangeVector(m.header.Node, m.header.Etag)...)
	}
	return dst
}

func (db *DB) database() *DB { return db }

func (t *Tx) database() *DB { return t.db }

// startRun implements querier.
func (db *DB) startRun(ctx context.Context, q *query.Query, o runOptions) (_ *run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	c, snapshot := db.viewIndexes(db.env.Engine.Snapshot)
	r := &run{db: db, q: q, snapshot: snapshot, owned: snapshot, options: o}
	started := false
	defer func() {
		if !started {
			err = errors.Join(err, snapshot.Close()) // also after a panic
		}
	}()
	if err := r.start(ctx, c); err != nil {
		return nil, err
	}
	started = true
	db.env.Register(r)
	return r, nil
}

// viewIndexes returns the indexes and a snapshot from take that agree: the indexes
// are in the snapshot as the catalog has them.
func (db *DB) viewIndexes(take func() storage.Snapshot) (*catalog.Catalog, storage.Snapshot) {
	db.indexing.view.RLock()
	defer db.indexing.view.RUnlock()
	return db.indexes(), take()
}

// startRun implements querier.
func (t *Tx) startRun(ctx context.Context, q *query.Query, o runOptions) (*run, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	r := &run{db: t.db, tx: t, q: q, snapshot: t.snapshot, options: o}
	r.hidden, r.own = t.written(q.From)
	if err := r.start(ctx, t.catalog); err != nil {
		return nil, err
	}
	if t.writable {
		note := &rangeRead{prefix: r.plan.Prefix}
		if q.From != "" {
			note.collection, note.named = format.CollectionKey(q.From), q.From
		}
		t.reads.walks = append(t.reads.walks, note)
	}
	t.hold(r)
	return r, nil
}

// written returns the IDs of the documents that the transaction has written,
// and those documents of a collection that it has not deleted.
func (t *Tx) written(collection string) (map[string]bool, []*docs.Document) {
	hidden := make(map[string]bool, len(t.staged))
	var own []*docs.Document
	for folded, i := range t.staged {
		hidden[folded] = true
		doc, err := t.peek(t.ops[i])
		if err == nil && (collection == "" || docs.SameCollection(doc.Header().Collection, format.CollectionKey(collection))) {
			own = append(own, doc)
		}
	}
	slices.SortFunc(own, func(a, b *docs.Document) int { return strings.Compare(a.FoldedID(), b.FoldedID()) })
	return hidden, own
}

// start plans the query and opens what it needs.
func (r *run) start(ctx context.Context, c *catalog.Catalog) (err error) {
	r.started = time.Now()
	if err := checkQuery(r.q); err != nil {
		return err
	}
	if r.plan, err = plan.New(r.q, c, r.snapshot, r.db.env.Rules, r.options.counting); err != nil {
		return err
	}
	if r.options.noScan && r.plan.IsScan() && !r.wantsAll() {
		return fmt.Errorf("%w: %.300s%s", ErrNoIndex, r.q, r.suggestionText())
	}
	r.stats.keys = int64(r.plan.Keys)
	r.meta.db = r.db
	r.skip, r.left = r.q.Offset, -1
	if r.q.HasLimit {
		r.left = r.q.Limit
	}
	if len(r.hidden) > 0 {
		r.plan.Ordered = false // the transaction's own documents must be sorted in
		r.plan.Counted = false
	}
	where := r.plan.Residual
	if len(r.own) > 0 {
		where = r.q.Where // the transaction's own documents are in no index yet
	}
	if where != nil {
		if r.matcher, err = query.Compile(where, r.db.queryOptions()...); err != nil {
			return fmt.Errorf("%w: %w", ErrQuery, err)
		}
		r.matcher.SetPace(&r.pace)
	}
	r.cover(where)
	if len(r.q.OrderBy) > 0 && !isGrouped(r.q) {
		if r.sorter, err = query.NewSorter(r.q.OrderBy); err != nil {
			return fmt.Errorf("%w: %w", ErrQuery, err)
		}
		r.sorter.SetPace(&r.pace)
	}
	r.source, err = r.openSource(ctx)
	return err
}

// cover makes the Covers that answer from entries, if the entries of every path
// have all that the query and where look at.
func (r *run) cover(where query.Expr) {
	for _, a := range r.plan.Access {
		c := plan.NewCover(r.q, r.options.counting, a.Index, where)
		if c == nil {
			r.covers = nil
			return
		}
		r.covers = append(r.covers, c)
	}
}

// queryOptions are how conditions are compiled for this database.
func (db *DB) queryOptions() []query.Option {
	if db.env.Rules.CaseSensitive {
		return []query.Option{query.SensitiveIDs()}
	}
	return nil
}

// checkQuery refuses queries without meaning.
func checkQuery(q *query.Query) error {
	if err := metadata.CheckCollection(q.From); err != nil {
		return err
	}
	if q.Distinct && len(q.Select) == 0 {
		return fmt.Errorf("%w: distinct needs a select: no two documents are the same", ErrQuery)
	}
	if len(q.GroupBy) > 0 && len(q.Select) == 0 {
		return fmt.Errorf("%w: group by needs a select that says what is wanted of each group", ErrQuery)
	}
	return nil
}

// isGrouped reports whether an answer is made of several documents.
func isGrouped(q *query.Query) bool { return len(q.GroupBy) > 0 || hasFunctions(q) }

// wantsAll reports whether the query asks for every document, in an order that a
// scan has: then there is no better way than a scan.
func (r *run) wantsAll() bool {
	return r.q.Where == nil && (len(r.q.OrderBy) == 0 || r.plan.Ordered) && !isGrouped(r.q) && !r.q.Distinct
}

func (r *run) openSource(ctx context.Context) (source, error) {
	switch {
	case r.plan.IDsOnly:
		return &idSource{r: r, ids: r.plan.IDs}, nil
	case len(r.plan.Access) > 0:
		return r.openIndexes(ctx)
	}
	s := docs.Range{Collection: r.q.From, Prefix: r.plan.Prefix}
	if r.plan.Ordered && r.options.after != nil {
		s.After = r.options.after.ID
	}
	w, err := r.db.docs.NewCursor(s, r.snapshot)
	if err != nil {
		return nil, err
	}
	r.db.env.Unregister(w) // the run is registered instead
	source := &scanSource{r: r, w: w}
	w.Want = source.look
	return source, nil
}

// close ends the run.
func (r *run) close() {
	r.suggestIndex()
	// An iterator that cannot be closed is garbage; its read errors have been
	// returned. DB.Close waits for registered handles, so the run is unregistered
	// only when it is released.
	_ = r.Release(ErrClosed)
	r.db.env.Unregister(r)
	if r.tx != nil {
		r.tx.letGo(r)
	}
}

// Release implements env.Handle.
func (r *run) Release(cause error) error {
	r.pace.Stop(cause) // a document may take long
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil
	}
	r.closed = cause
	r.stats.elapsed = time.Since(r.started)
	err := r.source.close()
	if r.owned != nil {
		err = errors.Join(err, r.owned.Close())
	}
	return err
}

// matches is the docs.Filter of the query: it reports whether a document is an
// answer, or the work has ended for a reason that r.pace holds.
func (r *run) matches(folded []byte, h *metadata.Header, body []byte) bool {
	if !r.pace.Spend(len(body)) {
		return true
	}
	if r.hidden != nil && r.hidden[string(folded)] {
		return false
	}
	if r.matcher == nil {
		return true
	}
	r.meta.folded, r.meta.header = folded, h
	return r.matcher.Match(query.Doc{Body: body, Meta: &r.meta}) || r.pace.Err() != nil
}

// doc returns a document as package query wants it. It is valid until the next
// call.
func (r *run) doc(d *docs.Document) query.Doc {
	r.meta.folded, r.meta.header = append(r.meta.folded[:0:0], d.FoldedID()...), d.Header()
	return query.Doc{Body: d.JSON(), Meta: &r.meta}
}

// nextDocument returns the next answer, in the order of the plan, as a
// document: those of the snapshot, then the transaction's own.
func (r *run) nextDocument(ctx context.Context) (*docs.Document, error) {
	doc, err := r.source.next(ctx, r.matches)
	if err := r.pace.Err(); err != nil {
		return nil, err
	}
	if doc != nil || err != nil {
		return doc, err
	}
	for len(r.own) > 0 {
		doc, r.own = r.own[0], r.own[1:]
		r.stats.documents++
		if r.plan.IDsOnly {
			if _, found := slices.BinarySearch(r.plan.IDs, doc.FoldedID()); !found {
				continue
			}
		}
		if r.pace.Spend(len(doc.JSON())) && (r.matcher == nil || r.matcher.Match(r.doc(doc))) && r.pace.Err() == nil {
			doc.CloneBody() // see Tx.pending
			return doc, nil
		}
	}
	return nil, r.pace.Err()
}

// next returns the next answer, or nil at the end.
func (r *run) next(ctx context.Context) (*Row, error) {
	row, err := r.nextRow(ctx)
	if row == nil || err != nil || len(r.q.Include) == 0 {
		return row, err
	}
	// Included documents are read by the transaction. It is entered for that only,
	// as the search for an answer may take any time.
	if r.tx != nil {
		if err := r.tx.enter(ctx); err != nil {
			return nil, err
		}
		defer r.tx.exit()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil, r.closed
	}
	return row, r.include(row)
}

// nextRow is next without the included documents.
func (r *run) nextRow(ctx context.Context) (*Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil, r.closed
	}
	r.pace.Begin(ctx)
	if r.answers == nil {
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
	}
	for r.left != 0 {
		row, err := r.answers(ctx)
		if err != nil || row == nil {
			return nil, err
		}
		if r.distinct != nil {
			r.pace.Spend(len(row.JSON))
			first, err := r.distinct.Add(row.JSON)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrQuery, err)
			}
			if !first {
				continue
			}
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		if r.left > 0 {
			r.left--
		}
		r.stats.returned++
		return row, nil
	}
	return nil, nil
}

// begin decides where the answers come from.
func (r *run) begin(ctx context.Context) (err error) {
	if r.q.Distinct {
		r.distinct = query.NewDistinct(r.db.env.MaxQueryBytes)
	}
	if isGrouped(r.q) {
		r.answers, err = r.groupAnswers(ctx)
		return err
	}
	if len(r.q.Select) > 0 {
		if r.projector, err = query.NewProjector(r.q.Select); err != nil {
			return fmt.Errorf("%w: %w", ErrQuery, err)
		}
		r.projector.SetPace(&r.pace)
	}
	if r.sorter != nil && !r.plan.Ordered {
		r.answers, err = r.sortedAnswers(ctx)
		return err
	}
	r.answers = func(ctx context.Context) (*Row, error) {
		for {
			doc, err := r.nextDocument(ctx)
			if doc == nil || err != nil {
				return nil, err
			}
			row := &Row{Document: (*Document)(doc)}
			if r.sorter != nil && (r.options.paging || r.options.after != nil) {
				row.cursor = r.cursorOf(doc)
				if r.options.after != nil && !r.isAfter(row.cursor) {
					continue
				}
			}
			return r.project(row)
		}
	}
	return nil
}

// project makes the selected columns of a document. A row may be as large as its
// document, or as what a query may hold in memory if that is more.
func (r *run) project(row *Row) (*Row, error) {
	if r.projector == nil {
		return row, nil
	}
	var err error
	limit := max(r.db.env.MaxQueryBytes, len(row.Document.Body()))
	if row.JSON, err = r.projector.AppendWithin(nil, r.doc(row.Document.inner()), limit); err != nil {
		return nil, fmt.Errorf("%w: document %q: %w (Options.MaxQueryBytes): select less", ErrQuery, row.Document.ID(), err)
	}
	if len(r.q.Include) == 0 {
		row.Document = nil
	}
	return row, r.pace.Err()
}

// include reads the documents that a row includes.
func (r *run) include(row *Row) error {
	if len(r.q.Include) == 0 || row.Document == nil {
		return nil
	}
	if r.included == nil {
		r.included = make(map[string]bool)
	}
	used := 0
	var err error
	eachID(row.Document.Body(), r.q.Include, func(raw []byte) bool {
		if !r.pace.Spend(len(raw)) {
			err = r.pace.Err()
		} else if isID(raw) {
			err = r.includeOne(row, string(jsonpath.AppendUnquoted(nil, raw)), &used)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if r.projector != nil {
		row.Document = nil
	}
	return nil
}

// includeOne reads one included document. used is how many bytes those of the row
// have.
func (r *run) includeOne(row *Row, id string, used *int) error {
	folded := r.db.env.Rules.Fold(id)
	if r.included[folded] {
		return nil
	}
	if len(r.included) >= maxIncludes {
		return fmt.Errorf("%w: the includes name more than %d documents", ErrQuery, maxIncludes)
	}
	r.included[folded] = true
	doc, err := r.readIncluded(folded)
	if err == ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if *used += len(doc.JSON()); len(row.Included) > 0 && *used > r.db.env.MaxQueryBytes {
		return fmt.Errorf("%w: the documents that document %q includes have more than %d bytes (Options.MaxQueryBytes)", ErrQuery, row.Document.ID(), r.db.env.MaxQueryBytes)
	}
	row.Included = append(row.Included, (*Document)(doc))
	return nil
}

// readIncluded returns an included document, or ErrNotFound unwrapped.
func (r *run) readIncluded(folded string) (*docs.Document, error) {
	if r.tx != nil {
		return r.tx.lookup(folded)
	}
	return r.db.docs.ReadFolded(r.snapshot, folded)
}

// count returns the number of answers, without making them where possible.
func (r *run) count(ctx context.Context) (int64, error) {
	if isGrouped(r.q) || r.q.Distinct || len(r.q.OrderBy) > 0 {
		n := int64(0)
		for {
			row, err := r.next(ctx)
			if err != nil || row == nil {
				return n, err
			}
			n++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return 0, r.closed
	}
	r.pace.Begin(ctx)
	n, err := r.countDocuments(ctx)
	if err != nil {
		return 0, err
	}
	n = max(0, n-int64(r.skip))
	if r.left >= 0 {
		n = min(n, int64(r.left))
	}
	r.stats.returned = n
	return n, nil
}

// countDocuments counts what matches, without copying it.
func (r *run) countDocuments(ctx context.Context) (int64, error) {
	if s, ok := r.source.(*indexSource); ok && r.plan.Counted {
		r.stats.counted = true
		return s.countEntries(ctx)
	}
	n := int64(0)
	err := r.each(ctx, func(query.Doc) error {
		n++
		return nil
	})
	return n, err
}

// each calls fn with every document that matches, until it returns an error.
// What it is given is valid until it returns.
func (r *run) each(ctx context.Context, fn func(query.Doc) error) error {
	var failed error
	_, err := r.source.next(ctx, func(folded []byte, h *metadata.Header, body []byte) bool {
		if failed == nil && r.matches(folded, h, body) {
			if failed = r.pace.Err(); failed != nil {
				return true
			}
			r.meta.folded, r.meta.header = folded, h
			failed = fn(query.Doc{Body: body, Meta: &r.meta})
		}
		return failed != nil // accept no document, except to end the walk
	})
	if err := cmp.Or(failed, err); err != nil {
		return err
	}
	for {
		doc, err := r.nextDocument(ctx) // the transaction's own
		if doc == nil || err != nil {
			return err
		}
		if err := fn(r.doc(doc)); err != nil {
			return err
		}
	}
}
