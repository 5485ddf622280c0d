package backup

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// damagedReader has iterators that fail at once.
type damagedReader struct {
	storage.Reader
	iterators []*damagedIterator
}

func (r *damagedReader) Iterate(_, _ []byte) (storage.Iterator, error) {
	r.iterators = append(r.iterators, new(damagedIterator))
	return r.iterators[len(r.iterators)-1], nil
}

type damagedIterator struct {
	storage.Iterator
	closed int
}

func (*damagedIterator) First() bool  { return false }
func (*damagedIterator) Next() bool   { return false }
func (*damagedIterator) Error() error { return storage.ErrCorrupt }
func (it *damagedIterator) Close() error {
	it.closed++
	return storage.ErrCorrupt
}

// Ensure that a backup of a damaged database closes each iterator once, and returns the error. Pebble
// uses an iterator again that was closed, so that closing it twice takes it from another reader.
func TestSource_Damaged(t *testing.T) {
	for name, of := range map[string]func(s *Source) part{
		"keys":    func(s *Source) part { return &keys{from: s.snapshot} },
		"changes": func(s *Source) part { return &changed{source: s} },
		"revisions": func(s *Source) part {
			return &changed{source: s, kept: []*keys{{from: s.snapshot}}}
		},
	} {
		r := new(damagedReader)
		s := &Source{env: &env.Env{Origins: env.Origins{0: format.Origin{}}}, snapshot: r, base: &format.Backup{}}
		s.parts = []part{of(s)}
		if _, err := s.Next(context.Background(), new(Writer)); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		_ = s.Close()
		_ = s.Close()
		if len(r.iterators) != 1 || r.iterators[0].closed != 1 {
			t.Errorf("%s: %d iterators, the first was closed %d times", name, len(r.iterators), r.iterators[0].closed)
		}
	}
}
