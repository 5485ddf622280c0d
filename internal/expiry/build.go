package expiry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Limits of one step of Build, a transaction that delays other writes. Variables for
// tests.
var (
	StepDocuments = 4096
	StepBytes     = 1 << 20
)

func stateKey() []byte { return format.AppendKey(nil, format.SpaceMeta, format.TimesName) }

// load reports whether Build has visited all documents. With again, or if it never ran,
// it starts Build over.
func load(e *env.Env, again bool) (all bool, err error) {
	state, found, err := readState(e.Engine)
	if err != nil && !again { // with again, a damaged record is replaced
		return false, err
	}
	if found && !again {
		return state.All, nil
	}
	upgraded, err := e.Date()
	if err != nil {
		return false, err
	}
	state = format.TimesState{Upgraded: upgraded}
	err = e.Engine.Update(context.Background(), true, func(tx storage.Tx) error { return env.SetJSON(tx, stateKey(), state) })
	if errors.Is(err, storage.ErrReadOnly) { // nothing is looked at in a database of an older Jay that is only read
		err = nil
	}
	return false, err
}

// readState returns the progress of Build, as r sees it.
func readState(r docs.Getter) (state format.TimesState, found bool, err error) {
	value, closer, err := r.Get(stateKey())
	if err == storage.ErrNotFound {
		return state, false, nil
	}
	if err != nil {
		return state, false, err
	}
	if err := json.Unmarshal(value, &state); err != nil {
		err = fmt.Errorf("record of the times: %w: %w", errs.ErrCorrupt, err)
		return state, true, errors.Join(err, closer.Close())
	}
	return state, true, closer.Close()
}

// resumeBuild starts Build in the background, unless it is finished.
func (s *Sweeper) resumeBuild() {
	if s.built || knobs.NoSweeper {
		return
	}
	ctx := s.workers.Context()
	s.workers.Go(func() {
		if err := s.Build(ctx); err != nil {
			s.warn(ctx, "documents of an older Jay do not expire, until the database is opened again", err)
		}
	})
}

// Build gives the documents of a database from an older Jay their entries. That version
// took @expires and @refresh for metadata like any other; Build visits each document once
// and adds entries for those that have instants. It ends with ctx, and continues where it
// was when it is called again, in this process or in another.
//
// A document that had expired before the upgrade stays until it is written again: a new
// version of a program must not delete what the old one showed. A text that is not an
// instant stays without meaning. Build counts both.
func (s *Sweeper) Build(ctx context.Context) error {
	for all := false; !all; {
		var err error
		if all, err = s.BuildStep(ctx); err != nil {
			return fmt.Errorf("look for documents that expire: %w", err)
		}
	}
	return nil
}

// BuildStep does one step of Build, and reports whether it was the last.
func (s *Sweeper) BuildStep(ctx context.Context) (all bool, err error) {
	var state format.TimesState
	err = s.writer.Background(ctx, s.env.Synced, func(t *write.Txn) (err error) {
		state, err = step(t)
		return err
	})
	if err == nil && state.All && state.Overdue+state.Invalid > 0 && s.env.Logger != nil {
		s.env.Logger.Warn("jay: documents that an older Jay has written do not expire: docs/expiry.md",
			"expired before the upgrade", state.Overdue, "without an instant", state.Invalid)
	}
	return err == nil && state.All, err
}

// step visits the next documents and returns the new progress.
func step(t *write.Txn) (state format.TimesState, err error) {
	if state, _, err = readState(t.Tx); err != nil || state.All {
		return state, err
	}
	lo := []byte{format.SpaceDocument}
	if state.UpTo != "" {
		lo = append(append(lo, state.UpTo...), 1)
	}
	it, err := t.Tx.Iterate(lo, []byte{format.SpaceDocument + 1})
	if err != nil {
		return state, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()

	size := 0
	ok := it.First()
	for n := 0; ok && n < StepDocuments && size < StepBytes; n++ {
		id := string(format.DocumentID(it.Key()))
		if err := adopt(t, id, it.Value(), &state); err != nil {
			return state, fmt.Errorf("document %q: %w", id, err)
		}
		size += len(it.Value())
		state.UpTo = id
		ok = it.Next()
	}
	if err := it.Error(); err != nil {
		return state, err
	}
	if !ok {
		state.All, state.UpTo = true, ""
	}
	return state, env.SetJSON(t.Tx, stateKey(), state)
}

// adopt stages the entries of a document, if it has instants.
func adopt(t *write.Txn, id string, record []byte, state *format.TimesState) error {
	h, body, err := metadata.Decode(record)
	if err != nil {
		return err
	}
	if h.Custom == nil {
		return nil
	}
	times := metadata.ReadTimes(h.Custom)
	switch {
	case h.Timed: // visited again, because entries may have been lost in accepted damage
	case times == metadata.Times{}:
		if names(h.Custom) {
			state.Invalid++
		}
		return nil
	case isDue(times.Expires, state.Upgraded):
		state.Overdue++
		return nil
	}
	return t.Adopt(id, &h, body)
}

// isDue reports whether something that is due at an instant is due now.
func isDue(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// names reports whether custom metadata has a name that stands for an instant.
func names(custom []byte) bool {
	return bytes.Contains(custom, []byte(`"`+metadata.Expires+`"`)) || bytes.Contains(custom, []byte(`"`+metadata.Refresh+`"`))
}

// State returns the progress of Build.
func (s *Sweeper) State() (format.TimesState, error) {
	state, _, err := readState(s.env.Engine)
	return state, err
}
