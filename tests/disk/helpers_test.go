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

// TestMain collects garbage seldom, and lets more tests run at once than there are processors: most wait for disks.
func TestMain(m *testing.M) {
	jaytest.CollectSeldom()
	jaytest.Parallel(8)
	m.Run()
}
