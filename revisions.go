package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/storage"
)

// Revisions are the older versions of documents that a database keeps, and what
// configures which it keeps: by default none. DB.Revisions returns the handle. All
// methods are safe for concurrent use.
//
// A revision is a version of a document: the newest one, which is the document, too. A
// write that replaces a version keeps it as a revision in the same commit, so that an
// insert stores nothing twice. A deletion keeps the last version, and is a revision
// itself.
type Revisions struct{ db *DB }

// Revisions returns the handle of the revisions.
func (db *DB) Revisions() Revisions { return Revisions{db} }

// RevisionRule says how many revisions of a document are kept. The zero value keeps
// all of them. If both Keep and KeepFor are set, a revision goes when both allow it.
//
// Revisions are removed from the oldest on: by each write of their document, at most
// eight of them, in the background if their rule has KeepFor, and by Revisions.Purge.
type RevisionRule struct {
	// Keep is how many versions of a document are kept, the newest included
	// (MinimumRevisionsToKeep of RavenDB). A deletion counts as a version once the
	// document is there again; before, it is kept beside them. 0 is no limit. At most
	// 2^40.
	Keep uint64 `json:"keep,omitempty"`

	// KeepFor is how long a revision is kept after it was replaced, or after the
	// deletion that it is (MinimumRevisionAgeToKeep, which RavenDB counts from when the
	// revision was written). So every state of that time can be read. Then it is
	// removed in the background, while the database is open: not later than after a tenth
	// of the shortest KeepFor of all rules (a minute at least, a day at most) and the
	// time that a walk over all revisions takes. 0 is no limit.
	KeepFor time.Duration `json:"keepForNs,omitempty"`

	// Disabled makes no new revisions. Those that are there stay.
	Disabled bool `json:"disabled,omitempty"`
}

// RevisionsConfiguration says of which collections revisions are kept. The zero value
// is that of a new database: none.
type RevisionsConfiguration struct {
	// Default is the rule of every collection that is not in Collections, or nil if
	// there are no revisions of those.
	Default *RevisionRule `json:"default,omitempty"`

	// Collections are the rules by collection; "@empty" is one too. At most 1,000.
	Collections map[string]RevisionRule `json:"collections,omitempty"`
}

// Configure replaces the configuration, which is kept in the database, on disk. Writes
// that begin after Configure has returned follow it.
//
// Nothing is written for documents that are there. When the first of their writes
// follows a rule, the version that it replaces is kept as well, so that nothing is lost
// since Configure. Without a rule, or with one that is disabled, no more revisions are
// made, but a version that was written under a rule is still kept when it is replaced;
// what was kept stays until Purge removes it.
func (r Revisions) Configure(ctx context.Context, c RevisionsConfiguration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inner := revisions.Config{Collections: make(map[string]revisions.Rule, len(c.Collections))}
	if c.Default != nil {
		rule := revisions.Rule(*c.Default)
		inner.Default = &rule
	}
	for name, rule := range c.Collections {
		inner.Collections[name] = revisions.Rule(rule)
	}
	if err := r.db.env.Enter(); err != nil {
		return err
	}
	defer r.db.env.Exit()
	if err := r.db.revisions.Configure(ctx, r.db.env, inner); err != nil {
		return fmt.Errorf("configure revisions: %w", err)
	}
	r.db.retention.Resume()
	return nil
}

// Configuration returns the configuration. The caller owns it.
func (r Revisions) Configuration() RevisionsConfiguration {
	inner := r.db.revisions.Config()
	c := RevisionsConfiguration{Collections: make(map[string]RevisionRule, len(inner.Collections))}
	if inner.Default != nil {
		rule := RevisionRule(*inner.Default)
		c.Default = &rule
	}
	for name, rule := range inner.Collections {
		c.Collections[name] = RevisionRule(rule)
	}
	return c
}

// Revision is a version of a document, or its deletion. It is immutable.
type Revision struct{ inner *revisions.Revision }

// ID returns the ID of the document, in the case in which this version was written.
func (r *Revision) ID() string { return r.inner.ID() }

// Collection returns the name of the document's collection, or "@empty".
func (r *Revision) Collection() string { return r.inner.Collection() }

// ChangeVector names the version, for Revisions.Get and Revert. That of an imported
// revision is the one that it had in its database.
func (r *Revision) ChangeVector() string { return r.inner.ChangeVector() }

// LastModified returns when the version was written, or the document deleted, in UTC.
func (r *Revision) LastModified() time.Time { return metadata.Time(r.inner.Header().Modified) }

