// Package counters keeps the numbers that must never come twice: etags, the numbers of
// identities, and the marks of HiLo tags.
//
// Numbers are reserved in blocks: the disk has the end of a block before a number of it
// is used, so that a crash that loses writes cannot repeat their numbers.
package counters

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/storage"
)

// Txn is the ids.Counters of the documents that it writes.
var _ ids.Counters = (*Txn)(nil)

// Sizes of the blocks reserved in advance: of etags always, of identities under
// Relaxed durability. A block of etags is as large as the number of etags that this
// process has used, within bounds: each reservation during a load becomes a table
// of its own when it is flushed, which overlaps the table of the one before.
const (
	leastEtagBlock = 1 << 16
	mostEtagBlock  = 1 << 18
	identityBlock  = 1 << 10
)

// Reserved are the numbers up to which this process may count without asking
// the disk (high-water marks). Each is on disk before a number up to it is used. So
// a crash that loses writes cannot repeat their numbers, not even numbers that were
// only seen and never acknowledged.
type Reserved struct {
	env     *env.Env
	newest  uint64 // etag of the newest change of this database, found by Open
	mark    uint64 // see Mark; found by Open
	found   uint64 // etag of the newest change of any node, or mark; found by Open
	session uint64 // marks the reservations of identities that this process made

	mu    sync.Mutex
	etag  uint64            // Guarded by mu.
	floor uint64            // etags up to it were used elsewhere or before. Guarded by mu.
	index uint64            // of the newest compare-exchange value that this process has written. Guarded by mu.
	until map[string]uint64 // reserved up to, by identity. Guarded by mu.

	reserving turn // held while a block of etags is reserved
}

// turn is a lock that can be awaited under a context: a chan with room for one
// element. A send acquires it, a receive releases it.
type turn chan struct{}

func (t turn) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) unlock() { <-t }

func (c *Reserved) get(name string) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, found := c.until[name]
	return n, found
}

// Etags returns the etag up to which this process may count: all that it has used are
// at most that.
func (c *Reserved) Etags() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etag
}

// Durable records reservations of identities whose commit is on disk.
func (c *Reserved) Durable(raised map[string]uint64) {
	if len(raised) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil {
		c.until = make(map[string]uint64)
	}
	for name, n := range raised {
		c.until[name] = max(c.until[name], n)
	}
}

// ErrReserve means that a block of etags must be reserved before the transaction
// can run.
var ErrReserve = errors.New("no etag is reserved")

// ReserveEtags reserves the next block of etags after used, on disk. One call does
// it for all concurrent callers.
func (c *Reserved) ReserveEtags(ctx context.Context, used uint64) error {
	if err := c.reserving.lock(ctx); err != nil {
		return err
	}
	defer c.reserving.unlock()
	if used <= c.Etags() {
		return nil
	}
	if invariants.Enabled && used <= c.newest {
		invariants.Broken("etag %d is used, and %d was there before", used, c.newest)
	}
	block := min(max(used-c.newest, leastEtagBlock), mostEtagBlock)
	return c.writeEtagCeiling(ctx, addCapped(used, block), 0)
}

// writeEtagCeiling raises the reservation on disk, and the floor if it is not 0.
// c.reserving is held.
func (c *Reserved) writeEtagCeiling(ctx context.Context, ceiling, floor uint64) error {
	c.env.OwnSyncs.Add(1)
	defer c.env.OwnSyncs.Add(-1)
	err := c.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set(format.AppendKey(nil, format.SpaceMeta, format.EtagName), binary.BigEndian.AppendUint64(nil, ceiling), nil)
		return nil
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.etag, c.floor = max(c.etag, ceiling), max(c.floor, floor)
	return nil
}

func addCapped(a, b uint64) uint64 { return min(a+b, math.MaxInt64) }

// AtOpen returns what Open has found: the mark (see Mark) and the etag of the newest
// change, as NewestChange does.
func (c *Reserved) AtOpen() (mark, newest uint64) { return c.mark, c.found }

// Newest is the etag of the newest change of this database when it was opened.
func (c *Reserved) Newest() uint64 { return c.newest }

// Session returns what records of identities have that this process wrote under Relaxed durability; else 0.
func (c *Reserved) Session() uint64 { return c.session }

