package jay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/storage"
)

// transaction is the ids.Counters of the document it writes.
var _ ids.Counters = (*transaction)(nil)

// Sizes of the blocks reserved in advance: of etags always, of identities under
// Relaxed durability. A block of etags is as large as the number of etags that this
// process has used, within bounds: each reservation during a load becomes a table
// of its own when it is flushed, which overlaps the table of the one before.
const (
	leastEtagBlock = 1 << 16
	mostEtagBlock  = 1 << 18
	identityBlock  = 1 << 10
)

// reservations are the numbers up to which this process may count without asking
// the disk (high-water marks). Each is on disk before a number up to it is used. So
// a crash that loses writes cannot repeat their numbers, not even numbers that were
// only seen and never acknowledged.
type reservations struct {
	session uint64 // marks the reservations of identities that this process made

	mu    sync.Mutex
	etag  uint64            // Guarded by mu.
	floor uint64            // etags up to it were used elsewhere or before. Guarded by mu.
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

func (c *reservations) get(name string) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, found := c.until[name]
	return n, found
}

func (c *reservations) etags() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etag
}

// durable records reservations of identities whose commit is on disk.
func (c *reservations) durable(raised map[string]uint64) {
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

// errReserve means that a block of etags must be reserved before the transaction
// can run.
var errReserve = errors.New("no etag is reserved")

// reserveEtags reserves the next block of etags after used, on disk. One call does
// it for all concurrent callers.
func (db *DB) reserveEtags(ctx context.Context, used uint64) error {
	c := &db.reserved
	if err := c.reserving.lock(ctx); err != nil {
		return err
	}
	defer c.reserving.unlock()
	if used <= c.etags() {
		return nil
	}
	if invariants.Enabled && used <= db.newest {
		invariants.Broken("etag %d is used, and %d was there before", used, db.newest)
	}
	block := min(max(used-db.newest, leastEtagBlock), mostEtagBlock)
	return db.writeEtagCeiling(ctx, addCapped(used, block), 0)
}

// writeEtagCeiling raises the reservation on disk, and the floor if it is not 0.
// c.reserving is held.
func (db *DB) writeEtagCeiling(ctx context.Context, ceiling, floor uint64) error {
	err := db.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set(format.AppendKey(nil, format.SpaceMeta, format.EtagName), binary.BigEndian.AppendUint64(nil, ceiling), nil)
		return nil
	})
	if err != nil {
		return err
	}
	c := &db.reserved
	c.mu.Lock()
	defer c.mu.Unlock()
	c.etag, c.floor = max(c.etag, ceiling), max(c.floor, floor)
	return nil
}

func addCapped(a, b uint64) uint64 { return min(a+b, math.MaxInt64) }

// Sequence implements ids.Counters.
func (t *transaction) Sequence() (uint64, error) {
	etag, err := t.tx.Sequence()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrExhausted, err)
	}
	if t.etags == 0 {
		t.etags = t.db.reserved.etags()
	}
	if etag > t.etags {
		t.needed = etag
		return 0, errReserve
	}
	if invariants.Enabled && (etag <= t.db.newest || etag > t.db.reserved.etags()) {
		invariants.Broken("etag %d is drawn, the newest at Open was %d, reserved are those up to %d", etag, t.db.newest, t.db.reserved.etags())
	}
	return etag, nil
}

// Identity implements ids.Counters. In a copied database it refuses a counter that
// belongs to the original, or that is new and so may be in use there, too.
func (t *transaction) Identity(name string) (int64, error) {
	record, err := t.identity(name)
	if err == nil && record.Node != t.db.env.Node {
		err = ErrNeedsFloor
	}
	return int64(record.Last), err
}

