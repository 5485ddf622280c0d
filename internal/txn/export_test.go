package txn

import "github.com/jaydb/jay/internal/horizon"

// HoldOf returns the hold of a transaction on records of deletions, to be replaced.
func HoldOf(t *Tx) **horizon.Hold { return &t.deletes }
