package jay

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// sorted is a document on its way through a sort.
type sorted struct {
	key   []byte
	exact bool
	doc   *Document
}

// sortedDocuments is a heap of the documents that come first, the last of them
// on top.
type sortedDocuments struct {
	r     *run
	items []sorted
	bytes int
}

// compare orders two documents: by their keys, then by ID.
func (r *run) compare(a, b *sorted) int {
	if !r.pace.Spend(len(a.key)) {
		return 0 // in whatever order: none is wanted any more
	}
	c := bytes.Compare(a.key, b.key)
	if !a.exact || !b.exact {
		r.pace.Spend(len(a.doc.body) + len(b.doc.body))
		var metaA, metaB = docMeta{r.db, []byte(a.doc.foldedID), &a.doc.header}, docMeta{r.db, []byte(b.doc.foldedID), &b.doc.header}
		c = r.sorter.Compare(query.Doc{Body: a.doc.body, Meta: &metaA}, query.Doc{Body: b.doc.body, Meta: &metaB})
	}
	if c == 0 {
		c = strings.Compare(a.doc.foldedID, b.doc.foldedID)
		if r.tiesDescend() {
			c = -c
		}
	}
	return c
}

// tiesDescend tells in which direction of IDs equal documents come: in that of
// the last field of the order.
func (r *run) tiesDescend() bool { return r.q.OrderBy[len(r.q.OrderBy)-1].Descending }

func (h *sortedDocuments) Len() int           { return len(h.items) }
func (h *sortedDocuments) Less(i, j int) bool { return h.r.compare(&h.items[i], &h.items[j]) > 0 }
func (h *sortedDocuments) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *sortedDocuments) Push(x any)         { h.items = append(h.items, x.(sorted)) }
func (h *sortedDocuments) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

// size is what an item needs of memory, about.
func (s *sorted) size() int { return len(s.key) + len(s.doc.body) + len(s.doc.foldedID) + 200 }

// sortedAnswers sorts the documents: all of them, or with a limit only as many
// as can be answers.
func (r *run) sortedAnswers(ctx context.Context) (answers, error) {
	r.stats.sorted = true
	keep := -1
	if r.left >= 0 && r.distinct == nil {
		keep = r.skip + r.left
	}
	h := &sortedDocuments{r: r}
	for keep != 0 {
		doc, err := r.nextDocument(ctx)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			break
		}
		if err := cmp.Or(h.add(doc, keep), r.pace.Err()); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(h.items, func(a, b sorted) int { return r.compare(&a, &b) })
	if err := r.pace.Err(); err != nil {
		return nil, err
	}

	return func(context.Context) (*Row, error) {
		if len(h.items) == 0 {
			return nil, nil
		}
		item := h.items[0]
		h.items = h.items[1:]
		row := &Row{Document: item.doc, cursor: &cursor{Key: item.key, ID: item.doc.foldedID, exact: item.exact}}
		return r.project(row)
	}, nil
}

// add takes a document in if it comes behind the cursor and among the first
// keep; below 0 all are kept.
func (h *sortedDocuments) add(doc *Document, keep int) error {
	r := h.r
	item := sorted{doc: doc}
	item.key, item.exact = r.sorter.AppendKey(nil, r.doc(doc))
	if r.options.after != nil && !r.isAfter(&cursor{Key: item.key, ID: doc.foldedID}) {
		return nil
	}
	if keep >= 0 && len(h.items) == keep {
		if r.compare(&item, &h.items[0]) >= 0 {
			return nil
		}
		h.bytes += item.size() - h.items[0].size()
		h.items[0] = item
		heap.Fix(h, 0)
	} else {
		h.bytes += item.size()
		if keep >= 0 {
			heap.Push(h, item)
		} else {
			h.items = append(h.items, item)
		}
	}
	if limit := r.db.env.MaxQueryBytes; h.bytes > limit {
		return fmt.Errorf("%w: sorting needs more than %d bytes (Options.MaxQueryBytes): use a limit, or an index on what it is ordered by%s", ErrQuery, limit, r.suggestionText())
	}
	return nil
}

