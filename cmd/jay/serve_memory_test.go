package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Ensure that the bound of blocks follows the limit of the control group and the largest document, and
// is never so low that one slow read holds up all others.
func TestServeLoads(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]int64{0: 0, 256 << 20: 4, 1 << 30: 4, 8 << 30: 32} {
		root := t.TempDir()
		if limit > 0 {
			for path, text := range map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": strconv.FormatInt(limit, 10)} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		want = want * 2 / loadCopies // without cgo half as many
		if got := serveLoads(root, defaultMaxDocumentBytes); got != want {
			t.Errorf("a limit of %d: %d blocks, want %d", limit, got, want)
		}
	}
}
