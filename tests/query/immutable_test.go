package query_test

import (
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that two queries made of one do not change each other, whichever
// method made them.
func TestQuery_Immutable(t *testing.T) {
	db := memory(t, nil)
	base := db.Query("Orders").Where(jay.Gt("A", 1), jay.Gt("B", 2), jay.Gt("C", 3)).
		OrderBy("A", "B", "C").Include("a", "b", "c")
	before := base.String()
	makers := map[string]func(q jay.Query[jay.Document], field string) jay.Query[jay.Document]{
		"Where":   func(q jay.Query[jay.Document], f string) jay.Query[jay.Document] { return q.Where(jay.Eq(f, 1)) },
		"OrderBy": func(q jay.Query[jay.Document], f string) jay.Query[jay.Document] { return q.OrderBy(f) },
		"Include": func(q jay.Query[jay.Document], f string) jay.Query[jay.Document] { return q.Include(f) },
		"GroupBy": func(q jay.Query[jay.Document], f string) jay.Query[jay.Document] { return q.GroupBy(f) },
	}
	for name, derive := range makers {
		first := derive(base, "X")
		text := first.String()
		if second := derive(base, "Y"); first.String() != text || second.String() == text {
			t.Errorf("%s: the first became %q with the second, %q", name, first, second)
		}
	}
	if base.String() != before {
		t.Errorf("the query that the others were made of became %q", base)
	}
}
