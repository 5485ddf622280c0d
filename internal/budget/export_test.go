package budget

// MachineBytes is machineBytes, for tests.
var MachineBytes = machineBytes
