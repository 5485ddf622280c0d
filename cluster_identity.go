package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
)

// clusterIdentities implements DB.Identities in a cluster.
func clusterIdentities(ctx context.Context, db *DB) (map[string]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	list, err := db.writer.Cluster.Identities(ctx)
	if err != nil {
		return nil, fmt.Errorf("identities: %w", err)
	}
	return list, nil
}

// clusterIdentity carries out NextIdentity or SeedIdentity in a cluster. The coordinator
// keeps the counter; the database keeps the result of a call with a request ID, and the
// numbers that no document has.
func clusterIdentity(ctx context.Context, db *DB, call identityCall, request string, once *requests.Request) (n int64, err error) {
	name, node := db.env.Rules.Fold(request), db.writer.Cluster
	if once != nil {
		// If an earlier run has reserved a number for this call, that number is the
		// result.
		if err := node.Recovered(ctx); err != nil {
			return 0, err
		}
		if err := once.Find(db.env.Engine); err != nil {
			_, err = repeated(err, &n)
			return n, err
		}
	}
	if call.seed {
		n, err = node.Seed(ctx, name, call.value, call.force, once)
	} else if err = db.writer.CheckFloor(name); err == nil {
		n, err = db.writer.DrawFree(ctx, name, request, 0, func(above int64) (int64, error) { return node.Next(ctx, name, above, once) })
	}
	if err != nil {
		return 0, err
	}
	// Store the result of the call. A number that NextIdentity returns has no document so
	// far, so it is recorded as lost; the database's own counter follows that of the
	// cluster.
	err = db.writer.Transact(ctx, true, func(t *write.Txn) error {
		if once != nil {
			if err := once.Find(t.Tx); err != nil {
				return err
			}
			if err := once.Keep(t.Tx, n); err != nil {
				return err
			}
		}
		if !call.seed {
			if err := accord.AddLostNumber(t.Tx, name, n); err != nil {
				return err
			}
		} else if call.force {
			return t.SetIdentity(name, n)
		}
		_, err := t.RaiseIdentity(name, n)
		return err
	})
	// Report the fate of the number to the node, unless the commit is in doubt.
	again := repetition(err) != nil // a concurrent call with the same request ID has committed first
	switch {
	case err == nil || call.seed && again:
		node.SettleRequest(name, once)
		if !call.seed {
			node.Settle(name, n, n, accord.Written)
		}
	case !call.seed && !errors.Is(err, ErrUnknownOutcome):
		node.Settle(name, n, n, accord.Unwritten)
	}
	if again {
		_, err = repeated(err, &n)
	}
	return n, err
}
