// Package jayprometheus exports metrics of a database to Prometheus.
//
// A [Collector] collects the figures of jay.DB.Stats: documents and bytes of collections, the disk,
// the cache, the log. An [Observer], set in jay.Options.Observer, measures operations. Both are
// collectors for a registry:
//
//	observer := jayprometheus.NewObserver(nil)
//	db, err := jay.Open("shop.jay", &jay.Options{Observer: observer})
//	…
//	registry.MustRegister(observer, jayprometheus.NewCollector(db, nil))
//
// docs/watching.md lists all metrics, and what to alert on.
package jayprometheus
