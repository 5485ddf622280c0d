package jay

import (
	"context"
	"fmt"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
)

// NextIdentity uses the next number of an identity, without a document, and returns
// it: "users" and "users|" name the same counter, folded. As in Put, numbers whose
// document exists are skipped. The number is on disk before NextIdentity returns,
// under any durability.
//
// With RequestID a repeated call returns the number of the first one. With Options.Cluster
// it must be repeated on the same node, and no other node ever gets the number.
func (db *DB) NextIdentity(ctx context.Context, name string, opts ...CallOption) (n int64, err error) {
	return db.onIdentity(ctx, identityCall{verb: "next", name: name}, opts, func(t *write.Txn, request string) (int64, error) {
		if _, err := db.resolver.Identity(t, request); err != nil {
			return 0, err
		}
		return t.Identity(db.env.Rules.Fold(request))
	})
}

// identityCall is a call of NextIdentity or SeedIdentity.
type identityCall struct {
	verb, name string
	seed       bool
	value      int64
	force      bool
}

// SeedIdentity sets the last used number of an identity to value, so that the next
// document gets value+1, and returns the resulting number. A value below the
// counter's changes nothing, unless force is set. Negative values are refused.
//
// In a database opened with Options.CopyTag, the first seed of an identity is the
// floor that it needs.
//
// Danger: forcing a counter down is the one way to make numbers repeat. No document
// is overwritten even then, but the IDs of deleted documents can return.
//
// Under Relaxed durability a crash can undo a forced seed downward: the block of
// numbers that was reserved before stays reserved, and the counter continues after
// it, higher than it was forced to. Seed it again.
func (db *DB) SeedIdentity(ctx context.Context, name string, value int64, force bool, opts ...CallOption) (last int64, err error) {
	if value < 0 {
		return 0, fmt.Errorf("seed identity %.100q: %w: the last used number must not be negative, got %d", name, ErrUsage, value)
	}
	return db.onIdentity(ctx, identityCall{"seed", name, true, value, force}, opts, func(t *write.Txn, request string) (int64, error) {
		counter := db.env.Rules.Fold(request)
		if force {
			return value, t.SetIdentity(counter, value)
		}
		return t.RaiseIdentity(counter, value)
	})
}

// Identities returns the last used number of every identity, by the folded
// request ("users|"): with Options.Cluster that of all nodes.
func (db *DB) Identities(ctx context.Context) (map[string]int64, error) {
	if db.opts.Cluster != nil {
		return clusterIdentities(ctx, db)
	}
	counters, err := db.Counters(ctx)
	return counters.Identities, err
}

// onIdentity runs fn in a synced transaction with the request that name stands for, and
// returns its result. With a request ID it runs once.
func (db *DB) onIdentity(ctx context.Context, call identityCall, opts []CallOption, fn func(t *write.Txn, request string) (int64, error)) (n int64, err error) {
	verb, name, details := call.verb, call.name, ""
	if call.seed {
		details = fmt.Sprintf(" %d %t", call.value, call.force)
	}
	if err := db.env.Enter(); err != nil {
		return 0, err
	}
	defer db.env.Exit()
	request, strategy := db.resolver.Request(name)
	if strategy != ids.Identity && !strings.HasSuffix(request, ids.IdentityMark) {
		request += ids.IdentityMark
	}
	err = checkIdentity(db, name, request)
	var once *requests.Request
	if err == nil {
		once, err = requestOf(opts, verb+" "+db.env.Rules.Fold(request)+details)
	}
	if err == nil {
		err = db.writer.NoCluster
	}
	if err == nil && db.writer.Cluster != nil {
		n, err = clusterIdentity(ctx, db, call, request, once)
	} else if err == nil {
		err = db.writer.Transact(ctx, true, func(t *write.Txn) (err error) {
			if once != nil {
				if err := once.Find(t.Tx); err != nil {
					return err
				}
			}
			if n, err = fn(t, request); err == nil && once != nil {
				err = once.Keep(t.Tx, n)
			}
			return err
		})
		_, err = repeated(err, &n)
	}
	if err != nil {
		return 0, fmt.Errorf("%s identity %q: %w", verb, errs.Shorten(name), err)
	}
	return n, nil
}
