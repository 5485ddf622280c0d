// Package storage keeps Jay's bytes: ordered keys, atomic writes, durability.
//
// It is the only package that knows Pebble. Everything above it sees four
// things: an [Engine] that commits functions of a [Tx], a [Reader] of one
// moment ([Engine.Snapshot] gives a fixed one), an [Iterator] over a range of
// keys, and the errors in errors.go. [Open] returns the engine on Pebble; an
// engine on another ordered, transactional store is welcome if it passes
// storagetest.Run.
//
// # The caller's duties
//
//  1. A function given to [Engine.Update] may run more than once before it
//     commits, and on another goroutine. It must do nothing but read and stage
//     through its Tx, and take no lock that somebody holds who calls Update.
//  2. Close what you open: snapshots, iterators and the closers of Get.
//  3. Call [Engine.Close] only when no call is in flight and no iterator or
//     snapshot is open.
package storage

import (
	"context"
	"io"
)

// Engine is an ordered, transactional map from keys to values. All methods
// but Close are safe for concurrent use.
type Engine interface {
	Reader

	// Update runs fn with a new transaction and commits what fn staged, all of
	// it or none of it. If fn returns an error, nothing is staged and Update
	// returns that error as it is. fn may run more than once, and on another
	// goroutine.
	//
	// Commits happen in the order of the numbers that Tx.Sequence drew: a
	// reader that sees the effects of number n sees those of every committed
	// number below n.
	//
	// With sync set, or when fn called Tx.RequireSync, Update returns only
	// after the commit, and all before it, are on disk, even if fn staged
	// nothing; concurrent Updates share the sync. Without
	// it a crash of the machine or the process may lose the commit, but never
	// a commit without those before it.
	//
	// An error of fn does not wait for the disk: what fn has read may still be
	// undone by a crash, until Sync has returned.
	//
	// Update returns when ctx ends, wherever it waits. If the commit had not
	// begun, it returns ctx's error and nothing has changed. Afterwards it returns
	// an ErrUnknownOutcome that wraps ctx's error: the commit goes on, its numbers
	// are used up, and the engine stays usable. It also returns ErrUnknownOutcome
	// when the log could not be written or synced; the engine then refuses every
	// later Update with ErrFailed. ErrConflict means that another writer won and
	// nothing was changed.
	Update(ctx context.Context, sync bool, fn func(Tx) error) error

	// Sync returns when every commit before it is on disk. If ctx ends or the log
	// cannot be synced before, Sync returns ErrUnknownOutcome.
	Sync(ctx context.Context) error

	// Watch begins to note which keys are written. It lets a caller read many
	// keys before its transaction, with several goroutines, and ask in it which
	// of the answers still hold: Tx.Unchanged. The Watch must be closed.
	Watch() Watch

	// StartSequence makes every later Tx.Sequence return a number above n. It
	// never lowers the sequence. It is not durable by itself: whoever opens an
	// engine finds the highest number in use and passes it here.
	StartSequence(n uint64)

	// Snapshot returns a Reader of the committed state at this moment, or, with
	// Options.DurableReads, of the newest state that is on disk.
	Snapshot() Snapshot

	// Latest returns a Reader of the committed state at this moment, including
	// commits that are not on disk yet: Snapshot.Settle waits for those.
	Latest() Snapshot

	// Creating reports whether the store is so new that FinishCreation was never
	// called, or was last opened by a version without it. Only then may a caller who misses what a new
	// store begins with store it: otherwise it was lost.
	Creating() bool

	// FinishCreation says that what a new store begins with is committed and
	// synced. It is durable when it returns.
	FinishCreation() error

	// Stats returns figures about memory and disk. It is cheap.
	Stats() Stats

	// Await returns when done is closed, which whoever closes the engine does
	// when all calls on it have ended. If the disk does not answer meanwhile,
	// Await makes the engine fail, so that calls return, and if they cannot, it
	// returns an ErrFailed within a stated time.
	Await(done <-chan struct{}) error

	// Close makes everything committed durable, synced or not, and releases
	// the directory. If the disk does not answer, Close returns an ErrFailed
	// within a stated time, and the directory stays locked until the last
	// goroutine has left it.
	Close() error
}

