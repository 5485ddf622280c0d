package stats

import "slices"

// Interval is where the median of a quantity lies, found from a sample of it.
type Interval struct {
	Median float64 `json:"median"` // of the sample
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Confidence is the probability with which such an interval holds the true
	// median. It is 0 if the sample is too small for the one asked for; Low and
	// High are then the least and the greatest value.
	Confidence float64 `json:"confidence"`
}

// IntervalOf returns the shortest interval between two order statistics of
// values, as far from the least as from the greatest, that holds the median of
// their distribution with at least this confidence, such as 0.95. Nothing is
// assumed about the distribution but that the values are independent: it is
// the inversion of the sign test. Six values are the fewest for 0.95.
func IntervalOf(values []float64, confidence float64) Interval {
	n := len(values)
	if n == 0 {
		return Interval{}
	}
	sorted := slices.Sorted(slices.Values(values))
	i := Interval{Median: Median(sorted), Low: sorted[0], High: sorted[n-1]}
	// From the k-th least to the k-th greatest value, the interval misses the
	// median if fewer than k of n values lie on one side of it.
	point := 1.0 // the binomial coefficient n over k-1, divided by 1<<n
	for range n {
		point /= 2
	}
	missed := 0.0 // on one side
	for k := 1; 2*k <= n; k++ {
		missed += point
		if 1-2*missed < confidence {
			break
		}
		i.Low, i.High, i.Confidence = sorted[k-1], sorted[n-k], 1-2*missed
		point *= float64(n-k+1) / float64(k)
	}
	return i
}

// Holds reports whether v lies in the interval.
func (i Interval) Holds(v float64) bool { return i.Low <= v && v <= i.High }
