package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is how tests are run.
type form string

const (
	full      form = "full"
	shortened form = "short"
)

// outcome is what came of a mutation.
type outcome struct {
	Name    string  `json:"name"`
	Form    form    `json:"form"`
	Caught  bool    `json:"caught"`
	Test    string  `json:"test,omitempty"`    // that caught it
	Says    string  `json:"says,omitempty"`    // first line of what it reports
	Problem string  `json:"problem,omitempty"` // why it could not be judged
	Seconds float64 `json:"seconds"`           // of the tests, without the build
}

// String describes the outcome in a line.
func (o outcome) String() string {
	switch {
	case o.Problem != "":
		return fmt.Sprintf("ERROR: %s: %s", o.Name, o.Problem)
	case o.Caught:
		return fmt.Sprintf("caught: %s: %s, %.1f s: %s", o.Name, o.Test, o.Seconds, o.Says)
	}
	return fmt.Sprintf("NOT CAUGHT: %s, %.1f s", o.Name, o.Seconds)
}

// bench builds tests of changed code and runs them.
type bench struct {
	root  string // of the repository
	dir   string // for what it makes
	limit time.Duration
	sound map[string]error // why the tests of a directory fail without a change, or nil

	// With many changes in one program:
	wovenOverlay string            // the file for go build -overlay
	woven        map[string]bool   // the names of the changes in it
	programs     map[string]string // by the directory of the tests; "" for one that does not pass without a change
}

// buildLimit bounds the compiler and the linker.
const buildLimit = 15 * time.Minute

// newBench returns a bench for the repository at root. close must follow.
func newBench(root string, limit time.Duration) (*bench, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return nil, err
	}
	return &bench{root: root, dir: dir, limit: limit, sound: make(map[string]error), programs: make(map[string]string)}, nil
}

func (b *bench) close() error { return os.RemoveAll(b.dir) }

// try makes a mutation and returns what came of it, in each form. all are the mutations whose
// tests must pass without a change.
func (b *bench) try(ctx context.Context, m mutation, forms []form, all []mutation) []outcome {
	outcomes := make([]outcome, len(forms))
	for i, f := range forms {
		outcomes[i] = outcome{Name: m.name, Form: f}
	}
	var err error
	for _, t := range m.tests {
		var program string
		if program, err = b.changed(ctx, m, t.dir, forms, all); err != nil {
			break
		}
		for i, f := range forms {
			if o := &outcomes[i]; !o.Caught && o.Problem == "" {
				b.judge(o, b.run(ctx, program, m.name, t, f, m.hangs), m.hangs > 0)
			}
		}
	}
	for i := range outcomes {
		if o := &outcomes[i]; err != nil && !o.Caught && o.Problem == "" {
			o.Problem = err.Error()
		}
	}
	return outcomes
}

// changed returns the program with the tests of a directory and a mutation, which it makes if the variable has its
// name. It passes without the change.
func (b *bench) changed(ctx context.Context, m mutation, dir string, forms []form, all []mutation) (program string, err error) {
	if b.woven[m.name] {
		program, known := b.programs[dir]
		if !known {
			program = filepath.Join(b.dir, "woven"+strconv.Itoa(len(b.programs))+".exe")
			if err := b.wovenProgram(ctx, program, dir, forms, all); ctx.Err() != nil {
				return "", ctx.Err()
			} else if err != nil {
				fmt.Fprintf(os.Stderr, "%s: each change is built, as the tests fail with all in one program: %v\n", dir, err)
				program = ""
			}
			b.programs[dir] = program
		}
		if program != "" {
			return program, nil
		}
	}
	err, known := b.sound[dir]
	if !known {
		if program, err = b.build(ctx, dir, ""); err == nil {
			err = b.checkSound(ctx, program, dir, forms, all)
		}
		b.sound[dir] = err
	}
	if err != nil {
		return "", err
	}
	overlay, err := b.overlay(m)
	if err != nil {
		return "", err
	}
	return b.build(ctx, dir, overlay)
}

