package jay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/agenda"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/heads"
	"github.com/jaydb/jay/internal/hilo"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/relay"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/room"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Open opens the database in directory dir, creating both if they do not exist. Nil
// options mean the defaults.
//
// The directory belongs to this process until Close: any other Open of it, by any
// path, returns ErrLocked at once. The path is resolved once, so a later change of
// the working directory or of a symbolic link does not matter.
//
// Open returns ErrNotDatabase for a directory of other files, ErrNewerFormat for a
// database that a newer Jay wrote, ErrFixed for options that contradict those the
// database was created with, ErrOption for invalid values, and ErrNotWritable if
// nothing can be written there. Every error names dir.
func Open(dir string, opts *Options) (*DB, error) {
	return open(dir, opts, opening{})
}

// OpenMemory opens a new database in memory, which behaves like one on disk in
// every other way. Its contents are gone after Close. It is meant for tests.
func OpenMemory(opts *Options) (*DB, error) {
	return open("memory", opts, opening{inMemory: true})
}

// opening is how a database is opened.
type opening struct {
	inMemory  bool
	restoring bool // by Restore, which has not made it whole yet: nothing expires meanwhile
}

func open(dir string, given *Options, how opening) (_ *DB, err error) {
	begun := time.Now()
	opts, err := given.withDefaults()
	if dir == "" && err == nil {
		err = fmt.Errorf("%w: no directory is named", ErrOption)
	}
	if how.inMemory && opts.FS != nil && err == nil {
		err = fmt.Errorf("%w: a database in memory has an FS of its own", ErrOption)
	}
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", dir, err)
	}
	engine, err := lsm.Open(dir, lsm.Options{
		InMemory:      how.inMemory,
		ReadOnly:      opts.ReadOnly,
		MustExist:     opts.MustExist,
		DurableReads:  opts.Durability == Synced,
		AcceptLoss:    opts.AcceptLoss,
		CacheBytes:    opts.CacheBytes,
		MemTableBytes: opts.MemTableBytes,
		TableBounds:   format.TableBounds,
		Logger:        opts.Logger,
		FS:            opts.FS,
		CloseTimeout:  knobs.CloseTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("jay: %w", err)
	}

	opened := false
	defer func() {
		if !opened { // an error, or a clock that panics: release the directory
			err = errors.Join(err, engine.Close())
		}
	}()
	e := newEnv(dir, engine, &opts)
	if !how.inMemory {
		if e.Room, err = room.New(dir, uint64(opts.MinFreeBytes), engine, opts.Logger); err != nil {
			return nil, fmt.Errorf("jay: open %q: %w", dir, err)
		}
	}
	db := &DB{env: e, docs: docs.NewReader(e, opts.DocumentCacheBytes), opts: opts, watch: newWatch(&opts), inMemory: how.inMemory, indexes: new(catalog.Current), down: make(chan struct{})}
	if err := checkRestored(e, how); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	if err := db.load(); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	if db.horizon, err = horizon.New(e, db.reserved, knobs.KeptEtags); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	db.feeds = &feed.Source{Env: e, Docs: db.docs, Horizon: db.horizon, Hub: feed.NewHub(engine)}
	db.subs = subs.New(e, db.feeds)
	if err := openContents(db); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	db.writer = &write.Writer{Env: e, Agenda: agenda.New(), Docs: db.docs, Heads: headsOf(&opts), Resolver: db.resolver, Reserved: db.reserved, Indexes: db.indexes, Horizon: db.horizon, Attachments: db.contents, Counts: db.counts, Revisions: &db.revisions, PrefixOf: opts.Conventions.Prefix, PrefixCollections: db.prefixCollections}
	db.writer.Lines.Limit = knobs.TurnLimit
	db.ranges = hilo.New(e, db.docs, db.writer, hilo.Options{Generation: hilo.Generation(opts.HiLoMode), Capacity: opts.HiLoCapacity, Growth: opts.HiLo2Growth})
	db.client = db.ranges.NewClient(hilo.Ungated{})
	db.writer.Client = db.client
	if err := joinCluster(db); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	defer func() {
		if !opened {
			leaveCluster(db)
			if db.writer.Cluster != nil {
				db.writer.Cluster.Close()
			}
		}
	}()
	if err := takeIntents(db); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	db.indexer = indexer.New(e, db.docs, db.indexes, db.writer)
	db.indexer.MaxAutomatic = opts.AutoIndexes
	// Damage that was accepted may have cost entries.
	if db.expiry, err = expiry.Open(e, db.docs, db.writer, opts.AcceptLoss != nil); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	db.retention = revisions.NewRetention(e, &db.revisions)
	if err := db.resume(how); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	opened = true
	logTook(db, "jay: opened", begun)
	return db, nil
}

