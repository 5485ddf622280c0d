package jaytest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jaydb/jay"
)

var update = flag.Bool("jaytest.update", false, "write the dumps of jaytest.Golden into their files")

// updateVariable does what the flag does, for go test ./..., which refuses a flag that a
// package does not know.
const updateVariable = "JAYTEST_UPDATE"

// Golden compares the Dump of the database with the file testdata/NAME.golden of the test's
// package. With the flag -jaytest.update, or JAYTEST_UPDATE=1 in the environment, Golden writes the
// file instead. Read the difference before you commit it.
func Golden(t T, db *jay.DB, name string) {
	t.Helper()
	if name == "" || !filepath.IsLocal(name) {
		t.Fatalf("jaytest: golden %q: the name must be that of a file below testdata", name)
	}
	compare(t, filepath.Join("testdata", filepath.FromSlash(name)+".golden"), Dump(t, db))
}

// compare compares a text with a file, or writes the file.
func compare(t T, path, got string) {
	t.Helper()
	if *update || os.Getenv(updateVariable) != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatalf("jaytest: %v", err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatalf("jaytest: %v", err)
		}
		t.Logf("jaytest: wrote %s", path)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("jaytest: %v; -jaytest.update writes it", err)
		return
	}
	if text := difference(strings.ReplaceAll(string(want), "\r\n", "\n"), got); text != "" {
		t.Errorf("jaytest: the database is not as in %s; -jaytest.update writes it anew\n%s", path, text)
	}
}

// differenceLines is how many lines a difference shows before and after its first line.
const differenceLines = 5

// difference shows the first lines in which two texts differ, or "".
func difference(want, got string) string {
	if want == got {
		return ""
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	var s strings.Builder
	fmt.Fprintf(&s, "line %d is the first that differs:\n", first+1)
	for _, line := range a[max(0, first-differenceLines):first] {
		fmt.Fprintf(&s, "   %s\n", line)
	}
	for _, line := range a[first:min(len(a), first+differenceLines)] {
		fmt.Fprintf(&s, " - %s\n", line)
	}
	for _, line := range b[first:min(len(b), first+differenceLines)] {
		fmt.Fprintf(&s, " + %s\n", line)
	}
	return s.String()
}
