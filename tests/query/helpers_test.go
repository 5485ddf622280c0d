// Package query compares the answers of queries, whatever plan finds them, with
// those of an evaluator that knows no index.
package query_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
)

var (
	ctx = context.Background()

	must       = jaytest.Must
	memory     = jaytest.Memory
	openMemory = jaytest.OpenMemory
	put        = jaytest.Put
	closeDB    = jaytest.Close
	body       = jaytest.Body
	rows       = jaytest.Rows
	shop       = jaytest.Shop

	collectionsOf = jaytest.CollectionsText
)

// TestMain collects garbage seldom, and has scans of few documents looked at by several goroutines.
func TestMain(m *testing.M) {
	knobs.ScanAlone, knobs.ScanPartBytes = 3, 300
	jaytest.CollectSeldom()
	m.Run()
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}

func collectionOf[T any](t testing.TB, db *jay.DB, opts ...jay.CollectionOption) *jay.Collection[T] {
	t.Helper()
	return jaytest.CollectionOf[T](t, db, opts...)
}

// versionedBike has its version in a field.
type versionedBike struct {
	ID      string
	Serial  string
	Version string `jay:"version"`
}
