package exec

import (
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
)

// hidden returns, by folded ID, the documents that an index has otherwise than the query sees them: those that the transaction has
// written, and those that have expired and are not deleted yet. It is nil if there are none.
func (r *Run) hidden() (map[string]bool, error) {
	if len(r.overlay.Written) == 0 && !r.gone {
		return nil, nil
	}
	hidden := make(map[string]bool)
	for folded := range r.overlay.Written {
		hidden[folded] = true
	}
	if !r.gone {
		return hidden, nil
	}
	var failed error
	err := docs.EachGoneID(r.snapshot, r.dueFrom, r.moment, func(folded string) {
		if failed == nil {
			hidden[folded] = true
			failed = r.payer.PayNamed(folded)
		}
	})
	return hidden, errs.First(failed, err)
}
