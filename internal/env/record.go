package env

import (
	"encoding/json"

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
