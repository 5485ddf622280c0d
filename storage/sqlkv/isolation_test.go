package sqlkv_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// Ensure that what a transaction has read is unchanged when it commits. PostgreSQL's SERIALIZABLE promises less, as the first half shows: the second
// transaction commits behind the first, although it has read what that changed. Both are in an order, which is not that of the commits; a
// feed of changes in the order of commits would show a state that never was.
func TestIsolation_OrderOfCommits(t *testing.T) {
	name := newName(t)
	e, other := open(t, new(sqlkv.Driver), name), open(t, new(sqlkv.Driver), name)
	defer e.Close()
	defer other.Close()
	table := schemaOf(name) + ".kv"
	begin := func() pgx.Tx {
		c, err := pgx.Connect(ctx, server.URL())
		must(t, err)
		t.Cleanup(func() { c.Close(ctx) })
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
		must(t, err)
		return tx
	}
	first, second := begin(), begin()
	var found bool
	must(t, second.QueryRow(ctx, "select exists (select from "+table+" where k = 'x')").Scan(&found))
	_, err := first.Exec(ctx, "insert into "+table+" (k, v) values ('x', '')")
	must(t, err)
	must(t, first.Commit(ctx))
	_, err = second.Exec(ctx, "insert into "+table+" (k, v) values ('found', $1)", fmt.Append(nil, found))
	must(t, err)
	must(t, second.Commit(ctx))
	equal(t, get(t, e, "x")+get(t, e, "found"), "false")

	// The engine runs the transaction again.
	must(t, e.Update(ctx, true, func(tx storage.Tx) error { tx.Delete([]byte("x")); return nil }))
	runs := 0
	must(t, e.Update(ctx, true, func(tx storage.Tx) error {
		_, _, err := tx.Get([]byte("x"))
		found := err == nil
		if runs++; runs == 1 {
			must(t, put(other, "x", ""))
		}
		tx.Set([]byte("found"), fmt.Append(nil, found), nil)
		return nil
	}))
	equal(t, get(t, e, "x")+get(t, e, "found"), "true")
	equal(t, runs, 2)
}
