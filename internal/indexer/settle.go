package indexer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// OnSettle, if it is set, is called before each commit that settles a part of an index, outside of the gate and with
// the context that Close ends. A variable for tests.
var OnSettle func(ctx context.Context)

// SettlePause is how long the settler waits after the engine was away. A variable for tests.
var SettlePause = time.Second

// SettleLook is how often a process looks whether others that have the store open have written what is to be settled, and whether the one that
// settles is gone. A variable for tests.
var SettleLook = time.Second

// settling is the work of the settler: see package leases.
const settling = "settling"

// mostStale bounds how much longer the settler rests after writers have been quicker: twice as long each time.
const mostStale = 6

// settler does the work in the background of indexes whose kinds have some: see catalog.Settler. Open, and each commit
// into such an index, wake it. Of each of its parts it reads outside of transactions, and commits it without
// waiting for the disk: a crash undoes what is not synced yet, and the work is done again. It works for at most half of the time, for a
// quarter while writers wait for the disk, and less while they change what it has read; all of the time while its work presses: see catalog.Presser.
// Of several processes that have a store open one settles, whoever has written: otherwise each would do most of it in vain.
type settler struct {
	in     *Indexer
	worker *background.Worker
	looks  *background.Group // in which a process looks for work of others, and the engine compacts; who waits for the worker does not wait for them
	paced  storage.Paced     // nil if the engine does not know who waits
	off    bool              // for tests

	// Of the worker.
	last     uint32          // the number of the index that was settled last
	broken   map[uint32]bool // indexes that were given up, until the database is opened again
	stale    int             // parts in a row that writers have overtaken
	unsynced bool            // what was settled is perhaps not on disk
	others   time.Time       // until then another process settles, as far as is known
	pressure catalog.Pressure
	parts    uint64 // that were settled
	trails   trails

	throttle throttle
}

func newSettler(in *Indexer) *settler {
	s := &settler{in: in, off: knobs.NoSettler, looks: background.NewGroup(), broken: make(map[uint32]bool), throttle: throttle{now: time.Now}, trails: newTrails()}
	s.worker = background.NewWorker(s.step, func(err error) { in.env.Warn("jay: settling indexes", err) })
	s.paced, _ = in.env.Engine.(storage.Paced)
	return s
}

// wake has the settler look for work. Nothing is done in a database that is only read, as nothing is written there.
func (s *settler) wake() {
	if !s.off {
		s.worker.Wake()
	}
}

// written is write.Writer.Unsettled.
func (s *settler) written(ctx context.Context, throttled int) {
	s.wake()
	if throttled > 0 {
		s.throttle.wait(ctx, s.worker.Context().Done(), throttled)
	}
}

// resume wakes the settler if an index has work in the background, and has it look for work of other processes.
func (s *settler) resume() {
	if s.in.env.Works != nil && !s.off {
		s.looks.Every(SettleLook, s.wakeForWork)
	}
	s.wakeForWork()
}

// stop ends the work, and waits for what runs.
func (s *settler) stop() {
	s.looks.Stop()
	s.worker.Stop()
}

// wakeForWork wakes the settler if an index has work in the background.
func (s *settler) wakeForWork() {
	for _, ix := range s.in.indexes.Load().All {
		if ix.Settler != nil {
			s.wake()
			return
		}
	}
}

// step settles a part of one index, and reports whether there may be more. An error is one after which the next commit may wake it.
func (s *settler) step(ctx context.Context) (more bool, err error) {
	begun := time.Now()
	stale := s.stale
	mine, err := s.isMine(ctx, begun)
	if !mine && err == nil {
		return false, nil
	}
	if err == nil {
		more, err = s.some(ctx)
	}
	if err == nil && !more {
		if err = s.sync(ctx); err == nil {
			s.compactTrails()
		}
	}
	rests := 0
	switch {
	case errors.Is(err, errs.ErrLeaseLost), errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrSnapshotExpired), errors.Is(err, storage.ErrConflict):
		begun, rests, more, err = time.Now().Add(-SettlePause), 1, true, nil
	case err != nil || !more:
		return more, err
	case s.stale > stale:
		rests = 1<<min(s.stale, mostStale) - 1
	case s.pressure.Presses:
		s.worker.Hurry()
	case s.paced != nil && s.paced.SyncsAwaited() > 0:
		rests = 2
	}
	for range rests {
		if !s.worker.Rest(begun) {
			return false, nil
		}
	}
	return more, err
}

