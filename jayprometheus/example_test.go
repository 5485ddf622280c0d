package jayprometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jayprometheus"
)

// A program with a database, and its metrics at /metrics.
func Example() {
	observer := jayprometheus.NewObserver(nil)
	db, err := jay.OpenMemory(&jay.Options{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(observer, jayprometheus.NewCollector(db, nil))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	if _, err := db.Store(context.Background(), "Users", json.RawMessage(`{"Name":"Ann"}`)); err != nil {
		log.Fatal(err)
	}
	response, err := http.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "jay_documents{") || strings.HasPrefix(line, "jay_operation_duration_seconds_count") {
			fmt.Print(line)
		}
	}
	// Output:
	// jay_documents{collection="@hilo"} 1
	// jay_documents{collection="Users"} 1
	// jay_operation_duration_seconds_count{outcome="ok",verb="insert"} 1
}

// Several databases in one registry have a label each.
func ExampleNewCollector() {
	registry := prometheus.NewRegistry()
	for _, name := range []string{"shop", "stock"} {
		db, err := jay.OpenMemory(nil)
		if err != nil {
			log.Fatal(err)
		}
		defer db.Close()
		registry.MustRegister(jayprometheus.NewCollector(db, &jayprometheus.CollectorOptions{Labels: prometheus.Labels{"database": name}}))
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "jay_up" {
			for _, m := range f.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())
			}
		}
	}
	// Output:
	// shop 1
	// stock 1
}
