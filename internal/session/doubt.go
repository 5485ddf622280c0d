package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// A save whose outcome is not known is in doubt until the next one has found out. What the caller asks
// for meanwhile is added to what the save carried, and only the latter is taken back when the
// save turns out to have happened.

// inDoubtSave is a save whose outcome is not known.
type inDoubtSave struct {
	writes    []*saving
	exchanges []*write.Op       // changes of compare-exchange values
	changes   []*exchangeChange // for which they stand
	db        *core.Database    // on which it was made
	commit    *write.Undecided  // of a commit that the coordinator of a cluster decides; else nil
}

// doubt notes a save whose outcome is not known. That of a write which only keeps a
// revision need not be known: the next save does it again.
func (s *Session) doubt(writes []*saving, exchanges []*write.Op, commit *write.Undecided) {
	writes = slices.DeleteFunc(slices.Clone(writes), func(w *saving) bool { return w.op.Verb.KeepsVersion() })
	if len(writes)+len(exchanges) == 0 {
		return
	}
	for _, w := range writes {
		if w.entity != nil {
			w.carried = w.entity.asked()
		}
	}
	s.inDoubt = &inDoubtSave{writes: writes, exchanges: exchanges, db: s.db, commit: commit}
	if s.cluster != nil {
		s.inDoubt.changes = slices.Clone(s.cluster.changes)
	}
}

// isInDoubt reports whether a save in doubt may have written an entity.
func (s *Session) isInDoubt(e *entity) bool {
	if s.inDoubt == nil {
		return false
	}
	for _, w := range s.inDoubt.writes {
		if w.entity == e {
			return true
		}
	}
	return false
}

// resolveElsewhere resolves a save in doubt if the session has moved to another handle.
func (s *Session) resolveElsewhere(ctx context.Context) error {
	if s.inDoubt == nil || s.inDoubt.db == s.db {
		return nil
	}
	return s.resolveInDoubt(ctx)
}

// resolveInDoubt resolves a save in doubt.
func (s *Session) resolveInDoubt(ctx context.Context) error {
	if s.inDoubt == nil {
		return nil
	}
	happened, err := s.happened(ctx, s.inDoubt)
	if err == nil {
		err = s.resolved(ctx, s.inDoubt, happened)
	}
	if err != nil {
		return fmt.Errorf("find out whether the last save survived: %w", err)
	}
	s.inDoubt = nil
	s.finishDeletions()
	return nil
}

// resolved takes back what a save in doubt carried, if it has happened.
func (s *Session) resolved(ctx context.Context, a *inDoubtSave, happened bool) error {
	done := a.writes
	if !happened {
		var err error
		if done, err = s.alreadyMissing(ctx, a); err != nil {
			return err
		}
	}
	if err := s.clusterResolved(ctx, a, happened); err != nil {
		return err
	}
	for _, w := range done {
		if w.deletion != nil {
			s.dropDeletion(w.deletion)
			continue
		}
		since := w.entity.asked().without(w.carried)
		s.saved(w, new(docs.Document))
		w.entity.ask(since)
	}
	return nil
}

// asked is what the caller has asked for beside the fields of an entity.
type asked struct {
	custom   []byte
	forced   int
	attached []*pendingAttachment
}

// asked returns what the next save will do with e.
func (e *entity) asked() *asked {
	a := &asked{custom: e.custom, forced: e.forced}
	if e.attached != nil {
		a.attached = slices.Clone(e.attached.changes)
	}
	return a
}

// ask makes the next save do that.
func (e *entity) ask(a *asked) {
	e.custom, e.forced = a.custom, a.forced
	if len(a.attached) > 0 {
		e.attached = &entityAttachments{changes: a.attached}
	}
}

// without takes away what is done, and returns the rest.
func (a *asked) without(done *asked) *asked {
	if len(a.custom) > 0 && len(done.custom) > 0 && &a.custom[0] == &done.custom[0] { // SetMetadata makes another one
		a.custom = nil
	}
	a.forced -= done.forced
	a.attached = slices.DeleteFunc(a.attached, func(p *pendingAttachment) bool { return slices.Contains(done.attached, p) })
	return a
}

// alreadyMissing returns the deletions of a save that has not happened, or had nothing else, whose document
// is missing: they need no repetition, and one with a version would be refused.
func (s *Session) alreadyMissing(ctx context.Context, a *inDoubtSave) (done []*saving, err error) {
	for _, w := range a.writes {
		if w.deletion == nil {
			return nil, nil
		}
		found, err := s.db.Exists(ctx, w.deletion.id)
		if err != nil {
			return nil, err
		}
		if !found {
			done = append(done, w)
		}
	}
	return done, nil
}

// errInDoubt is returned on a handle whose engine has failed.
var errInDoubt = fmt.Errorf("%w: what became of the last save shows when the database is opened again: see Session.Reattach", storage.ErrFailed)

