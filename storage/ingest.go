package storage

import (
	"context"
	"io"
)

// Ingester is an Engine that takes in sorted keys as tables of its own. For many keys that takes a
// fraction of the time of transactions. An Engine need not be one.
type Ingester interface {
	// NewTemporary makes an empty file next to the files of the engine, for a sort of more data than
	// memory holds. If a crash leaves the file, the next Open of the store removes it.
	NewTemporary() (Temporary, error)

	// NewTable begins a table. With lookups, the table answers fast that it does not have a key: set
	// it if Tx.Get of keys is expected, and not only iteration.
	NewTable(lookups bool) (TableWriter, error)

	// Ingest commits the keys of the tables, which must be in ascending order and not overlap, in one
	// commit that has no sequence number. They replace or remove earlier committed values of these
	// keys. The commit, and all before it, are on disk when Ingest returns.
	//
	// taken, if not nil, is called after the tables are in, and before any later transaction begins.
	// before is the state just before the tables. taken owns before, which must be closed before the
	// engine is closed. taken must not call the engine.
	//
	// The engine forgets everything that it remembers of these keys, or of their absence: Tx.Unchanged
	// is false for them.
	//
	// The tables are used up, whatever the result. ErrUnknownOutcome means that they may
	// be in; taken says whether they are. With any other error they are not. Ingest
	// follows ctx as Update does.
	Ingest(ctx context.Context, tables []Table, taken func(before Snapshot)) error

	// GiveWay lets other goroutines run first, above all goroutines whose commits wait for the disk:
	// these need a processor for a few microseconds, again and again. Code that makes tables with long
	// computations calls GiveWay every few hundred microseconds.
	GiveWay()
}

// Temporary is a file for the duration of a sort. Its methods must be called one at a time, except
// Open and the methods of the readers.
type Temporary interface {
	io.Writer

	// Finish ends the writing. Open must not be called before.
	Finish() error

	// Open returns a reader from the beginning, which the caller closes.
	Open() (io.ReadCloser, error)

	// Remove removes the file, finished or not. No reader may be open.
	Remove() error
}

// TableWriter writes one table. It is not safe for concurrent use. Finish or Abandon
// must be called.
type TableWriter interface {
	// Set adds a key, which must be above the one before it. Both arguments are copied.
	Set(key, value []byte) error

	// Delete adds the removal of a key, whether or not it is there. As with Set, it must be above the key before.
	Delete(key []byte) error

	// Bytes returns about how large the table is.
	Bytes() uint64

	// Finish ends the table, and returns when its bytes are on disk. The table must not be empty.
	// After an error there is no table.
	Finish() (Table, error)

	// Abandon removes it.
	Abandon()
}

// Table is a finished table.
type Table interface {
	// Remove removes the table, unless Ingest was called with it.
	Remove() error
}
