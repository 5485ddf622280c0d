package core

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/agenda"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/follow"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/heads"
	"github.com/jaydb/jay/internal/hilo"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/live"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/room"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/internal/shared"
	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
)

// Options say how a database is opened. They are checked, and have their defaults.
type Options struct {
	Driver   storage.Driver
	Engine   storage.OpenOptions // DurableReads: writes are acknowledged when they are on disk. Bounds and CloseTimeout are set by Open.
	Settings settings.Options
	HiLo     hilo.Options
	Cluster  accord.Options // Coordinator, Address and Period; no cluster without a Coordinator

	Limits        metadata.Limits // of documents
	MaxQueryBytes int
	AutoIndexes   int
	ExactExpiry   bool
	OrderedGUIDs  bool

	IgnorePrefixes bool                // prefixes of IDs suggest no collections, whatever the settings say
	PrefixOf       func(string) string // the prefix of HiLo IDs of a collection

	MaxAttachmentBytes int64
	MaxAttachments     int
	Schemas            schema.Compiler // of the rules about the shape of documents; nil for none
	Shares             budget.Shares   // of the memory
	Work               *budget.Pool    // that has Shares.Work
	CacheAsked         bool            // the user has set DocumentCacheBytes, above 0
	MinFreeBytes       uint64

	Now   func() time.Time
	Rand  io.Reader
	Watch *observe.Watch

	// InMemory says that nothing is on a disk, so that room on it does not matter.
	InMemory bool

	// OnMachine says that the Driver opens directories of the machine. Other processes can look into the
	// database then, but with NoLook.
	OnMachine, NoLook bool

	// LookWrites has the database carry out all calls of those who look into it through the socket, by Call; without it only those of Unasked.
	LookWrites bool
	Unasked    []string

	// Call carries out a call of another program: see look.Call.
	Call func(ctx context.Context, db *Database, name string, arguments []byte, progress func([]byte)) ([]byte, error)

	// Stream answers the request of a standby of a database that others look into.
	Stream func(ctx context.Context, db *Database, w io.Writer, request io.Reader) error

	leased bool // the node tag is leased: see leases.Take

	// Restoring opens a database that Restore or Copy has not made whole yet: nothing expires meanwhile.
	Restoring bool

	// Rebuilding leaves the indexes that are to be built to the caller.
	Rebuilding bool
}

// Open opens the database in directory dir into db, which is a zero value.
func (db *Database) Open(dir string, o *Options) (err error) {
	begun := time.Now()
	engineOptions := o.Engine
	engineOptions.Bounds, engineOptions.CloseTimeout = format.TableBounds, knobs.CloseTimeout
	engine, err := o.Driver.Open(dir, engineOptions)
	if o.OnMachine && errors.Is(err, storage.ErrLocked) {
		err = look.Explain(dir, err)
	}
	if err != nil {
		return fmt.Errorf("jay: %w", err)
	}

	shown := storage.Shown(o.Driver, dir)
	opened := false
	defer func() {
		if !opened { // an error, or a clock that panics: release the directory
			err = errors.Join(err, engine.Close())
		}
	}()
	if caller, is := engine.(ask.Caller); is {
		db.Owner = &ask.Owner{Caller: caller}
	}
	db.Standbys = follow.NewSource(engine, rand.Text(), cmp.Or(knobs.FollowedBytes, min(follow.MemoryBytes, int(o.Shares.Work/4))))
	if o.Cluster.Coordinator == nil && o.Cluster.Period != 0 && (!engine.Shared() || o.Engine.ReadOnly) {
		return fmt.Errorf("jay: open %q: %w: ClusterPeriod goes with Cluster, or with a store that several processes write to", shown, errs.ErrOption)
	}
	if engine.Shared() {
		if o, err = o.forShared(); err != nil {
			return fmt.Errorf("jay: open %q: %w", shown, err)
		}
		db.shared, db.alone = shared.New(engine), o.Restoring
		engine = db.shared
	}
	db.Env = newEnv(shown, engine, o)
	if err := db.openOn(engine, o); err != nil {
		err = errors.Join(err, db.leave())
		return fmt.Errorf("jay: open %q: %w", shown, err)
	}
	db.listen(dir, o)
	opened = true
	db.logTook("jay: opened", begun)
	return nil
}

