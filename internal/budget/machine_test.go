package budget_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/jaydb/jay/internal/budget"
)

// write makes the files of a machine.
func write(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Ensure that Jay finds the limit of its control group, of either version, and that
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
		root := write(t, map[string]string{"proc/self/cgroup": test.groups, "sys/fs/cgroup/" + test.file: test.text})
		if got := budget.GroupLimit(root); got != test.want {
			t.Errorf("%q: got %d, want %d", test.groups, got, test.want)
		}
	}
}

// Ensure that the memory of the machine is found, that its control group may have less, and that a machine that does not say it counts as one
// of 2 GiB.
func TestMachineBytes(t *testing.T) {
	t.Parallel()
	const info, group = "proc/meminfo", "proc/self/cgroup"
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"a machine":       {map[string]string{info: "MemFree: 1 kB\nMemTotal:       24683728 kB\nSwap: 3 kB\n"}, 24683728 << 10},
		"a group":         {map[string]string{info: "MemTotal: 24683728 kB\n", group: "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"a larger group":  {map[string]string{info: "MemTotal: 1024 kB\n", group: "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 1 << 20},
		"no line":         {map[string]string{info: "MemFree: 1 kB\n"}, 2 << 30},
		"no number":       {map[string]string{info: "MemTotal: many kB\n"}, 2 << 30},
		"too large":       {map[string]string{info: "MemTotal: 9223372036854775807 kB\n"}, 2 << 30},
		"nothing":         {nil, 2 << 30},
		"nothing, in one": {map[string]string{group: "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
	} {
		if got := budget.MachineBytes(write(t, test.files)); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
