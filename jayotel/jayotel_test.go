package jayotel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jayotel"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a database whose spans and metrics are kept in memory.
type world struct {
	db     *jay.DB
	spans  *tracetest.InMemoryExporter
	traces *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
}

func newWorld(t *testing.T, opts jayotel.Options) *world {
	w := &world{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	w.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
	opts.TracerProvider = w.traces
	opts.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	observer, err := jayotel.NewObserver(&opts)
	must(t, err)
	w.db, err = jay.OpenMemory(&jay.Options{Observer: observer})
	must(t, err)
	stop, err := jayotel.Observe(w.db, &opts)
	must(t, err)
	t.Cleanup(func() {
		must(t, stop())
		must(t, w.db.Close())
	})
	return w
}

// attributes returns the value of an attribute as text.
func attributeOf(all []attribute.KeyValue, key string) string {
	for _, a := range all {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// Ensure that each operation makes a span below that of its caller, with the names of
// OpenTelemetry's conventions, and that an error is one but a missing document is not.
func TestObserver_Spans(t *testing.T) {
	w := newWorld(t, jayotel.Options{QueryText: true, Attributes: []attribute.KeyValue{attribute.String("db.namespace", "shop")}})
	ctx, parent := w.traces.Tracer("test").Start(context.Background(), "request")
	_, err := w.db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Ann"}`), jay.InCollection("Users"))
	must(t, err)
	_, _ = w.db.Get(ctx, "nobody")
	_, _ = w.db.Put(ctx, "users/1", json.RawMessage(`{}`), jay.IfMatch("x"))
	q, err := w.db.RQL("from Users where Name = 'Ann'", nil)
	must(t, err)
	_, err = q.All(ctx)
	must(t, err)
	parent.End()

	var got []string
	for _, s := range w.spans.GetSpans() {
		if s.Name == "request" {
			continue
		}
		if s.Parent.SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s is not a child of the request", s.Name)
		}
		for key, want := range map[string]string{"db.system.name": "jay", "db.namespace": "shop"} {
			if got := attributeOf(s.Attributes, key); got != want {
				t.Errorf("%s: %s is %q, want %q", s.Name, key, got, want)
			}
		}
		a := func(key string) string { return attributeOf(s.Attributes, key) }
		got = append(got, strings.Join([]string{s.Name, a("db.operation.name"), a("db.collection.name"), a("jay.document.id"), a("db.response.returned_rows"), a("db.query.text"), a("error.type"), fmt.Sprint(s.Status.Code == codes.Error)}, "|"))
	}
	want := []string{
		"put Users|put|Users|users/1|1|||false",
		"get|get||nobody|0||not_found|false",
		"put|put||users/1|0||conflict|true",
		"query Users|query|Users||1|from Users where Name = 'Ann'||false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Ensure that OnlyChildren leaves out operations without a span above them, and does not
// end that of another one.
func TestObserver_OnlyChildren(t *testing.T) {
	w := newWorld(t, jayotel.Options{OnlyChildren: true})
	_, _ = w.db.Get(context.Background(), "a")
	if got := w.spans.GetSpans(); len(got) != 0 {
		t.Errorf("got %d spans, want none", len(got))
	}
	ctx, parent := w.traces.Tracer("test").Start(context.Background(), "request")
	_, _ = w.db.Get(ctx, "a")
	if got := w.spans.GetSpans(); len(got) != 1 || got[0].Name != "get" {
		t.Errorf("got %v, want the get", got)
	}
	parent.End()
}

// Ensure that durations and figures are collected.
func TestMetrics(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, jayotel.Options{MaxCollections: 1})
	for i := range 3 {
		_, err := w.db.Put(ctx, fmt.Sprint("users/", i), json.RawMessage(`{}`), jay.InCollection("Users"))
		must(t, err)
	}
	_, err := w.db.Put(ctx, "things/1", json.RawMessage(`{}`), jay.InCollection("Things"))
	must(t, err)
	var all metricdata.ResourceMetrics
	must(t, w.reader.Collect(ctx, &all))
	found := make(map[string]string)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					name, of := p.Attributes.Value("db.collection.name")
					if !of {
						name, _ = p.Attributes.Value("jay.memory.share")
					}
					found[m.Name+" "+name.AsString()] = fmt.Sprint(p.Value)
				}
			case metricdata.Gauge[float64]:
				found[m.Name] = fmt.Sprint(data.DataPoints[0].Value)
			case metricdata.Sum[float64]:
				found[m.Name] = fmt.Sprint(data.DataPoints[0].Value)
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					verb, _ := p.Attributes.Value("db.operation.name")
					name, _ := p.Attributes.Value("db.collection.name")
					found[m.Name+" "+verb.AsString()+" "+name.AsString()] = fmt.Sprint(p.Count)
				}
			}
		}
	}
	s, err := w.db.Stats(ctx)
	must(t, err)
	for key, want := range map[string]string{
		"jay.documents Users":                     "3",
		"jay.documents @others":                   "1",
		"jay.commits":                             fmt.Sprint(s.Engine.Commits),
		"jay.failed":                              "0",
		"jay.memory.share.size blocks":            fmt.Sprint(s.Memory.Shares[0].Bytes),
		"jay.memory.share.used documents":         fmt.Sprint(s.Memory.Shares[2].UsedBytes),
		"db.client.operation.duration put Users":  "3",
		"db.client.operation.duration put Things": "1",
	} {
		if found[key] != want {
			t.Errorf("%s: got %q, want %q", key, found[key], want)
		}
	}
}
