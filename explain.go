package jay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// Explanation reports how a query was answered.
type Explanation struct {
	Query      string        `json:"query"`                // as RQL
	Plan       []string      `json:"plan"`                 // the steps, first to last
	Keys       int64         `json:"keysExamined"`         // keys of indexes, including those examined for planning
	Documents  int64         `json:"documentsRead"`        //
	Returned   int64         `json:"returned"`             //
	Elapsed    time.Duration `json:"elapsedNs"`            //
	Suggestion *Index        `json:"suggestion,omitempty"` // an index that would help
	Collection string        `json:"collection,omitempty"`
}

// String returns the explanation as readable text.
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
	return exec.CreateCommand(e.Collection, e.Suggestion)
}

// Explain runs the query to its end and reports how it was answered.
func (q Query[T]) Explain(ctx context.Context) (Explanation, error) {
	report, run, err := q.def.Explain(ctx)
	if err != nil {
		return Explanation{}, err
	}
	return explanation(report, &run), nil
}

// explanation reports how a query was answered.
func explanation(r exec.Report, q *query.Query) Explanation {
	return Explanation{
		Query:      q.String(),
		Plan:       r.Steps,
		Keys:       r.Keys,
		Documents:  r.Documents,
		Returned:   r.Returned,
		Elapsed:    r.Elapsed,
		Suggestion: r.Suggestion,
		Collection: q.From,
	}
}

// Matcher tests single documents against the condition of a query: Query.Matcher makes it.
// It is not safe for concurrent use.
type Matcher struct{ filter *exec.Filter }

// Matcher returns a Matcher, which tests whether documents satisfy the condition of the query. Use it in a
// transaction that changes documents which a query found earlier: read each document again and test it, as
// Patch and Delete do. The condition is compiled once.
//
// Matcher ignores Skip, Limit, After and Select. It returns ErrUsage for a query with groups, whose condition
// does not apply to documents alone. For a query of a computed index, a document matches if the condition is
// true for one of its entries in the index; if the index has a reduce, Matcher returns ErrQuery.
func (q Query[T]) Matcher() (*Matcher, error) {
	filter, err := q.def.Filter()
	if err != nil {
		return nil, err
	}
	return &Matcher{filter}, nil
}

// Match reports whether doc is in the collection of the query and satisfies its condition. Match reads no other
// document: it returns ErrQuery for a condition that loads documents, such as load(Customer).City = 'Bern'. Use
// MatchIn for such a condition.
func (m *Matcher) Match(ctx context.Context, doc *Document) (bool, error) {
	return m.filter.Match(ctx, (*docs.Document)(doc))
}

// MatchIn is Match in a transaction, which reads the documents that the condition loads. These documents join
// the read set: the transaction conflicts with another transaction that changes them.
func (m *Matcher) MatchIn(ctx context.Context, tx *Tx, doc *Document) (bool, error) {
	return m.filter.MatchIn(ctx, (*docs.Document)(doc), tx.inner().Loads(ctx))
}
