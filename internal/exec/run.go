// Package exec runs queries. It carries out the plan of package plan on one snapshot:
// a source yields the candidates, the residual condition filters them, and they are
// sorted, grouped, cut to a page and projected. Nothing here enters the gate of the
// database.
package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Run is a query under way, on one snapshot.
type Run struct {
	// Closed is called by Close, if it is not nil.
	Closed func(*Run)

	env  *env.Env
	docs *docs.Reader
	q    *query.Query
	plan *plan.Plan

	mu       sync.Mutex // guards what follows, against DB.Close and the end of the transaction
	closed   error
	snapshot storage.Reader
	owned    storage.Snapshot // to be closed with the run, or nil
	source   source
	where    query.Expr     // to be checked on documents: see Overlay.residual
	matcher  *query.Matcher // of where; nil for none
	fan      *fanOut        // of a query with a fan-out, with the matcher of the residual; else nil
	covers   []*plan.Cover  // parallel to the plan's paths; nil if documents must be read
	meta     docMeta
	options  Options
	key      []byte          // scratch
	moment   time.Time       // at which documents that have expired are left out; zero for none
	gone     bool            // there are such documents
	dueFrom  time.Time       // none of them has expired before
	accept   docs.Filter     // matches, made once
	all      bool            // it accepts every candidate
	header   metadata.Header // scratch
	row      Row             // the last one of streamed answers
	sorter   *query.Sorter
	bound    *sortBound // of a sort for the first answers; nil for none

	pace query.Pace // of all that works on documents; ends with the context, and with the run

	answers   answers // what next returns; nil before the first call
	projector *query.Projector
	scripted  *scripted // of a query with JavaScript; else nil
	distinct  *query.Distinct
	included  map[string]bool // included documents so far, by folded ID
	skip      int
	left      int       // answers to come; below 0 for no limit
	index     *indexRun // of a query of a computed index; else nil
	instead   instead
	unweighed unweighed
	scoring   scoring
	shown     shown
	likes     likes
	loading   loading
	words     *suggestions // of a query of words; else nil

	overlay Overlay
	payer   budget.Payer // of the memory that the run holds
	means   means        // of the candidates of an index
	stats   queryStats
	started time.Time
}

// Row is one answer.
type Row struct {
	Document *docs.Document // the whole document, for queries that select nothing else
	JSON     []byte         // what was selected, as an object
	Included []*docs.Document
	Cursor   *Cursor // of an ordered query, if Options.Paging

	Highlights  []Fragments        // of a query with highlights, one for each
	Explanation *query.Explanation // of a query with explanations
	ID          string             // of the document, with one of these, or if JavaScript made the row and rows are not distinct
}

// Database is what a run reads.
type Database struct {
	Env      *env.Env
	Docs     *docs.Reader
	Snapshot storage.Reader
	Owned    storage.Snapshot // Snapshot, if the run has to close it; else nil
	Catalog  *catalog.Catalog // the indexes as they are in Snapshot

	// Moment is the instant at which documents that have expired are left out, zero for
	// none. No document of Snapshot expires before DueFrom.
	Moment, DueFrom time.Time
}

// Overlay is what a transaction lays over the snapshot that it reads. The zero value
// is for runs outside transactions.
type Overlay struct {
	Written map[string]bool  // the documents that it has written, by folded ID
	Own     []*docs.Document // those of them that can be answers, in the order of IDs

	// Enter begins a read by the transaction, which Exit ends. Read returns a document
	// as the transaction sees it, or ErrNotFound unwrapped.
	Enter func(context.Context) error
	Exit  func()
	Read  func(foldedID string) (*docs.Document, error)
}

// readFunc returns the current document with a folded ID, or ErrNotFound unwrapped.
type readFunc func(foldedID string) (*docs.Document, error)

