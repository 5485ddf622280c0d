// Package shared lets a database use a store that other processes write to (see
// storage.Engine.Shared).
//
// A database remembers its definitions: the catalog of indexes, the rules of revisions, and the
// settings. Another process may change them at any time. So their store has a version, which the
// transaction that changes one of them raises, and which every transaction reads first. If it is not the
// version that is remembered, the definitions are read anew in that transaction. A transaction
// therefore conflicts with any change of them, and commits only with those of its own moment.
//
// Etags come from the store, too: the transaction reads the last one, and stores the last that it has
// drawn. So they are drawn in the order of the commits of all processes, and none comes twice.
// Transactions that draw etags conflict with each other.
//
// Nothing else of a database may be remembered from one call to the next, unless it cannot be
// wrong: docs/decisions/0105-shared-store.md has the list.
package shared

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Definitions are what a database remembers of one version. They do not change.
type Definitions interface {
	// Publish makes them those that the database uses. It may be called inside a transaction, and
	// must not wait.
	Publish()
}

// Engine is an engine on a shared store, as the parts of one database use it. It is safe for
// concurrent use.
//
// It offers nothing of what an engine may have beyond storage.Engine.
type Engine struct {
	storage.Engine
	least atomic.Uint64 // etags are above it; set by StartSequence

	// Guard, if it is not nil, ends a transaction with its error: that of a process that must not write any more. It is set before the
	// first transaction that it is to guard.
	Guard func(storage.Tx) error

	// read reads the definitions that r shows; nil before Start.
	read    func(r storage.Reader) (Definitions, error)
	known   atomic.Pointer[known] // nil before Start
	publish sync.Mutex            // held while known is replaced
}

// known are the definitions that are remembered.
type known struct {
	version     uint64
	definitions Definitions
}

// New returns the Engine of a store that an engine has open. Until Start it follows no
// definitions.
func New(on storage.Engine) *Engine { return &Engine{Engine: on} }

// Start reads the definitions and publishes them, and follows them from then on. It must be called
// once, before the first call that relies on them; read must return all that Publish publishes.
func (e *Engine) Start(read func(r storage.Reader) (Definitions, error)) error {
	e.read = read
	return e.reload()
}

// The keys that the engine reads and writes itself.
var (
	etagKey    = metaKey(format.EtagName)
	versionKey = metaKey(format.DefinitionsName)
	sessionKey = metaKey(format.SessionName)
)

func metaKey(name string) []byte { return format.AppendKey(nil, format.SpaceMeta, name) }

// Refresh makes sure that what is remembered is not older than the call. Without a change it costs
// one look-up.
func (e *Engine) Refresh() error {
	version, _, err := env.NumberAt(e.Engine, versionKey)
	if err != nil || version <= e.known.Load().version {
		return err
	}
	return e.reload()
}

// rereads is how often reload reads definitions that change meanwhile, before it takes a snapshot.
const rereads = 4

// reload reads the newest definitions, and publishes them unless newer ones are known. They are read without a snapshot, and are of one moment if the version
// is the same afterwards: a snapshot may have to wait for those of others, who may wait for the transaction that reloads.
func (e *Engine) reload() (err error) {
	for range rereads {
		found, err := e.at(e.Engine)
		if err != nil {
			return err
		}
		version, _, err := env.NumberAt(e.Engine, versionKey)
		if err != nil {
			return err
		}
		if version == found.version {
			e.use(found)
			return nil
		}
	}
	snapshot := e.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	found, err := e.at(snapshot)
	if err == nil {
		e.use(found)
	}
	return err
}

// At returns the definitions of a snapshot, without publishing them.
func (e *Engine) At(snapshot storage.Reader) (Definitions, error) {
	found, err := e.at(snapshot)
	if err != nil {
		return nil, err
	}
	return found.definitions, nil
}

// at returns the definitions that r shows: those that are known, or else read from r.
func (e *Engine) at(r storage.Reader) (*known, error) {
	version, _, err := env.NumberAt(r, versionKey)
	if err != nil {
		return nil, err
	}
	if k := e.known.Load(); k != nil && k.version == version {
		return k, nil
	}
	definitions, err := e.read(r)
	return &known{version, definitions}, err
}

