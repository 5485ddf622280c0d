package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/storage"
)

// ErrOvertaken means that another client changed the document between reading and
// writing it.
var ErrOvertaken = errors.New("another client was quicker")

// Version returns the version of a document that a transaction commits on.
func (t *Txn) Version(folded string) (Version, error) {
	t.key = format.DocumentKey(t.key[:0], folded)
	return versionAt(t.Tx, t.key)
}

// Transact runs fn in a transaction, which may run it more than once, reserves the
// etags that it needs, and records the reservations that the commit made durable.
//
// A refusal, an error of fn, is returned when everything that it may depend on is
// on disk. For errors after which the caller runs the transaction again, waiting is
// left to the caller.
func (w *Writer) Transact(ctx context.Context, sync bool, fn func(*Txn) error) error {
	return w.transact(ctx, transacting{sync: sync, waits: true}, fn)
}

// Load is Transact for bulk writers, and for commits that others wait for: it is not slowed down by the work of indexes in the background.
func (w *Writer) Load(ctx context.Context, sync bool, fn func(*Txn) error) error {
	return w.transact(ctx, transacting{sync: sync}, fn)
}

// Background is Transact for workers: it does not call the user's clock, and so no
// document counts as expired.
func (w *Writer) Background(ctx context.Context, sync bool, fn func(*Txn) error) error {
	return w.transact(ctx, transacting{sync: sync, background: true}, fn)
}

// transacting is how a transaction is run.
type transacting struct {
	sync       bool // it waits for the disk
	background bool // see Background
	waits      bool // and for the work of indexes in the background, if that has become too much
}

func (w *Writer) transact(ctx context.Context, how transacting, fn func(*Txn) error) error {
	t := transactions.Get().(*Txn)
	defer transactions.Put(t)
	defer func() {
		clear(t.counts)
		*t = Txn{key: t.key, value: t.value, counts: t.counts[:0], heads: t.heads.idle()}
	}()
	w.Env.Room.Look()
	for {
		t.changing = nil
		var moment time.Time
		if !how.background {
			moment = w.Docs.Moment()
		}
		err := w.Env.Engine.Update(ctx, how.sync, func(tx storage.Tx) error {
			*t = Txn{Txn: counters.Txn{Reserved: w.Reserved, Tx: tx}, Writer: w, moment: moment, noted: t.noted, changing: t.changing, key: t.key, value: t.value, counts: t.counts[:0], heads: t.heads.empty()}
			err := fn(t)
			if err == nil {
				t.stageCounts()
				t.noteTimes()
			}
			if t.changing != nil {
				tx.OnDecided(t.changing)
			}
			return err
		})
		if err == nil {
			t.heads.enter(w.Heads)
			w.Reserved.Durable(t.Raised)
			if t.deletions > 0 {
				w.Horizon.Committed(t.deletions)
			}
			if t.exchanged > 0 {
				w.Reserved.Exchanged(t.exchanged)
			}
			if t.left {
				w.Attachments.Wake()
			}
			for _, o := range t.warned {
				o.warn(w)
			}
			if t.unsettled && w.Unsettled != nil {
				throttled := t.throttled
				if !how.waits {
					throttled = 0
				}
				w.Unsettled(ctx, throttled)
			}
			t.endTimes()
			return nil
		}
		if errors.Is(err, storage.ErrUnknownOutcome) {
			if !t.noted.IsZero() {
				w.Agenda.Wake() // and what is noted stays: it may be committed at any time
			}
			return err // the engine may still be running it
		}
		t.endTimes()
		t.changing.Decided()
		if errors.Is(err, errInTheWay) {
			if err := w.clear(ctx, t.inTheWay, moment); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, ErrLocked) && t.lockedBy != nil {
			if err := w.awaitLock(ctx, t.lockedBy); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, errIndexesChanged) {
			w.extractAgain(t.ops)
			continue
		}
		if errors.Is(err, errRulesChanged) {
			w.fitAgain(t.ops)
			continue
		}
		if errors.Is(err, counters.ErrReserve) {
			if err := w.Reserved.ReserveEtags(ctx, t.Needed+t.hint); err != nil {
				return fmt.Errorf("reserve etags: %w", err)
			}
			continue
		}
		if isRetried(err) {
			return err
		}
		return w.RefuseDurably(ctx, err)
	}
}

