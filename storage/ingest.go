package storage

import (
	"context"
	"io"
)

// Ingester is an Engine that takes in keys that its caller has sorted, as tables of its
// own. For many keys that takes a fraction of the time of transactions. An Engine need
// not be one.
type Ingester interface {
	// NewTemporary makes an empty file beside those of the engine, for a sort of more than
	// memory holds. One that a crash leaves behind is removed when the store is next opened.
	NewTemporary() (Temporary, error)

	// NewTable begins a table. With lookups, the table answers fast that it has not got a
	// key: Tx.Get of its keys is to be expected, and not only walks over them.
	NewTable(lookups bool) (TableWriter, error)

	// Ingest commits the keys of the tables, which must be in ascending order and not
	// overlap, in one commit that has no sequence number. They replace or remove what was committed at these keys
	// before. The commit, and all before it, are on disk when Ingest returns.
	//
	// taken, if it is not nil, is called when the tables are in, and before any
	// transaction begins that comes after them. before is the state that the tables were
	// put on top of; the callee owns it and closes it, before the engine is closed. taken
	// must not call the engine.
	//
	// Everything that the engine remembers of these keys, or of their absence, is
	// forgotten: Tx.Unchanged is false for them.
	//
	// The tables are used up, whatever the result. ErrUnknownOutcome means that they may
	// be in; taken says whether they are. With any other error they are not. Ingest
	// follows ctx as Update does.
	Ingest(ctx context.Context, tables []Table, taken func(before Snapshot)) error

	// GiveWay lets other goroutines run first, above all those whose commits wait for the
	// disk: they need a processor for a few microseconds, again and again. Code that
	// computes for long to make tables calls it every few hundred microseconds.
	GiveWay()
}

// Temporary is a file for the time of a sort. Its methods are called one at a time, but
// for Open and the readers.
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

	// Finish ends the table, whose bytes are on disk then. It must not be empty. With an error there is no table.
	Finish() (Table, error)

	// Abandon removes it.
	Abandon()
}

// Table is a finished table.
type Table interface {
	// Remove removes it, unless Ingest was called with it.
	Remove() error
}