// use publishes definitions, unless newer ones are known.
func (e *Engine) use(found *known) {
	e.publish.Lock()
	defer e.publish.Unlock()
	if k := e.known.Load(); k != nil && k.version >= found.version {
		return
	}
	found.definitions.Publish()
	e.known.Store(found)
}

// errMoved is returned by a run of a transaction's function that may have used definitions of another
// moment than its own: it runs again.
var errMoved = errors.New("definitions have changed")

// Update implements storage.Engine. fn finds the definitions of its transaction published, and draws
// the etags of the store.
func (e *Engine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	for {
		changed := false
		err := e.Engine.Update(ctx, sync, func(inner storage.Tx) (err error) {
			tx := &transaction{Tx: inner, engine: e}
			if tx.definitions, err = e.follow(inner); err != nil {
				return err
			}
			if e.Guard != nil {
				if err := e.Guard(inner); err != nil {
					return err
				}
			}
			if err = fn(tx); err == nil {
				err = tx.finish()
			}
			if e.read != nil && e.known.Load().version != tx.definitions {
				// fn may have seen newer ones, which another call has published: neither what it has
				// staged nor its error is of one moment.
				return errMoved
			}
			changed = tx.changes
			return err
		})
		if errors.Is(err, errMoved) {
			continue
		}
		if err == nil && changed && e.read != nil {
			// So that the caller finds its own change published. It is committed: if it cannot be read now, the
			// next call reads it.
			_ = e.Refresh()
		}
		return err
	}
}

// follow makes sure that the definitions of a transaction are published, and returns their version.
//
// What it publishes comes from a snapshot. The transaction itself may see a version that another one has staged with which it shares a commit,
// and which is never committed if that fails: such definitions must not be used by anyone.
func (e *Engine) follow(tx storage.Tx) (version uint64, err error) {
	version, _, err = env.NumberAt(tx, versionKey)
	if err != nil || e.read == nil || e.known.Load().version == version {
		return version, err
	}
	if err := e.reload(); err != nil {
		return 0, err
	}
	if e.known.Load().version != version {
		return 0, errMoved // a change is known that the transaction does not see, or the other way round
	}
	return version, nil
}

// StartSequence implements storage.Engine.
func (e *Engine) StartSequence(n uint64) {
	for {
		least := e.least.Load()
		if n <= least || e.least.CompareAndSwap(least, n) {
			return
		}
	}
}

// transaction is one run of the function of an Update.
type transaction struct {
	storage.Tx
	engine      *Engine
	definitions uint64 // the version that it found
	changes     bool   // it changes definitions
	drawn       bool   // it has drawn an etag
	etag        uint64 // the last that was drawn, by it or before. Valid if drawn.
}

// Sequence implements storage.Tx: it draws the next etag of the store.
func (t *transaction) Sequence() (uint64, error) {
	if !t.drawn {
		last, _, err := env.NumberAt(t.Tx, etagKey)
		if err != nil {
			return 0, err
		}
		t.etag, t.drawn = max(last, t.engine.least.Load()), true
	}
	if t.etag >= math.MaxInt64 {
		return 0, storage.ErrSequenceExhausted
	}
	t.etag++
	return t.etag, nil
}

// Set implements storage.Tx.
func (t *transaction) Set(key, head, tail []byte) {
	t.note(key)
	t.Tx.Set(key, head, tail)
}

// Delete implements storage.Tx.
func (t *transaction) Delete(key []byte) {
	t.note(key)
	t.Tx.Delete(key)
}

// note notes that a key is written.
func (t *transaction) note(key []byte) {
	if len(key) == 0 {
		return
	}
	if key[0] != format.SpaceMeta && key[0] != format.SpaceDefinitions {
		return
	}
	t.changes = t.changes || format.IsDefining(key)
}

// finish stages the etags that were drawn, and a new version of definitions that were changed.
func (t *transaction) finish() error {
	if t.drawn {
		t.Tx.Set(etagKey, binary.BigEndian.AppendUint64(nil, t.etag), nil)
	}
	if t.changes {
		if t.definitions == math.MaxUint64 {
			return storage.ErrSequenceExhausted
		}
		t.Tx.Set(versionKey, binary.BigEndian.AppendUint64(nil, t.definitions+1), nil)
	}
	return nil
}
