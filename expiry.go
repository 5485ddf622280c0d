package jay

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
)

// WithTTL makes the document expire d after the write, by the clock of the database (Options.Now): the database
// deletes it then. The write stores the instant as @expires in the document's metadata, as RavenDB does.
// WithTTL overrides an @expires in the @metadata of the body, and an earlier ExpiresAt. d must be above 0.
//
// A write of JSON without the option, and without @expires in the @metadata of the body, removes the expiry of
// the document. A write of a value does not change the expiry, or takes it from a field: see Collection. A
// patch does not change the expiry, unless it has this option: then the document expires d after the patch.
//
// If expiration is disabled in the database, the instant is stored but has no effect: see ConfigureExpiration.
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

// ExpiresAt makes the document expire at the instant t, as WithTTL does. An instant in the past is stored, too,
// and the document is deleted soon. The zero time removes the expiry, also in a patch.
func ExpiresAt(t time.Time) WriteOption {
	return writeOption(func(o *op) {
		timing := o.Timed()
		timing.TTL, timing.Expires = 0, &t
	})
}

// RefreshAt makes the database give the document a new version at the instant t, as if it were written again:
// change feeds and subscriptions deliver the document then, so a worker can resume deferred work. The write
// stores the instant as @refresh in the document's metadata, and the refresh removes it. The zero time removes
// it. The rules of WithTTL for @expires in writes and patches apply to @refresh, too.
func RefreshAt(t time.Time) WriteOption {
	return writeOption(func(o *op) { o.Timed().Refresh = &t })
}

// ExpirationConfiguration configures whether documents expire (ExpirationConfiguration of RavenDB).
type ExpirationConfiguration struct {
	// Disabled makes @expires have no effect: no document is deleted at its instant, and reads, queries, counts
	// and feeds include documents whose instant has passed. Instants are still stored.
	Disabled bool `json:"disabled"`
}

// RefreshConfiguration configures whether documents are refreshed (RefreshConfiguration of RavenDB).
type RefreshConfiguration struct {
	// Disabled makes @refresh have no effect. Instants are still stored.
	Disabled bool `json:"disabled"`
}

// ConfigureExpiration switches expiration on or off. The database stores this setting. Expiration is on in a
// new database, unless Options.ExpirationDisabled is set.
//
// Once ConfigureExpiration has returned after switching expiration off, no document is deleted any more, and
// with Options.ExactExpiry new reads show expired documents that were not deleted yet. After switching
// expiration on, the database soon deletes all documents whose instant has passed, as if it passed now. Backups
// contain the setting.
func (db *DB) ConfigureExpiration(ctx context.Context, c ExpirationConfiguration) error {
	return db.core.ConfigureDue(ctx, "expiration", format.DueExpiry, c.Disabled)
}

// ExpirationConfiguration returns whether documents expire.
func (db *DB) ExpirationConfiguration() ExpirationConfiguration {
	db.core.Refresh()
	return ExpirationConfiguration{db.core.Env.ExpirationDisabled.Load()}
}

// ConfigureRefresh switches refresh on or off, as ConfigureExpiration does for expiration: see there, and
// Options.RefreshDisabled. After switching refresh on, the database refreshes all documents whose instant has
// passed.
func (db *DB) ConfigureRefresh(ctx context.Context, c RefreshConfiguration) error {
	return db.core.ConfigureDue(ctx, "refresh", format.DueRefresh, c.Disabled)
}

// RefreshConfiguration returns whether documents are refreshed.
func (db *DB) RefreshConfiguration() RefreshConfiguration {
	db.core.Refresh()
	return RefreshConfiguration{db.core.Env.RefreshDisabled.Load()}
}

// Swept counts the documents of a Sweep.
type Swept struct {
	Deleted   int64 `json:"deleted"`   // documents that had expired
	Refreshed int64 `json:"refreshed"` // documents that got a new version
}

// Sweep carries out the expiries and refreshes that are due now, by the clock of the database, and returns when
// they are on disk. A disabled expiry or refresh is not due. The background sweeper of the database does the
// same soon after each instant (docs/expiry.md has the delay): Sweep is for tests with their own clock, and for
// programs that cannot wait. It does not limit its use of the disk. Swept does not count the earlier work of
// the background sweeper, and may count its concurrent work. Close ends Sweep with ErrClosed.
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

// ExpiryStats are figures about the expiry and refresh of documents.
type ExpiryStats struct {
	Expiring   int64 `json:"expiring"`   // documents that will expire, or have expired and were not deleted yet
	Refreshing int64 `json:"refreshing"` // documents that will be refreshed
	Due        int64 `json:"due"`        // overdue expiries and refreshes, without disabled ones; counted up to 10,000
	Deleted    int64 `json:"deleted"`    // documents that have expired and were deleted, since Open
	Refreshed  int64 `json:"refreshed"`  // documents that were refreshed, since Open

	// DueSince is the instant of the earliest overdue expiry or refresh; zero if there is none. It shows the
	// lag of the database.
	DueSince time.Time `json:"dueSince,omitzero"`

	// Disabled is true while expiration is switched off, and RefreshDisabled while refresh is: see
	// ConfigureExpiration and ConfigureRefresh.
	Disabled        bool `json:"disabled,omitempty"`
	RefreshDisabled bool `json:"refreshDisabled,omitempty"`

	// Kept is the number of documents that have an @expires and do not expire: an older Jay has written them,
	// and they had expired when the database was upgraded, or their @expires is not a valid instant. It counts
	// the documents that the upgrade found. Another write of such a document applies its @expires again.
	Kept int64 `json:"kept,omitempty"`
}
