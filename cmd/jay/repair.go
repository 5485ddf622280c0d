package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jaydb/jay"
)

// repairCommand saves what is left of a damaged database into a new directory.
type repairCommand struct {
	Src string `arg:"" help:"Directory of the damaged database. It is only read, and must not be in use."`
	Dst string `arg:"" help:"Directory to make, with what can be saved."`
	Max int    `default:"1000" placeholder:"N" help:"List so many damages, and so many losses, at most; all are counted. The default is 1000."`
}

// Help is shown by jay repair --help.
func (*repairCommand) Help() string {
	return `It reads all that can be read, also where the database does not open, and copies what is whole: documents, revisions, attachments, counters, subscriptions. Indexes, collections, counts and the order of changes are made anew. Counters are raised above all numbers that are found. It lists what was lost, documents by their IDs as far as these are known, and checks the new database.

A backup is better than a repaired copy: what was lost is not in it, and what was stored after it may be missing. docs/check-and-repair.md says more.

Examples:

    jay repair jay.db saved.db
    jay repair --json jay.db saved.db | jq .lost`
}

// repairResult is what repair prints with --json.
type repairResult struct {
	Dir string `json:"dir"`
	jay.RepairReport
}

// Run repairs, and prints what was saved and lost.
func (c *repairCommand) Run(ctx context.Context, a *app) error {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if err := directories(a.command, c.Src, c.Dst); err != nil {
		return err
	}
	a.dir = c.Src // for error messages
	if c.Max < 1 {
		return usageError{text: "--max must be above 0"}
	}
	bar := a.newCountProgress("repair", -1)
	var last int64
	options := a.options
	options.EncryptionKeys = keysIn(options.EncryptionKeys, c.Src)
	r, err := jay.Repair(ctx, c.Src, c.Dst, &options, &jay.VerifyOptions{MaxDamages: c.Max, Progress: func(p jay.VerifyProgress) {
		if p.Step != "files" && p.Keys > last {
			bar.add(int(p.Keys - last))
		}
		last = p.Keys
	}})
	bar.done()
	if err != nil {
		return a.explainOpen(err)
	}
	if a.json {
		err = a.printLine(repairResult{c.Dst, r})
	} else {
		err = a.printRepair(c.Dst, r)
	}
	if err == nil && r.After.Found > 0 {
		return explained{fmt.Sprintf("%s are left in %s", count(r.After.Found, "damage"), c.Dst), jay.ErrCorrupt}
	}
	return err
}

func (a *app) printRepair(dir string, r jay.RepairReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s, with %s and %s\n", count(r.Documents, "document"), dir, count(r.Revisions, "revision"), count(r.Attachments, "content"))
	if r.Before.Found == 0 && r.Missing == 0 {
		b.WriteString("no damage found\n")
	}
	for _, d := range r.Before.Damages {
		fmt.Fprintf(&b, "damaged: %s", d.File)
		if d.Offset >= 0 {
			fmt.Fprintf(&b, ", at byte %d", d.Offset)
		}
		fmt.Fprintf(&b, ": %s; lost: %s\n", d.Problem, d.Loss)
	}
	for _, l := range r.Lost {
		fmt.Fprintf(&b, "lost: %s", l.What)
		if l.ID != "" {
			fmt.Fprintf(&b, " %s", l.ID)
		}
		fmt.Fprintf(&b, ": %s\n", l.Why)
	}
	if n := r.Missing - int64(len(r.Lost)); n > 0 {
		fmt.Fprintf(&b, "%s not listed: see --max\n", count(n, "loss"))
	}
	for _, text := range r.Raised {
		fmt.Fprintf(&b, "raised: %s\n", text)
	}
	a.listDamages(&b, "left", r.After.Found, r.After.Damages)
	return a.print(b.String())
}
