package main

import (
	"context"
	"strings"
	"testing"
)

// Ensure that the program does what it prints.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), t.TempDir(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"inserted squirrels/1-A\n",
		`put "squirrels/conker"   became squirrels/conker` + "\n",
		`put "squirrels|"         became squirrels/1` + "\n",
		"became squirrels/0000000000000000005-A\n",
		"all squirrels together have 61 nuts\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got:\n%s\nwant in it: %s", out.String(), want)
		}
	}
}
