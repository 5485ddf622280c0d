package memory

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/jaydb/jay/storage"
)

// transaction is one run of the function of an Update.
type transaction struct {
	store *store
	known storage.Features
	at    uint64 // the commit that it reads

	staged   map[string]staged
	read     map[string]struct{}
	walked   []bounds
	sequence uint64
	needs    storage.Needs
	deciders []storage.Decider
	over     bool
}

// staged is what a transaction does with a key: it gives it a value, removes it, or adds to its numbers.
type staged struct {
	value []byte
	gone  bool
	add   []int64 // added to the numbers that the key has when the transaction commits; nil for none
}

// Get implements storage.Tx.
func (tx *transaction) Get(key []byte) ([]byte, io.Closer, error) {
	tx.mustRun()
	name := string(key)
	s, changed := tx.staged[name]
	var value []byte
	found := changed && !s.gone
	if changed && s.add == nil {
		value = s.value
	} else {
		tx.read[name] = struct{}{}
		value, found = tx.committed(name)
		if s.add != nil {
			value = sum(value, s.add)
			found = value != nil
		}
	}
	if !found {
		return nil, nil, storage.ErrNotFound
	}
	return value, nothing{}, nil
}

// committed returns the value of key before the transaction.
func (tx *transaction) committed(key string) ([]byte, bool) {
	tx.store.mu.RLock()
	defer tx.store.mu.RUnlock()
	return tx.store.get(key, tx.at)
}

// Unchanged implements storage.Tx.
func (tx *transaction) Unchanged(w storage.WriteTracker, key []byte) bool {
	tx.mustRun()
	name := string(key)
	if _, changed := tx.staged[name]; changed {
		return false
	}
	tx.read[name] = struct{}{}
	tx.store.mu.RLock()
	defer tx.store.mu.RUnlock()
	return !tx.store.writtenSince(name, w.(*tracker).at)
}

// Iterate implements storage.Tx.
func (tx *transaction) Iterate(lo, hi []byte) (storage.Iterator, error) {
	tx.mustRun()
	b := newBounds(lo, hi)
	tx.walked = append(tx.walked, b)
	return &iterator{store: tx.store, at: tx.at, bounds: b}, nil
}

// Set implements storage.Tx.
func (tx *transaction) Set(key, head, tail []byte) {
	tx.mustRun()
	tx.staged[string(key)] = staged{value: slices.Concat(head, tail)}
}

// Delete implements storage.Tx.
func (tx *transaction) Delete(key []byte) {
	tx.mustRun()
	tx.staged[string(key)] = staged{gone: true}
}

// Add implements storage.Tx.
func (tx *transaction) Add(key []byte, deltas ...int64) {
	tx.mustRun()
	name := string(key)
	s, changed := tx.staged[name]
	switch {
	case !changed:
		s.add = slices.Clone(deltas)
	case s.add == nil:
		s.value = sum(s.value, deltas)
		s.gone = s.value == nil
	default:
		s.add = slices.Clone(s.add)
		for i, n := range deltas {
			if i == len(s.add) {
				s.add = append(s.add, 0)
			}
			s.add[i] += n
		}
	}
	tx.staged[name] = s
}

// sum returns numbers with deltas added to them, or nil if all have become 0.
func sum(numbers []byte, deltas []int64) []byte {
	out := make([]byte, max(len(numbers), 8*len(deltas)))
	copy(out, numbers)
	for i, n := range deltas {
		at := out[8*i:]
		binary.BigEndian.PutUint64(at, binary.BigEndian.Uint64(at)+uint64(n))
	}
	if len(bytes.Trim(out, "\x00")) == 0 {
		return nil
	}
	return out
}

// Sequence implements storage.Tx.
func (tx *transaction) Sequence() (uint64, error) {
	tx.mustRun()
	if tx.sequence >= math.MaxInt64 {
		return 0, storage.ErrSequenceExhausted
	}
	tx.sequence++
	return tx.sequence, nil
}

// RequireFeature implements storage.Tx.
func (tx *transaction) RequireFeature(f storage.Feature) {
	tx.mustRun()
	tx.needs.Add(tx.known, f)
}

// RequireSync implements storage.Tx: every commit is durable.
func (tx *transaction) RequireSync() { tx.mustRun() }

// OnDecided implements storage.Tx.
func (tx *transaction) OnDecided(d storage.Decider) {
	tx.mustRun()
	tx.deciders = append(tx.deciders, d)
}

// mustRun panics if the function has returned: its transaction is over then.
func (tx *transaction) mustRun() {
	if tx.over {
		panic("jay: a transaction is used after its function has returned")
	}
}

// sizes returns how long its longest key and its longest value are, and all together.
func (tx *transaction) sizes() (sizes storage.Sizes) {
	for key, s := range tx.staged {
		sizes.Add(len(key), max(len(s.value), 8*len(s.add)))
	}
	return sizes
}

// commit puts what tx has staged into the store, unless something that it has read was
// written since: then it returns errAgain. If the store has a format by now that the engine does not
// know, it returns a *FormatError.
func (s *store) commit(tx *transaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkFeatures(tx.known); err != nil {
		return err
	}
	for key := range tx.read {
		if s.writtenSince(key, tx.at) {
			return errAgain
		}
	}
	for _, r := range tx.walked {
		if s.rangeWrittenSince(r, tx.at) {
			return errAgain
		}
	}
	s.raise(tx.known.Format(tx.needs.Features).Features)
	if len(tx.staged) == 0 {
		return nil
	}
	s.last++
	for key, change := range tx.staged {
		v := version{commit: s.last, value: change.value, gone: change.gone}
		if change.add != nil {
			now, _ := s.get(key, s.last)
			v.value = sum(now, change.add)
			v.gone = v.value == nil
		}
		s.put(key, v)
	}
	if s.last%1000 == 0 {
		s.sweep()
	}
	close(s.news)
	s.news = make(chan struct{})
	return nil
}
