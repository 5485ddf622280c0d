package sqlkv_test

import (
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
	must(t, put(e, "x", "old"))

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
	var seen []byte
	must(t, second.QueryRow(ctx, "select v from "+table+" where k = 'x'").Scan(&seen))
	_, err := first.Exec(ctx, "update "+table+" set v = 'new' where k = 'x'")
	must(t, err)
	must(t, first.Commit(ctx))
	_, err = second.Exec(ctx, "insert into "+table+" (k, v) values ('copy', $1)", seen)
	must(t, err)
	must(t, second.Commit(ctx))
	equal(t, get(t, e, "x")+" "+get(t, e, "copy"), "new old")

	// The engine runs the transaction again.
	must(t, put(e, "x", "old"))
	runs := 0
	must(t, e.Update(ctx, true, func(tx storage.Tx) error {
		value, closer, err := tx.Get([]byte("x"))
		if err != nil {
			return err
		}
		defer closer.Close()
		if runs++; runs == 1 {
			must(t, put(other, "x", "new"))
		}
		tx.Set([]byte("copy"), value, nil)
		return nil
	}))
	equal(t, get(t, e, "x")+" "+get(t, e, "copy"), "new new")
	equal(t, runs, 2)
}
