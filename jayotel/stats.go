package jayotel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/jaydb/jay"
)

// Others is the name under which collections beyond Options.MaxCollections are added up.
const Others = "@others"

// Observe registers the figures of jay.DB.Stats as metrics. The MeterProvider reads them when it
// collects. stop ends that. Call stop before the database is closed: a collection that reads the
// figures of a closed database fails.
func Observe(db *jay.DB, opts *Options) (stop func() error, err error) {
	o := opts.withDefaults()
	f := &figures{db: db, options: o}
	meter := o.MeterProvider.Meter(scope)
	for _, m := range gauges {
		g, err := meter.Float64ObservableGauge("jay."+m.name, metric.WithUnit(m.unit), metric.WithDescription(m.help))
		if err != nil {
			return nil, fmt.Errorf("jayotel: %w", err)
		}
		f.add(g, m.value)
	}
	for _, m := range counters {
		c, err := meter.Float64ObservableCounter("jay."+m.name, metric.WithUnit(m.unit), metric.WithDescription(m.help))
		if err != nil {
			return nil, fmt.Errorf("jayotel: %w", err)
		}
		f.add(c, m.value)
	}
	var errs [5]error
	f.documents, errs[0] = meter.Int64ObservableGauge("jay.documents", metric.WithUnit("{document}"), metric.WithDescription("Documents, by collection."))
	f.bytes, errs[1] = meter.Int64ObservableGauge("jay.document.size", metric.WithUnit("By"), metric.WithDescription("Bytes of IDs, metadata and bodies, before compression, by collection."))
	f.revisions, errs[2] = meter.Int64ObservableGauge("jay.revisions", metric.WithUnit("{revision}"), metric.WithDescription("Older versions of documents, by collection."))
	f.shares, errs[3] = meter.Int64ObservableGauge("jay.memory.share.size", metric.WithUnit("By"), metric.WithDescription("What each share of the memory may have. Together they are the bound, Options.MaxMemory or that of Options.Memory."))
	f.used, errs[4] = meter.Int64ObservableGauge("jay.memory.share.used", metric.WithUnit("By"), metric.WithDescription("What each share of the memory has."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("jayotel: %w", err)
	}
	registered, err := meter.RegisterCallback(f.observe, append(f.instruments, f.documents, f.bytes, f.revisions, f.shares, f.used)...)
	if err != nil {
		return nil, fmt.Errorf("jayotel: %w", err)
	}
	return registered.Unregister, nil
}

// figures are the instruments of one database.
type figures struct {
	db          *jay.DB
	options     Options
	instruments []metric.Observable
	values      []func(*jay.Stats) float64 // parallel
	documents   metric.Int64ObservableGauge
	bytes       metric.Int64ObservableGauge
	revisions   metric.Int64ObservableGauge
	shares      metric.Int64ObservableGauge // of the memory
	used        metric.Int64ObservableGauge // of each share
}

func (f *figures) add(instrument metric.Float64Observable, value func(*jay.Stats) float64) {
	f.instruments, f.values = append(f.instruments, instrument), append(f.values, value)
}

// observe is called when the provider collects.
func (f *figures) observe(ctx context.Context, out metric.Observer) error {
	s, err := f.db.Stats(ctx)
	if err != nil {
		return err
	}
	own := metric.WithAttributes(f.options.Attributes...)
	for i, instrument := range f.instruments {
		out.ObserveFloat64(instrument.(metric.Float64Observable), f.values[i](&s), own)
	}
	documents, bytes, revisions := make([]named, 0, len(s.Collections)), make([]named, 0, len(s.Collections)), make([]named, 0, len(s.Revisions))
	for _, c := range s.Collections {
		documents, bytes = append(documents, named{c.Name, c.Documents}), append(bytes, named{c.Name, c.Bytes})
	}
	for _, c := range s.Revisions {
		revisions = append(revisions, named{c.Collection, c.Revisions})
	}
	f.observeEach(out, f.documents, documents)
	f.observeEach(out, f.bytes, bytes)
	f.observeEach(out, f.revisions, revisions)
	for _, share := range s.Memory.Shares {
		of := metric.WithAttributes(attribute.String("jay.memory.share", share.Name))
		out.ObserveInt64(f.shares, share.Bytes, own, of)
		out.ObserveInt64(f.used, share.UsedBytes, own, of)
	}
	return nil
}

// named is a figure of a collection.
type named struct {
	name  string
	value int64
}

// observeEach observes the largest figures, and the sum of the others.
func (f *figures) observeEach(out metric.Observer, instrument metric.Int64Observable, all []named) {
	if most := f.options.MaxCollections; len(all) > most {
		slices.SortFunc(all, func(a, b named) int {
			return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.name, b.name))
		})
		rest := named{name: Others}
		for _, one := range all[most:] {
			rest.value += one.value
		}
		all = append(all[:most:most], rest)
	}
	own := metric.WithAttributes(f.options.Attributes...)
	for _, one := range all {
		out.ObserveInt64(instrument, one.value, own, metric.WithAttributes(attribute.String("db.collection.name", one.name)))
	}
}
