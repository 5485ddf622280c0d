package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// A commit of compare-exchange values that the coordinator of a cluster has, with
// documents, takes four steps. (1) Its documents are checked and locked: everything that a
// transaction would refuse is refused here, and nothing that other writes do can make it
// be refused later. (2) It is stored as an intent, synced. (3) The coordinator commits the
// values, if they are as expected. (4) The documents are written, the result is
// kept if there is a request ID, and the intent goes, in one transaction. After a crash, Open
// finds the intent, asks the coordinator what became of the commit, and does step 4 or drops the
// intent. Without documents and a request ID there is step 3 only.

// IsClusterWide reports whether the coordinator takes part in the commit of ops.
func (w *Writer) IsClusterWide(ops []*Op) bool {
	return w.Cluster != nil && slices.ContainsFunc(ops, func(o *Op) bool { return o.Exchanging != nil || o.Guard != nil })
}

// clusterCommit is one such commit under way.
type clusterCommit struct {
	w     *Writer
	ops   []*Op
	docs  []*Op // those of ops that write documents
	reads Reads

	conditions []accord.Condition
	blamed     []*Op // by condition; nil for what was read
	changes    []accord.Change

	once   *Once  // nil without a request ID
	lock   *lock  // nil without documents
	intent uint64 // its number; 0 for none
	commit *accord.Commit
	in     format.Intent // names commit
	left   *Undecided    // what the caller has left to endAlone

	leave  *func() // of the caller: lets the next call with the request ID begin
	leaves func()  // what the caller has left to endAlone
}

// Reads are what a transaction has read.
type Reads struct {
	Indexes   map[string]uint64 // of values, by folded key; 0 for none
	Documents []string          // folded IDs
	Check     func(*Txn) error  // compares the documents and ranges; nil for nothing
}

// CommitClusterWide commits ops, if what was read has not changed.
func (w *Writer) CommitClusterWide(ctx context.Context, ops []*Op, reads Reads) error {
	ctx, cancel := w.Cluster.Bounded(ctx)
	defer cancel()
	leave := func() {}
	defer func() { leave() }()
	if once := ops[0].Once; once != nil { // the later of two at a time would lose against the values of the earlier
		var err error
		if leave, err = w.calls.enter(ctx, w.Cluster, once.Request.ID); err != nil {
			return err
		}
	}
	for {
		err := w.commitClusterWide(ctx, ops, reads, &leave)
		var moved *movedError
		again := errors.Is(err, accord.ErrSlotLost) || errors.As(err, &moved)
		if !again || errors.Is(err, accord.ErrUndecidable) || ctx.Err() != nil {
			return err
		}
		// It has not happened. A copy of the database has run, which does not stop this one, or a guard that
		// may have any index got another one between the read and the commit.
	}
}

// AwaitRequest waits until no call with this request ID commits with the coordinator.
func (w *Writer) AwaitRequest(ctx context.Context, id string) error {
	if w.Cluster == nil {
		return nil
	}
	ctx, cancel := w.Cluster.Bounded(ctx)
	defer cancel()
	leave, err := w.calls.enter(ctx, w.Cluster, id)
	leave()
	return err
}

// calls are those with a request ID that commit with the coordinator at the moment, one of each ID.
// The zero value is none. It is safe for concurrent use.
type calls struct {
	mu    sync.Mutex
	under map[string]chan struct{} // by ID: closed when the call has ended. Guarded by mu.
}

// enter waits until no call of this ID is under way, and begins one. The caller must call leave at its end.
func (c *calls) enter(ctx context.Context, n *accord.Node, id string) (leave func(), err error) {
	for {
		c.mu.Lock()
		other := c.under[id]
		if other == nil {
			defer c.mu.Unlock()
			return c.begin(id), nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return func() {}, fmt.Errorf("a call with the same request ID is not decided yet: %w: %w", cluster.ErrNoMajority, ctx.Err())
		case <-n.Context().Done():
			return func() {}, errs.ErrClosed
		}
	}
}

// begin begins the call of this ID. c.mu is held.
func (c *calls) begin(id string) (leave func()) {
	if c.under == nil {
		c.under = make(map[string]chan struct{})
	}
	mine := make(chan struct{})
	c.under[id] = mine
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.under, id)
		close(mine)
	}
}

