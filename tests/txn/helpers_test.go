// Package txn checks that transactions are serializable: by the graph of a
// concurrent history, and against a map.
package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	memory       = jaytest.Memory
	openMemory   = jaytest.OpenMemory
	onDisk       = jaytest.OnDisk
	closeDB      = jaytest.Close
	put          = jaytest.Put
	store        = jaytest.Store
	body         = jaytest.Body
	must         = jaytest.Must
	dump         = jaytest.Dump
	concurrently = jaytest.Concurrently
	afterPrefix  = jaytest.NumberAfter
)

var errGivenUp = errors.New("the function gave up")

// User is a document of the collection Users.
type User struct {
	ID   string
	Name string `json:",omitempty"`
	Age  int    `json:",omitempty"`
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}

func getIn(id string) func(*jay.Tx) error {
	return func(tx *jay.Tx) error { _, err := tx.Get(ctx, id); return err }
}

func existsIn(id string) func(*jay.Tx) error {
	return func(tx *jay.Tx) error { _, err := tx.Exists(ctx, id); return err }
}

func walkIn(s jay.Scan) func(*jay.Tx) error {
	return func(tx *jay.Tx) error {
		for _, err := range tx.Documents(ctx, s) {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func collectionOf[T any](t testing.TB, db *jay.DB, opts ...jay.CollectionOption) *jay.Collection[T] {
	t.Helper()
	return jaytest.CollectionOf[T](t, db, opts...)
}

// TestMain collects garbage seldom.
func TestMain(m *testing.M) {
	jaytest.CollectSeldom()
	m.Run()
}
