package stats

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest operation that a Latency distinguishes; what takes
// longer counts as that.
const longest = 10 * time.Minute

// Latency counts how long single operations took, to two digits. The zero
// value is ready to use. It is not safe for concurrent use: every goroutine
// has its own, and Merge brings them together.
type Latency struct{ h *hdrhistogram.Histogram }

func (l *Latency) histogram() *hdrhistogram.Histogram {
	if l.h == nil {
		l.h = hdrhistogram.New(1, int64(longest), 2)
	}
	return l.h
}

// Record counts one operation.
func (l *Latency) Record(took time.Duration) {
	// The value lies within the bounds of the histogram, the only error there is.
	_ = l.histogram().RecordValue(int64(min(max(took, 1), longest)))
}

// Merge adds what other has counted.
func (l *Latency) Merge(other *Latency) {
	if other.h != nil {
		l.histogram().Merge(other.h)
	}
}

// Percentiles are the latencies of some operations, in microseconds.
type Percentiles struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Percentiles returns what has been counted so far.
func (l *Latency) Percentiles() Percentiles {
	h := l.histogram()
	if h.TotalCount() == 0 {
		return Percentiles{}
	}
	micros := func(nanos int64) float64 { return float64(nanos) / 1e3 }
	return Percentiles{
		Count: h.TotalCount(),
		P50:   micros(h.ValueAtQuantile(50)),
		P99:   micros(h.ValueAtQuantile(99)),
		P999:  micros(h.ValueAtQuantile(99.9)),
		Max:   micros(h.Max()),
	}
}
