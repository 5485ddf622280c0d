package exec

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// sorted is a document on its way through a sort.
type sorted struct {
	key   []byte
	exact bool
	doc   *docs.Document
}

// sortedDocuments is a heap of the documents that come first, the last of them
// on top.
type sortedDocuments struct {
	r       *Run
	items   []sorted
	bytes   int
	paid    int  // the most that bytes was
	inexact bool // one of the items has a key that is cut
}

// compare orders two documents: by their keys, then by ID.
func (r *Run) compare(a, b *sorted) int {
	if !r.pace.Spend(len(a.key)) {
		return 0 // in any order: the answers are no longer wanted
	}
	c := bytes.Compare(a.key, b.key)
	if !a.exact || !b.exact {
		r.pace.Spend(len(a.doc.JSON()) + len(b.doc.JSON()))
		metaA, metaB := docMeta{env: r.env, scorer: r.meta.scorer}, docMeta{env: r.env, scorer: r.meta.scorer}
		metaA.look(a.doc)
		metaB.look(b.doc)
		c = r.sorter.Compare(query.Doc{Body: a.doc.JSON(), Meta: &metaA}, query.Doc{Body: b.doc.JSON(), Meta: &metaB})
	}
	if c == 0 {
		c = strings.Compare(a.doc.FoldedID(), b.doc.FoldedID())
		if r.tiesDescend() {
			c = -c
		}
	}
	return c
}

// tiesDescend reports whether equal documents come in descending order of IDs: in
// the direction of the last field of the order.
func (r *Run) tiesDescend() bool { return r.q.OrderBy[len(r.q.OrderBy)-1].Descending }

func (h *sortedDocuments) Len() int { return len(h.items) }

func (h *sortedDocuments) Less(i, j int) bool { return h.r.compare(&h.items[i], &h.items[j]) > 0 }

func (h *sortedDocuments) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }

func (h *sortedDocuments) Push(x any) { h.items = append(h.items, x.(sorted)) }

func (h *sortedDocuments) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

// sortBound is what a document must come before, or be equal to, to be among the first answers. The zero value bounds nothing.
type sortBound struct {
	key   []byte
	exact bool

	scratch []byte // of the run
}

// isBefore reports whether the bound comes before a document, by the keys of both. key is scratch. While the bound stays as it is,
// it is safe for concurrent use with a sorter for each goroutine.
func (b *sortBound) isBefore(sorter *query.Sorter, key *[]byte, doc query.Doc) bool {
	if !b.exact {
		return false
	}
	var exact bool
	*key, exact = sorter.AppendKey((*key)[:0], doc)
	return exact && bytes.Compare(b.key, *key) < 0
}

// size is about how much memory an item takes.
func (s *sorted) size() int { return len(s.key) + len(s.doc.JSON()) + len(s.doc.FoldedID()) + 200 }

// sortedAnswers sorts the documents: all of them, or with a limit only as many
// as can be answers.
func (r *Run) sortedAnswers(ctx context.Context) (answers, error) {
	r.stats.sorted = true
	keep := -1
	if r.left >= 0 && r.distinct == nil {
		keep = r.skip + r.left
	}
	h := &sortedDocuments{r: r}
	likely := r.likely()
	if keep > 0 && r.meta.scorer == nil { // which looks at documents in memory
		r.bound = &sortBound{}
		defer func() { r.bound = nil }()
	}
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
		if r.bound != nil && len(h.items) == keep {
			r.bound.key, r.bound.exact = h.items[0].key, h.items[0].exact
		}
		if likely != nil && len(h.items) == keep {
			if err := likely.bound(h.items[0].key); err != nil {
				return nil, err
			}
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
		row := &Row{Document: item.doc, Cursor: &Cursor{Key: item.key, ID: item.doc.FoldedID(), Scores: r.scoring.bytes(), Likes: r.likes.resolved, Exact: item.exact}}
		return r.project(row)
	}, nil
}

// likely returns the source if its candidates end when enough answers are found, or nil.
func (r *Run) likely() *indexSource {
	if len(r.plan.Access) == 1 && r.plan.Access[0].Answer != nil && r.plan.Access[0].Answer.Likely {
		source, _ := r.source.(*indexSource)
		return source
	}
	return nil
}

// merged returns the function that yields the answers of the snapshot, which come in
// order, and among them the transaction's own.
func (r *Run) merged() (next func(context.Context) (*docs.Document, error), err error) {
	keyed := func(doc *docs.Document) *sorted {
		s := &sorted{doc: doc}
		s.key, s.exact = r.sorter.AppendKey(nil, r.doc(doc))
		return s
	}
	var own []*sorted
	for {
		doc, err := r.nextOwn()
		if err != nil {
			return nil, err
		}
		if doc == nil {
			break
		}
		own = append(own, keyed(doc))
	}
	slices.SortFunc(own, r.compare)
	if err := r.pace.Err(); err != nil {
		return nil, err
	}
	var stored *sorted // the next of the snapshot
	end := false       // there is none
	return func(ctx context.Context) (*docs.Document, error) {
		if stored == nil && !end {
			doc, err := r.nextStored(ctx)
			if err != nil {
				return nil, err
			}
			if end = doc == nil; !end {
				stored = keyed(doc)
			}
		}
		if len(own) > 0 && (stored == nil || r.compare(own[0], stored) < 0) {
			doc := own[0].doc
			own = own[1:]
			return doc, r.pace.Err()
		}
		if stored == nil {
			return nil, r.pace.Err()
		}
		doc := stored.doc
		stored = nil
		return doc, r.pace.Err()
	}, nil
}

// shorten drops the last documents, of a page that ends before them by its bytes, until the
// others have at most limit bytes. It reports whether they have. The caller must find a
// document behind the page, and an exact cursor to go on from: the last one that is kept is
// not part of the page.
func (h *sortedDocuments) shorten(limit int) bool {
	r := h.r
	if r.options.PageBytes == 0 || r.skip > 0 || h.inexact || r.q.Projects() {
		return false
	}
	page := 0
	for i := range h.items {
		page += len(h.items[i].doc.JSON())
	}
	for h.bytes > limit && len(h.items) > 2 {
		last := h.items[0]
		next := h.items[1] // the one before the last
		if len(h.items) > 2 && h.Less(2, 1) {
			next = h.items[2]
		}
		page -= len(last.doc.JSON())
		if page-len(next.doc.JSON()) < r.options.PageBytes {
			break
		}
		heap.Pop(h)
		h.bytes -= last.size()
	}
	return h.bytes <= limit || len(h.items) <= 2 // a page has one document, and the next one shows that it is not the last
}

// add takes a document in if it comes after the cursor and is among the first keep;
// below 0 all are kept.
func (h *sortedDocuments) add(doc *docs.Document, keep int) error {
	r := h.r
	item := sorted{doc: doc}
	item.key, item.exact = r.sorter.AppendKey(nil, r.doc(doc))
	if r.options.After != nil && !r.isAfter(&Cursor{Key: item.key, ID: doc.FoldedID()}) {
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
	h.inexact = h.inexact || !item.exact
	if limit := r.env.MaxQueryBytes; h.bytes > limit && !(keep >= 0 && h.shorten(limit)) {
		return fmt.Errorf("%w: %w (Options.MaxQueryBytes): use a limit, or an index on what it is ordered by%s", errs.ErrQuery, &query.LimitError{What: "bytes to be sorted", Limit: limit, Actual: h.bytes}, r.suggestionText())
	}
	paid := h.paid
	h.paid = max(paid, h.bytes)
	return r.payer.Pay(h.paid - paid)
}
