// Package stats turns measurements into the figures that are printed: medians
// with their spread, ratios round by round, and percentiles of latencies.
package stats

import (
	"fmt"
	"slices"
)

// Spread is the median, least and most of some values.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf returns the spread of values; that of no values is zero.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	return Spread{Median(values), slices.Min(values), slices.Max(values)}
}

// String formats s as "median (least–most)".
func (s Spread) String() string {
	return Short(s.Median) + " (" + Short(s.Min) + "–" + Short(s.Max) + ")"
}

// Median returns the middle one of values, or the mean of the middle two. It
// leaves values as they are. That of no values is 0.
func Median[T ~float64 | ~int64](values []T) T {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Ratios divides a by b, round by round, as far as both go.
func Ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

// Short formats a figure with about three digits.
func Short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.0995:
		return fmt.Sprintf("%.3f", v)
	case v < 99.5:
		return fmt.Sprintf("%.2f", v)
	case v < 999.5:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