// resume is begin for a call that an earlier run has begun. No other is under way.
func (c *calls) resume(r *format.IntentRequest) (leave func()) {
	if r == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin(r.ID)
}

func (w *Writer) commitClusterWide(ctx context.Context, ops []*Op, reads Reads, leave *func()) error {
	c := &clusterCommit{w: w, ops: ops, reads: reads, once: ops[0].Once, leave: leave}
	for _, o := range ops {
		if o.Exchanging == nil {
			if err := o.checkClusterWide(); err != nil {
				return OpError(ops, o, err)
			}
			c.docs = append(c.docs, o)
		}
	}
	if err := c.checkDocuments(ctx); err != nil {
		return accord.WithoutOutcome(err)
	}
	if err := c.prepare(ctx); err != nil {
		c.abandon()
		return accord.WithoutOutcome(err) // that of a preparation: the commit was not sent
	}
	return c.run(ctx)
}

// checkClusterWide refuses writes that cannot be kept as an intent.
func (o *Op) checkClusterWide() error {
	switch {
	case !o.Verb.Overwrites() || o.Attaching != nil:
		return fmt.Errorf("%w: in a cluster, a commit with compare-exchange values puts and deletes documents; it cannot %s one", ids.ErrUsage, o.Verb)
	case o.Strategy.FromEtag():
		return fmt.Errorf("%w: in a cluster, a commit with compare-exchange values makes no %s ids", ids.ErrUsage, o.Strategy)
	}
	return nil
}

// errChecked ends the transaction that only checks.
var errChecked = errors.New("everything is in order")

// checkDocuments checks and locks the documents.
func (c *clusterCommit) checkDocuments(ctx context.Context) error {
	check := c.reads.Check
	if len(c.docs) == 0 && check == nil && c.once == nil {
		return nil
	}
	err := c.w.Transact(ctx, false, func(t *Txn) error {
		if c.lock != nil { // of an earlier run of this function
			c.w.locks.release(c.lock)
			c.lock = nil
		}
		if c.once != nil { // before the reads: the call may have changed them
			if err := c.once.Request.Find(t.Tx); err != nil {
				return err
			}
		}
		if check != nil {
			if err := check(t); err != nil {
				return err
			}
		}
		var locked []lockedDocument
		for _, o := range c.docs {
			collection, err := lockedCollection(t.Tx, o)
			if err != nil {
				return err
			}
			locked = append(locked, lockedDocument{o.FoldedID, collection})
		}
		t.claiming = true
		if err := t.run(c.docs); err != nil {
			return err
		}
		if c.once != nil {
			if err := c.once.checkSize(c.w.Env); err != nil {
				return err
			}
		}
		if len(c.docs)+len(c.reads.Documents) > 0 {
			c.lock = newLock()
			c.lock.unique, c.lock.read = t.claims, c.reads.Documents
			for i, o := range c.docs {
				if !o.Verb.Deletes() {
					locked[i] = lockedDocument{o.FoldedID, format.CollectionKey(o.collectionOf())} // the ID may be made only now
				}
			}
			c.lock.docs = locked
			c.lock.values = c.changedValues()
			c.w.locks.take(c.lock)
		}
		return errChecked
	})
	if err != errChecked && c.lock != nil {
		c.w.locks.release(c.lock)
		c.lock = nil
	}
	if err == errChecked {
		return nil
	}
	return err
}

// lockedCollection returns the folded collection of the document that o deletes: whoever walks through it must wait. It
// returns "" for other ops.
func lockedCollection(from docs.Getter, o *Op) (string, error) {
	if !o.Verb.Deletes() {
		return "", nil
	}
	record, closer, err := from.Get(format.DocumentKey(nil, o.FoldedID))
	if err == storage.ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	h, _, err := metadata.Decode(record)
	key := format.CollectionKey(string(h.Collection))
	return key, errs.First(err, closer.Close())
}

// changedValues returns the folded keys of the values that the commit changes.
func (c *clusterCommit) changedValues() (folded []string) {
	for _, o := range c.ops {
		switch {
		case o.Exchanging != nil:
			folded = append(folded, o.Exchanging.Folded)
		case o.Guard != nil:
			folded = append(folded, GuardKey(o.FoldedID))
		}
	}
	slices.Sort(folded)
	return slices.Compact(folded)
}