// wovenProgram builds the tests of a directory with all mutations that can be woven, and checks that they pass without one.
func (b *bench) wovenProgram(ctx context.Context, program, dir string, forms []form, all []mutation) error {
	built, err := b.build(ctx, dir, b.wovenOverlay)
	if err != nil {
		return err
	}
	if err := os.Rename(built, program); err != nil {
		return err
	}
	return b.checkSound(ctx, program, dir, forms, all)
}

// checkSound returns an error if tests in a directory fail without a change: all that the
// mutations name.
func (b *bench) checkSound(ctx context.Context, program, dir string, forms []form, all []mutation) error {
	var names []string
	for _, m := range all {
		for _, t := range m.tests {
			if t.dir == dir {
				names = append(names, t.run)
			}
		}
	}
	slices.Sort(names)
	for _, f := range forms {
		r := b.run(ctx, program, "", tests{dir: dir, run: strings.Join(slices.Compact(names), "|")}, f, 0)
		if r.err != nil {
			return r.err
		}
		if r.failed {
			return fmt.Errorf("without a change, %s fails: %s", r.test, r.says)
		}
	}
	return nil
}

// overlay writes the changed files of a mutation and returns the file for go build -overlay.
func (b *bench) overlay(m mutation) (string, error) {
	texts, err := m.mutated(b.root)
	if err != nil {
		return "", err
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for file, text := range texts {
		copied := filepath.Join(b.dir, "changed"+strconv.Itoa(len(overlay.Replace))+".go")
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(b.root, file)] = copied
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	name := filepath.Join(b.dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// build compiles the tests of a package, with an overlay if that is not "".
func (b *bench) build(ctx context.Context, dir, overlay string) (program string, err error) {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	program = filepath.Join(b.dir, "tests.exe")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program} // without what debuggers read
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	c := exec.CommandContext(ctx, "go", append(args, ".")...)
	c.Dir = filepath.Join(b.root, dir)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not compile: %w: %.2000s", err, bytes.TrimSpace(out))
	}
	return program, nil
}

// result is what a run of tests has said.
type result struct {
	failed, hung bool
	test, says   string
	seconds      float64
	err          error // it could not be run, or says nothing
}

// run runs tests with the change of this name, if the program has some, for at most the limit or, if it is not 0, another one.
func (b *bench) run(ctx context.Context, program, planted string, t tests, f form, limit time.Duration) result {
	if limit == 0 {
		limit = b.limit
	}
	// The test program ends itself with a list of the tests that run; if it cannot, it is killed.
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	args := []string{"-test.run", t.run, "-test.timeout", limit.String(), "-test.failfast", "-test.paniconexit0"}
	if f == shortened {
		args = append(args, "-test.short")
	}
	if b.usesRapid(t.dir) {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime", "1s") // the tree stays as it is; nobody reads the history
	}
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = filepath.Join(b.root, t.dir)
	c.Env = append(os.Environ(), plantedVariable+"="+planted)
	c.WaitDelay = 10 * time.Second // a child of the tests may have the pipe
	started := time.Now()
	out, err := c.CombinedOutput()
	r := read(string(out))
	r.seconds = time.Since(started).Seconds()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.err = fmt.Errorf("%s does not end: %w", t.run, ctx.Err())
	case err != nil && !errors.As(err, &exit):
		r.err = err
	case err == nil && strings.Contains(string(out), "no tests to run"):
		r.err = fmt.Errorf("no test of %s matches %s", t.dir, t.run)
	}
	r.failed = err != nil
	return r
}

// usesRapid reports whether tests in a directory look for the least input that fails.
func (b *bench) usesRapid(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(b.root, dir, "*_test.go")) // the pattern is valid
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`)) {
			return true
		}
	}
	return false
}

// judge notes the result of a run in an outcome.
func (b *bench) judge(o *outcome, r result, mayHang bool) {
	o.Seconds += r.seconds
	switch {
	case r.err != nil:
		o.Problem = r.err.Error()
	case r.hung && !mayHang:
		o.Problem = fmt.Sprintf("%s does not end within the limit", r.test)
	case r.failed && r.test == "":
		o.Problem = "the tests have ended without a failure of one"
	case r.failed:
		o.Caught, o.Test, o.Says = true, r.test, r.says
	}
}
