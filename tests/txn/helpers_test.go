// Package txn checks that transactions are serializable: by the graph of a
// concurrent history, and against a map.
package txn_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	memory       = jaytest.Memory
	concurrently = jaytest.Concurrently
)

func collectionOf[T any](t testing.TB, db *jay.DB, opts ...jay.CollectionOption) *jay.Collection[T] {
	t.Helper()
	return jaytest.CollectionOf[T](t, db, opts...)
}
