package builder

import (
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Similar is true if a vector that the field reaches is so similar to a vector. It is the mistake in that, if there is one.
func Similar(field string, to []float32, minimum float64) Condition {
	v, err := query.NewVector(to, "")
	if err != nil {
		return refused(err)
	}
	if !(minimum >= -1 && minimum <= 1) {
		return Condition{err: fmt.Errorf("%w: a similarity is between -1 and 1, and not %v", errs.ErrQuery, minimum)}
	}
	if strings.HasPrefix(strings.ToLower(field), "embedding.") {
		e, err := query.ParseCondition(query.SimilarText(field, to, minimum), nil)
		if err != nil {
			return refused(err)
		}
		return checked(e)
	}
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	return checked(query.Similar{Field: f, Vector: v, Minimum: minimum})
}
