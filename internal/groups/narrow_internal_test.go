package groups

// It makes keepers without a database, as large as they can be.

import (
	"bytes"
	"testing"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/query"
)

// Ensure that a collection of the largest indexes has room for what a short body without an array gives to them: a build does not look at those
// that are not built. One of a function is not narrow.
func TestIsNarrow(t *testing.T) {
	k := keeper{members: make([]query.Field, catalog.MaxFields), sums: make([]query.Field, MaxSums)}
	d := &catalog.Document{Body: bytes.Repeat([]byte("x"), catalog.NarrowBytes)}
	of := ends{k: k}
	of.k.members = append(of.k.members, make([]query.Field, MaxSums)...)
	for name, keeper := range map[string]catalog.Keeper{Name: k, EndsName: of} {
		if n := catalog.MaxPerCollection * keeper.Bytes(d, 1, catalog.Roughly); n > catalog.MaxEntryBytes {
			t.Errorf("%s: %d bytes, and %d are the most", name, n, catalog.MaxEntryBytes)
		}
		if narrow, is := keeper.(catalog.Narrow); !is || !narrow.IsNarrow() {
			t.Errorf("%s is not narrow", name)
		}
	}
	each, err := query.ParseEach("function('a', '1') as x")
	if err != nil {
		t.Fatal(err)
	}
	if k.fan = each; k.IsNarrow() {
		t.Error("one of a function is narrow")
	}
}
