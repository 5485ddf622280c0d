package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay"
)

// hiloCommand serves HiLo clients as RavenDB's server does.
type hiloCommand struct {
	Next   nextRangeCommand   `cmd:"" help:"Grant the next range of a tag."`
	Return returnRangeCommand `cmd:"" help:"Take back the unused end of a range."`
	Raise  raiseTagCommand    `cmd:"" help:"Never grant the numbers up to one that was used elsewhere."`
}

// nextRangeCommand grants a range.
type nextRangeCommand struct {
	LastSize    int64     `placeholder:"N" help:"Size of the last range that this client got."`
	LastMax     int64     `placeholder:"N" help:"Highest number that this client was ever granted."`
	LastRangeAt time.Time `placeholder:"TIME" help:"When the last range was granted, as in 2026-11-21T12:00:00Z."`
	Separator   string    `placeholder:"S" help:"Separator between tag and number. The default is that of the database."`
	Tag         string    `arg:"" help:"The tag, such as users."`
}

// Help is shown by jay hilo next --help.
func (*nextRangeCommand) Help() string {
	return `The numbers belong to the caller from then on: no other caller gets them. A client that reports its last range gets twice as many within 30 seconds, half as many after 60, and 32 at least. The range is one of HiLo 4 under any --hilo-mode: in the others, clients reserve ranges without the server.

Examples:

    jay hilo next users
    jay hilo next users --last-size 32 --last-range-at 2026-11-21T12:00:00Z --json`
}

// rangeResult is what hilo next prints with --json. The names are RavenDB's, in the
// case of all others.
type rangeResult struct {
	Prefix      string `json:"prefix"`
	Low         int64  `json:"low"`
	High        int64  `json:"high"`
	LastSize    int64  `json:"lastSize"`
	ServerTag   string `json:"serverTag"`
	LastRangeAt string `json:"lastRangeAt"`
}

// rangeTime is RavenDB's format of a time: UTC, seven digits of fraction.
const rangeTime = "2006-01-02T15:04:05.0000000Z"

// Run prints the range.
func (c *nextRangeCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		r, err := db.NextRange(ctx, jay.RangeRequest{
			Tag:         c.Tag,
			LastSize:    c.LastSize,
			LastRangeAt: c.LastRangeAt,
			LastMax:     c.LastMax,
			Separator:   c.Separator,
		})
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(rangeResult{r.Prefix, r.Low, r.High, r.Size, r.NodeTag, r.GrantedAt.UTC().Format(rangeTime)})
		}
		return a.print(fmt.Sprintf("%s%d-%s to %s%d-%s\n", r.Prefix, r.Low, r.NodeTag, r.Prefix, r.High, r.NodeTag))
	})
}

// returnRangeCommand returns unused numbers of a range.
type returnRangeCommand struct {
	Tag  string `arg:"" help:"The tag, such as users."`
	Last int64  `arg:"" help:"The last number that was used; the one before the range if none was."`
	End  int64  `arg:"" help:"The last number of the range."`
}

// Help is shown by jay hilo return --help.
func (*returnRangeCommand) Help() string {
	return `Only the newest range of a tag can be given back, and only once. It prints accepted and exits with 0, or refused and exits with 1; refused numbers stay a gap, which does no harm.

Example, for the range users/1-A to users/32-A of which 5 numbers were used:

    jay hilo return users 5 32`
}

// Run prints whether the return was accepted.
func (c *returnRangeCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		accepted, err := db.ReturnRange(ctx, c.Tag, c.Last, c.End)
		if err != nil {
			return err
		}
		a.failed = !accepted
		if a.json {
			return a.printLine(map[string]bool{"accepted": accepted})
		}
		if !accepted {
			return a.print("refused\n")
		}
		return a.print("accepted\n")
	})
}

// raiseTagCommand raises the mark of a tag.
type raiseTagCommand struct {
	Tag    string `arg:"" help:"The tag, such as users."`
	Number int64  `arg:"" help:"The highest number that was used elsewhere."`
}

// Help is shown by jay hilo raise --help.
func (*raiseTagCommand) Help() string {
	return `The next range begins above the number. What is above it already stays as it is.

In a database opened with --copy-tag, the IDs of --hilo-mode 2 and 2010 carry no tag of the copy: each HiLo tag waits until it is raised to a number that the original will not pass.

Example:

    jay hilo raise users 100000`
}

// Run raises the tag.
func (c *raiseTagCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		if err := db.RaiseCounters(ctx, jay.Counters{HiLo: map[string]int64{c.Tag: c.Number}}); err != nil {
			return err
		}
		if a.json {
			return a.printLine(map[string]int64{"atLeast": c.Number})
		}
		return a.print("raised\n")
	})
}
