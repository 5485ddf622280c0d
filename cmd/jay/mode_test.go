package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Ensure that what the command writes is for its owner only, and that a file that is
// replaced keeps its mode.
func TestReplaceFile_IsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode")
	}
	for name, want := range map[string]os.FileMode{"new": 0o600, "there": 0o644} {
		file := filepath.Join(t.TempDir(), name)
		if name == "there" {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, want); err != nil {
				t.Fatal(err)
			}
		}
		err := new(app).replaceFile(file, "", func(w io.Writer) error {
			_, err := io.WriteString(w, "text")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}
