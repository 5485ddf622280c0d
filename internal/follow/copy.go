package follow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/storage"
)

// tableBytes is about the size of a table of a copy.
const tableBytes = 64 << 20

// copying is a copy under way: it gathers what differs from the keys of the source in tables.
type copying struct {
	target   *Target
	snapshot storage.Snapshot
	own      storage.Iterator // over the keys of the standby. In a range, it stands before those that were not compared.
	inRange  bool
	lo, end  []byte // of the range, or of the last one; a nil end is no bound
	last     []byte // key of the source
	begun    bool   // there was a range

	local  []storage.Write // of the standby itself, which the copy is still to write, ascending
	table  storage.TableWriter
	tables []storage.Table

	later   storage.Temporary // commits that were sent meanwhile; nil for none
	commits int
}

// applyCopy makes the store have the keys of the source, by one commit, and applies the commits that were sent
// meanwhile.
func (t *Target) applyCopy(ctx context.Context, r *reader, h *hello) (err error) {
	c := &copying{target: t}
	defer func() { err = errs.First(err, c.abandon()) }()
	c.snapshot = t.engine.Snapshot()
	if c.own, err = c.snapshot.Iterate(nil, nil); err != nil {
		return err
	}
	state := format.Standby{Database: h.Database, Epoch: h.Epoch, Commit: h.Commit, Moment: h.Moment}
	if err := c.setLocal(state); err != nil {
		return err
	}
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind, payload, err := r.next()
		if err != nil {
			return err
		}
		if done, err = c.take(ctx, kind, payload); err != nil {
			return err
		}
	}
	changes, err := c.changes(h.Identity)
	if err != nil {
		return err
	}
	if changes {
		if err := t.Changing(); err != nil {
			return err
		}
	}
	if err := c.commit(ctx, state); err != nil {
		return err
	}
	if changes {
		if err := t.Changed(); err != nil {
			return err
		}
	}
	return c.applyLater(ctx)
}

// changes reports whether readers must not go on with what they remember.
func (c *copying) changes(identityOfSource string) (bool, error) {
	if !c.target.State().Whole() {
		return true, nil
	}
	stored, err := settings.Load(c.snapshot)
	if err != nil {
		return false, err
	}
	origins, err := settings.Origins(c.snapshot)
	if err != nil {
		return false, err
	}
	own, err := identity(stored, origins)
	return own != identityOfSource, err
}

// setLocal prepares the keys of the standby itself.
func (c *copying) setLocal(state format.Standby) error {
	version, err := nextVersion(c.snapshot)
	if err != nil {
		return err
	}
	text, err := json.Marshal(state)
	c.local = []storage.Write{{Key: definitionsKey, Value: version}, {Key: standbyKey, Value: text}}
	return err
}

// take takes the next frame. done is true with the last of the copy.
func (c *copying) take(ctx context.Context, kind byte, payload []byte) (done bool, err error) {
	switch kind {
	case kindRange:
		lo, rest, err := cutString(payload)
		if err != nil {
			return false, err
		}
		end, _, err := cutString(rest)
		if err != nil {
			return false, err
		}
		return false, c.begin(lo, end)
	case kindKeys:
		return false, eachWrite(payload, c.compare)
	case kindCommit:
		return false, c.keep(payload)
	case kindFormat:
		return false, c.target.takeFormat(ctx, payload)
	case kindEnd:
		return true, c.finishRange()
	case kindCompare:
		return false, ErrCompare
	}
	return false, fmt.Errorf("%w: a frame of kind %q in a copy", ErrFrame, kind)
}

// begin begins a range.
func (c *copying) begin(lo, end []byte) error {
	if err := c.finishRange(); err != nil {
		return err
	}
	if c.begun && (c.end == nil || bytes.Compare(lo, c.end) < 0) || len(end) > 0 && bytes.Compare(lo, end) >= 0 {
		return fmt.Errorf("%w: ranges do not ascend", ErrFrame)
	}
	c.begun, c.inRange, c.lo, c.end = true, true, bytes.Clone(lo), nil
	if len(end) > 0 {
		c.end = bytes.Clone(end)
	}
	seek(c.own, lo)
	return c.own.Error()
}

// finishRange deletes what the source has not, from the last key of it up to the end of the range.
func (c *copying) finishRange() error {
	if !c.inRange {
		return nil
	}
	c.inRange = false
	return c.deleteUpTo(c.end)
}