// identity reads the record of a counter. A counter without a record is at 0 and
// belongs to node 0.
func (t *transaction) identity(name string) (format.Identity, error) {
	value, closer, err := t.tx.Get(format.AppendKey(nil, format.SpaceIdentity, name))
	if err == storage.ErrNotFound {
		return format.Identity{}, nil
	}
	if err != nil {
		return format.Identity{}, err
	}
	record, err := format.DecodeIdentity(value)
	if err := errs.First(err, closer.Close()); err != nil {
		return format.Identity{}, fmt.Errorf("identity %.100q: %w", name, err)
	}
	return record.At(t.db.reserved.session), nil
}

// reserveIdentity returns the reservation to store beside number n of a counter
// under Relaxed durability. Unless a reservation above n is already there, the
// write must wait for the disk.
func (t *transaction) reserveIdentity(name string, n uint64) uint64 {
	if ceiling, found := t.raised[name]; found && n <= ceiling {
		return ceiling
	}
	if ceiling, found := t.db.reserved.get(name); found && n <= ceiling {
		return ceiling
	}
	if t.raised == nil {
		t.raised = make(map[string]uint64)
	}
	t.raised[name] = addCapped(n, identityBlock)
	t.tx.RequireSync()
	return t.raised[name]
}

// SetIdentity implements ids.Counters.
func (t *transaction) SetIdentity(name string, n int64) error {
	record := format.Identity{Last: uint64(n), Node: t.db.env.Node}
	if !t.db.env.Synced {
		record.Ceiling = t.reserveIdentity(name, record.Last)
		if invariants.Enabled && record.Ceiling < record.Last {
			invariants.Broken("identity %q is at %d, and reserved up to %d", name, record.Last, record.Ceiling)
		}
		record.Session = t.db.reserved.session
	}
	t.tx.Set(format.AppendKey(nil, format.SpaceIdentity, name), record.Append(nil), nil)
	return nil
}

// Exists implements ids.Counters.
func (t *transaction) Exists(id string) (bool, error) {
	t.key = format.DocumentKey(t.key[:0], t.db.env.Rules.Fold(id))
	return docs.Exists(t.tx, t.key)
}

// loadEtag finds the highest etag that may have been used: the last change of any
// node, or the reservation on disk, which a clean Close lowers to the last etag
// used and a crash leaves as it is.
func (db *DB) loadEtag() error {
	ceiling, err := db.etagCeiling()
	if err != nil {
		return err
	}
	db.env.Engine.StartSequence(ceiling)
	db.reserved.etag, db.reserved.floor = ceiling, ceiling
	if !db.env.Synced {
		var session [8]byte
		if _, err := io.ReadFull(db.env.Random(), session[:]); err != nil {
			return fmt.Errorf("make a session number: %w", err)
		}
		db.reserved.session = binary.BigEndian.Uint64(session[:]) | 1
	}

	for node := range db.env.Origins {
		lo := format.ChangeKey(nil, node, 0)[:5]
		last, err := lastKey(db.env.Engine, lo)
		if err != nil {
			return err
		}
		if last == nil {
			continue
		}
		etag, err := format.EtagOf(last)
		if err != nil {
			return err
		}
		db.env.Engine.StartSequence(etag)
		if node == db.env.Node {
			db.newest = etag
		}
	}
	return nil
}

func (db *DB) etagCeiling() (uint64, error) {
	value, closer, err := db.env.Engine.Get(format.AppendKey(nil, format.SpaceMeta, format.EtagName))
	if err == storage.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	if len(value) != 8 || binary.BigEndian.Uint64(value) > math.MaxInt64 {
		return 0, fmt.Errorf("etag record %x: %w", value, ErrCorrupt)
	}
	return binary.BigEndian.Uint64(value), nil
}

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

