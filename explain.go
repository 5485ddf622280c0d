package jay

import (
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// Explanation reports how a query was answered.
type Explanation struct {
	Query      string        `json:"query"`                // as RQL
	Plan       []string      `json:"plan"`                 // the steps, first to last
	Keys       int64         `json:"keysExamined"`         // of indexes, those looked at to plan included
	Documents  int64         `json:"documentsRead"`        //
	Returned   int64         `json:"returned"`             //
	Elapsed    time.Duration `json:"elapsedNs"`            //
	Suggestion *Index        `json:"suggestion,omitempty"` // an index that would help
	Collection string        `json:"collection,omitempty"`
}

// String returns the explanation for people.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, e.Query)
	for i, step := range e.Plan {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, step)
	}
	fmt.Fprintf(&b, "%d index keys examined, %d documents read, %d returned, %v", e.Keys, e.Documents, e.Returned, e.Elapsed.Round(time.Microsecond))
	if e.Suggestion != nil {
		fmt.Fprintf(&b, "\nhint: %s", e.command())
	}
	return b.String()
}

// command returns the command that makes the suggested index.
func (e Explanation) command() string {
	return exec.CreateCommand(e.Collection, e.Suggestion)
}

// explain reports how a run went.
func explain(r *exec.Run, q *query.Query) Explanation {
	report := r.Report()
	return Explanation{
		Query:      q.String(),
		Plan:       report.Steps,
		Keys:       report.Keys,
		Documents:  report.Documents,
		Returned:   report.Returned,
		Elapsed:    report.Elapsed,
		Suggestion: report.Suggestion,
		Collection: q.From,
	}
}

// autoIndexAfter is how many documents a query must have read without using them
// before it is worth an index of its own.
const autoIndexAfter = 1000

// suggestIndex builds the index that would have helped a run, if the database was
// opened with AutoIndexes.
func (db *DB) suggestIndex(r *exec.Run, collection string) {
	if db.opts.AutoIndexes == 0 || db.indexes.Load().Automatic() >= db.opts.AutoIndexes {
		return
	}
	report := r.Report()
	ix := report.Suggestion
	if ix == nil || report.Documents < autoIndexAfter || report.Returned*10 > report.Documents {
		return
	}
	ix.Name = catalog.Cut("Auto/"+collection+"/By"+strings.Join(ix.Fields, "And"), catalog.MaxName)
	if err := db.indexer.Auto(collection, *ix); err != nil && db.env.Logger != nil {
		db.env.Logger.Warn("jay: automatic index", "collection", collection, "fields", ix.Fields, "err", err)
	}
}
