package jay

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// Counters are the counters of a database. An export carries them, so that a copy
// repeats no number.
type Counters struct {
	// Etag is the number of the newest write.
	Etag uint64 `json:"etag"`
	// Identities are the last used numbers, by request ("users|"), folded: in a cluster, of
	// documents that were written here. DB.Identities asks the cluster.
	Identities map[string]int64 `json:"identities,omitempty"`
	// HiLo are the highest numbers granted, by tag ("users"), folded.
	HiLo map[string]int64 `json:"hilo,omitempty"`
}

// Counters returns the counters as they are now.
func (db *DB) Counters(ctx context.Context) (c Counters, err error) {
	if err := db.env.Enter(); err != nil {
		return Counters{}, err
	}
	defer db.env.Exit()
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return readCounters(ctx, db, snapshot)
}

func readCounters(ctx context.Context, db *DB, snapshot storage.Reader) (c Counters, err error) {
	c = Counters{Identities: make(map[string]int64), HiLo: make(map[string]int64)}
	err = db.reserved.Read(ctx, snapshot,
		func(name string, n int64) { c.Identities[name] = n },
		func(tag string, n int64) { c.HiLo[tag] = n })
	if err != nil {
		return Counters{}, err
	}
	c.Etag, err = db.reserved.LastEtag(snapshot)
	return c, err
}

// maxRaise bounds the numbers that RaiseCounters accepts: above it too few would be
// left.
const maxRaise = 1 << 62

// RaiseCounters raises every counter to at least the number given, and lowers none,
// durably. It makes an import of another database's documents safe: no write that
// begins after RaiseCounters has returned makes an ID with a number that was used
// there. Numbers that HiLo clients of this process hold, the database's own client
// and those of NewHiLoClient, are skipped if they are not above the number given.
// Only a range that NextRange granted before stays with the caller that requested
// it.
//
// In a database opened with Options.CopyTag, the number of an identity or of a HiLo
// tag is the floor that it needs.
//
// A number above 1<<62 or below 0 is refused, and nothing changes.
func (db *DB) RaiseCounters(ctx context.Context, c Counters) error {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	if err := checkCounters(db, c); err != nil {
		return err
	}
	if node := db.writer.Cluster; node != nil {
		for name, n := range c.Identities {
			if err := node.Raise(ctx, db.env.Rules.Fold(name), n); err != nil {
				return fmt.Errorf("raise counters: %w", err)
			}
		}
	}
	now := db.env.Now() // the clock is the user's: not in the transaction
	err := db.reserved.RaiseEtag(ctx, c.Etag)
	if err == nil {
		err = db.writer.Transact(ctx, true, func(t *write.Txn) error { return raise(db, t, c, now) })
	}
	if err != nil {
		return fmt.Errorf("raise counters: %w", err)
	}
	raiseClients(db, c.HiLo)
	return nil
}

// raiseClients makes the clients of this process skip numbers that are raised on
// disk already: every range granted since then is above them.
func raiseClients(db *DB, raised map[string]int64) {
	if len(raised) == 0 {
		return
	}
	floors := make(map[string]int64, len(raised))
	for tag, n := range raised {
		tag = db.env.Rules.Fold(tag)
		floors[tag] = max(floors[tag], n)
	}
	eachClient(db, func(c *ids.Client) {
		c.Raise(func(tag string) int64 { return floors[db.env.Rules.Fold(tag)] })
	})
}

// checkCounters refuses counters that RaiseCounters does not accept.
func checkCounters(db *DB, c Counters) error {
	if c.Etag > maxRaise {
		return fmt.Errorf("%w: counter etag = %d is not between 0 and 1<<62", ErrUsage, c.Etag)
	}
	for name, n := range c.Identities {
		if !strings.HasSuffix(name, ids.IdentityMark) {
			return fmt.Errorf("%w: the name of an identity ends with '|', got %.100q", ErrUsage, name)
		}
		if err := checkIdentity(db, name, name); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: identity %.100q = %d is not between 0 and 1<<62", ErrUsage, name, n)
		}
	}
	for tag, n := range c.HiLo {
		if err := db.writer.CheckTag(tag); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: hilo %.100q = %d is not between 0 and 1<<62", ErrUsage, tag, n)
		}
	}
	return nil
}

// raise is the transaction of RaiseCounters.
func raise(db *DB, t *write.Txn, c Counters, now time.Time) error {
	for name, n := range c.Identities {
		if _, err := t.RaiseIdentity(db.env.Rules.Fold(name), n); err != nil {
			return err
		}
	}
	for tag, n := range c.HiLo {
		if err := db.ranges.Raise(t, tag, n, now); err != nil {
			return err
		}
	}
	return nil
}

// checkIdentity refuses names that can never make an ID, up to the largest
// number.
func checkIdentity(db *DB, name, request string) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: an identity needs a name", ErrUsage)
	}
	return db.env.Rules.Check(db.resolver.IdentityID(request, math.MaxInt64))
}
