package follow

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Target is the store of a standby. Request and Apply are called by one goroutine; the other methods are safe for
// concurrent use.
type Target struct {
	engine storage.Engine
	tables storage.Ingester
	state  atomic.Pointer[format.Standby]
	moment atomic.Pointer[time.Time] // state's, or a later one at which nothing had been committed after it
	copies atomic.Int64

	// Changing is called before what readers remember changes, and Changed after; if Changed is not called, nothing has. Readers must not use the store in between. They
	// are set before the first Apply.
	Changing func() error
	Changed  func() error
}

// ReadState returns the record of a standby; found is false for a store that is none.
func ReadState(r env.Getter) (state format.Standby, found bool, err error) {
	value, closer, err := r.Get(standbyKey)
	if errors.Is(err, storage.ErrNotFound) {
		return state, false, nil
	}
	if err != nil {
		return state, false, err
	}
	defer closer.Close()
	if err := json.Unmarshal(value, &state); err != nil {
		return state, false, fmt.Errorf("record of the standby: %w: %w", errs.ErrCorrupt, err)
	}
	return state, true, nil
}

// NewTarget returns the Target of an engine, whose store is that of a standby, or empty: then it becomes one.
func NewTarget(ctx context.Context, engine storage.Engine) (*Target, error) {
	tables, is := engine.(storage.Ingester)
	if !is {
		return nil, fmt.Errorf("%w: its engine takes in no tables", errs.ErrStandby)
	}
	t := &Target{engine: engine, tables: tables, Changing: func() error { return nil }, Changed: func() error { return nil }}
	state, found, err := ReadState(engine)
	if err != nil {
		return nil, err
	}
	if !found {
		if err := t.mark(ctx); err != nil {
			return nil, err
		}
	}
	if state.Whole() && engine.Creating() {
		if err := engine.FinishCreation(); err != nil {
			return nil, err
		}
	}
	t.use(state)
	return t, nil
}

// mark makes an empty store that of a standby.
func (t *Target) mark(ctx context.Context) error {
	return t.engine.Update(ctx, true, func(tx storage.Tx) error {
		empty, err := env.IsEmpty(tx)
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("%w: the directory has a database that is none, and a copy would take its place", errs.ErrStandby)
		}
		tx.RequireFeature(storage.FeatureStandby)
		return env.SetJSON(tx, standbyKey, format.Standby{})
	})
}

// use publishes a state that is on disk.
func (t *Target) use(state format.Standby) {
	t.state.Store(&state)
	t.moment.Store(&state.Moment)
}

// State returns the state that was applied last.
func (t *Target) State() format.Standby { return *t.state.Load() }

// Moment returns the instant, by the source's clock, whose state the standby has; zero without any.
func (t *Target) Moment() time.Time { return *t.moment.Load() }

// Copies returns how often keys were compared and the differences taken in.
func (t *Target) Copies() int64 { return t.copies.Load() }

// Request returns what to ask the source with: with checksums of all keys, if compares is set.
func (t *Target) Request(ctx context.Context, compares bool) ([]byte, error) {
	q := Request{Standby: t.State(), Compares: compares, Empty: !t.State().Whole()}
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	out := appendFrame([]byte(Magic), kindRequest, text)
	switch {
	case compares && q.Empty:
		out = appendFrame(out, kindSums, appendString(make([]byte, 32), nil))
	case compares:
		size := max(firstRange, int(min(t.engine.Stats().DiskBytes, 1<<50)/desiredRanges))
		if out, err = appendSums(ctx, out, t.engine, size); err != nil {
			return nil, err
		}
	}
	return appendFrame(out, kindEnd), nil
}

// ErrCompare is returned by Apply when the source does not know what has changed: ask with checksums.
var ErrCompare = errors.New("the source has forgotten what has changed")

// applyBytes bounds the commits that are applied by one: as many as have arrived.
const applyBytes = 4 << 20

// Apply applies a stream, and returns why it ended, never nil.
func (t *Target) Apply(ctx context.Context, in io.Reader) error {
	r := newReader(in)
	if err := r.begin(); err != nil {
		return err
	}
	kind, payload, err := r.next()
	switch {
	case err != nil:
		return err
	case kind == kindCompare:
		return ErrCompare
	case kind != kindHello || len(payload) > maxHead:
		return fmt.Errorf("%w: it begins with a frame of kind %q", ErrFrame, kind)
	}
	var h hello
	if err := json.Unmarshal(payload, &h); err != nil || h.Format == nil || h.Database == "" || h.Epoch == "" {
		return fmt.Errorf("%w: its head is %.200q", ErrFrame, payload)
	}
	if err := t.accept(ctx, &h); err != nil {
		return err
	}
	if h.Copy {
		if err := t.applyCopy(ctx, r, &h); err != nil {
			return err
		}
	}
	return t.follow(ctx, r)
}

