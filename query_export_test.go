package jay

import "github.com/jaydb/jay/internal/plan"

// SetProbes makes the planner look at fewer keys, so that few documents are
// enough for every kind of plan, and returns what undoes that. Nothing may plan
// meanwhile.
func SetProbes(keys, many int) (restore func()) {
	oldKeys, oldMany := plan.ProbeKeys, plan.ProbeMany
	plan.ProbeKeys, plan.ProbeMany = keys, many
	return func() { plan.ProbeKeys, plan.ProbeMany = oldKeys, oldMany }
}