// Deletion reports whether the revision is a deletion. Its body is {}.
func (r *Revision) Deletion() bool { return r.inner.Deletion }

// Current reports whether the revision is the newest version of its document, that is,
// whether it was that when it was read.
func (r *Revision) Current() bool { return r.inner.Current }

// Body returns the JSON of the version as Document.Body does. The caller must not
// change it.
func (r *Revision) Body() json.RawMessage { return r.inner.JSON() }

// Metadata returns all that is known about the version.
func (r *Revision) Metadata() Metadata { return r.inner.Metadata() }

// MarshalJSON returns the body with its @metadata, as RavenDB returns a revision: as
// Document.MarshalJSON, with the @flags "HasRevisions, Revision" or "HasRevisions,
// DeleteRevision".
func (r *Revision) MarshalJSON() ([]byte, error) { return r.inner.MarshalJSON() }

// Decode stores the body in the value that v points to, as Document.Decode does.
func (r *Revision) Decode(v any) error { return r.inner.Document.Decode(v) }

// read calls fn with a snapshot.
func (r Revisions) read(ctx context.Context, fn func(from storage.Reader) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.db.env.Enter(); err != nil {
		return err
	}
	defer r.db.env.Exit()
	snapshot := r.db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return fn(snapshot)
}

func (r Revisions) reader() *revisions.Reader {
	return &revisions.Reader{Env: r.db.env, Docs: r.db.docs}
}

// RevisionPage selects revisions of a document for Revisions.List. The zero value
// selects all.
type RevisionPage struct {
	// Before is a change vector: the list begins behind that revision. If there is no
	// such revision any more, List yields ErrNotFound.
	Before string
	// Limit is how many revisions are listed at most; 0 is no limit.
	Limit int
}

