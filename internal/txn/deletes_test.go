package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/txn"
)

// Ensure that a transaction of a process whose holds the remover does not know
// conflicts, when records that it needs may be gone.
func TestDeletions_MarkPassesTransaction(t *testing.T) {
	defer func(old uint64) { knobs.KeptChanges = old }(knobs.KeptChanges)
	knobs.KeptChanges = 0
	db, err := jay.Open(t.TempDir(), &jay.Options{Durability: jay.Relaxed})
	noError(t, err)
	defer db.Close()
	ctx := context.Background()
	_, err = db.Put(ctx, "docs/1", []byte(`{}`))
	noError(t, err)
	err = db.Update(ctx, func(tx *jay.Tx) error {
		hold := txn.HoldOf((*txn.Tx)(tx))
		for _, err := range tx.Documents(ctx, jay.Scan{Prefix: "docs/"}) {
			noError(t, err)
		}
		noError(t, db.Delete(ctx, "docs/1"))
		(*hold).Release() // as if it were held in another process
		noError(t, db.Compact(ctx))
		if n := deletions(t, db); n != 0 {
			t.Errorf("%d records are left", n)
		}
		*hold = parts.Of(db).Horizon.Hold()
		_, err := tx.Put(ctx, "result", []byte(`{}`))
		return err
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// deletions counts the records of deletions.
func deletions(t *testing.T, db *jay.DB) (n int) {
	t.Helper()
	it, err := parts.Of(db).Env.Engine.Iterate([]byte{format.SpaceChanges}, []byte{format.SpaceChanges + 1})
	noError(t, err)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if it.Value()[0] == format.ChangeDelete {
			n++
		}
	}
	return n
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
