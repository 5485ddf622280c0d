package storage

import (
	"log/slog"
	"time"
)

// Driver opens stores of one kind of engine: jay.Options has one. Its value holds the
// options that only this kind has. It is safe for concurrent use.
type Driver interface {
	// Open opens the store with this name, or makes it if there is none. What a name
	// is, a directory or an address, is for the Driver to say.
	//
	// The errors are those of errors.go, with the name in them, and a *DamageError for a
	// store that is damaged.
	Open(name string, o OpenOptions) (Engine, error)

	// Prepare returns a store that is to be made under this name, and that nobody sees before it
	// is whole. It makes nothing yet. If there is one with this name, finished or not,
	// the error is an fs.ErrExist.
	Prepare(name string) (NewStore, error)
}

// Namer is a Driver whose names may hold what no message may have, such as a password. A Driver need not be one.
type Namer interface {
	// Shown returns a name as messages have it.
	Shown(name string) string
}

// Shown returns a name of a store as messages have it. The driver may be nil.
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

// OpenOptions are what a store of any kind is opened with. An engine for which one of them
// cannot be met returns an error that names it.
type OpenOptions struct {
	// ReadOnly opens a store that is there, or returns ErrNoDatabase, and changes nothing in it.
	// Update returns ErrReadOnly. AcceptLoss is not used.
	ReadOnly bool

	// MustExist makes Open return ErrNoDatabase instead of making a store.
	MustExist bool

	// AcceptLoss, if not nil, makes Open repair a store for which it would return a
	// *DamageError: it is called with each damage, and what is damaged, and what was written
	// after it, is deleted as far as is needed.
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
	// Name is the name under which it is opened until it is whole.
	Name() string

	// Commit gives it the name that it was prepared for, durably. Nothing has it open. If
	// there is a store with that name by now, Commit removes what was made, and the error is an
	// fs.ErrExist.
	Commit() error

	// Abandon removes what was made.
	Abandon() error
}

// Salvager is a Driver whose stores can be read when they are damaged. A Driver need not be
// one: a store on a server is checked and repaired by what belongs to that.
type Salvager interface {
	// OpenSalvage opens a store that is not in use, as far as it can be read, and changes
	// nothing in it. Of o it uses Logger. Its errors are those of Open but for damage, which
	// Salvage.Damage returns.
	OpenSalvage(name string, o OpenOptions) (Salvage, error)
}

// Salvage reads a store as far as that is possible. It is safe for concurrent use, but for Close.
// Its files are those that can be checked.
type Salvage interface {
	FileChecker

	// Format returns the format of the store. If that cannot be read, it may hold all features that are known.
	Format() StoreFormat

	// Damage returns what has been found to be wrong so far, but for what CheckFile returns.
	Damage() []*DamageError

	// Reader returns a Reader of what is there, without what is in the files with these names, or nil
	// if nothing can be read. Reads of what is damaged return an ErrCorrupt. The Reader is
	// valid until Close.
	Reader(without ...string) (Reader, error)

	// Close releases the store.
	Close() error
}
