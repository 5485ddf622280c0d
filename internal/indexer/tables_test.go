package indexer_test

// This test looks at what is stored in the middle of a build: docs/format.md promises it
// byte by byte.

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that the bytes of an index whose tables are in, and whose entries are not corrected
// yet, are those of docs/format.md.
func TestIndex_Layout_Golden_Tables(t *testing.T) {
	defer checks.SetBuildTables(1, 1<<20, 1<<20)()
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	put := func(id, mail string) {
		if _, err := db.Put(ctx, id, []byte(`{"Mail":"`+mail+`"}`), jay.InCollection("Users")); err != nil {
			t.Error(err)
		}
	}
	put("users/ann", "a@b")
	put("users/bob", "b@b")
	dumps := 0
	defer checks.OnBuildTables(func(step checks.TableStep) {
		switch step {
		case checks.TablesWritten:
			put("users/bob", "new@b")
		case checks.TablesTaken:
			if err := db.Flush(ctx); err != nil {
				t.Error(err)
			}
			indexesInFormat(t, db)
			dumps++
		}
	})()
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Mail"}}); err != nil || dumps != 1 {
		t.Errorf("%v, %d dumps", err, dumps)
	}
	if n, err := checks.IndexKeys(db); err != nil || n != 2 {
		t.Errorf("%d keys, %v, want one for each document", n, err)
	}
}