// isRetried reports whether the transaction that ended with err runs again, in
// another way.
func isRetried(err error) bool {
	_, lost := err.(LostError)
	return lost || errors.Is(err, errIDInUse) || errors.Is(err, ErrOvertaken) || errors.Is(err, ErrStale) || errors.Is(err, errChecked)
}

// RefuseDurably returns err, a refusal, when everything that it may depend on is on
// disk. If that fails, the error is also an ErrUnknownOutcome. A store that is out of reach has said nothing that it could depend on.
func (w *Writer) RefuseDurably(ctx context.Context, err error) error {
	if !w.Env.Synced || errors.Is(err, storage.ErrFailed) || errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	if unsure := w.Env.Engine.Sync(ctx); unsure != nil {
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
var transactions = sync.Pool{New: func() any { return new(Txn) }}

// Txn stages ops. It lives for one run of one transaction.
type Txn struct {
	counters.Txn
	Writer      *Writer
	catalog     *catalog.Catalog           // see indexes
	ops         []*Op                      // that run was given
	entered     int                        // bytes of bodies whose entries were extracted in the transaction
	prefetched  *Prefetched                // what was read before
	hint        uint64                     // etags that will be needed in addition
	patched     int                        // bytes of bodies that patches have made
	here        int                        // patches that were made in this run
	changing    *changes                   // of this run, and of those before it in one Update; nil for none
	flags       map[uint32]byte            // of indexes, as far as they are known
	references  map[string]map[string]bool // that the transaction stages, by the prefix of their keys and who refers: whether they are there then
	heads       newHeads                   // of the documents that the run writes
	counts      []counted                  // changes of numbers that are not staged yet
	deletions   uint64                     // documents that the run deletes
	counting    *counts.State              // as the run sees it; nil until it is read
	exchanged   uint64                     // the newest index that the run gives to a compare-exchange value
	unsettled   bool                       // indexes with work in the background were written
	throttled   int                        // documents in those whose work has become too much
	left        bool                       // streams of attachments are left to be removed
	rulesOf     *revisions.Rules           // see rules
	rulesRead   bool
	schemasOf   *schemas.Rules // see schemas
	schemasRead bool
	warned      []*Op  // that violate a rule which warns
	kept        int    // bytes of versions that have become revisions
	key         []byte // scratch
	value       []byte // scratch

	owner    *lock    // whose documents the run writes; nil for none
	lockedBy *lock    // with ErrLocked
	claiming bool     // claims are wanted
	claims   []string // keys of entries of unique indexes that the run stages
	applying bool     // the run writes what was checked and is committed

	moment   time.Time    // at which documents count as expired; zero if they never do
	inTheWay []format.Due // of documents that have expired
	due      time.Time    // the earliest that the run has staged; zero for nothing
	noted    time.Time    // in the agenda, of this run or one before it; zero for nothing
}

// errIndexesChanged ends a transaction whose ops have entries for other indexes
// than the current ones.
var errIndexesChanged = errors.New("the indexes have changed since the entries were extracted")

// errRulesChanged ends a transaction whose ops were checked against other rules than the current ones.
var errRulesChanged = errors.New("the schemas have changed since the documents were checked")

// fitAgain checks ops against the current rules, outside the transaction.
func (w *Writer) fitAgain(ops []*Op) {
	for _, o := range ops {
		if o.Verb.Edits() {
			if g := &o.Patching.Guess; g.Body != nil && g.rule != w.Schemas.Load().Of(g.folded) {
				g.fit(w)
			}
			if o = o.Patching.Insert; o == nil {
				continue
			}
		}
		if o.Verb.GivesBody() && o.rule != w.Schemas.Load().Of(o.FoldedCollection) {
			o.fit(w)
		}
	}
}

// extractAgain extracts the entries of ops for the current indexes, outside the
// transaction. It is needed whenever indexes change.
func (w *Writer) extractAgain(ops []*Op) {
	for _, o := range ops {
		if o.Verb.Edits() {
			if g := &o.Patching.Guess; g.Body != nil && g.indexed != w.Indexes.Load().Of(g.folded) {
				g.extract(w, o.Timing != nil)
			}
			if o = o.Patching.Insert; o == nil {
				continue
			}
		}
		if ci := w.Indexes.Load().Of(o.FoldedCollection); o.Verb.GivesBody() && ci != o.indexed {
			o.extract(ci)
		}
	}
}

// LostError marks a conflict found by the commit: the function may run again.
type LostError struct {
	Cause  error
	Over   turns.Key
	Writes []turns.Key // what the run would have written
}

func (e LostError) Error() string { return e.Cause.Error() }

func (e LostError) Unwrap() error { return e.Cause }

// counted is by how much a run of a transaction changes the numbers at a key: those of
// documents, revisions or times. Only the first two are used.
type counted struct {
	what       countedThing
	collection string // folded; "" for times
	deltas     [2]int64
}

// countedThing is what numbers count.
type countedThing uint8

const (
	countedDocuments countedThing = iota // documents and bytes of a collection: format.Tally
	countedRevisions                     // of a collection
	countedTimes                         // of all documents: format.TimesTally
)

// maxCounted is the number of keys up to which a list is searched.
const maxCounted = 16

// count notes that the run makes documents of a collection, or deletes them, and how many
// bytes more the collection has then.
func (t *Txn) count(foldedCollection, foldedID string, documents, bytes int64) error {
	if !t.Writer.Counts.IsReady() {
		if t.counting == nil {
			state, err := t.Writer.Counts.State(t.Tx)
			if err != nil {
				return err
			}
			t.counting = &state
		}
		coversDocument, coversBytes := t.counting.Of(foldedID)
		if !coversDocument { // the count will come to it
			documents = 0
		}
		if !coversBytes {
			bytes = 0
		}
	}
	t.addCount(countedDocuments, foldedCollection, [2]int64{documents, bytes})
	return nil
}

// countRevisions notes that the run makes revisions of a collection, or removes them.
func (t *Txn) countRevisions(foldedCollection string, delta int64) {
	t.addCount(countedRevisions, foldedCollection, [2]int64{delta})
}

// countTime notes that the run makes entries of what is due, or removes them.
func (t *Txn) countTime(kind byte, delta int64) {
	deltas := [2]int64{delta, 0}
	if kind == format.DueRefresh {
		deltas = [2]int64{0, delta}
	}
	t.addCount(countedTimes, "", deltas)
}

func (t *Txn) addCount(what countedThing, foldedCollection string, deltas [2]int64) {
	if deltas == [2]int64{} {
		return
	}
	for i := range t.counts {
		if c := &t.counts[i]; c.what == what && c.collection == foldedCollection {
			c.deltas[0] += deltas[0]
			c.deltas[1] += deltas[1]
			return
		}
	}
	if len(t.counts) == maxCounted {
		t.stageCounts()
	}
	t.counts = append(t.counts, counted{what, foldedCollection, deltas})
}

// stageCounts stages what was counted.
func (t *Txn) stageCounts() {
	for i := range t.counts {
		c := &t.counts[i]
		if c.deltas == [2]int64{} {
			continue
		}
		deltas := c.deltas[:]
		switch c.what {
		case countedDocuments:
			t.key = format.CountKey(t.key[:0], c.collection)
		case countedRevisions:
			t.key, deltas = format.RevisionCountKey(t.key[:0], c.collection), deltas[:1]
		case countedTimes:
			t.key = format.AppendTimesTallyKey(t.key[:0])
		}
		t.Tx.Add(t.key, deltas...)
	}
	clear(t.counts) // it outlives the transaction
	t.counts = t.counts[:0]
}
