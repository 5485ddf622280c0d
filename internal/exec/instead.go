package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/budget"
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
	progress

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
	r.instead.after = int64(max(1, plan.EarlyLookUps/4))
	r.instead.wanted = int64(r.skip + r.left)
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

// give notes an answer, so that it does not come again. The plan may change.
func (c *instead) give(sorter *query.Sorter, payer *budget.Payer, doc query.Doc, folded string) error {
	if c.given != nil {
		c.given[folded] = struct{}{}
		return payer.Pay(len(folded) + 48)
	}
	c.last.Key, _ = sorter.AppendKey(c.last.Key[:0], doc)
	c.last.ID = folded
	return nil
}

// spend returns errSpent if the other plan is to answer from now on.
func (r *Run) spend() (err error) {
	c := &r.instead
	if c.after == 0 || c.looked < c.after {
		return nil
	}
	left := int64(r.skip + r.left)
	if !r.plan.HasSizes() {
		if after := c.putOff(c.looked, left); after > 0 {
			c.after = after
			return nil
		}
	}
	known := r.plan.Keys
	c.plan, c.after, err = r.plan.Instead(c.looked, c.wanted-left)
	if r.stats.keys += int64(r.plan.Keys - known); c.plan == nil || err != nil {
		return err
	}
	return errSpent
}

// errBetter ends the walk of a plan that another one replaces.
var errBetter = errors.New("jay: another plan costs less")

// unweighed is what a run keeps until its plan has been compared with the others, which happens when it turns out to have many
// candidates.
type unweighed struct {
	waits  bool                // it has not been compared
	ids    []byte              // of the candidates so far, folded, each with a 00 after it
	count  int                 // of them
	better *plan.Plan          // what replaces it
	met    map[string]struct{} // candidates of the plan that was replaced, which the other one must pass over
}

// maxUnweighed is how many candidates are met, answers of entries included, before a plan is kept without a comparison: then
// few of them are looked up.
const maxUnweighed = 4096

// meet notes a candidate.
func (u *unweighed) meet(id []byte) {
	if u.waits {
		if u.ids == nil {
			u.ids = make([]byte, 0, 512) // for as many as most queries find
		}
		u.ids = append(append(u.ids, id...), 0)
		u.count++
	}
}

// weigh returns errBetter if another plan is to replace the present one.
func (r *Run) weigh() (err error) {
	u := &r.unweighed
	switch {
	case !u.waits:
		return nil
	case u.count > maxUnweighed:
		u.waits, u.ids = false, nil
		return nil
	case r.instead.looked < int64(plan.ScanFrom):
		return nil
	}
	u.waits = false
	known := r.plan.Keys
	u.better, err = r.plan.Weigh()
	r.stats.keys += int64(r.plan.Keys - known)
	if u.better == nil || err != nil {
		u.ids = nil
		return err
	}
	return errBetter
}

// nextCandidate returns the next document of the source that want accepts, nil at the end. If another plan replaces the source, it
// goes on with that: what has come before stays, in whatever it was put.
func (r *Run) nextCandidate(ctx context.Context, want func() docs.Filter) (*docs.Document, error) {
	doc, err := r.source.next(ctx, want())
	if err != errBetter {
		return doc, err
	}
	u := &r.unweighed
	u.met = make(map[string]struct{}, u.count)
	for rest := u.ids; len(rest) > 0; {
		id, behind, _ := bytes.Cut(rest, []byte{0})
		u.met[string(id)], rest = struct{}{}, behind
	}
	u.ids = nil
	text := givenUp(r.steps()[0], r.instead.looked)
	if err := r.reopen(ctx, u.better); err != nil {
		return nil, err
	}
	r.instead.text = text
	return r.source.next(ctx, want())
}

// givenUp says for Report which step gives way, and when.
func givenUp(step string, looked int64) string {
	return fmt.Sprintf("%s, given up after %d documents", step, looked)
}

// change lets the other plan answer, without what was given.
func (r *Run) change(ctx context.Context) error {
	c := &r.instead
	text := givenUp(r.steps()[0], r.instead.looked)
	old := r.plan
	if err := r.reopen(ctx, c.plan); err != nil {
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
	if err := r.reopen(ctx, old); err != nil {
		return err
	}
	r.stream(r.nextDocument)
	return nil
}

// reopen lets a plan answer instead of the one that has done so.
func (r *Run) reopen(ctx context.Context, pl *plan.Plan) error {
	err := r.source.close()
	r.plan, r.covers = pl, nil
	where := r.overlay.residual(r.q, r.plan)
	if err = errs.First(err, r.compile(where)); err != nil {
		return err
	}
	r.cover(where)
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
