package jay

// These tests look at the results of requests as they lie in storage, which nothing
// outside the package can see.

import (
	"context"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/format"
)

// RequestKeys returns how many keys the results of requests have.
func RequestKeys(t testing.TB, db *DB) int {
	return strings.Count(keysBetween(t, db, format.SpaceRequests, format.SpaceRequests), "\n")
}

// Ensure that docs/format.md holds the bytes that results of requests have.
func TestRequestID_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := dumped(t)
	defer db.Close()
	if _, err := db.NextIdentity(ctx, "users", RequestID("6e1f")); err != nil {
		t.Fatal(err)
	}
	inFormat(t, keysBetween(t, db, format.SpaceRequests, format.SpaceRequests))
}
