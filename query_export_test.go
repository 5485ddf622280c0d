package jay

import "github.com/jaydb/jay/internal/plan"

// SetProbes makes the planner look at fewer keys, so that few documents are
// enough for every kind of plan, and returns what undoes that. Nothing may plan
// meanwhile.
func SetProbes(keys, many int) (restore func()) {
	oldKeys, oldMany := plan.EstimateKeys, plan.EstimateMany
	plan.EstimateKeys, plan.EstimateMany = keys, many
	return func() { plan.EstimateKeys, plan.EstimateMany = oldKeys, oldMany }
}
