package jay_test

import (
	"encoding/json"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that the result of a delete says whether there was a document.
func TestApply_DeleteResult(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	_, err := db.Put(ctx, "a", json.RawMessage(`{}`))
	must(t, err)
	var b jay.Batch
	b.Delete("a")
	b.Delete("missing")
	b.Put("c", json.RawMessage(`{}`))
	b.Delete("c")
	b.Delete("a")
	written, err := db.Apply(ctx, &b)
	must(t, err)
	for i, want := range []bool{true, false, true, true, false} {
		if got := written[i].Etag > 0; got != want {
			t.Errorf("write %d: etag %d", i, written[i].Etag)
		}
	}
	if m := written[0]; m.ID != "a" || m.ChangeVector+m.Collection != "" || m.Custom != nil {
		t.Errorf("a delete has more than an ID and an etag: %+v", written[0])
	}
}
