package sample

import "testing"

// OneGoroutine skips a test in a short run with the race detector: nothing calls the database beside
// it, so that the detector sees what it sees in many quicker tests. In full (make race-full) it runs.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race && testing.Short() {
		t.Skip("it has one goroutine")
	}
}
