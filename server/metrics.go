package server

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// metrics has the server's metrics for Prometheus. Labels have few values: no names of
// databases, and no paths from clients.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	sent     prometheus.Counter
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jay_http_requests_total", Help: "Requests that were answered, by endpoint and status."}, []string{"method", "endpoint", "status"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jay_http_request_seconds", Help: "How long requests took; streams take as long as their readers.", Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60}}, []string{"endpoint"}),
		sent:     prometheus.NewCounter(prometheus.CounterOpts{Name: "jay_http_sent_bytes_total", Help: "Bytes of the bodies of replies."}),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	m.registry.MustRegister(m.requests, m.seconds, m.sent,
		gauge("jay_http_requests_running", "Requests that run.", func() float64 { return float64(len(s.gate.places)) }),
		gauge("jay_http_requests_waiting", "Requests that wait for a place.", func() float64 { return float64(s.gate.waiting.Load()) }),
		gauge("jay_http_streams_running", "Streams that run.", func() float64 { return float64(len(s.streams.places)) }),
		gauge("jay_http_memory_bytes", "Bytes of the bodies of requests and replies in memory.", func() float64 { return float64(s.memory.used.Load()) }),
		gauge("jay_databases", "Databases that there are.", func() float64 { return float64(len(s.databases.list())) }),
		gauge("jay_databases_open", "Databases that are open.", func() float64 { return float64(s.databases.opened()) }),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return m
}

// observe counts a request.
func (m *metrics) observe(c *call, status int, bytes int64, took time.Duration) {
	endpoint, method := "unknown", "other"
	if c.route != nil {
		endpoint, method = c.route.path, c.route.method
	}
	m.requests.WithLabelValues(method, endpoint, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(endpoint).Observe(took.Seconds())
	m.sent.Add(float64(bytes))
}

// opened returns how many databases are open.
func (ds *databases) opened() int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.open
}

// getMetrics replies in Prometheus' text format.
func (c *call) getMetrics() error {
	families, err := c.s.metrics.registry.Gather()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.FmtText)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
	c.contentType = string(expfmt.FmtText)
	return c.text(http.StatusOK, text.Bytes())
}
