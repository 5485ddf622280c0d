package jaytest

import (
	"context"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
)

// Deletions returns how many records of deletions there are.
func Deletions(t testing.TB, db *jay.DB) (n int) {
	t.Helper()
	it, err := parts.Of(db).Env.Engine.Iterate([]byte{format.SpaceChanges}, []byte{format.SpaceChanges + 1})
	Must(t, err)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if it.Value()[0] == format.ChangeDelete {
			n++
		}
	}
	return n
}

// PutAndDelete puts and deletes n documents, in batches.
func PutAndDelete(t testing.TB, db *jay.DB, n int) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		var puts, deletes jay.Batch
		for i := from; i < min(n, from+1000); i++ {
			puts.Put(fmt.Sprintf("docs/%d", i), []byte(`{"name":"x"}`))
			deletes.Delete(fmt.Sprintf("docs/%d", i))
		}
		for _, b := range []*jay.Batch{&puts, &deletes} {
			_, err := db.Apply(context.Background(), b)
			Must(t, err)
		}
	}
}

// OpenForgetting opens a database that keeps no record of a deletion without need.
func OpenForgetting(t testing.TB, dir string) *jay.DB {
	t.Helper()
	defer func(old uint64) { knobs.KeptChanges = old }(knobs.KeptChanges)
	knobs.KeptChanges = 0
	db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed})
	Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
