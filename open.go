package jay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/calls"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/hilo"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/recovery"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Open opens the database in directory dir. It creates the directory and the database if they do not exist. Nil
// options mean the defaults.
//
// The directory belongs to this process until Close: any other Open of the directory, by any path, returns
// ErrLocked at once. Open resolves the path once, so a later change of the working directory or of a symbolic
// link has no effect.
//
// Open returns ErrNotDatabase for a directory of other files, ErrNewerFormat for a database that a newer Jay
// wrote, ErrKey for encryption keys that are missing, wrong or not needed, ErrFixed for options that contradict
// the options with which the database was created, ErrOption for invalid values, and ErrNotWritable if the
// directory is not writable. Every error names dir.
func Open(dir string, opts *Options) (*DB, error) {
	return open(dir, opts, opening{})
}

// OpenMemory opens a new database in memory. In every other way the database behaves like a database on disk.
// Close discards its contents. OpenMemory is meant for tests.
func OpenMemory(opts *Options) (*DB, error) {
	return open("memory", opts, opening{inMemory: true})
}

// Look opens, for reading, the database that another program has open in directory dir. The other program
// answers through a socket that only processes of its user can use. It does not answer if its Options.NoLook is
// set.
//
// The other program carries out writes, as its own calls, if its Options.LookWrites is set; that option lists
// the writes. If the other program ends during such a write, the error is ErrUnknownOutcome; a call with
// RequestID can be repeated. All other writes return ErrReadOnly. So do all writes if LookWrites is not set, or
// if opts sets ReadOnly.
//
// Each call sees what the other program has committed by then, as on a shared store (Options.Engine). Nothing
// is cached between calls. A snapshot lasts 15 minutes: a query, an export or a backup that takes longer ends
// with ErrSnapshotExpired. Calls return ErrUnavailable after the other program has closed the database or has
// ended; then call Look again.
//
// Look takes the options of a ReadOnly database. It returns ErrOption for FS, Engine and the options of the
// default engine, and ErrShared for DocumentCacheBytes above 0. It returns ErrUnavailable if no program
// answers, and ErrNewerFormat if the database uses features that this version does not know. Every error names
// dir.
func Look(dir string, opts *Options) (*DB, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.FS != nil || o.Engine != nil {
		return nil, fmt.Errorf("look %q: %w: FS and Engine are those of the program that has the database open", dir, ErrOption)
	}
	o.ReadOnly, o.Engine = true, look.Driver{OnlyReads: o.ReadOnly}
	return open(dir, &o, opening{})
}

// LookThrough is Look through a connection: the program on the other side answers with AnswerLook. The returned
// DB is read-only. LookThrough takes over the connection, and Close of the DB closes it. Dir returns name, and
// errors contain it.
//
// A call waits 30 seconds for an answer, and LookThrough itself waits 5 seconds. If conn is not a net.Conn,
// that timeout closes it, and Close of conn must end its Read and Write.
func LookThrough(conn io.ReadWriteCloser, name string, opts *Options) (*DB, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.FS != nil || o.Engine != nil {
		return nil, errors.Join(fmt.Errorf("look %q: %w: FS and Engine are those of the program that has the database open", name, ErrOption), conn.Close())
	}
	through := look.AsConn(conn)
	o.ReadOnly, o.Engine = true, look.Driver{Dial: func() net.Conn { return through }, OnlyReads: o.ReadOnly}
	db, err := open(name, &o, opening{})
	if err != nil {
		_ = through.Close() // a refused option leaves it open; a second Close is harmless
	}
	return db, err
}

// AnswerLook lets the program on the other side of a connection read db with LookThrough. It returns when the
// other side disconnects, ctx ends or db is closed, and closes the connection. So a program can offer its
// database over a transport of its choice. The other side can read everything that is stored, and can write
// nothing. AnswerLook does no access control.
//
// The other side may be untrusted: AnswerLook checks what it sends, and bounds the resources that it can take
// (docs/limits.md). At most 100 connections can be served at a time; connections through the socket of Look do
// not count. If ctx comes from WithReading, AnswerLook calls its function before it sends 64 KiB or more.
// AnswerLook returns ErrClosed if db is closed first, and nil when the other side has disconnected.
func AnswerLook(ctx context.Context, db *DB, conn io.ReadWriteCloser) error {
	if err := db.core.AnswerLook(ctx, conn); err != nil {
		return fmt.Errorf("answer who looks into the database: %w", err)
	}
	return nil
}

// opening is how a database is opened.
type opening struct {
	inMemory  bool
	restoring bool // by Restore, which has not made it whole yet: nothing expires meanwhile

	rebuilding bool // by Restore or Repair, which build the indexes themselves
}

