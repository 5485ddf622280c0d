package query_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that in a database whose IDs regard case pages by ID miss nothing, as
// they did: keys stand in the order of bytes, B before a, but texts do not; and
// that a comparison of id() that disregards case finds what a scan would.
func TestQuery_Regression_CaseSensitiveIDs(t *testing.T) {
	db := memory(t, &jay.Options{CaseSensitive: true})
	for _, id := range []string{"v/a", "v/B", "v/A", "v/b", "v/c"} {
		put(t, db, id, `{}`, jay.InCollection("Values"))
	}
	var joined []string
	for cursor := ""; ; {
		p, err := db.Query("Values").Limit(2).After(cursor).Page(ctx)
		must(t, err)
		for _, doc := range p.Items {
			joined = append(joined, strings.TrimPrefix(doc.ID(), "v/"))
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	equal(t, strings.Join(joined, " "), "A a B b c")
	for rql, want := range map[string]int{
		"from Values where id() = 'V/A'": 2, "from Values where exact(id() = 'v/A')": 1, "from Values where id() in ('V/a', 'v/C')": 3,
		"from Values where startsWith(id(), 'V/B')": 2, "from Values where exact(startsWith(id(), 'V/'))": 0,
	} {
		q, err := db.RQL(rql, nil)
		must(t, err)
		rows, err := q.All(ctx)
		must(t, err)
		if len(rows) != want {
			t.Errorf("%s: %d answers, want %d", rql, len(rows), want)
		}
	}
}