// releaseReserved lowers the reservations to the numbers actually used, on a clean
// Close: a database that is closed properly has no holes.
func (db *DB) releaseReserved(ctx context.Context) error {
	if db.reserved.etag == db.reserved.floor && len(db.reserved.until) == 0 {
		return nil // nothing was written
	}
	return db.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		// The etag drawn here is only read, not used. After the last possible etag
		// there is none to draw.
		last := uint64(math.MaxInt64)
		if next, err := tx.Sequence(); err == nil {
			last = next - 1
		}
		tx.Set(format.AppendKey(nil, format.SpaceMeta, format.EtagName), binary.BigEndian.AppendUint64(nil, last), nil)
		t := transaction{db: db, tx: tx}
		for name := range db.reserved.until {
			record, err := t.identity(name)
			if err != nil {
				return err
			}
			record.Ceiling, record.Session = 0, 0
			tx.Set(format.AppendKey(nil, format.SpaceIdentity, name), record.Append(nil), nil)
		}
		return nil
	})
}

// Counters are the counters of a database. An export carries them, so that a copy
// repeats no number.
type Counters struct {
	// Etag is the number of the newest write.
	Etag uint64 `json:"etag"`
	// Identities are the last used numbers, by request ("users|"), folded.
	Identities map[string]int64 `json:"identities,omitempty"`
	// HiLo are the highest numbers granted, by tag ("users"), folded.
	HiLo map[string]int64 `json:"hilo,omitempty"`
}

// Counters returns the counters as they are now.
func (db *DB) Counters(ctx context.Context) (c Counters, err error) {
	if err := db.env.Enter(); err != nil {
		return Counters{}, err
	}
	defer db.env.Exit()
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return db.counters(ctx, snapshot)
}

func (db *DB) counters(ctx context.Context, r storage.Reader) (Counters, error) {
	c := Counters{Identities: make(map[string]int64), HiLo: make(map[string]int64)}
	err := eachKey(ctx, r, format.SpaceIdentity, func(name string, value []byte) error {
		record, err := format.DecodeIdentity(value)
		c.Identities[name] = int64(record.At(db.reserved.session).Last)
		return err
	})
	if err != nil {
		return Counters{}, err
	}
	err = eachKey(ctx, r, format.SpaceHiLo, func(tag string, value []byte) error {
		marks, err := format.DecodeMarks(value)
		c.HiLo[tag] = marks.Mark
		return err
	})
	if err != nil {
		return Counters{}, err
	}
	c.Etag, err = db.lastEtag(r)
	return c, err
}

// lastEtag returns the number of the newest write, or the floor of etags.
func (db *DB) lastEtag(r storage.Reader) (uint64, error) {
	db.reserved.mu.Lock()
	highest := db.reserved.floor
	db.reserved.mu.Unlock()
	for node := range db.env.Origins {
		last, err := lastKey(r, format.ChangeKey(nil, node, 0)[:5])
		if err != nil {
			return 0, err
		}
		if last == nil {
			continue
		}
		etag, err := format.EtagOf(last)
		if err != nil {
			return 0, err
		}
		highest = max(highest, etag)
	}
	return highest, nil
}

