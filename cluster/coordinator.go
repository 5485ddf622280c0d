// Package cluster is what several nodes agree on: small records under keys, which a
// majority of the members of a coordinator keeps. A database that jay.Options.Cluster
// gives a Coordinator uses it for what must be the same on all nodes: who owns a node
// tag, the numbers of identities, and compare-exchange values. Documents stay where they
// are written.
//
// A Coordinator is an ordered map with one conditional commit, so that any store that
// agrees by majority can be one: github.com/jaydb/jay/cluster/etcd is that on etcd, and
// clustertest.NewMemory one in memory, for tests. What the records mean is decided by
// package jay and by the functions Members, Leave and Resolve here; an implementation does
// not look into them. clustertest.Run is what each implementation must pass.
package cluster

import "context"

// Coordinator keeps records. All nodes of a cluster use the same records, each through a
// Coordinator of its own.
//
// Every call is linearizable: it takes effect at one moment between its beginning and its
// end, and sees all that took effect before that moment, on whichever node. The methods
// are safe for concurrent use. The caller must not change what it passes until the call
// has returned, and owns what the call returns.
//
// # Time
//
// Every call returns soon after its context has ended. If no majority has answered by
// then, the error is an ErrNoMajority, or of a Commit maybe an ErrUnknownOutcome, and in
// both cases it also wraps the context's error. Without a deadline a call gives up after a
// time that the implementation documents, of at most 30 seconds. No call fails only
// because the coordinator could not be reached some time ago: when the majority is back,
// calls succeed, those that are waiting included. Nothing has to be opened again.
//
// # Sizes
//
// Keys have 1 to 8,192 bytes of UTF-8, without control characters. Values have up to
// MaxValueBytes. A Commit takes at least MinTransaction conditions and as many changes,
// and one change of MaxValueBytes; what it does not take is an ErrTooLarge, and changes
// nothing.
type Coordinator interface {
	// Read returns the records of keys as they were at one moment, in the order of keys. A
	// key without a record has Index 0.
	//
	// An error means that nothing was read; nothing has changed.
	Read(ctx context.Context, keys ...string) ([]Record, error)

	// Page returns the records whose keys begin with prefix and are greater than after, as
	// they were at one moment: in the order of the bytes of their keys, at most limit of
	// them, the first ones. after is a whole key, with its prefix; "" begins at the first
	// one. limit is 1 to 1,024. A page may end early, so as not to become larger than some
	// MiB, but is only empty if there is no more.
	Page(ctx context.Context, prefix, after string, limit int) ([]Record, error)

	// Commit makes all changes, if all conditions hold at that moment, or else none. It
	// does not compare a key twice, nor change one twice: that is an ErrUsage. Without a
	// condition it always makes its changes; without a change it only compares.
	//
	// If they hold, Result.Index is the new index of all records that were put. It is greater
	// than every index that any record had before, and no later record gets it again, not
	// after a deletion, nor after a restart of any member. If a condition does not hold,
	// Result.Index is 0, nothing has changed, and Result.Actual has what was compared.
	//
	// Databases refuse a coordinator whose indexes have gone back, as one that was restored
	// from a backup, with an ErrRestored. Once an operator has decided to go on with it, its
	// indexes must begin at least 2^32 above all that it had.
	//
	// An error that is an ErrUnknownOutcome leaves open whether the commit has happened, and
	// it may still happen, at any time. All other errors mean that it has not happened and
	// never will: an ErrNoMajority is only for a commit that was surely not begun, or surely
	// withdrawn. An implementation must not try again after an unknown outcome: its caller
	// does, with conditions that a commit of before makes fail.
	Commit(ctx context.Context, conditions []Condition, changes []Change) (Result, error)

	// Close ends all calls in progress and later ones with an ErrClosed, and releases what
	// the Coordinator holds: no goroutine of it runs when Close has returned. A commit that is
	// ended this way may be an ErrUnknownOutcome. Closing again does nothing. A database does
	// not close its Coordinator: who has made it does, after jay.DB.Close.
	Close() error
}

// Bounds: see Coordinator.
const (
	MaxKeyBytes    = 8 << 10
	MaxValueBytes  = 1<<20 + 64<<10
	MinTransaction = 128
	MaxPage        = 1024
)

// Record is what is kept under a key.
type Record struct {
	Key string

	// Index is that of the Commit that has put the record; 0 if there is none. So a record
	// with the same index is the same record.
	Index uint64

	Value []byte // nil if there is no record
}

// Condition is that a record has an index: so it is the one that was read. An Index of 0
// means that there must be none.
type Condition struct {
	Key   string
	Index uint64
}

// Change is a record to be put, in place of the one there is, or to be deleted. To delete
// what is not there does nothing.
type Change struct {
	Key    string
	Value  []byte
	Delete bool // Value does not matter
}

// Result is what became of a Commit.
type Result struct {
	Index  uint64   // of all records that were put; 0 if a condition does not hold
	Actual []Record // the records of the conditions, in their order; nil if they hold
}

// Committed reports whether the changes were made.
func (r Result) Committed() bool { return r.Index > 0 }
