package jay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/query"
)

// Iter runs the query. The loop sees the database as it was when it began, and
// may be left at any time. A document that does not decode comes as a nil value and a
// *DecodeError, and the loop goes on; any other error comes as the last pair. Each
// value belongs to the caller.
func (q Query[T]) Iter(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for row, err := range q.def.rows(ctx) {
			if err != nil {
				yield(nil, fmt.Errorf("query: %w", err))
				return
			}
			q.def.receive(row)
			v, err := q.decode(row)
			if (v != nil || err != nil) && !yield(v, err) {
				return
			}
		}
	}
}

// receive hands on what an answer includes.
func (q definition) receive(row *exec.Row) {
	if q.arrive != nil && len(row.Included) > 0 {
		q.arrive(row.Included)
	}
}

// rows runs the query.
func (q definition) rows(ctx context.Context) iter.Seq2[*exec.Row, error] {
	return func(yield func(*exec.Row, error) bool) {
		q, err := q.complete()
		if err != nil {
			yield(nil, err)
			return
		}
		span := watchQuery(ctx, q.via, "query", &q.q)
		if span != nil {
			ctx = span.Context()
			defer span.Finish()
		}
		r, err := q.via.startRun(ctx, &q.q, q.run)
		if err != nil {
			yield(nil, span.Fail(err))
			return
		}
		defer r.Close()
		for {
			span.Resume()
			row, err := r.Next(ctx)
			span.Pause()
			if err != nil {
				yield(nil, span.Fail(err))
				return
			}
			if row == nil {
				return
			}
			span.Found()
			if !yield(row, nil) {
				return
			}
		}
	}
}

// watchQuery begins an operation, or returns nil if nothing is observed. The caller
// finishes it.
func watchQuery(ctx context.Context, via access, verb string, q *query.Query) *observe.Span {
	if via == nil { // the query was not made by a database
		return nil
	}
	watch := via.database().watch
	if watch == nil {
		return nil
	}
	return watch.Start(ctx, observe.Operation{Verb: verb, Collection: q.From, Query: q.String})
}

// All returns all answers. They must fit into memory: Limit or Iter is safer
// where there may be many. If some do not decode, it returns the others, and an error
// that joins their *DecodeErrors.
func (q Query[T]) All(ctx context.Context) ([]*T, error) {
	out := []*T{}
	var broken brokenRows
	for v, err := range q.Iter(ctx) {
		switch {
		case err == nil:
			out = append(out, v)
		case !broken.add(err):
			return nil, err
		}
	}
	return out, broken.err()
}

// brokenRows are answers that do not decode. It keeps the first errors.
type brokenRows struct {
	first []error
	more  int
}

// maxBrokenRows is how many errors of answers All and Page return.
const maxBrokenRows = 100

// add takes an error in if it is a *DecodeError.
func (b *brokenRows) add(err error) bool {
	var decode *DecodeError
	switch {
	case !errors.As(err, &decode):
		return false
	case len(b.first) < maxBrokenRows:
		b.first = append(b.first, err)
	default:
		b.more++
	}
	return true
}

func (b *brokenRows) err() error {
	if b.more > 0 {
		return errors.Join(append(b.first, fmt.Errorf("and %d more do not decode", b.more))...)
	}
	return errors.Join(b.first...)
}

// First returns the first answer, or ErrNotFound.
func (q Query[T]) First(ctx context.Context) (*T, error) {
	if !q.def.q.HasLimit {
		q = q.Limit(1)
	}
	for v, err := range q.Iter(ctx) {
		return v, err
	}
	return nil, fmt.Errorf("query: %w", ErrNotFound)
}

// Exists reports whether there is an answer.
func (q Query[T]) Exists(ctx context.Context) (bool, error) { return q.def.exists(ctx) }

func (q definition) exists(ctx context.Context) (bool, error) {
	q.q.Include = nil // they are not seen
	if !q.q.HasLimit {
		q.limit(1)
	}
	for _, err := range q.rows(ctx) {
		if err != nil {
			return false, fmt.Errorf("query: %w", err)
		}
		return true, nil
	}
	return false, nil
}

// Count returns how many answers there are, Skip and Limit included. It reads
// no documents where entries of an index can be counted instead.
func (q Query[T]) Count(ctx context.Context) (int64, error) { return q.def.count(ctx) }

func (q definition) count(ctx context.Context) (n int64, err error) {
	if span := watchQuery(ctx, q.via, "count", &q.q); span != nil {
		ctx = span.Context()
		defer func() {
			span.Documents, span.Err = n, err
			span.Finish()
		}()
	}
	q.q.Include = nil // they make no difference
	q, err = q.complete()
	if err != nil {
		return 0, err
	}
	if n, counted, err := q.countAll(ctx); counted || err != nil {
		return n, err
	}
	plain := q.q
	plain.OrderBy, plain.Include = nil, nil
	if len(plain.Select) > 0 || q.run.After != nil {
		plain = q.q // the rows themselves must be made
	} else {
		q.run.Counting = true
	}
	r, err := q.via.startRun(ctx, &plain, q.run)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	defer r.Close()
	n, err = r.Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return n, nil
}

// Page is a part of the answers.
type Page[T any] struct {
	Items []*T   `json:"items"`          // never nil from Query.Page
	Next  string `json:"next,omitempty"` // for After; "" at the end
}

