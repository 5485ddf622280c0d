package jay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Durability says when a write is acknowledged.
type Durability uint8

const (
	// Synced acknowledges a write when it is on disk. Concurrent writes share the
	// sync, so that many goroutines cost little more than one.
	//
	// Reads show only what is on disk, and never wait for it: while a write waits
	// for its sync, they see the state before it. So nothing that was read can be
	// lost in a crash. The function of DB.Update may see writes that are not on
	// disk yet; Update returns, with or without an error, only when they are. The
	// batches of a BulkWriter become visible when they are on disk; a read starts
	// their sync, but does not wait for it.
	Synced Durability = iota

	// Relaxed acknowledges a write when it is in the log's memory. It is many
	// times faster for a single writer.
	//
	// Danger: a crash loses the writes of the last moments, acknowledged or not; it
	// never loses one write and keeps a later one. IDs are not repeated even then:
	// etags and identities come from blocks reserved on disk in advance, and after
	// a crash both continue after the block, which leaves a hole of up to 262,144
	// etags, beside those of writes that it cut short, and 1,024 numbers per
	// identity. Reads show writes at once. DB.Flush makes everything that was
	// acknowledged before it durable.
	Relaxed
)

// HiLoMode is a generation of HiLo.
type HiLoMode uint8

const (
	// HiLo4 is that of RavenDB 4.0 and later: users/33-A, in ranges that the
	// database grants and takes back.
	HiLo4 HiLoMode = iota

	// HiLo2 is that of RavenDB 2.x and 3.x: users/33, without a node tag. Each
	// client itself raises the Max of the document, and starts over when
	// another was quicker. The ServerPrefix of the document
	// Raven/ServerPrefixForHilo stands before the number (orders/North/33). A
	// trailing separator asks for an identity, requests are trimmed, and the
	// pipe means nothing. Ranges are never given back.
	HiLo2

	// HiLo2010 is the first: users/33, from blocks of a fixed capacity,
	// (hi-1)*capacity + lo, whose next hi the document keeps as ServerHi.
	HiLo2010
)

// Growth is how ranges grow under HiLo2: Growth3, Growth2 or GrowthNone. See package
// ids.
type Growth = ids.Growth

// The growth of ranges under HiLo2.
const (
	Growth3    = ids.Growth3    // of RavenDB 3.0 and 3.5
	Growth2    = ids.Growth2    // of RavenDB 2.0 and 2.5
	GrowthNone = ids.GrowthNone // none: every range has HiLoCapacity numbers
)

// PrefixCollections says whether the prefix of an ID suggests a collection.
type PrefixCollections uint8

const (
	// PrefixCollectionsStored follows what the database has stored. A new one stores
	// that prefixes suggest nothing.
	PrefixCollectionsStored PrefixCollections = iota

	// PrefixCollectionsOff stores in the database that prefixes suggest nothing.
	PrefixCollectionsOff

	// PrefixCollectionsOn stores in the database that prefixes suggest collections.
	PrefixCollectionsOn

	// PrefixCollectionsIgnored lets prefixes suggest nothing until Close, whatever the
	// database has stored, and leaves that as it is.
	PrefixCollectionsIgnored
)

