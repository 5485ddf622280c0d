package jayprometheus

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jaydb/jay"
)

// ObserverOptions configure NewObserver. The zero value, and nil, are good defaults.
type ObserverOptions struct {
	// Labels are added to every metric, such as {"database": "shop"}.
	Labels prometheus.Labels

	// Buckets are the upper bounds of the histogram of durations, in seconds. The default is
	// DefaultBuckets: from 10 µs to 10 s, three for each power of ten.
	Buckets []float64
}

// DefaultBuckets is the default of ObserverOptions.Buckets.
var DefaultBuckets = []float64{1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, .1, .2, .5, 1, 2, 5, 10}

// Observer is a jay.Observer that counts operations and measures their durations. It is also the
// prometheus.Collector of these metrics. One Observer may serve several databases: it counts their
// operations together.
//
// The metrics are jay_operation_duration_seconds, by verb (see jay.Operation) and outcome:
// ok, not_found, conflict, exists, disk_full, canceled or error; and
// jay_operation_documents_total, by verb.
type Observer struct {
	durations *prometheus.HistogramVec
	documents *prometheus.CounterVec
}

var (
	_ jay.Observer         = (*Observer)(nil)
	_ prometheus.Collector = (*Observer)(nil)
)

// NewObserver returns an Observer for jay.Options.
func NewObserver(opts *ObserverOptions) *Observer {
	var o ObserverOptions
	if opts != nil {
		o = *opts
	}
	if len(o.Buckets) == 0 {
		o.Buckets = DefaultBuckets
	}
	return &Observer{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jay_operation_duration_seconds", Help: "How long operations took.", ConstLabels: o.Labels, Buckets: o.Buckets}, []string{"verb", "outcome"}),
		documents: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jay_operation_documents_total", Help: "Documents that operations have returned, counted or written.", ConstLabels: o.Labels}, []string{"verb"}),
	}
}

// Begin implements jay.Observer.
func (o *Observer) Begin(ctx context.Context, _ *jay.Operation) context.Context { return ctx }

// End implements jay.Observer.
func (o *Observer) End(_ context.Context, op *jay.Operation) {
	o.durations.WithLabelValues(op.Verb, outcome(op.Err)).Observe(op.Duration.Seconds())
	if op.Documents > 0 {
		o.documents.WithLabelValues(op.Verb).Add(float64(op.Documents))
	}
}

// outcome is the label of an error: one of few.
func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, jay.ErrNotFound):
		return "not_found"
	case errors.Is(err, jay.ErrExists):
		return "exists"
	case errors.Is(err, jay.ErrConflict):
		return "conflict"
	case errors.Is(err, jay.ErrDiskFull):
		return "disk_full"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	}
	return "error"
}

// Describe implements prometheus.Collector.
func (o *Observer) Describe(out chan<- *prometheus.Desc) {
	o.durations.Describe(out)
	o.documents.Describe(out)
}

// Collect implements prometheus.Collector.
func (o *Observer) Collect(out chan<- prometheus.Metric) {
	o.durations.Collect(out)
	o.documents.Collect(out)
}