// Number returns the last number that a record of an identity stands for: under
// Relaxed durability another one in the process that wrote it than in others.
func (c *Reserved) Number(record format.Identity) format.Identity { return record.At(c.session) }

// Open finds what earlier processes have reserved, and starts the etags of the engine
// behind it.
func Open(e *env.Env) (*Reserved, error) {
	c := &Reserved{env: e, reserving: make(turn, 1)}
	return c, c.load()
}

// Txn gives the numbers of a transaction of the engine.
type Txn struct {
	Reserved *Reserved
	Tx       storage.Tx
	Raised   map[string]uint64 // reservations of identities staged, by name; for Durable when they are on disk
	Needed   uint64            // the etag that could not be drawn, with ErrReserve

	etags uint64 // reserved on disk up to here; 0 until it is read
	key   []byte // scratch
}

// Sequence implements ids.Counters.
func (t *Txn) Sequence() (uint64, error) {
	etag, err := t.Tx.Sequence()
	if errors.Is(err, storage.ErrSequenceExhausted) {
		err = fmt.Errorf("%w: %w", ids.ErrExhausted, err)
	}
	if err != nil {
		return 0, err
	}
	if t.etags == 0 {
		t.etags = t.Reserved.Etags()
	}
	if etag > t.etags {
		t.Needed = etag
		return 0, ErrReserve
	}
	if invariants.Enabled && (etag <= t.Reserved.newest || etag > t.Reserved.Etags()) {
		invariants.Broken("etag %d is drawn, the newest at Open was %d, reserved are those up to %d", etag, t.Reserved.newest, t.Reserved.Etags())
	}
	return etag, nil
}

// Identity implements ids.Counters. In a copied database it refuses a counter that
// belongs to the original, or that is new and so may be in use there, too.
func (t *Txn) Identity(name string) (int64, error) {
	record, err := t.identity(name)
	if err == nil && record.Node != t.Reserved.env.Node {
		err = errs.ErrNeedsFloor
	}
	return int64(record.Last), err
}

// identity reads the record of a counter. A counter without a record is at 0 and
// belongs to node 0.
func (t *Txn) identity(name string) (format.Identity, error) {
	value, closer, err := t.Tx.Get(format.AppendKey(nil, format.SpaceIdentity, name))
	if err == storage.ErrNotFound {
		return format.Identity{}, nil
	}
	if err != nil {
		return format.Identity{}, err
	}
	record, err := format.DecodeIdentity(value)
	if err := errs.First(err, closer.Close()); err != nil {
		return format.Identity{}, fmt.Errorf("identity %q: %w", name, err)
	}
	return record.At(t.Reserved.session), nil
}

// reserveIdentity returns the reservation to store beside number n of a counter
// under Relaxed durability. Unless a reservation above n is already there, the
// write must wait for the disk.
func (t *Txn) reserveIdentity(name string, n uint64) uint64 {
	if ceiling, found := t.Raised[name]; found && n <= ceiling {
		return ceiling
	}
	if ceiling, found := t.Reserved.get(name); found && n <= ceiling {
		return ceiling
	}
	if t.Raised == nil {
		t.Raised = make(map[string]uint64)
	}
	t.Raised[name] = addCapped(n, identityBlock)
	t.Tx.RequireSync()
	return t.Raised[name]
}

// SetIdentity implements ids.Counters.
func (t *Txn) SetIdentity(name string, n int64) error {
	record := format.Identity{Last: uint64(n), Node: t.Reserved.env.Node}
	switch {
	case t.Reserved.env.Synced:
	case t.Reserved.env.Engine.Shared():
		t.Tx.RequireSync() // to the other processes, numbers up to a reservation would count as used
	default:
		record.Ceiling = t.reserveIdentity(name, record.Last)
		if invariants.Enabled && record.Ceiling < record.Last {
			invariants.Broken("identity %q is at %d, and reserved up to %d", name, record.Last, record.Ceiling)
		}
		record.Session = t.Reserved.session
	}
	t.Tx.Set(format.AppendKey(nil, format.SpaceIdentity, name), record.Append(nil), nil)
	return nil
}

// Exists implements ids.Counters.
func (t *Txn) Exists(id string) (bool, error) {
	t.key = format.DocumentKey(t.key[:0], t.Reserved.env.Rules.Fold(id))
	return docs.Exists(t.Tx, t.key)
}

