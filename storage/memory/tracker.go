package memory

import (
	"slices"
	"sync"

	"github.com/jaydb/jay/storage"
)

// tracker remembers the commit after which writes count.
type tracker struct {
	driver *Driver
	store  *store
	at     uint64
	once   sync.Once
}

// TrackWrites implements storage.Engine.
func (e *Engine) TrackWrites() storage.WriteTracker {
	return &tracker{driver: e.driver, store: e.store, at: e.store.enter()}
}

// NewReader implements storage.WriteTracker.
func (w *tracker) NewReader() (storage.BatchReader, error) {
	return &batchReader{w.store.snapshot(w.driver.newborn())}, nil
}

// GetMany implements storage.ManyGetter.
func (w *tracker) GetMany(keys [][]byte, found func(i int, value []byte) error) error {
	s := w.store.snapshot(w.driver.newborn())
	defer s.Close()
	return s.GetMany(keys, found)
}

// Close implements storage.WriteTracker.
func (w *tracker) Close() { w.once.Do(func() { w.store.leave(w.at) }) }

// batchReader reads many keys of one moment.
type batchReader struct{ snapshot *snapshot }

// Get implements storage.BatchReader.
func (r *batchReader) Get(key []byte) ([]byte, error) {
	value, _, err := r.snapshot.Get(key) // there is nothing to close
	return value, err
}

// Missing implements storage.BatchReader.
func (r *batchReader) Missing(keys [][]byte) (bool, error) {
	if err := r.snapshot.age.expired(); err != nil {
		return false, err
	}
	s := r.snapshot.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !slices.ContainsFunc(keys, func(key []byte) bool {
		_, found := s.get(string(key), r.snapshot.at)
		return found
	}), nil
}

// Close implements storage.BatchReader.
func (r *batchReader) Close() error { return r.snapshot.Close() }