// abandon gives up what was prepared. The coordinator has not committed it.
func (c *clusterCommit) abandon() {
	if c.commit != nil {
		c.commit.End()
		c.commit = nil
	}
	if c.lock != nil {
		c.w.locks.release(c.lock)
		c.lock = nil
	}
}

// prepare decides what the coordinator compares and changes, and stores the intent.
func (c *clusterCommit) prepare(ctx context.Context) (err error) {
	if err := c.plan(ctx); err != nil {
		return err
	}
	if c.commit, err = c.w.Cluster.Begin(ctx, c.conditions, c.changes); err != nil {
		return err
	}
	if c.in = c.commit.Intent(); len(c.docs) == 0 && c.once == nil {
		return nil
	}
	return c.storeIntent(ctx)
}

// plan makes the conditions and changes. A key that is changed twice is compared once, and
// gets the last value.
func (c *clusterCommit) plan(ctx context.Context) error {
	any, err := c.readAny(ctx)
	if err != nil {
		return err
	}
	changed := make(map[string]int)
	for _, o := range c.ops {
		folded, key, expected, compared := "", o.RequestID, uint64(0), o.Compared
		var change accord.Change
		switch {
		case o.Exchanging != nil:
			folded, expected = o.Exchanging.Folded, o.Exchanging.Index
			change = accord.Change{Folded: folded, Key: key, Delete: o.Exchanging.Delete, Value: o.JSON, Custom: o.Header.Custom}
		case o.Guard != nil:
			folded, key, expected = GuardKey(o.FoldedID), format.GuardPrefix+o.ID, o.Guard.Index
			if o.Guard.Any {
				expected, compared = any[folded], false
			}
			change = accord.Change{Folded: folded, Key: key, Delete: o.Verb.Deletes()}
			if change.Value, err = json.Marshal(struct{ Id string }{o.ID}); err != nil {
				return err
			}
		default:
			continue
		}
		if at, again := changed[folded]; again {
			if !compared && !(o.Guard != nil && o.Guard.Any) && (expected != 0 || !c.changes[at].Delete) {
				return OpError(c.ops, o, &metadata.CompareExchangeError{Key: key, Expected: expected})
			}
			c.changes[at] = change
			continue
		}
		changed[folded] = len(c.changes)
		c.changes = append(c.changes, change)
		if index, read := c.reads.Indexes[folded]; read && compared {
			expected = index
		}
		c.conditions, c.blamed = append(c.conditions, accord.Condition{Folded: folded, Index: expected}), append(c.blamed, o)
	}
	for folded, index := range c.reads.Indexes {
		if _, is := changed[folded]; !is {
			c.conditions, c.blamed = append(c.conditions, accord.Condition{Folded: folded, Index: index}), append(c.blamed, nil)
		}
	}
	return nil
}

// readAny reads the indexes of the guards that may have any.
func (c *clusterCommit) readAny(ctx context.Context) (map[string]uint64, error) {
	var folded []string
	for _, o := range c.ops {
		if o.Guard != nil && o.Guard.Any {
			folded = append(folded, GuardKey(o.FoldedID))
		}
	}
	if len(folded) == 0 {
		return nil, nil
	}
	found, err := c.w.Cluster.Get(ctx, folded...)
	if err != nil {
		return nil, err
	}
	indexes := make(map[string]uint64, len(folded))
	for i, v := range found {
		if v != nil {
			indexes[folded[i]] = v.Index
		}
	}
	return indexes, nil
}

