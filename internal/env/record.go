package env

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// SetJSON stages a record whose value is JSON.
func SetJSON(tx storage.Tx, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tx.Set(key, text, nil)
	return nil
}

// Getter is what one key is read with: a storage.Reader or Tx.
type Getter interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
}

// IsEmpty reports whether a store has no keys, to a transaction or another reader.
func IsEmpty(r interface {
	Iterate(lo, hi []byte) (storage.Iterator, error)
}) (bool, error) {
	it, err := r.Iterate(nil, nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}

// NumberAt returns the number of 8 bytes at a key. Without the key it is 0, and found is false.
func NumberAt(r Getter, key []byte) (n uint64, found bool, err error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if len(value) != 8 {
		return 0, false, errs.First(fmt.Errorf("number %x at %x: %w", value, key, errs.ErrCorrupt), closer.Close())
	}
	n = binary.BigEndian.Uint64(value)
	return n, true, closer.Close()
}

// Walker is what keys are walked over with: a storage.Reader or Tx.
type Walker interface {
	Iterate(lo, hi []byte) (storage.Iterator, error)
}

// Each calls fn with the keys from lo on, below hi, and their values. They are valid until
// fn returns. An error of fn ends the walk.
func Each(r Walker, lo, hi []byte, fn func(key, value []byte) error) (err error) {
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if err := fn(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}
