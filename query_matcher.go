package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exec"
)

// Matcher tests single documents against the condition of a query: Query.Matcher makes it.
// It is not safe for concurrent use.
type Matcher struct{ filter *exec.Filter }

// Matcher returns what tests whether documents satisfy the condition of the query. A
// transaction that changes what a query found before it began asks it about each document
// that it reads again, as Patch and Delete do. The condition is compiled once.
//
// Skip, Limit, After and Select make no difference. A query that groups is ErrUsage: its
// condition is not one of documents only.
func (q Query[T]) Matcher() (*Matcher, error) { return q.def.matcher() }

func (q definition) matcher() (*Matcher, error) {
	err := q.check()
	if err == nil && exec.IsGrouped(&q.q) {
		err = fmt.Errorf("%w: a document matches no query that groups", ErrUsage)
	}
	if err != nil {
		return nil, err
	}
	plain := q.q
	plain.Select = nil // the filter would compile it
	filter, err := exec.NewFilter(q.via.database().env, &plain)
	if err != nil {
		return nil, err
	}
	return &Matcher{filter}, nil
}

// Match reports whether a document is in the collection of the query and satisfies its
// condition, as it is in doc. It reads nothing else.
func (m *Matcher) Match(ctx context.Context, doc *Document) (bool, error) {
	return m.filter.Match(ctx, (*docs.Document)(doc))
}