// storeIntent stores the writes of the documents, and the request ID.
func (c *clusterCommit) storeIntent(ctx context.Context) error {
	c.intent = c.w.intents.Add(1)
	c.in.Writes, c.in.Values = len(c.docs), c.changedValues()
	if c.once != nil {
		c.in.Request = c.once.intentRequest(c.docs)
	}
	size := 0
	for i, o := range c.docs {
		if o.KeepRevision {
			c.in.KeepRevision = append(c.in.KeepRevision, i)
		}
		if o.KeepReplaced {
			c.in.KeepReplaced = append(c.in.KeepReplaced, i)
		}
		size += len(o.JSON) + len(o.Tail) + len(o.FoldedID) + 64
	}
	if err := c.w.Env.Room.Spend(size); err != nil {
		return err
	}
	err := c.w.Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		for i, o := range c.docs {
			kind := byte(format.IntentPut)
			if o.Verb.Deletes() {
				kind = format.IntentDelete
			}
			head := format.AppendIntentWrite(nil, kind, o.FoldedID)
			var body []byte
			if kind == format.IntentPut {
				head = append(o.Header.AppendHead(head), o.Tail...)
				body = o.JSON
			}
			tx.Set(format.IntentWriteKey(c.intent, i), head, body)
		}
		return env.SetJSON(tx, format.IntentKey(c.intent), c.in)
	})
	if err != nil {
		// If it is there all the same, the next Open finds that the coordinator has not
		// committed it.
		return err
	}
	return nil
}

// run has the coordinator commit, and ends the commit as that decides.
func (c *clusterCommit) run(ctx context.Context) error {
	index, actual, err := c.commit.Try(ctx)
	if errors.Is(err, cluster.ErrUnknownOutcome) && !errors.Is(err, accord.ErrUndecidable) {
		if index, actual, err = c.await(ctx); errors.Is(err, cluster.ErrUnknownOutcome) && !errors.Is(err, accord.ErrUndecidable) {
			if c.left == nil { // the database is being closed: the next Open decides
				return &undecidedError{err, c.undecided()}
			}
			return err
		}
	}
	if errors.Is(err, accord.ErrUndecidable) {
		u := c.undecided()
		c.giveUp(err)
		u.end(Decision{}, err)
		return &undecidedError{err, u}
	}
	return c.end(ctx, index, actual, err)
}

// giveUp ends a commit that this process cannot decide. The intent stays, and its documents
// stay locked: the next Open decides. Who meets the lock is refused at once.
func (c *clusterCommit) giveUp(err error) {
	c.commit.Keep()
	if c.lock != nil {
		c.w.locks.fail(c.lock, accord.WithoutOutcome(err))
	}
}

// outcome is what the coordinator has decided.
type outcome struct {
	index  uint64
	actual []*exchange.Value
	err    error
}

// await waits until it is known what became of the commit. If ctx ends first, it is brought to
// its end in the background.
func (c *clusterCommit) await(ctx context.Context) (uint64, []*exchange.Value, error) {
	var mu sync.Mutex
	left := false
	decided := make(chan outcome, 1)
	c.w.Cluster.Go(func() {
		var o outcome
		o.index, o.actual, o.err = c.commit.Decide()
		mu.Lock()
		defer mu.Unlock()
		if !left {
			decided <- o
			return
		}
		c.endAlone(o)
	})
	var cause error
	select {
	case o := <-decided:
		return o.index, o.actual, o.err
	case <-ctx.Done():
		cause = ctx.Err()
	case <-c.w.Cluster.Context().Done():
		cause = errs.ErrClosed
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case o := <-decided:
		return o.index, o.actual, o.err
	default:
	}
	left, c.left = true, c.undecided()
	*c.leave, c.leaves = func() {}, *c.leave // a repeated call waits until this one is decided, and returns its result
	err := fmt.Errorf("the coordinator of the cluster has not answered: %w: %w", cluster.ErrUnknownOutcome, cause)
	return 0, nil, &undecidedError{err, c.left}
}

// end ends a commit that is decided.
func (c *clusterCommit) end(ctx context.Context, index uint64, actual []*exchange.Value, err error) error {
	if index == 0 {
		if err == nil {
			err = c.conflict(actual)
		}
		c.dropIntent()
		c.abandon()
		return err
	}
	for _, o := range c.ops {
		switch {
		case o.Exchanging != nil && o.Exchanging.Delete:
			o.Outcome, o.Header.Etag = Absent, 0
		case o.Exchanging != nil:
			o.Outcome, o.Header.Etag = Present, index
		case o.Guard != nil:
			o.guardIndex = index
		}
	}
	if c.intent == 0 {
		c.abandon()
		return nil
	}
	// It is committed: the context does not matter any more, nor does a document that expires meanwhile. The
	// intent goes for good, as the next commit may use its slot, after which nothing shows what became of this one.
	err = c.w.Background(context.WithoutCancel(ctx), true, c.apply)
	if err != nil {
		// The disk has failed, or what was checked does not hold. The intent stays, and
		// its documents stay locked: the next Open writes them.
		c.commit.Keep()
		c.w.locks.fail(c.lock, errFollows(err))
		u := c.undecided()
		u.end(Decision{}, errFollows(err))
		return &undecidedError{fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, errFollows(err)), u}
	}
	c.commit.End()
	if c.lock != nil {
		c.w.locks.release(c.lock)
	}
	return nil
}

