package serve

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics has the server's metrics for Prometheus. Labels have few values: no names of
// databases, and no paths from clients.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	sent     prometheus.Counter
}

func newMetrics(requests, streams *Gate, memory *Budget, ds *Databases) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jay_http_requests_total", Help: "Requests that were answered, by endpoint and status."}, []string{"method", "endpoint", "status"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jay_http_request_seconds", Help: "How long requests took; streams take as long as their readers.", Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60}}, []string{"endpoint"}),
		sent:     prometheus.NewCounter(prometheus.CounterOpts{Name: "jay_http_sent_bytes_total", Help: "Bytes of the bodies of replies."}),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	memoryNow := func() MemoryStats { return memoryStats(ds.opts.MaxMemory, memory, ds.opts.Database.Memory) }
	m.registry.MustRegister(m.requests, m.seconds, m.sent,
		gauge("jay_http_requests_running", "Requests that run.", func() float64 { return float64(requests.Load()) }),
		gauge("jay_http_requests_waiting", "Requests that wait for a place.", func() float64 { return float64(requests.Queued()) }),
		gauge("jay_http_streams_running", "Streams that run.", func() float64 { return float64(streams.Load()) }),
		gauge("jay_http_memory_bytes", "Bytes of the bodies of requests and replies in memory.", func() float64 {
			used, _ := memory.Load()
			return float64(used)
		}),
		gauge("jay_memory_bound_bytes", "Bytes that the server and its databases may have.", func() float64 { return float64(memoryNow().BoundBytes) }),
		gauge("jay_http_memory_bound_bytes", "Bytes that requests may have of it.", func() float64 { return float64(memoryNow().RequestsBytes) }),
		gauge("jay_databases_memory_bytes", "Bytes that open databases have claimed for caches and write buffers.", func() float64 { return float64(memoryNow().CachesClaimed) }),
		gauge("jay_databases_memory_bound_bytes", "Bytes that databases may claim of it.", func() float64 { return float64(memoryNow().CachesBytes) }),
		gauge("jay_databases", "Databases that there are.", func() float64 { return float64(len(ds.List())) }),
		gauge("jay_databases_open", "Databases that are open.", func() float64 { return float64(ds.Opened()) }),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	if len(ds.opts.Follow) > 0 {
		m.registry.MustRegister(
			gauge("jay_standbys", "Databases that follow another one.", func() float64 { return float64(ds.following().all) }),
			gauge("jay_standbys_connected", "Standbys whose source answers.", func() float64 { return float64(ds.following().connected) }),
			gauge("jay_standbys_unreadable", "Standbys that have no copy yet.", func() float64 { return float64(ds.following().unreadable) }),
			gauge("jay_standbys_late", "Standbys that have no copy yet, or are behind more than --max-lag: /readyz says that the server is not ready.", func() float64 { return float64(ds.following().late) }),
			gauge("jay_standby_lag_seconds", "How far the standby that is behind most is behind its source.", func() float64 { return ds.following().lag.Seconds() }))
	}
	return m
}

// observe counts a request.
func (m *metrics) observe(method, endpoint string, status int, bytes int64, took time.Duration) {
	m.requests.WithLabelValues(method, endpoint, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(endpoint).Observe(took.Seconds())
	m.sent.Add(float64(bytes))
}
