package jaytest_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/jaytest"
)

// Ensure that the end of a test finds an index with an entry that no document has.
func TestOpen_NotWhole(t *testing.T) {
	got := run("TestX", func(ft jaytest.T) {
		db := jaytest.Open(ft, nil)
		put(t, db.DB, "users/ann", `{"Name":"Ann"}`, jay.InCollection("Users"))
		if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}}); err != nil {
			t.Fatal(err)
		}
		key, value := checks.FirstEntry(db.DB)
		key[len(key)-1] ^= 1
		checks.SetEntry(db.DB, key, value)
	})
	if !strings.Contains(got, "not whole") {
		t.Errorf("got %q, want the damage", got)
	}
}
