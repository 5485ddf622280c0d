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

// Matcher returns what tests whether documents satisfy the condition of the query. A
// transaction that changes what a query found before it began asks it about each document
// that it reads again, as Patch and Delete do. The condition is compiled once.
//
// Skip, Limit, After and Select make no difference. A query that groups is ErrUsage: its
// condition is not one of documents only. A document satisfies the condition of a query of a computed
// index that has an entry in the index of which it is true; if the index has a reduce, Matcher returns ErrQuery.
func (q Query[T]) Matcher() (*Matcher, error) {
	filter, err := q.def.Filter()
	if err != nil {
		return nil, err
	}
	return &Matcher{filter}, nil
}

// Match reports whether a document is in the collection of the query and satisfies its
// condition, as it is in doc. It reads nothing else: of a condition that asks for documents which are loaded, as in
// load(Customer).City = 'Bern', it returns ErrQuery. MatchIn decides that.
func (m *Matcher) Match(ctx context.Context, doc *Document) (bool, error) {
	return m.filter.Match(ctx, (*docs.Document)(doc))
}

// MatchIn is Match in a transaction, which reads the documents that the condition loads. They join the read set: the transaction
// is in conflict if another one changes them.
func (m *Matcher) MatchIn(ctx context.Context, tx *Tx, doc *Document) (bool, error) {
	return m.filter.MatchIn(ctx, (*docs.Document)(doc), tx.inner().Loads(ctx))
}
