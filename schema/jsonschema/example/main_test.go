package main

import (
	"os"
	"strings"
	"testing"
)

// Ensure that the program prints output.txt. The module is not that of examples/, whose test runs what imports the root only.
func TestExample(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("output.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
