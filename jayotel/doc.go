// Package jayotel shows a database to OpenTelemetry.
//
// An [Observer], which jay.Options names, makes a span of each operation and measures it;
// [Observe] adds the figures of jay.DB.Stats:
//
//	observer, err := jayotel.NewObserver(nil)
//	…
//	db, err := jay.Open("shop.jay", &jay.Options{Observer: observer})
//	…
//	stop, err := jayotel.Observe(db, nil)
//	…
//	defer stop()
//
// Names of attributes are those of OpenTelemetry's conventions for databases
// (db.system.name, db.operation.name, db.collection.name, db.query.text). docs/watching.md
// lists all metrics.
package jayotel
