// Package storage defines the contract between Jay and a storage engine: ordered keys, atomic
// transactions, durability.
//
// An [Engine] commits functions of a [Tx], a [Reader] reads committed keys
// ([Engine.Snapshot] those of one moment), an [Iterator] walks over a range of
// them, and errors.go lists the errors. Package storage/lsm is the engine on
// Pebble. Another engine on an ordered, transactional store must pass
// enginetest.Run.
//
// This package is for the authors of engines. A minor version of Jay may add to it or rename.
// Programs use package jay.
//
// # The caller's duties
//
//  1. A function given to [Engine.Update] may run more than once before it
//     commits, and on another goroutine. It must do nothing but read and stage
//     through its Tx, and must not take a lock that a caller of Update holds. What it has
//     read counts only if its run commits: a transaction may see what others have staged that
//     share its commit, and if that fails, it runs again and may find something else.
//  2. Close what you open: snapshots, iterators, write trackers and the closers of Get.
//  3. Call [Engine.Close] only when no call is in flight and no iterator or
//     snapshot is open.
//
// # The engine's duties
//
//  1. Transactions are serializable, in the order of their numbers
//     ([Tx.Sequence]). They may run at the same time and in several processes:
//     whatever a transaction has read, absent keys and ranges included, must be
//     unchanged when it commits. Otherwise the engine runs it again or returns
//     ErrConflict.
//  2. Update is a barrier in its process, even with a function that stages
//     nothing: when it returns, each transaction whose function had begun before
//     has committed or failed, or runs again. The build of an index relies on it.
//     An engine that runs one transaction at a time has nothing to do for that.
//  3. Durability is a prefix: if a crash loses a commit, it loses all later
//     ones. An answer that says that a commit is durable is given after the
//     sync of all commits before it.
//  4. Reads never wait for a transaction or for the disk's syncs.
//  5. Every call with a context returns when the context ends, or when the
//     function returns that it runs at that moment. A commit that has begun is not
//     withdrawn: its caller gets ErrUnknownOutcome.
//  6. The number of a store's format is durable before the first key that needs it, and never
//     falls: see Tx.RequireFeature. An engine of a store that others raise above what it knows commits
//     nothing more: Update returns a *FormatError.
//  7. An engine that cannot write its log acknowledges nothing from then on, and
//     neither ends the process nor blocks it: see Update, Await and Close.
//
// All methods are called, so an engine has all of them. Those that an engine of
// another kind can make simple say so: Compact, TrackWrites, Latest, NextCommit, Creating, Stats, Await,
// Tx.RequireSync and Tx.OnDecided.
package storage

import (
	"bytes"
	"context"
	"io"
	"time"
)