// happened reports whether a save in doubt was committed. An error is an ErrUnknownOutcome if nothing shows that any
// more.
func (s *Session) happened(ctx context.Context, a *inDoubtSave) (bool, error) {
	if a.commit != nil {
		return s.decided(ctx, a)
	}
	if a.db == s.db {
		// If the engine has failed, its handle shows the documents whether or not they are on disk.
		if err := s.db.Env.Enter(); err != nil {
			return false, err
		}
		s.db.Env.Exit()
		if err := s.db.Flush(ctx); err != nil {
			if ctx.Err() == nil {
				err = errInDoubt
			}
			return false, err
		}
	}
	for _, w := range a.writes {
		if w.op.Outcome == write.Unstaged || w.entity != nil && w.op.Header.Etag == 0 {
			return false, nil // it failed before all was staged
		}
	}
	for _, o := range a.exchanges {
		if o.Outcome == write.Unstaged {
			return false, nil
		}
	}
	if shown, happened, err := s.shown(ctx, a); shown || err != nil {
		return happened, err
	}
	if !s.db.Env.Engine.Shared() && a.db != s.db {
		// Etags rise with the commits. Those up to the last one that the earlier handle has reserved are
		// of its commits.
		first, newest := a.first(), s.db.Reserved.Newest()
		switch {
		case first == 0: // it only deleted what was missing
		case newest < first:
			return false, nil
		case newest <= a.db.Reserved.Etags():
			return true, nil
		}
	}
	if a.onlyDeletes() {
		return false, s.allMissing(ctx, a)
	}
	return false, errUnknown
}

// errUnknown is the error of a save in doubt of which nothing is left.
var errUnknown = fmt.Errorf("%w: nothing that the save has written is there, and others may have overwritten it: read the documents, and go on with a session that was cleared", storage.ErrUnknownOutcome)

// allMissing returns errUnknown if what a save of deletions would have deleted is there, as it may have been stored
// after them.
func (s *Session) allMissing(ctx context.Context, a *inDoubtSave) error {
	for _, w := range a.writes {
		if found, err := s.db.Exists(ctx, w.deletion.id); found || err != nil {
			return errs.First(err, errUnknown)
		}
	}
	for _, o := range a.exchanges {
		found, err := s.db.ExchangeValues(ctx, o.RequestID)
		if err != nil {
			return err
		}
		if found[0] != nil {
			return errUnknown
		}
	}
	return nil
}

// shown reports whether a document or value shows what became of a save, and that. The save was atomic: one
// that has the version that the save gave it is proof for all, and so is one that has the version from before the
// save. That does not hold for a store that others write to, too: the commit may still be under way.
func (s *Session) shown(ctx context.Context, a *inDoubtSave) (shown, happened bool, err error) {
	for i, o := range a.exchanges {
		found, err := s.db.ExchangeValues(ctx, o.RequestID)
		if err != nil {
			return false, false, err
		}
		switch v := found[0]; {
		case v == nil:
		case o.Outcome == write.Present && v.Index == o.Header.Etag:
			return true, true, nil
		case v.Index == a.changes[i].op.Exchanging.Index && !s.db.Env.Engine.Shared():
			return true, false, nil
		}
	}
	for _, w := range a.writes {
		id, before := w.op.RequestID, (*docs.Document)(nil)
		if w.entity != nil {
			id, before = w.op.ID, w.entity.doc
		} else if w.deletion.entity != nil {
			before = w.deletion.entity.doc
		}
		doc, err := s.db.Get(ctx, id)
		if errors.Is(err, errs.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, false, err
		}
		now := doc.ChangeVector()
		if w.entity != nil && now == a.db.Env.ChangeVector(w.op.Header.Node, w.op.Header.Etag) && doc.Header().Modified == w.op.Header.Modified {
			return true, true, nil
		}
		if before != nil && now == before.ChangeVector() && !s.db.Env.Engine.Shared() {
			return true, false, nil
		}
	}
	return false, false, nil
}

// first returns the first etag that a save has got; 0 for none.
func (a *inDoubtSave) first() uint64 {
	for _, w := range a.writes {
		if w.op.Header.Etag > 0 {
			return w.op.Header.Etag
		}
	}
	for _, o := range a.exchanges {
		if o.Header.Etag > 0 {
			return o.Header.Etag
		}
	}
	return 0
}

// decided waits until it is known what became of a commit that the coordinator of a cluster decides. The writes
// get the versions that their documents got then: those that they had are of a rehearsal.
func (s *Session) decided(ctx context.Context, a *inDoubtSave) (bool, error) {
	d, err := a.commit.Await(ctx, s.db.Writer)
	if err != nil || d.Index == 0 {
		return false, err
	}
	if len(d.Writes) != len(a.writes) {
		return false, fmt.Errorf("%w: %d documents of a cluster-wide commit, not %d", errs.ErrCorrupt, len(d.Writes), len(a.writes))
	}
	for i, w := range a.writes {
		if w.entity != nil {
			w.op.Header = d.Writes[i]
		}
	}
	return true, nil
}
