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
	// Reads show only data that is on disk, and never wait for the disk: while a write waits for its sync,
	// reads see the state before the write. So a crash cannot lose data that was read. The function of
	// DB.Update may see writes that are not on disk yet; Update returns, with or without an error, only when
	// those writes are on disk. The batches of a BulkWriter become visible when they are on disk; a read starts
	// their sync, but does not wait for it.
	Synced Durability = iota

	// Relaxed acknowledges a write when it is in the log's memory. It is many
	// times faster for a single writer.
	//
	// Danger: a crash loses the writes of the last moments, acknowledged or not; it never loses one write and
	// keeps a later one. Even then no ID is used twice: etags and identities come from blocks reserved on disk
	// in advance, and after a crash both continue after the block. This leaves a gap of up to 262,144 etags, in
	// addition to the etags of writes that the crash cut short, and of 1,024 numbers per identity. Reads show
	// writes at once. DB.Flush makes every write durable that was acknowledged before the call.
	Relaxed
)

// HiLoMode is a generation of HiLo.
type HiLoMode uint8

const (
	// HiLo4 is the HiLo of RavenDB 4.0 and later: users/33-A, in ranges that the database grants and takes
	// back.
	HiLo4 HiLoMode = iota

	// HiLo2 is the HiLo of RavenDB 2.x and 3.x: users/33, without a node tag. Each client raises the Max of the
	// HiLo document, and starts over if another client raised it first. The ServerPrefix of the document
	// Raven/ServerPrefixForHilo precedes the number (orders/North/33). A trailing separator requests an
	// identity, white space around a request is trimmed, and the pipe has no meaning. Ranges are never given
	// back.
	HiLo2

	// HiLo2010 is the first HiLo: users/33, from blocks of a fixed capacity. A number is (hi-1)*capacity + lo.
	// The HiLo document stores the next hi as ServerHi.
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
	// PrefixCollectionsStored follows the setting that the database has stored. A new database stores that
	// prefixes suggest no collection.
	PrefixCollectionsStored PrefixCollections = iota

	// PrefixCollectionsOff stores in the database that prefixes suggest no collection.
	PrefixCollectionsOff

	// PrefixCollectionsOn stores in the database that prefixes suggest collections.
	PrefixCollectionsOn

	// PrefixCollectionsIgnored makes prefixes suggest no collection until Close, whatever the database has
	// stored, and does not change the stored setting.
	PrefixCollectionsIgnored
)

