package own

import "github.com/jaydb/jay/server/internal/serve"

// This file has the endpoints of Jay's own API, beyond RavenDB's protocol, under
// /jay/v1/databases/{db}: queries with cursors, indexes, the report on IDs, figures, and
// changes as events. The studio is built on it.

// Bounds of a page.
const (
	defaultPageSize = 100
	maxPageSize     = 1000
	pageBytes       = 4 << 20 // after so many bytes a page ends early
)

// checkPageSize returns an error for a page size out of bounds.
func checkPageSize(n int) error {
	if n < 1 || n > maxPageSize {
		return serve.BadRequest("pageSize must be between 1 and %d, not %d", maxPageSize, n)
	}
	return nil
}
