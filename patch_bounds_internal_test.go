package jay

// The bounds are far above what a test can reach.

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Ensure that a batch of patches does not make more bodies than a transaction
// may stage before it says so, nor hold all of them before the transaction.
func TestApply_PatchesAreBounded(t *testing.T) {
	defer func(ahead int64, patched int) { maxAheadBytes, maxPatchedBytes = ahead, patched }(maxAheadBytes, maxPatchedBytes)
	maxAheadBytes, maxPatchedBytes = 1000, 10_000
	ctx := context.Background()
	db, err := OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n, want := range map[int]error{80: nil, 120: ErrTooLarge} {
		var b Batch
		for i := range n {
			id := fmt.Sprint(n, "/", i)
			if _, err := db.Put(ctx, id, fmt.Appendf(nil, `{"pad":"%080d"}`, i)); err != nil {
				t.Fatal(err)
			}
			b.Patch(id, Set("n", 1))
		}
		if _, err := db.Apply(ctx, &b); !errors.Is(err, want) {
			t.Errorf("%d patches: got %v, want %v", n, err, want)
		}
		guessed := 0
		for _, o := range b.ops {
			guessed += len(o.patching.guess.body)
		}
		if guessed == 0 || guessed > 1200 {
			t.Errorf("%d patches: %d bytes were made before the transaction", n, guessed)
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
