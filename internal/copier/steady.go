package copier

import (
	"errors"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// steady reads one moment of a store for as long as that takes. An engine that shows a moment for a short time only is asked for
// another snapshot, which shows the same, as nothing is committed meanwhile. It is not safe for concurrent use.
type steady struct {
	engine   storage.Engine
	name     string // of the store, as messages have it
	snapshot storage.Snapshot
	commit   uint64 // of the last commit that is shown; 0 for a store that only this engine can write to
}

// newSteady returns a steady of what an engine shows now. close must follow.
func newSteady(engine storage.Engine, name string) (*steady, error) {
	s := &steady{engine: engine, name: name, snapshot: engine.Snapshot()}
	var err error
	if s.commit, err = s.number(); err != nil {
		return nil, errs.First(err, s.close())
	}
	return s, nil
}

// number returns the number of the last commit that the snapshot shows.
func (s *steady) number() (uint64, error) {
	if !s.engine.Shared() {
		return 0, nil
	}
	if n, is := s.snapshot.(storage.Numbered); is {
		if number, known := n.CommitNumber(); known {
			return number, nil
		}
	}
	// A snapshot that could not be taken says so when it is read.
	_, closer, err := s.snapshot.Get(settingsKey)
	switch {
	case err == nil:
		err = closer.Close()
	case errors.Is(err, storage.ErrNotFound):
		err = nil
	}
	if err == nil {
		err = &Error{RuleUnwritten, s.name, "others may write to it, and its engine does not say whether they do", "copy a store that one process has for itself, or make a backup and restore it"}
	}
	return 0, err
}

// renew takes another snapshot, which must show the same.
func (s *steady) renew() error {
	if err := s.snapshot.Close(); err != nil {
		return err
	}
	s.snapshot = s.engine.Snapshot()
	commit, err := s.number()
	if err == nil && commit != s.commit {
		err = &Error{RuleUnwritten, s.name, "it was written to while it was copied", "stop every process that writes to it, remove what was made of the target, and copy again"}
	}
	return err
}

func (s *steady) close() error { return s.snapshot.Close() }

var (
	settingsKey = metaKey(format.SettingsName)
	markKey     = metaKey(format.RestoringName)
)

func metaKey(name string) []byte { return format.AppendKey(nil, format.SpaceMeta, name) }

// cursor walks over all keys of a steady.
type cursor struct {
	from *steady
	it   storage.Iterator // nil before the first key, and when a new snapshot is to be read
	last []byte           // the key on which it stands, or behind which it begins; nil before the first
	skip func(key []byte) bool
}

// fruitless is how many snapshots in turn may expire before one key of them was read.
const fruitless = 3

// next moves to the next key that is not skipped. It reports false at the end.
func (c *cursor) next() (bool, error) {
	expired := 0
	for {
		ok, err := c.step()
		switch {
		case errors.Is(err, storage.ErrSnapshotExpired) && expired < fruitless:
			expired++
			if err := errs.First(c.close(), c.from.renew()); err != nil {
				return false, err
			}
			continue
		case err != nil || !ok:
			return false, err
		}
		expired = 0
		c.last = append(c.last[:0], c.it.Key()...)
		if !c.skip(c.last) {
			return true, nil
		}
	}
}

// step moves to the key behind last.
func (c *cursor) step() (ok bool, err error) {
	if c.it != nil {
		ok = c.it.Next()
		return ok, c.it.Error()
	}
	lo := c.last
	if lo != nil {
		lo = append(append([]byte{}, lo...), 0)
	}
	if c.it, err = c.from.snapshot.Iterate(lo, nil); err != nil {
		return false, err
	}
	ok = c.it.First()
	return ok, c.it.Error()
}

// key and value return those on which it stands. They are valid until the next move.
func (c *cursor) key() []byte   { return c.last }
func (c *cursor) value() []byte { return c.it.Value() }

// close may be called several times.
func (c *cursor) close() (err error) {
	if c.it != nil {
		err, c.it = c.it.Close(), nil
	}
	return err
}
