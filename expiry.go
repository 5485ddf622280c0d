package jay

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/agenda"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/storage"
)

// WithTTL makes the document expire d after the write, by the clock of the database
// (Options.Now): it is deleted then. The instant is stored as @expires in the document's
// metadata, as RavenDB has it. It takes the place of an @expires in the document's own
// @metadata, and of an ExpiresAt before it. d must be above 0.
//
// A write without the option, and without @expires in the document's @metadata, makes a
// document that does not expire, whatever was there before. A patch leaves the expiry as
// it is, unless it has this option: then the document expires d after the patch.
//
//	db.Patch(ctx, "sessions/7", jay.WithTTL(30*time.Minute))
func WithTTL(d time.Duration) WriteOption {
	return func(o *op) {
		if d <= 0 {
			o.UsageError = fmt.Errorf("%w: WithTTL(%v): a document expires some time after the write", ErrUsage, d)
			return
		}
		timing := o.Timed()
		timing.TTL, timing.Expires = d, nil
	}
}

// ExpiresAt is WithTTL for a given instant. One that has passed is none the less stored,
// and the document deleted soon. The zero time removes the expiry: so a patch makes a
// document stay.
func ExpiresAt(t time.Time) WriteOption {
	return func(o *op) {
		timing := o.Timed()
		timing.TTL, timing.Expires = 0, &t
	}
}

// RefreshAt gives the document a new version at an instant, as if it were written again:
// those who follow the changes of the database see it then, and a worker can take up what
// it left for later. The instant is stored as @refresh in the document's metadata, and
// removed by the refresh. The zero time removes it. What WithTTL says of @expires in
// writes and patches holds for @refresh, too.
func RefreshAt(t time.Time) WriteOption {
	return func(o *op) { o.Timed().Refresh = &t }
}

// Swept is what Sweep has done.
type Swept struct {
	Deleted   int64 `json:"deleted"`   // documents that had expired
	Refreshed int64 `json:"refreshed"` // documents that got a new version
}

// Sweep does what is due now, by the clock of the database, and returns when that is on
// disk. The database does so without being asked, soon after each instant (docs/expiry.md
// says how soon): Sweep is for tests with a clock of their own, and for those who will not
// wait. It takes the disk as fast as it can. Swept does not count what the database's own
// sweeper has done before, and may count what that does meanwhile. Close ends it with
// ErrClosed.
func (db *DB) Sweep(ctx context.Context) (s Swept, err error) {
	if db.watch == nil {
		return sweep(ctx, db)
	}
	err = db.watch.Do(ctx, observe.Operation{Verb: "sweep"}, func(ctx context.Context, o *observe.Operation) (err error) {
		s, err = sweep(ctx, db)
		o.Documents = s.Deleted + s.Refreshed
		return err
	})
	return s, err
}

func sweep(ctx context.Context, db *DB) (Swept, error) {
	if err := ctx.Err(); err != nil {
		return Swept{}, err
	}
	if err := db.env.Enter(); err != nil {
		return Swept{}, err
	}
	defer db.env.Exit()
	var s Swept
	var err error
	if s.Deleted, s.Refreshed, err = db.expiry.Sweep(ctx, db.env.Now()); err != nil {
		return s, fmt.Errorf("sweep: %w", err)
	}
	return s, nil
}

// ExpiryStats are figures about what is due for documents.
type ExpiryStats struct {
	Expiring   int64 `json:"expiring"`   // documents that will expire, those included that have expired and were not deleted yet
	Refreshing int64 `json:"refreshing"` // documents that will be refreshed
	Due        int64 `json:"due"`        // what is due already and was not done yet; at most 10,000 are counted
	Deleted    int64 `json:"deleted"`    // documents that have expired and were deleted, since Open
	Refreshed  int64 `json:"refreshed"`  // documents that were refreshed, since Open

	// DueSince is when the first of what is due was due; zero if nothing is. It says how
	// far the database is behind.
	DueSince time.Time `json:"dueSince,omitzero"`

	// Kept is how many documents have an @expires and do not expire, as an older Jay has
	// written them, and they had expired when the database was upgraded, or the @expires
	// is no instant. It counts those that were found then; writing one again decides anew.
	Kept int64 `json:"kept,omitempty"`
}

// moment is what reads of one snapshot with Options.ExactExpiry agree on. The zero value
// shows documents until they are deleted.
type moment struct {
	at      time.Time // documents are left out that have expired by then
	dueFrom time.Time // none in the snapshot has before
}

// begunMoment is a moment before its snapshot is taken.
type begunMoment struct {
	at   time.Time
	mark agenda.Mark
}

// beginMoment begins a moment: the snapshot is taken next, and then endMoment called.
func beginMoment(db *DB) (b begunMoment) {
	if b.at = db.docs.Moment(); !b.at.IsZero() {
		b.mark = db.writer.Agenda.Begin()
	}
	return b
}

func endMoment(db *DB, b begunMoment) moment {
	if b.at.IsZero() {
		return moment{}
	}
	return moment{b.at, db.writer.Agenda.From(b.mark)}
}

// countsAt returns how many documents each collection has in a snapshot, by folded name.
func countsAt(ctx context.Context, snapshot storage.Reader, at moment) (map[string]int64, error) {
	all, err := counts.All(snapshot)
	if err != nil || at.at.IsZero() {
		return all, err
	}
	err = eachGone(ctx, snapshot, at, func(collection []byte) {
		name := string(collection)
		if all[name]--; all[name] == 0 {
			delete(all, name)
		}
	})
	return all, err
}

// countAt is countsAt for one collection.
func countAt(ctx context.Context, snapshot storage.Reader, foldedCollection string, at moment) (int64, error) {
	n, err := counts.Of(snapshot, foldedCollection)
	if err != nil || at.at.IsZero() {
		return n, err
	}
	err = eachGone(ctx, snapshot, at, func(collection []byte) {
		if string(collection) == foldedCollection {
			n--
		}
	})
	return n, err
}

// eachGone calls fn with the folded collection of each document that has expired.
func eachGone(ctx context.Context, snapshot storage.Reader, at moment, fn func(foldedCollection []byte)) error {
	seen := 0
	err := docs.EachGone(snapshot, at.dueFrom, at.at, func(collection []byte) bool {
		fn(collection)
		seen++
		return seen%1024 != 0 || ctx.Err() == nil
	})
	return errs.First(err, ctx.Err())
}