func open(dir string, given *Options, how opening) (*DB, error) {
	opts, claim, err := given.withDefaults()
	opened := false
	defer func() {
		if !opened {
			claim.End()
		}
	}()
	if dir == "" && err == nil {
		err = fmt.Errorf("%w: no directory is named", ErrOption)
	}
	if how.inMemory && opts.FS != nil && err == nil {
		err = fmt.Errorf("%w: a database in memory has an FS of its own", ErrOption)
	}
	if how.inMemory && opts.Engine != nil && err == nil {
		err = fmt.Errorf("%w: a database in memory has an Engine of its own", ErrOption)
	}
	if how.inMemory && opts.EncryptionKeys != nil && err == nil {
		err = fmt.Errorf("%w: a database in memory has no files that EncryptionKeys could encrypt", ErrOption)
	}
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", storage.Shown(opts.Engine, dir), err)
	}
	db := &DB{opts: opts, memory: claim}
	inner := opts.inner(claim)
	inner.Restoring, inner.Rebuilding = how.restoring, how.rebuilding
	inner.CacheAsked = given != nil && given.DocumentCacheBytes > 0
	if how.inMemory {
		engine := opts.engine()
		engine.InMemory = true
		inner.Driver, inner.InMemory, inner.OnMachine = lsm.Driver{Options: engine}, true, false
	}
	if err := db.core.Open(dir, inner); err != nil {
		return nil, err
	}
	opened = true
	return db, nil
}

// inner returns the options as the packages below have them.
func (o *Options) inner(claim *budget.Claim) *core.Options {
	return &core.Options{
		Driver:    o.driver(),
		OnMachine: o.Engine == nil && o.FS == nil,
		Stream:    recovery.Stream,
		NoLook:    o.NoLook,

		LookWrites: o.LookWrites,
		Call:       calls.Answer,
		Unasked:    calls.Unasked,

		Engine: storage.OpenOptions{
			ReadOnly:     o.ReadOnly,
			MustExist:    o.MustExist,
			DurableReads: o.Durability == Synced,
			AcceptLoss:   o.AcceptLoss,
			Logger:       o.Logger,
		},
		Settings: o.settings(),
		HiLo:     hilo.Options{Generation: hilo.Generation(o.HiLoMode), Capacity: o.HiLoCapacity, Growth: o.HiLo2Growth},
		Cluster:  accord.Options{Coordinator: o.Cluster, Address: o.ClusterAddress, Period: o.ClusterPeriod},

		Limits:        metadata.Limits{MaxBytes: o.MaxDocumentBytes, MaxDepth: o.MaxDepth},
		MaxQueryBytes: o.MaxQueryBytes,
		AutoIndexes:   o.AutoIndexes,
		ExactExpiry:   o.ExactExpiry,
		OrderedGUIDs:  o.OrderedGUIDs,

		IgnorePrefixes: o.PrefixCollections == PrefixCollectionsIgnored,
		PrefixOf:       o.Conventions.Prefix,

		MaxAttachmentBytes: o.MaxAttachmentBytes,
		MaxAttachments:     o.MaxAttachments,
		Schemas:            o.Schemas,
		Shares:             claim.Shares,
		Work:               claim.Pool,
		MinFreeBytes:       uint64(o.MinFreeBytes),

		Now:   o.Now,
		Rand:  o.Rand,
		Watch: newWatch(o),
	}
}

// driver returns the driver of the engine.
func (o *Options) driver() storage.Driver {
	if o.Engine != nil {
		return o.Engine
	}
	return lsm.Driver{Options: o.engine()}
}

// engine returns the options of the default engine.
func (o *Options) engine() lsm.Options {
	return lsm.Options{CacheBytes: o.CacheBytes, MemTableBytes: o.MemTableBytes, Loads: (*lsm.Loads)(o.Loads), FS: o.FS, GroupReadable: o.GroupReadable,
		EncryptionKeys: sealed.From(o.EncryptionKeys)}
}

// newWatch returns what operations are reported to; nil for nothing.
func newWatch(o *Options) *observe.Watch {
	w := observe.Watch{Slow: o.SlowOperation, Log: o.Logger}
	if observer := o.Observer; observer != nil {
		w.Begin = func(ctx context.Context, o *observe.Operation) context.Context {
			return observer.Begin(ctx, (*Operation)(o))
		}
		w.End = func(ctx context.Context, o *observe.Operation) { observer.End(ctx, (*Operation)(o)) }
	}
	return observe.New(w)
}

// settings returns the options that concern the settings of the database.
func (o *Options) settings() settings.Options {
	s := settings.Options{
		Separator:     o.Separator,
		NodeTag:       o.NodeTag,
		CopyTag:       o.CopyTag,
		CaseSensitive: o.CaseSensitive,
		MaxIDBytes:    o.MaxIDBytes,
		AcceptLoss:    o.AcceptLoss,

		ExpirationDisabled: o.ExpirationDisabled,
		RefreshDisabled:    o.RefreshDisabled,
	}
	if o.PrefixCollections == PrefixCollectionsOn || o.PrefixCollections == PrefixCollectionsOff {
		on := o.PrefixCollections == PrefixCollectionsOn
		s.PrefixCollections = &on
	}
	return s
}