// Options are what is asked of a run beside the query.
type Options struct {
	NoScan   bool    // fail rather than look at every document
	Paging   bool    // every row needs its cursor
	Counting bool    // only the number of answers is wanted
	After    *Cursor // begin behind it; nil for the beginning

	// groups are conditions on the groups of a query that are wanted of it, which decide nothing.
	groups []query.Expr

	// PageBytes is the number of bytes of documents after which the caller asks for no
	// further row; 0 for none.
	PageBytes int

	// Seen is called with the snapshot before the query reads it, if it is not nil. Its error is that of Start.
	Seen func(storage.Reader) error

	// Expired says that documents which have expired and are not deleted yet are found, too.
	Expired bool
}

// queryStats are the cost of a run.
type queryStats struct {
	keys, documents, returned int64
	uncovered                 int64 // documents read because their entries were not covering
	counted                   bool  // entries were, instead of documents
	minMax                    bool  // only the ends of a range were examined
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
	env    *env.Env
	folded []byte
	header *metadata.Header
	own    metadata.Header // of a document that is in memory

	scorer *score.Scorer // nil for no scores
	body   []byte        // of a document that is in memory
	id     []byte        // the memory of folded, of a document that is in memory
}

// look makes m that of a document that is in memory.
func (m *docMeta) look(d *docs.Document) {
	m.own, m.id = d.Header(), append(m.id[:0], d.FoldedID()...)
	m.folded, m.header, m.body = m.id, &m.own, d.JSON()
}

// DocView shows documents that are in memory, one after the other, as queries see them. The zero value is ready to use.
type DocView struct{ meta docMeta }

// Of returns a document with its metadata. It is valid until the next call.
func (v *DocView) Of(e *env.Env, d *docs.Document) query.Doc {
	v.meta.env = e
	v.meta.look(d)
	return query.Doc{Body: d.JSON(), Meta: &v.meta}
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
		return append(dst, m.env.ChangeVector(m.header.Node, m.header.Etag)...)
	case query.MetaEtag:
		if m.header.Etag == 0 { // a document that a transaction has made
			return dst
		}
		return strconv.AppendUint(dst, m.header.Etag, 10)
	case query.MetaCustom:
		return append(dst, m.header.Custom...)
	case query.MetaScore:
		if m.scorer == nil {
			return dst
		}
		return strconv.AppendFloat(dst, m.scorer.Score(query.Doc{Body: m.body, Meta: m}), 'g', -1, 64)
	}
	return dst
}

// Start plans a query and opens what it reads. Close must follow if it succeeds; if
// not, the snapshot remains the caller's.
func Start(ctx context.Context, db Database, q *query.Query, overlay Overlay, o Options) (*Run, error) {
	if o.Seen != nil {
		if err := o.Seen(db.Snapshot); err != nil {
			return nil, err
		}
		o.Seen = nil
	}
	if o.Expired {
		db.Moment, db.DueFrom = time.Time{}, time.Time{}
	}
	switch {
	case q.Index != "":
		return startIndex(ctx, db, q, overlay, o)
	case len(q.Suggests) > 0:
		return startSuggestions(ctx, db, q, overlay, o)
	}
	r := newRun(ctx, db, q, overlay, o)
	err := r.loading.begin(r, &db)
	if err == nil {
		err = r.findGone(db.DueFrom)
	}
	if err == nil {
		err = r.start(ctx, db.Catalog)
	}
	if err != nil {
		r.payer.End()
		return nil, err
	}
	return r, nil
}

// newRun returns a run that has not begun.
func newRun(ctx context.Context, db Database, q *query.Query, overlay Overlay, o Options) *Run {
	r := &Run{env: db.Env, docs: db.Docs.For(ctx), q: q, snapshot: db.Snapshot, owned: db.Owned, overlay: overlay, options: o, moment: db.Moment, payer: budget.NewDrawing(ctx, db.Env.Work)}
	r.means.r = r
	r.skip, r.left = q.Offset, -1
	if q.HasLimit {
		r.left = q.Limit
	}
	return r
}

