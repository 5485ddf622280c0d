package lsm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// compactionBytes is about how many bytes of tables a piece of a compaction merges.
// A caller of Compact, and Close, wait for one piece at most.
const compactionBytes = 256 << 20

// compactor merges tables on request, a piece of the key space at a time.
//
// Pebble never gets a context that can end while Pebble is open: a manual compaction
// that is cancelled may already be picked, and running it then panics, on a goroutine of
// Pebble's (DB.runPickedCompaction), which ends the process. The same happens when
// one of several parts of a call of DB.Compact fails, and so each call has one part
// only, without parallelize.
type compactor struct {
	run        func(ctx context.Context, lo, hi []byte) error // Pebble's Compact; replaced by tests
	metrics    func() *pebble.Metrics
	pieceBytes uint64
	turn       chan struct{}   // has an element while a piece is merged
	ctx        context.Context // of all calls of run
	end        func()          // ends ctx, once Pebble has ended: a call that still waits is garbage then
}

func newCompactor(run func(ctx context.Context, lo, hi []byte) error, metrics func() *pebble.Metrics) compactor {
	c := compactor{run: run, metrics: metrics, pieceBytes: compactionBytes, turn: make(chan struct{}, 1)}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// Compact implements storage.Engine. Pebble merges each level into the next, in one
// piece of the key space after the other, and then drops what is deleted in the last one.
func (e *Engine) Compact(ctx context.Context, lo, hi []byte) error {
	if e.readOnly {
		return storage.ErrReadOnly
	}
	// Pebble keeps what a view shows. Those of commits that are not durable are needed, and unused ones wait for others.
	if err := e.Sync(ctx); err != nil {
		return err
	}
	e.durability.closeUnused(1)
	if len(lo) == 0 {
		lo = []byte{0}
	}
	if hi == nil {
		hi = bytes.Repeat([]byte{0xff}, 64) // above all keys
	}
	pieces, err := e.compactionPieces(keyRange{lo, hi})
	if err != nil {
		return err
	}
	defer e.states.renew() // they hold tables that are not needed any more
	for _, p := range pieces {
		if err := e.compactPiece(ctx, p.lo, p.hi); err != nil {
			return err
		}
	}
	if err := e.compactor.awaitElisions(ctx, e.failed); err != nil {
		return err
	}
	if e.failure.Load() != nil {
		return e.failedError()
	}
	return nil
}

// keyRange is a range of keys, both ends included.
type keyRange struct{ lo, hi []byte }

// compactionPieces divides a part of the key space where tables of the largest level end, so that
// few tables are merged in two pieces.
func (e *Engine) compactionPieces(of keyRange) ([]keyRange, error) {
	levels, err := e.db.SSTables()
	if err != nil {
		return nil, err
	}
	size := func(tables []pebble.SSTableInfo) (n uint64) {
		for _, t := range tables {
			n += t.Size
		}
		return n
	}
	largest := slices.MaxFunc(levels[1:], func(a, b []pebble.SSTableInfo) int { return cmp.Compare(size(a), size(b)) })

	var pieces []keyRange
	lo, bytesOf := of.lo, uint64(0)
	for i, t := range largest {
		if bytes.Compare(t.Largest.UserKey, lo) < 0 || bytes.Compare(t.Largest.UserKey, of.hi) >= 0 {
			continue
		}
		if bytesOf += t.Size; bytesOf >= e.compactor.pieceBytes && i+1 < len(largest) {
			hi := bytes.Clone(t.Largest.UserKey)
			pieces = append(pieces, keyRange{lo, hi})
			lo, bytesOf = append(bytes.Clone(hi), 0), 0
		}
	}
	return append(pieces, keyRange{lo, of.hi}), nil
}

// compactPiece merges the tables that overlap with [lo, hi] when it is its turn. If
// ctx ends first, or the engine fails, it returns at once, and what it has begun goes on:
// the next piece, and Close, wait for it.
func (e *Engine) compactPiece(ctx context.Context, lo, hi []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case e.compactor.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.failed:
		return e.failedError()
	}
	if e.failure.Load() != nil {
		<-e.compactor.turn
		return e.failedError()
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-e.compactor.turn }()
		done <- e.protect(func() error { return e.compactor.run(e.compactor.ctx, lo, hi) })
	}()
	select {
	case err := <-done:
		if err != nil && e.failure.Load() != nil {
			return e.failedError()
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.abandoned: // Pebble retries for ever what fails
		return e.failedError()
	}
}

// failedError returns storage.ErrFailed with its cause. The engine must have failed.
func (e *Engine) failedError() error {
	return fmt.Errorf("%w: %w", storage.ErrFailed, *e.failure.Load())
}

// await returns when no piece is being merged, or the engine has failed.
func (c *compactor) await(failed <-chan struct{}) {
	select {
	case c.turn <- struct{}{}:
		<-c.turn
	case <-failed:
	}
}

// elisionPause is how long awaitElisions waits for the next table of the last level to be
// rewritten, while other compactions go on.
const elisionPause = 5 * time.Second

// awaitElisions returns when Pebble has nothing left to compact, or the engine has failed. A merge
// of levels leaves the last level as it is, and with it the deletions that a snapshot kept there;
// once the snapshot is gone, Pebble drops them by itself, a table at a time. While others write
// there may always be something to compact: then it returns when no such table has been dropped for
// elisionPause.
func (c *compactor) awaitElisions(ctx context.Context, failed <-chan struct{}) error {
	elisions, last := int64(-1), time.Now()
	for quiet := 0; quiet < 3; { // between two compactions there is a moment without one
		m := c.metrics()
		if m.Compact.NumInProgress == 0 && m.Table.InitialStatsCollectionComplete && m.Table.PendingStatsCollectionCount == 0 {
			quiet++
		} else {
			quiet = 0
		}
		if n := m.Compact.ElisionOnlyCount; n != elisions {
			elisions, last = n, time.Now()
		} else if time.Since(last) > elisionPause {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-failed:
			return nil
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}