// Options configure Open. The zero value, and nil, are good defaults.
type Options struct {
	// Durability says when a write is acknowledged. The default is Synced.
	Durability Durability

	// MustExist makes Open return ErrNoDatabase where there is no database,
	// instead of creating one.
	MustExist bool

	// ReadOnly opens an existing database for reading only. No file changes, not even a lock file, so the
	// directory can be on a file system that is mounted read-only. Several processes can open a directory with
	// ReadOnly at once, but not while a process has it open for writing; Open returns ErrLocked otherwise.
	// Every write returns ErrReadOnly. Background work is suspended: documents that expire are not deleted, and
	// indexes whose build is unfinished are not used.
	//
	// ReadOnly is meant for copies, checkpoints (DB.Checkpoint) and restored backups. A process sees the state
	// that it opened. ReadOnly cannot be combined with CopyTag, with AcceptLoss, or with a PrefixCollections of
	// On or Off: Open returns ErrOption. AutoIndexes is ignored. A database of an older format is read as it
	// is; an Open for writing upgrades it.
	//
	// On Windows, and on file systems without locks, nothing stops a process from opening the directory for
	// writing later: make sure that no process does.
	ReadOnly bool

	// AcceptLoss, if not nil, makes Open continue where it would otherwise return a *DamageError. Open calls
	// AcceptLoss with each damage that it finds. Open cuts logs where the damage begins, and removes files that
	// a damaged manifest does not name. Open does not repair tables: a read of the damaged part of a table
	// still returns ErrCorrupt.
	//
	// Danger: the loss is permanent, and grows with every file that Open removes. Use AcceptLoss on a copy of
	// the directory, and keep the original. The command jay repair does that.
	AcceptLoss func(*DamageError)

	// Separator separates the parts of an ID. It is one character, any but '|', '\', white space and control
	// characters. It is fixed when the database is created; later, Open returns ErrFixed for a different one.
	//
	// The default is "/".
	Separator string

	// NodeTag is the suffix of HiLo and server-side IDs: one to four upper-case ASCII letters, but not RAFT.
	// Two databases with different tags never make the same ID of these kinds. The tag is fixed when the
	// database is created; later, Open returns ErrFixed for a different one.
	//
	// On a store that several processes write to (Engine), each process has its own tag, and holds a lease on
	// it in the store until Close. Open returns ErrNodeTag for the tag of another live process. After a crash,
	// Open waits for ClusterPeriod until the crashed process counts as dead. Without NodeTag, Open takes the
	// tag under which the store was created, or the first free tag of A, B, C …
	//
	// The default is "A".
	NodeTag string

	// CopyTag declares that the directory is a copy of a database, or was restored from a backup, and gives the
	// copy a new node tag, once. The HiLo and server-side IDs of the copy then never collide with IDs that the
	// original has made since. The copy gets a new database ID, and HiLo ranges that clients of the original
	// hold are void in it. Its first backup is a full one, because the copy does not keep the backups of the
	// original.
	//
	// Identities, and the IDs of HiLo2 and HiLo2010, contain no tag: each of their counters returns
	// ErrNeedsFloor until SeedIdentity or RaiseCounters sets the number from which counting is safe. Indexes of
	// compare-exchange values contain no tag either: see CompareExchangeValue.
	//
	// Open changes nothing in a database that has this tag already, so the option can stay set. It returns
	// ErrFixed for a tag that the database had before, as the original or as an earlier copy. The separator and
	// the case rule stay as they were at creation.
	//
	// Danger: the tag must be one that neither the original nor any other copy has. Jay cannot distinguish a
	// fresh copy that is opened with the tag of its original from the original: there is no error, and both
	// make the same IDs from then on.
	CopyTag string

	// Cluster makes the database a member of a cluster: several databases, each on its own node, that agree
	// through a coordinator on shared state. Documents are not replicated: each stays in the database where it
	// was written. The coordinator provides
	//
	//   - the numbers of identities ("users|"), so that no two nodes make the same ID;
	//   - a node tag for one database only, permanently, so that HiLo and server-side IDs never collide either:
	//     create each node with a NodeTag of its own, or open it with a CopyTag;
	//   - one state for all nodes of compare-exchange values and cluster-wide sessions.
	//
	// Operations that need the coordinator return ErrNoMajority as long as no majority of the coordinator
	// answers, and succeed again afterwards. All other operations are unaffected: semantic, GUID, server-side
	// and HiLo IDs, reads, queries, transactions.
	//
	// Open joins the cluster. It returns a *cluster.TagError if another database has the tag, or if another
	// copy of this database runs. Without a majority, it returns ErrNoMajority for a database that was never a
	// member. After a crash, Open waits for ClusterPeriod until the crashed run counts as dead. A database that
	// belongs to a cluster can be opened without Cluster: see ErrNeedsCluster. Close does not close the
	// coordinator.
	//
	// Package github.com/jaydb/jay/cluster/etcd provides a coordinator on etcd. docs/agreement.md describes
	// clusters.
	//
	// The default is nil: the database is not a member of a cluster.
	Cluster cluster.Coordinator

	// ClusterAddress is the address at which the other members, and their clients, reach this database, if a
	// server offers it. cluster.Members returns it. It has at most 1,024 bytes.
	ClusterAddress string

	// ClusterPeriod is how long a node that sends no heartbeat counts as alive. A node sends four heartbeats
	// per period. The period is between 100 ms and 5 minutes. The default is 10 seconds.
	//
	// On a store that several processes write to, ClusterPeriod is how long the lease on a node tag lasts
	// without renewal. The other processes measure this time by the number of renewals that they make
	// meanwhile; no clocks are compared. A process that stalls for longer loses its lease: its writes return
	// ErrLeaseLost, and another process takes over its background work.
	ClusterPeriod time.Duration

	// CaseSensitive distinguishes IDs that differ only in case. It is fixed when the database is created; Open
	// returns ErrFixed if it is set for a database that was created without it.
	CaseSensitive bool

	// PrefixCollections decides the collection of a new document whose write names none. If the setting is on,
	// the prefix of the requested ID suggests one: users/ann, users| and users/ go to Users, as in RavenDB's
	// studio. The prefix is the text before the first separator, or before the pipe. If a collection of that
	// name exists, in whatever case, the document goes there; otherwise the first letter becomes upper case.
	// The prefix Raven, and a prefix that does not begin with a letter, suggest no collection. Without a
	// suggestion the document goes to @empty, where no query over a collection finds it.
	//
	// The database stores the setting: PrefixCollectionsOn and PrefixCollectionsOff change it for every later
	// Open. The command jay switches it on in the databases that it creates. An existing document stays in its
	// collection either way. InCollection("@empty") names a collection, and so takes precedence over the
	// suggestion. Set PrefixCollectionsIgnored in a server whose clients expect no suggestions.
	//
	// The default is PrefixCollectionsStored.
	PrefixCollections PrefixCollections

	// MaxIDBytes limits the length of an ID in bytes of UTF-8, both as written and folded. It is at least 64
	// and at most 2025; RavenDB allows 512. It can change from one Open to the next.
	//
	// The default is 2025.
	MaxIDBytes int

	// MaxDocumentBytes limits the size of one document's JSON, as the caller passes it. It is at most 512 MiB.
	// A write holds several copies of the document in memory.
	//
	// The default is 32 MiB.
	MaxDocumentBytes int

	// MaxDepth limits the nesting depth of objects and arrays; the document itself has depth 1. It is at most
	// 10,000, the limit of encoding/json.
	//
	// The default is 256.
	MaxDepth int

	// OrderedGUIDs makes GUIDs of version 7, which begin with the time, instead of version 4. Random keys have
	// no locality in an ordered store: docs/benchmarks.md shows the cost.
	OrderedGUIDs bool

	// HiLoMode selects the generation of HiLo that makes IDs, for compatibility with data and conventions of
	// older RavenDB versions. It can change from one Open to the next: no number of a prefix is used twice,
	// whatever the modes.
	//
	// The default is HiLo4.
	HiLoMode HiLoMode

	// HiLoCapacity is the number of IDs that a client of an older generation reserves at a time. Under HiLo2 it
	// is the size of the smallest range (default 32). Under HiLo2010 it is the size of every range, and must be
	// set. Under HiLo4 it is only used to take over HiLo documents of HiLo2010, which need it too. It is at
	// most 1,048,576.
	HiLoCapacity int64

	// HiLo2Growth is how ranges grow under HiLo2. The default is Growth3.
	HiLo2Growth Growth

	// MaxAttachmentBytes limits the size of one attachment. It is at most 1 TiB. Attachments are streamed, not
	// held in memory.
	//
	// The default is 16 GiB.
	MaxAttachmentBytes int64

	// MaxAttachments limits the number of attachments of one document. It is at most 10,000. The list of
	// attachments is a part of the document, and is read and written with it.
	//
	// The default is 1,000.
	MaxAttachments int

	// Conventions say how Go types become collections and IDs.
	Conventions Conventions

	// MaxMemory bounds the memory that the database takes, in bytes. Open divides it among the block cache, the
	// write buffers, the document cache, the records that updates keep about recently written documents, the
	// work (sorting and grouping of queries, builds of indexes, bulk writers), and the garbage on Go's heap:
	// with GOGC=100, the default, as much garbage as live heap. DB.Stats returns the shares, and the use of
	// each.
	//
	// CacheBytes, DocumentCacheBytes, MemTableBytes and MaxQueryBytes, if they are set, are taken out of
	// MaxMemory first. If they leave too little, Open returns an ErrOption that names them. The minimum of
	// MaxMemory is 32 MiB. MaxMemory also limits the blocks that are read from the disk at a time, unless Loads
	// is set.
	//
	// Work that finds its share in use waits for up to 5 seconds, and then fails with a *MemoryError. Work that
	// could never fit fails with a *MemoryError at once.
	//
	// MaxMemory does not include the program itself, the documents that calls are reading and writing, results
	// that the program keeps, and the files of a database in memory. Jay never sets the limit of Go's heap
	// (GOMEMLIMIT), which counts only the heap: docs/operations.md says which limit to use with MaxMemory.
	//
	// The default is 0: all databases of the process that have neither MaxMemory nor Memory share one Memory.
	// The bound of this Memory is a quarter of the memory of the machine, or of the process if its control
	// group (Linux) or GOMEMLIMIT allows it less, and at least 32 MiB. Open never refuses one of these
	// databases: if too little is left, the database gets the smallest caches, and options that are set are
	// added on top. Outside of Linux, Jay assumes a machine of 2 GiB.
	MaxMemory int64

	// Memory is a bound that the database shares with other databases, instead of MaxMemory: see NewMemory.
	Memory *Memory

	// MaxQueryBytes bounds the memory that one query takes for data that it cannot stream: documents to be
	// sorted, groups, distinct rows, IDs already seen, documents that an index of words has found. A query that
	// needs more fails with ErrQuery. The default is 64 MiB, or half of the share of MaxMemory for work if that is
	// less.
	MaxQueryBytes int

	// AutoIndexes is the number of indexes that queries may create automatically: after a query that examined
	// many documents, the database builds in the background the index that would have helped. Such indexes are
	// listed with the others, marked Automatic, and can be dropped. The default is 0: none.
	AutoIndexes int

	// Schemas compiles the schemas of collections: see SchemaRules. jsonschema.New, of the module
	// github.com/jaydb/jay/schema/jsonschema, returns a compiler for JSON Schema. Without a compiler, writes
	// into a collection with a schema return a *SchemaCompilerError, and reads work.
	//
	// The default is none.
	Schemas schema.Compiler

	// ExactExpiry makes a document disappear at the instant at which it expires, by the clock of the database.
	// Without it, the document disappears when it is deleted, which may be a little later: docs/expiry.md has
	// the delay. From that instant, no read returns or counts the document, and an insert with its ID, or with
	// its value in a unique index, does not conflict with it. A query, a transaction or any other read of a
	// snapshot uses the time at which it began.
	//
	// ExactExpiry costs each query one check for due documents. As long as the database holds an expired
	// document that is not yet deleted, queries that a covering index could answer read documents. The default
	// is false.
	ExactExpiry bool

	// ExpirationDisabled and RefreshDisabled apply to a database that Open creates: @expires, or @refresh, has
	// no effect in it. ConfigureExpiration and ConfigureRefresh change the setting later. An existing database
	// keeps the setting that it has stored. A database of an older Jay has stored none, and both are enabled in
	// it. The default is false.
	ExpirationDisabled, RefreshDisabled bool

	// DocumentCacheBytes bounds the cache of frequently read documents, decoded and ready to be returned by
	// Get. A negative value means no cache. The default is a share of MaxMemory, or 16 MiB without MaxMemory.
	DocumentCacheBytes int64

	// CacheBytes bounds the cache of table blocks. The default is a share of MaxMemory, or 64 MiB without
	// MaxMemory. The records that updates keep about recently written documents take up to an eighth of
	// CacheBytes in addition, unless DocumentCacheBytes is below 0.
	CacheBytes int64

	// Loads bounds the number of table blocks that are read from the disk at a time. All databases with the
	// same Loads share the bound: see NewLoads. The default is no bound.
	Loads *Loads

	// MemTableBytes is the amount of new data that gathers in memory before it is written to a table; up to
	// four times as much can be waiting. The default is a share of MaxMemory, or 32 MiB without MaxMemory.
	MemTableBytes int64

	// MinFreeBytes is the amount of space that must stay free on the disk of the database. As long as less is
	// free, writes other than deletions return a *DiskFullError; when there is room again, they succeed without
	// further action. If the disk fills up instead, the database fails, and must be opened again when there is
	// room.
	//
	// While the database is written to, Jay checks the free space once a second, and more often when writes
	// bring it near the limit. Background work that merges tables writes between the checks: 1 GiB, or a tenth
	// of the database if that is more, is a good value. MinFreeBytes has no effect on a database in memory.
	// Open returns an error if FS cannot report the free space.
	//
	// The default is 0: the disk is filled to its end.
	MinFreeBytes int64

	// GroupReadable lets the group of the process read the files and directories of the database: new ones get
	// the modes 0640 and 0750, whatever the umask is. A program that makes copies as another user needs this.
	// The default modes are 0600 and 0700: other users of the machine read nothing. Existing files and
	// directories keep their modes; Open logs a warning if others can read one. GroupReadable has no effect on
	// Windows, which uses access control lists, and with an FS.
	GroupReadable bool

	// NoLook prevents other processes from reading the database through Look while it is open. Without NoLook,
	// programs of the same user, such as the command jay, can read it through a socket in its directory: see
	// Look. Nothing listens on a network. NoLook has no effect on databases without a socket: a database in
	// memory, a ReadOnly database, and a database with an FS or an Engine.
	//
	// The default is false.
	NoLook bool

	// LookWrites makes the database carry out writes of programs that have opened it with Look, through its
	// socket. The programs must run as the same user, or, on Linux, as root. Without LookWrites, Look only
	// reads. With it, commands such as "jay --db DIR put" work while this program runs. Each write is a call of
	// this program: IDs come from its counters, its options apply, and its observers see the call.
	//
	// Programs may put, patch and delete documents, one by one, in batches and by query; draw and set
	// identities, and raise counters; change compare-exchange values; create and drop indexes, and rename and
	// drop collections; compact; and switch expiration and refresh. Other writes, transactions above all,
	// return ErrReadOnly to them. A rotation of encryption keys (keys.Rotate) needs no LookWrites. The
	// resources that a program can take are bounded: see docs/limits.md.
	//
	// LookWrites cannot be combined with NoLook. It has no effect on databases without a socket: a database in
	// memory, a ReadOnly database, and a database with an FS or an Engine. AnswerLook never writes.
	//
	// The default is false.
	LookWrites bool

	// Logger receives messages about the health of the database. Jay calls its handler while it holds locks, so
	// the handler must not call the database. A panic of the handler loses the record, and nothing else. The
	// default is no logging.
	Logger *slog.Logger

	// SlowOperation is how long an operation may take before the database logs it to Logger, which must be set.
	// The message is "jay: slow operation", with the verb of the Operation, the collection, the ID or the text
	// of the query, the number of documents, and the time. Texts are cut at 1,000 bytes. The text of a query
	// contains its values.
	//
	// The default is 0: no operation is logged.
	SlowOperation time.Duration

	// Observer is called for each operation. The default is none.
	Observer Observer

	// Now replaces the clock: of @last-modified, of the sizes of HiLo ranges, and of expiry and refresh. Now
	// must be safe for concurrent use. Jay may call it on a goroutine of its own. Now must not take a lock that
	// the program holds while it calls Jay. A panic reaches the caller of the method that needed the time, and
	// nothing is written. The default is time.Now.
	Now func() time.Time

	// Rand replaces the source of randomness of GUIDs and of the database's own ID. The rules for Now apply to
	// Rand too. The default is crypto/rand.
	Rand io.Reader

	// EncryptionKeys encrypts everything that the database writes to its directory, with AES-256-GCM:
	// documents, indexes, logs and temporary files. Reads are authenticated. You keep the keys: without them
	// the data cannot be read or recovered.
	//
	// A database is encrypted from its creation on, or by EncryptDir. Open returns ErrKey, and changes nothing,
	// for an encrypted database without keys, for keys that are missing or wrong, and for keys with a database
	// that is not encrypted. Every function that opens a directory needs the same keys: VerifyDir, Repair,
	// Promote, checkpoints. Backups are encrypted with the newest key, unless BackupPlain or BackupEncrypted
	// says otherwise.
	//
	// Names and sizes of files are not encrypted. Neither are exports, responses of a server, memory and core
	// dumps. RotateDir changes the key. docs/encryption.md says what is protected.
	//
	// EncryptionKeys is an option of the default engine, in a directory: with Engine, and in OpenMemory, it is
	// ErrOption. The default is nil: files are not encrypted.
	EncryptionKeys EncryptionKeys

	// FS replaces the operating system's files. Tests use it for a disk that fails or loses power
	// (storagetest.Disk is such a disk in memory). To encrypt files, use EncryptionKeys. OpenMemory has its own
	// FS, and returns ErrOption for another.
	//
	// An implementation must be safe for concurrent use, and keep these promises:
	//
	//   - Bytes are read at the offset at which they were written, and Stat returns the number of bytes
	//     written: an FS that encrypts preserves lengths and offsets.
	//   - Sync and SyncData of a file return when its bytes are on disk, Sync of a
	//     directory when the names in it are: creations, renames and removals.
	//   - Rename replaces the target in one step, for readers and after a crash.
	//   - List returns every name in a directory once, also those created since.
	//   - Lock fails while another process, or this one, holds the file.
	//   - A missing file is an error for which errors.Is(err, fs.ErrNotExist) holds.
	//   - Unwrap returns the underlying file system, or nil. If that is the file system of the operating
	//     system, the directory is locked against every other Open, wrapped or not. Any other file system
	//     excludes an Open through the same value, and excludes another process by Lock only.
	//
	// Danger: if Sync returns too early, a crash loses acknowledged writes, and the next Open may find damage.
	// Open a database only with the FS that wrote it.
	//
	// The default is the operating system's file system.
	FS lsm.FS

	// Engine opens the storage engine that holds the database. Open, Restore and similar functions then take a
	// name that the Driver knows, instead of a directory. VerifyDir and Repair need a Driver that is a
	// storage.Salvager, and Checkpoint needs an engine that is a storage.Checkpointer; they return ErrUsage
	// otherwise.
	//
	// FS, CacheBytes, MemTableBytes, GroupReadable, Loads and EncryptionKeys belong to the default engine: with
	// another engine, set its own options. OpenMemory returns ErrOption if Engine is set.
	//
	// On a shared store (storage.Engine.Shared), any number of processes can have the database open at once. A
	// process caches nothing that another process may change. It draws its etags from the store, so writes of
	// several processes wait for one another. Each process has its own NodeTag. There is no document cache.
	// Open returns ErrShared for DocumentCacheBytes above 0, Cluster, AcceptLoss, CopyTag (except in Restore),
	// and a PrefixCollections other than the stored one. RenameCollection, and RaiseCounters of HiLo tags,
	// return ErrShared, too. A subscription has one worker among all processes, and one process at a time
	// carries out the expiry and refresh of documents. Data that other processes may still read is kept:
	// records of deletions, and chunks of removed attachments.
	//
	// An engine may limit the age of a snapshot (storage.Limits.SnapshotAge). Operations that read in parts,
	// such as the build of an index or a change feed, then take a new snapshot for each part. Operations that
	// need one snapshot end with ErrSnapshotExpired if they take longer: a query, a transaction, Verify, a
	// backup.
	//
	// The default is the engine of package storage/lsm: Pebble, in files of a directory.
	Engine storage.Driver
}