// isMine reports whether this process settles. If another one does, that is asked twice in a SettleLook at most, however often this process writes.
func (s *settler) isMine(ctx context.Context, now time.Time) (mine bool, err error) {
	works := s.in.env.Works
	if works == nil {
		return true, nil
	}
	if now.Before(s.others) {
		return false, nil
	}
	if mine, err = works.Do(ctx, settling); err == nil && !mine {
		s.others = now.Add(SettleLook / 2)
	}
	return mine, err
}

// sync waits until all that was settled is on disk. Queries read what is there, and if no writer waits for the disk afterwards, nobody else
// would bring it there.
func (s *settler) sync(ctx context.Context) error {
	if !s.unsynced {
		return nil
	}
	if err := s.in.env.Enter(); err != nil {
		return err
	}
	defer s.in.env.Exit()
	if err := s.in.env.Engine.Sync(ctx); err != nil {
		return err
	}
	s.unsynced = false
	return nil
}

// some settles a part of the next index that has one, after the one that was settled last.
func (s *settler) some(ctx context.Context) (more bool, err error) {
	all := s.in.indexes.Load().All
	first := 0
	for first < len(all) && all[first].Number <= s.last {
		first++
	}
	for i := range all {
		ix := all[(first+i)%len(all)]
		if ix.Settler == nil || ix.Info.State == index.Dropping || s.broken[ix.Number] {
			continue
		}
		found := false
		err := guard(fmt.Sprintf("index %q of %s", ix.Info.Name, ix.Info.Collection), func() (err error) {
			found, err = s.part(ctx, ix)
			return err
		})
		switch {
		case err == nil && !found:
			continue
		case err == nil:
			s.last = ix.Number
			return true, nil
		case ctx.Err() != nil || env.IsOfEngine(err) || errors.Is(err, storage.ErrReadOnly):
			return false, err
		}
		s.broken[ix.Number] = true
		s.in.env.Warn(fmt.Sprintf("jay: index %q of %s is not settled any more until the database is opened again; its answers stay exact", ix.Info.Name, ix.Info.Collection), err)
	}
	return false, nil
}

// part settles a part of an index, and reports whether it has found one.
func (s *settler) part(ctx context.Context, ix *catalog.Index) (found bool, err error) {
	if err := s.in.env.Room.Wait(ctx); err != nil {
		return false, err
	}
	begun := time.Now()
	settle, err := s.read(ctx, ix)
	ix.Throttled.Store(s.pressure.Slow > 0)
	if settle == nil || err != nil {
		return false, err
	}
	if OnSettle != nil {
		OnSettle(ctx)
	}
	if err := s.in.env.Enter(); err != nil {
		return false, err
	}
	defer s.in.env.Exit()
	settled := false
	err = s.in.writer.Background(ctx, false, func(t *write.Txn) (err error) {
		if settled = !s.in.isKept(ix.Number); settled {
			return nil // dropped meanwhile, perhaps by another process: no key of it may be made
		}
		settled, err = settle(t.Tx)
		return err
	})
	switch {
	case err != nil:
		s.stale = 0
	case settled:
		s.stale, s.unsynced = 0, true
		s.parts++
		s.pace(begun)
	default:
		s.stale++
	}
	return true, err
}

// pace has writers take as long for each document as the part that was begun then, if the index has become too far behind them.
func (s *settler) pace(begun time.Time) {
	if s.pressure.Slow == 0 {
		s.throttle.set(0)
	} else if n := s.pressure.Documents; n > 0 {
		s.throttle.set(time.Duration(float64(time.Since(begun)) * s.pressure.Slow / float64(n)))
	}
}

// read asks the kind of an index for a part of its work. The newest commits are read, durable or not: a part that was settled
// is not found again.
func (s *settler) read(ctx context.Context, ix *catalog.Index) (settle catalog.Settling, err error) {
	if err := s.in.env.Enter(); err != nil {
		return nil, err
	}
	defer s.in.env.Exit()
	moment := s.in.env.Engine.Latest()
	defer func() { err = errs.First(err, moment.Close()) }()
	settle, err = ix.Settler.Settle(ctx, moment)
	s.pressure = catalog.Pressure{}
	if p, is := ix.Settler.(catalog.Presser); is && err == nil {
		s.pressure = p.Pressure()
		s.trails.saw(ix.Number, s.pressure.Trail)
	}
	return settle, err
}

// Settle does a part of the work in the background now, and reports whether there may be more. The worker must not run.
func (in *Indexer) Settle(ctx context.Context) (more bool, err error) { return in.settler.some(ctx) }

// WaitSettled returns when the worker has nothing to do.
func (in *Indexer) WaitSettled() { in.settler.worker.Wait() }
