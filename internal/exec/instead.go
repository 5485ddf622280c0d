package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/query"
)

// errSpent ends the search for the next answer when the plan has cost as much as another one would.
var errSpent = errors.New("jay: the plan has cost as much as another one")

// instead is what a run keeps to answer the rest of a query by another plan. A plan that may end early is begun without
// knowing how many candidates it needs for its answers.
type instead struct {
	looked int64 // documents looked up
	after  int64 // how many, before another plan is asked for; 0 for never

	plan  *plan.Plan          // the other one, once it is to answer
	given map[string]struct{} // answers so far, by folded ID, if they have no order
	last  Cursor              // the last answer, if they have; its Key is nil before the first
	text  string              // says what was given up, for Report
}

// mayChange lets another plan answer the rest, if the plan may end early and its end is not near.
func (r *Run) mayChange() error {
	few := r.matcher == nil && r.left >= 0 && r.left <= plan.EarlyLookUps-r.skip
	if !r.plan.MayEndEarly() || few || len(r.overlay.Own) > 0 || r.distinct != nil {
		return nil
	}
	r.instead.after = int64(plan.EarlyLookUps)
	if !r.plan.Ordered {
		r.instead.given = make(map[string]struct{})
		return nil
	}
	return r.openSorter()
}

// openSorter makes the sorter, if there is none.
func (r *Run) openSorter() (err error) {
	if r.sorter != nil {
		return nil
	}
	if r.sorter, err = query.NewSorter(r.q.OrderBy); err != nil {
		return fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	r.sorter.SetPace(&r.pace)
	return nil
}

// give notes an answer, so that it does not come again.
func (r *Run) give(doc *docs.Document) error {
	c := &r.instead
	switch {
	case c.after == 0:
	case c.given != nil:
		c.given[doc.FoldedID()] = struct{}{}
		return r.payer.Pay(len(doc.FoldedID()) + 48)
	default:
		c.last.Key, _ = r.sorter.AppendKey(c.last.Key[:0], r.doc(doc))
		c.last.ID = doc.FoldedID()
	}
	return nil
}

// spend returns errSpent if the other plan is to answer from now on.
func (r *Run) spend() (err error) {
	c := &r.instead
	if c.after == 0 || c.looked < c.after {
		return nil
	}
	known := r.plan.Keys
	c.plan, c.after, err = r.plan.Instead(c.looked)
	if r.stats.keys += int64(r.plan.Keys - known); c.plan == nil || err != nil {
		return err
	}
	return errSpent
}

// change lets the other plan answer, without what was given.
func (r *Run) change(ctx context.Context) error {
	c := &r.instead
	text := fmt.Sprintf("%s, given up after %d documents", r.steps()[0], c.looked)
	old, covers := r.plan, r.covers
	if err := r.reopen(ctx, c.plan, nil); err != nil {
		return err
	}
	c.after, c.text = 0, text
	if c.given != nil {
		r.stream(r.notGiven)
		return nil
	}
	if c.last.Key != nil {
		r.options.After = &c.last
	}
	var err error
	r.answers, err = r.sortedAnswers(ctx)
	if large := (*query.LimitError)(nil); !errors.As(err, &large) {
		return err
	}

	// The answers are larger than most documents, and too large to be sorted: the old plan goes on where it was.
	r.stats.sorted, c.text = false, ""
	if err := r.reopen(ctx, old, covers); err != nil {
		return err
	}
	r.stream(r.nextDocument)
	return nil
}

// reopen lets a plan answer instead of the one that has done so.
func (r *Run) reopen(ctx context.Context, pl *plan.Plan, covers []*plan.Cover) error {
	err := r.source.close()
	r.plan, r.covers = pl, covers
	if err = errs.First(err, r.compile(pl.Residual)); err != nil {
		return err
	}
	source, err := r.openSource(ctx)
	if err == nil {
		r.source = source
	}
	return err
}

// notGiven is nextDocument without what the plan before has given.
func (r *Run) notGiven(ctx context.Context) (*docs.Document, error) {
	for {
		doc, err := r.nextDocument(ctx)
		if doc == nil || err != nil {
			return nil, err
		}
		if _, found := r.instead.given[doc.FoldedID()]; !found {
			return doc, nil
		}
	}
}
