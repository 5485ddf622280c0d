package lint_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Ensure that git has no file of more than 1 MiB: go build in the directory of a command leaves the program there, and git add -A takes it.
func TestTracked_Small(t *testing.T) {
	if _, err := os.Stat(".git"); err != nil {
		t.Skip("not a clone")
	}
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(name)
		if err != nil {
			continue // removed, and not committed yet
		}
		if info.Size() > most {
			t.Errorf("%s has %d bytes, and %d are the most: is it a program or a database?", name, info.Size(), most)
		}
	}
}
