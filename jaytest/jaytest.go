// Package jaytest opens databases for the tests of programs that use Jay.
//
// A database of this package is in memory, on a simulated disk that can fill up, fail or lose its
// power. Its clock stands still until the test moves it, and its random numbers are the same in
// every run. So IDs, times and answers are the same in every run, too. At the end of the test the
// package checks and closes the database.
//
//	func TestLend(t *testing.T) {
//		db := jaytest.Open(t, nil)
//		library := lending.New(db.DB)
//		…
//		db.Advance(15 * 24 * time.Hour)
//		…
//		jaytest.Golden(t, db.DB, "overdue")
//	}
//
// docs/testing-with-jay.md is the guide, and examples/lending is a service whose tests use the
// package. A DB and its methods are for one goroutine, unless a method says otherwise. The jay.DB
// inside a DB is safe for concurrent use, as always.
package jaytest

import (
	"context"
	"errors"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// T has the methods of *testing.T, *testing.B and *testing.F that this package needs. Values of
// other frameworks have these methods as well.
type T interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(fn func())
}

// DB is a database for one test.
type DB struct {
	// DB is the open database, for the code under test. Restart, CutPower and FailReads replace it:
	// make values that hold it again after these calls.
	*jay.DB

	// Clock is the clock of the database.
	Clock *Clock

	// Disk is the disk that the database is on. It fails on request. Its methods offer finer control
	// than the methods of DB. CutPower replaces it.
	Disk *storagetest.Disk

	t       T
	options jay.Options
	random  *random
}

// dir is where a database is on its disk.
const dir = "db"

// Open opens an empty database in memory. Nil options mean the defaults. Now and FS must not be
// set: Open sets them to the Clock and the Disk. If Rand is not set, it is a generator with a fixed
// seed, which differs between the databases of one test. Unless DocumentCacheBytes is set, there is
// no cache of documents, so that reads meet the faults of the disk.
//
// At the end of the test, Open's cleanup heals the disk, opens the database once more, checks it
// with Check, and closes it. Each error fails the test, except errors that the disk caused.
func Open(t T, opts *jay.Options) *DB {
	t.Helper()
	db := newDB(t, opts)
	db.open()
	t.Cleanup(db.end)
	return db
}

// newDB returns a DB that is not open yet.
func newDB(t T, opts *jay.Options) *DB {
	t.Helper()
	db := &DB{t: t, Clock: NewClock(), Disk: storagetest.NewDisk(), random: newRandom(ordinal(t))}
	if opts != nil {
		db.options = *opts
	}
	switch {
	case db.options.FS != nil:
		t.Fatalf("jaytest: Options.FS must not be set: the database is on DB.Disk")
	case db.options.Now != nil:
		t.Fatalf("jaytest: Options.Now must not be set: the clock is DB.Clock, and Clock.Set sets it")
	}
	if db.options.Rand == nil {
		db.options.Rand = db.random
	}
	if db.options.DocumentCacheBytes == 0 {
		db.options.DocumentCacheBytes = -1
	}
	db.options.Now = db.Clock.Now
	return db
}

// open opens the database on the disk.
func (db *DB) open() {
	db.t.Helper()
	options := db.options
	options.FS = db.Disk
	opened, err := jay.Open(dir, &options)
	if err != nil {
		db.t.Fatalf("jaytest: %v", err)
	}
	db.DB = opened
}

// Restart closes the database and opens it again, as when a program ends and starts. It ends the
// faults of the disk first.
func (db *DB) Restart() {
	db.t.Helper()
	db.stop()
	db.open()
}

// CutPower cuts the power: it opens the database as a machine that lost its power now would find
// it. The disk keeps each piece of unsynced data with probability keep, in percent. Every
// acknowledged write is there, unless the database was opened with jay.Relaxed. Transactions,
// sessions and iterations that began before end with jay.ErrClosed.
func (db *DB) CutPower(keep int) {
	db.t.Helper()
	found := db.Disk.Crash(keep, db.random.generator())
	db.stop()
	db.Disk = found
	db.open()
}

// stop ends the faults of the disk and closes the database. An error that comes of a fault
// is none.
func (db *DB) stop() {
	db.t.Helper()
	refused := db.Disk.Refused()
	db.Heal()
	if err := db.DB.Close(); err != nil && !(refused > 0 && isFault(err)) {
		db.t.Errorf("jaytest: close: %v", err)
	}
}

// isFault reports whether an error of Close comes of a disk that failed before.
func isFault(err error) bool {
	return errors.Is(err, jay.ErrFailed) || errors.Is(err, jay.ErrUnknownOutcome) || errors.Is(err, storagetest.ErrInjected) || errors.Is(err, storagetest.ErrFull)
}

// end is the end of the test.
func (db *DB) end() {
	db.t.Helper()
	db.Restart() // what is on the disk counts, and not what is in memory
	Check(db.t, db.DB)
	db.stop()
}

// background is the context of what the package does for a test.
var background = context.Background()
