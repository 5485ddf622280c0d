// Package jayprometheus shows a database to Prometheus.
//
// A [Collector] has the figures of jay.DB.Stats: documents and bytes of collections, the
// disk, the cache, the log. An [Observer], which jay.Options names, measures operations.
// Both are collectors for a registry:
//
//	observer := jayprometheus.NewObserver(nil)
//	db, err := jay.Open("shop.jay", &jay.Options{Observer: observer})
//	…
//	registry.MustRegister(observer, jayprometheus.NewCollector(db, nil))
//
// docs/watching.md lists all metrics, and what to alert on.
package jayprometheus
