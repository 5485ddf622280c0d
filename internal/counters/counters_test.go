package counters_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/parts"
)

// Ensure that blocks of etags grow with their use, so that loads reserve few,
// and stay within what the documentation says a crash can cost.
func TestReserveEtags_Grows(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, step := range []struct{ used, ceiling uint64 }{
		{1, 1 + 65_536},
		{1 + 65_536, 1 + 65_536}, // reserved already
		{65_538, 65_538 + 65_538},
		{200_000, 400_000},
		{400_001, 400_001 + 262_144},
		{9_000_000, 9_000_000 + 262_144},
	} {
		if err := parts.Of(db).Reserved.ReserveEtags(context.Background(), step.used); err != nil {
			t.Fatal(err)
		}
		if got := parts.Of(db).Reserved.Etags(); got != step.ceiling {
			t.Errorf("etag %d reserves up to %d, want %d", step.used, got, step.ceiling)
		}
	}
}
