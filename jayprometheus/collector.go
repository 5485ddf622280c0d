package jayprometheus

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jaydb/jay"
)

// CollectorOptions configure NewCollector. The zero value, and nil, are good defaults.
type CollectorOptions struct {
	// Labels are added to every metric, such as {"database": "shop"}, so that several
	// databases can be in one registry.
	Labels prometheus.Labels

	// MaxCollections bounds the number of collections of each metric. The metric has the collections
	// with its largest values, and the sum of the others as the collection @others. The default is
	// 200.
	MaxCollections int

	// Timeout bounds the time that a scrape waits for the figures. The default is 5 s.
	Timeout time.Duration
}

// Others is the label of the collections beyond CollectorOptions.MaxCollections. It does not clash
// with a collection of a database, because names that begin with @ are reserved for Jay.
const Others = "@others"

// Collector is a prometheus.Collector of the figures of a database. Each scrape calls jay.DB.Stats,
// which is cheap. If the call fails, for example because the database is closed, the only metric is
// jay_up, with the value 0.
type Collector struct {
	db      *jay.DB
	most    int
	timeout time.Duration
	up      *prometheus.Desc
	single  []single
	byName  []byCollection
	byShare []byCollection // of the memory
	all     []*prometheus.Desc
}

// single is a metric without labels.
type single struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*jay.Stats) float64
}

// byCollection is a metric with the label collection.
type byCollection struct {
	desc   *prometheus.Desc
	values func(*jay.Stats) []named
}

type named struct {
	name  string
	value int64
}

// NewCollector returns the collector of a database.
func NewCollector(db *jay.DB, opts *CollectorOptions) *Collector {
	var o CollectorOptions
	if opts != nil {
		o = *opts
	}
	c := &Collector{db: db, most: cmp.Or(max(0, o.MaxCollections), 200), timeout: cmp.Or(max(0, o.Timeout), 5*time.Second)}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc("jay_"+name, help, labels, o.Labels)
		c.all = append(c.all, d)
		return d
	}
	c.up = desc("up", "1 if the figures of the database could be read, else 0.")
	for _, m := range gauges {
		c.single = append(c.single, single{desc(m.name, m.help), prometheus.GaugeValue, m.value})
	}
	for _, m := range counters {
		c.single = append(c.single, single{desc(m.name, m.help), prometheus.CounterValue, m.value})
	}
	for _, m := range shares {
		c.byShare = append(c.byShare, byCollection{desc(m.name, m.help, "share"), m.values})
	}
	for _, m := range collections {
		c.byName = append(c.byName, byCollection{desc(m.name, m.help, "collection"), m.values})
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.all {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	s, err := c.db.Stats(ctx)
	if err != nil {
		out <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, 0)
		return
	}
	out <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, 1)
	for _, m := range c.single {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s))
	}
	for _, m := range c.byShare {
		for _, one := range m.values(&s) {
			out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(one.value), one.name)
		}
	}
	for _, m := range c.byName {
		for _, one := range bound(m.values(&s), c.most) {
			out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(one.value), one.name)
		}
	}
}

// bound keeps the largest values, and adds up the others.
func bound(all []named, most int) []named {
	if len(all) <= most {
		return all
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.name, b.name))
	})
	rest := named{name: Others}
	for _, one := range all[most:] {
		rest.value += one.value
	}
	return append(all[:most:most], rest)
}
