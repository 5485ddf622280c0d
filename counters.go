package jay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/storage"
)

// transaction is the ids.Counters of the document it writes.
var _ ids.Counters = (*transaction)(nil)

// etagName is the record under 'm' that holds the etag's ceiling.
// Part of the on-disk format. Must not change.
const etagName = "etag"

// Blocks reserved ahead under Relaxed durability.
const (
	etagBlock     = 1 << 16
	identityBlock = 1 << 10
)

// ceilings are the numbers up to which this process may count without asking
// the disk, under Relaxed durability. Each is on disk before a number up to it
// is used, so that a crash that loses writes cannot repeat their numbers.
type ceilings struct {
	mu    sync.Mutex
	until map[string]uint64 // by counter; the etag is ""
}

func (c *ceilings) get(name string) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, found := c.until[name]
	return n, found
}

// durable notes ceilings whose commit is on disk.
func (c *ceilings) durable(raised map[string]uint64) {
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

// reserve makes sure that the disk knows of number n of a counter before the
// write that uses it is acknowledged. It returns the ceiling to store beside
// the counter, 0 under Synced durability.
func (t *transaction) reserve(name string, n, block uint64) uint64 {
	if t.db.opts.Durability == Synced {
		return 0
	}
	if ceiling, found := t.raised[name]; found && n <= ceiling {
		return ceiling
	}
	if ceiling, found := t.db.ceilings.get(name); found && n <= ceiling {
		return ceiling
	}
	ceiling := min(n+block, math.MaxInt64)
	if t.raised == nil {
		t.raised = make(map[string]uint64)
	}
	t.raised[name] = ceiling
	t.tx.RequireSync()
	return ceiling
}

// Sequence implements ids.Counters.
func (t *transaction) Sequence() (uint64, error) {
	etag, err := t.tx.Sequence()
	if err != nil {
		return 0, fmt.Errorf("etag: %w", errors.Join(ErrExhausted, err))
	}
	if _, known := t.raised[""]; known || t.db.opts.Durability == Synced {
		return etag, nil
	}
	if ceiling := t.reserve("", etag, etagBlock); t.raised[""] == ceiling {
		t.tx.Set(appendKey(nil, spaceMeta, etagName), binary.BigEndian.AppendUint64(nil, ceiling), nil)
	}
	return etag, nil
}

// Identity implements ids.Counters. A counter that a copied database has from
// its original, or shares with it by being new, is refused.
func (t *transaction) Identity(name string) (int64, error) {
	record, err := t.identity(name)
	if err == nil && record.node != t.db.node {
		err = ErrNeedsFloor
	}
	return int64(record.last), err
}

// identity reads the record of a counter. One that is not there is at 0, and
// of node 0.
func (t *transaction) identity(name string) (identityRecord, error) {
	value, closer, err := t.tx.Get(appendKey(nil, spaceIdentity, name))
	if err == storage.ErrNotFound {
		return identityRecord{}, nil
	}
	if err != nil {
		return identityRecord{}, err
	}
	record, err := decodeIdentity(value)
	if err := firstError(err, closer.Close()); err != nil {
		return identityRecord{}, fmt.Errorf("identity %q: %w", name, err)
	}

	// A ceiling that this process did not set was left by one that crashed.
	_, own := t.db.ceilings.get(name)
	if _, ownNow := t.raised[name]; !own && !ownNow {
		record.last = max(record.last, record.ceiling)
	}
	return record, nil
}

// SetIdentity implements ids.Counters.
func (t *transaction) SetIdentity(name string, n int64) error {
	record := identityRecord{last: uint64(n), ceiling: t.reserve(name, uint64(n), identityBlock), node: t.db.node}
	t.tx.Set(appendKey(nil, spaceIdentity, name), record.append(nil), nil)
	return nil
}

// Exists implements ids.Counters.
func (t *transaction) Exists(id string) (bool, error) {
	t.key = documentKey(t.key[:0], t.db.rules.Fold(id))
	return exists(t.tx, t.key)
}

// identityRecord is the record of an identity: three uvarints.
// Part of the on-disk format. Must not change.
type identityRecord struct {
	last    uint64 // last used number
	ceiling uint64 // reserved ahead under relaxed durability, or 0
	node    uint64 // the node that counts with it: a copy needs a floor first
}

func (r identityRecord) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, r.last)
	dst = binary.AppendUvarint(dst, r.ceiling)
	return binary.AppendUvarint(dst, r.node)
}

func decodeIdentity(record []byte) (r identityRecord, err error) {
	for _, field := range []*uint64{&r.last, &r.ceiling, &r.node} {
		n, size := binary.Uvarint(record)
		if size <= 0 || n > math.MaxInt64 {
			return identityRecord{}, ErrCorrupt
		}
		*field, record = n, record[size:]
	}
	if len(record) > 0 {
		return identityRecord{}, ErrCorrupt
	}
	return r, nil
}

// loadEtag finds the highest etag in use: the last change of this node, or
// the ceiling that a process with relaxed durability left.
func (db *DB) loadEtag() error {
	ceiling, err := db.etagCeiling()
	if err != nil {
		return err
	}
	db.engine.StartSequence(ceiling)

	for node := range db.nodes {
		lo := changeKey(nil, node, 0)[:5]
		last, err := lastKey(db.engine, lo)
		if err != nil {
			return err
		}
		if last == nil {
			continue
		}
		etag, err := etagOf(last)
		if err != nil {
			return err
		}
		db.engine.StartSequence(etag)
	}
	return nil
}

