package serve

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/jaydb/jay"
)

// healthz replies that the process is alive.
func (c *Call) healthz() error { return c.JSON(http.StatusOK, map[string]string{"Status": "ok"}) }

// readyz replies whether the server accepts requests, and its standbys are near enough to their sources. It stays ready while databases take
// no writes, as reads, deletions and other databases go on, and says that it is degraded.
func (c *Call) readyz() error {
	if err := c.Server.begin(); err != nil {
		return err
	}
	defer c.Server.running.Done()
	if f := c.Server.Databases.following(); f.late > 0 {
		return c.JSON(http.StatusServiceUnavailable, map[string]any{
			"Status": "behind", "Reason": fmt.Sprintf("standbys have no copy yet, or are more than %s behind", c.Server.Options.MaxLag),
			"Databases": f.late, "LagSeconds": f.lag.Seconds(),
		})
	}
	if n := c.Server.Databases.troubled(); n > 0 {
		return c.JSON(http.StatusOK, map[string]any{"Status": "degraded", "Reason": "databases take no writes, as their disk is full or has failed", "Databases": n})
	}
	return c.JSON(http.StatusOK, map[string]string{"Status": "ready"})
}

// Register adds figures to those of getMetrics.
func (s *Server) Register(c prometheus.Collector) error {
	if err := s.metrics.registry.Register(c); err != nil {
		return fmt.Errorf("%w: figures for /metrics: %w", jay.ErrOption, err)
	}
	return nil
}

// getMetrics replies in Prometheus' text format.
func (c *Call) getMetrics() error {
	families, err := c.Server.metrics.registry.Gather()
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
	c.ContentType = string(expfmt.FmtText)
	return c.Text(http.StatusOK, text.Bytes())
}