// load finds the highest etag that may have been used: the last change of any
// node, or the reservation on disk, which a clean Close lowers to the last etag
// used and a crash leaves as it is.
func (c *Reserved) load() error {
	ceiling, err := c.etagCeiling()
	if err != nil {
		return err
	}
	c.env.Engine.StartSequence(ceiling)
	c.etag, c.floor = ceiling, ceiling
	if c.env.Engine.Shared() {
		c.etag = math.MaxInt64 // the store has the last one that was drawn: package shared
	}
	if c.env.Engine.Shared() { // numbers are those of the process that has the store for itself, if there is one
		if c.session, _, err = env.NumberAt(c.env.Engine, format.AppendKey(nil, format.SpaceMeta, format.SessionName)); err != nil {
			return err
		}
	} else if !c.env.Synced {
		var session [8]byte
		if _, err := io.ReadFull(c.env.Random(), session[:]); err != nil {
			return fmt.Errorf("make a session number: %w", err)
		}
		c.session = binary.BigEndian.Uint64(session[:]) | 1
	}

	if c.mark, err = Mark(c.env.Engine); err != nil {
		return err
	}
	c.found = c.mark
	for node := range c.env.Origins {
		etag, err := newestOf(c.env.Engine, node)
		if err != nil {
			return err
		}
		c.found = max(c.found, etag)
		if node == c.env.Node {
			c.newest = etag
		}
	}
	c.env.Engine.StartSequence(c.found)
	return nil
}

func (c *Reserved) etagCeiling() (uint64, error) { return etagAt(c.env.Engine, format.EtagName) }

// Mark returns the etag up to which records of deletions may have been removed: see
// package horizon.
func Mark(r docs.Getter) (uint64, error) { return etagAt(r, format.MarkName) }

// Walked returns the etag up to which package horizon has looked for records of
// deletions. A database of an older version has it not, and the mark instead.
func Walked(r docs.Getter) (uint64, error) { return etagAt(r, format.WalkedName) }

// etagAt returns the etag in a record under 'm', 0 if there is none.
func etagAt(r docs.Getter, name string) (uint64, error) {
	etag, _, err := env.NumberAt(r, format.AppendKey(nil, format.SpaceMeta, name))
	if err == nil && etag > math.MaxInt64 {
		err = fmt.Errorf("%d: %w", etag, errs.ErrCorrupt)
	}
	if err != nil {
		return 0, fmt.Errorf("record %s: %w", name, err)
	}
	return etag, nil
}

// lastKey returns the last key with a prefix, or nil. The caller owns it.
func lastKey(r storage.Reader, prefix []byte) ([]byte, error) {
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return nil, err
	}
	var key []byte
	if it.Last() {
		key = append(key, it.Key()...)
	}
	return key, errors.Join(it.Error(), it.Close())
}

// Release lowers the reservations to the numbers actually used, on a clean
// Close: a database that is closed properly has no holes. also stages more in the same
// transaction.
func (c *Reserved) Release(ctx context.Context, also func(storage.Tx) error) error {
	shared := c.env.Engine.Shared()
	if (shared || c.etag == c.floor) && len(c.until) == 0 {
		return nil // nothing was written, or the store knows it
	}
	return c.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		if !shared {
			// The etag drawn here is only read, not used. After the last possible etag
			// there is none to draw.
			last := uint64(math.MaxInt64)
			if next, err := tx.Sequence(); err == nil {
				last = next - 1
			}
			tx.Set(format.AppendKey(nil, format.SpaceMeta, format.EtagName), binary.BigEndian.AppendUint64(nil, last), nil)
		}
		t := Txn{Reserved: c, Tx: tx}
		for name := range c.until {
			record, err := t.identity(name)
			if err != nil {
				return err
			}
			record.Ceiling, record.Session = 0, 0
			tx.Set(format.AppendKey(nil, format.SpaceIdentity, name), record.Append(nil), nil)
		}
		return also(tx)
	})
}

// Read calls identity with the last number of every identity, by its folded request,
// and hilo with the highest number granted of every tag, folded, until one returns an error.
func (c *Reserved) Read(ctx context.Context, r storage.Reader, identity, hilo func(name string, n int64) error) error {
	err := EachKey(ctx, r, format.SpaceIdentity, func(name string, value []byte) error {
		record, err := format.DecodeIdentity(value)
		return errs.First(err, identity(name, int64(record.At(c.session).Last)))
	})
	if err != nil {
		return err
	}
	return EachKey(ctx, r, format.SpaceHiLo, func(tag string, value []byte) error {
		marks, err := format.DecodeMarks(value)
		return errs.First(err, hilo(tag, marks.Mark))
	})
}

