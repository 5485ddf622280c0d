package jay

import (
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay/query"
)

// Explanation reports how a query was answered.
type Explanation struct {
	Query      string        `json:"query"`                // as RQL
	Plan       []string      `json:"plan"`                 // the steps, first to last
	Keys       int64         `json:"keysExamined"`         // of indexes, those looked at to plan included
	Documents  int64         `json:"documentsRead"`        //
	Returned   int64         `json:"returned"`             //
	Elapsed    time.Duration `json:"elapsedNs"`            //
	Suggestion *Index        `json:"suggestion,omitempty"` // an index that would help
	Collection string        `json:"collection,omitempty"`
}

// String returns the explanation for people.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, e.Query)
	for i, step := range e.Plan {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, step)
	}
	fmt.Fprintf(&b, "%d index keys examined, %d documents read, %d returned, %v", e.Keys, e.Documents, e.Returned, e.Elapsed.Round(time.Microsecond))
	if e.Suggestion != nil {
		fmt.Fprintf(&b, "\nhint: %s", e.command())
	}
	return b.String()
}

// command returns the command that makes the suggested index.
func (e Explanation) command() string {
	return suggestion(e.Collection, e.Suggestion)
}

// explain reports how the run went.
func (r *run) explain() Explanation {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Explanation{
		Query:      r.q.String(),
		Plan:       r.steps(),
		Keys:       r.stats.keys,
		Documents:  r.stats.documents,
		Returned:   r.stats.returned,
		Elapsed:    time.Since(r.started),
		Collection: r.q.From,
	}
	e.Suggestion = r.suggestion()
	return e
}

// steps describes the plan and how it was carried out.
func (r *run) steps() []string {
	pl := r.plan
	var steps []string
	what := "all documents"
	if r.q.From != "" {
		what = r.q.From
	}
	switch {
	case pl.IDsOnly:
		steps = append(steps, fmt.Sprintf("look up %d documents by ID", len(pl.IDs)))
	case len(pl.Access) > 1:
		steps = append(steps, "union of")
		for _, a := range pl.Access {
			steps = append(steps, "   "+a.String())
		}
	case len(pl.Access) == 1:
		step := pl.Access[0].String()
		if pl.Reverse {
			step += ", backwards"
		}
		steps = append(steps, step)
	case pl.Prefix != "":
		steps = append(steps, fmt.Sprintf("scan %s with IDs from %q", what, pl.Prefix))
	default:
		steps = append(steps, "scan "+what)
	}
	if pl.Also != nil {
		steps = append(steps, "keep what is in "+pl.Also.String())
	}
	switch {
	case r.stats.ends:
		steps = append(steps, "take the ends of the range, read no documents")
	case r.stats.counted:
		steps = append(steps, "count entries, read no documents")
	case r.covers != nil && r.stats.untold > 0:
		steps = append(steps, fmt.Sprintf("answer from entries, and read the documents of %d that do not tell enough", r.stats.untold))
	case r.covers != nil:
		steps = append(steps, "answer from entries, read no documents")
	case len(pl.Access) > 0:
		steps = append(steps, "read documents")
	}
	if r.matcher != nil {
		residual := pl.Residual
		if len(r.own) > 0 {
			residual = r.q.Where
		}
		steps = append(steps, "filter: "+query.FormatCondition(residual))
	}
	if r.stats.sorted {
		steps = append(steps, "sort in memory"+topN(r))
	} else if len(r.q.OrderBy) > 0 && pl.Ordered {
		steps = append(steps, "already in order")
	}
	if isGrouped(r.q) && !r.stats.ends {
		steps = append(steps, "group in memory")
	}
	return steps
}

func topN(r *run) string {
	n := r.q.Offset + r.q.Limit
	if !r.q.HasLimit || n < 0 || isGrouped(r.q) || r.q.Distinct {
		return ""
	}
	return fmt.Sprintf(", keeping the first %d", n)
}
