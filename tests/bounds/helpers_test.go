// Package bounds asks for too much work, and checks that it is refused in time and
// that others go on meanwhile.
package bounds_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	memory  = jaytest.Memory
	put     = jaytest.Put
	must    = jaytest.Must
	patchIn = jaytest.PatchIn
	open    = jaytest.Open
	closeDB = jaytest.Close
	bulk    = jaytest.BulkInsert
	body    = jaytest.Body
)

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}
