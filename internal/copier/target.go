package copier

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage"
)

// Target is a store that is made the copy of a Source. It is not safe for concurrent use.
type Target struct {
	Mark    format.Copying // as it is in the store
	Resumed bool           // an unfinished copy goes on

	engine storage.Engine
	name   string
	source *Source
}

// OpenTarget looks whether a copy of a source can be made in the store of an engine, or goes on there, and changes nothing. copyTag is the tag
// that the copy is to get, or "". The name is that of messages. The engine stays the caller's.
func OpenTarget(engine storage.Engine, name string, source *Source, copyTag string) (*Target, error) {
	t := &Target{engine: engine, name: name, source: source}
	if source.renames && engine.Shared() {
		return nil, source.whole("a rename of a collection is not finished, and the target cannot finish it", "rename it to the end, or back")
	}
	snapshot := engine.Snapshot()
	found, err := t.find(snapshot)
	if err = errs.First(err, snapshot.Close()); err != nil {
		return nil, err
	}
	if found == nil {
		t.Mark = format.Copying{Database: source.Own.ID, NodeTag: source.Own.Tag, Etag: source.etag, Commit: source.steady.commit, CopyTag: copyTag}
		return t, nil
	}
	t.Mark, t.Resumed = *found, true
	return t, t.checkSame(copyTag)
}

// find returns the mark in a store, or nil if the store is empty.
func (t *Target) find(r storage.Reader) (*format.Copying, error) {
	mark, err := backup.IsRestoring(r)
	switch {
	case err != nil:
		return nil, err
	case mark == nil:
		return nil, t.checkEmpty(r)
	case mark.Copy == nil:
		return nil, &Error{RuleEmpty, t.name, "a restore into it was not finished", "remove it, or name another target"}
	}
	return mark.Copy, nil
}

func (t *Target) checkEmpty(r storage.Reader) error {
	if empty, err := env.IsEmpty(r); err != nil || empty {
		return err
	}
	return &Error{RuleEmpty, t.name, "there is a database in it", "name another target, or remove this one"}
}

// checkSame refuses to go on with a copy of another source, or of another state of it, or under another tag.
func (t *Target) checkSame(copyTag string) error {
	m, s := &t.Mark, t.source
	again := "remove the target, and copy again"
	switch {
	case m.Database != s.Own.ID || m.NodeTag != s.Own.Tag:
		return &Error{RuleSame, t.name, fmt.Sprintf("the unfinished copy in it is one of the database %s with the node tag %s, and the source is %s with %s", m.Database, m.NodeTag, s.Own.ID, s.Own.Tag), "name the source of that copy, or another target"}
	case m.CopyTag != copyTag:
		return &Error{RuleSame, t.name, fmt.Sprintf("the unfinished copy in it has the copy tag %q, and not %q", m.CopyTag, copyTag), "go on with that tag, or name another target"}
	case m.Etag != s.etag || m.Commit != s.steady.commit:
		return &Error{RuleUnwritten, s.steady.name, fmt.Sprintf("it was written to since the copy began: its etag is %d and was %d, its last commit %d and was %d", s.etag, m.Etag, s.steady.commit, m.Commit), again}
	}
	return nil
}

// Begin takes the target for this process, and marks it, durably, as one that is not whole. A process that made the copy before, and still runs, is
// refused from then on. run is a random text, and total what Measure has found, or the zero value.
func (t *Target) Begin(ctx context.Context, run string, total format.CopySize) error {
	before := t.Mark
	if t.Mark.Run = run; !t.Resumed {
		t.Mark.Total = total
	}
	err := t.update(ctx, true, func(tx storage.Tx) error {
		found, err := t.find(tx)
		if err != nil {
			return err
		}
		if (found != nil) != t.Resumed || found != nil && (found.Run != before.Run || !bytes.Equal(found.After, before.After)) {
			return t.taken()
		}
		for _, f := range t.source.format.Features {
			tx.RequireFeature(f)
		}
		if number := t.source.format.Number; number > storage.BaseFormat {
			tx.RequireFeature(storage.Feature{Format: number})
		}
		return nil
	})
	if err == nil && t.engine.Creating() {
		err = t.engine.FinishCreation() // the mark keeps it from being opened
	}
	return err
}

func (t *Target) taken() error {
	return &Error{RuleAlone, t.name, "another process makes the copy", "let one process copy at a time"}
}

// update runs a transaction that writes the mark, too.
func (t *Target) update(ctx context.Context, sync bool, fn func(tx storage.Tx) error) error {
	return t.engine.Update(ctx, sync, func(tx storage.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return env.SetJSON(tx, markKey, format.Restoring{Copy: &t.Mark})
	})
}

