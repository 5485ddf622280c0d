package bounds_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that a transaction that grows too large gets an error from the write, and
// can still commit what it had.
func TestTx_TooLarge(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	long := strings.Repeat("x", 2000)
	writes := 0
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "a", json.RawMessage(`{}`)); err != nil {
			return err
		}
		for {
			err := tx.Delete(ctx, long) // the cheapest large write there is
			if err != nil {
				if !errors.Is(err, jay.ErrTooLarge) {
					t.Errorf("write %d: %v, want ErrTooLarge", writes, err)
				}
				return nil
			}
			if writes++; writes > 300_000 {
				return errors.New("there is no limit")
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, body(t, db, "a"), `{}`)
	t.Logf("refused after %d writes", writes)
}
