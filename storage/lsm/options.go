package lsm

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
)

// FS is the file system that an engine works on. It is an alias, so that tests
// can pass a faulty one (storagetest.NewDisk) without importing Pebble.
type FS = vfs.FS

// Options configure Open. The zero value is a good default.
type Options struct {
	// InMemory keeps everything in memory. Then dir is only a name.
	InMemory bool

	// ReadOnly opens an existing database, and changes no file of it. Open returns ErrNoDatabase if
	// there is none. Several engines, also of other processes, can have the database open with
	// ReadOnly, but then no engine can have it open for writing. Update returns ErrReadOnly.
	// AcceptLoss is not used.
	ReadOnly bool

	// MustExist makes Open return ErrNoDatabase instead of creating one.
	MustExist bool

	// AcceptLoss, if not nil, makes Open repair a directory for which Open would otherwise return a
	// *storage.DamageError. Open calls AcceptLoss with each damage, and then cuts logs and removes
	// files as far as is needed.
	//
	// Danger: Open deletes the damaged data, and data that was written after it. Use a copy of the
	// directory.
	AcceptLoss func(*storage.DamageError)

	// DurableReads makes reads show only commits that are on disk. A read does
	// not wait for the disk: it sees the newest state that is on it. Transactions,
	// Latest and TrackWrites see all commits.
	DurableReads bool

	// CacheBytes bounds the block cache. The default is DefaultCacheBytes.
	CacheBytes int64

	// Loads bounds the blocks that are loaded at the same time, together with other engines. The
	// default, nil, means no bound.
	Loads *Loads

	// MemTableBytes is the size at which committed data in memory is written
	// to a table. Up to four such tables may be in memory at once. The default
	// is 32 MiB.
	MemTableBytes int64

	// CloseTimeout is how long Open, Await and Close wait for a disk that answers
	// no call, and for an engine that has failed. The default is 10 s.
	CloseTimeout time.Duration

	// GroupReadable lets the group read the files and directories that are made, with the
	// modes 0640 and 0750 in place of 0600 and 0700. It is without effect with an FS.
	GroupReadable bool

	// TableBounds are keys, ascending, at which a table ends and another begins,
	// so that writes to one part of the key space do not overlap tables of
	// another, which a compaction would have to merge. Each bound costs a small
	// table now and then: a dozen is many. The bounds may change from one Open
	// to the next.
	TableBounds [][]byte

	// EncryptionKeys encrypt everything on disk, with the newest of these keys. The default, nil,
	// means a database that is not encrypted. Open does not change whether a database is encrypted: it
	// returns ErrKey for keys that are missing, wrong, or not needed. Convert changes it.
	EncryptionKeys sealed.Keys

	// Features are the features that the engine knows. The default is storage.AllFeatures. Tests set
	// others to act as an older or a newer version.
	Features storage.Features

	// Logger receives the engine's messages. The default discards them.
	Logger *slog.Logger

	// FS replaces the file system of the machine, for tests.
	FS FS
}

// features returns Features, or its default.
func (o *Options) features() storage.Features {
	if o.Features == nil {
		return storage.AllFeatures[:]
	}
	return o.Features
}

// defaultCloseTimeout is the default of Options.CloseTimeout.
const defaultCloseTimeout = 10 * time.Second

// DefaultCacheBytes is the default of Options.CacheBytes: 64 MiB.
const DefaultCacheBytes = 64 << 20

// defaultMemTableBytes is the default of Options.MemTableBytes.
const defaultMemTableBytes = 32 << 20
