package jayprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jaydb/jay/backups"
)

// BackupsCollector is a prometheus.Collector of the figures of a Keeper's backups. A scrape reads
// no file: the figures are as of the last backup, except jay_backup_late, which is as of the
// scrape.
type BackupsCollector struct {
	keeper *backups.Keeper
	all    []backupMetric
}

// backupMetric is a metric without labels. It is left out when known is false.
type backupMetric struct {
	desc  *prometheus.Desc
	value func(s *backups.Status) (value float64, known bool)
}

// NewBackupsCollector returns a collector of the figures of a Keeper. labels are added to every
// metric, so that several Keepers can be in one registry. Nil means no labels. After Keeper.Close
// the collector continues with the last figures.
func NewBackupsCollector(k *backups.Keeper, labels prometheus.Labels) *BackupsCollector {
	c := &BackupsCollector{keeper: k}
	add := func(name, help string, value func(s *backups.Status) (float64, bool)) {
		c.all = append(c.all, backupMetric{prometheus.NewDesc(name, help, nil, labels), value})
	}
	plain := func(name, help string, value func(s *backups.Status) float64) {
		add(name, help, func(s *backups.Status) (float64, bool) { return value(s), true })
	}
	plain("jay_backups", "Backups that can be restored.", func(s *backups.Status) float64 { return float64(s.Backups) })
	plain("jay_backup_bytes", "Bytes of their files.", func(s *backups.Status) float64 { return float64(s.Bytes) })
	plain("jay_backup_broken", "Files of backups that cannot be restored.", func(s *backups.Status) float64 { return float64(len(s.Broken)) })
	plain("jay_backup_failures", "Failures in a row since the last backup.", func(s *backups.Status) float64 { return float64(s.Failures) })
	plain("jay_backup_unsent", "Backups that Options.Each has not taken.", func(s *backups.Status) float64 { return float64(s.Unsent) })
	plain("jay_backup_late", "1 if the last backup is older than Options.LateAfter.", func(s *backups.Status) float64 { return truth(s.Late) })
	add("jay_backup_last_seconds", "When the last backup was made, in seconds since 1970.", func(s *backups.Status) (float64, bool) {
		if s.Last == nil {
			return 0, false
		}
		return float64(s.Last.Created.UnixMilli()) / 1000, true
	})
	return c
}

// Describe implements prometheus.Collector.
func (c *BackupsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.all {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *BackupsCollector) Collect(out chan<- prometheus.Metric) {
	s := c.keeper.Status()
	for _, m := range c.all {
		if value, known := m.value(&s); known {
			out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value)
		}
	}
}
