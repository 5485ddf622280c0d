package look

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"sync"

	"github.com/jaydb/jay/storage"
)

// snapshot is a snapshot that the owner has open.
type snapshot struct {
	engine *engine
	number uint64
	err    error // why there is none; or nil
	once   sync.Once
}

func (e *engine) open() *snapshot {
	reply, err := e.ask(askSnapshot, nil)
	c := content{rest: reply}
	number := c.number()
	if err == nil && c.bad {
		err = unanswered(errFrame)
	}
	return &snapshot{engine: e, number: number, err: err}
}

// Get implements storage.Reader.
func (s *snapshot) Get(key []byte) ([]byte, io.Closer, error) {
	if s.err != nil {
		return nil, nil, s.err
	}
	return s.engine.get(s.number, key)
}

// GetMany implements storage.ManyGetter: it asks for a page at a time.
func (s *snapshot) GetMany(keys [][]byte, found func(i int, value []byte) error) error {
	if s.err != nil {
		return s.err
	}
	for from := 0; from < len(keys); {
		request, n := binary.AppendUvarint(nil, s.number), 0
		for ; from+n < len(keys) && n < pageKeys && (n == 0 || len(request)+len(keys[from+n]) < maxRequest/2); n++ {
			request = appendText(request, keys[from+n])
		}
		reply, err := s.engine.ask(askMany, request)
		if err != nil {
			return err
		}
		answered := 0
		for c := (content{rest: reply}); len(c.rest) > 0; answered++ {
			there := c.flag() != 0
			var value []byte
			if there {
				value = c.text()
			}
			if c.bad || answered == n {
				return unanswered(errFrame)
			}
			if !there {
				continue
			}
			if err := found(from+answered, value); err != nil {
				return err
			}
		}
		if answered == 0 {
			return unanswered(errFrame)
		}
		from += answered
	}
	return nil
}

// Iterate implements storage.Reader.
func (s *snapshot) Iterate(lo, hi []byte) (storage.Iterator, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &iterator{of: s, lo: bytes.Clone(lo), hi: bytes.Clone(hi)}, nil
}

// WaitDurable implements storage.Snapshot.
func (s *snapshot) WaitDurable(ctx context.Context) error { return s.engine.Sync(ctx) }

// Close implements storage.Snapshot. If the owner has gone, so has the snapshot.
func (s *snapshot) Close() error {
	s.once.Do(func() {
		if s.err == nil {
			_, _ = s.engine.ask(askClose, binary.AppendUvarint(nil, s.number))
		}
	})
	return nil
}

// tracker is a storage.WriteTracker that tracks nothing.
type tracker struct{ engine *engine }

// NewReader implements storage.WriteTracker.
func (t tracker) NewReader() (storage.BatchReader, error) { return batchReader{t.engine.open()}, nil }

// Close implements storage.WriteTracker.
func (tracker) Close() {}

// batchReader is a storage.BatchReader of a snapshot.
type batchReader struct{ *snapshot }

// Get implements storage.BatchReader.
func (r batchReader) Get(key []byte) ([]byte, error) {
	value, _, err := r.snapshot.Get(key) // there is nothing to close
	return value, err
}

// Missing implements storage.BatchReader.
func (r batchReader) Missing(keys [][]byte) (bool, error) {
	for _, key := range keys {
		if _, err := r.Get(key); err != storage.ErrNotFound {
			return false, err
		}
	}
	return true, nil
}