// errFollows is the error of documents that could not be written, though the coordinator has
// committed their values.
func errFollows(cause error) error {
	return fmt.Errorf("%w: the coordinator of the cluster has committed the values, and the documents follow when the database is opened again: %v", storage.ErrFailed, cause)
}

// apply writes the documents, and removes the intent.
func (c *clusterCommit) apply(t *Txn) error {
	t.owner, t.applying = c.lock, true
	if err := t.run(c.docs); err != nil {
		return err
	}
	removeIntent(t.Tx, c.intent, len(c.docs))
	if c.once != nil {
		return c.once.keep(c.w.Env, t.Tx)
	}
	return nil
}

// conflict returns the error of a commit whose conditions do not hold.
func (c *clusterCommit) conflict(actual []*exchange.Value) error {
	for i, v := range actual {
		expected, now := c.conditions[i], uint64(0)
		if v != nil {
			now = v.Index
		}
		if now == expected.Index {
			continue
		}
		o := c.blamed[i]
		if o == nil || o.Compared {
			conflict := &metadata.CompareExchangeError{Key: expected.Folded, Expected: expected.Index, Actual: now}
			return LostError{Cause: conflict, Over: turns.Document(ExchangeTurn(expected.Folded))}
		}
		conflict := &metadata.CompareExchangeError{Key: o.RequestID, Expected: expected.Index, Actual: now}
		if o.Guard != nil {
			conflict.Key = format.GuardPrefix + o.ID
			if o.Guard.Any {
				return &movedError{OpError(c.ops, o, conflict)}
			}
		} else if v != nil {
			conflict.Value, conflict.Metadata = v.Value, v.Metadata
		}
		return OpError(c.ops, o, conflict)
	}
	return fmt.Errorf("%w: the commit was given up, as its answer was lost", cluster.ErrNoMajority)
}

// movedError is the conflict over a guard that may have any index.
type movedError struct{ error }

func (e *movedError) Unwrap() error { return e.error }

// dropIntent removes the intent of a commit that has not happened.
func (c *clusterCommit) dropIntent() {
	if c.intent == 0 {
		return
	}
	// If that fails, the next Open drops it.
	_ = c.w.Env.Engine.Update(context.Background(), false, func(tx storage.Tx) error {
		removeIntent(tx, c.intent, len(c.docs))
		return nil
	})
}

func removeIntent(tx storage.Tx, number uint64, writes int) {
	tx.Delete(format.IntentKey(number))
	for i := range writes {
		tx.Delete(format.IntentWriteKey(number, i))
	}
}

// endAlone ends a commit whose caller has left: its ops are not looked at, as they belong
// to the caller again.
func (c *clusterCommit) endAlone(o outcome) {
	defer c.leaves()
	if errors.Is(o.err, accord.ErrUndecidable) {
		c.giveUp(o.err)
		c.left.end(Decision{}, o.err)
		return
	}
	if o.err != nil && errors.Is(o.err, cluster.ErrUnknownOutcome) {
		return // the database is being closed: the next Open decides
	}
	d := Decision{Index: o.index}
	if c.intent != 0 {
		var err error
		if d, err = c.w.finishIntent(context.Background(), c.intent, &c.in, c.lock, o.index); err != nil {
			warn(c.w.Env.Logger, "jay: documents of a cluster-wide transaction", err)
			c.commit.Keep()
			c.w.locks.fail(c.lock, errFollows(err))
			c.left.end(Decision{}, errFollows(err))
			return // they stay locked: the next Open writes them
		}
	}
	c.abandon()
	c.left.end(d, nil)
}

