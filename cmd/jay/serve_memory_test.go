package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Ensure that jay serve finds the limit of its control group, of either version, and that
// of a group above it.
func TestGroupLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		groups, file, text string
		want               int64
	}{
		{"5:memory:/a/b\n1:cpu:/\n", "memory/a/b/memory.limit_in_bytes", "1073741824\n", 1 << 30},
		{"5:memory:/a/b\n", "memory/a/memory.limit_in_bytes", "1073741824\n", 1 << 30},
		{"5:cpu,memory:/docker/x\n", "memory/memory.limit_in_bytes", "1073741824\n", 1 << 30},
		{"0::/a\n", "a/memory.max", "1048576\n", 1 << 20},
		{"0::/a\n", "a/memory.max", "max\n", math.MaxInt64},
		{"5:memory:/\n", "memory/memory.limit_in_bytes", "9223372036854771712\n", math.MaxInt64},
		{"garbage\n", "memory.max", "1\n", math.MaxInt64},
	} {
		root := t.TempDir()
		for path, text := range map[string]string{"proc/self/cgroup": test.groups, "sys/fs/cgroup/" + test.file: test.text} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := groupLimit(root); got != test.want {
			t.Errorf("%q: got %d, want %d", test.groups, got, test.want)
		}
	}
}

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