// deleteUpTo deletes the keys of the standby below hi; a nil hi is no bound.
func (c *copying) deleteUpTo(hi []byte) error {
	for ; c.own.Valid() && (hi == nil || bytes.Compare(c.own.Key(), hi) < 0); c.own.Next() {
		if isLocal(c.own.Key()) {
			continue
		}
		if err := c.write(storage.Write{Key: c.own.Key(), Deleted: true}); err != nil {
			return err
		}
	}
	return c.own.Error()
}

// compare takes the next key of the source.
func (c *copying) compare(w storage.Write) error {
	within := c.inRange && bytes.Compare(w.Key, c.lo) >= 0 && (c.end == nil || bytes.Compare(w.Key, c.end) < 0)
	if !within || w.Deleted || bytes.Compare(w.Key, c.last) <= 0 || isLocal(w.Key) {
		return fmt.Errorf("%w: a key of a copy is out of place", ErrFrame)
	}
	c.last = append(c.last[:0], w.Key...)
	if err := c.deleteUpTo(w.Key); err != nil {
		return err
	}
	if c.own.Valid() && bytes.Equal(c.own.Key(), w.Key) {
		same := bytes.Equal(c.own.Value(), w.Value)
		c.own.Next()
		if same {
			return c.own.Error()
		}
	}
	return c.write(w)
}

// write adds a difference to the tables, after the keys of the standby itself that are below.
func (c *copying) write(w storage.Write) error {
	for len(c.local) > 0 && bytes.Compare(c.local[0].Key, w.Key) < 0 {
		if err := c.put(c.local[0]); err != nil {
			return err
		}
		c.local = c.local[1:]
	}
	return c.put(w)
}

func (c *copying) put(w storage.Write) (err error) {
	if c.table != nil && c.table.Bytes() >= cmp.Or(knobs.StandbyTableBytes, tableBytes) {
		if err := c.finishTable(); err != nil {
			return err
		}
	}
	if c.table == nil {
		if c.table, err = c.target.tables.NewTable(true); err != nil {
			return err
		}
	}
	if w.Deleted {
		return c.table.Delete(w.Key)
	}
	return c.table.Set(w.Key, w.Value)
}

func (c *copying) finishTable() error {
	w := c.table
	c.table = nil
	made, err := w.Finish()
	if err == nil {
		c.tables = append(c.tables, made)
	}
	return err
}

// keep keeps a commit for later.
func (c *copying) keep(payload []byte) (err error) {
	if c.later == nil {
		if c.later, err = c.target.tables.NewTemporary(); err != nil {
			return err
		}
	}
	c.commits++
	_, err = c.later.Write(appendFrame(nil, kindCommit, payload))
	return err
}

// commit takes the tables in.
func (c *copying) commit(ctx context.Context, state format.Standby) error {
	for _, w := range c.local {
		if err := c.put(w); err != nil {
			return err
		}
	}
	c.local = nil
	if err := c.finishTable(); err != nil {
		return err
	}
	if err := c.close(); err != nil { // a snapshot would keep what the tables replace
		return err
	}
	tables := c.tables
	c.tables = nil
	t := c.target
	if err := t.tables.Ingest(ctx, tables, nil); err != nil {
		return err
	}
	t.use(state)
	t.copies.Add(1)
	if t.engine.Creating() {
		return t.engine.FinishCreation()
	}
	return nil
}

// applyLater applies the commits that were kept.
func (c *copying) applyLater(ctx context.Context) (err error) {
	if c.later == nil {
		return nil
	}
	if err := c.later.Finish(); err != nil {
		return err
	}
	in, err := c.later.Open()
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, in.Close()) }()
	r, g := newReader(in), group{}
	for i := range c.commits {
		if len(g.writes) == 0 {
			g = group{state: c.target.State()}
		}
		if _, err := c.target.gather(ctx, r, &g); err != nil {
			return err
		}
		if g.bytes < applyBytes && i < c.commits-1 {
			continue
		}
		if err := c.target.apply(ctx, &g); err != nil {
			return err
		}
		g = group{}
	}
	return nil
}

// close closes what reads the store.
func (c *copying) close() (err error) {
	if c.own != nil {
		err = c.own.Close()
	}
	if c.snapshot != nil {
		err = errs.First(err, c.snapshot.Close())
	}
	c.own, c.snapshot = nil, nil
	return err
}

// abandon releases what is left at the end, and after an error.
func (c *copying) abandon() error {
	err := c.close()
	if c.table != nil {
		c.table.Abandon()
	}
	for _, made := range c.tables {
		err = errors.Join(err, made.Remove())
	}
	if c.later != nil {
		err = errors.Join(err, c.later.Remove())
	}
	return err
}
