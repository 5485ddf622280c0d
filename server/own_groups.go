package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
)

// hasCursor reports whether the answers of a query follow one another by a cursor: groups
// and distinct rows do not.
func hasCursor(text string, given map[string]any) bool {
	q, err := query.Parse(text, given)
	if err != nil {
		return true // the error is that of the query
	}
	grouped := len(q.GroupBy) > 0 || q.Having != nil || slices.ContainsFunc(q.Select, func(c query.Column) bool { return c.Func != query.FuncNone })
	return !grouped && !q.IsDistinct()
}

// ownGroups answers groups or distinct rows: the first of them, and whether there are more.
func (c *call) ownGroups(q jay.Query[jay.Row], size int, ownLimit bool) error {
	if !ownLimit {
		q = q.Limit(size + 1)
	}
	start := time.Now()
	dst, n, more := []byte(`{"rows":[`), 0, false
	for row, err := range q.Iter(c.ctx) {
		if err != nil {
			return err
		}
		if n == size || len(dst) > pageBytes {
			more = true
			break
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendRow(dst, row); err != nil {
			return err
		}
		n++
	}
	dst = append(dst, ']')
	if more {
		dst = append(dst, `,"more":true`...)
	}
	return c.text(http.StatusOK, fmt.Appendf(dst, `,"elapsedNs":%d}`, time.Since(start).Nanoseconds()))
}