// listen lets other processes look into the database. If it cannot, the database does without.
func (db *Database) listen(dir string, o *Options) {
	source := look.Source{Engine: db.OnDisk()}
	if db.shared != nil {
		source.Snapshot = func() (storage.Snapshot, error) { return source.Engine.Snapshot(), nil }
	} else {
		source.Snapshot = shared.NewOwner(source.Engine, db.Reserved.LastEtag, db.Reserved.Session()).Snapshot
	}
	if o.Stream != nil {
		source.Follow = func(ctx context.Context, w io.Writer, request io.Reader) error { return o.Stream(ctx, db, w, request) }
	}
	source.NoCall = "the way through which it looks only reads"
	db.answers = look.NewAnswerer(source)
	if !o.OnMachine || o.NoLook || db.readOnly || o.Restoring || o.Rebuilding {
		return
	}
	source.NoCall = "that program would write for others if it set Options.LookWrites"
	if o.Call != nil {
		if !o.LookWrites {
			source.Only = o.Unasked
		}
		source.Call = func(ctx context.Context, name string, arguments []byte, progress func([]byte)) ([]byte, error) {
			return o.Call(ctx, db, name, arguments, progress)
		}
	}
	var err error
	db.looked, err = look.Listen(dir, source)
	if err != nil && db.Env.Logger != nil {
		db.Env.Logger.Warn("jay: no other process can look into the database", "dir", dir, "err", err)
	}
}

// AnswerLook answers on a connection to one that looks into the database: see look.Answerer.
func (db *Database) AnswerLook(ctx context.Context, conn io.ReadWriteCloser) error {
	err := db.answers.Answer(ctx, look.AsConn(conn), budget.ReadingOf(ctx))
	if errors.Is(err, look.ErrClosed) {
		return errs.ErrClosed
	}
	return err
}

// openOn makes the parts of a database on its engine.
func (db *Database) openOn(engine storage.Engine, o *Options) (err error) {
	e := db.Env
	db.InMemory, db.readOnly = o.InMemory, o.Engine.ReadOnly
	if !db.InMemory {
		if e.Room, err = room.New(e.Dir, o.MinFreeBytes, engine, e.Logger); err != nil {
			return err
		}
	}
	db.Docs, db.Watch, db.Indexes, db.down = docs.NewReader(e, o.Shares.Documents), o.Watch, new(catalog.Current), make(chan struct{})
	if err := o.checkRestored(e.Engine); err != nil {
		return err
	}
	if err := checkStandby(e, o); err != nil {
		return err
	}
	if err := db.load(o); err != nil {
		return err
	}
	if db.Horizon, err = horizon.New(e, db.Reserved, knobs.KeptChanges); err != nil {
		return err
	}
	db.Feeds = &feed.Source{Env: e, Docs: db.Docs, Horizon: db.Horizon, Hub: feed.NewHub(engine)}
	db.Subs = subs.New(e, db.Feeds)
	db.Live = live.New(e, db.Feeds)
	if err := db.openContents(o); err != nil {
		return err
	}
	db.Writer = &write.Writer{Env: e, Agenda: agenda.New(), Docs: db.Docs, Heads: heads.New(o.Shares.Heads), Resolver: db.Resolver, Reserved: db.Reserved, Indexes: db.Indexes, Horizon: db.Horizon, Attachments: db.Contents, Counts: db.Counts, Revisions: &db.Revisions, Schemas: &db.Schemas, PrefixOf: o.PrefixOf, PrefixCollections: db.PrefixCollections}
	db.Writer.Lines.Limit = knobs.TurnLimit
	db.Writer.Agenda.Shared = db.shared != nil
	db.HiLo, db.Ranges = o.HiLo, hilo.New(e, db.Docs, db.Writer, o.HiLo)
	db.Client = db.Ranges.NewClient(hilo.Ungated{})
	db.Writer.Client = db.Client
	if err := db.joinCluster(o.Cluster); err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened {
			db.leaveCluster()
			if db.Writer.Cluster != nil {
				db.Writer.Cluster.Close()
			}
		}
	}()
	if err := db.takeIntents(); err != nil {
		return err
	}
	db.Indexer = indexer.New(e, db.Docs, db.Indexes, db.Writer)
	db.Indexer.MaxAutomatic = o.AutoIndexes
	// Damage that was accepted may have cost entries.
	if db.Expiry, err = expiry.Open(e, db.Docs, db.Writer, o.Engine.AcceptLoss != nil); err != nil {
		return err
	}
	db.Retention = revisions.NewRetention(e, &db.Revisions)
	db.Validate = schemas.NewPass(e, db.Docs, &db.Schemas)
	db.Validate.AwaitCommits = db.Writer.AwaitCommits
	if err := db.follow(); err != nil {
		return err
	}
	if err := db.resume(o); err != nil {
		return err
	}
	opened = true
	return nil
}

