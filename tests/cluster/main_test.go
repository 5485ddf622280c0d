//go:build unix

package cluster_test

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if configuration := os.Getenv(nodeVariable); configuration != "" {
		os.Exit(runNode(configuration))
	}
	os.Exit(m.Run())
}
