package checks

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/parts"
)

// Counts waits until all documents are counted, and compares the numbers that are
// kept with the documents.
func Counts(db any) error {
	p := parts.Of(db)
	p.Counts.Wait()
	if !p.Counts.IsReady() {
		return errors.New("the documents are not counted")
	}
	return p.CheckCounts(context.Background())
}

// SetCountSteps makes the count of an older database take so many documents at a time,
// and returns what undoes that. No database may be open.
func SetCountSteps(documents int) (restore func()) {
	old := counts.StepDocuments
	counts.StepDocuments = documents
	return func() { counts.StepDocuments = old }
}
