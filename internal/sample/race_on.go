//go:build race

package sample

// Race says whether the tests run with the race detector.
const Race = true
