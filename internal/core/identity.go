package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// IdentityCall is a call of NextIdentity or SeedIdentity of package jay.
type IdentityCall struct {
	Name  string
	Seed  bool
	Value int64
	Force bool

	RequestID *string // nil for none
}

// verb returns what the call does, for errors and for the results of calls with a request ID.
func (c *IdentityCall) verb() string {
	if c.Seed {
		return "seed"
	}
	return "next"
}

// request returns the request of a call on the folded identity, or nil if it has no ID.
func (c *IdentityCall) request(folded string) (*requests.Request, error) {
	if c.RequestID == nil {
		return nil, nil
	}
	details := ""
	if c.Seed {
		details = fmt.Sprintf(" %d %t", c.Value, c.Force)
	}
	return &requests.Request{ID: *c.RequestID, Call: c.verb() + " " + folded + details}, requests.CheckID(*c.RequestID)
}

// OnIdentity carries out a call in a synced transaction, with the request that its name stands for, and returns the
// number. With a request ID it is carried out once.
func (db *Database) OnIdentity(ctx context.Context, call IdentityCall) (n int64, err error) {
	if call.Value < 0 {
		return 0, fmt.Errorf("seed identity %.100q: %w: the last used number must not be negative, got %d", call.Name, ids.ErrUsage, call.Value)
	}
	if !call.Seed && (call.Force || call.Value != 0) {
		return 0, fmt.Errorf("next identity %.100q: %w: only a seed has a value", call.Name, ids.ErrUsage)
	}
	if db.Owner != nil {
		return n, Ask[int64, any](ctx, db, ask.Identity, ask.IdentityArguments(call), &n, nil)
	}
	if err := db.Env.Enter(); err != nil {
		return 0, err
	}
	defer db.Env.Exit()
	request, _ := db.Resolver.Request(call.Name)
	if !strings.HasSuffix(request, ids.IdentityMark) {
		request += ids.IdentityMark
	}
	err = db.CheckIdentity(call.Name, request)
	var once *requests.Request
	if err == nil {
		once, err = call.request(db.Env.Rules.Fold(request))
	}
	if err == nil {
		err = db.Writer.NoCluster
	}
	if err == nil && db.Writer.Cluster != nil {
		n, err = db.clusterIdentity(ctx, call, request, once)
	} else if err == nil {
		n, err = db.ownIdentity(ctx, call, request, once)
	}
	if err != nil {
		return 0, fmt.Errorf("%s identity %q: %w", call.verb(), errs.Shorten(call.Name), err)
	}
	return n, nil
}

// ownIdentity carries out a call on a counter of this database.
func (db *Database) ownIdentity(ctx context.Context, call IdentityCall, request string, once *requests.Request) (n int64, err error) {
	err = db.Writer.Transact(ctx, true, func(t *write.Txn) (err error) {
		if once != nil {
			if err := once.Find(t.Tx); err != nil {
				return err
			}
		}
		if n, err = db.stageIdentity(t, call, request); err == nil && once != nil {
			err = once.Keep(t.Tx, n)
		}
		return err
	})
	_, err = requests.Decode(err, &n)
	return n, err
}

// stageIdentity stages a call on a counter of this database.
func (db *Database) stageIdentity(t *write.Txn, call IdentityCall, request string) (int64, error) {
	counter := db.Env.Rules.Fold(request)
	switch {
	case call.Force:
		return call.Value, t.SetIdentity(counter, call.Value)
	case call.Seed:
		return t.RaiseIdentity(counter, call.Value)
	}
	if _, _, err := db.Resolver.Make(ids.Identity, t, request); err != nil {
		return 0, err
	}
	return t.Identity(counter)
}

// clusterIdentity carries out NextIdentity or SeedIdentity in a cluster. The coordinator
// keeps the counter; the database keeps the result of a call with a request ID, and the
// numbers that no document has.
func (db *Database) clusterIdentity(ctx context.Context, call IdentityCall, request string, once *requests.Request) (n int64, err error) {
	name, node := db.Env.Rules.Fold(request), db.Writer.Cluster
	if once != nil {
		// If an earlier run has reserved a number for this call, that number is the
		// result.
		if err := node.Recovered(ctx); err != nil {
			return 0, err
		}
		if err := once.Find(db.Env.Engine); err != nil {
			_, err = requests.Decode(err, &n)
			return n, err
		}
	}
	if call.Seed {
		n, err = node.Seed(ctx, name, call.Value, call.Force, once)
	} else if err = db.Writer.CheckFloor(name); err == nil {
		n, err = db.Writer.DrawFree(ctx, name, request, 0, func(above int64) (int64, error) { return node.Next(ctx, name, above, once) })
	}
	if err != nil {
		return 0, err
	}
	// Store the result of the call. A number that NextIdentity returns has no document so
	// far, so it is recorded as lost; the database's own counter follows that of the
	// cluster.
	err = db.Writer.Transact(ctx, true, func(t *write.Txn) error {
		if once != nil {
			if err := once.Find(t.Tx); err != nil {
				return err
			}
			if err := once.Keep(t.Tx, n); err != nil {
				return err
			}
		}
		if !call.Seed {
			if err := accord.AddLostNumber(t.Tx, name, n); err != nil {
				return err
			}
		} else if call.Force {
			return t.SetIdentity(name, n)
		}
		_, err := t.RaiseIdentity(name, n)
		return err
	})
	// Report the fate of the number to the node, unless the commit is in doubt.
	again := requests.Repetition(err) != nil // a concurrent call with the same request ID has committed first
	switch {
	case err == nil || call.Seed && again:
		node.SettleRequest(name, once)
		if !call.Seed {
			node.Settle(name, n, n, accord.Written)
		}
	case !call.Seed && !errors.Is(err, storage.ErrUnknownOutcome):
		node.Settle(name, n, n, accord.Unwritten)
	}
	if again {
		_, err = requests.Decode(err, &n)
	}
	return n, err
}
