// Package disk gives a database disks that are slow, stuck or damaged.
package disk_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	onDisk  = jaytest.OnDisk
	closeDB = jaytest.Close
	put     = jaytest.Put
	body    = jaytest.Body
	must    = jaytest.Must
	within  = jaytest.Within
)

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}