func (db *DB) etagCeiling() (uint64, error) {
	value, closer, err := db.engine.Get(appendKey(nil, spaceMeta, etagName))
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
	it, err := r.Iterate(prefix, prefixEnd(prefix))
	if err != nil {
		return nil, err
	}
	var key []byte
	if it.Last() {
		key = append(key, it.Key()...)
	}
	return key, errors.Join(it.Error(), it.Close())
}

// settle lowers the ceilings to the numbers really used, on a clean Close: a
// database that is closed properly has no holes.
func (db *DB) settle(ctx context.Context) error {
	if len(db.ceilings.until) == 0 {
		return nil
	}
	return db.engine.Update(ctx, true, func(tx storage.Tx) error {
		t := transaction{db: db, tx: tx}
		for name := range db.ceilings.until {
			if name == "" {
				// The number drawn here is not used and need not be kept.
				next, err := tx.Sequence()
				if err != nil {
					return err
				}
				tx.Set(appendKey(nil, spaceMeta, etagName), binary.BigEndian.AppendUint64(nil, next-1), nil)
				continue
			}
			record, err := t.identity(name)
			if err != nil {
				return err
			}
			record.ceiling = 0
			tx.Set(appendKey(nil, spaceIdentity, name), record.append(nil), nil)
		}
		return nil
	})
}

// Counters are the numbers that a database counts with. An export carries
// them, so that a copy repeats no number.
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
	if err := db.enter(); err != nil {
		return Counters{}, err
	}
	defer db.exit()
	snapshot := db.engine.Snapshot()
	defer func() { err = firstError(err, snapshot.Close()) }()
	return db.counters(ctx, snapshot)
}

func (db *DB) counters(ctx context.Context, r storage.Reader) (Counters, error) {
	c := Counters{Identities: make(map[string]int64), HiLo: make(map[string]int64)}
	err := eachKey(ctx, r, spaceIdentity, func(name string, value []byte) error {
		record, err := decodeIdentity(value)
		if _, own := db.ceilings.get(name); !own {
			record.last = max(record.last, record.ceiling)
		}
		c.Identities[name] = int64(record.last)
		return err
	})
	if err != nil {
		return Counters{}, err
	}
	err = eachKey(ctx, r, spaceHiLo, func(tag string, value []byte) error {
		marks, err := decodeMarks(value)
		c.HiLo[tag] = marks.Mark
		return err
	})
	if err != nil {
		return Counters{}, err
	}
	for node := range db.nodes {
		last, err := lastKey(r, changeKey(nil, node, 0)[:5])
		if err != nil {
			return Counters{}, err
		}
		if last != nil {
			etag, err := etagOf(last)
			if err != nil {
				return Counters{}, err
			}
			c.Etag = max(c.Etag, etag)
		}
	}
	if _, own := db.ceilings.get(""); !own {
		floor, err := db.etagCeiling()
		if err != nil {
			return Counters{}, err
		}
		c.Etag = max(c.Etag, floor)
	}
	return c, nil
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
			return errors.Join(fmt.Errorf("counter %q: %w", name, err), it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// maxRaise bounds what RaiseCounters believes: a number above it would leave
// too few to work with.
const maxRaise = 1 << 62

// RaiseCounters lifts every counter to at least the number given, and lowers
// none, in one synced commit. It is what makes an import of another
// database's documents safe: no number that was used there comes again here.
// A number above 1<<62 or below 0 is refused, and nothing changes.
func (db *DB) RaiseCounters(ctx context.Context, c Counters) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.exit()
	if err := db.checkCounters(c); err != nil {
		return err
	}
	if err := db.transact(ctx, true, func(t *transaction) error { return t.raise(c) }); err != nil {
		return fmt.Errorf("raise counters: %w", err)
	}
	db.engine.StartSequence(c.Etag)
	return nil
}

func (db *DB) checkCounters(c Counters) error {
	if c.Etag > maxRaise {
		return fmt.Errorf("%w: counter etag = %d is not between 0 and 1<<62", ErrUsage, c.Etag)
	}
	for name, n := range c.Identities {
		if !strings.HasSuffix(name, ids.IdentityMark) {
			return fmt.Errorf("%w: the name of an identity ends with '|', got %q", ErrUsage, name)
		}
		if err := db.checkIdentity(name, name); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: identity %q = %d is not between 0 and 1<<62", ErrUsage, name, n)
		}
	}
	for tag, n := range c.HiLo {
		if err := db.checkTag(tag); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: hilo %q = %d is not between 0 and 1<<62", ErrUsage, tag, n)
		}
	}
	return nil
}

func (t *transaction) raise(c Counters) error {
	ceiling, err := t.db.etagCeiling()
	if err != nil {
		return err
	}
	if c.Etag > ceiling {
		t.tx.Set(appendKey(nil, spaceMeta, etagName), binary.BigEndian.AppendUint64(nil, c.Etag), nil)
	}
	for name, n := range c.Identities {
		if _, err := t.raiseIdentity(t.db.rules.Fold(name), n); err != nil {
			return err
		}
	}
	for tag, n := range c.HiLo {
		marks, err := t.marks(tag)
		if err != nil {
			return err
		}
		marks.Raise(n)
		t.setMarks(tag, marks)
	}
	return nil
}

// raiseIdentity lifts a counter to at least n, which also gives the counter of
// a copied database its floor, and returns where it stands.
func (t *transaction) raiseIdentity(name string, n int64) (last int64, err error) {
	record, err := t.identity(name)
	if err != nil {
		return 0, err
	}
	last = int64(record.last)
	if n <= last && record.node == t.db.node {
		return last, nil
	}
	last = max(last, n)
	return last, t.SetIdentity(name, last)
}
