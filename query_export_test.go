package jay

// SetProbes makes the planner look at fewer keys, so that few documents are
// enough for every kind of plan, and returns what undoes that. Nothing may plan
// meanwhile.
func SetProbes(keys, many int) (restore func()) {
	oldKeys, oldMany := probeKeys, probeMany
	probeKeys, probeMany = keys, many
	return func() { probeKeys, probeMany = oldKeys, oldMany }
}
