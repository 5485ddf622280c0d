package main

import (
	"context"
	"fmt"

	"github.com/jaydb/jay"
)

// checkpointCommand copies the database by links.
type checkpointCommand struct {
	Dir string `arg:"" help:"Directory to make."`
}

// Help is shown by jay checkpoint --help.
func (*checkpointCommand) Help() string {
	return `The copy is a database with its indexes. Files that do not change are linked where the file system can, so that it takes next to no time and, at first, no space. It lies on the same disk, and is no backup until it was copied elsewhere.

To read it, also in several processes at once, open it with --read-only; to write to it beside the original, give it a node tag with --copy-tag.

Example:

    jay checkpoint snapshot.db && jay --read-only --db snapshot.db stats`
}

// checkpointResult is what checkpoint prints with --json.
type checkpointResult struct {
	Dir   string `json:"dir"`
	Bytes uint64 `json:"bytes"` // of all files, links included
}

// Run makes the checkpoint.
func (c *checkpointCommand) Run(ctx context.Context, a *app) error {
	if err := directories(a.command, c.Dir); err != nil {
		return err
	}
	err := a.withDatabase(false, func(db *jay.DB) error { return db.Checkpoint(ctx, c.Dir) })
	if err != nil {
		return err
	}
	r := checkpointResult{Dir: c.Dir}
	if r.Bytes, err = diskBytes(c.Dir); err != nil {
		return err
	}
	if a.json {
		return a.printLine(r)
	}
	return a.print(fmt.Sprintf("Checkpoint %s: %s\n", c.Dir, size(int64(r.Bytes))))
}
