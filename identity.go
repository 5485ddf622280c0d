package jay

import (
	"context"
	"fmt"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/write"
)

// NextIdentity uses the next number of an identity, without a document, and returns
// it: "users" and "users|" name the same counter, folded. As in Put, numbers whose
// document exists are skipped. The number is on disk before NextIdentity returns,
// under any durability.
func (db *DB) NextIdentity(ctx context.Context, name string) (n int64, err error) {
	err = db.onIdentity(ctx, "next", name, func(t *write.Txn, request string) error {
		if _, err := db.resolver.Identity(t, request); err != nil {
			return err
		}
		n, err = t.Identity(db.env.Rules.Fold(request))
		return err
	})
	return n, err
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
func (db *DB) SeedIdentity(ctx context.Context, name string, value int64, force bool) (last int64, err error) {
	if value < 0 {
		return 0, fmt.Errorf("seed identity %.100q: %w: the last used number must not be negative, got %d", name, ErrUsage, value)
	}
	err = db.onIdentity(ctx, "seed", name, func(t *write.Txn, request string) error {
		counter := db.env.Rules.Fold(request)
		if force {
			last = value
			return t.SetIdentity(counter, value)
		}
		last, err = t.RaiseIdentity(counter, value)
		return err
	})
	return last, err
}

// Identities returns the last used number of every identity, by the folded
// request ("users|").
func (db *DB) Identities(ctx context.Context) (map[string]int64, error) {
	counters, err := db.Counters(ctx)
	return counters.Identities, err
}

// onIdentity runs fn in a synced transaction with the request that name
// stands for.
func (db *DB) onIdentity(ctx context.Context, verb, name string, fn func(t *write.Txn, request string) error) error {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	request, strategy := db.resolver.Request(name)
	if strategy != ids.Identity && !strings.HasSuffix(request, ids.IdentityMark) {
		request += ids.IdentityMark
	}
	err := checkIdentity(db, name, request)
	if err == nil {
		err = db.writer.Transact(ctx, true, func(t *write.Txn) error { return fn(t, request) })
	}
	if err != nil {
		return fmt.Errorf("%s identity %q: %w", verb, errs.Shorten(name), err)
	}
	return nil
}
