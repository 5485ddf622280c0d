package query_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that an index finds what a scan finds, also of vectors so small that their numbers have no full precision.
func TestVectors_Small(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Docs", jay.Index{Name: "v", Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": "2"}}))
	for i, v := range []string{"[1e-45,1e-45]", "[3e-45,3e-45]", "[2e-44,2e-44]", "[1e-38,1e-38]", "[1,1]", "[1,-1]", "[1e-40,1.1e-40]"} {
		_, err := db.Put(ctx, fmt.Sprint("docs/", i), json.RawMessage(`{"V":`+v+`}`), jay.InCollection("Docs"))
		jaytest.Must(t, err)
	}
	for _, rql := range []string{
		"from Docs where vector.search(V, [1,1], 0.9) select id() as id, V",
		"from Docs order by vector.distance(V, [1,1]) select id() as id, V limit 6",
		"from Docs order by exact(vector.distance(V, [1,1])) select id() as id, V limit 3",
	} {
		q, err := db.RQL(rql, nil)
		jaytest.Must(t, err)
		got, err := rowsOf(q)
		jaytest.Must(t, err)
		want, err := rowsOf(q.NoIndex())
		jaytest.Must(t, err)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %v\nwant %v", rql, got, want)
		}
	}
}
