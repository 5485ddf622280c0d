package jay

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// RevisionPurge says which revisions Revisions.Purge removes: those that satisfy all
// that is set. One of ID, Before and Retention must be set.
type RevisionPurge struct {
	// ID limits the purge to one document.
	ID string
	// Collection limits it to documents of this collection, deleted or not.
	Collection string
	// Deleted limits it to documents that are deleted.
	Deleted bool

	// Before removes revisions that were replaced before this time, by the clock of the
	// database, and deletions that happened before it. The zero value is any time.
	Before time.Time
	// Retention removes what the rules of the configuration keep no longer. It goes
	// without Before.
	Retention bool

	// After goes on behind this ID: RevisionsPurged.Next of a purge that was cut short.
	After string
	// Progress is called after each batch, with what is done so far.
	Progress func(RevisionsPurged)
}

// RevisionsPurged is what a purge has done.
type RevisionsPurged struct {
	Looked    int64  `json:"looked"`    // documents with revisions that it has looked at
	Documents int64  `json:"documents"` // of which revisions were removed; more than once if there were many
	Revisions int64  `json:"revisions"`
	Bytes     int64  `json:"bytes"`
	Next      string `json:"next,omitempty"` // the folded ID to go on after; "" at the end
}

// Purge removes revisions for good, from the oldest of each document on: if one is to
// stay, those after it stay too. The newest version of a document, which is the document,
// is not touched.
//
// It works in batches of up to 64 documents and 1,024 revisions, each a transaction. If
// ctx ends, or the process, the batches before are done; calling Purge again removes the
// rest. It returns what it has done also with an error.
func (r Revisions) Purge(ctx context.Context, p RevisionPurge) (done RevisionsPurged, err error) {
	inner, err := r.purge(p)
	if err != nil {
		return done, fmt.Errorf("purge revisions: %w", err)
	}
	done.Next = r.db.env.Rules.Fold(p.After)
	for {
		step, err := r.purgeStep(ctx, inner, done.Next)
		if err != nil {
			return done, fmt.Errorf("purge revisions, when %d were removed: %w", done.Revisions, err)
		}
		done.Looked += step.Looked
		done.Documents += step.Documents
		done.Revisions += step.Revisions
		done.Bytes += step.Bytes
		done.Next = step.Next
		if p.Progress != nil {
			p.Progress(done)
		}
		if step.Next == "" && !step.Again {
			return done, nil
		}
	}
}

func (r Revisions) purgeStep(ctx context.Context, p *revisions.Purge, after string) (revisions.Step, error) {
	if err := ctx.Err(); err != nil {
		return revisions.Step{}, err
	}
	if err := r.db.env.Enter(); err != nil {
		return revisions.Step{}, err
	}
	defer r.db.env.Exit()
	return p.Step(ctx, r.db.env, after)
}

// purge returns p for the package below.
func (r Revisions) purge(p RevisionPurge) (*revisions.Purge, error) {
	collection, err := foldedOrAll(p.Collection)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Retention && !p.Before.IsZero():
		return nil, fmt.Errorf("%w: Retention goes without Before", ErrUsage)
	case !p.Retention && p.Before.IsZero() && p.ID == "":
		return nil, fmt.Errorf("%w: %w", ErrUsage, errNoPurge)
	}
	out := &revisions.Purge{FoldedID: r.db.env.Rules.Fold(p.ID), Collection: collection, Deleted: p.Deleted, Criterion: revisions.Everything}
	switch {
	case p.Retention:
		out.Retention, out.Rules, out.Now = true, r.db.revisions.Load(), metadata.Ticks(r.db.env.Now())
	case !p.Before.IsZero():
		out.Criterion = revisions.ReplacedBefore(p.Before)
	}
	return out, nil
}

// foldedOrAll returns the folded name of a collection, or "" for all.
func foldedOrAll(collection string) (string, error) {
	if collection == "" {
		return "", nil
	}
	return format.CollectionKey(collection), metadata.CheckCollection(collection)
}

// RevisionCount says how many revisions a collection has, beside the newest versions
// of its documents.
type RevisionCount struct {
	Collection string `json:"collection"` // folded
	Revisions  int64  `json:"revisions"`
}

// Counts returns how many revisions each collection has that lie beside the documents,
// by folded name. The numbers are kept by every commit.
func (r Revisions) Counts(ctx context.Context) (all []RevisionCount, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.db.env.Enter(); err != nil {
		return nil, err
	}
	defer r.db.env.Exit()
	snapshot := r.db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return revisionCounts(snapshot)
}

func revisionCounts(snapshot storage.Reader) (all []RevisionCount, err error) {
	found, err := revisions.Counts(snapshot)
	if err != nil {
		return nil, fmt.Errorf("count revisions: %w", err)
	}
	for _, c := range found {
		all = append(all, RevisionCount{c.Collection, c.Revisions})
	}
	return all, nil
}
