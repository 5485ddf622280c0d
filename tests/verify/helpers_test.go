// Package verify damages the files of databases, and looks at what Verify, VerifyDir and
// Repair make of them. The damages that are planted key by key are in the root's tests.
package verify_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	open    = jaytest.Open
	closeDB = jaytest.Close
	put     = jaytest.Put
	must    = jaytest.Must
)

func meta(name string) []byte { return format.AppendKey(nil, format.SpaceMeta, name) }

// TestMain collects garbage seldom.
func TestMain(m *testing.M) {
	jaytest.CollectSeldom()
	m.Run()
}
