package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
)

// clusterIdentities is DB.Identities in a cluster.
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

// clusterIdentity is a call of NextIdentity or SeedIdentity in a cluster: the coordinator
// has the counter, and the database what became of the call.
func clusterIdentity(ctx context.Context, db *DB, call identityCall, request string, once *requests.Request) (n int64, err error) {
	name, node := db.env.Rules.Fold(request), db.writer.Cluster
	if once != nil {
		// What an earlier run has reserved for this call is its result.
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
	again := repetition(err) != nil // another call with the ID was quicker
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