// Engine is an ordered, transactional map from keys to values. All methods
// but Close are safe for concurrent use.
type Engine interface {
	Reader

	// Update runs fn with a new transaction and commits what fn staged, all of
	// it or none of it. If fn returns an error, nothing is committed and Update
	// returns that error as it is. fn may run more than once, and on another
	// goroutine; if it panics or calls runtime.Goexit, nothing is committed, and
	// a panic comes to the caller of Update.
	//
	// Commits happen in the order of the numbers that Tx.Sequence drew: a
	// reader that sees the effects of number n sees those of every committed
	// number below n.
	//
	// With sync set, or if fn called Tx.RequireSync, Update returns only after
	// this commit and all before it are on disk, even if fn staged nothing;
	// concurrent Updates share the sync. Without sync, a crash of the process or
	// the machine may lose the commit, together with all later ones.
	//
	// Update returns an error of fn without waiting for the disk: a crash may still undo what fn has
	// read, until Sync has returned.
	//
	// If ctx ends before the commit has begun, Update returns ctx's error and
	// nothing has changed. If it ends later, Update returns an ErrUnknownOutcome
	// that wraps ctx's error: the commit goes on, its numbers are used up, and the
	// engine stays usable. Update also returns ErrUnknownOutcome when the log could
	// not be written or synced; the engine then refuses every later Update with
	// ErrFailed. ErrConflict means that another writer changed what fn has read,
	// and that nothing was committed.
	Update(ctx context.Context, sync bool, fn func(Tx) error) error

	// Sync waits until every commit before the call is on disk, including the commit of an Update that
	// has returned ErrUnknownOutcome because its context ended. If ctx ends first, or the log cannot
	// be synced, Sync returns ErrUnknownOutcome.
	Sync(ctx context.Context) error

	// TrackWrites begins to track writes, so that a caller can read many keys
	// before its transaction, with several goroutines, and validate those reads
	// inside it by Tx.Unchanged. The WriteTracker must be closed. An engine that
	// tracks no writes returns one for which Unchanged is always false; its
	// readers may still read many keys at once.
	TrackWrites() WriteTracker

	// StartSequence makes every later Tx.Sequence return a number above n. It
	// never lowers the sequence. It is not durable: after an engine is opened,
	// its user finds the highest number in use and passes it here.
	StartSequence(n uint64)

	// Snapshot returns a Reader of the newest committed state that reads may
	// show: see Reader.
	Snapshot() Snapshot

	// Latest returns a Reader of the newest committed state, including commits
	// that are not on disk yet; Snapshot.WaitDurable waits for those. An engine whose
	// commits are durable as soon as they can be read returns a Snapshot.
	Latest() Snapshot

	// NextCommit returns a channel that is closed when a Snapshot shows more than one that was taken
	// before the call: a caller that finds nothing new, asks for the channel, looks again and then
	// waits for it misses no commit. The engine may close it although nothing is new. All callers
	// share the channel, and commits that no caller waits for cost next to nothing. When the engine
	// fails, the channel is closed, and from then on NextCommit returns ErrFailed. Close need not
	// close it.
	//
	// An engine whose store other processes write to without notifying it polls the store.
	NextCommit() (<-chan struct{}, error)

	// Creating reports whether FinishCreation was never called on this store,
	// or was last opened by a version without it. Only then may a caller store what
	// a new store begins with: if it is missing later, it was lost. An engine that
	// cannot lose part of a store may report whether the store is empty.
	Creating() bool

	// FinishCreation records that the initial content of a new store is committed and synced. The
	// record is durable when FinishCreation returns.
	FinishCreation() error

	// Limits returns how much can be stored. It is the same for as long as the engine is open.
	// An Update that stages more returns a *LimitError.
	Limits() Limits

	// Format returns the format of the store. It covers all commits before the call, and all that
	// earlier Snapshots show. It is cheap.
	Format() StoreFormat

	// Shared reports whether other engines, of this process or of others, may write to the store while
	// this engine has it open. If so, only reads in a transaction or from a snapshot are reliable:
	// results of earlier calls may have changed. The numbers of Tx.Sequence belong to this engine
	// only, and a database draws its own numbers from a key of the store.
	Shared() bool

	// Stats returns figures about memory and disk. It is cheap. An engine leaves figures that it does
	// not know at 0.
	Stats() Stats

	// Compact rewrites the store on disk so that deleted and overwritten values of keys in [lo, hi)
	// take no space and iterators need not pass them, except values that open snapshots show. A nil
	// bound means no bound: Compact(ctx, nil, nil) rewrites the whole store. Compact may also rewrite
	// keys around the range. Reads and transactions go on. If ctx ends, Compact returns the error of
	// ctx. Work that has begun may continue, for a bounded part of the store, and Close waits for it.
	// If the engine fails, Compact returns ErrFailed. An engine that frees space automatically returns
	// nil.
	Compact(ctx context.Context, lo, hi []byte) error

	// Await returns nil when done is closed. The caller closes done when all its calls on the engine
	// have ended, before it calls Close. If the disk does not answer in the meantime, Await makes the
	// engine fail, so that these calls return. If they still do not return, Await returns an ErrFailed
	// within a documented time. An engine whose calls cannot hang waits for done.
	Await(done <-chan struct{}) error

	// Close makes everything committed durable, synced or not, and releases
	// the store. If the disk does not answer, Close returns an ErrFailed
	// within a stated time, and the store stays locked until the last
	// goroutine of the engine has left it.
	Close() error
}

