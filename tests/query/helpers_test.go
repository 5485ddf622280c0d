// Package query compares the answers of queries, whatever plan finds them, with
// those of an evaluator that knows no index.
package query_test

import (
	"context"

	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	must    = jaytest.Must
	memory  = jaytest.Memory
	put     = jaytest.Put
	closeDB = jaytest.Close
)
