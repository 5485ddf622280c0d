package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage"
)

// Finish ends the call, which ended with err: what it has committed is on disk, or the
// error is an ErrUnknownOutcome, too.
func (l *Lazy) Finish(ctx context.Context, err error) error {
	if errors.Is(err, storage.ErrUnknownOutcome) {
		return err // of a disk that failed
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lazyGrace)
		defer cancel()
	}
	unsure := l.sync(ctx)
	if err != nil && unsure != nil {
		return fmt.Errorf("%w: %w", err, unsure)
	}
	return errs.First(err, unsure)
}

// sync waits until all batches are on disk.
func (l *Lazy) sync(ctx context.Context) error {
	if l.batches == 0 || !l.db.Env.Synced {
		return nil
	}
	if err := l.db.Env.Enter(); err != nil {
		return err // Close makes them durable
	}
	defer l.db.Env.Exit()
	l.db.Env.OwnSyncs.Add(1) // other bulk work need not give way to this
	defer l.db.Env.OwnSyncs.Add(-1)
	err := l.db.Env.Engine.Sync(ctx)
	if err == nil {
		l.batches, l.bytes = 0, 0
	}
	return err
}

// Committed counts a batch, and waits for the disk if there are enough, or if others wait.
// If ctx ends meanwhile, it is for Finish to say what is on disk.
func (l *Lazy) Committed(ctx context.Context, bytes int) error {
	l.batches++
	l.bytes += bytes
	l.pace.look(l.db.Env)
	if l.batches < knobs.LazyBatches && l.bytes < lazyBytes && !l.pace.slow() {
		return nil
	}
	err := l.sync(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// NewLazy returns the commits of a call that begins now. Finish must follow.
func NewLazy(db *core.Database) *Lazy {
	l := &Lazy{db: db}
	l.pace.begin(db, time.Now())
	return l
}

// Lazy are the commits of a call that works in batches: durable when the call
// returns, and not each for itself. One sync takes as long as many batches.
//
// While other callers wait for the disk, each batch waits for it, too: it then is at most
// one batch that lies before their writes.
type Lazy struct {
	db             *core.Database
	pace           pace
	batches, bytes int // committed, and not synced
}

// lazyGrace is how long a call whose context has ended waits for the disk, so that what it
// reports as done is done for good.
const lazyGrace = time.Second

// lazyBytes is how many bytes the batches of one call may commit before it waits for the disk;
// their number is knobs.LazyBatches. The bytes bound how long the durable write of another caller
// waits, which needs the same sync.
const lazyBytes = 4 << 20
