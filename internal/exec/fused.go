package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// fused is an answer on its way through an order by reciprocal ranks. Its document is read again when it is its turn, as all answers have ranks, and few are
// given.
type fused struct {
	id  string // folded
	sum float64
}

// fusion answers a query whose order is by reciprocal ranks.
type fusion struct{ r *Run }

// answers ranks all answers, and orders them by the ranks.
func (f fusion) answers(ctx context.Context) (answers, error) {
	r := f.r
	own := make(map[string]*docs.Document, len(r.overlay.Own))
	for _, doc := range r.overlay.Own {
		own[doc.FoldedID()] = doc
	}
	var list []fused
	var numbers []float64
	bytes := 0
	err := r.each(ctx, func(doc query.Doc) error {
		r.meta.body = doc.Body
		list = append(list, fused{id: string(r.meta.folded)})
		numbers = r.sorter.AppendNumbers(numbers, doc)
		size := len(r.meta.folded) + 40 + 24*len(r.q.OrderBy)
		if bytes += size; bytes > r.env.MaxQueryBytes {
			return fmt.Errorf("%w: %w (Options.MaxQueryBytes): rank.fuse() ranks all answers: narrow the condition", errs.ErrQuery, &query.LimitError{What: "bytes of ranks", Limit: r.env.MaxQueryBytes, Actual: bytes})
		}
		return cmp.Or(r.payer.Pay(size), r.pace.Err())
	})
	if err != nil {
		return nil, err
	}
	for i, sum := range query.FuseRanks(r.q.OrderBy, numbers) {
		list[i].sum = sum
	}
	slices.SortFunc(list, func(a, b fused) int { return cmp.Or(cmp.Compare(b.sum, a.sum), strings.Compare(a.id, b.id)) })
	if r.distinct == nil { // those that are skipped need not be read
		n := min(r.skip, len(list))
		list, r.skip = list[n:], 0
	}
	return func(ctx context.Context) (*Row, error) {
		if len(list) == 0 {
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id := list[0].id
		list = list[1:]
		doc := own[id]
		if doc == nil {
			var err error
			if doc, err = r.fetch(id, nil); err != nil {
				return nil, fmt.Errorf("document %q: %w", id, err)
			}
		}
		return r.project(&Row{Document: doc})
	}, nil
}
