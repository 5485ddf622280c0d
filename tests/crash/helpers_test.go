// Package crash kills processes and cuts the power under them: what was
// acknowledged must be there, no number may come twice, and nothing that a reader
// saw may be gone.
package crash_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	open   = jaytest.Open
	onDisk = jaytest.OnDisk
	put    = jaytest.Put
	store  = jaytest.Store
	body   = jaytest.Body
	must   = jaytest.Must
)

// closeDB closes a database in which all must agree, and its numbers with what it holds: after each
// crash, and after each run.
func closeDB(t testing.TB, db *jay.DB) {
	t.Helper()
	jaytest.Verify(t, db)
	jaytest.Close(t, db)
}
