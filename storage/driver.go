package storage

import (
	"log/slog"
	"time"
)

// Driver opens stores of one kind of engine. Programs set it in jay.Options.Engine. A Driver has
// the options of its kind of engine. It is safe for concurrent use.
type Driver interface {
	// Open opens the store with this name, or makes it if there is none. The Driver defines the
	// meaning of a name, such as a directory or an address.
	//
	// The errors are those of errors.go, with the name in them, and a *DamageError for a
	// store that is damaged.
	Open(name string, o OpenOptions) (Engine, error)

	// Prepare returns a store to be made under this name. The store is invisible under the name until
	// it is complete. Prepare makes nothing yet. If there is a store with this name, finished or not,
	// the error is an fs.ErrExist.
	Prepare(name string) (NewStore, error)
}

// Namer is a Driver whose names may contain secrets, such as a password, which no message may
// contain. A Driver need not be one.
type Namer interface {
	// Shown returns a name in the form for messages.
	Shown(name string) string
}

// Shown returns the name of a store in the form for messages. The driver may be nil.
func Shown(d Driver, name string) string {
	if n, is := d.(Namer); is {
		return n.Shown(name)
	}
	return name
}

// Limiter is a Driver that knows, before a store is opened, how much one can store. A Driver need not be one.
type Limiter interface {
	// StoreLimits returns what Engine.Limits of a store that the Driver opens would return.
	StoreLimits() Limits
}

// OpenOptions are the options with which a store of any kind is opened. An engine that cannot meet
// one of them returns an error that names it.
type OpenOptions struct {
	// ReadOnly opens an existing store, and changes nothing in it. Open returns ErrNoDatabase if there
	// is none. Update returns ErrReadOnly. AcceptLoss is not used.
	ReadOnly bool

	// MustExist makes Open return ErrNoDatabase instead of making a store.
	MustExist bool

	// AcceptLoss, if not nil, makes Open repair a store for which Open would otherwise return a
	// *DamageError. Open calls AcceptLoss with each damage, and deletes the damaged data, and data
	// that was written after it, as far as is needed.
	AcceptLoss func(*DamageError)

	// DurableReads makes reads show only commits that are on disk. A read does not wait for
	// the disk: it sees the newest state that is on it. Transactions, Latest and TrackWrites
	// see all commits.
	DurableReads bool

	// Bounds are keys, ascending, at which one part of the key space ends and another, with
	// other ways of use, begins. They may change from one Open to the next.
	Bounds [][]byte

	// CloseTimeout is how long Open, Await and Close wait for a disk that answers no call, and for
	// an engine that has failed. 0 is the engine's default.
	CloseTimeout time.Duration

	// Logger receives the engine's messages. Nil discards them.
	Logger *slog.Logger
}

// NewStore is a store that is being made. Its methods are called in turn, by one goroutine.
type NewStore interface {
	// Name is the name under which the store is opened until it is complete.
	Name() string

	// Commit gives the store its final name, durably. The store must not be open. If there is a store
	// with that name by now, Commit removes the new store, and the error is an fs.ErrExist.
	Commit() error

	// Abandon removes the unfinished store.
	Abandon() error
}

// Salvager is a Driver whose stores can be read when they are damaged. A Driver need not be one: a
// server has its own tools to check and repair a store.
type Salvager interface {
	// OpenSalvage opens a store that is not in use, as far as it can be read, and changes nothing in
	// it. It uses only the Logger of o. Its errors are those of Open, except for damage, which
	// Salvage.Damage returns.
	OpenSalvage(name string, o OpenOptions) (Salvage, error)
}

// Salvage reads a store as far as that is possible. Its methods are safe for concurrent use, except
// Close. Its files are the files that can be checked.
type Salvage interface {
	FileChecker

	// Format returns the format of the store. If the format cannot be read, the result may have all
	// known features.
	Format() StoreFormat

	// Damage returns the damage that was found so far, without the damage that CheckFile returns.
	Damage() []*DamageError

	// Reader returns a Reader of the readable data, without the data in the files with these names. It
	// returns nil if nothing can be read. Reads of damaged data return an ErrCorrupt. The Reader is
	// valid until Close.
	Reader(without ...string) (Reader, error)

	// Close releases the store.
	Close() error
}
