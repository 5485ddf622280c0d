package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// checkCommand checks a database that is not in use.
type checkCommand struct {
	Dir       string `arg:"" optional:"" help:"Directory of the database, also one that does not open; --db by default. It is only read. One that another program has open is read through that program."`
	Max       int    `default:"1000" placeholder:"N" help:"List so many damages, and so many warnings, at most; all are counted. The default is 1000."`
	Rate      int64  `placeholder:"BYTES" help:"Read so many bytes a second at most."`
	SkipFiles bool   `help:"Leave the checksums of the files out, and compare the records only."`
}

// Help is shown by jay check --help.
func (*checkCommand) Help() string {
	return `It reads every block of every file and every record, compares what must agree (documents, indexes, the order of changes, counts, revisions, attachments, counters), and lists each damage: what it is, what is lost, what to do. It changes nothing. The exit code is 1 if there is damage; warnings, which an application may have made, do not count. docs/check-and-repair.md lists the kinds.

Examples:

    jay check jay.db
    jay check --json jay.db | jq .byKind
    jay repair jay.db saved.db`
}

// Run checks, prints the report, and fails if there is damage.
func (c *checkCommand) Run(ctx context.Context, a *app) error {
	switch {
	case c.Dir == "":
		c.Dir = a.dir
	case isStore(c.Dir):
		return usageError{text: "name a store on a server by --db, or $JAY_DB"}
	default:
		a.store, a.options.Engine = store{}, nil // that of --db is not meant
	}
	a.dir = c.Dir // for error messages
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if c.Max < 1 {
		return usageError{text: "--max must be above 0"}
	}
	files := a.newByteProgress("check files", -1)
	records := a.newCountProgress("check records", -1)
	options := a.options
	how := &jay.VerifyOptions{
		MaxDamages: c.Max, BytesPerSecond: c.Rate, SkipFiles: c.SkipFiles,
		Progress: func(p jay.VerifyProgress) {
			if p.Step == "files" {
				files.set(p.Bytes)
				return
			}
			records.set(p.Keys)
		},
	}
	var r jay.VerifyReport
	var err error
	switch {
	case a.store.name != "":
		r, err = c.checkStore(ctx, a, how)
	case a.looks == nil:
		r, err = jay.VerifyDir(ctx, c.Dir, &options, how)
	}
	if a.looks != nil || errors.Is(err, jay.ErrLocked) {
		r, err = c.look(ctx, a, how, err)
	}
	files.done()
	records.done()
	if err != nil {
		return a.explainOpen(err)
	}
	if name := readableByOthers(c.Dir); a.looks == nil && a.store.name == "" && name != "" {
		a.note("other users of the machine can read %s: chmod -R o= %s", name, c.Dir)
	}
	if err := a.printCheck(c.Dir, r); err != nil || r.Found == 0 {
		return err
	}
	return explained{fmt.Sprintf("%s in %s", count(r.Found, "damage"), c.Dir), jay.ErrCorrupt}
}

// checkStore checks a database in a store on a server, which others may have open.
func (c *checkCommand) checkStore(ctx context.Context, a *app, how *jay.VerifyOptions) (r jay.VerifyReport, err error) {
	options := a.options
	options.MustExist = true
	db, err := a.store.open(a.dir, &options)
	if err != nil {
		return r, err
	}
	if r, err = db.Verify(ctx, how); err == nil && !c.SkipFiles {
		r.NotCompared = append(r.NotCompared, "the files, which are the server's: its own tools, such as pg_amcheck, check them")
	}
	return r, andThen(err, db.Close())
}

// look checks a database that another program has open. locked is the error of checking the directory, or nil.
func (c *checkCommand) look(ctx context.Context, a *app, how *jay.VerifyOptions, locked error) (r jay.VerifyReport, err error) {
	db, err := a.lookInto(locked)
	if err != nil {
		return r, err
	}
	if r, err = db.Verify(ctx, how); err == nil && !c.SkipFiles && r.Files == 0 {
		r.NotCompared = append(r.NotCompared, "the checksums of the files: the program that has the database open cannot check them, or is older than this one")
	}
	return r, andThen(err, db.Close())
}

// readableByOthers returns a file in a directory that users can read or change who are
// neither its owner nor of its group, or "".
func readableByOthers(dir string) string {
	if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 || runtime.GOOS == "windows" {
		return ""
	}
	files, _ := os.ReadDir(dir) // that it can be read was seen by the check
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o006 != 0 {
			return filepath.Join(dir, f.Name())
		}
	}
	return ""
}

// checkResult is what check prints with --json.
type checkResult struct {
	Dir string `json:"dir"`
	jay.VerifyReport
}

func (a *app) printCheck(dir string, r jay.VerifyReport) error {
	if a.json {
		return a.printLine(checkResult{dir, r})
	}
	var b strings.Builder
	a.listDamages(&b, "damage", r.Found, r.Damages)
	a.listDamages(&b, "warning", r.Warned, r.Warnings)
	for _, text := range r.NotCompared {
		fmt.Fprintf(&b, "not compared: %s\n", text)
	}
	if len(r.ByKind) > 0 {
		t := newFigures("Kind", "Found")
		for _, kind := range slices.Sorted(maps.Keys(r.ByKind)) {
			t.add(kind, r.ByKind[kind])
		}
		fmt.Fprintf(&b, "%s\n", t.render(a.width))
	}
	verdict := "no damage"
	if r.Found > 0 {
		verdict = count(r.Found, "damage")
	}
	fmt.Fprintf(&b, "Database %s: %s. Read: %s of %s, %s, %s, %s, %s of %s\n", dir, verdict,
		count(int64(r.Files), "file"), size(r.FileBytes), count(r.Documents, "document"), count(r.Revisions, "revision"),
		thousands(r.IndexEntries)+" index entries", count(r.Attachments, "content"), size(r.AttachmentBytes))
	return a.print(b.String())
}

// listDamages prints the damages of one kind: all is their number, of which list has
// the first.
func (a *app) listDamages(b *strings.Builder, what string, all int64, list []jay.Damage) {
	for _, d := range list {
		fmt.Fprintf(b, "%s: %s: %s", what, d.Kind, d.Subject)
		if d.Offset >= 0 {
			fmt.Fprintf(b, ", at byte %d", d.Offset)
		}
		fmt.Fprintf(b, ": %s\n    lost: %s\n    to do: %s\n", d.Problem, d.Loss, d.Remedy)
		if len(d.Key) > 0 {
			fmt.Fprintf(b, "    key: %q\n", d.Key)
		}
	}
	if n := all - int64(len(list)); n > 0 {
		fmt.Fprintf(b, "%s not listed: see --max\n", count(n, what))
	}
}
