// Package disk gives a database disks that are slow, stuck or damaged.
package disk_test

import (
	"context"

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
