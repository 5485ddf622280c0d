package jay

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/relay"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// DB is an open database. All methods are safe for concurrent use.
type DB struct {
	dir      string
	opts     Options
	engine   storage.Engine
	resolver *ids.Resolver
	rules    ids.Rules
	foldSep  string // the separator, folded
	node     uint64 // the number under which this database writes
	nodes    origins
	newest   uint64 // etag of the newest change that this database had written when it was opened
	ceilings ceilings
	gaps     gaps
	client   *ids.Client
	clients  clients

	gate     callGate
	closing  sync.Once
	down     chan struct{} // closed when Close has come to its end
	downErr  error         // of Close. Valid once down is closed, until somebody takes it.
	holders  holders
	lent     loans
	cache    *documentCache // or nil
	indexing indexing
	turns    patchTurns
}

// origin is the database behind a node number: what a change vector names.
// It is the record under 'n'. Part of the on-disk format.
type origin struct {
	Tag string `json:"tag"`
	ID  string `json:"id"` // 16 random bytes in base64 without padding
}

// settings is the record under 'm' "database": what is fixed at creation.
// Part of the on-disk format.
type settings struct {
	Separator     string    `json:"separator"`
	CaseSensitive bool      `json:"caseSensitive"`
	Node          uint64    `json:"node"` // what this database writes as; above 0 in a copy
	Created       time.Time `json:"created"`
}

// Open opens the database in directory dir, creating both if they are not
// there. Nil options mean the defaults.
//
// The directory belongs to this process until Close: any other Open, by
// whatever path, gets ErrLocked at once. The path is resolved once, so a later
// change of the working directory or of a symbolic link does not matter. Open returns ErrNotDatabase for a directory of other
// files, ErrNewerFormat for one that a newer Jay wrote, ErrFixed for options
// that contradict what the database was created with, ErrOption for values
// that make no sense, ErrNotWritable if nothing can be written there. Every
// error names dir.
func Open(dir string, opts *Options) (*DB, error) {
	return open(dir, opts, false)
}

// OpenMemory opens a new database that lives in memory and behaves like one
// on disk in every other way. It is gone after Close. It is meant for tests.
func OpenMemory(opts *Options) (*DB, error) {
	return open("memory", opts, true)
}

func open(dir string, given *Options, inMemory bool) (_ *DB, err error) {
	opts, err := given.withDefaults()
	if dir == "" && err == nil {
		err = fmt.Errorf("%w: no directory is named", ErrOption)
	}
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", dir, err)
	}
	engine, err := lsm.Open(dir, lsm.Options{
		InMemory:      inMemory,
		MustExist:     opts.MustExist,
		DurableReads:  opts.Durability == Synced,
		AcceptLoss:    opts.AcceptLoss,
		CacheBytes:    opts.CacheBytes,
		MemTableBytes: opts.MemTableBytes,
		TableBounds:   tableBounds,
		Logger:        opts.Logger,
		FS:            opts.fs,
		CloseTimeout:  opts.closeTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("jay: %w", err)
	}

	opened := false
	defer func() {
		if !opened { // an error, or a clock that panics: the directory is free again
			err = errors.Join(err, engine.Close())
		}
	}()
	db := &DB{dir: dir, opts: opts, engine: engine, cache: newDocumentCache(opts.DocumentCacheBytes), down: make(chan struct{})}
	db.gate.init()
	db.ceilings.reserving = make(turn, 1)
	if err := db.load(); err != nil {
		return nil, fmt.Errorf("jay: open %q: %w", dir, err)
	}
	db.client = db.newClient()
	db.resumeIndexes()
	opened = true
	return db, nil
}

// load reads what the database is, or writes it if the database is new.
func (db *DB) load() error {
	ctx := context.Background()
	stored, err := db.loadSettings()
	if errors.Is(err, storage.ErrNotFound) {
		if err = db.checkNew(); err == nil {
			stored, err = db.create(ctx)
		}
	}
	if err != nil {
		return err
	}
	if db.engine.Creating() {
		if err := db.engine.FinishCreation(); err != nil {
			return err
		}
	}
	if db.nodes, err = db.loadNodes(); err != nil {
		return err
	}
	if _, found := db.nodes[stored.Node]; !found {
		return fmt.Errorf("node %d has no record: %w", stored.Node, ErrCorrupt)
	}
	if tag := db.opts.CopyTag; tag != "" && tag != db.nodes[stored.Node].Tag {
		if stored, err = db.retag(ctx, stored, tag); err != nil {
			return err
		}
	}
	own := db.nodes[stored.Node]
	if err := db.checkFixed(stored, own); err != nil {
		return err
	}

	db.node = stored.Node
	db.rules = ids.Rules{Separator: stored.Separator, NodeTag: own.Tag, CaseSensitive: stored.CaseSensitive, MaxBytes: db.opts.MaxIDBytes}
	if err := db.rules.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	db.foldSep = db.rules.Fold(stored.Separator)
	db.resolver = ids.NewResolver(db.rules, db.opts.OrderedGUIDs, db.opts.HiLoMode == HiLo2, db.opts.Rand)
	return firstError(db.loadEtag(), db.loadIndexes())
}

