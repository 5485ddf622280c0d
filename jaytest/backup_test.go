package jaytest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/storage"
)

// Ensure that a backup that was cut short, and one that is whole but of a damaged database, fail the test that checks them.
func TestCheckBackup_Fails(t *testing.T) {
	t.Parallel()
	damage := func(db *jay.DB) { // ann is in no collection any more
		err := checks.Engine(db).Update(ctx, true, func(tx storage.Tx) error {
			tx.Delete(format.MemberKey(nil, "@empty", "ann"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, row := range map[string]struct {
		hurt func(db *jay.DB)
		cut  int
		want string
	}{
		"cut short":             {nil, 1, "cut short"},
		"of a damaged database": {damage, 0, "it is whole, and cannot be restored"},
	} {
		got := run("TestX", func(ft jaytest.T) {
			db, err := jay.OpenMemory(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			put(t, db, "ann", `{}`)
			put(t, db, "bob", `{}`)
			if row.hurt != nil {
				row.hurt(db)
			}
			var stream bytes.Buffer
			if _, err := db.Backup(ctx, &stream); err != nil {
				t.Fatal(err)
			}
			jaytest.CheckBackup(ft, stream.Bytes()[:stream.Len()-row.cut])
		})
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, want %q", what, got, row.want)
		}
	}
}
