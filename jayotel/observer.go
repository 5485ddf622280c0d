package jayotel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/jaydb/jay"
)

// scope names what this package makes.
const scope = "github.com/jaydb/jay/jayotel"

// maxQueryText bounds the text of a query in a span.
const maxQueryText = 1000

// Options configure NewObserver and Observe. The zero value, and nil, are good defaults.
type Options struct {
	// TracerProvider and MeterProvider receive spans and metrics. The defaults are the global
	// providers of package otel.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// Attributes, such as db.namespace, are added to every span and metric. They distinguish several
	// databases.
	Attributes []attribute.KeyValue

	// QueryText puts the text of queries into spans, as db.query.text, cut at 1,000 bytes. The text
	// includes the values in the query.
	QueryText bool

	// OnlyChildren makes spans only of operations whose context has a span, so that
	// background work makes no traces of its own.
	OnlyChildren bool

	// MaxCollections bounds the number of collections of each metric of Observe. The metric has the
	// collections with its largest values, and the sum of the others as @others. The default is 200.
	MaxCollections int
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.TracerProvider == nil {
		out.TracerProvider = otel.GetTracerProvider()
	}
	if out.MeterProvider == nil {
		out.MeterProvider = otel.GetMeterProvider()
	}
	if out.MaxCollections <= 0 {
		out.MaxCollections = 200
	}
	out.Attributes = append([]attribute.KeyValue{attribute.String("db.system.name", "jay")}, out.Attributes...)
	return out
}

// Observer is a jay.Observer that makes a span of each operation, and measures its
// duration as db.client.operation.duration, a histogram in seconds by operation,
// collection and error.type. One Observer may serve several databases.
//
// An operation on a collection that does not exist has the name of the collection as an attribute,
// like any other operation. So a program that takes names of collections from its users should
// bound them.
type Observer struct {
	options  Options
	tracer   trace.Tracer
	duration metric.Float64Histogram
	rows     metric.Int64Histogram
}

var _ jay.Observer = (*Observer)(nil)

// NewObserver returns an Observer for jay.Options.
func NewObserver(opts *Options) (*Observer, error) {
	o := &Observer{options: opts.withDefaults()}
	o.tracer = o.options.TracerProvider.Tracer(scope)
	meter := o.options.MeterProvider.Meter(scope)
	var err error
	o.duration, err = meter.Float64Histogram("db.client.operation.duration", metric.WithUnit("s"), metric.WithDescription("How long operations took."),
		metric.WithExplicitBucketBoundaries(1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, .1, .2, .5, 1, 2, 5, 10))
	if err != nil {
		return nil, fmt.Errorf("jayotel: %w", err)
	}
	o.rows, err = meter.Int64Histogram("db.client.response.returned_rows", metric.WithUnit("{row}"), metric.WithDescription("Documents that operations have returned, counted or written."),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000))
	if err != nil {
		return nil, fmt.Errorf("jayotel: %w", err)
	}
	return o, nil
}

// Begin implements jay.Observer.
func (o *Observer) Begin(ctx context.Context, op *jay.Operation) context.Context {
	if o.options.OnlyChildren && !trace.SpanContextFromContext(ctx).IsValid() {
		return trace.ContextWithSpan(ctx, none)
	}
	name := op.Verb
	if op.Collection != "" {
		name += " " + op.Collection
	}
	ctx, span := o.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(op.Began), trace.WithAttributes(o.options.Attributes...), trace.WithAttributes(operationAttributes(op)...))
	if o.options.QueryText && op.Query != nil && span.IsRecording() {
		span.SetAttributes(attribute.String("db.query.text", shorten(op.Query())))
	}
	return ctx
}

// none is the span of an operation without one. It is not that of the caller, which End
// must not end.
var none = trace.SpanFromContext(context.Background())

// End implements jay.Observer.
func (o *Observer) End(ctx context.Context, op *jay.Operation) {
	own := operationAttributes(op)
	kind := errorType(op.Err)
	if kind != "" {
		own = append(own, attribute.String("error.type", kind))
	}
	set := metric.WithAttributeSet(attribute.NewSet(slices.Concat(o.options.Attributes, own)...))
	o.duration.Record(ctx, op.Duration.Seconds(), set)
	o.rows.Record(ctx, op.Documents, set)

	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		if op.ID != "" {
			span.SetAttributes(attribute.String("jay.document.id", shorten(op.ID)))
		}
		span.SetAttributes(own...)
		span.SetAttributes(attribute.Int64("db.response.returned_rows", op.Documents), attribute.Int64("jay.duration_us", int64(op.Duration/time.Microsecond)))
		if kind != "" && kind != "not_found" { // an answer like any other
			span.SetStatus(codes.Error, shorten(op.Err.Error()))
		}
	}
	span.End()
}

func operationAttributes(op *jay.Operation) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("db.operation.name", op.Verb)}
	if op.Collection != "" {
		all = append(all, attribute.String("db.collection.name", op.Collection))
	}
	return all
}

// errorType returns one of few names; "" for no error.
func errorType(err error) string {
	switch {
	case err == nil:
		return ""
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

// shorten cuts a text at maxQueryText bytes, at the beginning of a character.
func shorten(text string) string {
	if len(text) <= maxQueryText {
		return text
	}
	end := maxQueryText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
