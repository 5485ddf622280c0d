package write_test

// The bounds are far above what a test can reach.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
)

// Ensure that a batch of patches does not make more bodies than a transaction
// may stage before it is refused, and that it is refused before the transaction.
func TestApply_PatchesAreBounded(t *testing.T) {
	defer func(patched int) { write.MaxPatchedBytes = patched }(write.MaxPatchedBytes)
	write.MaxPatchedBytes = 10_000
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n, want := range map[int]error{80: nil, 120: jay.ErrTooLarge} {
		var b jay.Batch
		for i := range n {
			id := fmt.Sprint(n, "/", i)
			if _, err := db.Put(ctx, id, fmt.Appendf(nil, `{"pad":"%080d"}`, i)); err != nil {
				t.Fatal(err)
			}
			b.Patch(id, jay.Set("n", 1))
		}
		if _, err := db.Apply(ctx, &b); !errors.Is(err, want) {
			t.Errorf("%d patches: got %v, want %v", n, err, want)
		}
		guessed, err := parts.Of(db).Writer.SpeculatePatches(ctx, parts.Ops(&b))
		if !errors.Is(err, want) {
			t.Errorf("%d patches before the transaction: got %v, want %v", n, err, want)
		}
		guessed.Close()
		for _, o := range parts.Ops(&b) {
			if o.Patching.Guess.Body != nil {
				t.Errorf("%d patches: the batch keeps the body of %s", n, o.ID)
			}
		}
		doc, err := db.Get(ctx, fmt.Sprint(n, "/0"))
		if err != nil {
			t.Fatal(err)
		}
		if patched := len(doc.Body()) > 90; patched != (want == nil) {
			t.Errorf("%d patches: patched %v", n, patched)
		}
	}
}

// Ensure that the work of a condition within one element counts, and is not done
// beyond the limit.
func TestPatch_RemoveWhere_WorkInElement(t *testing.T) {
	db := memoryDB(t)
	body := []byte(`{"a":[[0` + strings.Repeat(",1", 100_000) + `]]}`)
	for n, want := range map[int]error{1: nil, 20: jay.ErrPatchWork} {
		var conditions []jay.Condition
		for i := range n {
			conditions = append(conditions, jay.Eq("@value", -1-i))
		}
		o := patchOf("docs/1", jay.RemoveWhere("a", jay.Or(conditions...)))
		if _, _, err := parts.Of(db).Writer.ApplyEdits(context.Background(), o, body, 2<<20); !errors.Is(err, want) {
			t.Errorf("%d conditions: got %v, want %v", n, err, want)
		}
	}
}
