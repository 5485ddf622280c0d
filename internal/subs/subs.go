// Package subs implements subscriptions: named readers of the changes whose position is
// stored in the database and advances with each acknowledged batch.
//
// A subscription has a definition, its progress, and a record for each document that has
// failed (package format has the keys). At most one [Worker] serves it at a time. The
// worker reads changes with a feed (package feed) and keeps the documents that match the
// query. The acknowledgement of a batch is one transaction: it advances the position,
// records the documents that have failed, and deletes the records of those that have
// succeeded. So an acknowledged batch is never sent again, and after a crash any other
// batch is.
//
// Each worker has a number. The transaction of an acknowledgement compares it with that of
// the newest worker, so a worker that was replaced can no longer acknowledge. Disabling,
// resetting and dropping a subscription end its worker in the same way.
package subs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Bounds. docs/limits.md has them.
const (
	maxNameBytes     = 256
	maxSubscriptions = 1000
	maxFailing       = 1000 // failed documents of one subscription
	maxErrorBytes    = 1000 // of the error text of a failure
	maxRetryDelay    = time.Hour
	skippedEtags     = 1000 // etags without a match after which the position is stored
)

// Definition is the declaration of a subscription. It is stored as JSON. Part of the
// on-disk format.
type Definition struct {
	Name        string        `json:"name"`
	Query       string        `json:"query"` // RQL in canonical form
	Deletions   bool          `json:"deletions,omitempty"`
	MaxFailures int           `json:"maxFailures"`
	RetryDelay  time.Duration `json:"retryDelayNs"`
	Created     time.Time     `json:"created"`
}

// Progress is the changing state of a subscription. It is stored as JSON. Part of the
// on-disk format.
type Progress struct {
	Position     uint64    `json:"position"`       // changes up to this etag are acknowledged
	Base         uint64    `json:"base,omitempty"` // see feed.Token
	Worker       uint64    `json:"worker"`         // number of the newest worker
	Disabled     bool      `json:"disabled,omitempty"`
	Acknowledged int64     `json:"acknowledged"` // documents
	Last         time.Time `json:"last,omitzero"`
}

// Failure is a document that has failed. It is stored as JSON. Part of the on-disk
// format.
type Failure struct {
	ID       string    `json:"id"` // as written
	Etag     uint64    `json:"etag"`
	Failures int       `json:"failures"` // of this version of the document
	Dead     bool      `json:"dead,omitempty"`
	Error    string    `json:"error"` // of the last failure
	Due      time.Time `json:"due"`   // when the document is sent again, unless it is dead

	Deletion *Deletion `json:"deletion,omitempty"` // set if it is a deletion that has failed
}

// Deletion has what is needed to send a failed deletion again: there is no document to
// read it from.
type Deletion struct {
	Node       uint64 `json:"node"`
	Collection string `json:"collection,omitempty"`
}

// Info is the present state of a subscription.
type Info struct {
	Definition
	Progress
	Newest        uint64 // etag of the newest change
	Failing, Dead int
	Working       bool // a worker of this process serves it
	Gone          bool // deletions that it needs were removed from the feed
}

// Store has the subscriptions of an open database. It is safe for concurrent use. Its
// methods do not enter the gate: the caller must be inside, except for Acquire and Stop.
type Store struct {
	env   *env.Env
	feeds *feed.Source

	mu      sync.Mutex
	slots   map[string]*slot // by name. Guarded by mu.
	closing context.Context
	stop    context.CancelCauseFunc
}

// New returns the Store of a database.
func New(e *env.Env, feeds *feed.Source) *Store {
	s := &Store{env: e, feeds: feeds, slots: make(map[string]*slot)}
	s.closing, s.stop = context.WithCancelCause(context.Background())
	return s
}

