package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// idsCommand reports on IDs, and draws and sets identities.
type idsCommand struct {
	Show showIDsCommand `cmd:"" default:"1" help:"Show how IDs were made, which numbers are used, and what is odd."`
	Next nextIDCommand  `cmd:"" help:"Use up the next number of an identity and print it."`
	Seed seedIDCommand  `cmd:"" help:"Set the last used number of an identity."`
	List listIDsCommand `cmd:"" help:"List identities and their last used numbers."`
}

// showIDsCommand prints a report about all IDs.
type showIDsCommand struct{}

// Help is shown by jay ids show --help.
func (*showIDsCommand) Help() string {
	return `It reads every document's ID and changes nothing. Warnings are things to look at; jay exits with 0 all the same.

The form of an ID shows what made it: users/33-A is HiLo, users/7 an identity.

Numbers without a document are in open ranges, whose clients may still use them; deleted, with their document, lately or with revisions that are kept; or unaccounted for: deleted earlier, lost in a crash, by a refused write or a range returned late, jumped over by a raised counter, or with a client of HiLo 2 or 2010, which may still use them. The two columns "per day" and "years left" go by the last 30 days; by the whole life of a younger database, and of a counter that was not used lately.

Examples:

    jay ids
    jay ids --json | jq '.warnings[].kind'`
}

// Run prints the report.
func (c *showIDsCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		r, err := db.InspectIDs(ctx, nil)
		if err != nil {
			return err
		}
		for i := range r.Warnings {
			r.Warnings[i].Text = inCommand.Replace(r.Warnings[i].Text)
		}
		if a.json {
			return a.printLine(r)
		}
		return a.printIDs(r)
	})
}

// printIDs prints a report as tables and a list of warnings.
func (a *app) printIDs(r jay.IDReport) error {
	prefixes := newFigures("Prefix", "Collection", "Documents", "HiLo", "Identity", "Server-side", "GUID", "Semantic", "Highest HiLo", "Highest identity")
	for _, p := range r.Prefixes {
		prefix := p.Prefix
		switch {
		case p.Rest:
			prefix = "(all others)"
		case prefix == "":
			prefix = "(none)"
		}
		prefixes.add(prefix, p.Collection, p.Documents, p.HiLo, p.Identity, p.ServerSide, p.GUID, p.Semantic, p.HighestHiLo, p.HighestIdentity)
	}
	parts := []string{prefixes.render(a.width)}

	if len(r.HiLo) > 0 {
		// Columns for numbers that this process holds or has lost are left out: it has
		// only just started.
		hilo := newFigures("HiLo tag", "Max", "Mark", "Highest", "Open ranges", "Unused", "in open ranges", "deleted", "unaccounted", "Per day", "Years left")
		for _, t := range r.HiLo {
			hilo.add(t.Tag, maxText(t), t.Mark, t.Highest, t.OpenLeases, t.Unused, t.InOpenLeases, t.Deleted, t.Unaccounted, perDayText(t.PerDay), yearsText(t.YearsLeft))
		}
		parts = append(parts, hilo.render(a.width))
	}
	// Only a cluster records which numbers were reserved and have no document.
	columns, lost := []string{"Counter", "Last number", "Highest", "Unused", "deleted"}, false
	if slices.ContainsFunc(r.Identities, func(i jay.IdentityReport) bool { return i.Lost > 0 }) {
		columns, lost = append(columns, "lost"), true
	}
	counters := newFigures(append(columns, "Per day", "Years left")...)
	row := func(cells []any, reserved, perDay, years any) {
		if lost {
			cells = append(cells, reserved)
		}
		counters.add(append(cells, perDay, years)...)
	}
	for _, i := range r.Identities {
		row([]any{"identity " + i.Name, i.Last, i.Highest, i.Unused, i.Deleted}, i.Lost, perDayText(i.PerDay), yearsText(i.YearsLeft))
	}
	row([]any{"etag (all writes)", r.Etags.Last, "", "", ""}, "", perDayText(r.Etags.PerDay), yearsText(r.Etags.YearsLeft))
	parts = append(parts, counters.render(a.width))

	var warnings strings.Builder
	fmt.Fprintf(&warnings, "%s, ", count(r.Documents, "document"))
	if r.Expiring > 0 {
		fmt.Fprintf(&warnings, "%s to expire, ", thousands(r.Expiring))
	}
	if r.DeletedWithRevisions > 0 {
		fmt.Fprintf(&warnings, "%s deleted with revisions, ", thousands(r.DeletedWithRevisions))
	}
	fmt.Fprintf(&warnings, "node tag %s, ", r.NodeTag)
	switch len(r.Warnings) {
	case 0:
		warnings.WriteString("no warnings")
	case 1:
		warnings.WriteString("1 warning:\n")
	default:
		fmt.Fprintf(&warnings, "%s:\n", count(int64(len(r.Warnings)), "warning"))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&warnings, "\n    %s: %s", w.Kind, w.Text)
	}
	parts = append(parts, warnings.String())
	return a.print(strings.Join(parts, "\n\n") + "\n")
}