// accept refuses a source that the standby cannot follow.
func (t *Target) accept(ctx context.Context, h *hello) error {
	state := t.State()
	known := !state.Whole()
	for _, origin := range h.Origins {
		known = known || origin.ID == state.Database
	}
	if !known {
		return fmt.Errorf("%w: it follows the database %s, and the source is %s, which does not descend from that: choose an empty directory", errs.ErrStandby, state.Database, errs.Shorten(h.Database))
	}
	if !h.Copy && (h.Epoch != state.Epoch || h.Commit != state.Commit) {
		return fmt.Errorf("%w: it goes on from another commit", ErrFrame)
	}
	return t.raise(ctx, h.Format)
}

// raise gives the store the features of the source, before the first key that needs one. A feature that this version does not know is an error that names
// it. If the store has all of them this costs no commit.
func (t *Target) raise(ctx context.Context, f *storage.StoreFormat) error {
	return t.engine.Update(ctx, true, func(tx storage.Tx) error {
		for _, feature := range f.Features {
			tx.RequireFeature(feature)
		}
		if f.Number > storage.BaseFormat {
			tx.RequireFeature(storage.Feature{Format: f.Number})
		}
		return nil
	})
}

// takeFormat takes the frame of a format that has risen.
func (t *Target) takeFormat(ctx context.Context, payload []byte) error {
	var f storage.StoreFormat
	if err := json.Unmarshal(payload, &f); err != nil || len(payload) > maxHead {
		return fmt.Errorf("%w: a format is %.200q", ErrFrame, payload)
	}
	return t.raise(ctx, &f)
}

// group is commits that are applied by one transaction.
type group struct {
	writes  [][]byte // payloads without their heads
	bytes   int
	state   format.Standby // after the last of them
	defines bool           // definitions change
}

// follow applies commits, one group after another.
func (t *Target) follow(ctx context.Context, r *reader) error {
	for {
		g := group{state: t.State()}
		var moment time.Time
		err := error(nil)
		for err == nil && (len(g.writes) == 0 || g.bytes < applyBytes && r.buffered()) {
			if moment, err = t.gather(ctx, r, &g); !moment.IsZero() {
				break
			}
		}
		if len(g.writes) > 0 {
			if applyErr := t.apply(ctx, &g); applyErr != nil {
				return applyErr
			}
		}
		if !moment.IsZero() {
			t.moment.Store(&moment)
		}
		if err != nil {
			return err
		}
	}
}

// gather adds the next commit to g. It returns the moment of a source that has committed no more.
func (t *Target) gather(ctx context.Context, r *reader, g *group) (moment time.Time, err error) {
	kind, payload, err := r.next()
	if err != nil {
		return moment, err
	}
	switch kind {
	case kindCommit, kindMoment:
	case kindFormat:
		return moment, t.takeFormat(ctx, payload)
	case kindCompare:
		return moment, ErrCompare
	default:
		return moment, fmt.Errorf("%w: a frame of kind %q among commits", ErrFrame, kind)
	}
	number, moment, writes, err := cutMoment(payload)
	if err != nil {
		return moment, err
	}
	if kind == kindMoment {
		if number != g.state.Commit {
			return time.Time{}, fmt.Errorf("%w: a moment of commit %d after commit %d", ErrFrame, number, g.state.Commit)
		}
		return moment, nil
	}
	return time.Time{}, g.add(number, moment, writes)
}

// add adds a commit, whose writes are copied.
func (g *group) add(number uint64, moment time.Time, writes []byte) error {
	if number != g.state.Commit+1 {
		return fmt.Errorf("%w: commit %d follows commit %d", ErrFrame, number, g.state.Commit)
	}
	g.state.Commit, g.state.Moment = number, moment
	g.writes, g.bytes = append(g.writes, bytes.Clone(writes)), g.bytes+len(writes)
	return eachWrite(writes, func(w storage.Write) error {
		g.defines = g.defines || format.IsDefining(w.Key)
		return nil
	})
}

// apply applies commits, on disk.
func (t *Target) apply(ctx context.Context, g *group) error {
	err := t.engine.Update(ctx, true, func(tx storage.Tx) error {
		for _, writes := range g.writes {
			err := eachWrite(writes, func(w storage.Write) error {
				switch {
				case isLocal(w.Key): // a source sends none
				case w.Deleted:
					tx.Delete(w.Key)
				default:
					tx.Set(w.Key, w.Value, nil)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if g.defines {
			version, err := nextVersion(tx)
			if err != nil {
				return err
			}
			tx.Set(definitionsKey, version, nil)
		}
		return env.SetJSON(tx, standbyKey, g.state)
	})
	switch {
	case err == nil:
		t.use(g.state)
	case errors.Is(err, storage.ErrTooLarge): // of the source's largest, and the record beside it
		return ErrCompare
	}
	return err
}

// nextVersion returns the version of definitions that follows.
func nextVersion(r env.Getter) ([]byte, error) {
	version, _, err := env.NumberAt(r, definitionsKey)
	if err == nil && version == math.MaxUint64 {
		err = storage.ErrSequenceExhausted
	}
	return binary.BigEndian.AppendUint64(nil, version+1), err
}
