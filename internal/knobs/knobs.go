// Package knobs has settings that only tests change, of packages below the
// root and of the root itself. A test sets them before it opens a database.
package knobs

import "time"

// CloseTimeout is how long a disk may answer no call before Close and Open give
// up. The default, 0, is that of package storage.
var CloseTimeout time.Duration

// TurnLimit is how long one run of a function may keep others in line waiting. The
// default, 0, is turns.DefaultLimit.
var TurnLimit time.Duration

// AttachmentChunkBytes is the size of the chunks of attachments. The default, 0, is
// attachments.DefaultChunkBytes.
var AttachmentChunkBytes int

// VerifySums is how many of the sums of a check are used, 65,536 at most: with few, what is in order is looked at
// again beside what is not.
var VerifySums uint64 = 1 << 16

// KeepChunks has nothing removed in the background of what attachments leave.
var KeepChunks bool

// KeptChanges is how many of the newest changes keep their records of deletions.
var KeptChanges uint64 = 1000

// NoSweeper keeps a database from doing in the background what is due for documents:
// only DB.Sweep does then.
var NoSweeper bool

// NoSettler keeps indexes from being settled in the background.
var NoSettler bool

// HeldEtags is how many etags back from the newest a change feed that is open keeps
// the records of deletions that it has not come to.
var HeldEtags uint64 = 1_000_000

// FloorEtags is how many etags back from the newest a subscription keeps the records of
// deletions that it has not come to.
var FloorEtags uint64 = 10_000_000

// ClusterStill keeps the heart of a cluster's member from beating in the background.
var ClusterStill bool

// ClusterPatience replaces how long Open and Close wait for the majority of a cluster, unless
// it is 0; calls without a deadline wait six times as long.
var ClusterPatience time.Duration

// ClusterPause replaces the longest pause between two tries of a commit with the coordinator
// of a cluster, unless it is 0.
var ClusterPause time.Duration

// KeptRequests replaces the number of results of requests that are kept, unless it is 0.
var KeptRequests uint64

// Bounds of what a scan does on several goroutines.
var (
	ScanAlone     int64 = 512      // documents that one goroutine looks at before, if the answers are streamed
	ScanPartBytes       = 64 << 10 // documents that a goroutine takes at a time, in bytes
	ScanParts           = 16       // what is taken before the answers are handed over
)

// ChangeDocuments is how many documents a change by query, a drop or a rename writes in one
// commit.
var ChangeDocuments = 128

// LazyBatches is how many such commits share a sync.
var LazyBatches = 16

// FollowedBytes replaces follow.MemoryBytes, the commits that the source of standbys remembers, unless it is 0.
var FollowedBytes int

// StandbyTableBytes replaces the size of the tables of a standby's copy, unless it is 0.
var StandbyTableBytes uint64

// CopyKeys is how many keys a transaction of a copy has at most.
var CopyKeys = 8192

// LiveReaders is how many live queries a database has at most.
var LiveReaders = 10_000

// LiveQueued is how many events wait for one reader of a live query at most.
var LiveQueued = 1024
