package checks

import (
	"context"
	"time"

	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
)

// Times compares the entries of what is due with the documents.
func Times(db any) error { return expiry.Check(parts.Of(db).Env.Engine) }

// NoSweeper keeps databases that are opened from then on from sweeping in the
// background, and returns what undoes that.
func NoSweeper() (restore func()) {
	was := knobs.NoSweeper
	knobs.NoSweeper = true
	return func() { knobs.NoSweeper = was }
}

// OnSweepBatch has fn called before each transaction of a sweep, and returns what undoes
// that. No database may be open.
func OnSweepBatch(fn func(ctx context.Context)) (restore func()) {
	expiry.OnBatch = fn
	return func() { expiry.OnBatch = nil }
}

// SetSweepBatches makes a sweep delete and refresh so many documents at a time, and so
// many times between two syncs, and returns what undoes that. No database may be open.
func SetSweepBatches(documents, batches int) (restore func()) {
	deletions, refreshes, round := expiry.BatchDeletions, expiry.BatchRefreshes, expiry.RoundBatches
	expiry.BatchDeletions, expiry.BatchRefreshes, expiry.RoundBatches = documents, documents, batches
	return func() {
		expiry.BatchDeletions, expiry.BatchRefreshes, expiry.RoundBatches = deletions, refreshes, round
	}
}

// SetSweepInterval bounds the sleep of the sweepers' workers, and returns what undoes that. No
// database may be open.
func SetSweepInterval(longest time.Duration) (restore func()) {
	old := expiry.LookInterval
	expiry.LookInterval = longest
	return func() { expiry.LookInterval = old }
}
