package jay

// The checks of package checks by the names under which the tests of this package have
// them.

import "github.com/jaydb/jay/internal/checks"

var (
	SetBuildChunks = checks.SetBuildChunks
	OnBuildChunk   = checks.OnBuildChunk
	HoldBuild      = checks.HoldBuild
	SetCountSteps  = checks.SetCountSteps
)

// WaitIndexTasks is checks.WaitIndexTasks.
func WaitIndexTasks(db *DB) { checks.WaitIndexTasks(db) }

// CheckIndexes is checks.Indexes.
func CheckIndexes(db *DB) error { return checks.Indexes(db) }

// CheckCounts is checks.Counts.
func CheckCounts(db *DB) error { return checks.Counts(db) }

// IndexKeys is checks.IndexKeys.
func IndexKeys(db *DB) (int, error) { return checks.IndexKeys(db) }

// FirstEntry is checks.FirstEntry.
func FirstEntry(db *DB) (key, value []byte) { return checks.FirstEntry(db) }

// SetEntry is checks.SetEntry.
func SetEntry(db *DB, key, value []byte) { checks.SetEntry(db, key, value) }

// CheckContents is checks.Contents.
func CheckContents(db *DB) error { return checks.Contents(db) }

// RemoveContents is checks.RemoveContents.
func RemoveContents(db *DB) error { return checks.RemoveContents(db) }

// SetChunkBytes is checks.SetChunkBytes.
func SetChunkBytes(n int) func() { return checks.SetChunkBytes(n) }