// resume continues in the background what the last process has left unfinished.
func (db *Database) resume(o *Options) error {
	if db.readOnly {
		return nil
	}
	if !o.Restoring {
		if err := db.Contents.Resume(); err != nil {
			return err
		}
		if err := db.Expiry.Resume(); err != nil {
			db.Expiry.Stop()
			db.Contents.Stop()
			return err
		}
		db.Counts.Resume()
		db.Retention.Resume()
	}
	if !o.Rebuilding {
		db.Indexer.Resume()
		if !o.Restoring {
			db.Validate.Resume()
		}
	}
	return nil
}

// logTook logs a step in the life of a database that began at an instant.
func (db *Database) logTook(message string, begun time.Time) {
	if db.Env.Logger != nil {
		db.Env.Logger.Debug(message, "dir", db.Env.Dir, "took", time.Since(begun))
	}
}

// newEnv returns what the parts of the database share, as far as it is known before
// the settings are read.
func newEnv(dir string, engine storage.Engine, o *Options) *env.Env {
	e := env.New()
	e.Dir, e.Engine, e.Synced = dir, engine, o.Engine.DurableReads
	e.Limits, e.ExactExpiry = o.Limits, o.ExactExpiry
	e.Work, e.SortBytes = o.Work, int(o.Shares.SortBytes())
	e.MaxQueryBytes, e.Now, e.Rand, e.Logger = o.MaxQueryBytes, o.Now, o.Rand, o.Engine.Logger
	return e
}

// load reads what is known about the database before its first call.
func (db *Database) load(o *Options) error {
	of := o.Settings
	of.Alone, of.Leased, of.Refuse = db.alone, o.leased, o.checkRestored
	stored, err := settings.Open(context.Background(), db.Env, of)
	if err != nil {
		return err
	}
	if err := db.lease(o); err != nil {
		return err
	}
	db.PrefixCollections = stored.PrefixCollections && !o.IgnorePrefixes
	db.Resolver = ids.NewResolver(db.Env.Rules, o.OrderedGUIDs, o.HiLo.Generation == hilo.HiLo2, o.Rand)
	if db.Reserved, err = counters.Open(db.Env); err != nil {
		return err
	}
	// Damage that was accepted may have cost documents, or numbers.
	if db.Counts, err = counts.Open(db.Env, o.Engine.AcceptLoss != nil); err != nil {
		return err
	}
	if err := db.Revisions.Open(db.Env); err != nil {
		return err
	}
	db.Schemas.Compiler = o.Schemas
	if err := db.Schemas.Open(db.Env); err != nil {
		return err
	}
	if o.Engine.AcceptLoss != nil {
		if err := revisions.Recover(db.Env); err != nil {
			return err
		}
		if err := forgetBackups(db.Env); err != nil {
			return err
		}
	}
	return indexer.Load(db.Env, db.Indexes)
}

// checkRestored refuses a database that Restore or Copy has not made whole. On a shared store another process may begin to make one at any time:
// the transactions with which a process becomes one of those that write to the store ask again.
func (o *Options) checkRestored(r env.Getter) error {
	if o.Restoring {
		return nil
	}
	restoring, err := backup.IsRestoring(r)
	if err != nil || restoring == nil {
		return err
	}
	if restoring.Copy != nil {
		return fmt.Errorf("%w: it is a copy of the database %s that is not whole: copy again, and the copy goes on", errs.ErrRestoring, restoring.Copy.Database)
	}
	return fmt.Errorf("%w: remove it, and restore again", errs.ErrRestoring)
}

// checkStandby refuses a standby: it is only read, and only when its first copy is whole.
func checkStandby(e *env.Env, o *Options) error {
	if o.Restoring || o.Rebuilding {
		return nil
	}
	state, found, err := follow.ReadState(e.Engine)
	switch {
	case err != nil || !found:
		return err
	case !state.Whole():
		return fmt.Errorf("%w: its first copy has not come to its end: follow the source again", errs.ErrStandby)
	case !o.Engine.ReadOnly:
		return fmt.Errorf("%w: the database follows another one: open it with ReadOnly, or promote it", errs.ErrStandby)
	}
	return nil
}

// forgetBackups has the next backup be a full one: what was lost by accepted damage is
// not among the changes.
func forgetBackups(e *env.Env) error {
	return e.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		backup.Forget(tx)
		horizon.ForgetFloor(tx, format.BackupFloor)
		return nil
	})
}

// openContents opens the contents of attachments.
func (db *Database) openContents(o *Options) (err error) {
	if db.Contents, err = attachments.Open(db.Env); err != nil {
		return err
	}
	db.Contents.MaxBytes, db.Contents.MaxPerDocument = o.MaxAttachmentBytes, o.MaxAttachments
	db.Contents.ChunkBytes = cmp.Or(knobs.AttachmentChunkBytes, attachments.DefaultChunkBytes)
	if knobs.KeepChunks {
		db.Contents.Stop()
	}
	return nil
}
