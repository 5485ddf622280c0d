package revisions

import (
	"bytes"
	"context"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Bounds of a step of a purge. docs/limits.md has them. Variables for tests.
var (
	StepLooked    = 4096 // documents that a step visits, without a lock
	StepDocuments = 64   // documents whose revisions its transaction removes
	StepRevisions = 1024 // revisions that its transaction removes
)

// Purge removes revisions of documents, the oldest first. The present version of a
// document stays.
type Purge struct {
	FoldedID   string // restricts it to one document; "" for all
	Collection string // restricts it to one collection, folded; "" for all
	Deleted    bool   // restricts it to deleted documents

	// With Retention, the revisions are removed that the rules no longer keep at Now, in
	// ticks. Otherwise Criterion decides.
	//
	// An import stores the revisions of a document before the document, so its newest
	// revision is not replaced until the document arrives. With Retention, a history
	// without a document stays if its newest revision was imported and is no deletion.
	// This also holds for a document that was deleted after the import, if no rule
	// applied when it arrived and when it was deleted: nothing says that it was there.
	// Without Retention such histories are removed. A document that this database wrote
	// and deleted without a rule leaves no imported revision as its newest, and its
	// history goes.
	Retention bool
	Aged      bool // with Retention, where a rule has KeepFor only
	Rules     *Current
	Now       uint64
	Criterion Criterion

	Lazy bool // the caller waits for the disk, after several steps
}

// criterion returns the criterion for a document; found is false if nothing is to be
// removed.
func (p *Purge) criterion(s *state) (c Criterion, found bool) {
	switch {
	case p.Collection != "" && s.collection != p.Collection, p.Deleted && s.there:
		return c, false
	case p.Retention:
		if s.awaited {
			return c, false
		}
		rule := p.Rules.Load().Of(s.collection) // in the transaction: as they are at its moment
		if p.Aged && (rule == nil || rule.KeepFor == 0) {
			return c, false
		}
		return rule.Expired(p.Now)
	}
	return p.Criterion, true
}

// Step is the result of one step of a purge.
type Step struct {
	Looked    int64
	Documents int64 // documents of which revisions were removed
	Revisions int64
	Bytes     int64
	Next      string // the folded ID after which to continue; "" for the beginning, or at the end
	Again     bool   // another step is needed, even if Next is ""
}

// Step does one step, for documents with folded IDs after after. It finds revisions
// without a lock and checks them again in its transaction, so that it sees writes that
// come between.
func (p *Purge) Step(ctx context.Context, e *env.Env, after string) (done Step, err error) {
	found, done, err := p.find(ctx, e, after)
	if err != nil || len(found) == 0 {
		return done, err
	}
	next := done.Next
	err = e.Engine.Update(ctx, e.Synced && !p.Lazy, func(tx storage.Tx) error {
		done.Documents, done.Revisions, done.Bytes, done.Next, done.Again = 0, 0, 0, next, next != ""
		for i, id := range found {
			whole, err := p.remove(tx, id, &done)
			if err != nil {
				return err
			}
			if !whole { // the next step continues with this document
				if done.Next, done.Again = after, true; i > 0 {
					done.Next = found[i-1]
				}
				break
			}
		}
		return nil
	})
	return done, err
}

// find returns the next documents of which revisions are to be removed.
func (p *Purge) find(ctx context.Context, e *env.Env, after string) (found []string, done Step, err error) {
	latest := e.Engine.Latest()
	defer func() { err = errs.First(err, latest.Close()) }()
	lo, hi := format.HistoryBounds[0], format.HistoryBounds[1]
	switch {
	case p.FoldedID != "":
		lo = format.HistoryKey(nil, p.FoldedID)
		hi = format.PrefixEnd(lo)
	case after != "":
		lo = format.PrefixEnd(format.HistoryKey(nil, after))
	}
	it, err := latest.Iterate(lo, hi)
	if err != nil {
		return nil, done, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; {
		if err := ctx.Err(); err != nil {
			return nil, done, err
		}
		id, _, err := format.SplitRevisionKey(it.Key())
		if err != nil {
			return nil, done, err
		}
		folded := string(id)
		s, err := stateOf(latest, folded)
		if err != nil {
			return nil, done, err
		}
		if c, some := p.criterion(&s); some {
			drops, err := s.drops(latest, folded, c)
			if err != nil {
				return nil, done, err
			}
			if drops {
				found = append(found, folded)
			}
		}
		if done.Looked++; len(found) == StepDocuments || done.Looked == int64(StepLooked) {
			done.Next, done.Again = folded, true
			return found, done, nil
		}
		ok = it.SeekGE(format.PrefixEnd(bytes.Clone(it.Key()[:len(folded)+2])))
	}
	return found, done, it.Error()
}

// remove stages the removal of one document's revisions. whole is false if the step was
// full before all were removed.
func (p *Purge) remove(tx storage.Tx, foldedID string, done *Step) (whole bool, err error) {
	s, err := stateOf(tx, foldedID)
	if err != nil {
		return false, err
	}
	c, some := p.criterion(&s)
	limit := StepRevisions - int(done.Revisions)
	if !some {
		return true, nil
	}
	if limit <= 0 || done.Bytes >= trimBytes {
		return false, nil
	}
	removed, err := Trim(tx, foldedID, s.Span, limit, c)
	if err != nil || removed.First == s.First {
		return true, err
	}
	for collection, n := range removed.ByFolded {
		tx.Add(format.RevisionCountKey(nil, collection), -n)
	}
	if removed.First > s.Last && (!s.there || s.header.Revision == 0) {
		// No revision is left: numbering starts again.
		tx.Delete(format.HistoryKey(nil, foldedID))
		tx.Delete(format.DeletedKey(nil, foldedID))
	} else {
		tx.Set(format.HistoryKey(nil, foldedID), format.History{First: removed.First, Last: s.Last}.Append(nil), nil)
	}
	if err := env.Revised(tx); err != nil {
		return false, err
	}
	done.Documents++
	done.Revisions += removed.Revisions
	done.Bytes += removed.Bytes
	return !removed.More, nil
}
