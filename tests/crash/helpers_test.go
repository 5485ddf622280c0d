// Package crash kills processes and cuts the power under them: what was
// acknowledged must be there, no number may come twice, and nothing that a reader
// saw may be gone.
package crash_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	open    = jaytest.Open
	onDisk  = jaytest.OnDisk
	closeDB = jaytest.Close
	put     = jaytest.Put
	store   = jaytest.Store
	body    = jaytest.Body
	must    = jaytest.Must
	memory  = jaytest.Memory
	changed = jaytest.Changes
	dump    = jaytest.Dump
	backUp  = jaytest.BackUp

	documentsOf = jaytest.Documents
)

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}

func second[T any](_ T, err error) error { return err }

// TestMain collects garbage seldom.
func TestMain(m *testing.M) {
	jaytest.CollectSeldom()
	m.Run()
}
