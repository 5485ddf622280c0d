package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jaydb/jay/bench/stats"
)

// Ensure that the interval ends at the order statistics that the tables of the
// sign test give, with their confidence, in whatever order the values come.
func TestIntervalOf_OrderStatistics(t *testing.T) {
	for _, test := range []struct {
		n, low     int // the rank of the lower end, from 1
		confidence float64
	}{
		{6, 1, 0.96875},
		{8, 1, 0.9921875},
		{9, 2, 0.9609375},
		{10, 2, 0.978515625},
		{15, 4, 0.96484375},
		{20, 6, 0.95861053},
		{25, 8, 0.95671475},
		{30, 10, 0.95722605},
		{40, 14, 0.96152269},
		{50, 18, 0.96716086},
	} {
		values := make([]float64, test.n)
		for at, rank := range rand.New(rand.NewPCG(1, uint64(test.n))).Perm(test.n) {
			values[at] = float64(rank + 1)
		}
		got := stats.IntervalOf(values, 0.95)
		if got.Low != float64(test.low) || got.High != float64(test.n+1-test.low) || math.Abs(got.Confidence-test.confidence) > 1e-7 {
			t.Errorf("%d values: got %+v, want %d to %d with confidence %v", test.n, got, test.low, test.n+1-test.low, test.confidence)
		}
		if want := float64(test.n+1) / 2; got.Median != want {
			t.Errorf("%d values: median %v, want %v", test.n, got.Median, want)
		}
	}
}

// Ensure that a sample too small for the confidence says so, and that more
// confidence takes a wider interval.
func TestIntervalOf_Bounds(t *testing.T) {
	if got := stats.IntervalOf(nil, 0.95); got != (stats.Interval{}) {
		t.Errorf("no values: got %+v", got)
	}
	for n := 1; n <= 5; n++ {
		values := []float64{3, 1, 2, 5, 4}[:n]
		if got := stats.IntervalOf(values, 0.95); got.Confidence != 0 || !got.Holds(slices.Min(values)) || !got.Holds(slices.Max(values)) {
			t.Errorf("%d values: got %+v, want the whole range and no confidence", n, got)
		}
	}
	values := make([]float64, 400)
	for i := range values {
		values[i] = float64(i)
	}
	narrow, wide := stats.IntervalOf(values, 0.95), stats.IntervalOf(values, 0.99)
	if narrow.Low <= wide.Low || narrow.High >= wide.High || narrow.Confidence < 0.95 || wide.Confidence < 0.99 {
		t.Errorf("0.95: %+v; 0.99: %+v", narrow, wide)
	}
	if !narrow.Holds(narrow.Low) || !narrow.Holds(narrow.High) || narrow.Holds(narrow.High+1) || narrow.Holds(narrow.Low-1) {
		t.Errorf("%+v does not hold what lies in it", narrow)
	}
}

// Ensure that 95 % intervals hold the true median 95 times in 100, of a
// distribution with a long tail such as that of times.
func TestIntervalOf_Coverage(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	const trials = 4000
	held := 0
	for range trials {
		values := make([]float64, 20)
		for i := range values {
			values[i] = math.Exp(2 * random.NormFloat64()) // median 1
		}
		if stats.IntervalOf(values, 0.95).Holds(1) {
			held++
		}
	}
	// 0.9586 of them, ± 4 standard deviations of a share of 4,000.
	if share := float64(held) / trials; math.Abs(share-0.9586) > 0.0127 {
		t.Errorf("%.4f of the intervals hold the median, want 0.9586", share)
	}
}
