package jay

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
)

// WithTTL makes the document expire d after the write, by the clock of the database
// (Options.Now): it is deleted then. The instant is stored as @expires in the document's
// metadata, as RavenDB has it. It takes the place of an @expires in the document's own
// @metadata, and of an ExpiresAt before it. d must be above 0.
//
// A write of JSON without the option, and without @expires in the document's @metadata, makes a
// document that does not expire, whatever was there before. A write of a value leaves the expiry
// as it is, or takes it from a field: see Collection. A patch leaves the expiry as
// it is, unless it has this option: then the document expires d after the patch.
//
// In a database whose expiration is disabled the instant is stored and has no effect:
// see ConfigureExpiration.
//
//	db.Patch(ctx, "sessions/7", jay.WithTTL(30*time.Minute))
func WithTTL(d time.Duration) WriteOption {
	return writeOption(func(o *op) {
		if d <= 0 {
			o.UsageError = fmt.Errorf("%w: WithTTL(%v): a document expires some time after the write", ErrUsage, d)
			return
		}
		timing := o.Timed()
		timing.TTL, timing.Expires = d, nil
	})
}

// ExpiresAt is WithTTL for a given instant. One that has passed is none the less stored,
// and the document deleted soon. The zero time removes the expiry: so a patch makes a
// document stay.
func ExpiresAt(t time.Time) WriteOption {
	return writeOption(func(o *op) {
		timing := o.Timed()
		timing.TTL, timing.Expires = 0, &t
	})
}

// RefreshAt gives the document a new version at an instant, as if it were written again:
// those who follow the changes of the database see it then, and a worker can take up what
// it left for later. The instant is stored as @refresh in the document's metadata, and
// removed by the refresh. The zero time removes it. What WithTTL says of @expires in
// writes and patches holds for @refresh, too.
func RefreshAt(t time.Time) WriteOption {
	return writeOption(func(o *op) { o.Timed().Refresh = &t })
}

// ExpirationConfiguration says whether documents expire (ExpirationConfiguration of
// RavenDB).
type ExpirationConfiguration struct {
	// Disabled leaves @expires without effect: no document is deleted at its instant, and
	// reads, queries, counts and feeds show those whose instant has passed. Instants are
	// stored all the same.
	Disabled bool `json:"disabled"`
}

// RefreshConfiguration says whether documents are refreshed (RefreshConfiguration of
// RavenDB).
type RefreshConfiguration struct {
	// Disabled leaves @refresh without effect. Instants are stored all the same.
	Disabled bool `json:"disabled"`
}

// ConfigureExpiration switches expiration on or off. That is a setting of the database,
// which is stored, and is on in a new one, unless Options.ExpirationDisabled says
// otherwise.
//
// Once ConfigureExpiration has returned for off, nothing is deleted any more, and with
// Options.ExactExpiry reads that begin then show the documents that have expired and were
// not deleted yet. Switching on deletes all documents whose instant has passed, soon, as
// if it passed now. Backups have the setting.
func (db *DB) ConfigureExpiration(ctx context.Context, c ExpirationConfiguration) error {
	return db.core.ConfigureDue(ctx, "expiration", format.DueExpiry, c.Disabled)
}

// ExpirationConfiguration returns whether documents expire.
func (db *DB) ExpirationConfiguration() ExpirationConfiguration {
	db.core.Refresh()
	return ExpirationConfiguration{db.core.Env.ExpirationDisabled.Load()}
}

// ConfigureRefresh switches refresh on or off, as ConfigureExpiration does with
// expiration: see there, and Options.RefreshDisabled. Switching on refreshes all
// documents whose instant has passed.
func (db *DB) ConfigureRefresh(ctx context.Context, c RefreshConfiguration) error {
	return db.core.ConfigureDue(ctx, "refresh", format.DueRefresh, c.Disabled)
}

// RefreshConfiguration returns whether documents are refreshed.
func (db *DB) RefreshConfiguration() RefreshConfiguration {
	db.core.Refresh()
	return RefreshConfiguration{db.core.Env.RefreshDisabled.Load()}
}

// Swept is what Sweep has done.
type Swept struct {
	Deleted   int64 `json:"deleted"`   // documents that had expired
	Refreshed int64 `json:"refreshed"` // documents that got a new version
}

// Sweep does what is due now, by the clock of the database, and returns when that is on
// disk. What is disabled is not due. The database does so without being asked, soon after each instant (docs/expiry.md
// says how soon): Sweep is for tests with a clock of their own, and for those who will not
// wait. It takes the disk as fast as it can. Swept does not count what the database's own
// sweeper has done before, and may count what that does meanwhile. Close ends it with
// ErrClosed.
func (db *DB) Sweep(ctx context.Context) (s Swept, err error) {
	if db.core.Watch == nil {
		return sweep(ctx, &db.core)
	}
	err = db.core.Watch.Do(ctx, observe.Operation{Verb: "sweep"}, func(ctx context.Context, o *observe.Operation) (err error) {
		s, err = sweep(ctx, &db.core)
		o.Documents = s.Deleted + s.Refreshed
		return err
	})
	return s, err
}

func sweep(ctx context.Context, db *core.Database) (Swept, error) {
	if err := ctx.Err(); err != nil {
		return Swept{}, err
	}
	if err := db.Env.Enter(); err != nil {
		return Swept{}, err
	}
	defer db.Env.Exit()
	var s Swept
	var err error
	if s.Deleted, s.Refreshed, err = db.Expiry.Sweep(ctx, db.Env.Now()); err != nil {
		return s, fmt.Errorf("sweep: %w", err)
	}
	return s, nil
}

// ExpiryStats are figures about what is due for documents.
type ExpiryStats struct {
	Expiring   int64 `json:"expiring"`   // documents that will expire, those included that have expired and were not deleted yet
	Refreshing int64 `json:"refreshing"` // documents that will be refreshed
	Due        int64 `json:"due"`        // what is due already and was not done yet; at most 10,000 are counted, and none that is disabled
	Deleted    int64 `json:"deleted"`    // documents that have expired and were deleted, since Open
	Refreshed  int64 `json:"refreshed"`  // documents that were refreshed, since Open

	// DueSince is when the first of what is due was due; zero if nothing is. It says how
	// far the database is behind.
	DueSince time.Time `json:"dueSince,omitzero"`

	// Disabled and RefreshDisabled are true while no document expires, and none is
	// refreshed: see ConfigureExpiration and ConfigureRefresh.
	Disabled        bool `json:"disabled,omitempty"`
	RefreshDisabled bool `json:"refreshDisabled,omitempty"`

	// Kept is how many documents have an @expires and do not expire, as an older Jay has
	// written them, and they had expired when the database was upgraded, or the @expires
	// is no instant. It counts those that were found then; writing one again decides anew.
	Kept int64 `json:"kept,omitempty"`
}
