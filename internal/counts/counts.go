// Package counts keeps how many documents each collection has.
//
// Every transaction adds to the numbers of the collections whose documents it makes or
// deletes (storage.Tx.Add), so that each snapshot has the numbers of its documents, and
// transactions do not meet there. A database that was written before there were
// numbers is counted once, in the background and in the order of IDs: a transaction
// adds its change if the document is counted already, that is, if its ID is not above
// the one that the count has reached. See docs/format.md.
package counts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Counts knows whether the documents of an open database are counted. It is safe for
// concurrent use.
type Counts struct {
	env   *env.Env
	ready atomic.Bool // all documents are counted: see IsReady

	cancel context.CancelFunc // of the worker; nil for none
	worker sync.WaitGroup
}

// Open finds how far the documents are counted. With again, or if they never were, the
// count begins with the first one.
func Open(e *env.Env, again bool) (*Counts, error) {
	c := &Counts{env: e}
	state, found, err := read(e.Engine)
	if err != nil && !again { // a damaged record is written again
		return nil, err
	}
	if !found || again {
		return c, c.begin()
	}
	c.ready.Store(state.All)
	return c, nil
}

// begin removes all numbers.
func (c *Counts) begin() error {
	return c.env.Engine.Update(context.Background(), true, func(tx storage.Tx) (err error) {
		it, err := tx.Iterate(format.CountBounds[0], format.CountBounds[1])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		for ok := it.First(); ok; ok = it.Next() {
			tx.Delete(it.Key())
		}
		tx.Set(stateKey(), format.CountState{}.Append(nil), nil)
		return it.Error()
	})
}

// Finish stages that all documents of a new database are counted.
func Finish(tx storage.Tx) { tx.Set(stateKey(), format.CountState{All: true}.Append(nil), nil) }

func stateKey() []byte { return format.AppendKey(nil, format.SpaceMeta, format.CountsName) }

// getter is a storage.Reader or a storage.Tx.
type getter interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
}

// read returns how far the documents are counted, as r sees it.
func read(r getter) (state format.CountState, found bool, err error) {
	value, closer, err := r.Get(stateKey())
	if err == storage.ErrNotFound {
		return state, false, nil
	}
	if err != nil {
		return state, false, err
	}
	state, err = format.DecodeCountState(value)
	return state, true, errors.Join(err, closer.Close())
}

// IsReady reports whether all documents are counted: then a transaction need not read
// the state. As this process is the only writer, memory has it; an engine that is
// shared must be asked in the transaction until it says so.
func (c *Counts) IsReady() bool { return c.ready.Load() }

// State returns how far the documents are counted, as a transaction sees it.
func (c *Counts) State(tx storage.Tx) (format.CountState, error) {
	if c.IsReady() {
		return format.CountState{All: true}, nil
	}
	state, _, err := read(tx)
	return state, err
}

// Limits of one step of Build, which other writes wait for. Variables for tests.
var (
	StepDocuments = 4096
	StepBytes     = 1 << 20
)

// Build counts the documents that are not counted yet. It ends with ctx, and goes on
// where it was when it is called again, in this process or in another.
func (c *Counts) Build(ctx context.Context) error {
	for !c.IsReady() {
		all := false
		err := c.env.Engine.Update(ctx, c.env.Synced, func(tx storage.Tx) (err error) {
			all, err = step(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("count the documents: %w", err)
		}
		c.ready.Store(all)
	}
	return nil
}

// step counts the next documents, and reports whether those were the last.
func step(tx storage.Tx) (all bool, err error) {
	state, _, err := read(tx)
	if err != nil || state.All {
		return state.All, err
	}
	lo := []byte{format.SpaceDocument}
	if state.UpTo != "" {
		lo = append(append(lo, state.UpTo...), 1)
	}
	it, err := tx.Iterate(lo, []byte{format.SpaceDocument + 1})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()

	counted := make(map[string]int64) // by name as written
	bytes := 0
	ok := it.First()
	for n := 0; ok && n < StepDocuments && bytes < StepBytes; n++ {
		h, _, err := metadata.Decode(it.Value())
		id := format.DocumentID(it.Key())
		if err != nil {
			return false, fmt.Errorf("document %q: %w", id, err)
		}
		counted[string(h.Collection)]++
		bytes += len(it.Value())
		state.UpTo = string(id)
		ok = it.Next()
	}
	if err := it.Error(); err != nil {
		return false, err
	}
	for name, n := range counted {
		tx.Add(format.CountKey(nil, format.CollectionKey(name)), n)
	}
	if !ok {
		Finish(tx)
		return true, nil
	}
	tx.Set(stateKey(), state.Append(nil), nil)
	return false, nil
}

// ErrNotReady means that a snapshot has no complete numbers.
var ErrNotReady = errors.New("not all documents are counted yet")

// All returns how many documents each collection has, by folded name, or ErrNotReady.
// Collections without documents are left out.
func All(r storage.Reader) (map[string]int64, error) {
	if err := checkReady(r); err != nil {
		return nil, err
	}
	it, err := r.Iterate(format.CountBounds[0], format.CountBounds[1])
	if err != nil {
		return nil, err
	}
	all := make(map[string]int64)
	for ok := it.First(); ok; ok = it.Next() {
		collection, n, err := format.DecodeCount(it.Key(), it.Value())
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		all[collection] = n
	}
	return all, errs.First(it.Error(), it.Close())
}

// Of returns how many documents a collection has, or ErrNotReady.
func Of(r storage.Reader, foldedCollection string) (int64, error) {
	if err := checkReady(r); err != nil {
		return 0, err
	}
	key := format.CountKey(nil, foldedCollection)
	value, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, n, err := format.DecodeCount(key, value)
	return n, errors.Join(err, closer.Close())
}

func checkReady(r storage.Reader) error {
	state, _, err := read(r)
	if err == nil && !state.All {
		err = ErrNotReady
	}
	return err
}

// Resume counts in the background what is not counted yet. Stop must follow.
func (c *Counts) Resume() {
	if c.IsReady() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.worker.Go(func() {
		err := c.Build(ctx)
		if err != nil && ctx.Err() == nil && c.env.Logger != nil {
			c.env.Logger.Warn("jay: collections are counted by reading all documents, until the database is opened again", "err", err)
		}
	})
}

// Wait returns when the counting has ended.
func (c *Counts) Wait() { c.worker.Wait() }

// Stop ends the counting.
func (c *Counts) Stop() {
	if c.cancel != nil {
		c.cancel()
	}
	c.worker.Wait()
}
