package workload

// In the package, since copyDir is not exported.

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Ensure that a copy of a file with holes has the same bytes and length, and that the socket of a process that was killed is left out.
func TestCopyDir(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	want := make([]byte, 3<<20+17)
	copy(want[200_000:], "data")
	copy(want[2<<20:], "more")
	if err := os.MkdirAll(filepath.Join(from, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a": want, "sub/b": []byte("b"), "empty": nil} {
		if err := os.WriteFile(filepath.Join(from, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A hole behind everything.
	if err := os.Truncate(filepath.Join(from, "a"), 8<<20); err != nil {
		t.Fatal(err)
	}
	want = append(want, make([]byte, 8<<20-len(want))...)

	socket, err := net.Listen("unix", filepath.Join(from, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()

	if err := copyDir(to, from); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a": want, "sub/b": []byte("b"), "empty": nil} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(text))
		}
	}
	if _, err := os.Lstat(filepath.Join(to, "s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is copied: %v", err)
	}
	if n, err := DiskBytes(to); err != nil || n == 0 {
		t.Errorf("diskBytes: %d, %v", n, err)
	}
}
