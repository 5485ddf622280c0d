// Package counts keeps the figures of a database that DB.Stats shows: how many documents
// and bytes each collection has, how many attachments there are, and for how many
// documents something is due.
//
// Every transaction adds to the numbers of what it makes or deletes (storage.Tx.Add), so
// that each snapshot has the numbers of its documents, and transactions do not meet
// there. A database that was written before there were numbers is counted once, in the
// background and in the order of IDs: a transaction adds its change if the document is
// counted already, that is, if its ID is not above the one that the count has reached.
// Documents and their bytes have a count each, as those of a database of format 3 are
// counted, and their bytes are not. See docs/format.md.
package counts

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Counts knows whether the documents of an open database are counted. It is safe for
// concurrent use.
type Counts struct {
	env   *env.Env
	ready atomic.Bool // everything is counted: see IsReady

	worker *background.Group
}

// Open finds how far the documents are counted. With again, or if they never were, the
// count begins with the first one; in a database that is only read it never begins.
func Open(e *env.Env, again bool) (*Counts, error) {
	c := &Counts{env: e, worker: background.NewGroup()}
	state, found, err := read(e.Engine)
	if err != nil && !again { // a damaged record is written again
		return nil, err
	}
	if !found.documents || !found.bytes || again {
		if err := c.begin(!found.documents || again); !errors.Is(err, storage.ErrReadOnly) {
			return c, err
		}
		return c, nil
	}
	c.ready.Store(state.IsAll())
	return c, nil
}

// begin begins the count of the bytes anew, and with documents that of the documents. It
// counts attachments and what is due at once: they have records of their own, of which an
// older database has none.
func (c *Counts) begin(documents bool) error {
	return c.env.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		err := env.Each(tx, format.CountBounds[0], format.CountBounds[1], func(key, value []byte) error {
			if documents {
				tx.Delete(key)
				return nil
			}
			_, t, err := format.DecodeTally(key, value)
			if t.Bytes != 0 {
				tx.Delete(key)
				tx.Add(key, t.Documents)
			}
			return err
		})
		if err != nil {
			return err
		}
		contents, err := contentsOf(tx)
		if err != nil {
			return err
		}
		due, err := timesOf(tx)
		if err != nil {
			return err
		}
		tx.Delete(format.ContentTallyKey())
		tx.Add(format.ContentTallyKey(), contents.Numbers()...)
		tx.Delete(format.AppendTimesTallyKey(nil))
		tx.Add(format.AppendTimesTallyKey(nil), due.Expiring, due.Refreshing)
		if documents {
			tx.Set(stateKey(format.CountsName), format.CountState{}.Append(nil), nil)
		}
		tx.Set(stateKey(format.SizesName), format.CountState{}.Append(nil), nil)
		return nil
	})
}

// contentsOf adds up the contents of attachments.
func contentsOf(r env.Walker) (t format.ContentTally, err error) {
	prefix := format.ContentPrefix()
	err = env.Each(r, prefix, format.PrefixEnd(prefix), func(_, value []byte) error {
		c, err := format.DecodeContent(value)
		t.References += int64(c.References)
		t.Bytes += int64(c.References) * c.Size
		t.Contents++
		t.StoredBytes += c.Size
		return err
	})
	return t, err
}

// timesOf counts the entries of what is due.
func timesOf(r env.Walker) (t format.TimesTally, err error) {
	err = env.Each(r, []byte{format.SpaceTimes}, []byte{format.SpaceTimes + 1}, func(key, value []byte) error {
		d, err := format.DecodeDue(key, value)
		if d.Kind == format.DueExpiry {
			t.Expiring++
		} else {
			t.Refreshing++
		}
		return err
	})
	return t, err
}

// Finish stages that all documents of a new database are counted.
func Finish(tx storage.Tx) {
	all := format.CountState{All: true}.Append(nil)
	tx.Set(stateKey(format.CountsName), all, nil)
	tx.Set(stateKey(format.SizesName), all, nil)
}

func stateKey(name string) []byte { return format.AppendKey(nil, format.SpaceMeta, name) }

// State is how far the documents are counted, and their bytes.
type State struct{ Documents, Bytes format.CountState }

// IsAll reports whether everything is counted.
func (s *State) IsAll() bool { return s.Documents.All && s.Bytes.All }

// Of returns what the numbers cover of a document with this ID.
func (s *State) Of(foldedID string) (documents, bytes bool) {
	return s.Documents.Covers(foldedID), s.Bytes.Covers(foldedID)
}

// found says which records of a State are there.
type found struct{ documents, bytes bool }

// read returns how far the documents are counted, as r sees it.
func read(r env.Getter) (s State, f found, err error) {
	if s.Documents, f.documents, err = readOne(r, format.CountsName); err == nil {
		s.Bytes, f.bytes, err = readOne(r, format.SizesName)
	}
	return s, f, err
}

