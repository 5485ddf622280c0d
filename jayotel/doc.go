// Package jayotel exports traces and metrics of a database to OpenTelemetry.
//
// An [Observer], set in jay.Options.Observer, makes a span of each operation and measures its
// duration. [Observe] adds the figures of jay.DB.Stats:
//
//	observer, err := jayotel.NewObserver(nil)
//	…
//	db, err := jay.Open("shop.jay", &jay.Options{Observer: observer})
//	…
//	stop, err := jayotel.Observe(db, nil)
//	…
//	defer stop()
//
// The names of attributes follow OpenTelemetry's conventions for databases (db.system.name,
// db.operation.name, db.collection.name, db.query.text). docs/watching.md lists all metrics.
package jayotel
