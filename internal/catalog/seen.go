package catalog

import (
	"bytes"
	"errors"
	"io"

	"github.com/jaydb/jay/storage"
)

// Seen notes what a Settler has read of some keys, so that its transaction can compare. It holds
// their values. It is not safe for concurrent use.
type Seen struct {
	r      storage.Reader
	values map[string][]byte // nil for a key that was not there
}

// NewSeen returns a Seen that reads from r.
func NewSeen(r storage.Reader) *Seen { return &Seen{r, make(map[string][]byte)} }

// Get returns the value at key, nil if it is not there, and notes it. It must not be changed.
func (s *Seen) Get(key []byte) ([]byte, error) {
	if value, noted := s.values[string(key)]; noted {
		return value, nil
	}
	value, err := ValueAt(s.r, key)
	if err == nil {
		s.values[string(key)] = value
	}
	return value, err
}

// Note notes what an iterator over r has shown. Both are copied.
func (s *Seen) Note(key, value []byte) { s.values[string(key)] = append([]byte{}, value...) }

// Holds reports whether a transaction finds at each key what was noted.
func (s *Seen) Holds(tx storage.Tx) (bool, error) {
	for key, value := range s.values {
		now, err := ValueAt(tx, []byte(key))
		if err != nil || (now == nil) != (value == nil) || !bytes.Equal(now, value) {
			return false, err
		}
	}
	return true, nil
}

// ValueAt returns a copy of the value at a key of a storage.Reader or a storage.Tx, nil if there is none.
func ValueAt(r interface {
	Get(key []byte) ([]byte, io.Closer, error)
}, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value = append([]byte{}, value...)
	return value, closer.Close()
}