const settingsName = "database"

func (db *DB) loadSettings() (settings, error) {
	var s settings
	value, closer, err := db.engine.Get(appendKey(nil, spaceMeta, settingsName))
	if err != nil {
		return s, err
	}
	defer closer.Close()
	if err := json.Unmarshal(value, &s); err != nil {
		return s, fmt.Errorf("database record: %w: %w", ErrCorrupt, err)
	}
	return s, nil
}

// checkNew returns an error unless a store without settings is one whose creation
// was cut short: its first commit has the settings in it. With
// Options.AcceptLoss they are made anew.
func (db *DB) checkNew() error {
	problem := "the settings of the database are missing"
	if db.engine.Creating() {
		it, err := db.engine.Iterate(nil, nil)
		if err != nil {
			return err
		}
		empty := !it.First()
		if err := errors.Join(it.Error(), it.Close()); err != nil {
			return err
		}
		if empty {
			return nil
		}
		problem += ", though it has keys"
	}
	damage := &DamageError{Dir: db.dir, File: "database record", Offset: -1, Problem: problem, Loss: "the separator, the node tag and the ID of the database, and what was lost with them"}
	if db.opts.AcceptLoss == nil {
		return damage
	}
	db.opts.AcceptLoss(damage)
	return nil
}

// create writes the records of a new database in one synced commit. A crash
// before it leaves an empty store, which the next Open creates again.
func (db *DB) create(ctx context.Context) (settings, error) {
	s := settings{Separator: db.opts.Separator, CaseSensitive: db.opts.CaseSensitive, Created: db.opts.Now().UTC()}
	if s.Separator == "" {
		s.Separator = ids.DefaultSeparator
	}
	if err := ids.CheckSeparator(s.Separator); err != nil {
		return s, fmt.Errorf("%w: %w", ErrOption, err)
	}
	own, err := db.newOrigin(cmp.Or(db.opts.CopyTag, db.opts.NodeTag, ids.DefaultNodeTag))
	if err != nil {
		return s, err
	}
	return s, db.engine.Update(ctx, true, func(tx storage.Tx) error {
		if err := setJSON(tx, appendKey(nil, spaceMeta, settingsName), s); err != nil {
			return err
		}
		return setJSON(tx, nodeKey(s.Node), own)
	})
}

// newOrigin makes a database ID for a node tag.
func (db *DB) newOrigin(tag string) (origin, error) {
	if err := ids.CheckNodeTag(tag); err != nil {
		return origin{}, fmt.Errorf("%w: %w", ErrOption, err)
	}
	var id [16]byte
	if _, err := io.ReadFull(db.random(), id[:]); err != nil {
		return origin{}, fmt.Errorf("make the database's id: %w", err)
	}
	return origin{Tag: tag, ID: base64.RawStdEncoding.EncodeToString(id[:])}, nil
}

func setJSON(tx storage.Tx, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tx.Set(key, text, nil)
	return nil
}

func (db *DB) random() io.Reader {
	if db.opts.Rand != nil {
		return db.opts.Rand
	}
	return rand.Reader
}

func (db *DB) loadNodes() (origins, error) {
	lo := []byte{spaceNode}
	it, err := db.engine.Iterate(lo, prefixEnd(lo))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	nodes := make(origins)
	for ok := it.First(); ok; ok = it.Next() {
		var o origin
		if err := json.Unmarshal(it.Value(), &o); err != nil || len(it.Key()) != 5 {
			return nil, fmt.Errorf("node record %x: %w", it.Key(), ErrCorrupt)
		}
		k := it.Key()[1:]
		nodes[uint64(k[0])<<24|uint64(k[1])<<16|uint64(k[2])<<8|uint64(k[3])] = o
	}
	return nodes, it.Error()
}

// checkFixed compares the options with what the database was created with.
func (db *DB) checkFixed(stored settings, own origin) error {
	switch {
	case db.opts.Separator != "" && db.opts.Separator != stored.Separator:
		return fmt.Errorf("%w: its separator is %q, not %q", ErrFixed, stored.Separator, db.opts.Separator)
	case db.opts.NodeTag != "" && db.opts.NodeTag != own.Tag:
		return fmt.Errorf("%w: its node tag is %q, not %q", ErrFixed, own.Tag, db.opts.NodeTag)
	case db.opts.CaseSensitive && !stored.CaseSensitive:
		return fmt.Errorf("%w: its ids are not case-sensitive", ErrFixed)
	}
	return nil
}

