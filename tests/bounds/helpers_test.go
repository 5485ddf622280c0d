// Package bounds asks for too much work, and checks that it is refused in time and
// that others go on meanwhile.
package bounds_test

import (
	"context"

	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	memory  = jaytest.Memory
	put     = jaytest.Put
	must    = jaytest.Must
	patchIn = jaytest.PatchIn
)
