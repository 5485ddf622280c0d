package budget

// For tests.
var (
	MachineBytes = machineBytes
	ProcessOf    = processOf
)
