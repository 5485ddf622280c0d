package jay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/live"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Change is the newest change of a document at the time when the feed read it: a write or a deletion.
type Change struct {
	// ID is the document's ID as it was written, also for a deletion. A deletion that was stored before format
	// 8 has the folded ID, the form in which the database compares IDs.
	ID string

	// Collection is the document's collection, or "@empty".
	Collection string

	// Etag is the number of the write. Changes come in the order of their etags.
	Etag uint64

	// Deleted is true for a deletion.
	Deleted bool

	// LastModified is when the document was written, in UTC. A deletion has none.
	LastModified time.Time

	// Document is the written document, if WithDocuments is set. A deletion has none.
	Document *Document

	// Checkpoint is true for the reports of progress that WithCheckpoints adds. Such a Change belongs to no
	// document, and has only an Etag and a Token.
	Checkpoint bool

	base      uint64 // see feed.Token
	node, own uint64 // the node that wrote it, and the database's own node
	origins   env.Origins
}

// Token returns the token with which Changes continues after this change, in this process or in a later
// process.
func (c Change) Token() string {
	if c.Etag == 0 {
		return ""
	}
	return feed.Token(c.origins, c.own, c.Etag, c.base)
}

// ChangeVector returns the change vector of the written version of the document, or of the deletion.
func (c Change) ChangeVector() string {
	if c.Checkpoint || c.Etag == 0 {
		return ""
	}
	return c.origins.ChangeVector(c.node, c.Etag)
}

// SinceNow makes Changes begin after the newest change.
const SinceNow = feed.Now

// ChangesGoneError is the error of Changes when it cannot continue after a token without missing changes:
// deletions after the token were removed, or the token belongs to another database, such as the original of
// this copy, or to a state that was lost. Begin again with "": documents that the feed has not delivered when
// it has caught up no longer exist. errors.Is(err, ErrChangesGone) is true.
type ChangesGoneError struct {
	Since  string // the token
	Oldest uint64 // the least etag with which a token is still valid
	Reason string // such as "records of deletions up to etag 812 were removed"
}

func (e *ChangesGoneError) Error() string {
	return fmt.Sprintf("%v: since %q: %s; the oldest usable etag is %d: begin again with all documents", ErrChangesGone, errs.Shorten(e.Since), e.Reason, e.Oldest)
}

// Is reports whether target is ErrChangesGone.
func (e *ChangesGoneError) Is(target error) bool { return target == ErrChangesGone }

// changesError converts an error of package feed to one of this package.
func changesError(err error) error {
	var gone *feed.GoneError
	if errors.As(err, &gone) {
		return &ChangesGoneError{gone.Since, gone.Oldest, gone.Reason}
	}
	return err
}

// ChangesOption is an option of DB.Changes.
type ChangesOption func(*changesOptions)

type changesOptions struct {
	collections, prefixes, ids []string
	documents, checkpoints     bool
	untilCaughtUp              bool
	opened                     func()
}

// maxChangesFilters is how many collections, prefixes or IDs a feed can name.
const maxChangesFilters = 128

// OfCollections limits Changes to documents of these collections; "@empty" selects the documents without a
// collection.
func OfCollections(names ...string) ChangesOption {
	return func(o *changesOptions) { o.collections = append(o.collections, names...) }
}

// OfPrefixes limits Changes to documents whose IDs begin with one of these prefixes.
func OfPrefixes(prefixes ...string) ChangesOption {
	return func(o *changesOptions) { o.prefixes = append(o.prefixes, prefixes...) }
}

// OfIDs limits Changes to the documents with these IDs, whether or not they exist.
func OfIDs(ids ...string) ChangesOption {
	return func(o *changesOptions) { o.ids = append(o.ids, ids...) }
}

// WithDocuments makes Changes also read the documents, each in the version of its change.
func WithDocuments() ChangesOption {
	return func(o *changesOptions) { o.documents = true }
}

// WithCheckpoints makes Changes also report its progress while the filters leave out changes. A report is a
// Change with Checkpoint set. If a program stores the Token of each report, the feed does not read the same
// changes again after a restart, and the token does not become too old while other documents change. A feed
// that begins at SinceNow first reports its position. So the program can resume without a gap even if the feed
// is interrupted before its first change: after that token, or after "" if nothing was ever written.
func WithCheckpoints() ChangesOption {
	return func(o *changesOptions) { o.checkpoints = true }
}

// UntilCaughtUp makes Changes end when it has reached the newest change, instead of waiting for further
// changes.
func UntilCaughtUp() ChangesOption {
	return func(o *changesOptions) { o.untilCaughtUp = true }
}

// Opened makes Changes call fn once the feed has its position, before the first change. The feed delivers every
// change that is committed after this call, even with SinceNow. So a program can begin to follow changes before
// it reads or writes the documents. fn must not block.
func Opened(fn func()) ChangesOption {
	return func(o *changesOptions) { o.opened = fn }
}

