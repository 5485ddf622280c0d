package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// Ensure that the example prints what it is known to print. It needs root, installs packages and takes minutes: make failover runs it.
func TestExample(t *testing.T) {
	if os.Getenv("JAY_EXAMPLE_POSTGRES") == "" {
		t.Skip("run by make failover, with JAY_EXAMPLE_POSTGRES")
	}
	var errors bytes.Buffer
	c := exec.Command("./run.sh")
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, &errors, out)
	}
	got := string(out)
	for pattern, instead := range map[string]string{`\bn[1-3]\b`: "<machine>", `\b[0-9]+s\b`: "<time>", `(?m)^[0-9]+ invoices`: "<n> invoices"} {
		got = regexp.MustCompile(pattern).ReplaceAllString(got, instead)
	}
	want, err := os.ReadFile("output.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
