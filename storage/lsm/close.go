package lsm

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// Close implements storage.Engine.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		go func() {
			e.closeErr = e.close()
			close(e.closed)
		}()
	})
	if stuck := e.Await(e.closed); stuck != nil {
		return stuck
	}
	return e.closeErr
}

// close closes the engine, however long that takes, and unlocks the directory
// when nothing of the engine can write to it any more.
func (e *Engine) close() error {
	close(e.quit)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-e.failed:
			e.freezeFS.freeze() // what is stalled goes on, and nothing reaches the disk
		case <-stop:
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- e.end() }()
	select {
	case err := <-ended:
		return e.unlock(err)
	case <-e.quiescent(stop):
		e.log.Warn("jay: a failed storage engine does not end, and is left behind", "dir", e.dir)
		e.controlFS.control.release()
		return e.lock.abandon()
	}
}

// end ends Pebble. After a failure it may never return, if Pebble waits for work
// that it has given up.
func (e *Engine) end() error {
	e.leaders.Wait()
	e.states.end()
	var unknown error
	if e.failure.Load() == nil && !e.readOnly {
		// An empty record that is synced makes all commits before it durable.
		if err := e.protect(func() error { return e.db.LogData(nil, pebble.Sync) }); err != nil {
			e.fail(err)
		}
		if failure := e.failure.Load(); failure != nil {
			unknown = fmt.Errorf("close: %w: %w", storage.ErrUnknownOutcome, *failure)
		}
	}
	e.compactor.await(e.failed)
	if e.failure.Load() == nil && !e.readOnly {
		// What cannot be merged now can be by the next Close.
		if err := e.protect(e.tidy); err != nil {
			e.log.Warn("jay: merging small tables", "dir", e.dir, "err", err)
		}
	}
	e.durability.end()
	e.reservation.stop()
	err := e.protect(e.db.Close)
	e.compactor.end()
	switch {
	case e.failure.Load() == nil && err == nil && !e.readOnly:
		err = e.controlFS.close(e.path)
	case e.failure.Load() != nil && err != nil:
		e.log.Warn("jay: closing a failed storage engine", "dir", e.dir, "err", err)
		err = nil // the failure has been returned before
	}
	return errors.Join(unknown, err)
}

// progressChecks is how often the progress of the disk is checked within
// Options.CloseTimeout.
const progressChecks = 20

var errStuck = errors.New("the disk does not answer")

// Await implements storage.Engine.
func (e *Engine) Await(done <-chan struct{}) error {
	tick := time.NewTicker(e.closeTimeout / progressChecks)
	defer tick.Stop()
	before, idle := uint64(0), 0
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		now, stuck := e.progress.stuck(before)
		if before = now; stuck || e.failure.Load() != nil {
			idle++
		} else {
			idle = 0
		}
		if idle < progressChecks {
			continue
		}
		e.fail(errStuck) // makes calls that wait for the disk return
		select {
		case <-done:
			return nil
		case <-time.After(abandonDelay + e.closeTimeout/progressChecks):
			return closeError(e.dir, fmt.Errorf("%w; it cannot be closed yet either: the directory stays locked until the disk answers or the process ends", storage.ErrFailed))
		}
	}
}

// quiescent returns a channel that is closed when no call of the engine, which has
// failed and is frozen, has been in the file system for half of
// Options.CloseTimeout. Pebble may then still wait for what will never happen, but
// does nothing to the disk.
func (e *Engine) quiescent(stop <-chan struct{}) <-chan struct{} {
	silent := make(chan struct{})
	go func() {
		tick := time.NewTicker(e.closeTimeout / progressChecks)
		defer tick.Stop()
		last, idle := uint64(0), 0
		for idle < progressChecks/2 {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			begun, ended := e.progress.begun.Load(), e.progress.ended.Load()
			if e.failure.Load() != nil && begun == ended && begun == last {
				idle++
			} else {
				last, idle = begun, 0
			}
		}
		close(silent)
	}()
	return silent
}