// Options configure Open. The zero value, and nil, are good defaults.
type Options struct {
	// Durability says when a write is acknowledged. The default is Synced.
	Durability Durability

	// MustExist makes Open return ErrNoDatabase where there is no database,
	// instead of creating one.
	MustExist bool

	// ReadOnly opens a database that is there to be read only: no file changes, not even
	// one of a lock, so that it can be on a file system that is mounted read-only. Several
	// processes can have a directory open so at once, and none that writes; Open returns
	// ErrLocked otherwise. Every write returns ErrReadOnly. What a database does in the
	// background rests: documents that expire are not deleted, and indexes that were
	// being built are not used.
	//
	// It is meant for copies, checkpoints (DB.Checkpoint) and restored backups. A process
	// sees the state that it has opened. ReadOnly goes without CopyTag and AcceptLoss, and with
	// PrefixCollections as stored: other values are ErrOption. AutoIndexes is ignored. A database of an older
	// format is read as it is: it is upgraded when it is opened to be written to.
	//
	// On Windows, and on file systems without locks, a process that opens the directory
	// for writing later is not stopped: do not let it.
	ReadOnly bool

	// AcceptLoss, if not nil, makes Open continue where it would return a
	// *DamageError, after a call with each damage found. Logs are cut where the
	// damage begins, and files that a damaged manifest does not name are removed.
	// Tables are not repaired: reading the damaged part of one remains ErrCorrupt.
	//
	// Danger: what is lost is lost for good, and more of it with every file that
	// Open removes. Use it on a copy of the directory, and keep the original. jay
	// repair does that.
	AcceptLoss func(*DamageError)

	// Separator stands between the parts of an ID. One character, any but '|',
	// '\', white space and control characters. Fixed when the database is
	// created; later a different one is ErrFixed.
	//
	// The default is "/".
	Separator string

	// NodeTag ends HiLo and server-side IDs: one to four upper-case ASCII
	// letters, but not RAFT. Two databases with different tags never make the
	// same ID of these kinds. Fixed when the database is created; later a
	// different one is ErrFixed.
	//
	// On a store that several processes write to (Engine), each process has a tag of its own, which it leases in the store
	// until Close. Open returns ErrNodeTag for a tag that another live process has; after a crash, it waits for ClusterPeriod until the process
	// that has crashed counts as dead. Without NodeTag it takes the tag under which the store was made, or the first of A, B, C … that is free.
	//
	// The default is "A".
	NodeTag string

	// CopyTag says that the directory is a copy of a database, or was restored from
	// a backup, and gives it a node tag of its own, once: its HiLo and server-side
	// IDs then never collide with those of the original, which may have continued.
	// The copy gets a new database ID; HiLo ranges that clients of the original
	// hold are void in it, and its first backup is a full one: it has forgotten those
	// of the original. Identities, and the IDs of HiLo2 and HiLo2010, carry no
	// tag: each of their counters is refused with ErrNeedsFloor until SeedIdentity
	// or RaiseCounters sets the number from which it is safe to count. Indexes of
	// compare-exchange values carry none either: see CompareExchangeValue.
	//
	// A database that has this tag already is opened as it is, so that the option
	// can stay set. A tag that the database had before, as the original or as an
	// earlier copy, is ErrFixed. The separator and the case rule stay as created.
	//
	// Danger: the tag must be one that neither the original nor any other copy has.
	// A fresh copy that is opened with the tag of its original cannot be
	// distinguished from the original: there is no error, and both make the same
	// IDs from then on.
	CopyTag string

	// Cluster makes the database a member of a cluster: several databases, each on a node
	// of its own, that agree through a coordinator on what must be the same on all of them.
	// Documents stay where they are written. The coordinator gives
	//
	//   - identities ("users|") their numbers, so that no two nodes make the same ID;
	//   - the node tag to one database only, for good, so that HiLo and server-side IDs never
	//     collide either: each node is created with a NodeTag of its own, or is opened with a
	//     CopyTag;
	//   - compare-exchange values, and cluster-wide sessions, one state for all nodes.
	//
	// What needs it returns ErrNoMajority as long as no majority of the coordinator answers,
	// and goes on when there is one again. Everything else does not notice: semantic, GUID,
	// server-side and HiLo IDs, reads, queries, transactions.
	//
	// Open joins the cluster. It returns a *cluster.TagError if another database has the tag,
	// or another copy of this one runs, and, for a database that was never a member,
	// ErrNoMajority without a majority. After a crash it waits for ClusterPeriod, until the run
	// that has crashed counts as dead. A database that belongs to a cluster can be opened
	// without one: see ErrNeedsCluster. Close does not close the coordinator.
	//
	// github.com/jaydb/jay/cluster/etcd has a coordinator on etcd. docs/agreement.md has the rest.
	//
	// The default is none: the database is on its own.
	Cluster cluster.Coordinator

	// ClusterAddress is where the other members, and their clients, reach this database, if
	// it is served: cluster.Members returns it. At most 1,024 bytes.
	ClusterAddress string

	// ClusterPeriod is how long a node that sends no heartbeat counts as alive; it sends four in
	// that time. Between 100 ms and 5 minutes. The default is 10 seconds.
	//
	// On a store that several processes write to, it is how long the lease of the node tag lasts without being renewed, by the count of
	// renewals that the others make meanwhile: no clocks are compared. A process that stands still for longer loses its lease: its writes return
	// ErrLeaseLost, and its background work is that of another process.
	ClusterPeriod time.Duration

	// CaseSensitive distinguishes IDs that differ only in case. Fixed when the
	// database is created; setting it for a database that was created without it is
	// ErrFixed.
	CaseSensitive bool

	// PrefixCollections decides where a new document goes whose write names no
	// collection. If it is on, the prefix of the requested ID suggests one: users/ann,
	// users| and users/ go to Users, as in RavenDB's studio. The prefix is the text
	// before the first separator, or before the pipe; its first letter becomes upper
	// case, unless a collection of that name exists, in whatever case: then the
	// document goes there. A prefix that does not begin with a letter, and Raven,
	// suggest nothing. Without a suggestion the document goes to @empty, where no
	// query over a collection finds it.
	//
	// The setting is kept in the database: On and Off change it for every later Open.
	// The command jay switches it on in the databases that it creates. A document
	// that exists stays in its collection either way. InCollection("@empty") names a
	// collection, and so goes before the suggestion. A server, whose clients expect that
	// nothing is suggested, sets PrefixCollectionsIgnored.
	//
	// The default is PrefixCollectionsStored.
	PrefixCollections PrefixCollections

	// MaxIDBytes limits an ID, in bytes of UTF-8, as written and folded. At
	// least 64, at most 2025; RavenDB allows 512. It can change from one Open
	// to the next.
	//
	// The default is 2025.
	MaxIDBytes int

	// MaxDocumentBytes limits the JSON of one document as it is given. At most
	// 512 MiB. A document is held in memory several times while it is written.
	//
	// The default is 32 MiB.
	MaxDocumentBytes int

	// MaxDepth limits how deep objects and arrays may lie inside each other,
	// the document itself being 1. At most 10,000, which is where
	// encoding/json stops.
	//
	// The default is 256.
	MaxDepth int

	// OrderedGUIDs makes GUIDs of version 7, which begin with the time, instead
	// of version 4. Random keys cost an ordered store its locality: see
	// docs/benchmarks.md for how much.
	OrderedGUIDs bool

	// HiLoMode chooses the generation of HiLo that makes IDs, for living with
	// data and habits of older RavenDB versions. It can change from one Open to
	// the next: whatever the mode, no number of a prefix comes twice.
	//
	// The default is HiLo4.
	HiLoMode HiLoMode

	// HiLoCapacity is the number of IDs that a client of an older generation
	// reserves at a time: the smallest under HiLo2 (default 32), every one
	// under HiLo2010, which needs it to be stated. Under HiLo4 it is only used
	// to take over documents of HiLo2010, which need it too. At most 1,048,576.
	HiLoCapacity int64

	// HiLo2Growth is how ranges grow under HiLo2. The default is Growth3.
	HiLo2Growth Growth

	// MaxAttachmentBytes limits the size of one attachment. At most 1 TiB. Attachments
	// are not held in memory.
	//
	// The default is 16 GiB.
	MaxAttachmentBytes int64

	// MaxAttachments limits the number of attachments of one document. At most 10,000.
	// Their list is a part of the document, and is read and written with it.
	//
	// The default is 1,000.
	MaxAttachments int

	// Conventions say how Go types become collections and IDs.
	Conventions Conventions

	// MaxMemory bounds the memory that the database takes, in bytes. It is divided among the cache of blocks, the write buffers, the
	// cache of documents, what updates need to know of documents that were written lately, the work (what queries sort and group, builds of indexes,
	// bulk writers), and the garbage that Go's heap may hold beside them: with GOGC=100, the default, as much as is in use of it. DB.Stats has the shares, and what is used of each.
	//
	// CacheBytes, DocumentCacheBytes, MemTableBytes and MaxQueryBytes, if they are set, are taken out of it first. If they leave too
	// little, Open returns ErrOption, which names them. The least is 32 MiB. A bound also limits the blocks that are read from the disk at
	// a time, unless Loads is set.
	//
	// Work that finds its share in use waits for up to 5 seconds, and then fails with a *MemoryError; so does at once what could never fit.
	//
	// On top of it come the program itself, the documents that calls read and write at the moment, and results that the program keeps.
	// Jay never sets the limit of Go's heap (GOMEMLIMIT), which counts only the heap: docs/operations.md says which limit goes along
	// with MaxMemory. The files of a database in memory do not count.
	//
	// The default is no bound of the database's own: all databases of the process that have neither MaxMemory nor Memory share one Memory. Its
	// bound is a quarter of the memory of the machine, or of the process if its control group (Linux) or GOMEMLIMIT allow it less, and at least
	// 32 MiB. None of these databases is refused: one that finds too little left has the least caches, and options that are set come on top.
	// Outside of Linux the machine counts as one of 2 GiB.
	MaxMemory int64

	// Memory is memory that the database shares with others, in place of MaxMemory: see NewMemory.
	Memory *Memory

	// MaxQueryBytes bounds the memory that one query takes for what it cannot
	// stream: documents to be sorted, groups, distinct rows, IDs seen. A query that
	// needs more fails with ErrQuery. The default is 64 MiB, or half of the work's share of MaxMemory if that is less.
	MaxQueryBytes int

	// AutoIndexes is how many indexes queries may create automatically: when a
	// query had to look at many documents and an index would have helped, that
	// index is built in the background. Such indexes are listed like any others, as
	// Automatic, and can be dropped. The default is 0: none.
	AutoIndexes int

	// Schemas compiles the schemas of collections: see SchemaRules. jsonschema.New, of the module github.com/jaydb/jay/schema/jsonschema, is one for
	// JSON Schema. Without it, writes into a collection with a schema return a *SchemaCompilerError, and reads go on.
	//
	// The default is none.
	Schemas schema.Compiler

	// ExactExpiry makes a document that expires disappear at that instant, by the clock of
	// the database, and not when it is deleted, which may be a little later: docs/expiry.md
	// has the time. No read returns or counts it from then on, and an insert with its ID, or
	// with its value in a unique index, finds it gone. What reads of one moment, such as a
	// query or a transaction, follows the clock as it was when that began.
	//
	// It costs a query one look at what is due, and queries that could be answered from
	// an index alone read documents as long as one of the database has expired and was not
	// deleted. The default is false.
	ExactExpiry bool

	// ExpirationDisabled and RefreshDisabled make a database that Open creates one in which
	// @expires, and @refresh, have no effect: a setting that ConfigureExpiration and
	// ConfigureRefresh change. A database that is there keeps what it has stored, and one
	// of an older Jay, which has stored nothing, has both. The default is false.
	ExpirationDisabled, RefreshDisabled bool

	// DocumentCacheBytes bounds the cache of frequently read documents, decoded and
	// ready to be returned by Get. Below 0 there is no cache. The default is a share of MaxMemory, and
	// 16 MiB without that.
	DocumentCacheBytes int64

	// CacheBytes bounds the cache of table blocks. The default is a share of MaxMemory, and 64 MiB without that. Up to an eighth
	// of it is taken in addition for what updates need to know of documents that were
	// written lately, unless DocumentCacheBytes is below 0.
	CacheBytes int64

	// Loads bounds the blocks of tables that are read from the disk at a time, together with
	// other databases that have the same Loads: see NewLoads. The default is no bound.
	Loads *Loads

	// MemTableBytes is how much new data gathers in memory before it is
	// written to a table; up to four times as much can be waiting. The default is a share of MaxMemory, and 32 MiB
	// without that.
	MemTableBytes int64

	// MinFreeBytes is how much must stay free on the disk of the database. As long as less
	// is free, writes are refused with a *DiskFullError, but for deletions; when there is
	// room again, they go on, without being asked. A disk that is full instead makes the
	// database fail, and it must be opened again, when there is room.
	//
	// What is free is looked at once a second while the database is written to, and more
	// often when writes bring it near the limit. Background work writes meanwhile, to
	// merge tables: 1 GiB, or a tenth of the database if that is more, is a good value. It
	// does not matter for a database in memory. Open returns an error if an FS cannot say
	// what is free.
	//
	// The default is 0: the disk is filled to its end.
	MinFreeBytes int64

	// GroupReadable lets the group of the process read the files and directories of the
	// database: new ones have the modes 0640 and 0750, whatever the umask is, as a program
	// needs that makes copies as another user. The default is 0600 and 0700: other users of
	// the machine read nothing. Files and directories that are there keep their modes; Open
	// logs a warning if others can read one. It has no effect on Windows, which has access
	// lists of its own, and with an FS.
	GroupReadable bool

	// NoLook keeps other processes from looking into the database while it is open. Without it, programs of
	// the same user, such as the command jay, read it through a socket in its directory: see Look. Nothing
	// listens on a network. It has no effect on what has no socket: a database in memory, one that
	// is ReadOnly, and one with an FS or an Engine.
	//
	// The default is false.
	NoLook bool

	// LookWrites has the database carry out the writes of programs that look into it through its socket (Look), which only reads without it: of the
	// same user, and on Linux of root. So "jay --db DIR put" and its like work while this program runs. Each write is a call of this
	// program: IDs come from its counters, its options apply, and its observers see it. What such a program may do:
	// put, patch and delete documents, one by one, in batches and by query; draw and set identities, raise counters; change
	// compare-exchange values; create and drop indexes, rename and drop collections; compact; switch expiration and refresh. Other writes,
	// transactions above all, return ErrReadOnly there. A rotation of encryption keys (keys.Rotate) needs no LookWrites. What a program takes is bounded: see docs/limits.md.
	//
	// It goes without NoLook. It has no effect on what has no socket: a database in memory, one that is ReadOnly, and one with
	// an FS or an Engine. AnswerLook never writes.
	//
	// The default is false.
	LookWrites bool

	// Logger receives messages about the health of the database. Its handler is
	// called while locks are held, and must not call the database. A handler that
	// panics loses the record, and nothing else. The default is no logging.
	Logger *slog.Logger

	// SlowOperation is how long an operation may take before a message to Logger, which it
	// needs, names it: "jay: slow operation", with the verb of an Operation, the
	// collection, the ID or the text of the query, how many documents, and the time. Texts
	// are cut at 1,000 bytes; a query has its values in it.
	//
	// The default is 0: none is.
	SlowOperation time.Duration

	// Observer is called for each operation. The default is none.
	Observer Observer

	// Now replaces the clock: of @last-modified, of the sizes of HiLo ranges, and of
	// expiry and refresh.
	// It must be safe for concurrent use, may be called on a goroutine of Jay's,
	// and must take no lock that is held while Jay is called. A panic reaches the
	// caller of the method that needed the time, and nothing is written. The
	// default is time.Now.
	Now func() time.Time

	// Rand replaces the source of randomness of GUIDs and of the database's
	// own ID. What is said of Now holds for it. The default is crypto/rand.
	Rand io.Reader

	// EncryptionKeys encrypts all that the database writes to its directory, by AES-256-GCM: documents, indexes, logs and temporary files. What is read is
	// authenticated. The keys are yours: without them, nothing can be read, and nobody can help.
	//
	// A database is encrypted from its creation on, or by EncryptDir. Open returns ErrKey, and changes nothing, for an encrypted database without
	// keys, for keys that are missing or wrong, and for keys with a database that is not encrypted. The same keys are needed wherever a
	// directory is opened: VerifyDir, Repair, Promote, checkpoints. Backups are streams in the clear: encrypt them on their way.
	//
	// Names and sizes of files stay in the clear, and so does what leaves the database: exports, what a server sends, memory, core dumps.
	// RotateDir changes the key. docs/encryption.md says what is protected.
	//
	// It is an option of the default engine, in a directory: with Engine, and in OpenMemory, it is ErrOption. The default is
	// none: files are not encrypted.
	EncryptionKeys EncryptionKeys

	// FS replaces the operating system's files. Tests use it for a disk that
	// fails or loses its power (storagetest.Disk is one in memory). To encrypt files, use EncryptionKeys.
	// OpenMemory, which makes its own, refuses it with ErrOption.
	//
	// An implementation must be safe for concurrent use, and keep these promises:
	//
	//   - Bytes are read at the offset at which they were written, and Stat returns
	//     the number of bytes written: an encryption keeps lengths and offsets.
	//   - Sync and SyncData of a file return when its bytes are on disk, Sync of a
	//     directory when the names in it are: creations, renames and removals.
	//   - Rename replaces the target in one step, for readers and after a crash.
	//   - List returns every name in a directory once, also those created since.
	//   - Lock fails while another process, or this one, holds the file.
	//   - A missing file is an error for which errors.Is(err, fs.ErrNotExist) holds.
	//   - Unwrap returns the file system underneath, or nil. Directories of
	//     the operating system are then locked against every other Open, wrapped or
	//     not; any other file system excludes an Open that comes through the same
	//     value, and one of another process by Lock only.
	//
	// Danger: behind a Sync that returns too early, a crash loses acknowledged
	// writes, and the next Open may find damage. A database must be opened with
	// the FS that wrote it.
	//
	// The default is the operating system's file system.
	FS lsm.FS

	// Engine opens the storage engine that the database is kept in: the name that Open,
	// Restore and the like are given, in place of a directory, is one that the Driver knows.
	// VerifyDir and Repair need one that is a storage.Salvager, and Checkpoint an engine
	// that is a storage.Checkpointer: ErrUsage otherwise.
	//
	// FS, CacheBytes, MemTableBytes, GroupReadable, Loads and EncryptionKeys belong to the default engine: with
	// another, set its own options. OpenMemory refuses it with ErrOption.
	//
	// If others may write to the store (storage.Engine.Shared), any number of processes can have the
	// database open at once. Each remembers nothing that another may change, and draws its etags from
	// the store, so that writes of several processes wait for one another; each has a NodeTag of its own. There is no cache of
	// documents: DocumentCacheBytes above 0 is ErrShared. So are Cluster, AcceptLoss, CopyTag, but for
	// Restore, and other PrefixCollections than those that are stored. RenameCollection
	// and RaiseCounters of HiLo tags return ErrShared, too. A subscription has one worker among all processes, and one of them at a time does what is due for documents. What other processes may still
	// read stays: records of deletions, and chunks of attachments that are removed.
	//
	// An engine may show one moment for a short time only (storage.Limits.SnapshotAge). Then the build of an
	// index, a change feed and what else reads in parts takes a new moment for each part; what has to be of one moment, and takes longer,
	// ends with ErrSnapshotExpired: a query, a transaction, Verify, a backup.
	//
	// The default is the engine of package storage/lsm: Pebble, in files of a directory.
	Engine storage.Driver
}

