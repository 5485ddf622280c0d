package core

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/shared"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// Counters are the numbers that have been used: see Counters of package jay.
type Counters struct {
	Etag       uint64
	Identities map[string]int64
	HiLo       map[string]int64
}

// Counters returns the counters of the database as of now.
func (db *Database) Counters(ctx context.Context) (c Counters, err error) {
	if err := db.Env.Enter(); err != nil {
		return Counters{}, err
	}
	defer db.Env.Exit()
	snapshot := db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	payer := budget.NewPayer(ctx)
	return db.ReadCounters(ctx, snapshot, &payer)
}

// RaiseCounters raises counters to what c names.
func (db *Database) RaiseCounters(ctx context.Context, c Counters) error {
	if db.Owner != nil {
		return Ask[any, any](ctx, db, ask.RaiseCounters, ask.CountersArguments(c), new(any), nil)
	}
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	if err := db.checkCounters(c); err != nil {
		return err
	}
	if node := db.Writer.Cluster; node != nil {
		for name, n := range c.Identities {
			if err := node.Raise(ctx, db.Env.Rules.Fold(name), n); err != nil {
				return fmt.Errorf("raise counters: %w", err)
			}
		}
	}
	now := db.Env.Now() // the clock is the user's: not in the transaction
	err := db.Reserved.RaiseEtag(ctx, c.Etag)
	if err == nil {
		err = db.Writer.Transact(ctx, true, func(t *write.Txn) error { return db.raise(t, c, now) })
	}
	if err != nil {
		return fmt.Errorf("raise counters: %w", err)
	}
	db.raiseClients(c.HiLo)
	return nil
}

// ReadCounters returns the counters of a snapshot. payer pays for them while they are read.
func (db *Database) ReadCounters(ctx context.Context, snapshot storage.Reader, payer *budget.Payer) (c Counters, err error) {
	into := func(all map[string]int64) func(name string, n int64) error {
		return func(name string, n int64) error {
			all[name] = n
			return payer.PayNamed(name)
		}
	}
	c = Counters{Identities: make(map[string]int64), HiLo: make(map[string]int64)}
	err = db.Reserved.Read(ctx, snapshot, into(c.Identities), into(c.HiLo))
	if err != nil {
		return Counters{}, err
	}
	c.Etag, err = db.Reserved.LastEtag(snapshot)
	return c, err
}

// maxRaise bounds the numbers that RaiseCounters accepts: above it too few would be
// left.
const maxRaise = 1 << 62

// raiseClients makes the clients of this process skip numbers that are raised on
// disk already: every range granted since then is above them.
func (db *Database) raiseClients(raised map[string]int64) {
	if len(raised) == 0 {
		return
	}
	floors := make(map[string]int64, len(raised))
	for tag, n := range raised {
		tag = db.Env.Rules.Fold(tag)
		floors[tag] = max(floors[tag], n)
	}
	db.EachClient(func(c *ids.Client) {
		c.Raise(func(tag string) int64 { return floors[db.Env.Rules.Fold(tag)] })
	})
}

// checkCounters refuses counters that RaiseCounters does not accept.
func (db *Database) checkCounters(c Counters) error {
	if len(c.HiLo) > 0 && db.shared != nil && !db.alone {
		return fmt.Errorf("%w: other processes have ranges of hilo numbers, below those that are raised", shared.ErrRefused)
	}
	if c.Etag > maxRaise {
		return fmt.Errorf("%w: counter etag = %d is not between 0 and 1<<62", ids.ErrUsage, c.Etag)
	}
	for name, n := range c.Identities {
		if !strings.HasSuffix(name, ids.IdentityMark) {
			return fmt.Errorf("%w: the name of an identity ends with '|', got %.100q", ids.ErrUsage, name)
		}
		if err := db.CheckIdentity(name, name); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: identity %.100q = %d is not between 0 and 1<<62", ids.ErrUsage, name, n)
		}
	}
	for tag, n := range c.HiLo {
		if err := db.Writer.CheckTag(tag); err != nil {
			return err
		}
		if n < 0 || n > maxRaise {
			return fmt.Errorf("%w: hilo %.100q = %d is not between 0 and 1<<62", ids.ErrUsage, tag, n)
		}
	}
	return nil
}

// raise is the transaction of RaiseCounters.
func (db *Database) raise(t *write.Txn, c Counters, now time.Time) error {
	for name, n := range c.Identities {
		if _, err := t.RaiseIdentity(db.Env.Rules.Fold(name), n); err != nil {
			return err
		}
	}
	for tag, n := range c.HiLo {
		if err := db.Ranges.Raise(t, tag, n, now); err != nil {
			return err
		}
	}
	return nil
}

// CheckIdentity refuses names that can never make an ID, up to the largest
// number.
func (db *Database) CheckIdentity(name, request string) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: an identity needs a name", ids.ErrUsage)
	}
	return db.Env.Rules.Check(db.Resolver.IdentityID(request, math.MaxInt64))
}