// Checkpointer is an Engine that can make a copy of itself while it is used, with less
// work than reading all keys: by links to files that do not change, or by asking its
// server for a copy. An Engine need not be one.
type Checkpointer interface {
	// Checkpoint makes the directory dir, which must not exist. An engine of the same kind can open
	// dir, and shows the state of one moment, which includes every commit that had returned before the
	// call. Reads and transactions go on. If Checkpoint fails, or the process ends, there is no dir.
	Checkpoint(ctx context.Context, dir string) error
}

// Rekeyer is an Engine that encrypts its files, and can give them another key while it is used. An
// Engine need not be one. Its methods return ErrKey if its files are not encrypted.
type Rekeyer interface {
	// RenewKey asks for the newest key, encrypts later files with it, and returns its ID. After an
	// error the engine still uses the key before. The next Open needs the new key. If expected is not
	// empty, and the newest key has another ID, the error is ErrKey and nothing is changed.
	RenewKey(expected string) (id string, err error)

	// OlderKeys returns the names of the files that need another key than the newest one.
	OlderKeys() ([]string, error)

	// Rekey encrypts one of these files with the newest key, and reports whether it has done so. Reads
	// and transactions go on. Rekey skips a file that is still being written or no longer exists.
	Rekey(name string) (done bool, err error)
}

// Paced is an Engine that knows how many callers wait for the disk, so that bulk work can
// leave room for them. An Engine need not be one.
type Paced interface {
	// SyncsAwaited returns how many calls of Update with sync, and of Sync, have not
	// returned. It is cheap.
	SyncsAwaited() int64
}

// Reader reads committed keys. An Engine and its Snapshots may be opened so that
// they show only commits that are on disk. If such an engine fails, they answer
// from what is known to be on disk, and return ErrUnknownOutcome for a key whose
// newest commit is in doubt.
type Reader interface {
	// Get returns the value at key, or ErrNotFound. The value is valid until
	// closer is closed and must not be changed. closer is nil exactly when err
	// is not.
	Get(key []byte) (value []byte, closer io.Closer, err error)

	// Iterate returns an iterator over the keys in [lo, hi) as they are now. It
	// stands before the first key. A nil hi means no upper bound.
	Iterate(lo, hi []byte) (Iterator, error)
}

// ManyGetter is a Reader that gets many keys in less time than Get takes for each, such
// as one that asks a server. A Reader need not be one.
type ManyGetter interface {
	// GetMany calls found for each of keys that exists, in any order, with the index and the value of
	// the key. The value is valid until found returns and must not be changed. found must not use the
	// Reader. If it returns an error, GetMany ends and returns it.
	GetMany(keys [][]byte, found func(i int, value []byte) error) error
}

// Snapshot is a Reader of one moment. It holds space until it is closed. All of its methods but
// Close are safe for concurrent use. It shows its moment for at least Limits.SnapshotAge, and
// returns ErrSnapshotExpired when it no longer can.
type Snapshot interface {
	Reader

	// WaitDurable waits until every commit that the snapshot shows is on disk. Its errors are those of
	// Engine.Sync.
	WaitDurable(ctx context.Context) error

	Close() error
}

// Numbered is a Snapshot that knows which commits it shows, so that a caller need not read another
// Snapshot with the same state again. A Snapshot need not be one.
type Numbered interface {
	// CommitNumber returns the number of the last commit that the Snapshot shows. The Snapshot shows
	// all commits up to it, and none after. Snapshots of one Engine with the same number show the same
	// state. known is false if the Snapshot does not know the number. CommitNumber is cheap.
	CommitNumber() (number uint64, known bool)
}

