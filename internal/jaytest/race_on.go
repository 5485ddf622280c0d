//go:build race

package jaytest

// Race says whether the tests run with the race detector.
const Race = true
