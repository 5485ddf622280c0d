package revisions

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// LookInterval is the time between two looks at the clock, which may be set meanwhile. So
// it is also the shortest time between Open and the first pass. A variable for tests.
var LookInterval = time.Minute

// Bounds of the time between two passes of the retention. docs/limits.md has them.
const (
	leastPause = time.Minute
	mostPause  = 24 * time.Hour
	pauseShare = 10 // the pause is the shortest KeepFor divided by this
)

// Retention removes, in the background, revisions that are older than a rule's KeepFor,
// also those of documents that are no longer written. A pass walks over all revisions. The
// time between passes is a tenth of the shortest KeepFor, but at least a minute and at
// most a day. A pass rests as long as it works. Retention runs only while there is a rule
// with KeepFor.
//
// Keep is enforced by the writes themselves.
type Retention struct {
	env     *env.Env
	rules   *Current
	group   *background.Group
	running atomic.Bool
}

// NewRetention returns the retention of a database. It does nothing before Resume. The
// caller must call Stop.
func NewRetention(e *env.Env, rules *Current) *Retention {
	return &Retention{env: e, rules: rules, group: background.NewGroup()}
}

// Resume starts the worker if a rule has KeepFor. It is called at Open and after each
// change of the rules.
func (r *Retention) Resume() {
	if r.rules.Load().pause() > 0 && r.running.CompareAndSwap(false, true) {
		r.group.Go(r.work)
	}
}

// Stop ends the retention and waits for it.
func (r *Retention) Stop() { r.group.Stop() }

// pause returns the time between two passes, 0 if there is no rule with KeepFor.
func (r *Rules) pause() time.Duration {
	if r == nil || r.shortest == 0 {
		return 0
	}
	return min(max(r.shortest/pauseShare, leastPause), mostPause)
}

// leave reports that the worker ends. It returns false if a rule was added meanwhile and
// the worker must go on.
func (r *Retention) leave() bool {
	r.running.Store(false)
	return r.rules.Load().pause() == 0 || !r.running.CompareAndSwap(false, true)
}

// work makes a pass whenever it is time, until no rule needs one.
func (r *Retention) work() {
	ctx := r.group.Context()
	look := time.NewTicker(LookInterval)
	defer look.Stop()
	var next time.Time // when the next pass begins, by the user's clock
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		err := r.env.Refresh()
		pause := r.rules.Load().pause()
		if pause == 0 && r.leave() {
			return
		}
		var now time.Time
		if err == nil {
			now, err = r.env.Clock()
		}
		if err == nil && pause > 0 && (!now.Before(next) || next.Sub(now) > pause) { // too far ahead: the clock was set back
			next = now.Add(pause)
			var mine bool
			if mine, err = r.env.Does(ctx, "retention"); mine && err == nil {
				err = r.pass(ctx, now)
			}
		}
		if err != nil && ctx.Err() == nil {
			r.env.Warn("jay: removing revisions that are no longer kept", err)
		}
		if errors.Is(err, storage.ErrFailed) {
			return
		}
	}
}

// pass removes the revisions that are no longer kept at now.
func (r *Retention) pass(ctx context.Context, now time.Time) error {
	p := Purge{Retention: true, Aged: true, Rules: r.rules, Now: metadata.Ticks(now)}
	for after, again := "", true; again; {
		begun := time.Now()
		done, err := p.Step(ctx, r.env, after)
		if err != nil {
			return err
		}
		after, again = done.Next, done.Again
		if !r.group.Rest(begun) {
			return nil
		}
	}
	return nil
}