func warn(l *slog.Logger, message string, err error) {
	if l != nil {
		l.Warn(message, "err", err)
	}
}

// finishIntent writes the documents of an intent and keeps the result of its request, if its
// commit has happened, and removes it. index is that of the values, 0 if it has not happened.
func (w *Writer) finishIntent(ctx context.Context, number uint64, in *format.Intent, owner *lock, index uint64) (Decision, error) {
	ops, err := w.readIntent(number, in)
	if err != nil {
		return Decision{}, err
	}
	err = w.Background(ctx, true, func(t *Txn) error {
		t.owner, t.applying = owner, true
		removeIntent(t.Tx, number, len(ops))
		if index == 0 {
			return nil
		}
		if err := t.run(ops); err != nil || in.Request == nil {
			return err
		}
		return keepIntended(w.Env, t.Tx, in.Request, ops, index)
	})
	d := Decision{Index: index}
	if index > 0 {
		for _, o := range ops {
			d.Writes = append(d.Writes, o.Header)
		}
	}
	return d, err
}

// readIntent returns the writes of an intent.
func (w *Writer) readIntent(number uint64, in *format.Intent) (ops []*Op, err error) {
	lo, hi := format.IntentWriteBounds(number)
	it, err := w.Env.Engine.Iterate(lo, hi)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		kind, folded, record, err := format.DecodeIntentWrite(it.Value())
		if err != nil {
			return nil, err
		}
		o := &Op{Request: Request{Verb: Put, RequestID: folded, Named: true, KeepRevision: slices.Contains(in.KeepRevision, len(ops)), KeepReplaced: slices.Contains(in.KeepReplaced, len(ops))}, Prepared: Prepared{Strategy: ids.Semantic, ID: folded, FoldedID: folded}}
		ops = append(ops, o)
		if kind == format.IntentDelete {
			o.Verb = Delete
			o.Header.Modified = metadata.Ticks(w.Env.Now())
			continue
		}
		h, body, err := metadata.Decode(slices.Clone(record))
		if err != nil {
			return nil, err
		}
		if h.ID != nil {
			o.ID = string(h.ID)
		}
		o.RequestID, o.JSON, o.Collection = o.ID, body, string(h.Collection)
		o.FoldedCollection = format.CollectionKey(o.Collection)
		o.Header = metadata.Header{Node: w.Env.Node, Modified: h.Modified, Collection: h.Collection, Custom: h.Custom, Timed: h.Timed}
		w.EncodeTail(o)
		o.extract(w.Indexes.Load().Of(o.FoldedCollection))
	}
	return ops, it.Error()
}

// Intents are those that earlier runs have left.
type Intents []intentFound

type intentFound struct {
	number uint64
	intent format.Intent
	lock   *lock
	leave  func() // lets the next call with its request ID begin
	left   *Undecided
}

// String lists the first intents: the documents that they write, and the keys of the values
// that they change. Guards, which go with their documents, are left out.
func (found Intents) String() string {
	const most = 10
	var out []string
	for _, f := range found[:min(len(found), most)] {
		var docs, values []string
		for _, d := range f.lock.docs[:min(len(f.lock.docs), most)] {
			docs = append(docs, strconv.Quote(errs.Shorten(d.folded)))
		}
		for _, key := range f.lock.values {
			if !exchange.IsGuard(key) && len(values) < most {
				values = append(values, strconv.Quote(errs.Shorten(key)))
			}
		}
		text := strings.Join(docs, ", ")
		if len(f.lock.docs) > most {
			text += fmt.Sprintf(" and %d more documents", len(f.lock.docs)-most)
		}
		if len(values) > 0 {
			text += " with the values " + strings.Join(values, ", ")
		}
		out = append(out, text)
	}
	if len(found) > most {
		out = append(out, "…")
	}
	return strings.Join(out, "; ")
}