// EncryptionKey is a key that encrypts files. A key never changes: another secret needs another ID.
type EncryptionKey struct {
	ID     string // its name, 1 to 64 bytes; it is stored in the clear in each file
	Secret []byte // 32 random bytes
}

// String returns the ID and not the secret, so that no log has it.
func (k EncryptionKey) String() string { return fmt.Sprintf("key %q", k.ID) }

// GoString is String, for %#v.
func (k EncryptionKey) GoString() string { return k.String() }

// EncryptionKeys return the keys of an encrypted database: see Options.EncryptionKeys. Package keys has
// implementations that read a file or an environment variable. Your own implementation can ask a key management
// service.
//
// Several goroutines may call the methods at once, also while the database is in use. Jay asks for each key
// once, and keeps it until Close. If a method returns an error, the call that needs the key fails with an
// ErrKey that wraps it.
type EncryptionKeys interface {
	// Newest returns the key that encrypts new files. Open calls it.
	Newest() (EncryptionKey, error)

	// Key returns the key with this ID. A file needs the key that encrypted it for as long as the file exists.
	Key(id string) (EncryptionKey, error)
}

// Conventions say how Go types become collections and IDs. Every field has a
// default, and each can be overridden for one collection by an option of
// CollectionOf.
type Conventions struct {
	// CollectionName names the collection of a type. If it returns "", the default applies: the plural of the
	// type's name (Order → Orders).
	//
	// Danger: a change of the name does not move data: documents stay in the collection in which they were
	// written.
	CollectionName func(t reflect.Type) string

	// Prefix returns the ID prefix of a collection, without the separator. Many goroutines call it at once,
	// including goroutines of Jay for a large batch. A panic reaches the caller that writes the batch. The
	// default is the name in lower case if it has at most one upper-case letter (Orders → orders), else the
	// name itself (OrderLines).
	Prefix func(collection string) string

	// ID makes the ID of a value whose ID field is empty, in every collection. The default is HiLo. WithIDs and
	// WithIDRequest replace it for one collection. Many goroutines call it at once, before the write begins.
	// Its result is the final ID: a result that requests another strategy is an *IDError, as with WithIDs.
	ID func(ctx context.Context, collection string, v any) (string, error)

	// IDRequest returns the request under which values of a collection with an empty ID field are stored, such
	// as collection + "|" for identities, or "" for GUIDs. It is not used if ID is set. WithIDs and
	// WithIDRequest replace it for one collection. Each CollectionOf calls it once. The default is HiLo.
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

// NewLoads returns a bound of n blocks, or of 1 if n is less than 1. Further reads from the disk wait until one
// of the n is done.
//
// A block holds at least one document, and is in memory twice while it is decompressed. So the blocks that are
// being read take at most n times twice the size of the largest document. The size of a document is known only
// when its block is read: without a bound, 100 concurrent reads of documents of 20 MB may take 4 GB for a
// moment, whatever the sizes of the caches. A bound costs speed on disks that serve many reads in parallel
// faster than one.
func NewLoads(n int) *Loads { return (*Loads)(lsm.NewLoads(max(1, n))) }

// Memory is a bound on memory that several databases share, instead of one bound each: see NewMemory. It is
// safe for concurrent use.
type Memory budget.Common

// NewMemory returns a bound of this number of bytes, for databases that are opened with it as Options.Memory.
// It returns ErrOption for less than 32 MiB.
//
// Three sixteenths of the bound are for the queries, builds of indexes and bulk writers of all these databases,
// and as much for their garbage. The rest is for caches, write buffers and their garbage. Each database claims
// its caches in Open, until Close. It gets the caches of a database with a MaxMemory of 512 MiB, or half of the
// rest that is unclaimed if that is less, and at least 10 MiB (18 MiB without cgo). Open returns a *MemoryError
// if less is unclaimed. Cache sizes that are set in Options are claimed as they are.
//
// The databases share a limit on the blocks that are read from the disk at a time, unless Loads is set. The
// MaxDocumentBytes of the first database determines this limit. Copy opens two databases, which can share one
// Memory, too.
func NewMemory(bytes int64) (*Memory, error) {
	c, err := budget.NewCommon(bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	return (*Memory)(c), nil
}

// DefaultMemory returns the Memory that all databases of this process without Memory and MaxMemory share: see
// MaxMemory. Its bound is a quarter of the memory of the machine, if the process may use all of that.
func DefaultMemory() *Memory { return (*Memory)(budget.Process()) }

// Bytes returns the bound, the bytes that databases have claimed for caches, and the size of the part of the
// bound that is for caches.
func (m *Memory) Bytes() (bound, claimed, caches int64) {
	claimed, caches = (*budget.Common)(m).Load()
	return (*budget.Common)(m).Bound(), claimed, caches
}

// HeapBytes returns the part of the bound that is left for Go's heap: see MemoryStats.HeapBytes.
func (m *Memory) HeapBytes() int64 { return (*budget.Common)(m).HeapBytes() }

// files returns the file system of files that are not the database's own.
func (o *Options) files() lsm.FS {
	if o.FS != nil {
		return o.FS
	}
	return lsm.OS(o.GroupReadable)
}