// holder is something open on the engine that must not outlive the database: a
// walk, or a transaction. release closes it, and makes its later calls return
// cause; it is idempotent.
type holder interface{ release(cause error) error }

// holders are those that are open.
type holders struct {
	mu  sync.Mutex
	set map[holder]struct{} // Guarded by mu.
}

func (db *DB) hold(h holder) {
	db.holders.mu.Lock()
	defer db.holders.mu.Unlock()
	if db.holders.set == nil {
		db.holders.set = make(map[holder]struct{})
	}
	db.holders.set[h] = struct{}{}
}

func (db *DB) letGo(h holder) {
	db.holders.mu.Lock()
	defer db.holders.mu.Unlock()
	delete(db.holders.set, h)
}

// release releases all of them. Nothing new can be held meanwhile.
func (h *holders) release(cause error) error {
	h.mu.Lock()
	open := slices.Collect(maps.Keys(h.set)) // a release lets go by itself
	h.mu.Unlock()
	var err error
	for _, holder := range open {
		err = errors.Join(err, holder.release(cause))
	}
	return err
}

// Dir returns the directory that Open was given.
func (db *DB) Dir() string { return db.dir }

// enter begins a call. exit ends it. User code must not run in between: Close
// waits for the calls inside.
func (db *DB) enter() error {
	if !db.gate.enter() {
		return ErrClosed
	}
	return nil
}

func (db *DB) exit() { db.gate.exit() }

// Close waits for the calls in flight and the functions of Read, gives unused
// HiLo numbers back, makes every write durable and releases the directory. Loops
// over documents that are still running end with ErrClosed. Close is
// idempotent: later calls return nil when the database is closed. If
// Options.Now panics under Close, the database is closed all the same, before
// the panic comes to the caller.
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
	if err := db.engine.Await(db.down); err != nil {
		return fmt.Errorf("jay: %w", err)
	}
	if first {
		ending.Repeat()
	}
	return db.takeCloseError()
}

// takeCloseError returns the error of Close to the first who asks.
func (db *DB) takeCloseError() error {
	db.holders.mu.Lock()
	defer db.holders.mu.Unlock()
	err := db.downErr
	db.downErr = nil
	return err
}

// shutDown closes the database, however long that takes.
func (db *DB) shutDown() (err error) {
	db.stopIndexes()
	db.lent.stop() // before the gate: a function that Read has called may use the database
	db.gate.close()
	<-db.gate.empty

	// Deferred, as the client asks Options.Now for the time, which may panic.
	var clientErr error
	defer func() { err = db.closeEngine(clientErr) }()
	clientErr = db.client.Close(context.Background())
	return nil
}

// closeEngine lets go of all that is open, and then of the engine. clientErr is
// what giving numbers back has come to. Nobody is inside the gate.
func (db *DB) closeEngine(clientErr error) error {
	err := errors.Join(clientErr, db.holders.release(ErrClosed), db.settle(context.Background()))
	if errors.Is(err, ErrFailed) && !errors.Is(err, ErrUnknownOutcome) && db.opts.Durability == Synced {
		// The writer that met the failure was told, and nothing that was
		// acknowledged is lost; what matters now is to let go.
		err = nil
	}
	return errors.Join(err, db.engine.Close())
}

// Flush returns when every write that was acknowledged before it is on disk.
// Under Synced durability that holds already, but for the batches of a
// BulkWriter. Concurrent calls, and writes, share the sync.
//
// If ctx ends before, or the disk fails, Flush returns an ErrUnknownOutcome: the
// writes can be read, and a crash may undo them.
func (db *DB) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.enter(); err != nil {
		return err
	}
	defer db.exit()
	if err := db.engine.Sync(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// foldName folds the name of a collection.
func foldName(name string) string { return ids.Fold(name) }

// changeVector returns the text for a version of a document.
func (db *DB) changeVector(node, etag uint64) string { return db.nodes.changeVector(node, etag) }

// origins are the databases behind node numbers. They do not change while the
// database is open.
type origins map[uint64]origin

// changeVector returns the text for a version of a document.
func (all origins) changeVector(node, etag uint64) string {
	o := all[node]
	var scratch [64]byte
	b := append(scratch[:0], o.Tag...)
	b = append(b, ':')
	b = strconv.AppendUint(b, etag, 10)
	b = append(b, '-')
	return string(append(b, o.ID...))
}
