package salvage

import (
	"context"
	"fmt"
	"testing"

	"github.com/jaydb/jay/storage"
)

// oneKey is a reader of one key.
type oneKey struct{ storage.Reader }

func (oneKey) Iterate(_, _ []byte) (storage.Iterator, error) { return oneKeyIterator{}, nil }

type oneKeyIterator struct{ storage.Iterator }

func (oneKeyIterator) First() bool   { return true }
func (oneKeyIterator) Next() bool    { return false }
func (oneKeyIterator) Key() []byte   { return []byte("k") }
func (oneKeyIterator) Value() []byte { return nil }
func (oneKeyIterator) Error() error  { return nil }
func (oneKeyIterator) Close() error  { return nil }

// Ensure that the error of a copy that cannot be written is returned as it is, and not taken for
// damage to what is read: also if the disk of the copy is damaged.
func TestEach_ErrorOfTheCopy(t *testing.T) {
	for _, want := range []error{context.Canceled, fmt.Errorf("copy: %w", storage.ErrCorrupt)} {
		c := &copying{ctx: context.Background(), from: Source{Main: oneKey{}}, result: new(Result)}
		calls := 0
		err := c.each(nil, nil, func(_, _ []byte) error { calls++; return want })
		if err != want || calls != 1 || c.gaps > 0 || c.result.LostCount > 0 {
			t.Errorf("got %v after %d calls, %d gaps, want %v", err, calls, c.gaps, want)
		}
	}
}
