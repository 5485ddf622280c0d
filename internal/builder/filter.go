package builder

import (
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
)

// Filter returns what tests documents against the condition of the query.
func (q Definition) Filter() (*exec.Filter, error) {
	err := q.Check()
	if err == nil && exec.IsGrouped(&q.Query) {
		err = fmt.Errorf("%w: a document matches no query that groups", ids.ErrUsage)
	}
	if err != nil {
		return nil, err
	}
	plain := q.Query
	plain.Select = nil // the filter would compile it
	db := q.Via.Database()
	if plain.Index == "" {
		return exec.NewLoadingFilter(db.Env, &plain)
	}
	c, err := db.Indexes.Load().KnownComputed(plain.Index, errs.ErrNoIndex)
	if err != nil {
		return nil, err
	}
	return exec.NewEntryFilter(db.Env, c.Declared, &plain)
}
