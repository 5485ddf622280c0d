package codec_test

import (
	"testing"

	"github.com/jaydb/jay"
)

type list []list

type tree map[string]tree

// Ensure that a type that is a list or a map of itself can be that of a field: what CollectionOf looks for in it has an end.
func TestCheckTags_Recursive(t *testing.T) {
	t.Parallel()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	type document struct {
		ID   string
		List list
		Tree tree
	}
	all, err := jay.CollectionOf[document](db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := all.Insert(t.Context(), &document{List: list{nil, {}}, Tree: tree{"a": {"b": nil}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all.Get(t.Context(), m.ID); err != nil || len(got.List) != 2 || len(got.Tree["a"]) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}
