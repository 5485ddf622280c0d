package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/bulk"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/storage"
)

// Revisions reads and configures the older versions of documents that a database keeps. By default a database
// keeps none. DB.Revisions returns the handle. All methods are safe for concurrent use.
//
// A revision is a version of a document. The newest revision is the document itself. A write that replaces a
// version keeps the replaced version as a revision in the same commit, so an insert stores nothing twice. A
// deletion keeps the last version, and is a revision itself.
type Revisions struct{ db *core.Database }

// Revisions returns the handle of the revisions.
func (db *DB) Revisions() Revisions { return Revisions{&db.core} }

// RevisionRule determines how many revisions of a document are kept. The zero value keeps all of them. If both
// Keep and KeepFor are set, a revision is removed when both allow it.
//
// Revisions are removed from the oldest on: by each write of their document, at most
// eight of them, in the background if their rule has KeepFor, and by Revisions.Purge.
type RevisionRule struct {
	// Keep is the number of versions of a document to keep, including the newest (MinimumRevisionsToKeep of
	// RavenDB). A deletion counts as a version once the document exists again; before that, it is kept in
	// addition. 0 means no limit. Keep is at most 2^40.
	Keep uint64 `json:"keep,omitempty"`

	// KeepFor is how long a revision is kept after it was replaced, or, for a deletion, after the deletion
	// (MinimumRevisionAgeToKeep, which RavenDB counts from the time when the revision was written). So every
	// state within that time can be read. Afterwards the open database removes the revision in the background:
	// at the latest after a tenth of the shortest KeepFor of all rules (at least a minute, at most a day) plus
	// the time of a scan of all revisions. 0 means no limit.
	KeepFor time.Duration `json:"keepForNs,omitempty"`

	// Disabled stops making new revisions. Existing revisions stay.
	Disabled bool `json:"disabled,omitempty"`
}

// RevisionsConfiguration determines for which collections revisions are kept. The zero value is the
// configuration of a new database: none.
type RevisionsConfiguration struct {
	// Default is the rule of every collection that is not in Collections, or nil to keep no revisions of those.
	Default *RevisionRule `json:"default,omitempty"`

	// Collections are the rules by collection, including "@empty". There are at most 1,000.
	Collections map[string]RevisionRule `json:"collections,omitempty"`
}

// Configure replaces the configuration, which the database stores on disk. Writes that begin after Configure
// has returned follow it.
//
// Configure writes nothing for existing documents. The first write of a document under a rule also keeps the
// version that it replaces, so no version since Configure is lost. Without a rule, or with a disabled one,
// writes make no more revisions; but a version that was written under a rule is still kept when it is replaced.
// Existing revisions stay until Purge removes them.
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
	if err := r.db.Env.Enter(); err != nil {
		return err
	}
	defer r.db.Env.Exit()
	if err := r.db.Revisions.Configure(ctx, r.db.Env, inner); err != nil {
		return fmt.Errorf("configure revisions: %w", err)
	}
	r.db.Retention.Resume()
	return nil
}