// findGone finds out whether the snapshot has documents that have expired, none of them
// before from.
func (r *Run) findGone(from time.Time) (err error) {
	if r.moment.IsZero() {
		return nil
	}
	r.dueFrom = from
	r.gone, err = docs.AnyGone(r.snapshot, from, r.moment)
	return err
}

// start plans the query and opens what it needs.
func (r *Run) start(ctx context.Context, c *catalog.Catalog) (err error) {
	r.started = time.Now()
	if err := checkQuery(r.q); err != nil {
		return err
	}
	r.meta.env = r.env
	if err := r.likes.prepare(ctx, r, c); err != nil {
		return err
	}
	if err := r.scoring.prepare(r, c); err != nil {
		return err
	}
	if err := r.shown.prepare(r); err != nil {
		return err
	}
	if r.plan, err = plan.New(planned(r.q), c, r.snapshot, r.env.Rules, plan.Options{Scores: r.scoring.scores, Counting: r.options.Counting, NoScan: r.options.NoScan, MaxBytes: r.env.MaxQueryBytes, Size: sizes(r.snapshot), Space: spaceOf(r.env), Groups: r.options.groups, Means: &r.means, OwnSeveral: keptRun{r}.severalOwn()}); err != nil {
		return err
	}
	if r.options.NoScan && r.plan.IsScan() && !r.wantsAll() {
		return fmt.Errorf("%w: %.300s%s", errs.ErrNoIndex, r.q, r.suggestionText()+lost("; ", r.plan))
	}
	r.stats.keys = int64(r.plan.Keys)

	if r.q.Script != nil {
		r.scripted = &scripted{r: r, left: -1, steps: query.MaxProjectionSteps}
		r.scripted.begin()
	}

	where := r.overlay.residual(r.q, r.plan)
	if err := r.compile(where); err != nil {
		return err
	}

	// With the condition that is left it is known which fields are looked at, and so
	// whether entries can answer instead of documents.
	r.cover(where)
	if len(r.q.OrderBy) > 0 && !IsGrouped(r.q) && r.fan == nil && r.compares() {
		if err := r.openSorter(); err != nil {
			return err
		}
	}
	r.unweighed.waits = r.plan.IsUnweighed()
	r.source, err = r.openSource(ctx)
	return err
}

// planned returns the query as a plan has to answer it: of a fan-out, and for ranks, the documents are wanted, all of them and in no order.
func planned(q *query.Query) *query.Query {
	if !q.Fused && (q.Each.IsZero() || IsGrouped(q)) {
		return q
	}
	documents := *q
	documents.Fused = false
	documents.OrderBy, documents.Offset, documents.Limit, documents.HasLimit, documents.Distinct = nil, 0, 0, false, false
	return &documents
}

// residual returns the part of the condition of a query that is to be checked on the documents of a plan: all of it for a
// transaction's own, which are in no index yet.
func (o *Overlay) residual(q *query.Query, pl *plan.Plan) query.Expr {
	if len(o.Written) > 0 {
		pl.CountOnly = false
	}
	if len(o.Own) > 0 {
		return q.Where
	}
	return pl.Residual
}