// EncryptionKey is a key with which files are encrypted. A key never changes: another secret needs another ID.
type EncryptionKey struct {
	ID     string // its name, 1 to 64 bytes; it is stored in the clear in each file
	Secret []byte // 32 random bytes
}

// String returns the ID and not the secret, so that no log has it.
func (k EncryptionKey) String() string { return fmt.Sprintf("key %q", k.ID) }

// GoString is String, for %#v.
func (k EncryptionKey) GoString() string { return k.String() }

// EncryptionKeys return the keys of an encrypted database: see Options.EncryptionKeys. Package keys has some that read a file or an environment
// variable. An implementation of your own can ask a key management service.
//
// Its methods may be called by several goroutines at once, and while the database is in use. Each key is asked for once and then
// remembered until Close. An error makes the call that needs the key fail with ErrKey, which wraps it.
type EncryptionKeys interface {
	// Newest returns the key with which new files are encrypted. It is called by Open.
	Newest() (EncryptionKey, error)

	// Key returns the key with this ID. A file needs the key with which it was encrypted for as long as the file exists.
	Key(id string) (EncryptionKey, error)
}

// Conventions say how Go types become collections and IDs. Every field has a
// default, and each can be overridden for one collection by an option of
// CollectionOf.
type Conventions struct {
	// CollectionName names the collection of a type. If it returns "", the
	// default does: the plural of the type's name (Order → Orders).
	//
	// Danger: data stays under the name it was written with.
	CollectionName func(t reflect.Type) string

	// Prefix returns the ID prefix of a collection, without the separator. It is
	// called by many goroutines at once, also by those of Jay for a large batch. A
	// panic comes to the caller who writes the batch. The default is the name in lower case, if it has at most one upper-case
	// letter (Orders → orders), else the name itself (OrderLines).
	Prefix func(collection string) string

	// ID makes the ID of a value whose ID field is empty, in every collection. The
	// default is HiLo. WithIDs and WithIDRequest replace it for one collection. It
	// is called before the write begins, by many goroutines at once. Its result is
	// the ID itself: one that would be a request for another strategy is an
	// *IDError, as with WithIDs.
	ID func(ctx context.Context, collection string, v any) (string, error)

	// IDRequest returns the request under which values of a collection with an empty
	// ID field are stored, such as collection + "|" for identities, or "" for GUIDs.
	// It is not used if ID is set, and WithIDs and WithIDRequest replace it for one
	// collection. It is called once for each CollectionOf. The default is HiLo.
	IDRequest func(collection string) string

	// IDField names the struct field that holds the ID; "" means the default:
	// the field tagged `jay:"id"`, else the one named ID or Id. It must be a
	// string.
	IDField func(t reflect.Type) string
}