// CountMemory is a Snapshot that remembers how many keys were counted in parts of ranges, so
// that a later count of the same range walks only where something was written since. A
// Snapshot need not be one.
type CountMemory interface {
	// KnownCounts returns the parts of [lo, hi) whose number of keys is known, ascending and disjoint.
	// The numbers are exact for the Snapshot.
	KnownCounts(lo, hi []byte) []RangeCount

	// KeepCounts offers parts that were counted by walks over this Snapshot, ascending and disjoint.
	// The engine may keep some of them, or none, for this and other Snapshots. The slice and the keys
	// belong to the engine from then on.
	KeepCounts(parts []RangeCount)
}

// RangeCount is the number of keys in [Lo, Hi).
type RangeCount struct {
	Lo, Hi []byte
	Keys   int64
}

// WriteTracker tracks writes from Engine.TrackWrites to Close. Its methods are safe for concurrent
// use, except Close. A WriteTracker that is also a ManyGetter gets keys as they are committed now,
// and its user need not ask for readers.
type WriteTracker interface {
	// NewReader returns a reader of the state that is committed now. It must be closed before the
	// WriteTracker is.
	NewReader() (BatchReader, error)

	// Close ends the tracking.
	Close()
}

// BatchReader reads many keys for one goroutine, best in ascending order. It is
// not safe for concurrent use.
type BatchReader interface {
	// Get returns the value at key, or ErrNotFound. The value is valid until the
	// next call and must not be changed.
	Get(key []byte) ([]byte, error)

	// Missing reports whether none of keys exists. keys must ascend. Missing may return false for
	// missing keys if there are many other keys between them.
	Missing(keys [][]byte) (bool, error)

	Close() error
}

// Tx stages the writes of one transaction and reads through them. It belongs
// to the function it was given to, and to the goroutine that runs it.
type Tx interface {
	// Get is Reader.Get, and also sees the staged writes of this transaction. A conflict on a key that
	// was read makes the transaction run again or fail.
	Get(key []byte) (value []byte, closer io.Closer, err error)

	// Unchanged reports whether Get would find the same value at key as a reader of w: no commit has
	// written key since w began, and this transaction has not staged it. The answer may be false for a
	// key that is unchanged. True counts as a read of key.
	Unchanged(w WriteTracker, key []byte) bool

	// Iterate is Reader.Iterate over the committed state: it does not see the staged writes of this
	// transaction. A conflict on a key in [lo, hi), present or absent, makes the transaction run again
	// or fail. The iterator must be closed before the function returns.
	Iterate(lo, hi []byte) (Iterator, error)

	// Set stages the value head followed by tail at key. Two parts spare the
	// caller from joining a header to a large body. key and head are copied; tail
	// is not, and must stay as it is until Update returns.
	Set(key, head, tail []byte)

	// Delete stages the removal of key, whether or not it is there.
	Delete(key []byte)

	// Add stages the addition of deltas to the numbers at key, one by one; there are at most
	// MaxNumbers, and both are copied. A number is 8 bytes, big-endian, in two's complement. The value
	// of a key is the sequence of its numbers. Numbers that a key does not have are 0: all numbers of
	// a missing key, and the numbers after the last. A key whose numbers have all become 0 is removed.
	// It never holds anything but numbers. Transactions that add to the same key do not conflict with
	// each other; one that reads it conflicts with them. A sum beyond 64 bits wraps around.
	//
	// An engine without such an operation reads the numbers and sets them, which is
	// right if it runs one transaction at a time, or adds up one key for each
	// writer when they are read.
	Add(key []byte, deltas ...int64)

	// Sequence draws the next number of this engine's commit sequence. Numbers start at 1 and are
	// given to a commit in the order of its calls; the numbers of a transaction that fails or runs
	// again are drawn again. It returns ErrSequenceExhausted past 1<<63 - 1.
	Sequence() (uint64, error)

	// RequireFeature declares that the staged keys need a feature: the engine raises the format of the
	// store, durably, before it commits any of them. It does nothing if the store uses the feature
	// already, and costs next to nothing. If the engine does not know the feature, Update returns a
	// *FormatError and nothing is committed. A transaction that fails may have raised the format.
	RequireFeature(f Feature)

	// RequireSync makes Update wait for the disk even if its caller did not
	// ask for it. An engine that syncs every commit ignores it.
	RequireSync()

	// OnDecided registers d. The engine calls d once readers see this run's commit, and never again an
	// older state, or once the run has failed. That may be before Update returns or long after, on any
	// goroutine. d is not called for a commit that is in doubt because the engine failed, and may not
	// be called if Update returns an error other than ErrUnknownOutcome. An engine without commits in
	// doubt calls d before Update returns.
	OnDecided(d Decider)
}