// checkRun refuses a transaction of a process that no longer makes the copy.
func (t *Target) checkRun(tx storage.Tx) error {
	found, err := t.find(tx)
	if err == nil && (found == nil || found.Run != t.Mark.Run) {
		err = t.taken()
	}
	return err
}

// Copy copies what is not there yet. All of it is on disk when Copy returns without an error.
func (t *Target) Copy(ctx context.Context, progress func(Progress)) (err error) {
	if t.Mark.Equal {
		return nil
	}
	b := &batch{target: t, bound: batchBytes, progress: progress}
	if most := t.engine.Limits().TxBytes; most > 0 {
		b.bound = int(min(batchBytes, most/4))
	}
	c := &cursor{from: t.source.steady, last: bytes.Clone(t.Mark.After), skip: t.source.skips(t.engine.Shared())}
	defer func() { err = errs.First(err, c.close()) }()
	for {
		ok, err := c.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := b.add(ctx, c.key(), c.value()); err != nil {
			return err
		}
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	return t.engine.Sync(ctx)
}

// batch gathers the next transaction.
type batch struct {
	target   *Target
	progress func(Progress)
	bound    int // bytes
	bytes    int
	keys     [][]byte
	values   [][]byte
}

func (b *batch) add(ctx context.Context, key, value []byte) error {
	size := len(key) + len(value)
	if len(b.keys) > 0 && b.bytes+size > b.bound {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.keys, b.values = append(b.keys, bytes.Clone(key)), append(b.values, bytes.Clone(value))
	if b.bytes += size; b.bytes >= b.bound || len(b.keys) >= knobs.CopyKeys {
		return b.flush(ctx)
	}
	return nil
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.keys) == 0 {
		return ctx.Err()
	}
	m := &b.target.Mark
	m.After = b.keys[len(b.keys)-1]
	for i, key := range b.keys {
		add(&m.Done, key, b.values[i])
	}
	err := b.target.update(ctx, false, func(tx storage.Tx) error {
		if err := b.target.checkRun(tx); err != nil {
			return err
		}
		for i, key := range b.keys {
			tx.Set(key, b.values[i], nil)
		}
		return nil
	})
	if err != nil {
		return err
	}
	clear(b.values)
	b.keys, b.values, b.bytes = b.keys[:0], b.values[:0], 0
	b.progress(Progress{StepCopy, m.Done, m.Total})
	return nil
}

// Compare reads both stores and compares them, key by key: documents, their IDs, versions and attachments, counters, and all else. Then it notes
// that they are equal. It compares again if a copy goes on that had noted it: of what the source does meanwhile, identities and indexes change
// no version that tells. A copy with a tag of its own has changed since: its numbers are above those of the source.
func (t *Target) Compare(ctx context.Context, progress func(Progress)) (err error) {
	if t.Mark.Equal && t.Mark.CopyTag != "" {
		return nil
	}
	made, err := newSteady(t.engine, t.name)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, made.close()) }()
	from := &cursor{from: t.source.steady, skip: t.source.skips(t.engine.Shared())}
	to := &cursor{from: made, skip: func(key []byte) bool { return bytes.Equal(key, markKey) }}
	defer func() { err = errs.First(errs.First(err, from.close()), to.close()) }()
	var size format.CopySize
	for {
		more, err := t.compareNext(from, to)
		if err == nil && size.Keys%progressKeys == 0 {
			progress(Progress{StepCompare, size, t.Mark.Done})
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
		add(&size, from.key(), from.value())
	}
	progress(Progress{StepCompare, size, t.Mark.Done})
	// A source that was written to since its snapshot was read to the end is another one than the copy.
	if err := errs.First(from.close(), t.source.steady.renew()); err != nil {
		return err
	}
	t.Mark.Equal, t.Mark.Done = true, size
	return t.update(ctx, true, t.checkRun)
}

// compareNext moves both cursors to the next key, and reports false at the end of both.
func (t *Target) compareNext(from, to *cursor) (more bool, err error) {
	more, err = from.next()
	if err != nil {
		return false, err
	}
	there, err := to.next()
	switch {
	case err != nil || !more && !there:
		return false, err
	case !more:
		return false, t.differs(to.key(), "it is not in the source")
	case !there:
		return false, t.differs(from.key(), "it is missing")
	}
	switch order := bytes.Compare(from.key(), to.key()); {
	case order < 0:
		return false, t.differs(from.key(), "it is missing")
	case order > 0:
		return false, t.differs(to.key(), "it is not in the source")
	case !bytes.Equal(from.value(), to.value()):
		return false, t.differs(from.key(), "it is not as in the source")
	}
	return true, nil
}

func (t *Target) differs(key []byte, how string) error {
	return &Error{RuleEqual, t.name, t.source.describe(key) + ": " + how + ". The source was written to between two parts of the copy, or the target was", "remove the target, and copy again"}
}
