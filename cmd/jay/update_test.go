package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a change of many documents asks on a terminal, that it says how many, and
// that any answer but yes changes nothing.
func TestConfirm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, id := range []string{"a", "b"} {
		if _, err := db.Put(ctx, id, []byte(`{"N":1}`), jay.InCollection("Notes")); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := runJay(ctx, strings.NewReader("y\n"), "--db", dir, "update", "from Notes update { this.N++ }"); n.code != exitUsage {
		t.Errorf("without a terminal: exit code %d, %s", n.code, n.stderr)
	}
	for _, test := range []struct {
		answer string
		ok     bool
	}{{"", false}, {"\n", false}, {"no\n", false}, {"yess\n", false}, {strings.Repeat("y", 1000), false}, {"y\n", true}, {" YES \n", true}, {"y", true}} {
		var stderr bytes.Buffer
		a := &app{stdin: strings.NewReader(test.answer), stderr: &stderr, isTerminal: func(any) bool { return true }}
		if err := a.confirm(ctx, "change 2 documents?"); (err == nil) != test.ok {
			t.Errorf("%.10q: got %v", test.answer, err)
		}
		if stderr.String() != "change 2 documents? [y/N] " {
			t.Errorf("%.10q: asked %q", test.answer, stderr.String())
		}
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	a := &app{stdin: &endless{c: 'y'}, stderr: new(bytes.Buffer), isTerminal: func(any) bool { return true }}
	if err := a.confirm(stopped, "?"); err == nil {
		t.Error("an interrupted question is answered with yes")
	}
}