func readOne(r env.Getter, name string) (state format.CountState, found bool, err error) {
	value, closer, err := r.Get(stateKey(name))
	if err == storage.ErrNotFound {
		return state, false, nil
	}
	if err != nil {
		return state, false, err
	}
	state, err = format.DecodeCountState(value)
	return state, true, errors.Join(err, closer.Close())
}

// IsReady reports whether everything is counted: then a transaction need not read
// the state. Memory has it, also of a shared store: what is counted stays so, as only
// accepted damage begins the count anew, which is refused there.
func (c *Counts) IsReady() bool { return c.ready.Load() }

// State returns how far the documents are counted, as a transaction sees it.
func (c *Counts) State(tx storage.Tx) (State, error) {
	if c.IsReady() {
		all := format.CountState{All: true}
		return State{all, all}, nil
	}
	state, _, err := read(tx)
	return state, err
}

// Limits of one step of Build, which other writes wait for. Variables for tests.
var (
	StepDocuments = 4096
	StepBytes     = 1 << 20
)

// Build counts the documents that are not counted yet. It ends with ctx, and goes on
// where it was when it is called again, in this process or in another.
func (c *Counts) Build(ctx context.Context) error {
	for !c.IsReady() {
		if _, err := c.Step(ctx); err != nil {
			return fmt.Errorf("count the documents: %w", err)
		}
	}
	return nil
}

// Step is one step of Build. It reports whether that was the last.
func (c *Counts) Step(ctx context.Context) (all bool, err error) {
	err = c.env.Engine.Update(ctx, c.env.Synced, func(tx storage.Tx) (err error) {
		all, err = step(tx)
		return err
	})
	if err == nil {
		c.ready.Store(all)
	}
	return all, err
}

// step counts the next documents, and reports whether those were the last.
func step(tx storage.Tx) (all bool, err error) {
	state, _, err := read(tx)
	if err != nil || state.IsAll() {
		return state.IsAll(), err
	}
	it, err := tx.Iterate(firstLeft(&state), []byte{format.SpaceDocument + 1})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()

	counted := make(map[string]*format.Tally) // by name as written
	seen, last := 0, ""
	ok := it.First()
	for n := 0; ok && n < StepDocuments && seen < StepBytes; n++ {
		h, _, err := metadata.Decode(it.Value())
		last = string(format.DocumentID(it.Key()))
		if err != nil {
			return false, fmt.Errorf("document %q: %w", last, err)
		}
		t := counted[string(h.Collection)]
		if t == nil {
			t = new(format.Tally)
			counted[string(h.Collection)] = t
		}
		documents, bytes := state.Of(last)
		if !documents {
			t.Documents++
		}
		if !bytes {
			t.Bytes += int64(len(last) + len(it.Value()))
		}
		seen += len(it.Value())
		ok = it.Next()
	}
	if err := it.Error(); err != nil {
		return false, err
	}
	for name, t := range counted {
		tx.Add(format.CountKey(nil, format.CollectionKey(name)), t.Documents, t.Bytes)
	}
	if !ok {
		Finish(tx)
		return true, nil
	}
	for name, s := range map[string]*format.CountState{format.CountsName: &state.Documents, format.SizesName: &state.Bytes} {
		if !s.Covers(last) {
			s.UpTo = last
			tx.Set(stateKey(name), s.Append(nil), nil)
		}
	}
	return false, nil
}

// firstLeft returns the first key of a document that is not counted, or whose bytes are
// not.
func firstLeft(s *State) []byte {
	upTo := s.Bytes.UpTo
	if s.Bytes.All || !s.Documents.All && s.Documents.UpTo < upTo {
		upTo = s.Documents.UpTo
	}
	lo := []byte{format.SpaceDocument}
	if upTo != "" {
		lo = append(append(lo, upTo...), 1)
	}
	return lo
}

// ErrNotReady means that a snapshot has no complete numbers.
var ErrNotReady = errors.New("not all documents are counted yet")

// All returns how many documents each collection has, by folded name, or ErrNotReady.
// Collections without documents are left out.
// payer pays for the map while it grows.
func All(r storage.Reader, payer *budget.Payer) (map[string]int64, error) {
	if err := checkReady(r); err != nil {
		return nil, err
	}
	all := make(map[string]int64)
	return all, env.Each(r, format.CountBounds[0], format.CountBounds[1], func(key, value []byte) error {
		collection, t, err := format.DecodeTally(key, value)
		if t.Documents != 0 {
			all[collection] = t.Documents
		}
		return errs.First(err, payer.PayNamed(collection))
	})
}

// Of returns how many documents a collection has, or ErrNotReady.
func Of(r storage.Reader, foldedCollection string) (int64, error) {
	t, err := TallyOf(r, foldedCollection)
	return t.Documents, err
}

