//go:build race

package jay_test

const raceEnabled = true
