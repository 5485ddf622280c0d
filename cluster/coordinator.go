// Package cluster defines how several nodes agree: by small records under keys, which a majority of
// a coordinator's members stores. A database with a Coordinator in jay.Options.Cluster uses it for
// what must be the same on all nodes: the owners of node tags, the numbers of identities, and
// compare-exchange values. Documents stay on the node that wrote them.
//
// A Coordinator is an ordered map with one conditional commit, so any store that agrees by
// majority can implement it. Package github.com/jaydb/jay/cluster/etcd does so with etcd,
// and clustertest.NewMemory in memory, for tests. Package jay and the functions Members,
// Leave and Resolve decide what the records mean; an implementation does not interpret
// them. Every implementation must pass clustertest.Run.
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
// then, the error is an ErrNoMajority, or for a Commit possibly an ErrUnknownOutcome.
// Either also wraps the context's error. A call without a deadline gives up after a time
// that the implementation documents, at most 30 seconds. An outage leaves no trace: when
// the majority is back, waiting calls and new ones succeed, and nothing has to be opened
// again.
//
// # Sizes
//
// Keys have 1 to 8,192 bytes of UTF-8, without control characters. Values have up to
// MaxValueBytes. Every implementation accepts a Commit of MinTransaction conditions and as
// many changes, and one with a value of MaxValueBytes. A Commit beyond what it accepts is
// an ErrTooLarge and changes nothing.
type Coordinator interface {
	// Read returns the records of keys as they were at one moment, in the order of keys. A
	// key without a record has Index 0.
	//
	// After an error nothing was read.
	Read(ctx context.Context, keys ...string) ([]Record, error)

	// Page returns the records whose keys begin with prefix and are greater than after, as
	// they were at one moment: in the order of the bytes of their keys, at most limit of
	// them, the first ones. after is a whole key, with its prefix; "" begins at the first
	// one. limit is 1 to 1,024. A page may end early so that it stays below some MiB, but
	// it is empty only if no record is left.
	Page(ctx context.Context, prefix, after string, limit int) ([]Record, error)

	// Commit makes all changes if all conditions hold at that moment, and otherwise none.
	// Two conditions on one key, or two changes of one key, are an ErrUsage. A Commit
	// without conditions always makes its changes, and one without changes only compares.
	//
	// If the conditions hold, Result.Index is the new index of all records that were put.
	// It is greater than every index that any record had before, and no later record gets
	// it again, even after deletions and restarts of members. If a condition does not
	// hold, Result.Index is 0, nothing has changed, and Result.Actual has the records that
	// were compared.
	//
	// After a restore from a backup the indexes would repeat. Databases detect that and
	// refuse the coordinator with an ErrRestored. Once an operator accepts the restored
	// state, indexes must continue at least 2^32 above all earlier ones.
	//
	// An error that is an ErrUnknownOutcome leaves open whether the commit has happened,
	// and it may still happen, at any time. All other errors mean that it has not happened
	// and never will: an implementation may return ErrNoMajority only for a commit that
	// was certainly not begun or certainly withdrawn. It must not retry after an unknown
	// outcome. The caller retries, with conditions that fail if the first commit took
	// effect.
	Commit(ctx context.Context, conditions []Condition, changes []Change) (Result, error)

	// Close ends all calls in progress and later ones with an ErrClosed, and releases what
	// the Coordinator holds: none of its goroutines runs when Close has returned. A commit
	// that is ended this way may be an ErrUnknownOutcome. Closing again does nothing. A
	// database does not close its Coordinator: the program that made it does, after
	// jay.DB.Close.
	Close() error
}

// Bounds: see Coordinator.
const (
	MaxKeyBytes    = 8 << 10
	MaxValueBytes  = 1<<20 + 64<<10
	MinTransaction = 128
	MaxPage        = 1024
)

// Record is a key and its value, with the index of the commit that put it.
type Record struct {
	Key string

	// Index is the index of the Commit that put the record; 0 if there is no record. Two
	// records of a key with the same index are the same record.
	Index uint64

	Value []byte // nil if there is no record
}

// Condition requires that the record of Key has the Index, that is, that it was not
// changed since it was read. An Index of 0 requires that there is no record.
type Condition struct {
	Key   string
	Index uint64
}

// Change puts a record, in place of the present one if there is one, or deletes it.
// Deleting a record that does not exist does nothing.
type Change struct {
	Key    string
	Value  []byte
	Delete bool // Value is ignored
}

// Result is the outcome of a Commit.
type Result struct {
	Index  uint64   // the new index of all records that were put; 0 if a condition does not hold
	Actual []Record // the records that were compared, in the order of the conditions; nil if all hold
}

// Committed reports whether the changes were made.
func (r Result) Committed() bool { return r.Index > 0 }
