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
