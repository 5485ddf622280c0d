package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// orWorkingTree names a commit for people.
func orWorkingTree(commit string) string {
	if commit == "" {
		return "the working tree"
	}
	return commit
}

// build builds the worker of a commit, or of the working tree if it is "", in
// dir. Names of programs have the same length, as the length of a program's
// path moves its stack. description has the commit's hash and subject.
func build(dir, name, commit string) (program, description string, err error) {
	top, err := command("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", "", err
	}
	described := commit
	source := top
	if commit == "" {
		described = "HEAD"
	} else {
		source = filepath.Join(dir, name+"-source")
		if _, err := command(top, "git", "worktree", "add", "--detach", source, commit); err != nil {
			return "", "", err
		}
		defer func() {
			_, failure := command(top, "git", "worktree", "remove", "--force", source)
			err = errors.Join(err, failure)
		}()
	}
	if description, err = command(top, "git", "log", "-1", "--format=%h %s", described); err != nil {
		return "", "", err
	}
	if commit == "" {
		description = "the working tree on " + description
	}
	program = filepath.Join(dir, name)
	_, err = command(filepath.Join(source, "bench"), "go", "build", "-buildvcs=false", "-trimpath", "-o", program, ".")
	return program, description, err
}

// command runs a program in dir and returns what it prints. Its error has what
// it says about the reason.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var out, reason bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &reason
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(reason.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
