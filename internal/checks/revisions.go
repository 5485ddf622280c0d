package checks

import (
	"time"

	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/revisions"
)

// Revisions looks at every revision, and returns an error if one is missing, or if a
// record contradicts another.
func Revisions(db any) error { return parts.Of(db).CheckRevisions() }

// SetPurgeSteps sets how many documents a step of a purge looks at, and how many
// documents and revisions its transaction takes, and returns what undoes that. No purge
// may run meanwhile.
func SetPurgeSteps(looked, documents, removed int) (restore func()) {
	a, b, c := revisions.StepLooked, revisions.StepDocuments, revisions.StepRevisions
	revisions.StepLooked, revisions.StepDocuments, revisions.StepRevisions = looked, documents, removed
	return func() { revisions.StepLooked, revisions.StepDocuments, revisions.StepRevisions = a, b, c }
}

// SetRetention sets how often the retention of revisions looks at the clock, and returns
// what undoes that. No database may be open meanwhile.
func SetRetention(look time.Duration) (restore func()) {
	old := revisions.LookInterval
	revisions.LookInterval = look
	return func() { revisions.LookInterval = old }
}
