// Package model compares a database with models of it: random histories of IDs,
// sessions and patches, and the linearizability of concurrent counters.
package model_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	newClock     = jaytest.NewClock
	memory       = jaytest.Memory
	put          = jaytest.Put
	body         = jaytest.Body
	must         = jaytest.Must
	patchIn      = jaytest.PatchIn
	concurrently = jaytest.Concurrently
	afterPrefix  = jaytest.NumberAfter
	open         = jaytest.Open
	onDisk       = jaytest.OnDisk
	closeDB      = jaytest.Close
	changed      = jaytest.Changes
)

// customer, person and anything are entities.
type customer struct {
	ID   string
	Name string
}

type person struct {
	ID      string
	Version string `jay:"version"`
	Name    string
}

type anything struct {
	ID    string
	Email string `json:",omitempty"`
	Any   any    `json:",omitempty"`
}

// struct3 is a type whose collection is Struct3s.
type struct3 struct{ ID string }

// raw is JSON that is encoded as it is.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// loop returns a value that contains itself.
func loop() any {
	c := new(struct{ Next any })
	c.Next = c
	return c
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}

func collectionOf[T any](t testing.TB, db *jay.DB, opts ...jay.CollectionOption) *jay.Collection[T] {
	t.Helper()
	return jaytest.CollectionOf[T](t, db, opts...)
}

func second[T any](_ T, err error) error { return err }

// openAt opens the database of a place.
func openAt(t testing.TB, place *jaytest.Place, o jay.Options) *jay.DB {
	t.Helper()
	db, err := place.Open(o)
	must(t, err)
	return db
}

// TestMain collects garbage seldom.
func TestMain(m *testing.M) {
	jaytest.CollectSeldom()
	m.Run()
}