// Reader reads committed keys. With Options.DurableReads, an Engine and its
// Snapshots show only commits that are on disk. After the engine has failed
// they answer from what is on disk as far as is known, and return
// ErrUnknownOutcome for a key whose newest commit is in doubt.
type Reader interface {
	// Get returns the value at key, or ErrNotFound. The value is valid until
	// closer is closed and must not be changed. closer is nil exactly when err
	// is not.
	Get(key []byte) (value []byte, closer io.Closer, err error)

	// Iterate returns an iterator over the keys in [lo, hi) as they are now. It
	// stands before the first key. A nil hi means no upper bound.
	Iterate(lo, hi []byte) (Iterator, error)
}

// Snapshot is a Reader of one moment. It holds space until it is closed.
type Snapshot interface {
	Reader

	// Settle returns when every commit that the snapshot shows is on disk. It
	// returns what Engine.Sync returns.
	Settle(ctx context.Context) error

	Close() error
}

// Watch is the time from Engine.Watch to Close. It is safe for concurrent use,
// but for Close.
type Watch interface {
	// Look returns a reader of what is committed now. It must be closed before
	// the Watch is.
	Look() (Look, error)

	// Close ends the watch.
	Close()
}

// Look reads keys. It is not safe for concurrent use.
type Look interface {
	// Get returns the value at key, or ErrNotFound. The value is valid until the
	// next call and must not be changed.
	Get(key []byte) ([]byte, error)

	Close() error
}

// Tx stages the writes of one transaction and reads through them. It belongs
// to the function it was given to, and to the goroutine that runs it.
type Tx interface {
	// Get is Reader.Get, and sees what this transaction staged. A conflict on
	// a key that was read makes the transaction run again or fail.
	Get(key []byte) (value []byte, closer io.Closer, err error)

	// Unchanged tells whether Get would find at key what a Look of w has found
	// there: nobody has written it since w began, and this transaction has not
	// staged it. A false answer may be too careful, a true one counts as a read
	// of key.
	Unchanged(w Watch, key []byte) bool

	// Iterate is Reader.Iterate over what was committed before: it does not see
	// what this transaction staged. A conflict on a key in [lo, hi), there or
	// not, makes the transaction run again or fail. The iterator must be closed
	// before the function returns.
	Iterate(lo, hi []byte) (Iterator, error)

	// Set stages the value head followed by tail at key. Two parts spare the
	// caller from joining a header to a large body. key and head are copied; tail
	// is not, and must stay as it is until Update returns.
	Set(key, head, tail []byte)

	// Delete stages the removal of key, whether or not it is there.
	Delete(key []byte)

	// Sequence draws the next number of this engine's commit sequence. Numbers
	// start at 1 and are given to a commit in the order of its calls; those of
	// a transaction that fails or runs again are drawn anew. It returns
	// ErrSequenceExhausted past 1<<63 - 1.
	Sequence() (uint64, error)

	// RequireSync makes Update wait for the disk even if its caller did not
	// ask for it.
	RequireSync()

	// OnDecided has d called when readers see this run's commit and never again
	// an older state, or when the run has failed. That may be before Update
	// returns or long after, on any goroutine. d is not called for a commit that
	// is in doubt because the engine failed, and may not be called if Update
	// returns an error other than ErrUnknownOutcome.
	OnDecided(d Decider)
}

// Decider is what Tx.OnDecided calls. It must not block.
type Decider interface{ Decided() }

// Iterator walks over keys in byte order. Key and Value are valid until the
// next call that moves it. It is not safe for concurrent use. A false return
// of a move means the end or an error: ask Error.
type Iterator interface {
	First() bool
	Last() bool
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	Next() bool
	Prev() bool
	Valid() bool
	Key() []byte
	Value() []byte
	Error() error
	Close() error
}

// Stats are figures about an engine at one moment.
type Stats struct {
	DiskBytes     uint64 `json:"diskBytes"`     // all files: tables, log, manifests
	CacheBytes    int64  `json:"cacheBytes"`    // blocks held in the cache
	MemTableBytes uint64 `json:"memTableBytes"` // committed data not yet in tables
	LogSyncs      uint64 `json:"logSyncs"`      // syncs of the log since Open
	Commits       uint64 `json:"commits"`       // successful Updates that staged something, since Open
}
