package jay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Change is the newest change of a document when it was read: that it was written, or
// deleted.
type Change struct {
	// ID is the document's ID as it was written. That of a deletion is folded: IDs
	// are compared as the database compares them.
	ID string

	// Collection is the document's collection, or "@empty".
	Collection string

	// Etag is the number of the write. Changes come in the order of their etags.
	Etag uint64

	// Deleted is true for a deletion.
	Deleted bool

	// LastModified is when the document was written, in UTC. A deletion has none.
	LastModified time.Time

	// Document is the document that was written, with WithDocuments. A deletion has
	// none.
	Document *Document

	// Checkpoint is true for what WithCheckpoints adds: it is no change, and has
	// only an Etag and a Token.
	Checkpoint bool

	base      uint64 // see feed.Token
	node, own uint64 // that wrote it, and of the database
	origins   env.Origins
}

// Token returns the text with which Changes goes on behind this change, in this process
// or in a later one.
func (c Change) Token() string {
	if c.Etag == 0 {
		return ""
	}
	return feed.Token(c.origins, c.own, c.Etag, c.base)
}

// ChangeVector returns the change vector of the version that was written, as the
// document has it, or that of the deletion.
func (c Change) ChangeVector() string {
	if c.Checkpoint || c.Etag == 0 {
		return ""
	}
	return c.origins.ChangeVector(c.node, c.Etag)
}

// SinceNow is what Changes is given to begin behind the newest change.
const SinceNow = feed.Now

// ChangesGoneError is returned by Changes when it cannot go on behind a token without
// missing changes: records of deletions behind it were removed, or it is a token of
// another database, such as the original of this copy, or of a state that was lost. Begin
// again with "": what does not come until the feed has caught up is no longer there.
// errors.Is(err, ErrChangesGone) is true.
type ChangesGoneError struct {
	Since  string // the token
	Oldest uint64 // the oldest usable etag: the least that a token may have now
	Reason string // such as "records of deletions up to etag 812 were removed"
}

func (e *ChangesGoneError) Error() string {
	return fmt.Sprintf("%v: since %q: %s; the oldest usable etag is %d: begin again with all documents", ErrChangesGone, errs.Shorten(e.Since), e.Reason, e.Oldest)
}

// Is reports whether target is ErrChangesGone.
func (e *ChangesGoneError) Is(target error) bool { return target == ErrChangesGone }

// changesError makes an error of package feed one of this package.
func changesError(err error) error {
	var gone *feed.GoneError
	if errors.As(err, &gone) {
		return &ChangesGoneError{gone.Since, gone.Oldest, gone.Reason}
	}
	return err
}

// ChangesOption changes what DB.Changes iterates over.
type ChangesOption func(*changesOptions)

type changesOptions struct {
	collections, prefixes, ids []string
	documents, checkpoints     bool
	untilCaughtUp              bool
	opened                     func()
}

// maxChangesFilters is how many collections, prefixes or IDs a feed can name.
const maxChangesFilters = 128

// OfCollections limits Changes to documents of these collections; "@empty" is one too.
func OfCollections(names ...string) ChangesOption {
	return func(o *changesOptions) { o.collections = append(o.collections, names...) }
}

// OfPrefixes limits Changes to documents whose IDs begin with one of these prefixes.
func OfPrefixes(prefixes ...string) ChangesOption {
	return func(o *changesOptions) { o.prefixes = append(o.prefixes, prefixes...) }
}

// OfIDs limits Changes to these documents, whether or not they exist.
func OfIDs(ids ...string) ChangesOption {
	return func(o *changesOptions) { o.ids = append(o.ids, ids...) }
}

// WithDocuments makes Changes read the documents: those of the changes, not newer ones.
func WithDocuments() ChangesOption {
	return func(o *changesOptions) { o.documents = true }
}

// WithCheckpoints makes Changes report, now and then, how far it has come when the
// filters leave out what it passes: a Change with Checkpoint set. Who stores its Token
// need not pass the same changes again, and the token does not grow old while others
// change. A feed that begins at SinceNow reports first where that is, so that one that
// is cut short before its first change can go on without a gap: behind that, or, if
// nothing was ever written, behind "".
func WithCheckpoints() ChangesOption {
	return func(o *changesOptions) { o.checkpoints = true }
}

// UntilCaughtUp makes Changes end when it has come to the newest change, instead of
// waiting for more.
func UntilCaughtUp() ChangesOption {
	return func(o *changesOptions) { o.untilCaughtUp = true }
}

// Opened has fn called once the feed has its position, before its first change: every
// change that is committed after the call comes, with SinceNow too. So a program can
// begin to follow changes, and then read or write what they are about. fn must not
// block.
func Opened(fn func()) ChangesOption {
	return func(o *changesOptions) { o.opened = fn }
}

