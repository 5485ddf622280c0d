package indexer

import (
	"context"
	"errors"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
)

// TrailKeys is how many deleted keys make a trail long: a query takes 3 ms to pass them. A variable for tests.
var TrailKeys = 4096

// TrailPause is the shortest time between two compactions of trails. A variable for tests.
var TrailPause = time.Second

// Bounds of the time between two compactions of trails.
const (
	// trailRest is the pause after a compaction, as a multiple of its duration: compactions take a twentieth of the time.
	trailRest = 19

	// longestTrailPause bounds every pause. It is reached when compactions do not help because an open snapshot makes the engine keep the deleted keys.
	longestTrailPause = time.Minute
)

// trails are the trails of indexes that the engine is to compact: see catalog.Trail. One compaction runs at a time, on a goroutine of its own. The map belongs to the
// settler's worker.
type trails struct {
	found map[uint32]catalog.Trail // the long ones, by the number of the index
	busy  chan struct{}            // has an element while a compaction waits or runs

	// Guarded by busy.
	parts uint64        // how many had been settled at the last compaction
	pause time.Duration // the shortest until the next one
	next  time.Time     // when it may begin
}

func newTrails() trails {
	return trails{found: make(map[uint32]catalog.Trail), busy: make(chan struct{}, 1)}
}

// saw notes the trail of an index that was read.
func (t *trails) saw(number uint32, trail catalog.Trail) {
	switch {
	case trail.Lo == nil: // it was not read
	case trail.Deleted >= TrailKeys:
		t.found[number] = trail
	default:
		delete(t.found, number)
	}
}

// compactTrails starts a compaction of the long trails in the background, unless one is running. It is called when nothing is left to be settled. After the
// compaction the settler looks again.
func (s *settler) compactTrails() {
	t := &s.trails
	if len(t.found) == 0 {
		return
	}
	select {
	case t.busy <- struct{}{}:
	default:
		return // which wakes the settler when it ends
	}
	if t.pause = min(2*t.pause, longestTrailPause); t.pause == 0 || s.parts != t.parts {
		t.pause, t.parts = TrailPause, s.parts
	}
	var all []catalog.Trail
	for _, ix := range s.in.indexes.Load().All {
		if trail, is := t.found[ix.Number]; is {
			all = append(all, trail)
		}
	}
	clear(t.found)
	rest := time.Until(t.next)
	s.looks.Go(func() {
		defer func() { <-t.busy; s.wake() }()
		ctx := s.looks.Context()
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return
		}
		begun := time.Now()
		if err := s.compact(ctx, all); err != nil && ctx.Err() == nil && !env.IsOfEngine(err) {
			s.in.env.Warn("jay: compacting what settled documents left in an index", err)
		}
		t.next = time.Now().Add(max(t.pause, min(trailRest*time.Since(begun), longestTrailPause)))
	})
}

// compact compacts ranges of keys.
func (s *settler) compact(ctx context.Context, all []catalog.Trail) error {
	if err := s.in.env.Room.Wait(ctx); err != nil {
		return err
	}
	if err := s.in.env.Enter(); err != nil {
		return err
	}
	defer s.in.env.Exit()
	var errs []error
	for _, trail := range all {
		errs = append(errs, s.in.env.Engine.Compact(ctx, trail.Lo, trail.Hi))
	}
	return errors.Join(errs...)
}