// MaxNumbers is the greatest number of numbers at one key of Tx.Add.
const MaxNumbers = 8

// Decider is the callback of Tx.OnDecided. Decided must not block.
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

// Skipper is an Iterator that passes many keys in less time than Next takes for each. An
// Iterator need not be one.
type Skipper interface {
	// Skip calls Next n times, n > 0, or until Next returns false. It returns how often it has called
	// Next, and the result of the last call. The iterator must stand on a key.
	Skip(n int) (called int, more bool)
}

// Passer is an Iterator that counts the deleted and overwritten values that it has passed. An
// Iterator need not be one.
type Passer interface {
	// Passed returns about how many deleted and overwritten values the iterator has passed since it
	// was opened. To pass one takes as long as to read a value. Compact of the range frees the values
	// that no snapshot shows.
	Passed() int
}

// SeekExact moves it to key, which must lie within its bounds, and reports whether the key is
// there. The next move must not be Next or Prev.
func SeekExact(it Iterator, key []byte) bool {
	if f, ok := it.(Finder); ok {
		return f.SeekExact(key)
	}
	return it.SeekGE(key) && bytes.Equal(it.Key(), key)
}

// Finder is an Iterator with an implementation of the function SeekExact that need not find the key
// that follows. An Iterator need not be one.
type Finder interface {
	SeekExact(key []byte) bool
}

// Stats are figures about an engine at one moment. Counters count since Open.
type Stats struct {
	DiskBytes        uint64 `json:"diskBytes"`        // all files: tables, log, manifests
	CacheBytes       int64  `json:"cacheBytes"`       // blocks held in the cache
	MemTableBytes    uint64 `json:"memTableBytes"`    // committed data not yet in tables
	LogSyncs         uint64 `json:"logSyncs"`         // syncs of the log
	Commits          uint64 `json:"commits"`          // successful Updates that staged something
	ReclaimableBytes uint64 `json:"reclaimableBytes"` // of DiskBytes, what Compact would free, as far as is known

	LogBytes     uint64        `json:"logBytes"`     // of DiskBytes, the log, with files that are kept for reuse
	LogSyncTime  time.Duration `json:"logSyncNs"`    // that the syncs took
	CacheHits    uint64        `json:"cacheHits"`    // blocks that were found in the cache
	CacheMisses  uint64        `json:"cacheMisses"`  // blocks that were read from the disk
	Tables       uint64        `json:"tables"`       // files of tables
	ReadDepth    uint64        `json:"readDepth"`    // tables that a look-up may have to ask
	Flushes      uint64        `json:"flushes"`      // of memory to tables
	Compactions  uint64        `json:"compactions"`  // merges of tables
	DebtBytes    uint64        `json:"debtBytes"`    // about how much is still to be merged
	Stalls       uint64        `json:"stalls"`       // times that writers had to wait for flushes or compactions
	StallTime    time.Duration `json:"stallNs"`      // that they waited
	Stalled      bool          `json:"stalled"`      // they wait now
	WrittenBytes uint64        `json:"writtenBytes"` // to the log and to tables
	Failed       bool          `json:"failed"`       // every Update returns ErrFailed
	Encrypted    bool          `json:"encrypted"`    // the engine encrypts its files; an engine that keeps no files of its own says false
	OlderKeys    uint64        `json:"olderKeys"`    // files that need another encryption key than the newest one
}