// Configuration returns the configuration. The caller owns it.
func (r Revisions) Configuration() RevisionsConfiguration {
	r.db.Refresh()
	inner := r.db.Revisions.Config()
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

// ID returns the ID of the document, in the casing of this version.
func (r *Revision) ID() string { return r.inner.ID() }

// Collection returns the name of the document's collection, or "@empty".
func (r *Revision) Collection() string { return r.inner.Collection() }

// ChangeVector returns the change vector of the version, for Revisions.Get and Revert. An imported revision
// keeps the change vector that it had in its database.
func (r *Revision) ChangeVector() string { return r.inner.ChangeVector() }

// LastModified returns when the version was written, or the document deleted, in UTC.
func (r *Revision) LastModified() time.Time { return metadata.Time(r.inner.Header().Modified) }

// Deletion reports whether the revision is a deletion. Its body is {}.
func (r *Revision) Deletion() bool { return r.inner.Deletion }

// Current reports whether the revision was the newest version of its document when it was read.
func (r *Revision) Current() bool { return r.inner.Current }

// Body returns the JSON of the version as Document.Body does. The caller must not
// change it.
func (r *Revision) Body() json.RawMessage { return r.inner.JSON() }

// Metadata returns the metadata of the version.
func (r *Revision) Metadata() Metadata { return r.inner.Metadata() }

// MarshalJSON returns the body with its @metadata, in the form in which RavenDB returns a revision: like
// Document.MarshalJSON, with the @flags "HasRevisions, Revision" or "HasRevisions, DeleteRevision".
func (r *Revision) MarshalJSON() ([]byte, error) { return r.inner.MarshalJSON() }

// Decode stores the body in the value that v points to, as Document.Decode does.
func (r *Revision) Decode(v any) error { return r.inner.Document.Decode(v) }

// read calls fn with a snapshot.
func (r Revisions) read(ctx context.Context, fn func(from storage.Reader) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.db.Env.Enter(); err != nil {
		return err
	}
	defer r.db.Env.Exit()
	snapshot := r.db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return fn(snapshot)
}

func (r Revisions) reader(ctx context.Context) *revisions.Reader {
	return &revisions.Reader{Env: r.db.Env, Docs: r.db.Docs.For(ctx)}
}

// RevisionPage selects revisions of a document for Revisions.List. The zero value selects all of them.
type RevisionPage struct {
	// Before is a change vector: the list begins after that revision. If that revision no longer exists, List
	// yields ErrNotFound.
	Before string
	// Limit is the greatest number of revisions; 0 means no limit.
	Limit int
}

// List iterates over the revisions of a document, newest first, whether or not the document still exists. The
// newest version is the first of them, if it was written under a rule. For a document without revisions, the
// iteration is empty.
//
// List reads pages of up to 64 revisions, or about 1 MiB: revisions that are removed during the iteration may
// be missing, and revisions that are made during it are not listed. An error comes as the last pair.
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
				found, err = r.reader(ctx).Page(from, r.db.Env.Rules.Fold(id), below)
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

// Get returns a revision of a document by its change vector, or ErrNotFound. Get does a binary search: it takes
// as many look-ups as the number of revisions has binary digits.
func (r Revisions) Get(ctx context.Context, id, changeVector string) (*Revision, error) {
	var found *revisions.Revision
	err := r.read(ctx, func(from storage.Reader) (err error) {
		found, err = r.reader(ctx).Get(from, r.db.Env.Rules.Fold(id), changeVector)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("revision %.100q of %q: %w", changeVector, errs.Shorten(id), err)
	}
	return &Revision{found}, nil
}

// AsOf returns the version that a document had at the time at: the newest of its revisions that was written by
// then, by the clock of the database. It returns ErrNotFound if the document was deleted at that time, or if no
// revision so old is kept. AsOf does not know versions that were written without a rule, except the newest one,
// which is the document.
//
// AsOf examines the revisions that were written since, newest first.
func (r Revisions) AsOf(ctx context.Context, id string, at time.Time) (*Revision, error) {
	var found *revisions.Revision
	err := r.read(ctx, func(from storage.Reader) (err error) {
		found, err = r.reader(ctx).AsOf(ctx, from, r.db.Env.Rules.Fold(id), metadata.Ticks(at))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%q as of %v: %w", errs.Shorten(id), at, err)
	}
	return &Revision{found}, nil
}

// Deleted iterates over the deleted documents that have revisions (RavenDB's revisions bin), in the order of
// their IDs, beginning after the ID after. It yields the newest revision of each document. An error comes as
// the last pair.
func (r Revisions) Deleted(ctx context.Context, after string) iter.Seq2[*Revision, error] {
	return func(yield func(*Revision, error) bool) {
		for next := r.db.Env.Rules.Fold(after); ; {
			var found []*revisions.Revision
			err := r.read(ctx, func(from storage.Reader) (err error) {
				found, next, err = r.reader(ctx).Deleted(ctx, from, next)
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

// All iterates over the revisions of a collection, or of all collections if collection is "", in the order of
// IDs and, for each ID, from the oldest on. It leaves out the newest versions, which are the documents. It
// reads pages, as List does. An error comes as the last pair.
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
				found, more, err = r.reader(ctx).All(ctx, from, &at, folded)
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

// Revert writes the body, the custom metadata and the collection of a revision again. This is an ordinary
// write, which makes a new version, and restores a deleted document. Revert returns ErrUsage for the revision
// of a deletion: use DB.Delete instead. It returns ErrNotFound if the revision does not exist, and the errors
// of DB.Put, to which it passes opts, such as IfMatch.
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
	m, err := writeTo(ctx, r.db, o)
	if err != nil {
		return Metadata{}, fmt.Errorf("revert to %.100q: %w", changeVector, err)
	}
	return m, nil
}

// Diff returns the differences between two revisions of a document, by their change vectors, as patch.Diff
// finds them. A deletion has no members. An empty before means a document without members, and an empty after
// means the present document.
func (r Revisions) Diff(ctx context.Context, id, before, after string) ([]FieldChange, error) {
	from, err := r.bodyOf(ctx, id, before)
	if err != nil {
		return nil, err
	}
	to, err := r.bodyOf(ctx, id, after)
	if err == nil && after == "" {
		var doc *docs.Document
		if doc, err = r.db.Get(ctx, id); err == nil {
			to = doc.JSON()
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

// Force makes the present version of the document a revision, whatever the configuration says
// (forceRevisionCreation of RavenDB): the write that replaces the version keeps it. The version of the document
// does not change. Force returns ErrNotFound if the document does not exist, and changes nothing if the version
// is a revision already. Force uses only IfMatch of opts.
func (r Revisions) Force(ctx context.Context, id string, opts ...WriteOption) (Metadata, error) {
	return writeTo(ctx, r.db, newOp(write.Keep, id, nil, opts))
}

// KeepRevision makes a write keep as revisions both the version that it replaces and the version that it
// writes, whatever the configuration says.
func KeepRevision() WriteOption {
	return writeOption(func(o *op) { o.KeepRevision = true })
}

// KeepReplaced makes a write keep the version that it replaces as a revision, whatever the configuration says,
// but not the version that it writes (ForceRevisionStrategy.Before of RavenDB). A write of a new document keeps
// nothing.
func KeepReplaced() WriteOption {
	return writeOption(func(o *op) { o.KeepReplaced = true })
}

// errNoPurge refuses a purge of everything that was not asked for.
var errNoPurge = errors.New("nothing says which revisions are to go: set Retention, Before or ID")

// RevisionPurge selects the revisions that Revisions.Purge removes: those that satisfy all fields that are set.
// One of ID, Before and Retention must be set.
type RevisionPurge struct {
	// ID limits the purge to one document.
	ID string
	// Collection limits the purge to documents of this collection, deleted or not.
	Collection string
	// Deleted limits the purge to deleted documents.
	Deleted bool

	// Before removes revisions that were replaced before this time, by the clock of the database, and deletions
	// that happened before it. The zero value means any time.
	Before time.Time
	// Retention removes the revisions that the rules of the configuration no longer keep. It cannot be combined
	// with Before. Imported revisions whose document is not there stay, unless the newest of them is a deletion:
	// an import stores the document after them.
	Retention bool

	// After continues after this ID: set it to RevisionsPurged.Next of an interrupted purge.
	After string
	// Progress is called after each batch, with the counts so far.
	Progress func(RevisionsPurged)
}

// RevisionsPurged counts the work of a purge.
type RevisionsPurged struct {
	Looked    int64  `json:"looked"`    // documents with revisions that it has examined
	Documents int64  `json:"documents"` // with removed revisions; a document with many may count more than once
	Revisions int64  `json:"revisions"`
	Bytes     int64  `json:"bytes"`
	Next      string `json:"next,omitempty"` // the folded ID after which to continue; "" at the end
}

// Purge removes revisions permanently, from the oldest revision of each document on: if one revision must stay,
// the later ones stay, too. Purge does not change the newest version of a document, which is the document
// itself.
//
// Purge works in batches of up to 64 documents and 1,024 revisions. Each batch is a transaction. Batches share
// syncs of the disk, and are durable, as Options.Durability says, when Purge returns. If ctx or the process
// ends, most earlier batches are done; call Purge again to remove the rest. Purge returns its counts also with
// an error.
func (r Revisions) Purge(ctx context.Context, p RevisionPurge) (done RevisionsPurged, err error) {
	inner, err := r.purge(p)
	if err != nil {
		return done, fmt.Errorf("purge revisions: %w", err)
	}
	done.Next = r.db.Env.Rules.Fold(p.After)
	lazy := bulk.NewLazy(r.db)
	err = r.purgeAll(ctx, inner, lazy, p.Progress, &done)
	if err = lazy.Finish(ctx, err); err != nil {
		return done, fmt.Errorf("purge revisions, when %d were removed: %w", done.Revisions, err)
	}
	return done, nil
}

// purgeAll does step after step, and leaves the sync of the last ones to the caller.
func (r Revisions) purgeAll(ctx context.Context, p *revisions.Purge, lazy *bulk.Lazy, progress func(RevisionsPurged), done *RevisionsPurged) error {
	p.Lazy = true
	for {
		step, err := r.purgeStep(ctx, p, done.Next)
		if err != nil {
			return err
		}
		done.Looked += step.Looked
		done.Documents += step.Documents
		done.Revisions += step.Revisions
		done.Bytes += step.Bytes
		done.Next = step.Next
		if step.Documents > 0 {
			if err := lazy.Committed(ctx, int(step.Bytes)); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(*done)
		}
		if step.Next == "" && !step.Again {
			return nil
		}
	}
}

func (r Revisions) purgeStep(ctx context.Context, p *revisions.Purge, after string) (revisions.Step, error) {
	if err := ctx.Err(); err != nil {
		return revisions.Step{}, err
	}
	if err := r.db.Env.Enter(); err != nil {
		return revisions.Step{}, err
	}
	defer r.db.Env.Exit()
	return p.Step(ctx, r.db.Env, after)
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
	out := &revisions.Purge{FoldedID: r.db.Env.Rules.Fold(p.ID), Collection: collection, Deleted: p.Deleted, Criterion: revisions.Everything}
	switch {
	case p.Retention:
		out.Retention, out.Rules, out.Now = true, &r.db.Revisions, metadata.Ticks(r.db.Env.Now())
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

// RevisionCount is the number of revisions of a collection, without the newest versions of its documents.
type RevisionCount struct {
	Collection string `json:"collection"` // folded
	Revisions  int64  `json:"revisions"`
}

// Counts returns the number of revisions of each collection, without the newest versions, which are the
// documents. The result is sorted by folded name. Every commit maintains the numbers.
func (r Revisions) Counts(ctx context.Context) (all []RevisionCount, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.db.Env.Enter(); err != nil {
		return nil, err
	}
	defer r.db.Env.Exit()
	snapshot := r.db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	payer := budget.NewPayer(ctx)
	return revisionCounts(snapshot, &payer)
}

// revisionCounts returns the numbers of a snapshot. payer pays for them while they are read.
func revisionCounts(snapshot storage.Reader, payer *budget.Payer) (all []RevisionCount, err error) {
	found, err := revisions.Counts(snapshot, payer)
	if err != nil {
		return nil, fmt.Errorf("count revisions: %w", err)
	}
	for _, c := range found {
		all = append(all, RevisionCount{c.Collection, c.Revisions})
	}
	return all, nil
}

// maxImported is how many revisions one Import takes.
const maxImported = 1000

// Import stores revisions of another database, as Revision.MarshalJSON returns them: with @id, @change-vector,
// @last-modified, @flags and, unless it is @empty, @collection in their @metadata. The revisions keep all of
// these, so Get finds them by their original change vectors. Import stores up to 1,000 revisions atomically,
// and returns the number of revisions that did not exist already. It ignores the rules of the configuration.
//
// Import the revisions of a document before you write the document, from the oldest on, as Revisions.All lists
// them. Otherwise Import returns ErrExists. Later writes get higher etags than the imported revisions.
func (r Revisions) Import(ctx context.Context, all []json.RawMessage) (stored int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(all) > maxImported {
		return 0, fmt.Errorf("import revisions: %w: at most %d at a time, not %d", ErrUsage, maxImported, len(all))
	}
	if err := r.db.Env.Enter(); err != nil {
		return 0, err
	}
	defer r.db.Env.Exit()
	list := make([]revisions.Imported, len(all))
	etag := uint64(0)
	for i, text := range all {
		if list[i], err = r.imported(text); err != nil {
			return 0, fmt.Errorf("import revision %d of %d: %w", i+1, len(all), err)
		}
		etag = max(etag, list[i].Etag)
	}
	if err := r.db.Reserved.RaiseEtag(ctx, etag); err != nil {
		return 0, fmt.Errorf("import revisions: %w", err)
	}
	if stored, err = r.reader(ctx).Import(ctx, list); err != nil {
		return 0, fmt.Errorf("import revisions: %w", err)
	}
	return stored, nil
}

// imported reads one revision.
func (r Revisions) imported(text []byte) (m revisions.Imported, err error) {
	scanned, err := metadata.Scan(text, r.db.Env.Limits)
	if err != nil {
		return m, err
	}
	given, err := metadata.Parse(docs.OrObject(scanned.Metadata))
	if err != nil {
		return m, err
	}
	raw := gjson.ParseBytes(scanned.Metadata)
	flags := strings.Split(raw.Get(`\@flags`).String(), ", ")
	m = revisions.Imported{ID: given.ID, Collection: given.Collection, Custom: given.Custom, Body: slices.Clone(scanned.Body)}
	m.Deletion = slices.Contains(flags, metadata.DeleteRevision.String())
	if !m.Deletion && !slices.Contains(flags, metadata.Revision.String()) {
		return m, &DocumentError{Rule: "a revision has Revision or DeleteRevision in its @flags", Detail: fmt.Sprintf("%.100q", strings.Join(flags, ", "))}
	}
	if m.Deletion && string(m.Body) != "{}" {
		return m, &DocumentError{Rule: "a deletion has no members", Detail: fmt.Sprintf("%.100s", m.Body)}
	}
	if err := r.db.Env.Rules.Check(m.ID); err != nil {
		return m, err
	}
	m.FoldedID = r.db.Env.Rules.Fold(m.ID)
	modified, err := time.Parse(time.RFC3339Nano, raw.Get(`\@last-modified`).String())
	if err != nil {
		return m, &DocumentError{Rule: "a revision has a time in its @last-modified", Detail: fmt.Sprintf("%.100q", raw.Get(`\@last-modified`).String())}
	}
	m.Modified = metadata.Ticks(modified)
	m.ChangeVector = raw.Get(`\@change-vector`).String()
	return m, m.Check()
}
