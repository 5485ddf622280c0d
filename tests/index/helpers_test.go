// Package index writes, builds, drops, kills and cuts the power, and compares every
// entry of the indexes with what the documents give.
package index_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	memory      = jaytest.Memory
	open        = jaytest.Open
	onDisk      = jaytest.OnDisk
	closeDB     = jaytest.Close
	put         = jaytest.Put
	must        = jaytest.Must
	finishTasks = jaytest.FinishIndexTasks
)

// TestMain collects garbage seldom.
func TestMain(m *testing.M) {
	jaytest.CollectSeldom()
	m.Run()
}
