package checks

import "github.com/jaydb/jay/internal/knobs"

// SetChangeBatch makes Query.Patch, Query.Delete and what works like them write fewer
// documents at a time, each batch with a sync of its own, and returns what undoes that.
func SetChangeBatch(documents int) (restore func()) {
	restore = SetSmallBatches(documents)
	knobs.LazyBatches = 1
	return restore
}

// SetSmallBatches is SetChangeBatch with syncs that batches share.
func SetSmallBatches(documents int) (restore func()) {
	old, oldBatches := knobs.ChangeDocuments, knobs.LazyBatches
	knobs.ChangeDocuments = documents
	return func() { knobs.ChangeDocuments, knobs.LazyBatches = old, oldBatches }
}
