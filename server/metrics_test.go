package server_test

import (
	"strings"
	"testing"
)

// Ensure that the figures count requests by endpoint and status, and name no database and
// nothing that a client has made up.
func TestMetrics(t *testing.T) {
	t.Parallel()
	h := start(t)
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
		"jay_databases 1", "jay_databases_open 1", "jay_http_requests_running 1", "jay_http_streams_running 0", "go_goroutines ",
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