// Changes iterates over the changes of documents, in the order of their commits: first the stored changes after
// since, then, without a gap, new changes as they are committed, until ctx ends, the database is closed or the
// loop is left. since is the Token of a Change, or SinceNow, or "". With "", the feed delivers every document.
//
//	for change, err := range db.Changes(ctx, token, jay.OfCollections("Orders")) {
//		if err != nil {
//			return err
//		}
//		… // do something with it, then store change.Token()
//	}
//
// The feed delivers only the newest change of a document. It skips versions that were overwritten before it
// reached them, but never the latest version. With Synced durability a change is delivered once it is on disk.
// With Relaxed it is delivered once it is committed, and a crash may still undo it: call Flush before you store
// its token.
//
// A deletion is a Change with Deleted set. The database keeps the record of a deletion for an open feed that
// lags by at most 1,000,000 etags, and in any case while it is among the newest 1,000 changes. A feed that lags
// further, or whose token became too old while it was not open, ends with a *ChangesGoneError. A Subscription
// keeps the deletions that it needs.
//
// The feed reads from disk, in batches of up to 256 changes or 1 MiB of documents, and holds no resources
// between batches: a slow loop body delays no writer. Filters of different kinds must all match. Filters save
// no reads, because the feed reads every change record.
//
// If the iteration fails, its last pair is a zero Change and the error: ErrClosed when the database is closed,
// the error of ctx when ctx ends, ErrFailed when the database can no longer write.
func (db *DB) Changes(ctx context.Context, since string, opts ...ChangesOption) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if err := yieldChanges(ctx, db, since, opts, yield); err != nil {
			yield(Change{}, fmt.Errorf("changes: %w", changesError(err)))
		}
	}
}

// yieldChanges yields the changes after since. It returns nil when the loop was left, or
// when the feed has caught up and was to end there.
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

// openedFeed is a feed that enters the gate of its database for each read.
type openedFeed struct {
	*feed.Feed
	db *DB
}

// openFeed opens a feed. The caller must close it.
func openFeed(ctx context.Context, db *DB, since string, o *changesOptions) (openedFeed, error) {
	filter, err := o.filter(db)
	if err != nil {
		return openedFeed{}, err
	}
	if err := ctx.Err(); err != nil {
		return openedFeed{}, err
	}
	if err := db.core.Env.Enter(); err != nil {
		return openedFeed{}, err
	}
	defer db.core.Env.Exit()
	f, err := db.core.Feeds.Open(ctx, since, filter)
	return openedFeed{f, db}, err
}

// filter checks and folds the names in the options.
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
		f.Prefixes = append(f.Prefixes, db.core.Env.Rules.Fold(prefix))
	}
	for _, id := range o.ids {
		f.IDs = append(f.IDs, db.core.Env.Rules.Fold(id))
	}
	return f, nil
}

// checkpoint returns the Change that reports how far the feed has read.
func (f openedFeed) checkpoint(etag uint64) Change {
	return Change{Checkpoint: true, Etag: etag, base: f.Base(), origins: f.db.core.Env.Origins, own: f.db.core.Env.Node}
}

// read reads a batch. It leaves the gate before it returns, so that user code runs outside.
func (f openedFeed) read(ctx context.Context) (found []feed.Change, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if err := f.db.core.Env.Enter(); err != nil {
		return nil, false, err
	}
	defer f.db.core.Env.Exit()
	return f.Read()
}

// change converts a change of package feed to a public one.
func (f openedFeed) change(c *feed.Change) Change {
	e := f.db.core.Env
	out := Change{
		ID: c.ID, Collection: write.OrEmpty(c.Collection), Etag: c.Etag, Deleted: c.Deleted, Document: (*Document)(c.Document),
		node: c.Node, base: f.Base(), origins: e.Origins, own: e.Node,
	}
	if !c.Deleted {
		out.LastModified = metadata.Time(c.Modified)
	}
	return out
}

// LiveKind is the kind of a LiveEvent.
type LiveKind uint8

// The kinds of events of a live query.
const (
	LiveEnter   LiveKind = iota + 1 // the document has become an answer
	LiveChange                      // the document was an answer, was written, and still is an answer
	LiveLeave                       // the document is no longer an answer: it was changed or deleted
	LiveCurrent                     // the answers are now exactly those of the snapshot of Token
)

// String returns "enter", "change", "leave" or "current".
func (k LiveKind) String() string {
	switch k {
	case LiveEnter:
		return "enter"
	case LiveChange:
		return "change"
	case LiveLeave:
		return "leave"
	case LiveCurrent:
		return "current"
	}
	return fmt.Sprintf("LiveKind(%d)", uint8(k))
}