// eachKey calls fn with the name and value of every key of a space whose keys
// are one name and 00.
func eachKey(ctx context.Context, r storage.Reader, space byte, fn func(name string, value []byte) error) error {
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
			return errors.Join(fmt.Errorf("counter %.100q: %w", name, err), it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// maxRaise bounds the numbers that RaiseCounters accepts: above it too few would be
// left.
const maxRaise = 1 << 62

// RaiseCounters raises every counter to at least the number given, and lowers none,
// durably. It makes an import of another database's documents safe: no write that
// begins after RaiseCounters has returned makes an ID with a number that was used
// there. Numbers that HiLo clients of this process hold, the database's own client
// and those of NewHiLoClient, are skipped if they are not above the number given.
// Only a range that NextRange granted before stays with the caller that requested
// it.
//
// In a database opened with Options.CopyTag, the number of an identity or of a HiLo
// tag is the floor that it needs.
//
// A number above 1<<62 or below 0 is refused, and nothing changes.
func (db *DB) RaiseCounters(ctx context.Context, c Counters) error {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	if err := db.checkCounters(c); err != nil {
		return err
	}
	now := db.env.Now() // the clock is the user's: not in the transaction
	err := db.raiseEtag(ctx, c.Etag)
	if err == nil {
		err = db.transact(ctx, true, func(t *transaction) error { return t.raise(c, now) })
	}
	if err != nil {
		return fmt.Errorf("raise counters: %w", err)
	}
	db.raiseClients(c.HiLo)
	return nil
}

// raiseClients makes the clients of this process skip numbers that are raised on
// disk already: every range granted since then is above them.
func (db *DB) raiseClients(raised map[string]int64) {
	if len(raised) == 0 {
		return
	}
	floors := make(map[string]int64, len(raised))
	for tag, n := range raised {
		tag = db.env.Rules.Fold(tag)
		floors[tag] = max(floors[tag], n)
	}
	db.eachClient(func(c *ids.Client) {
		c.Raise(func(tag string) int64 { return floors[db.env.Rules.Fold(tag)] })
	})
}

// raiseEtag makes every later etag greater than n.
func (db *DB) raiseEtag(ctx context.Context, n uint64) error {
	c := &db.reserved
	if err := c.reserving.lock(ctx); err != nil {
		return err
	}
	defer c.reserving.unlock()
	if n <= c.floor {
		return nil
	}
	// First the counter in memory, then the disk: an etag drawn in between is above
	// n, and waits for the reservation.
	db.env.Engine.StartSequence(n)
	return db.writeEtagCeiling(ctx, max(n, c.etags()), n)
}

func (db *DB) checkCounters(c Counters) error {
	if c.Etag > maxRaise {
		return fmt.Errorf("%w: counter etag = %d is not between 0 and 1<<62", ErrUsage, c.Etag)
	}
	for name, n := range c.Identities {
		if !strings.HasSuffix(name, ids.IdentityMark) {
			return fmt.Errorf("%w: the name of an identity ends with '|', got %.100q", ErrUsage, name)
		}
		if err := db.checkIdentity(name, name); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: identity %.100q = %d is not between 0 and 1<<62", ErrUsage, name, n)
		}
	}
	for tag, n := range c.HiLo {
		if err := db.checkTag(tag); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: hilo %.100q = %d is not between 0 and 1<<62", ErrUsage, tag, n)
		}
	}
	return nil
}

func (t *transaction) raise(c Counters, now time.Time) error {
	for name, n := range c.Identities {
		if _, err := t.raiseIdentity(t.db.env.Rules.Fold(name), n); err != nil {
			return err
		}
	}
	for tag, n := range c.HiLo {
		marks, err := t.marks(tag)
		if err != nil {
			return err
		}
		marks.Raise(n)
		marks.Node = t.db.env.Node // in a copy this is the floor
		t.setMarks(tag, marks)
		if err := t.raiseMax(tag, n, now); err != nil {
			return err
		}
	}
	return nil
}

// raiseMax raises the Max of a HiLo document to n, so that it does not look as if
// the document had been edited. A document that has no Max, or counts by a
// ServerHi, is left to the next range.
func (t *transaction) raiseMax(tag string, n int64, now time.Time) error {
	d, err := t.hiloDocument(tag)
	if errors.Is(err, ErrNeedsCapacity) || errors.Is(err, ErrExhausted) {
		return nil
	}
	if err != nil || d.body == nil || d.max >= n {
		return err
	}
	if hi, err := numberOf(d.body, serverHiField); hi > 0 || err != nil || gjson.GetBytes(d.body, format.HiLoMax).Type != gjson.Number {
		return nil
	}
	return t.stageHiLo(d, n, now)
}

// raiseIdentity raises a counter to at least n, which also gives the counter of a
// copied database its floor, and returns its new value.
func (t *transaction) raiseIdentity(name string, n int64) (last int64, err error) {
	record, err := t.identity(name)
	if err != nil {
		return 0, err
	}
	last = int64(record.Last)
	if n <= last && record.Node == t.db.env.Node {
		return last, nil
	}
	last = max(last, n)
	return last, t.SetIdentity(name, last)
}
