package workload

import (
	"errors"
	"os"
	"time"
)

// opening opens a copy of the files that the loaded database left when it was
// closed or its process was killed, and reads one document. It needs a copy
// because Pebble's Close does not flush memtables: every open of the same files
// but the first would be fast.
func opening(r *Run) error {
	if err := r.restore(); err != nil {
		return err
	}
	if err := r.openTimed(); err != nil {
		return err
	}
	if err := r.restore(); err != nil {
		return err
	}
	if r.maker.OpenBare == nil {
		return nil
	}
	if err := r.bare(); err != nil {
		return err
	}
	return r.restore() // the check gets what was left, too
}

// openTimed opens the engine, on the clock.
func (r *Run) openTimed() error {
	start := time.Now()
	if err := r.open(); err != nil {
		return err
	}
	key := newKey(r.w.Docs / 2)
	if err := r.get(key); err != nil {
		return err
	}
	took := time.Since(start)
	r.result.Nanos += took
	r.result.Ops = 1
	r.latency.Record(took)
	return nil
}

// bare times what raw Pebble takes to open the same files.
func (r *Run) bare() error {
	start := time.Now()
	closeBare, err := r.maker.OpenBare(r.w.Settings.Dir, r.w.Settings.CacheBytes)
	if err != nil {
		return err
	}
	r.extra(ExtraBare, micros(time.Since(start)))
	return closeBare()
}

// restore makes the data directory a fresh copy of the template.
func (r *Run) restore() error {
	err := errors.Join(r.close(), os.RemoveAll(r.w.Settings.Dir))
	if err != nil {
		return err
	}
	return copyDir(r.w.Settings.Dir, r.template())
}
