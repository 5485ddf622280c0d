package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/jaydb/jay"
)

// ownGroups replies to a query without pages, for groups and distinct rows: with the first
// results, and whether there are more.
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
