package server_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// Ensure that the figures count requests by endpoint and status, and name no database and
// nothing that a client has made up.
func TestMetrics(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxMemory = 1 << 30 })
	h.create("secretname")
	h.want(404, "GET", "/databases/secretname/docs?id=x", "")
	h.want(404, "GET", "/databases/secretname/docs?id=x", "")
	h.want(400, "BREW", "/databases/secretname/madeup", "")
	a := h.want(200, "GET", "/metrics", "")
	if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("content type %q", kind)
	}
	for _, line := range []string{
		`jay_http_requests_total{endpoint="{D}/docs",method="GET",status="404"} 2`,
		`jay_http_requests_total{endpoint="unknown",method="other",status="400"} 1`,
		`jay_http_request_seconds_count{endpoint="{D}/docs"} 2`,
		"jay_memory_bound_bytes 1.073741824e+09", "jay_http_memory_bound_bytes 2.68435456e+08", "jay_databases_memory_bytes ", "jay_databases_memory_bound_bytes 4.98", "jay_databases 1", "jay_databases_open 1", "jay_http_requests_running 1", "jay_http_streams_running 0", "go_goroutines ",
	} {
		if !strings.Contains(a.body, "\n"+line) {
			t.Errorf("no line %q", line)
		}
	}
	for _, text := range []string{"secretname", "madeup", "BREW"} {
		if strings.Contains(a.body, text) {
			t.Errorf("the figures name %q", text)
		}
	}
}

// Ensure that a program's own figures are among those of the server, and that two of one name are refused.
func TestMetrics_Register(t *testing.T) {
	t.Parallel()
	h := start(t)
	mine := prometheus.NewGauge(prometheus.GaugeOpts{Name: "shop_open", Help: "1 if the shop is open."})
	mine.Set(1)
	if err := h.s.Register(mine); err != nil {
		t.Fatal(err)
	}
	if text := h.want(200, "GET", "/metrics", "").body; !strings.Contains(text, "\nshop_open 1\n") {
		t.Errorf("no figure of the program's in %s", text)
	}
	for _, clash := range []prometheus.Collector{mine, prometheus.NewGauge(prometheus.GaugeOpts{Name: "jay_databases", Help: "Databases that there are."})} {
		if err := h.s.Register(clash); !errors.Is(err, jay.ErrOption) {
			t.Errorf("a second figure of that name: got %v", err)
		}
	}
}
