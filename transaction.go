package jay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/storage"
)

// transact runs fn in a transaction, which may run it more than once, reserves the
// etags that it needs, and records the reservations that the commit made durable.
//
// A refusal, an error of fn, is returned when everything that it may depend on is
// on disk. For errors after which the caller runs the transaction again, waiting is
// left to the caller.
func (db *DB) transact(ctx context.Context, sync bool, fn func(*transaction) error) error {
	t := transactions.Get().(*transaction)
	defer transactions.Put(t)
	defer func() { *t = transaction{key: t.key, value: t.value} }()
	for {
		t.changing = nil
		err := db.env.Engine.Update(ctx, sync, func(tx storage.Tx) error {
			*t = transaction{Txn: counters.Txn{Reserved: db.reserved, Tx: tx}, db: db, changing: t.changing, key: t.key, value: t.value}
			err := fn(t)
			if t.changing != nil {
				tx.OnDecided(t.changing)
			}
			return err
		})
		if err == nil {
			db.reserved.Durable(t.Raised)
			return nil
		}
		if errors.Is(err, ErrUnknownOutcome) {
			return err // the engine may still be running it
		}
		t.changing.Decided()
		if errors.Is(err, errIndexesChanged) {
			db.extractAgain(t.ops)
			continue
		}
		if errors.Is(err, counters.ErrReserve) {
			if err := db.reserved.ReserveEtags(ctx, t.Needed+t.hint); err != nil {
				return fmt.Errorf("reserve etags: %w", err)
			}
			continue
		}
		if isRetried(err) {
			return err
		}
		return db.settleRefusal(ctx, err)
	}
}

// isRetried reports whether the transaction that ended with err runs again, in
// another way.
func isRetried(err error) bool {
	_, lost := err.(lostError)
	return lost || errors.Is(err, errIDInUse) || errors.Is(err, errOvertaken) || errors.Is(err, errStale)
}

// settleRefusal returns err, a refusal, when everything that it may depend on is on
// disk. If that fails, the error is also an ErrUnknownOutcome.
func (db *DB) settleRefusal(ctx context.Context, err error) error {
	if !db.env.Synced || errors.Is(err, ErrFailed) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	if unsure := db.env.Engine.Sync(ctx); unsure != nil {
		return fmt.Errorf("%w: %w", unsure, err)
	}
	return err
}

// changes are the documents that a transaction keeps out of the cache, until no
// reader can read an older version.
type changes struct {
	cache  *docs.Cache
	hashes []uint64
	first  [4]uint64 // room for hashes
	ended  atomic.Bool
}

// Decided implements storage.Decider. Only the first call has an effect.
func (c *changes) Decided() {
	if c != nil && c.ended.CompareAndSwap(false, true) {
		c.cache.End(c.hashes)
	}
}

// transactions are kept for their scratch memory.
var transactions = sync.Pool{New: func() any { return new(transaction) }}

// transaction stages ops. It lives for one run of one transaction.
type transaction struct {
	counters.Txn
	db       *DB
	catalog  *catalog.Catalog // see indexes
	ops      []*op            // that run was given
	entered  int              // bytes of bodies whose entries were extracted in the transaction
	ahead    *prefetched      // what was read before
	hint     uint64           // etags that will be needed in addition
	patched  int              // bytes of bodies that patches have made
	here     int              // patches that were made in this run
	changing *changes         // of this run, and of those before it in one Update; nil for none
	flags    map[uint32]byte  // of indexes, as far as they are known
	key      []byte           // scratch
	value    []byte           // scratch
}

// errIndexesChanged ends a transaction whose ops have entries for other indexes
// than the current ones.
var errIndexesChanged = errors.New("the indexes have changed since the entries were extracted")

// extractAgain extracts the entries of ops for the current indexes, outside the
// transaction. It is needed whenever indexes change.
func (db *DB) extractAgain(ops []*op) {
	for _, o := range ops {
		if o.verb == verbPatch {
			if g := &o.patching.guess; g.body != nil && g.indexed != db.indexes.Load().Of(g.folded) {
				g.extract(db)
			}
			if o = o.patching.insert; o == nil {
				continue
			}
		}
		if ci := db.indexes.Load().Of(o.foldedCollection); o.verb != verbDelete && ci != o.indexed {
			o.extract(ci)
		}
	}
}