// groupAnswers gathers the documents into groups.
func (r *run) groupAnswers(ctx context.Context) (answers, error) {
	if rows, err := r.countedGroup(ctx); rows != nil || err != nil {
		return rows, err
	}
	if rows, err := r.extremes(); rows != nil || err != nil {
		return rows, err
	}
	limit := r.db.env.MaxQueryBytes
	groups, err := query.NewGroups(r.q.GroupBy, r.q.Select, limit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	groups.SetPace(&r.pace)
	err = r.each(ctx, func(doc query.Doc) error {
		err := groups.Add(doc)
		if err == nil || err == r.pace.Err() {
			return err
		}
		return fmt.Errorf("%w: document %q: %w", ErrQuery, doc.Meta.AppendMeta(nil, query.MetaID), err)
	})
	if err != nil {
		return nil, err
	}
	if len(r.q.OrderBy) == 0 {
		return r.rowsOf(groups), nil
	}
	var rows [][]query.Value
	for row := range groups.Rows() {
		if rows = append(rows, row); !r.pace.Spend(groupWork) {
			return nil, r.pace.Err()
		}
	}
	r.stats.sorted = true
	sorter, err := query.NewRowSorter(r.q.OrderBy, r.q.Select)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	slices.SortStableFunc(rows, func(a, b []query.Value) int {
		if !r.pace.Spend(groupWork) {
			return 0
		}
		return sorter.Compare(a, b)
	})
	if err := r.pace.Err(); err != nil {
		return nil, err
	}
	return func(context.Context) (*Row, error) {
		if len(rows) == 0 {
			return nil, nil
		}
		row := rows[0]
		rows = rows[1:]
		return &Row{JSON: query.AppendRow(nil, r.q.Select, row)}, nil
	}, nil
}

// groupWork is what a row of a group counts for where its size is not looked at.
const groupWork = 1 << 10

// rowsOf makes the rows of groups, each when its turn comes, as they may be
// larger than what they are made of.
func (r *run) rowsOf(groups *query.Groups) answers {
	i := 0
	return func(context.Context) (*Row, error) {
		if i == groups.Len() {
			return nil, nil
		}
		i++
		return &Row{JSON: query.AppendRow(nil, r.q.Select, groups.Row(i-1))}, nil
	}
}

// countedGroup answers "select count()" without making documents, or returns
// nil.
func (r *run) countedGroup(ctx context.Context) (answers, error) {
	if len(r.q.GroupBy) > 0 {
		return nil, nil
	}
	for _, c := range r.q.Select {
		if c.Func != query.FuncCount {
			return nil, nil
		}
	}
	n, err := r.countDocuments(ctx)
	if err != nil {
		return nil, err
	}
	row := make([]query.Value, len(r.q.Select))
	for i := range row {
		if row[i], err = query.NewValue(n); err != nil {
			return nil, err
		}
	}
	return r.oneRow(row), nil
}

// oneRow is the answer of a query that has one.
func (r *run) oneRow(row []query.Value) answers {
	done := false
	return func(context.Context) (*Row, error) {
		if done {
			return nil, nil
		}
		done = true
		return &Row{JSON: query.AppendRow(nil, r.q.Select, row)}, nil
	}
}

// extremes answers "select min(path), max(path)" from the ends of the one range
// of an index that has the path's values in order, or returns nil.
func (r *run) extremes() (answers, error) {
	s, ok := r.source.(*indexSource)
	if !ok || r.covers == nil || !r.plan.Counted || len(s.ranges) != 1 || !r.plan.Access[0].HasEnds(r.q) {
		return nil, nil
	}
	a := r.plan.Access[0]
	f := a.Index.Fields[a.Equal]
	row := make([]query.Value, len(r.q.Select))
	for i, c := range r.q.Select {
		var err error
		if row[i], err = s.extreme(a.Equal, (c.Func == query.FuncMin) != f.Descending); err != nil {
			return nil, err
		}
	}
	r.stats.ends = true
	return r.oneRow(row), nil
}

// cursor is a place in the order of a query's answers.
type cursor struct {
	Key   []byte `json:"k"` // what query.Sorter makes of the document
	ID    string `json:"i"` // folded
	Query []byte `json:"q"` // fingerprint of the query

	exact bool
}

// cursorOf returns the place of a document.
func (r *run) cursorOf(doc *Document) *cursor {
	key, exact := r.sorter.AppendKey(nil, r.doc(doc))
	return &cursor{Key: key, ID: doc.foldedID, exact: exact}
}

// isAfter tells whether c is behind the place where the answers begin.
func (r *run) isAfter(c *cursor) bool {
	order := bytes.Compare(c.Key, r.options.after.Key)
	if order == 0 {
		order = strings.Compare(c.ID, r.options.after.ID)
		if r.tiesDescend() {
			order = -order
		}
	}
	return order > 0
}

// indexKey returns the cursor's values as the plan's index has them behind
// those that are bound: the same, or turned round if it is walked backwards.
func (r *run) indexKey(c *cursor) []byte {
	var key []byte
	rest := c.Key
	for _, o := range r.q.OrderBy {
		part := rest
		rest, _ = query.SkipKey(rest)
		switch {
		case o.Field.Meta == query.MetaID: // the last: the ID stands behind the values
		case r.plan.Access[0].Binds(o.Field):
		case r.plan.Reverse:
			v, _ := query.DecodeKey(part)
			key, _ = query.AppendKey(key, v, !o.Descending)
		default:
			key = append(key, part[:len(part)-len(rest)]...)
		}
	}
	return key
}

// text returns the cursor as text.
func (c *cursor) text(q *query.Query) string {
	c.Query = fingerprint(q)
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // bytes and text always marshal
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// fingerprint tells queries apart by what decides the order of answers and
// which there are.
func fingerprint(q *query.Query) []byte {
	plain := *q
	plain.Limit, plain.HasLimit, plain.Offset, plain.Select, plain.Include = 0, false, 0, nil, nil
	sum := sha256.Sum256([]byte(plain.String()))
	return sum[:8]
}

// maxCursor bounds the text of a cursor.
const maxCursor = 64 << 10

func parseCursor(text string, q *query.Query) (*cursor, error) {
	bad := fmt.Errorf("%w: not a cursor of Page: %q", ErrQuery, errs.Shorten(text))
	if len(text) > maxCursor {
		return nil, bad
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, bad
	}
	c := &cursor{exact: true}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, bad
	}
	ordered := *q
	if len(ordered.OrderBy) == 0 {
		ordered.OrderBy = []query.Order{{Field: query.Field{Meta: query.MetaID}}}
	}
	if !bytes.Equal(c.Query, fingerprint(&ordered)) {
		return nil, fmt.Errorf("%w: the cursor comes from another query, or from this one in another order", ErrQuery)
	}
	rest, parts := c.Key, 0
	for ; len(rest) > 0; parts++ {
		var ok bool
		if rest, ok = query.SkipKey(rest); !ok {
			return nil, bad
		}
	}
	if parts != len(ordered.OrderBy) {
		return nil, bad
	}
	return c, nil
}
