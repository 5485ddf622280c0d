package jay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that the builder names metadata as RQL does, in any case, and refuses
// what of it cannot be asked for, instead of finding nothing.
func TestCondition_Metadata(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "orders/1", `{"@metadata":{"@collection":"Orders","mine":1}}`)
	for _, field := range []string{"id()", "ID()", "@metadata.@id", "@metadata.@ID"} {
		if n, err := db.Query("Orders").Where(jay.Eq(field, "orders/1")).Count(ctx); n != 1 || err != nil {
			t.Errorf("%s: got %d, %v, want 1", field, n, err)
		}
	}
	for _, field := range []string{"@metadata.mine", "@metadata.@etag"} {
		if n, err := db.Query("Orders").Where(jay.Eq(field, 1)).Count(ctx); n != 1 || err != nil {
			t.Errorf("%s: got %d, %v, want 1", field, n, err)
		}
	}
	for _, field := range []string{"@metadata", "@metadata[0]", "@metadata.@id.x", "@metadata.@colection"} {
		if _, err := db.Query("Orders").Where(jay.Eq(field, 1)).Count(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", field, err)
		}
	}
}

// Ensure that the index that Explain asks for can be pasted into a shell,
// whatever the names are, and that no bound overflows in what it says.
func TestExplanation_Hint(t *testing.T) {
	db := memory(t, nil)
	_, err := db.Put(ctx, "a", json.RawMessage(`{}`), jay.InCollection("My Orders"))
	must(t, err)
	e, err := db.Query("My Orders").Where(jay.Eq("Lines[].P", 1)).OrderBy("-'it\\'s'").Explain(ctx)
	must(t, err)
	if want := `hint: jay index create 'My Orders' 'Lines[].P,-'\''it\'\''s'\'''`; !strings.HasSuffix(e.String(), want) {
		t.Errorf("got %s, want %s", e, want)
	}
	e, err = db.Query("My Orders").OrderBy("-a").Skip(1 << 62).Limit(1 << 62).Explain(ctx)
	must(t, err)
	if !strings.HasSuffix(e.String(), "hint: jay index create 'My Orders' -- -a") || strings.Contains(e.String(), "keeping") {
		t.Errorf("got %s", e)
	}
}