// Stop ends all workers with ErrClosed. Later calls of Acquire fail.
func (s *Store) Stop() {
	s.stop(errs.ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.slots {
		if at.worker != nil {
			at.worker.end(errs.ErrClosed)
		}
	}
}

// CheckName returns an error for an invalid name. Control characters are invalid, as one
// of them ends the name in a key.
func CheckName(name string) error {
	if name == "" || len(name) > maxNameBytes || !utf8.ValidString(name) {
		return fmt.Errorf("%w: the name must have from 1 to %d bytes of UTF-8, not %q", errs.ErrSubscription, maxNameBytes, errs.Shorten(name))
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return fmt.Errorf("%w: the name %q has a control character", errs.ErrSubscription, name)
		}
	}
	return nil
}

// CheckQuery returns an error for a query that a subscription cannot serve. Each document
// is sent on its own, so there is no order, grouping, paging or including.
func CheckQuery(q *query.Query) error {
	switch {
	case exec.IsGrouped(q), q.Distinct, len(q.OrderBy) > 0, q.HasLimit, q.Offset > 0, q.IncludesMore(), !q.Each.IsZero():
		return fmt.Errorf("%w: the query of a subscription has from, where and select only, not %.300s", errs.ErrSubscription, q)
	}
	if q.Script != nil { // which reads other documents, whose changes would not be noticed; and older programs could not read the record
		return fmt.Errorf("%w: the query of a subscription has no JavaScript: %.300s", errs.ErrSubscription, q)
	}
	if query.Computes(q.Where) || slices.ContainsFunc(q.Select, func(c query.Column) bool { return c.Field.Expression != nil }) { // older programs could not read the record
		return fmt.Errorf("%w: the query of a subscription computes nothing, and has no expressions: %.300s", errs.ErrSubscription, q)
	}
	if query.Searches(q.Where) { // which words there are depends on the program, and older ones cannot read the record
		return fmt.Errorf("%w: the query of a subscription does not search for words: %.300s", errs.ErrSubscription, q)
	}
	return nil
}

// missing returns the error for a name without a subscription.
func missing(name string) error {
	return fmt.Errorf("%w: there is none of the name %q", errs.ErrSubscription, errs.Shorten(name))
}

// reader is a storage.Reader or a storage.Tx.
type reader interface {
	docs.Getter
	Iterate(lo, hi []byte) (storage.Iterator, error)
}

// get decodes a record into into.
func get(r docs.Getter, key []byte, into any) (found bool, err error) {
	value, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(value, into); err != nil {
		err = fmt.Errorf("record %q: %w: %w", key, errs.ErrCorrupt, err)
		return false, errs.First(err, closer.Close())
	}
	return true, closer.Close()
}

// load reads the definition and the progress of a subscription.
func load(r docs.Getter, name string) (d Definition, p Progress, err error) {
	if err := CheckName(name); err != nil {
		return d, p, err
	}
	found, err := get(r, format.SubscriptionKey(name), &d)
	if err != nil {
		return d, p, err
	}
	if !found {
		return d, p, missing(name)
	}
	if found, err = get(r, format.SubscriptionProgressKey(name), &p); err == nil && !found {
		err = fmt.Errorf("subscription %q has no progress: %w", name, errs.ErrCorrupt)
	}
	return d, p, err
}

// each calls fn with the key and the value of each record whose key begins with prefix.
func each(r reader, prefix []byte, fn func(key, value []byte) error) error {
	return env.Each(r, prefix, format.PrefixEnd(prefix), fn)
}

// failures reads the records of the documents that have failed.
func failures(r reader, name string) (all []Failure, err error) {
	err = each(r, format.SubscriptionFailureKey(name, ""), func(key, value []byte) error {
		var f Failure
		if err := json.Unmarshal(value, &f); err != nil {
			return fmt.Errorf("record %q: %w: %w", key, errs.ErrCorrupt, err)
		}
		all = append(all, f)
		return nil
	})
	return all, err
}

// update runs a transaction with the durability of the database.
func (s *Store) update(ctx context.Context, fn func(storage.Tx) error) error {
	return s.env.Engine.Update(ctx, s.env.Synced, fn)
}