// LockIntents finds the intents that earlier runs have left, and locks their documents.
// FinishIntents follows.
func (w *Writer) LockIntents() (found Intents, err error) {
	lo, hi := format.IntentBounds()
	it, err := w.Env.Engine.Iterate(lo, hi)
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		number, err := format.IntentNumber(it.Key())
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		in, err := format.DecodeIntent(it.Value())
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		found = append(found, intentFound{number: number, intent: in})
		w.intents.Store(number)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, err
	}
	for i := range found {
		ops, err := w.readIntent(found[i].number, &found[i].intent)
		if err != nil {
			return nil, err
		}
		if len(ops) != found[i].intent.Writes {
			return nil, fmt.Errorf("intent %d has %d writes of %d: %w", found[i].number, len(ops), found[i].intent.Writes, errs.ErrCorrupt)
		}
		l := newLock()
		l.values = slices.Clone(found[i].intent.Values)
		for _, o := range ops {
			if len(found[i].intent.Values) == 0 { // of an older version: those of its guards, at least
				l.values = append(l.values, GuardKey(o.FoldedID))
			}
			collection := o.FoldedCollection
			if o.Verb.Deletes() {
				if collection, err = lockedCollection(w.Env.Engine, o); err != nil {
					return nil, err
				}
			}
			l.docs = append(l.docs, lockedDocument{o.FoldedID, collection})
			if o.entries != nil {
				for j := range o.entries.List {
					if e := &o.entries.List[j]; e.Unique {
						l.unique = append(l.unique, string(e.AppendKey(nil, o.FoldedID)))
					}
				}
			}
		}
		found[i].lock, found[i].leave = l, w.calls.resume(found[i].intent.Request)
		found[i].left = &Undecided{by: w, intent: found[i].intent, done: make(chan struct{})}
		if w.found == nil {
			w.found = make(map[string]*Undecided, len(found))
		}
		w.found[found[i].intent.Call] = found[i].left
		w.locks.take(l)
	}
	return found, nil
}

// DropIntents removes intents whose outcome does not matter any more.
func (w *Writer) DropIntents(ctx context.Context, found Intents) error {
	for _, f := range found {
		if _, err := w.finishIntent(ctx, f.number, &f.intent, f.lock, 0); err != nil {
			return err
		}
		w.locks.release(f.lock)
		f.leave()
	}
	return nil
}

// FinishIntents brings to an end in the background what earlier runs have left, and waits
// for it as long as patience lasts.
func (w *Writer) FinishIntents(found Intents, patience time.Duration) {
	if len(found) == 0 {
		return
	}
	done := make(chan struct{})
	w.Cluster.Go(func() {
		defer close(done)
		for _, f := range found {
			if err := w.decideIntent(f); err != nil {
				warn(w.Env.Logger, "jay: documents of a cluster-wide transaction", err)
			}
		}
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// decideIntent asks the coordinator what became of a commit, until it answers.
func (w *Writer) decideIntent(f intentFound) error {
	defer f.leave()
	for tries := 0; ; tries++ {
		ctx, cancel := w.Cluster.Bounded(w.Cluster.Context())
		index, known, err := w.Cluster.Outcome(ctx, f.intent.Slot, f.intent.Before, f.intent.Call)
		cancel()
		switch {
		case err == nil:
			if !known && w.Env.Logger != nil {
				w.Env.Logger.Warn("jay: a cluster-wide write in doubt is dropped: the coordinator has no record of it any more. If this database is a copy, the original may have carried it out", "write", Intents{f}.String())
			}
			d, err := w.finishIntent(context.Background(), f.number, &f.intent, f.lock, index)
			if err != nil {
				w.locks.fail(f.lock, errFollows(err))
				f.left.end(Decision{}, errFollows(err))
				return err
			}
			w.locks.release(f.lock)
			f.left.end(d, nil)
			ctx, cancel := w.Cluster.Bounded(w.Cluster.Context())
			defer cancel()
			_ = w.Cluster.Forget(ctx, f.intent.Slot) // else the next run does
			return nil
		case w.Cluster.Context().Err() != nil:
			return nil
		case errors.Is(err, cluster.ErrRestored): // it is asked nothing any more
			w.locks.fail(f.lock, accord.WithoutOutcome(err))
			f.left.end(Decision{}, err)
			return err
		case tries == 0 && !errors.Is(err, cluster.ErrNoMajority) && !errors.Is(err, cluster.ErrUnknownOutcome):
			warn(w.Env.Logger, "jay: what became of a cluster-wide transaction", err)
		}
		accord.Pause(w.Cluster.Context(), tries)
	}
}