// maxText formats the Max of a HiLo document.
func maxText(t jay.HiLoReport) string {
	switch {
	case t.Max != nil:
		return thousands(*t.Max)
	case t.ServerHi > 0:
		return fmt.Sprintf("ServerHi=%d", t.ServerHi)
	case t.Document:
		return "no number"
	}
	return "no document"
}

// perDayText formats a rate.
func perDayText(n *float64) string {
	if n == nil {
		return "-"
	}
	return rate(*n)
}

// yearsText formats a forecast, roughly if it is very long.
func yearsText(years *float64) string {
	switch {
	case years == nil:
		return "-"
	case *years >= 1_000_000:
		return fmt.Sprintf("over 10^%d", int(math.Log10(*years)))
	}
	return fmt.Sprintf("%.1f", *years)
}

// nextIDCommand draws a number of an identity.
type nextIDCommand struct {
	Name string `arg:"" help:"The identity: users and users| are the same."`
}

// Help is shown by jay ids next --help.
func (*nextIDCommand) Help() string {
	return `The number is used up, whatever becomes of it. To store a document under it, use jay put --id 'users|' instead.

Example:

    jay ids next invoices`
}

// Run prints the number.
func (c *nextIDCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		if err := c.check(ctx, a, db); err != nil {
			return err
		}
		n, err := db.NextIdentity(ctx, c.Name)
		if err != nil {
			return err
		}
		return a.printNumber("next", n)
	})
}

// check refuses the prefix of server-side IDs, such as users/, in place of an
// identity's name: it would create an identity "users/|" for good. An existing one of
// that name is accepted.
func (c *nextIDCommand) check(ctx context.Context, a *app, db *jay.DB) error {
	name := strings.TrimSuffix(c.Name, "|")
	bare := strings.TrimRight(name, "/"+a.options.Separator)
	if bare == name || bare == "" {
		return nil
	}
	identities, err := db.Identities(ctx)
	if err != nil {
		return err
	}
	for there := range identities {
		if strings.EqualFold(strings.TrimSuffix(there, "|"), name) {
			return nil
		}
	}
	return usageError{text: fmt.Sprintf("%q begins an ID and is no identity; %q is one", c.Name, bare)}
}

// seedIDCommand sets an identity.
type seedIDCommand struct {
	Force bool   `help:"Lower the number, too. Danger: numbers come again."`
	Name  string `arg:"" help:"The identity: users and users| are the same."`
	Value int64  `arg:"" help:"The last used number."`
}

// Help is shown by jay ids seed --help.
func (*seedIDCommand) Help() string {
	return `The next document gets the value plus 1. A smaller value than the last used number changes nothing without --force. It prints the number that stands afterwards.

In a database opened with --copy-tag, an identity waits for its first seed.

Example:

    jay ids seed invoices 1000`
}

// Run prints the last used number.
func (c *seedIDCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		last, err := db.SeedIdentity(ctx, c.Name, c.Value, c.Force)
		if err != nil {
			return err
		}
		if err := a.printNumber("last", last); err != nil {
			return err
		}
		if last != c.Value {
			a.note("the last used number stays %d: only --force lowers it", last)
		}
		return nil
	})
}

// printNumber prints n on a line, or as a JSON object with one field.
func (a *app) printNumber(field string, n int64) error {
	if a.json {
		return a.printLine(map[string]int64{field: n})
	}
	return a.print(fmt.Sprintln(n))
}

// listIDsCommand lists identities.
type listIDsCommand struct{}

// Help is shown by jay ids list --help.
func (*listIDsCommand) Help() string {
	return `Each line is the name of an identity, a tab, and its last used number; with --json all of them are one object.

Example:

    jay ids list`
}

// Run prints the identities, sorted by name.
func (c *listIDsCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		identities, err := db.Identities(ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(identities)
		}
		for _, name := range slices.Sorted(maps.Keys(identities)) {
			if err := a.print(fmt.Sprintf("%s\t%d\n", name, identities[name])); err != nil {
				return err
			}
		}
		return nil
	})
}