const (
	defaultMaxDocumentBytes = 32 << 20
	limitMaxDocumentBytes   = 512 << 20
	defaultMaxDepth         = 256
	limitMaxDepth           = 10_000

	defaultMaxAttachmentBytes = 16 << 30
	limitMaxAttachmentBytes   = 1 << 40
	defaultMaxAttachments     = 1000
	limitMaxAttachments       = 10_000
)

// withDefaults returns a copy of o, which may be nil, with every default
// filled in but those that the stored database decides, and how the memory is divided.
//
// The caller must end the claim, on the memory that the database shares with others.
func (o *Options) withDefaults() (Options, *budget.Claim, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.MaxIDBytes == 0 {
		out.MaxIDBytes = ids.MaxBytes
	}
	if out.MaxDocumentBytes == 0 {
		out.MaxDocumentBytes = defaultMaxDocumentBytes
	}
	if out.MaxDepth == 0 {
		out.MaxDepth = defaultMaxDepth
	}
	if out.MaxAttachmentBytes == 0 {
		out.MaxAttachmentBytes = defaultMaxAttachmentBytes
	}
	if out.MaxAttachments == 0 {
		out.MaxAttachments = defaultMaxAttachments
	}
	if out.Conventions.Prefix == nil {
		out.Conventions.Prefix = ids.Prefix
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.ReadOnly {
		out.AutoIndexes = 0
	}
	if out.Cluster != nil && out.ClusterPeriod == 0 {
		out.ClusterPeriod = accord.DefaultPeriod
	}
	out.Logger = guardLogger(out.Logger)
	if err := out.check(); err != nil {
		return out, nil, err
	}
	claim, err := out.divide()
	return out, claim, err
}

// divide divides the memory, and sets the options that are shares of it.
func (o *Options) divide() (claim *budget.Claim, err error) {
	asked := budget.Asked{
		Bound: o.MaxMemory, Blocks: o.CacheBytes, MemTable: o.MemTableBytes, Documents: o.DocumentCacheBytes, Query: int64(o.MaxQueryBytes),
		OtherEngine: o.Engine != nil,
	}
	switch {
	case o.MaxMemory > 0:
		claim, err = budget.Own(asked)
	case o.Memory != nil:
		claim, err = (*budget.Common)(o.Memory).Claim(asked)
	default:
		claim, err = budget.Process().Claim(asked)
	}
	if errors.Is(err, budget.ErrBound) {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	if err != nil {
		return nil, err
	}
	if o.Loads == nil && o.Engine == nil {
		loads := func() any { return lsm.NewLoads(claim.Loads(int64(o.MaxDocumentBytes))) }
		switch {
		case o.MaxMemory > 0:
			o.Loads = (*Loads)(loads().(*lsm.Loads))
		case o.Memory != nil:
			o.Loads = (*Loads)((*budget.Common)(o.Memory).Shared(loads).(*lsm.Loads))
		}
	}
	o.MaxMemory, o.CacheBytes, o.MemTableBytes, o.DocumentCacheBytes = claim.Bound, claim.Blocks, claim.MemTable, claim.Documents
	if o.MaxQueryBytes == 0 {
		o.MaxQueryBytes = int(claim.QueryBytes())
	}
	return claim, nil
}

func (o *Options) check() error {
	switch {
	case o.Durability > Relaxed:
		return fmt.Errorf("%w: Durability %d", ErrOption, o.Durability)
	case o.PrefixCollections > PrefixCollectionsIgnored:
		return fmt.Errorf("%w: PrefixCollections %d", ErrOption, o.PrefixCollections)
	case o.MaxDocumentBytes < 2 || o.MaxDocumentBytes > limitMaxDocumentBytes:
		return fmt.Errorf("%w: MaxDocumentBytes must be between 2 and %d, got %d", ErrOption, limitMaxDocumentBytes, o.MaxDocumentBytes)
	case o.MaxDepth < 1 || o.MaxDepth > limitMaxDepth:
		return fmt.Errorf("%w: MaxDepth must be between 1 and %d, got %d", ErrOption, limitMaxDepth, o.MaxDepth)
	case o.HiLoMode > HiLo2010 || o.HiLo2Growth > GrowthNone:
		return fmt.Errorf("%w: HiLoMode %d, HiLo2Growth %d", ErrOption, o.HiLoMode, o.HiLo2Growth)
	case o.HiLoCapacity < 0 || o.HiLoCapacity > ids.MaxRangeSize:
		return fmt.Errorf("%w: HiLoCapacity must be between 1 and %d, got %d", ErrOption, ids.MaxRangeSize, o.HiLoCapacity)
	case o.HiLoMode == HiLo2010 && o.HiLoCapacity == 0:
		return fmt.Errorf("%w: HiLo2010 needs its HiLoCapacity, the same for every client (RavenDB's was 1024 in 2010, later 32)", ErrOption)
	case o.MaxMemory < 0:
		return fmt.Errorf("%w: MaxMemory must not be negative, got %d", ErrOption, o.MaxMemory)
	case o.MaxMemory > 0 && o.Memory != nil:
		return fmt.Errorf("%w: MaxMemory (%d) goes without Memory: a database has a bound of its own, or shares one", ErrOption, o.MaxMemory)
	case o.MaxQueryBytes < 0:
		return fmt.Errorf("%w: MaxQueryBytes must be at least 1, got %d", ErrOption, o.MaxQueryBytes)
	case o.AutoIndexes < 0 || o.AutoIndexes > catalog.MaxPerCollection:
		return fmt.Errorf("%w: AutoIndexes must be between 0 and %d, got %d", ErrOption, catalog.MaxPerCollection, o.AutoIndexes)
	case o.MaxAttachmentBytes < 1 || o.MaxAttachmentBytes > limitMaxAttachmentBytes:
		return fmt.Errorf("%w: MaxAttachmentBytes must be between 1 and %d, got %d", ErrOption, int64(limitMaxAttachmentBytes), o.MaxAttachmentBytes)
	case o.MaxAttachments < 1 || o.MaxAttachments > limitMaxAttachments:
		return fmt.Errorf("%w: MaxAttachments must be between 1 and %d, got %d", ErrOption, limitMaxAttachments, o.MaxAttachments)
	case o.ReadOnly && (o.CopyTag != "" || o.AcceptLoss != nil):
		return fmt.Errorf("%w: ReadOnly goes without CopyTag and AcceptLoss, which write", ErrOption)
	case o.ReadOnly && o.PrefixCollections != PrefixCollectionsStored && o.PrefixCollections != PrefixCollectionsIgnored:
		return fmt.Errorf("%w: ReadOnly goes without PrefixCollections, which is stored", ErrOption)
	case o.NoLook && o.LookWrites:
		return fmt.Errorf("%w: LookWrites goes without NoLook: no other program can look into the database", ErrOption)
	case o.SlowOperation < 0 || o.SlowOperation > 0 && o.Logger == nil:
		return fmt.Errorf("%w: SlowOperation is %v: it must not be negative, and needs a Logger", ErrOption, o.SlowOperation)
	case o.MinFreeBytes < 0:
		return fmt.Errorf("%w: MinFreeBytes must not be negative, got %d", ErrOption, o.MinFreeBytes)
	case o.CacheBytes < 0:
		return fmt.Errorf("%w: CacheBytes must not be negative, got %d", ErrOption, o.CacheBytes)
	case o.MemTableBytes != 0 && (o.MemTableBytes < 64<<10 || o.MemTableBytes > 1<<30):
		return fmt.Errorf("%w: MemTableBytes must be between %d and %d, got %d", ErrOption, 64<<10, 1<<30, o.MemTableBytes)
	case o.Engine != nil && (o.FS != nil || o.CacheBytes != 0 || o.MemTableBytes != 0 || o.GroupReadable || o.Loads != nil):
		return fmt.Errorf("%w: FS, CacheBytes (%d), MemTableBytes (%d), GroupReadable (%v) and Loads are options of the default engine: another Engine has its own", ErrOption, o.CacheBytes, o.MemTableBytes, o.GroupReadable)
	case o.Engine != nil && o.EncryptionKeys != nil:
		return fmt.Errorf("%w: EncryptionKeys encrypt the files of the default engine: another Engine, such as a store on a server, keeps its data itself, and has to encrypt it by its own means", ErrOption)
	case o.MaxIDBytes < 64 || o.MaxIDBytes > ids.MaxBytes:
		return fmt.Errorf("%w: MaxIDBytes must be between 64 and %d, got %d", ErrOption, ids.MaxBytes, o.MaxIDBytes)
	}
	return o.checkCluster()
}

// checkCluster checks the options that concern the cluster.
func (o *Options) checkCluster() error {
	switch {
	case o.Cluster == nil && o.ClusterAddress != "":
		return fmt.Errorf("%w: ClusterAddress goes with Cluster", ErrOption)
	case o.Cluster == nil && o.Engine == nil && o.ClusterPeriod != 0:
		return fmt.Errorf("%w: ClusterPeriod goes with Cluster, or with a store that several processes write to", ErrOption)
	case o.Cluster == nil && o.ClusterPeriod == 0:
		return nil
	case o.Cluster != nil && o.ReadOnly:
		return fmt.Errorf("%w: ReadOnly goes without Cluster", ErrOption)
	case o.ClusterPeriod < accord.LeastPeriod || o.ClusterPeriod > accord.MostPeriod:
		return fmt.Errorf("%w: ClusterPeriod must be between %v and %v, got %v", ErrOption, accord.LeastPeriod, accord.MostPeriod, o.ClusterPeriod)
	case len(o.ClusterAddress) > 1024:
		return fmt.Errorf("%w: ClusterAddress has %d bytes, at most 1024", ErrOption, len(o.ClusterAddress))
	}
	return nil
}

// Loads bounds the blocks that several databases read from the disk at a time: see
// Options.Loads. It is safe for concurrent use.
type Loads lsm.Loads

// NewLoads returns a bound of n blocks, of 1 if n is below that. Further reads from the disk wait
// until one of them is done.
//
// A block holds a document at least, and is in memory twice while it is decompressed. So
// n times twice the largest document is the most that blocks take which are being read. How large
// a document is shows only when its block is looked for: without a bound, 100 reads at a
// time of documents of 20 MB may take 4 GB for a moment, whatever the caches are. A bound costs
// speed on disks that answer many reads at a time faster than one.
func NewLoads(n int) *Loads { return (*Loads)(lsm.NewLoads(max(1, n))) }

// Memory is memory that several databases share, in place of a bound for each: see NewMemory. It is safe for concurrent use.
type Memory budget.Common

// NewMemory returns memory of so many bytes for databases that are opened with it as Options.Memory. It is ErrOption if that is below 32 MiB.
//
// Three sixteenths are for what queries, builds of indexes and bulk writers of all these databases hold, and as much for their garbage. The rest is for caches, write buffers and
// their garbage: each database claims its caches when it is opened, as long as it is open. It gets those of a database with MaxMemory of 512 MiB, or half of what is left if that is less,
// and at least 10 MiB (18 MiB without cgo). Open returns a *MemoryError if that is not left. Options of the caches that are set are claimed as
// they are.
//
// Together they limit the blocks that are read from the disk at a time, by the MaxDocumentBytes of the first one, unless Loads is set. Copy opens two
// databases, which can share one Memory, too.
func NewMemory(bytes int64) (*Memory, error) {
	c, err := budget.NewCommon(bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	return (*Memory)(c), nil
}

// DefaultMemory returns the memory that the databases of this process with neither Memory nor MaxMemory share: see MaxMemory. Its bound is
// a quarter of the memory of the machine, if the process may have all of it.
func DefaultMemory() *Memory { return (*Memory)(budget.Process()) }

// Bytes returns the bound, what databases have claimed of the part for caches, and that part.
func (m *Memory) Bytes() (bound, claimed, caches int64) {
	claimed, caches = (*budget.Common)(m).Load()
	return (*budget.Common)(m).Bound(), claimed, caches
}

// HeapBytes returns what the bound leaves to Go's heap: see MemoryStats.HeapBytes.
func (m *Memory) HeapBytes() int64 { return (*budget.Common)(m).HeapBytes() }

// files returns the file system of files that are not the database's own.
func (o *Options) files() lsm.FS {
	if o.FS != nil {
		return o.FS
	}
	return lsm.OS(o.GroupReadable)
}
