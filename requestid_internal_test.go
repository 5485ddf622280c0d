package jay

// These tests look at the results of requests as they lie in storage, which nothing
// outside the package can see.

import (
	"bytes"
	"context"
	"os"
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
	db, err := OpenMemory(&Options{Rand: zeros{}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.NextIdentity(ctx, "users", RequestID("6e1f")); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	got := keysBetween(t, db, format.SpaceRequests, format.SpaceRequests)
	if !bytes.Contains(document, []byte(got)) {
		t.Errorf("docs/format.md does not hold this dump:\n%s", got)
	}
}