// compile makes the matcher of the condition that is left to check.
func (r *Run) compile(where query.Expr) (err error) {
	r.matcher, r.where = nil, where
	if where != nil {
		if r.matcher, err = query.Compile(where, queryOptions(r.env)...); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		r.matcher.SetPace(&r.pace)
	}
	if !r.q.Each.IsZero() {
		if err := r.q.Each.Check(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		r.fan, r.matcher = newFanOut(r.q.Each, r.matcher, &r.pace), nil
	}
	r.loading.settle(r, where)
	r.accept, r.all = r.matches, r.matcher == nil && !r.gone && r.overlay.Written == nil && r.unweighed.met == nil
	return nil
}

// spaceOf returns what knows the sizes of ranges, or nil. On a shared store it would be asked through a network.
func spaceOf(e *env.Env) storage.SpaceMeasurer {
	if e.Fresh != nil {
		return nil
	}
	m, _ := e.Engine.(storage.SpaceMeasurer)
	return m
}

// sizes returns what tells the numbers of a collection, or none if they are not known.
func sizes(snapshot storage.Reader) func(foldedCollection string) (format.Tally, error) {
	return func(foldedCollection string) (format.Tally, error) {
		t, err := counts.TallyOf(snapshot, foldedCollection)
		if errors.Is(err, counts.ErrNotReady) {
			return format.Tally{}, nil
		}
		return t, err
	}
}

// compares reports whether the order is not only that in which the candidates come:
// answers are sorted, merged, or have cursors.
func (r *Run) compares() bool {
	return !r.plan.Ordered || r.options.Paging || r.options.After != nil || len(r.overlay.Own) > 0
}

// cover makes the Covers that answer from entries, if the entries of every path
// have all that the query and where look at. An entry does not say when its document expires,
// nor which elements it has.
func (r *Run) cover(where query.Expr) {
	if r.gone || r.fan != nil {
		r.covers, r.plan.CountOnly = nil, false
		return
	}
	for _, a := range r.plan.Access {
		c := plan.NewCover(r.q, r.options.Counting, a.Index, where)
		if c == nil {
			r.covers = nil
			return
		}
		r.covers = append(r.covers, c)
	}
}

// queryOptions are how conditions are compiled for a database.
func queryOptions(e *env.Env) []query.Option {
	if e.Rules.CaseSensitive {
		return []query.Option{query.SensitiveIDs()}
	}
	return nil
}

// checkQuery refuses queries without meaning.
func checkQuery(q *query.Query) error {
	if err := metadata.CheckCollection(q.From); err != nil {
		return err
	}
	if q.Timings {
		return fmt.Errorf("%w: include timings() is of the answers of a server to RavenDB's clients: Explain reports the time", errs.ErrQuery)
	}
	if !q.Each.IsZero() && (len(q.Select) == 0 || q.IncludesMore() || len(q.Facets) > 0 || q.Script != nil) {
		return fmt.Errorf("%w: a query with each answers with elements: it selects something of them, and includes nothing", errs.ErrQuery)
	}
	if len(q.GroupBy) > 0 && len(q.Select) == 0 {
		return fmt.Errorf("%w: group by needs a select that says what is wanted of each group", errs.ErrQuery)
	}
	if err := q.CheckFused(); err != nil {
		return fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return checkScored(q)
}

// IsGrouped reports whether an answer is made of several documents.
func IsGrouped(q *query.Query) bool {
	return len(q.GroupBy) > 0 || hasFunctions(q) || q.Having != nil || len(q.Facets) > 0 || len(q.Suggests) > 0
}

func hasFunctions(q *query.Query) bool {
	for _, c := range q.Select {
		if c.Func != query.FuncNone {
			return true
		}
	}
	return false
}

// wantsAll reports whether the query asks for every document, in an order that a
// scan has, or for a range of IDs that no index would narrow: then there is no better
// way than a scan.
func (r *Run) wantsAll() bool {
	if (r.plan.Low != "" || r.plan.High != "") && r.Suggestion() == nil {
		return true
	}
	return r.q.Where == nil && r.fan == nil && (len(r.q.OrderBy) == 0 || r.plan.Ordered) && !IsGrouped(r.q) && !r.q.IsDistinct()
}

func (r *Run) openSource(ctx context.Context) (source, error) {
	switch {
	case r.plan.Kept != nil || r.plan.Facets != nil:
		return &idSource{r: r}, nil // no document is read, but those that entries do not cover
	case r.plan.IDsOnly:
		return &idSource{r: r, ids: r.plan.IDs}, nil
	case len(r.plan.Access) > 0:
		return r.openIndexes(ctx)
	case r.plan.Changes != nil:
		return r.openChanges()
	}
	s := docs.Range{Collection: r.q.From, Prefix: r.plan.Prefix, Low: r.plan.Low, High: r.plan.High, Reverse: r.plan.Reverse}
	if r.plan.Ordered && r.options.After != nil {
		s.After = r.options.After.ID
	}
	w, err := r.docs.NewCursor(s, r.snapshot)
	if err != nil {
		return nil, err
	}
	r.env.Unregister(w) // the run is registered instead
	source := &scanSource{r: r, w: w}
	w.Want = source.filter
	return source, nil
}

// Close ends the run.
func (r *Run) Close() {
	// An iterator that cannot be closed is garbage; its read errors have been
	// returned. DB.Close waits for registered handles, so the run is unregistered
	// only when it is released.
	_ = r.Release(errs.ErrClosed)
	r.env.Unregister(r)
	if r.Closed != nil {
		r.Closed(r)
	}
}

// Release implements env.Handle.
func (r *Run) Release(cause error) error {
	r.pace.Stop(cause) // a document may take long
	if r.index != nil {
		for _, p := range r.index.parts {
			p.pace.Stop(cause)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil
	}
	r.closed = cause
	r.payer.End()
	r.stats.elapsed = time.Since(r.started)
	r.plan.Walked(r.stats.keys - int64(r.plan.Keys))
	err := r.source.close()
	if r.owned != nil {
		err = errs.First(err, r.owned.Close())
	}
	return err
}

// matches is the docs.Filter of the query: it reports whether a document is an
// answer, or the work has ended for a reason that r.pace holds.
func (r *Run) matches(folded []byte, h *metadata.Header, body []byte) bool {
	if !r.pace.Spend(len(body)) {
		return true
	}
	if (scanRun{r}).leavesOut(folded, h) {
		return false
	}
	if r.matcher == nil && r.bound == nil {
		return true
	}
	r.meta.folded, r.meta.header = folded, h
	doc := query.Doc{Body: body, Meta: &r.meta}
	found := (r.matcher == nil || r.matcher.Match(doc)) && !(r.bound != nil && r.bound.isBefore(r.sorter, &r.bound.scratch, doc))
	return found || r.pace.Err() != nil
}

// doc returns a document as package query wants it. It is valid until the next
// call.
func (r *Run) doc(d *docs.Document) query.Doc {
	r.meta.look(d)
	return query.Doc{Body: d.JSON(), Meta: &r.meta}
}

// nextDocument returns the next answer, in the order of the plan, as a
// document: those of the snapshot, then the transaction's own.
func (r *Run) nextDocument(ctx context.Context) (*docs.Document, error) {
	doc, err := r.nextStored(ctx)
	if doc != nil || err != nil {
		return doc, err
	}
	return r.nextOwn()
}

// nextStored returns the next answer of the snapshot.
func (r *Run) nextStored(ctx context.Context) (*docs.Document, error) {
	if doc, shared, err := (scanRun{r}).next(ctx); shared {
		return doc, err
	}
	doc, err := r.nextCandidate(ctx, func() docs.Filter {
		if r.all && r.bound == nil {
			switch r.source.(type) {
			case *indexSource, *changeSource: // those of lookups
				return nil // documents are decoded where they are to be, and not before
			}
		}
		return r.accept
	})
	if err == errLanes {
		return r.nextStored(ctx)
	}
	if err := r.pace.Err(); err != nil {
		return nil, err
	}
	return doc, err
}

// nextOwn returns the next answer among the transaction's own documents.
func (r *Run) nextOwn() (doc *docs.Document, err error) {
	for len(r.overlay.Own) > 0 {
		doc, r.overlay.Own = r.overlay.Own[0], r.overlay.Own[1:]
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

// Next returns the next answer, or nil at the end. The Row is valid until the next call;
// what it holds belongs to the caller.
func (r *Run) Next(ctx context.Context) (*Row, error) {
	if r.scripted != nil {
		row, err := r.scripted.next(ctx)
		return row, beyond(err)
	}
	row, err := r.nextRow(ctx)
	if row == nil || err != nil || !r.q.IncludesMore() {
		return row, beyond(err)
	}
	read, exit, err := reading{r}.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer exit()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil, r.closed
	}
	return row, r.shown.complete(r, row, read)
}

// nextRow is Next without what is included.
func (r *Run) nextRow(ctx context.Context) (*Row, error) {
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
			held := r.distinct.Bytes()
			first, err := r.distinct.Add(row.JSON)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
			}
			if err := r.payer.Pay(r.distinct.Bytes() - held); err != nil {
				return nil, err
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
func (r *Run) begin(ctx context.Context) (err error) {
	if err := r.scoring.begin(ctx, r); err != nil {
		return err
	}
	if r.q.IsDistinct() && r.scripted == nil {
		r.distinct = query.NewDistinct(r.env.MaxQueryBytes)
	}
	if r.index != nil && r.index.parts != nil {
		r.answers, err = r.index.answers(ctx, r)
		return err
	}
	if IsGrouped(r.q) {
		r.answers, err = r.groupAnswers(ctx)
		return err
	}
	if r.fan != nil {
		s, err := entryRun{r}.selecting(0)
		if err != nil {
			return err
		}
		r.answers, err = entryRun{r}.answers(ctx, []*selecting{s})
		return err
	}
	if len(r.q.Select) > 0 {
		if r.projector, err = query.NewProjector(r.q.Select); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		r.projector.SetPace(&r.pace)
	}
	if r.q.Fused {
		r.answers, err = fusion{r}.answers(ctx)
		return err
	}
	if r.sorter != nil && !r.plan.Ordered {
		r.answers, err = r.sortedAnswers(ctx)
		return err
	}

	// The answers are streamed: they come in the order of the plan, into which the
	// transaction's own documents are merged.
	if err := r.mayChange(); err != nil {
		return err
	}
	next := r.nextDocument
	if r.sorter != nil && len(r.overlay.Own) > 0 {
		if next, err = r.merged(); err != nil {
			return err
		}
	}
	r.stream(next)
	return nil
}

// stream makes the answers those that next returns, in their order.
func (r *Run) stream(next func(context.Context) (*docs.Document, error)) {
	r.answers = func(ctx context.Context) (*Row, error) {
		for {
			doc, err := next(ctx)
			if err == errSpent {
				if err = r.change(ctx); err == nil {
					return r.answers(ctx)
				}
			}
			if doc == nil || err != nil {
				return nil, err
			}
			r.row = Row{Document: doc}
			row := &r.row
			if r.sorter != nil && (r.options.Paging || r.options.After != nil) {
				row.Cursor = r.cursorOf(doc)
				if r.options.After != nil && !r.isAfter(row.Cursor) {
					continue
				}
			}
			if r.instead.after > 0 {
				if err := r.instead.give(r.sorter, &r.payer, r.doc(doc), doc.FoldedID()); err != nil {
					return nil, err
				}
			}
			return r.project(row)
		}
	}
}

// project makes the selected columns of a document. A row may be as large as its
// document, or as what a query may hold in memory if that is more.
func (r *Run) project(row *Row) (*Row, error) {
	if r.projector == nil {
		r.loading.restore(r, row)
		return row, nil
	}
	var err error
	limit := max(r.env.MaxQueryBytes, len(row.Document.JSON()))
	if row.JSON, err = r.projector.AppendWithin(nil, r.doc(row.Document), limit); err != nil {
		return nil, fmt.Errorf("%w: document %q: %w (Options.MaxQueryBytes): select less", errs.ErrQuery, row.Document.ID(), err)
	}
	if !r.q.IncludesMore() {
		row.Document = nil
	} else {
		r.loading.restore(r, row)
	}
	return row, r.pace.Err()
}

// include reads the documents that a row includes.
func (r *Run) include(row *Row, read readFunc) error {
	if len(r.q.Include) == 0 || row.Document == nil {
		return nil
	}
	if r.included == nil {
		r.included = make(map[string]bool)
	}
	used := 0
	var err error
	docs.EachID(row.Document.JSON(), r.q.Include, func(raw []byte) bool {
		if !r.pace.Spend(len(raw)) {
			err = r.pace.Err()
		} else if docs.IsID(raw) {
			err = r.includeOne(row, string(jsonpath.AppendUnquoted(nil, raw)), read, &used)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	return nil
}

// includeOne reads one included document. used is how many bytes those of the row
// have.
func (r *Run) includeOne(row *Row, id string, read readFunc, used *int) error {
	folded := r.env.Rules.Fold(id)
	if r.included[folded] {
		return nil
	}
	if len(r.included) >= docs.MaxIncludes {
		return fmt.Errorf("%w: the includes name more than %d documents", errs.ErrQuery, docs.MaxIncludes)
	}
	r.included[folded] = true
	doc, err := read(folded)
	if err == errs.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if *used += len(doc.JSON()); len(row.Included) > 0 && *used > r.env.MaxQueryBytes {
		return fmt.Errorf("%w: the documents that document %q includes: %w (Options.MaxQueryBytes)", errs.ErrQuery, row.Document.ID(), &query.LimitError{What: "bytes of documents", Limit: r.env.MaxQueryBytes, Actual: *used})
	}
	row.Included = append(row.Included, doc)
	return r.payer.Pay(len(folded) + 64)
}

// Count returns the number of answers, without making them where possible.
func (r *Run) Count(ctx context.Context) (int64, error) {
	if IsGrouped(r.q) || r.q.IsDistinct() || len(r.q.OrderBy) > 0 || r.index != nil && r.index.parts != nil {
		n := int64(0)
		for {
			row, err := r.Next(ctx)
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
		return 0, beyond(err)
	}
	n = max(0, n-int64(r.skip))
	if r.left >= 0 {
		n = min(n, int64(r.left))
	}
	r.stats.returned = n
	return n, nil
}

// countDocuments counts what matches, without copying it.
func (r *Run) countDocuments(ctx context.Context) (int64, error) {
	if s, ok := r.source.(*indexSource); ok && r.plan.CountOnly {
		r.stats.counted = true
		return s.countEntries(ctx)
	}
	n, err := scanRun{r}.count(ctx)
	if err != nil {
		return 0, err
	}
	err = r.each(ctx, func(query.Doc) error {
		n++
		return nil
	})
	return n, err
}

// each calls fn with every document that matches, until it returns an error.
// What it is given is valid until it returns.
func (r *Run) each(ctx context.Context, fn func(query.Doc) error) error {
	given := fn
	fn = func(doc query.Doc) error { return r.fan.visit(doc, given) } // of the plan that answers at the moment
	var failed error
	want := func(folded []byte, h *metadata.Header, body []byte) bool {
		if failed == nil && r.matches(folded, h, body) {
			if failed = r.pace.Err(); failed != nil {
				return true
			}
			r.meta.folded, r.meta.header = folded, h
			failed = fn(query.Doc{Body: body, Meta: &r.meta})
		}
		return failed != nil // accept no document, except to end the walk
	}
	_, err := r.nextCandidate(ctx, func() docs.Filter { return want })
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

// beyond makes an ErrQuery of the error of a query whose expressions compute too much.
func beyond(err error) error {
	if err == nil {
		return nil
	}
	if large := (*query.LimitError)(nil); errors.As(err, &large) && !errors.Is(err, errs.ErrQuery) {
		return fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return err
}