// setProgress stages the progress, and the floor that keeps the deletions behind it.
func setProgress(tx storage.Tx, d *Definition, p *Progress) error {
	if d.Deletions && !p.Disabled {
		needed := max(p.Position, p.Base)
		if err := horizon.SetFloor(tx, format.SubscriptionFloor+d.Name, needed); err != nil {
			return fmt.Errorf("%w: %q has missed deletions after etag %d: reset it: %w", errs.ErrSubscription, d.Name, needed, err)
		}
	} else {
		horizon.ForgetFloor(tx, format.SubscriptionFloor+d.Name)
	}
	return env.SetJSON(tx, format.SubscriptionProgressKey(d.Name), p)
}

// Ensure creates a subscription that begins after the token since. If one with the name
// exists, it must have the same definition, and nothing changes.
func (s *Store) Ensure(ctx context.Context, d Definition, since string) error {
	if err := CheckName(d.Name); err != nil {
		return err
	}
	position, base, err := s.feeds.Resolve(ctx, since)
	if err != nil {
		return err
	}
	first, err := s.firstWorker()
	if err != nil {
		return err
	}
	return s.update(ctx, func(tx storage.Tx) error {
		var old Definition
		found, err := get(tx, format.SubscriptionKey(d.Name), &old)
		if err != nil {
			return err
		}
		if found {
			if old.Created = d.Created; old != d {
				return fmt.Errorf("%w: %q exists with another definition: %s", errs.ErrSubscription, d.Name, old.Query)
			}
			return nil
		}
		n := 0
		if err := each(tx, []byte{format.SpaceSubscription}, func(key, _ []byte) error {
			if format.IsSubscriptionDefinition(key) {
				n++
			}
			return nil
		}); err != nil {
			return err
		}
		if n >= maxSubscriptions {
			return fmt.Errorf("%w: there are %d, the most that there can be", errs.ErrSubscription, n)
		}
		if err := env.SetJSON(tx, format.SubscriptionKey(d.Name), &d); err != nil {
			return err
		}
		return setProgress(tx, &d, &Progress{Position: position, Base: base, Worker: first})
	})
}

// firstWorker draws the number below that of the first worker of a new subscription. It is not that of a subscription of the same name
// that was dropped, whose worker may still acknowledge. It has 48 bits, which programs that read JSON can represent.
func (s *Store) firstWorker() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.env.Random(), b[2:]); err != nil {
		return 0, fmt.Errorf("random bytes: %w", err)
	}
	return binary.BigEndian.Uint64(b[:]), nil
}

// change edits a subscription in a transaction with fn. It then ends the worker, with
// reason as its error.
func (s *Store) change(ctx context.Context, name, reason string, fn func(tx storage.Tx, d *Definition, p *Progress) error) error {
	err := s.update(ctx, func(tx storage.Tx) error {
		d, p, err := load(tx, name)
		if err != nil {
			return err
		}
		p.Worker++
		if err := fn(tx, &d, &p); err != nil {
			return err
		}
		s.dismiss(tx, name)
		return setProgress(tx, &d, &p)
	})
	if err == nil {
		s.end(name, reason)
	}
	return err
}

// Disable disables a subscription, or enables it again. A disabled one has no worker, and
// the deletions that it would need are not kept.
func (s *Store) Disable(ctx context.Context, name string, disabled bool) error {
	return s.change(ctx, name, "it was disabled", func(_ storage.Tx, _ *Definition, p *Progress) error {
		p.Disabled = disabled
		return nil
	})
}

// Reset sets a subscription back to the token since, and deletes the records of its
// failures.
func (s *Store) Reset(ctx context.Context, name, since string) error {
	position, base, err := s.feeds.Resolve(ctx, since)
	if err != nil {
		return err
	}
	return s.change(ctx, name, "it was reset", func(tx storage.Tx, _ *Definition, p *Progress) error {
		p.Position, p.Base = position, base
		return each(tx, format.SubscriptionFailureKey(name, ""), func(key, _ []byte) error {
			tx.Delete(append([]byte(nil), key...))
			return nil
		})
	})
}

