package simulation_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jaydb/jay"
)

func flush(w *world) {
	if w.call(new(entry), nil, func() (func(), error) { return nil, w.db.Flush(ctx) }) {
		w.model.sync()
	}
}

func compact(w *world) {
	w.call(new(entry), nil, func() (func(), error) { return nil, w.db.Compact(ctx) })
}

// kept is a chain of backups, and what must be in it.
type kept struct {
	base    *kept // that the newest of them follows, as long as it can be followed again
	backups []*bytes.Buffer
	last    string
	state   state
}

func backUp(w *world) {
	var opts []jay.BackupOption
	next := &kept{state: maps.Clone(w.model.state)}
	if base := w.backup; base != nil && w.intn(2) == 0 {
		if base.base != nil && w.intn(3) == 0 {
			fmt.Fprint(w.log, "the newest one is lost. ")
			base = base.base
		}
		opts = append(opts, jay.BackupSince(base.last))
		next.backups, next.base = slices.Clone(base.backups), &kept{backups: base.backups, last: base.last}
	}
	var b bytes.Buffer
	done := w.call(new(entry), nil, func() (func(), error) {
		info, err := w.db.Backup(ctx, &b, opts...)
		if errors.Is(err, jay.ErrBackupBase) && w.passed { // the database keeps what is needed for the newest one
			fmt.Fprint(w.log, "the base is too old. ")
			w.backup, w.passed = nil, false
			return nil, nil
		}
		return func() {
			next.last = info.ID
			next.backups = append(next.backups, &b)
			w.backup, w.passed = next, false
			w.model.sync() // a backup has what is on disk
			fmt.Fprintf(w.log, "%d documents, %d in the chain. ", info.Documents, len(next.backups))
		}, err
	})
	if !done && len(opts) == 0 {
		w.passed = true
	} else if !done {
		w.backup.base = nil // the newest one may follow w.backup
	}
}

func restore(w *world) {
	if w.backup == nil {
		return
	}
	w.copies++
	to := fmt.Sprint("restored", w.copies)
	options := w.copyOptions()
	options.HiLoMode = jay.HiLo4
	var streams []io.Reader
	for _, b := range w.backup.backups {
		streams = append(streams, bytes.NewReader(b.Bytes()))
	}
	w.call(new(entry), nil, func() (func(), error) {
		_, err := jay.Restore(ctx, to, jay.RestoreOptions{CopyTag: "B", Options: options}, streams...)
		if err != nil {
			return nil, err
		}
		return nil, w.compare(to, options, w.backup.state)
	})
	w.discard(to)
}

func checkpoint(w *world) {
	w.copies++
	to := fmt.Sprint("checkpoint", w.copies)
	options := w.copyOptions()
	options.ReadOnly = true
	w.call(new(entry), nil, func() (func(), error) {
		if err := w.db.Checkpoint(ctx, to); err != nil {
			return nil, err
		}
		return nil, w.compare(to, options, w.model.state)
	})
	w.discard(to)
}

// discard removes a copy, unless the disk fails.
func (w *world) discard(dir string) {
	w.unknown = false // it was the outcome of a write of the copy
	if err := w.disk.RemoveAll(dir); !w.failed {
		w.must(err)
	}
}

// compare opens a copy of the database, and compares it with what must be in it.
func (w *world) compare(dir string, options *jay.Options, want state) error {
	db, err := jay.Open(dir, options)
	if err != nil {
		return err
	}
	want = maps.Clone(want)
	for key, d := range want { // a copy has other change vectors
		to := *d
		to.version, to.index = "", 0
		want[key] = &to
	}
	if !options.ReadOnly {
		if _, err := db.Sweep(ctx); err != nil {
			return errors.Join(err, db.Close())
		}
		w.expire(want)
	}
	difference := differ(want, w.read(db), nil)
	w.verify(db)
	if err := db.Close(); err != nil {
		return err
	}
	if difference != "" && (w.cut == nil || !w.cut.Happened()) {
		w.fail("the copy: %s", difference)
	}
	return nil
}