// resume continues in the background what the last process has left unfinished.
func (db *DB) resume(how opening) error {
	if db.opts.ReadOnly {
		return nil
	}
	if !how.restoring {
		if err := db.contents.Resume(); err != nil {
			return err
		}
		if err := db.expiry.Resume(); err != nil {
			db.expiry.Stop()
			db.contents.Stop()
			return err
		}
		db.counts.Resume()
		db.retention.Resume()
	}
	db.indexer.Resume()
	return nil
}

// logTook logs a step in the life of a database that began at an instant.
func logTook(db *DB, message string, begun time.Time) {
	if db.env.Logger != nil {
		db.env.Logger.Debug(message, "dir", db.env.Dir, "took", time.Since(begun))
	}
}

// newEnv returns what the parts of the database share, as far as it is known before
// the settings are read.
func newEnv(dir string, engine storage.Engine, opts *Options) *env.Env {
	e := env.New()
	e.Dir, e.Engine, e.Synced = dir, engine, opts.Durability == Synced
	e.Limits = metadata.Limits{MaxBytes: opts.MaxDocumentBytes, MaxDepth: opts.MaxDepth}
	e.ExactExpiry = opts.ExactExpiry
	e.MaxQueryBytes, e.Now, e.Rand, e.Logger = opts.MaxQueryBytes, opts.Now, opts.Rand, opts.Logger
	return e
}

// load reads what is known about the database before its first call.
func (db *DB) load() error {
	stored, err := settings.Open(context.Background(), db.env, db.opts.settings())
	if err != nil {
		return err
	}
	db.prefixCollections = stored.PrefixCollections && db.opts.PrefixCollections != PrefixCollectionsIgnored
	db.resolver = ids.NewResolver(db.env.Rules, db.opts.OrderedGUIDs, db.opts.HiLoMode == HiLo2, db.opts.Rand)
	if db.reserved, err = counters.Open(db.env); err != nil {
		return err
	}
	// Damage that was accepted may have cost documents, or numbers.
	if db.counts, err = counts.Open(db.env, db.opts.AcceptLoss != nil); err != nil {
		return err
	}
	if err := db.revisions.Open(db.env); err != nil {
		return err
	}
	if db.opts.AcceptLoss != nil {
		if err := revisions.Recover(db.env); err != nil {
			return err
		}
		if err := forgetBackups(db.env); err != nil {
			return err
		}
	}
	return indexer.Load(db.env, db.indexes)
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
	}
	if o.PrefixCollections == PrefixCollectionsOn || o.PrefixCollections == PrefixCollectionsOff {
		on := o.PrefixCollections == PrefixCollectionsOn
		s.PrefixCollections = &on
	}
	return s
}