// Changes iterates over the changes of documents, in the order in which they were
// committed: first those behind since, then, without a gap, those to come, until ctx
// ends, the database is closed or the loop is left. since is "" for all of them, the
// Token of a Change, or SinceNow. The changes behind "" are all documents.
//
//	for change, err := range db.Changes(ctx, token, jay.OfCollections("Orders")) {
//		if err != nil {
//			return err
//		}
//		… // do something with it, then store change.Token()
//	}
//
// A document comes with its newest change. What was overwritten before the feed came to
// it is skipped; the last state of a document never is. Under Synced durability a
// change comes only when it is on disk. Under Relaxed it comes when it is committed, and a
// crash may undo it later: call Flush before you store its token.
//
// A deletion comes as a Change with Deleted set. Its record is kept for a feed that is
// open, as long as it is not more than 1,000,000 etags behind the newest change, and in any
// case while it is among the newest 1,000. So a feed ends with a *ChangesGoneError if
// it falls behind further, or if its token has become too old while it was not
// open. A Subscription keeps what it needs.
//
// The feed reads from the disk, in batches of up to 256 changes or 1 MiB of documents,
// and holds nothing else: however slow the loop's body is, no writer waits for it.
// Filters of different kinds must all hold. They make no feed quicker: it
// reads each change record.
//
// If the iteration fails, its last pair is a zero Change and the error: ErrClosed when
// the database is closed, that of ctx when it ends, ErrFailed when the database can
// no longer write.
func (db *DB) Changes(ctx context.Context, since string, opts ...ChangesOption) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if err := yieldChanges(ctx, db, since, opts, yield); err != nil {
			yield(Change{}, fmt.Errorf("changes: %w", changesError(err)))
		}
	}
}

// yieldChanges returns nil when the loop was left, or has ended because it has caught
// up.
func yieldChanges(ctx context.Context, db *DB, since string, opts []ChangesOption, yield func(Change, error) bool) error {
	var o changesOptions
	for _, opt := range opts {
		opt(&o)
	}
	f, err := openFeed(ctx, db, since, &o)
	if err != nil {
		return err
	}
	defer f.Close()
	if o.opened != nil {
		o.opened()
	}
	reported := f.Position()
	if since == SinceNow && o.checkpoints && reported > 0 && !yield(f.checkpoint(reported), nil) {
		return nil
	}
	for {
		found, more, err := f.read(ctx)
		if err != nil {
			return err
		}
		for i := range found {
			if reported = found[i].Etag; !yield(f.change(&found[i]), nil) {
				return nil
			}
		}
		if passed := f.Position(); o.checkpoints && passed > reported {
			reported = passed
			if !yield(f.checkpoint(passed), nil) {
				return nil
			}
		}
		if more {
			continue
		}
		if o.untilCaughtUp {
			return nil
		}
		if err := f.Wait(ctx); err != nil {
			return err
		}
	}
}

// openedFeed is a feed of a database, which it reads inside the gate.
type openedFeed struct {
	*feed.Feed
	db *DB
}

// openFeed opens a feed, which must be closed.
func openFeed(ctx context.Context, db *DB, since string, o *changesOptions) (openedFeed, error) {
	filter, err := o.filter(db)
	if err != nil {
		return openedFeed{}, err
	}
	if err := ctx.Err(); err != nil {
		return openedFeed{}, err
	}
	if err := db.env.Enter(); err != nil {
		return openedFeed{}, err
	}
	defer db.env.Exit()
	f, err := db.feeds.Open(ctx, since, filter)
	return openedFeed{f, db}, err
}

// filter folds what the options name.
func (o *changesOptions) filter(db *DB) (f feed.Filter, err error) {
	if n := max(len(o.collections), len(o.prefixes), len(o.ids)); n > maxChangesFilters {
		return f, fmt.Errorf("%w: %d filters of one kind, at most %d", ErrUsage, n, maxChangesFilters)
	}
	f.Documents = o.documents
	for _, name := range o.collections {
		if err := metadata.CheckCollection(name); err != nil {
			return f, err
		}
		f.Collections = append(f.Collections, format.CollectionKey(name))
	}
	for _, prefix := range o.prefixes {
		f.Prefixes = append(f.Prefixes, db.env.Rules.Fold(prefix))
	}
	for _, id := range o.ids {
		f.IDs = append(f.IDs, db.env.Rules.Fold(id))
	}
	return f, nil
}

// read reads a batch. The gate is left before user code runs.
// checkpoint says how far the feed has come.
func (f openedFeed) checkpoint(etag uint64) Change {
	return Change{Checkpoint: true, Etag: etag, base: f.Base(), origins: f.db.env.Origins, own: f.db.env.Node}
}

func (f openedFeed) read(ctx context.Context) (found []feed.Change, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if err := f.db.env.Enter(); err != nil {
		return nil, false, err
	}
	defer f.db.env.Exit()
	return f.Read()
}

func (f openedFeed) change(c *feed.Change) Change {
	e := f.db.env
	out := Change{
		ID: c.ID, Collection: write.OrEmpty(c.Collection), Etag: c.Etag, Deleted: c.Deleted, Document: (*Document)(c.Document),
		node: c.Node, base: f.Base(), origins: e.Origins, own: e.Node,
	}
	if !c.Deleted {
		out.LastModified = metadata.Time(c.Modified)
	}
	return out
}
