package lint_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx    = context.Background()
	memory = jaytest.Memory
	must   = jaytest.Must
)

// TestMain runs the tests in the top of the repository, whose files they read.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
