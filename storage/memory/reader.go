package memory

import (
	"context"
	"io"
	"sync"

	"github.com/jaydb/jay/storage"
)

// snapshot reads what a store has at one commit.
type snapshot struct {
	store *store
	at    uint64
	age   age
	once  sync.Once
}

func (s *store) snapshot(age age) *snapshot { return &snapshot{store: s, at: s.enter(), age: age} }

// Get implements storage.Reader.
func (v *snapshot) Get(key []byte) ([]byte, io.Closer, error) {
	if err := v.age.expired(); err != nil {
		return nil, nil, err
	}
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	value, found := v.store.get(string(key), v.at)
	if !found {
		return nil, nil, storage.ErrNotFound
	}
	return value, nothing{}, nil
}

// GetMany implements storage.ManyGetter.
func (v *snapshot) GetMany(keys [][]byte, found func(i int, value []byte) error) error {
	for i, key := range keys {
		value, _, err := v.Get(key) // there is nothing to close
		if err == storage.ErrNotFound {
			continue
		}
		if err != nil {
			return err
		}
		if err := found(i, value); err != nil {
			return err
		}
	}
	return nil
}

// Iterate implements storage.Reader.
func (v *snapshot) Iterate(lo, hi []byte) (storage.Iterator, error) {
	return &iterator{store: v.store, at: v.at, age: v.age, bounds: newBounds(lo, hi)}, v.age.expired()
}

// WaitDurable implements storage.Snapshot.
func (v *snapshot) WaitDurable(context.Context) error { return nil }

// Close implements storage.Snapshot.
func (v *snapshot) Close() error {
	v.once.Do(func() { v.store.leave(v.at) })
	return nil
}

// nothing is the closer of a value that does not change.
type nothing struct{}

func (nothing) Close() error { return nil }

// iterator walks over what a store has at one commit, as long as that stays readable.
type iterator struct {
	store  *store
	at     uint64
	age    age
	err    error // why it shows nothing any more; or nil
	bounds bounds
	closed func() // may be nil

	place place
	key   string // that it stands on
	value []byte
}

// place is where an iterator stands: before the first key, on one, or behind the last.
type place uint8

const (
	before place = iota
	on
	behind
)

// First implements storage.Iterator.
func (it *iterator) First() bool { return it.SeekGE([]byte(it.bounds.lo)) }

// SeekGE implements storage.Iterator.
func (it *iterator) SeekGE(key []byte) bool {
	if it.expires() {
		return false
	}
	it.store.mu.RLock()
	defer it.store.mu.RUnlock()
	return it.forward(it.store.find(max(string(key), it.bounds.lo)))
}

// Last implements storage.Iterator.
func (it *iterator) Last() bool {
	if it.expires() {
		return false
	}
	it.store.mu.RLock()
	defer it.store.mu.RUnlock()
	return it.backward(it.end() - 1)
}

// SeekLT implements storage.Iterator.
func (it *iterator) SeekLT(key []byte) bool {
	if it.expires() {
		return false
	}
	it.store.mu.RLock()
	defer it.store.mu.RUnlock()
	return it.backward(min(it.store.find(string(key)), it.end()) - 1)
}

// expires reports whether it shows nothing any more.
func (it *iterator) expires() bool {
	if it.err == nil {
		it.err = it.age.expired()
	}
	if it.err != nil {
		it.place = behind
	}
	return it.err != nil
}

// end is the index behind the last key of the range. Its caller holds the mutex.
func (it *iterator) end() int {
	if !it.bounds.ends {
		return len(it.store.keys)
	}
	return it.store.find(it.bounds.hi)
}

// Next implements storage.Iterator.
func (it *iterator) Next() bool {
	if it.expires() {
		return false
	}
	switch it.place {
	case before:
		return it.First()
	case behind:
		return false
	}
	it.store.mu.RLock()
	defer it.store.mu.RUnlock()
	i := it.store.find(it.key)
	if i < len(it.store.keys) && it.store.keys[i] == it.key {
		i++
	}
	return it.forward(i)
}

// Prev implements storage.Iterator.
func (it *iterator) Prev() bool {
	if it.expires() {
		return false
	}
	switch it.place {
	case before:
		return false
	case behind:
		return it.Last()
	}
	it.store.mu.RLock()
	defer it.store.mu.RUnlock()
	return it.backward(it.store.find(it.key) - 1)
}

// forward moves to the first key from index i on that is there. Its caller holds the mutex.
func (it *iterator) forward(i int) bool {
	for ; i < len(it.store.keys) && it.bounds.below(it.store.keys[i]); i++ {
		if it.stand(it.store.keys[i]) {
			return true
		}
	}
	it.place = behind
	return false
}

// backward moves to the first key from index i down that is there. Its caller holds the mutex.
func (it *iterator) backward(i int) bool {
	for ; i >= 0 && it.store.keys[i] >= it.bounds.lo; i-- {
		if it.stand(it.store.keys[i]) {
			return true
		}
	}
	it.place = before
	return false
}

// stand moves to key if it is there.
func (it *iterator) stand(key string) bool {
	value, found := it.store.get(key, it.at)
	if found {
		it.place, it.key, it.value = on, key, value
	}
	return found
}

// Valid implements storage.Iterator.
func (it *iterator) Valid() bool { return it.place == on }

// Key implements storage.Iterator.
func (it *iterator) Key() []byte { return []byte(it.key) }

// Value implements storage.Iterator.
func (it *iterator) Value() []byte { return it.value }

// Error implements storage.Iterator.
func (it *iterator) Error() error { return it.err }

// Close implements storage.Iterator.
func (it *iterator) Close() error {
	if it.closed != nil {
		it.closed()
		it.closed = nil
	}
	return nil
}