// LiveEvent is one event of a live query: see Query.Live.
type LiveEvent[T any] struct {
	// Kind is the kind of the event.
	Kind LiveKind

	// ID is the document's ID as it was written. LiveCurrent has none.
	ID string

	// Value is the answer, for LiveEnter and LiveChange. The program must not change it: other live queries may
	// share data that it refers to.
	Value *T

	// Etag is the number of the write or of the deletion. For LiveCurrent it is the number of the newest write
	// that the answers include.
	Etag uint64

	// ChangeVector is the change vector of the version or of the deletion. LiveCurrent has none.
	ChangeVector string

	// CatchingUp is true while events may repeat earlier events: after a token, and after the loop was too
	// slow. The loop may already have the document of a LiveEnter, and may not have the document of a
	// LiveLeave. CatchingUp is false again from the next LiveCurrent on.
	CatchingUp bool

	// Token is the position from which a later Live can continue. Only LiveCurrent has a Token.
	Token string
}

// Live iterates over the present answers of the query and then over their changes, until ctx ends, the database
// is closed or the loop is left:
//
//	for e, err := range orders.Query().Where(jay.Eq("Status", "open")).Live(ctx, "") {
//		if err != nil {
//			return err
//		}
//		switch e.Kind {
//		case jay.LiveEnter, jay.LiveChange:
//			open[e.ID] = e.Value
//		case jay.LiveLeave:
//			delete(open, e.ID)
//		case jay.LiveCurrent:
//			show(open) // and store e.Token, to go on later
//		}
//	}
//
// With the token "", Live begins with a LiveEnter for each answer of one snapshot, and a LiveCurrent. Then it
// delivers, without a gap and in the order of commits, an event for each document that enters the answers,
// changes in them or leaves them. Each LiveCurrent ends a group of whole commits: at a LiveCurrent, and only
// there, the loop has exactly the answers of one snapshot. Commits in quick succession may come as one group,
// in which a document comes once, with its newest version. With Synced durability an event comes once its
// commit is on disk; with Relaxed a crash may undo the commit.
//
// With the Token of a LiveCurrent of the same query, Live continues from there. Live does not know which
// answers the loop has kept: until the next LiveCurrent, every document that was written since the token comes
// as LiveEnter or LiveLeave, by its present state, even if it has never been an answer. The loop above handles
// this correctly. A token must belong to this query on this database. Live fails with ErrUsage for an invalid
// token and for the token of another query. It fails with a *ChangesGoneError if records of deletions since the
// token were removed, or if the database is another one, such as a restored backup. Then begin again with "",
// and with no answers.
//
// Each document alone must decide whether it is an answer, and the answers must be an unordered set. Live
// returns ErrQuery for an order, Skip, Limit, After, Distinct, groups, functions, facets, Include, highlights,
// computed indexes, load, JavaScript and the conditions Search, Fuzzy, MoreLikeThis, Boost and vector search.
// It returns ErrUsage for the query of a transaction or a session. Select of members of the document is
// allowed. A document that expires leaves the answers when its deletion is committed. With ExactExpiry, Live
// delivers no expired document as an answer, and the deletion still comes as a LiveLeave. A write may change
// the casing of an ID: key the answers by ids.Fold(e.ID) if the program writes an ID in several forms.
//
// Equal queries of one database share their work, and a slow loop delays neither writers nor other loops: up to
// 1,024 events or 1 MiB are buffered for a loop, and a loop that lags further reads the changes from the disk,
// with CatchingUp set. A database has at most 10,000 live queries; a further one returns ErrQuery with a
// *query.LimitError. The database keeps the IDs of their answers in memory, in up to a quarter of the memory
// for work: beyond that a live query ends with ErrMemory.
//
// If a document does not decode, its pair is an event with its ID and without a Value, and a *DecodeError, and
// the iteration continues. Any other error comes as the last pair: ErrClosed when the database is closed, the
// error of ctx when ctx ends.
func (q Query[T]) Live(ctx context.Context, token string) iter.Seq2[LiveEvent[T], error] {
	return func(yield func(LiveEvent[T], error) bool) {
		for e, err := range q.def.Live(ctx, token) {
			if err != nil {
				yield(LiveEvent[T]{}, fmt.Errorf("live query: %w", changesError(err)))
				return
			}
			out := LiveEvent[T]{Kind: LiveKind(e.Kind), ID: e.ID, Etag: e.Etag, CatchingUp: e.CatchingUp, Token: e.Token}
			if e.Kind != live.Current {
				out.ChangeVector = q.def.Via.Database().Env.ChangeVector(e.Node, e.Etag)
			}
			if e.Document != nil {
				row := exec.Row{JSON: e.Row}
				if e.Row == nil {
					row.Document = e.Document
				}
				if out.Value, err = q.decode(&row); out.Value == nil && err == nil {
					continue // as queries leave it out
				}
			}
			if !yield(out, err) {
				return
			}
		}
	}
}
