package subs

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/leases"
	"github.com/jaydb/jay/storage"
)

// workOf returns the name under which the processes on one store share out a subscription.
func workOf(name string) string { return "subscription/" + name }

// claim makes the worker of this process that of all processes on the store. It waits as mode says. From then on the worker
// ends when another process takes the subscription.
func (w *Worker) claim(ctx context.Context, mode InUse) error {
	pause := time.NewTicker(w.store.env.Works.Period() / leases.Patience)
	defer pause.Stop()
	for {
		mine, err := w.tryClaim(ctx, mode)
		switch {
		case err != nil:
			return err
		case mine:
			w.claimed = true
			go w.watch()
			return nil
		case mode == Fail:
			return fmt.Errorf("%w: %q, in another process", errs.ErrInUse, w.name)
		}
		select {
		case <-pause.C:
		case <-w.ctx.Done():
			return w.Err()
		}
	}
}

func (w *Worker) tryClaim(ctx context.Context, mode InUse) (mine bool, err error) {
	e := w.store.env
	if err := e.Enter(); err != nil {
		return false, err
	}
	defer e.Exit()
	if mode == Replace {
		err := e.Works.Seize(ctx, workOf(w.name))
		return err == nil, err
	}
	return e.Works.Do(ctx, workOf(w.name))
}

// keeps returns an ErrEnded, and ends the worker, if the subscription is no longer that of this process.
func (w *Worker) keeps() error {
	if !w.claimed {
		return nil
	}
	return w.endUnless(w.store.env.Works.Does(workOf(w.name)))
}

// checkNewest refuses the transaction of a worker that another one has replaced, of this process or another.
func (w *Worker) checkNewest(tx storage.Tx) error {
	if err := w.Err(); err != nil || !w.claimed {
		return err
	}
	return w.endUnless(w.store.env.Works.DoesIn(tx, workOf(w.name)))
}

// endUnless ends the worker with an ErrEnded, and returns it, unless the subscription is that of this process. It returns err, which says that this
// is not known.
func (w *Worker) endUnless(mine bool, err error) error {
	if err != nil || mine {
		return err
	}
	w.end(fmt.Errorf("%w: another process has taken it, or has changed the subscription", errs.ErrEnded))
	return w.Err()
}

// watch ends the worker soon after another process has taken the subscription, also while a batch is worked on.
func (w *Worker) watch() {
	tick := time.NewTicker(w.store.env.Works.Period() / leases.Patience)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return
		}
		e := w.store.env
		if e.Enter() != nil {
			continue // the store is away, or Close has begun and ends the worker
		}
		mine, err := e.Works.Does(workOf(w.name))
		e.Exit()
		_ = w.endUnless(mine, err) // asked again, if it is not known
	}
}

// unclaim gives the subscription back to the other processes.
func (w *Worker) unclaim() {
	e := w.store.env
	if e.Enter() != nil {
		return // Close gives back all works, and the end of the lease does
	}
	defer e.Exit()
	if err := e.Works.Leave(context.Background(), workOf(w.name)); err != nil {
		e.Warn("jay: giving back a subscription, which other processes get when this one is closed", err)
	}
}

// dismiss stages that the worker of a subscription, in whatever process, has it no longer.
func (s *Store) dismiss(tx storage.Tx, name string) {
	if s.env.Works != nil {
		leases.Dismiss(tx, workOf(name))
	}
}
