package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/jaydb/jay"
)

// compactCommand frees the disk space of deleted and overwritten documents.
type compactCommand struct{}

// Help is shown by jay compact --help.
func (*compactCommand) Help() string {
	return `The database frees that space little by little, as it is written to. This does it at once. It takes about as long as copying the database, and up to as much free space. jay stats shows what it would free, as far as is known.

Example:

    jay compact`
}

// compactResult is what compact prints with --json.
type compactResult struct {
	Dir    string `json:"dir"`
	Before uint64 `json:"bytesBefore"`
	After  uint64 `json:"bytesAfter"`
}

// Run compacts the database and prints its size before and after.
func (c *compactCommand) Run(ctx context.Context, a *app) error {
	r := compactResult{Dir: a.dir}
	err := a.withDatabase(false, func(db *jay.DB) (err error) {
		if r.Before, err = diskBytes(a.dir); err != nil {
			return err
		}
		return db.Compact(ctx)
	})
	if err != nil {
		return err
	}
	if r.After, err = diskBytes(a.dir); err != nil { // of the closed database
		return err
	}
	if a.json {
		return a.printLine(r)
	}
	return a.print(fmt.Sprintf("Database %s: %s on disk, %s before\n", a.dir, size(int64(r.After)), size(int64(r.Before))))
}

// diskBytes returns the size of all files of a database.
func diskBytes(dir string) (total uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // files come and go while the database is open
		}
		if err != nil {
			return 0, err
		}
		total += uint64(info.Size())
	}
	return total, nil
}
