package jayotel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jayotel"
)

// A program whose operations on the database are spans of its requests.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // a program has one that sends them
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := jayotel.NewObserver(&jayotel.Options{TracerProvider: provider})
	if err != nil {
		log.Fatal(err)
	}
	db, err := jay.OpenMemory(&jay.Options{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx, request := provider.Tracer("shop").Start(context.Background(), "POST /users")
	_, err = db.Store(ctx, "Users", json.RawMessage(`{"Name":"Ann"}`))
	request.End()
	if err != nil {
		log.Fatal(err)
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// insert Users
	// POST /users
}

// The figures of a database as metrics of the global MeterProvider.
func ExampleObserve() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	stop, err := jayotel.Observe(db, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stop())
	// Output: <nil>
}
