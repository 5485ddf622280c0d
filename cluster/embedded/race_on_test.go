//go:build race

package embedded_test

func init() { raceDetector = true }
