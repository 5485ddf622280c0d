package stats_test

import (
	"math"
	"testing"
	"time"

	"github.com/jaydb/jay/bench/stats"
)

// Ensure that the median of an even number of values is between the middle two,
// and that the values are left in their order.
func TestMedian(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"none", nil, 0},
		{"one", []float64{3}, 3},
		{"odd", []float64{9, 1, 5}, 5},
		{"even", []float64{8, 2, 4, 1}, 3},
	} {
		if got := stats.Median(test.values); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
	values := []float64{3, 1, 2}
	if s := stats.SpreadOf(values); s.Min != 1 || s.Max != 3 || s.Median != 2 || values[0] != 3 {
		t.Errorf("spread of %v: %+v", values, s)
	}
}

// Ensure that ratios are taken round by round, not from the medians.
func TestRatios(t *testing.T) {
	got := stats.Ratios([]float64{2, 9, 5}, []float64{1, 3})
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("got %v, want [2 3]", got)
	}
}

// Ensure that percentiles are those of a known distribution, to two digits.
func TestLatency_Percentiles(t *testing.T) {
	var even, odd stats.Latency
	for i := 1; i <= 10_000; i++ {
		l := &odd
		if i%2 == 0 {
			l = &even
		}
		l.Record(time.Duration(i) * time.Microsecond)
	}
	even.Merge(&odd)
	got := even.Percentiles()
	want := stats.Percentiles{Count: 10_000, P50: 5000, P99: 9900, P999: 9990, Max: 10_000}
	if got.Count != want.Count {
		t.Errorf("count: got %d, want %d", got.Count, want.Count)
	}
	for _, p := range []struct {
		name      string
		got, want float64
	}{{"p50", got.P50, want.P50}, {"p99", got.P99, want.P99}, {"p99.9", got.P999, want.P999}, {"max", got.Max, want.Max}} {
		if math.Abs(p.got-p.want) > p.want/100 {
			t.Errorf("%s: got %v, want %v", p.name, p.got, p.want)
		}
	}
}

// Ensure that what is shorter or longer than the histogram reaches is counted
// at its ends.
func TestLatency_Record_Bounds(t *testing.T) {
	var l stats.Latency
	l.Record(0)
	l.Record(-time.Second)
	l.Record(time.Hour)
	if got := l.Percentiles(); got.Count != 3 || got.Max < 500e6 {
		t.Errorf("got %+v", got)
	}
	var empty stats.Latency
	empty.Merge(&stats.Latency{})
	if got := empty.Percentiles(); got != (stats.Percentiles{}) {
		t.Errorf("empty: got %+v", got)
	}
}
