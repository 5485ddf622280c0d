//go:build race

package bounds_test

const raceEnabled = true
