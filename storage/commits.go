package storage

import (
	"context"
	"iter"
)

// CommitWatcher is an Engine that shows what each commit writes, to keep a copy of the store. An Engine need
// not be one.
type CommitWatcher interface {
	// WatchCommits makes the engine call see with each later commit, in order, until the engine is
	// closed. It returns a Snapshot of all commits before the first that see gets, and the number of
	// the last of these commits. Everything that the Snapshot shows is on disk. A later call replaces
	// see.
	//
	// The engine calls see while no other commit can begin: see must not block or call the engine. A
	// commit that see gets may not be on disk yet, and if the engine fails, it may never be.
	WatchCommits(ctx context.Context, see func(Commit)) (before Snapshot, number uint64, err error)

	// DurableCommit returns the number of a commit that is on disk with all before it. It is cheap.
	DurableCommit() uint64
}

// Commit is one commit, as a CommitWatcher shows it. It is valid during the call that gets it.
type Commit struct {
	// Number is one more than the number of the commit before. The numbers of an engine are lost when
	// it is closed.
	Number uint64

	// Writes are the keys that the commit has set or deleted. The last write of a key counts.
	Writes iter.Seq[Write]

	// Ingested says that the commit took in tables (see Ingester), whose keys are not shown.
	Ingested bool
}

// Write is a key that a commit sets to Value, or deletes.
type Write struct {
	Key, Value []byte
	Deleted    bool
}
