package exec

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/internal/tally"
	"github.com/jaydb/jay/query"
)

// Report is how a run went so far.
type Report struct {
	Steps                     []string // first to last
	Keys, Documents, Returned int64    // keys examined, documents read, answers
	Elapsed                   time.Duration
	Suggestion                *index.Index // an index that would help, or nil. The caller's.
}

// Report reports how the run went so far.
func (r *Run) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.index != nil && r.index.parts != nil {
		return r.index.report(r)
	}
	return Report{
		Steps:      r.steps(),
		Keys:       r.stats.keys,
		Documents:  r.stats.documents,
		Returned:   r.stats.returned,
		Elapsed:    time.Since(r.started),
		Suggestion: r.Suggestion(),
	}
}

// Explain is Report with what takes longer to find out: for how many documents expressions of the indexes fail. The run must be open.
func (r *Run) Explain(ctx context.Context) (Report, error) {
	report := r.Report()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return report, r.closed
	}
	for _, a := range (entryRun{r}).paths() {
		if !a.Index.Errors {
			continue
		}
		lo, hi := format.ErrorsOf(a.Index.Number)
		n, err := tally.Keys(ctx, r.snapshot, lo, hi)
		if err != nil {
			return report, err
		}
		if n > 0 {
			report.Steps = append(report.Steps, fmt.Sprintf("an expression of index %q fails for %d documents, which have no value there: see jay index errors", a.Index.Info.Name, n))
		}
	}
	return report, nil
}

// steps describes the plan and how it was carried out.
func (r *Run) steps() []string {
	if r.words != nil {
		return r.words.steps()
	}
	pl := r.plan
	var steps []string
	if r.index != nil {
		steps = r.index.steps(r)
	}
	what := "all documents"
	if r.q.From != "" {
		what = r.q.From
	}
	if r.instead.text != "" {
		steps = append(steps, r.instead.text)
	}
	switch {
	case pl.Kept != nil:
		steps = append(append(steps, keptSteps(pl.Kept, asked(pl))...), r.stats.uncoveredStep())
	case pl.Facets != nil:
		for i, c := range pl.Facets {
			steps = append(steps, fmt.Sprintf("facet %s: %s", r.q.Facets[i].Name, c)+asked(pl))
		}
		steps = append(steps, r.stats.uncoveredStep())
	case pl.IDsOnly:
		steps = append(steps, fmt.Sprintf("look up %d documents by ID", len(pl.IDs)))
	case len(pl.Access) > 1:
		steps = append(steps, "union of"+asked(pl))
		for _, a := range pl.Access {
			steps = append(steps, "   "+a.String())
		}
	case len(pl.Access) == 1:
		step := pl.Access[0].String()
		if pl.Reverse {
			step += ", backwards"
		}
		steps = append(steps, step+asked(pl))
	case pl.Changes != nil:
		step := pl.Changes.String() + " of " + what
		if pl.Reverse {
			step += ", newest first"
		}
		steps = append(steps, step)
	default:
		steps = append(steps, "scan "+what+r.idsScanned()+asked(pl))
	}
	if r.scoring.text != "" {
		steps = append(steps, r.scoring.text)
	}
	if pl.Intersect != nil {
		steps = append(steps, "keep what is in "+pl.Intersect.String())
	}
	if source, is := r.source.(*indexSource); is && source.told != "" {
		steps = append(steps, source.told)
	}
	switch {
	case r.stats.minMax:
		steps = append(steps, "take the ends of the range, read no documents")
	case r.stats.counted:
		steps = append(steps, "count entries, read no documents")
	case (r.covers != nil || pl.Along != nil) && r.stats.uncovered > 0:
		steps = append(steps, fmt.Sprintf("answer from entries, and read the documents of %d that are not covering", r.stats.uncovered))
	case r.covers != nil || pl.Along != nil:
		steps = append(steps, "answer from entries, read no documents")
	case len(pl.Access) > 0 || pl.Changes != nil:
		steps = append(steps, "read documents")
	}
	if along := pl.Along; along != nil && along.Streams && len(r.q.GroupBy) > 0 {
		steps = append(steps, "group along the index"+along.Skipped())
	} else if along != nil {
		steps = append(steps, "group entries in memory"+along.Skipped())
	}
	if r.fan != nil && pl.Kept == nil {
		steps = append(steps, "each element of "+r.q.Each.String())
	}
	if (r.matcher != nil || r.fan != nil && r.fan.matcher != nil) && pl.Kept == nil && pl.Facets == nil {
		steps = append(steps, "filter: "+query.FormatCondition(r.where))
	}
	if r.q.Fused {
		steps = append(steps, fmt.Sprintf("fuse the ranks of all answers in %d orders: the sum of 1 / (%d + rank)", len(r.q.OrderBy), query.RankOffset))
	} else if r.stats.sorted {
		steps = append(steps, "sort in memory"+topN(r.q)+lost(": ", pl))
	} else if len(r.q.OrderBy) > 0 && pl.Ordered {
		steps = append(steps, "already in order")
	}
	if len(r.q.Facets) > 0 && pl.Facets == nil {
		steps = append(steps, fmt.Sprintf("count for %d facets in memory", len(r.q.Facets)))
	} else if IsGrouped(r.q) && !r.stats.minMax && pl.Kept == nil && pl.Facets == nil && pl.Along == nil {
		steps = append(steps, "group in memory")
	}
	if r.q.Script != nil {
		steps = append(steps, "projected by JavaScript")
	}
	if len(pl.Estimates) == 2 {
		steps = append(steps, fmt.Sprintf("expected %s, and not %s", pl.Estimates[0], pl.Estimates[1]))
	}
	if r.q.Having != nil {
		steps = append(steps, "keep groups: "+query.FormatCondition(r.q.Having))
	}
	return steps
}

// uncoveredStep says how many documents were read beside what indexes have.
func (s *queryStats) uncoveredStep() string {
	if s.uncovered == 0 {
		return "read no documents"
	}
	return fmt.Sprintf("read the documents of %d entries that are not covering", s.uncovered)
}

// keptSteps say which index keeps what, and which ones have the rest.
func keptSteps(kept *plan.Kept, asked string) []string {
	steps := []string{kept.String() + asked}
	for _, b := range kept.Beside {
		steps = append(steps, "   beside it "+b.String())
	}
	return steps
}

// asked says that the query itself names the index, or asks for none.
func asked(pl *plan.Plan) string {
	if pl.Hinted {
		return ", as the query asks"
	}
	return ""
}

// idsScanned describes the range of IDs of a scan, and its direction.
func (r *Run) idsScanned() string {
	text := ""
	if r.plan.Prefix != "" {
		text = fmt.Sprintf(" with IDs from %q", r.plan.Prefix)
	}
	own := r.Walks()[0]
	low, high := own.Low, own.High
	switch {
	case low != "" && r.plan.High != "":
		text += fmt.Sprintf(" with IDs between %q and %q", low, high)
	case low != "":
		text += fmt.Sprintf(" with IDs above %q", low)
	case r.plan.High != "":
		text += fmt.Sprintf(" with IDs below %q", high)
	}
	if r.plan.Reverse {
		text += ", backwards"
	}
	return text
}

// lost adds why an index that has the fields of the order is not in it, if there is one.
func lost(separator string, pl *plan.Plan) string {
	if pl.Lost == "" {
		return ""
	}
	return separator + pl.Lost
}

func topN(q *query.Query) string {
	n := q.Offset + q.Limit
	if !q.HasLimit || n < 0 || IsGrouped(q) || q.IsDistinct() {
		return ""
	}
	return fmt.Sprintf(", keeping the first %d", n)
}