// Drop deletes a subscription and all of its records.
func (s *Store) Drop(ctx context.Context, name string) error {
	err := s.update(ctx, func(tx storage.Tx) error {
		if _, _, err := load(tx, name); err != nil {
			return err
		}
		horizon.ForgetFloor(tx, format.SubscriptionFloor+name)
		s.dismiss(tx, name)
		return each(tx, format.AppendKey(nil, format.SpaceSubscription, name), func(key, _ []byte) error {
			tx.Delete(append([]byte(nil), key...))
			return nil
		})
	})
	if err == nil {
		s.end(name, "it was dropped")
	}
	return err
}

// Retry makes failed documents due at once, with no failures counted, dead ones included:
// those with these folded IDs, or all if there are none. It returns their number.
func (s *Store) Retry(ctx context.Context, name string, folded []string) (n int, err error) {
	wanted := make(map[string]bool, len(folded))
	for _, id := range folded {
		wanted[id] = true
	}
	err = s.change(ctx, name, "its failures were changed", func(tx storage.Tx, _ *Definition, _ *Progress) error {
		n = 0
		all, err := failures(tx, name)
		for _, f := range all {
			id := s.env.Rules.Fold(f.ID)
			if len(folded) > 0 && !wanted[id] {
				continue
			}
			n++
			f.Failures, f.Dead, f.Due = 0, false, time.Time{}
			if err := env.SetJSON(tx, format.SubscriptionFailureKey(name, id), &f); err != nil {
				return err
			}
		}
		return err
	})
	return n, err
}

// Get returns the state of a subscription.
func (s *Store) Get(name string) (Info, error) {
	snapshot := s.env.Engine.Snapshot()
	newest, mark, err := s.feeds.NewestIn(snapshot)
	info := Info{}
	if err == nil {
		info, err = s.info(snapshot, name, newest, mark)
	}
	return info, errs.First(err, snapshot.Close())
}

// info returns the state of a subscription in the snapshot r. newest is the etag of the
// newest change in it, and mark the etag up to which deletions may be missing.
func (s *Store) info(r storage.Reader, name string, newest, mark uint64) (i Info, err error) {
	if i.Definition, i.Progress, err = load(r, name); err != nil {
		return i, err
	}
	failed, err := failures(r, name)
	if err != nil {
		return i, err
	}
	for _, f := range failed {
		if f.Dead {
			i.Dead++
		} else {
			i.Failing++
		}
	}
	i.Newest, i.Gone = newest, i.Deletions && mark > max(i.Position, i.Base)
	s.mu.Lock()
	defer s.mu.Unlock()
	i.Working = s.slots[name] != nil && s.slots[name].worker != nil
	return i, nil
}

// List returns all subscriptions, in the order of their names.
func (s *Store) List() (all []Info, err error) {
	snapshot := s.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	newest, mark, err := s.feeds.NewestIn(snapshot)
	if err != nil {
		return nil, err
	}
	var names []string
	err = each(snapshot, []byte{format.SpaceSubscription}, func(key, value []byte) error {
		if !format.IsSubscriptionDefinition(key) {
			return nil
		}
		names = append(names, string(key[1:len(key)-2]))
		return nil
	})
	for _, name := range names {
		info, infoErr := s.info(snapshot, name, newest, mark)
		err = errs.First(err, infoErr)
		all = append(all, info)
	}
	return all, err
}

// Failures returns the documents of a subscription that have failed.
func (s *Store) Failures(name string) (all []Failure, err error) {
	snapshot := s.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	if _, _, err := load(snapshot, name); err != nil {
		return nil, err
	}
	return failures(snapshot, name)
}
