// Package members tests several databases that agree through a coordinator in memory, one that fails
// when a test says so: identities, compare exchange, cluster-wide sessions, copies and restores. Suite
// tests/cluster does it with etcd, processes and a network.
package members_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	memory      = jaytest.Memory
	onDisk      = jaytest.OnDisk
	closeDB     = jaytest.Close
	put         = jaytest.Put
	store       = jaytest.Store
	body        = jaytest.Body
	must        = jaytest.Must
	dump        = jaytest.Dump
	within      = jaytest.Within
	afterPrefix = jaytest.NumberAfter
)

type customer struct {
	ID   string
	Name string
}

type order struct {
	ID       string
	Customer string
}

type invoice struct {
	ID    string
	Order string
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}

func second[T any](_ T, err error) error { return err }

// exchanged puts a value, and returns its index.
func exchanged(t testing.TB, x jay.CompareExchange, key string, value any, index uint64) uint64 {
	t.Helper()
	got, err := x.Put(ctx, key, value, index)
	must(t, err)
	return got
}

// valueOf returns the value of a key as text and its index; "none" if there is none.
func valueOf(t testing.TB, x jay.CompareExchange, key string) (string, uint64) {
	t.Helper()
	v, err := x.Get(ctx, key)
	if errors.Is(err, jay.ErrNotFound) {
		return "none", 0
	}
	must(t, err)
	return string(v.Value), v.Index
}