// TallyOf returns the numbers of a collection, or ErrNotReady. Its bytes may not all be counted.
func TallyOf(r storage.Reader, foldedCollection string) (t format.Tally, err error) {
	if err := checkReady(r); err != nil {
		return t, err
	}
	key := format.CountKey(nil, foldedCollection)
	value, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	_, t, err = format.DecodeTally(key, value)
	return t, errors.Join(err, closer.Close())
}

// checkReady returns ErrNotReady unless all documents are counted. Their bytes may not be.
func checkReady(r storage.Reader) error {
	state, _, err := readOne(r, format.CountsName)
	if err == nil && !state.All {
		err = ErrNotReady
	}
	return err
}

// Figures are all numbers of one snapshot.
type Figures struct {
	Collections map[string]format.Tally // by folded name
	Contents    format.ContentTally
	Times       format.TimesTally
	State       State // how far documents and bytes are counted
}

// Read returns the numbers that a snapshot has. It reads no document.
// payer pays for the collections while they grow.
func Read(r storage.Reader, payer *budget.Payer) (f Figures, err error) {
	if f.State, _, err = read(r); err != nil {
		return f, err
	}
	f.Collections = make(map[string]format.Tally)
	err = env.Each(r, format.CountBounds[0], format.CountBounds[1], func(key, value []byte) error {
		collection, t, err := format.DecodeTally(key, value)
		f.Collections[collection] = t
		return errs.First(err, payer.PayNamed(collection))
	})
	if err != nil {
		return f, err
	}
	err = getNumbers(r, format.ContentTallyKey(), func(value []byte) (err error) {
		f.Contents, err = format.DecodeContentTally(value)
		return err
	})
	if err != nil {
		return f, err
	}
	err = getNumbers(r, format.AppendTimesTallyKey(nil), func(value []byte) (err error) {
		f.Times, err = format.DecodeTimesTally(value)
		return err
	})
	return f, err
}

// getNumbers calls fn with the value of a key, unless there is none.
func getNumbers(r storage.Reader, key []byte, fn func(value []byte) error) error {
	value, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return errs.First(fn(value), closer.Close())
}

// ErrMiscounted means that a number is not that of what it counts.
var ErrMiscounted = errors.New("the numbers of the database are wrong")

// Check compares all numbers of a snapshot with what they count. It reads every document,
// and returns ErrNotReady as long as not everything is counted.
func Check(r storage.Reader) error {
	kept, err := Read(r, new(budget.Payer))
	if err != nil {
		return err
	}
	if !kept.State.IsAll() {
		return ErrNotReady
	}
	found := make(map[string]format.Tally)
	err = env.Each(r, []byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1}, func(key, value []byte) error {
		h, _, err := metadata.Decode(value)
		if err != nil {
			return fmt.Errorf("document %q: %w", format.DocumentID(key), err)
		}
		name := format.CollectionKey(string(h.Collection))
		t := found[name]
		found[name] = format.Tally{Documents: t.Documents + 1, Bytes: t.Bytes + int64(len(format.DocumentID(key))+len(value))}
		return nil
	})
	if err != nil {
		return err
	}
	for name, t := range found {
		if kept.Collections[name] != t {
			return fmt.Errorf("%w: collection %q has %+v, and its numbers are %+v", ErrMiscounted, name, t, kept.Collections[name])
		}
	}
	if len(kept.Collections) != len(found) {
		return fmt.Errorf("%w: there are %d collections, and %d have numbers", ErrMiscounted, len(found), len(kept.Collections))
	}
	contents, err := contentsOf(r)
	if err == nil && contents != kept.Contents {
		err = fmt.Errorf("%w: attachments have %+v, and their numbers are %+v", ErrMiscounted, contents, kept.Contents)
	}
	if err != nil {
		return err
	}
	due, err := timesOf(r)
	if err == nil && due != kept.Times {
		err = fmt.Errorf("%w: %+v is due, and the numbers are %+v", ErrMiscounted, due, kept.Times)
	}
	return err
}

// Resume counts in the background what is not counted yet. Stop must follow.
func (c *Counts) Resume() {
	if c.IsReady() {
		return
	}
	ctx := c.worker.Context()
	c.worker.Go(func() {
		begun := time.Now()
		err := c.Build(ctx)
		switch {
		case ctx.Err() != nil || c.env.Logger == nil:
		case err == nil:
			c.env.Logger.Info("jay: all documents are counted", "dir", c.env.Dir, "took", time.Since(begun))
		default:
			c.env.Logger.Warn("jay: collections are counted by reading all documents, until the database is opened again", "err", err)
		}
	})
}

// Wait returns when the counting has ended.
func (c *Counts) Wait() { c.worker.Wait() }

// Stop ends the counting.
func (c *Counts) Stop() { c.worker.Stop() }