// Close waits for the calls in progress and the functions of Read, returns unused
// HiLo numbers, makes every write durable and releases the directory. Iterations
// over documents that are still running end with ErrClosed. Close is idempotent:
// later calls return nil when the database is closed. If Options.Now panics during
// Close, the database is closed before the panic reaches the caller.
//
// If the disk does not answer for 10 seconds, writes that wait for it return
// ErrUnknownOutcome, and Close returns an ErrFailed. The directory stays locked
// until the disk answers or the process ends: goroutines of the engine may
// still write to it.
func (db *DB) Close() error {
	first := false
	var ending relay.Ending // of shutDown, for the first caller
	db.closing.Do(func() {
		first = true
		go func() {
			defer close(db.down)
			ending.Watch(func() { db.downErr = db.shutDown() })
		}()
	})
	if err := db.env.Engine.Await(db.down); err != nil {
		return fmt.Errorf("jay: %w", err)
	}
	if first {
		ending.Repeat()
	}
	return db.takeCloseError()
}

// takeCloseError returns the error of Close, to the first caller that asks.
func (db *DB) takeCloseError() error {
	db.downMu.Lock()
	defer db.downMu.Unlock()
	err := db.downErr
	db.downErr = nil
	return err
}

// shutDown closes the database, and waits as long as that takes.
func (db *DB) shutDown() (err error) {
	begun := time.Now()
	defer func() {
		if err == nil {
			logTook(db, "jay: closed", begun)
		}
	}()
	db.indexer.Stop()
	db.expiry.Stop()
	db.retention.Stop()
	db.horizon.Stop()
	db.subs.Stop()
	db.feeds.Hub.Stop() // after the horizon: see horizon.Follower.Close
	db.contents.Stop()
	db.counts.Stop()
	if invariants.Enabled {
		if err := checkCounts(context.Background(), db); errors.Is(err, counts.ErrMiscounted) {
			invariants.Broken("%v", err)
		}
		if err := checkContents(context.Background(), db); errors.Is(err, attachments.ErrInconsistent) {
			invariants.Broken("%v", err)
		}
		moment := db.env.Engine.Latest() // writes may go on
		if err := errors.Join(expiry.Check(moment), moment.Close()); errors.Is(err, expiry.ErrEntries) {
			invariants.Broken("%v", err)
		}
		if err := checkRevisions(db); errors.Is(err, revisions.ErrContradiction) {
			invariants.Broken("%v", err)
		}
	}
	leaveCluster(db)
	db.writer.Lines.Dissolve() // a call in line that is inside the gate goes on, others find it closed
	db.env.Pins.Stop()         // before the gate: a function that Read has called may use the database
	db.env.CloseGate()

	// Deferred, as the client calls Options.Now, which may panic.
	var clientErr error
	defer func() { err = db.closeEngine(clientErr) }()
	clientErr = db.client.Close(context.Background())
	return nil
}

// closeEngine releases everything that is open, and then closes the engine.
// clientErr is the error of returning HiLo numbers. No call is inside the gate.
func (db *DB) closeEngine(clientErr error) error {
	err := errors.Join(clientErr, db.env.ReleaseAll(ErrClosed))
	if db.writer.Cluster != nil {
		db.writer.Cluster.Close()
	}
	err = errors.Join(err, db.release())
	if errors.Is(err, ErrFailed) && !errors.Is(err, ErrUnknownOutcome) && db.env.Synced {
		// The write that met the failure has returned it, and no acknowledged write
		// is lost: the rest is to release the resources.
		err = nil
	}
	return errors.Join(err, db.env.Engine.Close())
}

// release writes the last commit: the numbers used, and the removal of records that
// no transaction needs any more.
func (db *DB) release() error {
	remove, err := db.horizon.Finish()
	if err != nil {
		// The next Close tries again.
		if db.env.Logger != nil {
			db.env.Logger.Warn("jay: removing records of deletions", "err", err)
		}
		remove = func(storage.Tx) error { return nil }
	}
	return db.reserved.Release(context.Background(), remove)
}

// headsOf makes the table of the heads of documents that were written lately: an eighth of
// the cache of blocks. Without a cache of documents there is none.
func headsOf(opts *Options) *heads.Table {
	if opts.DocumentCacheBytes < 0 {
		return nil
	}
	return heads.New(cmp.Or(opts.CacheBytes, 64<<20) / 8) // the default of lsm.Options
}
