package shared

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/memory"
)

// This file is inside the package for the keys of its records.

// tentative is an engine whose transactions see, in their first run, a version of definitions that is never committed, as one that another
// transaction has staged whose commit fails.
type tentative struct {
	storage.Engine
	version uint64
}

// Update implements storage.Engine.
func (e *tentative) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	return e.Engine.Update(ctx, sync, func(tx storage.Tx) error {
		version := e.version
		e.version = 0
		return fn(&tentativeTx{tx, version})
	})
}

type tentativeTx struct {
	storage.Tx
	version uint64 // 0 for what is committed
}

// Get implements storage.Tx.
func (tx *tentativeTx) Get(key []byte) ([]byte, io.Closer, error) {
	if tx.version != 0 && slices.Equal(key, versionKey) {
		return binary.BigEndian.AppendUint64(nil, tx.version), io.NopCloser(nil), nil
	}
	return tx.Tx.Get(key)
}

// published notes which versions were published.
type published struct {
	version uint64
	all     *[]uint64
}

// Publish implements Definitions.
func (p published) Publish() { *p.all = append(*p.all, p.version) }

// Ensure that definitions are never published that a transaction sees and that are not committed: it runs again.
func TestFollow_Uncommitted(t *testing.T) {
	inner, err := new(memory.Driver).Open("store", storage.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := New(&tentative{Engine: inner, version: 7})
	var all []uint64
	err = e.Start(func(r storage.Reader) (Definitions, error) {
		version, _, err := env.NumberAt(r, versionKey)
		return published{version, &all}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen []uint64
	err = e.Update(context.Background(), true, func(tx storage.Tx) error {
		version, _, err := env.NumberAt(tx, versionKey)
		seen = append(seen, version)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(all, []uint64{0}) || !slices.Equal(seen, []uint64{0}) {
		t.Errorf("published the versions %d, and the function saw %d; want 0 and 0", all, seen)
	}
}