// MarshalJSON returns the page with "items" as an array, also if there are none.
func (p Page[T]) MarshalJSON() ([]byte, error) {
	type plain struct {
		Items []*T   `json:"items"`
		Next  string `json:"next,omitempty"`
	}
	if p.Items == nil {
		p.Items = []*T{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the encoder that calls decides
	err := e.Encode(plain(p))
	return b.Bytes(), err
}

// Page returns up to Limit answers (100 without one; Limit(0) is ErrQuery), and the cursor with
// which the next page begins. A query without an order is ordered by ID. If some answers
// do not decode, it returns the page without them, and the error of All.
func (q Query[T]) Page(ctx context.Context) (Page[T], error) {
	p := Page[T]{Items: []*T{}}
	var broken brokenRows
	next, err := q.def.page(ctx, func(row *exec.Row) error {
		q.def.receive(row)
		v, err := q.decode(row)
		switch {
		case v != nil:
			p.Items = append(p.Items, v)
		case err != nil && !broken.add(err):
			return err
		}
		return nil
	})
	if err != nil {
		return Page[T]{Items: []*T{}}, err
	}
	p.Next = next
	return p, broken.err()
}

// page calls take with the rows of a page, and returns the cursor of the next one.
func (q definition) page(ctx context.Context, take func(*exec.Row) error) (next string, err error) {
	if err := q.check(); err != nil {
		return "", err
	}
	if err := q.checkPaging(); err != nil {
		return "", err
	}
	q, err = q.dated() // before the cursor names the query
	if err != nil {
		return "", err
	}
	if len(q.q.OrderBy) == 0 {
		q.orderBy([]string{"id()"})
	}
	limit := 100
	if q.q.HasLimit {
		limit = q.q.Limit
	}
	if limit == 0 || limit == math.MaxInt {
		return "", fmt.Errorf("%w: a page of %d answers", ErrQuery, limit)
	}
	q.limit(limit + 1)
	q.run.Paging = true
	var last *exec.Cursor
	taken, bytes := 0, 0
	lastID := "" // as its document has it
	for row, err := range q.rows(ctx) {
		if err != nil {
			return "", fmt.Errorf("query: %w", err)
		}
		enough := q.pageBytes > 0 && bytes >= q.pageBytes && last != nil && last.Exact
		if taken == limit || enough {
			if last == nil {
				return "", nil
			}
			if !last.Exact {
				return "", fmt.Errorf("%w: the page ends at %q, one of whose values is too long to go on from: order by something shorter", ErrQuery, lastID)
			}
			return last.Text(&q.q), nil
		}
		taken, last = taken+1, row.Cursor
		if err := take(row); err != nil {
			return "", err
		}
		if bytes += len(row.JSON); row.Document != nil {
			bytes += len(row.Document.JSON())
		}
		if last != nil {
			if lastID = last.ID; row.Document != nil {
				lastID = row.Document.ID()
			}
		}
	}
	return "", nil
}

// Explain runs the query to its end and reports how it was answered.
func (q Query[T]) Explain(ctx context.Context) (Explanation, error) { return q.def.explain(ctx) }

func (q definition) explain(ctx context.Context) (Explanation, error) {
	q, err := q.complete()
	if err != nil {
		return Explanation{}, err
	}
	r, err := q.via.startRun(ctx, &q.q, q.run)
	if err != nil {
		return Explanation{}, fmt.Errorf("explain: %w", err)
	}
	defer r.Close()
	for {
		row, err := r.Next(ctx)
		if err != nil {
			return Explanation{}, fmt.Errorf("explain: %w", err)
		}
		if row == nil {
			return explain(r, &q.q), nil
		}
	}
}

// startRun implements access.
func (db *DB) startRun(ctx context.Context, q *query.Query, o exec.Options) (_ *exec.Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	begun := beginMoment(db)
	c, snapshot := db.indexes.View(db.env.Engine.Snapshot)
	at := endMoment(db, begun)
	started := false
	defer func() {
		if !started {
			err = errors.Join(err, snapshot.Close()) // also after a panic
		}
	}()
	r, err := exec.Start(ctx, exec.Database{Env: db.env, Docs: db.docs, Snapshot: snapshot, Owned: snapshot, Catalog: c, Moment: at.at, DueFrom: at.dueFrom}, q, exec.Overlay{}, o)
	if err != nil {
		return nil, err
	}
	started = true
	r.Closed = func(r *exec.Run) { db.suggestIndex(r, q.From) }
	db.env.Register(r)
	return r, nil
}

// startRun implements access. The range that the query looks at joins the read set.
func (t *Tx) startRun(ctx context.Context, q *query.Query, o exec.Options) (*exec.Run, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	overlay := exec.Overlay{Enter: t.enter, Exit: t.exit, Read: t.lookup}
	overlay.Written, overlay.Own = t.written(q.From)
	r, err := exec.Start(ctx, exec.Database{Env: t.db.env, Docs: t.db.docs, Snapshot: t.snapshot, Catalog: t.catalog, Moment: t.moment.at, DueFrom: t.moment.dueFrom}, q, overlay, o)
	if err != nil {
		return nil, err
	}
	if t.writable {
		note := &rangeRead{prefix: r.Prefix()}
		note.low, note.high = r.Bounds()
		if q.From != "" {
			note.collection, note.named = format.CollectionKey(q.From), q.From
		}
		t.reads.walks = append(t.reads.walks, note)
	}
	r.Closed = func(r *exec.Run) {
		t.unregister(r)
		t.db.suggestIndex(r, q.From)
	}
	t.register(r)
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
		if err == nil && (collection == "" || doc.IsIn(format.CollectionKey(collection))) {
			own = append(own, doc)
		}
	}
	slices.SortFunc(own, func(a, b *docs.Document) int { return strings.Compare(a.FoldedID(), b.FoldedID()) })
	return hidden, own
}
