// Command release makes a release of Jay from the commit that is checked out, and tries it as its users will.
//
//	go run ./tools/release v0.1.0            what is uploaded and pushed, in dist
//	go run ./tools/release -only-try v0.1.0  takes the modules from a proxy on this machine, and makes no archives
//
// It works in a clone, in steps:
//
//  1. A commit in the clone gives each released module the version of the others, without replacing them by
//     directories. Each module gets a tag of its own.
//  2. A folder serves these tags as a proxy of Go's modules does.
//  3. Empty modules get each module with go get, compile it and run README's program. go install gets the command,
//     which must name its version and run its demo.
//  4. Each archive has the command for one system, with its license and those of all that it contains. There are
//     checksums, and a bill of materials for each archive.
//
// It pushes nothing, and leaves the checked out tree as it is: the last lines that it prints say how to push. A file or
// a license that is missing ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// systems are the operating systems and processors that archives are made for.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// run is the program, with its arguments, and prints to out what it does.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	dist := flags.String("dist", "dist", "the `folder` of what is uploaded and pushed; must not exist")
	only := flags.Bool("only-try", false, "make no archives, and remove everything at the end")
	targets := flags.String("systems", strings.Join(systems, ","), "the `systems` to make archives for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	version := flags.Arg(0)
	if flags.NArg() != 1 || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version such as v0.1.0", version)
	}

	folder := *dist
	if *only {
		temporary, err := os.MkdirTemp("", "release")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		folder = filepath.Join(temporary, "dist")
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	r := &release{version: version, out: out}
	return r.make(ctx, folder, *only, strings.Split(*targets, ","))
}

// release is one that is being made.
type release struct {
	version string
	out     io.Writer
	modules []module // in an order in which each comes after those that it requires
	tree    string   // the clone
	proxy   string   // the folder that serves the modules
}

// make carries out the steps in a folder.
func (r *release) make(ctx context.Context, folder string, only bool, targets []string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	r.tree, r.proxy = filepath.Join(folder, "repository"), filepath.Join(folder, "proxy")
	work, err := os.MkdirTemp("", "release-work")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	r.say("A clone, a commit and tags for %s", r.version)
	if err := r.commit(ctx); err != nil {
		return err
	}
	r.say("A proxy of the tags")
	if err := r.serve(); err != nil {
		return err
	}
	u := newUser(r.proxy, work)
	if err := r.try(ctx, u); err != nil || only {
		return err
	}
	for _, target := range targets {
		r.say("The archive for %s", target)
		if err := r.archive(ctx, u, folder, target); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	if err := checksums(folder); err != nil {
		return err
	}
	r.say("To publish, after a look at it: upload the files in %s, and\n  git -C %s push https://YOUR-REPOSITORY %s", folder, r.tree, strings.Join(r.tags(), " "))
	return nil
}

// say prints a step.
func (r *release) say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// errNoModule is the error of a tree that is not Jay's.
var errNoModule = errors.New("go.work names no module")