// List iterates over the revisions of a document, newest first, whether or not it is
// still there. The newest version is the first of them, if it was written under a rule.
// Without revisions there are none.
//
// They are read in pages of up to 64, or about 1 MiB: those that are removed meanwhile
// may be missing, and those that are made are not listed. An error is the last pair.
func (r Revisions) List(ctx context.Context, id string, page RevisionPage) iter.Seq2[*Revision, error] {
	return func(yield func(*Revision, error) bool) {
		if page.Limit < 0 {
			yield(nil, fmt.Errorf("revisions of %q: %w: Limit is %d", errs.Shorten(id), ErrUsage, page.Limit))
			return
		}
		below, left := uint64(math.MaxUint64), page.Limit
		if page.Before != "" {
			first, err := r.Get(ctx, id, page.Before)
			if err != nil {
				yield(nil, err)
				return
			}
			below = first.inner.Number
		}
		for {
			var found []*revisions.Revision
			err := r.read(ctx, func(from storage.Reader) (err error) {
				found, err = r.reader().Page(from, r.db.env.Rules.Fold(id), below)
				return err
			})
			if err != nil {
				yield(nil, fmt.Errorf("revisions of %q: %w", errs.Shorten(id), err))
				return
			}
			if len(found) == 0 {
				return
			}
			for _, rev := range found {
				if below = rev.Number; !yield(&Revision{rev}, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
	}
}

// Get returns a revision of a document by its change vector, or ErrNotFound. It takes
// as many look-ups as the number of revisions has binary digits.
func (r Revisions) Get(ctx context.Context, id, changeVector string) (*Revision, error) {
	var found *revisions.Revision
	err := r.read(ctx, func(from storage.Reader) (err error) {
		found, err = r.reader().Get(from, r.db.env.Rules.Fold(id), changeVector)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("revision %.100q of %q: %w", changeVector, errs.Shorten(id), err)
	}
	return &Revision{found}, nil
}

// AsOf returns the version that a document had at a time: the newest of its revisions
// that was written by then, by the clock of the database. It returns ErrNotFound if the
// document was deleted then, or if nothing so old is kept. Versions that were written
// without a rule are not known, but for the newest one, which the document is.
//
// The revisions that were written since are looked at, newest first.
func (r Revisions) AsOf(ctx context.Context, id string, at time.Time) (*Revision, error) {
	var found *revisions.Revision
	err := r.read(ctx, func(from storage.Reader) (err error) {
		found, err = r.reader().AsOf(ctx, from, r.db.env.Rules.Fold(id), metadata.Ticks(at))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%q as of %v: %w", errs.Shorten(id), at, err)
	}
	return &Revision{found}, nil
}

// Deleted iterates over the deleted documents that have revisions (RavenDB's revisions
// bin), in the order of their IDs, from behind the ID after: the newest revision of
// each. An error is the last pair.
func (r Revisions) Deleted(ctx context.Context, after string) iter.Seq2[*Revision, error] {
	return func(yield func(*Revision, error) bool) {
		for next := r.db.env.Rules.Fold(after); ; {
			var found []*revisions.Revision
			err := r.read(ctx, func(from storage.Reader) (err error) {
				found, next, err = r.reader().Deleted(ctx, from, next)
				return err
			})
			if err != nil {
				yield(nil, fmt.Errorf("deleted documents: %w", err))
				return
			}
			for _, rev := range found {
				if !yield(&Revision{rev}, nil) {
					return
				}
			}
			if next == "" {
				return
			}
		}
	}
}

// All iterates over the revisions of a collection, or of all if it is "", in the order
// of their IDs and from the oldest on, but for the newest versions: those are the
// documents. They are read in pages as by List. An error is the last pair.
func (r Revisions) All(ctx context.Context, collection string) iter.Seq2[*Revision, error] {
	return func(yield func(*Revision, error) bool) {
		folded, err := foldedOrAll(collection)
		if err != nil {
			yield(nil, fmt.Errorf("revisions: %w", err))
			return
		}
		var at revisions.Position
		for more := true; more; {
			var found []*revisions.Revision
			err := r.read(ctx, func(from storage.Reader) (err error) {
				found, more, err = r.reader().All(ctx, from, &at, folded)
				return err
			})
			if err != nil {
				yield(nil, fmt.Errorf("revisions: %w", err))
				return
			}
			for _, rev := range found {
				if !yield(&Revision{rev}, nil) {
					return
				}
			}
		}
	}
}

// Revert writes the body, the custom metadata and the collection of a revision again: an
// ordinary write, which makes a new version. A document that was deleted is there again.
// A deletion cannot be reverted to (ErrUsage): use DB.Delete. Otherwise Revert
// returns ErrNotFound if there is no such revision, and the errors of DB.Put, to which
// it passes opts, such as IfMatch.
func (r Revisions) Revert(ctx context.Context, id, changeVector string, opts ...WriteOption) (Metadata, error) {
	rev, err := r.Get(ctx, id, changeVector)
	if err != nil {
		return Metadata{}, fmt.Errorf("revert: %w", err)
	}
	if rev.Deletion() {
		return Metadata{}, fmt.Errorf("revert %q: %w: revision %.100q is a deletion", errs.Shorten(id), ErrUsage, changeVector)
	}
	o := newOp(write.Put, rev.ID(), rev.Body(), opts)
	o.Collection, o.Custom = rev.Collection(), rev.inner.Header().Custom
	m, err := writeOne(ctx, r.db, o)
	if err != nil {
		return Metadata{}, fmt.Errorf("revert to %.100q: %w", changeVector, err)
	}
	return m, nil
}

// Diff returns the differences between two revisions of a document, by their change
// vectors, as patch.Diff finds them. A deletion has no members. An empty before stands
// for a document without members, and an empty after for the document as it is.
func (r Revisions) Diff(ctx context.Context, id, before, after string) ([]FieldChange, error) {
	from, err := r.bodyOf(ctx, id, before)
	if err != nil {
		return nil, err
	}
	to, err := r.bodyOf(ctx, id, after)
	if err == nil && after == "" {
		var doc *Document
		if doc, err = r.db.Get(ctx, id); err == nil {
			to = doc.Body()
		}
	}
	if err != nil {
		return nil, err
	}
	return patch.Diff(from, to), nil
}

func (r Revisions) bodyOf(ctx context.Context, id, changeVector string) ([]byte, error) {
	if changeVector == "" {
		return nil, nil
	}
	rev, err := r.Get(ctx, id, changeVector)
	if err != nil {
		return nil, err
	}
	return rev.Body(), nil
}

// Force makes the document as it is a revision, whatever the configuration says
// (forceRevisionCreation of RavenDB): the write that replaces it keeps it. The document
// keeps its version. Force returns ErrNotFound if it is not there; one that is a revision
// already stays as it is. Of opts only IfMatch has a meaning.
func (r Revisions) Force(ctx context.Context, id string, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, r.db, newOp(write.Keep, id, nil, opts))
}

// KeepRevision makes the version that a write replaces a revision, and the one that it
// writes, whatever the configuration says.
func KeepRevision() WriteOption {
	return func(o *op) { o.KeepRevision = true }
}

// checkRevisions checks every revision: see revisions.Check.
func checkRevisions(db *DB) (err error) {
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return revisions.Check(snapshot)
}

// errNoPurge refuses a purge of everything that was not asked for.
var errNoPurge = errors.New("nothing says which revisions are to go: set Retention, Before or ID")