// Exchanged notes the index of a compare-exchange value that was committed: an etag
// without a change.
func (c *Reserved) Exchanged(index uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index = max(c.index, index)
}

// LastEtag returns the number of the newest write, or the floor of etags.
func (c *Reserved) LastEtag(r storage.Reader) (uint64, error) {
	newest, err := NewestChange(c.env, r)
	if err == nil && c.env.Engine.Shared() {
		last, err := etagAt(r, format.EtagName)
		return max(newest, last), err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(newest, c.floor, c.index), err
}

// newestOf returns the etag of the last change of a node, 0 if it has none.
func newestOf(r storage.Reader, node uint64) (uint64, error) {
	last, err := lastKey(r, format.ChangeKey(nil, node, 0)[:5])
	if last == nil || err != nil {
		return 0, err
	}
	return format.EtagOf(last)
}

// NewestChange returns the highest etag of a change that r sees, of any node. Its
// record may have been removed, if it was a deletion.
func NewestChange(e *env.Env, r storage.Reader) (uint64, error) {
	highest, err := Mark(r)
	if err != nil {
		return 0, err
	}
	for node := range e.Origins {
		etag, err := newestOf(r, node)
		if err != nil {
			return 0, err
		}
		highest = max(highest, etag)
	}
	return highest, nil
}

// EachKey calls fn with the name and value of every key of a space whose keys
// are one name and 00.
func EachKey(ctx context.Context, r storage.Reader, space byte, fn func(name string, value []byte) error) error {
	it, err := r.Iterate([]byte{space}, []byte{space + 1})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, it.Close())
		}
		name := strings.TrimSuffix(string(it.Key()[1:]), "\x00")
		if err := fn(name, it.Value()); err != nil {
			return errors.Join(fmt.Errorf("counter %q: %w", name, err), it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// RaiseEtag makes every later etag greater than n.
func (c *Reserved) RaiseEtag(ctx context.Context, n uint64) error {
	if err := c.reserving.lock(ctx); err != nil {
		return err
	}
	defer c.reserving.unlock()
	if c.env.Engine.Shared() {
		return c.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
			last, err := etagAt(tx, format.EtagName)
			if err == nil && last < n {
				tx.Set(format.AppendKey(nil, format.SpaceMeta, format.EtagName), binary.BigEndian.AppendUint64(nil, n), nil)
			}
			return err
		})
	}
	if n <= c.floor {
		return nil
	}
	// First the counter in memory, then the disk: an etag drawn in between is above
	// n, and waits for the reservation.
	c.env.Engine.StartSequence(n)
	return c.writeEtagCeiling(ctx, max(n, c.Etags()), n)
}

// RaiseIdentity raises a counter to at least n, which also gives the counter of a
// copied database its floor, and returns its new value.
func (t *Txn) RaiseIdentity(name string, n int64) (last int64, err error) {
	record, err := t.identity(name)
	if err != nil {
		return 0, err
	}
	last = int64(record.Last)
	if n <= last && record.Node == t.Reserved.env.Node {
		return last, nil
	}
	last = max(last, n)
	return last, t.SetIdentity(name, last)
}

// Marks reads the record of a HiLo tag.
func (t *Txn) Marks(tag string) (*format.Marks, error) {
	value, closer, err := t.Tx.Get(format.AppendKey(nil, format.SpaceHiLo, t.Reserved.env.Rules.Fold(tag)))
	if err == storage.ErrNotFound {
		return &format.Marks{}, nil
	}
	if err != nil {
		return nil, err
	}
	marks, err := format.DecodeMarks(value)
	if err := errs.First(err, closer.Close()); err != nil {
		return nil, fmt.Errorf("marks of %q: %w", tag, err)
	}
	return marks, nil
}

// SetMarks stages the record of a HiLo tag.
func (t *Txn) SetMarks(tag string, m *format.Marks) {
	t.Tx.Set(format.AppendKey(nil, format.SpaceHiLo, t.Reserved.env.Rules.Fold(tag)), format.AppendMarks(nil, m), nil)
}
