package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jaydb/jay"
)

// repairCommand salvages a damaged database into a new directory.
type repairCommand struct {
	Src string `arg:"" help:"Directory of the damaged database. It is only read, and must not be in use."`
	Dst string `arg:"" help:"Directory to make, with what can be saved."`
}

// Help is shown by jay repair --help.
func (*repairCommand) Help() string {
	return `It copies the database and opens the copy in spite of its damage: logs are cut where the damage begins, what a damaged manifest does not name is left out. Tables are not mended. Then it reads every document and says what it found and what was dropped. It fails if a document cannot be read.

A backup is better than a repaired copy: what was dropped is not in it, and what was stored after it may be missing.

Examples:

    jay repair jay.db saved.db
    jay repair --json jay.db saved.db | jq .dropped`
}

// repairResult is what repair prints with --json.
type repairResult struct {
	Dir       string        `json:"dir"`
	Documents int64         `json:"documents"`
	Etag      uint64        `json:"etag"` // the highest etag of a document
	Dropped   []droppedPart `json:"dropped"`
}

// droppedPart is damage that was dropped. Byte is nil if the damage has no single
// offset in the file.
type droppedPart struct {
	File    string `json:"file"`
	Byte    *int64 `json:"byte,omitempty"`
	Problem string `json:"problem"`
	Loss    string `json:"loss,omitempty"`
}

// Run copies the database, opens the copy with its damage accepted, and reads all
// documents.
func (c *repairCommand) Run(ctx context.Context, a *app) (err error) {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if err := a.copyDatabase(ctx, c.Src, c.Dst); err != nil {
		return fmt.Errorf("copy %s to %s: %w", c.Src, c.Dst, err)
	}
	r := repairResult{Dir: c.Dst, Dropped: []droppedPart{}}
	options := a.options
	options.MustExist = true
	options.AcceptLoss = func(e *jay.DamageError) {
		part := droppedPart{File: e.File, Problem: e.Problem, Loss: e.Loss}
		if e.Offset >= 0 {
			part.Byte = &e.Offset
		}
		r.Dropped = append(r.Dropped, part)
	}
	db, err := jay.Open(c.Dst, &options)
	if err != nil {
		return fmt.Errorf("repair: the copy cannot be opened: %w", err)
	}
	bar := a.newCountProgress("read", -1)
	err = eachDocument(ctx, db, jay.Scan{}, func(doc *jay.Document) error {
		r.Documents++
		r.Etag = max(r.Etag, doc.Metadata().Etag)
		bar.add(1)
		return nil
	})
	bar.done()
	if err != nil {
		err = fmt.Errorf("repair: %s read, then: %w", count(r.Documents, "document"), err)
	}
	return errors.Join(a.printRepair(r), andThen(err, db.Close()))
}

func (a *app) printRepair(r repairResult) error {
	if a.json {
		return a.printLine(r)
	}
	text := fmt.Sprintf("%s in %s, the newest with etag %d\n", count(r.Documents, "document"), r.Dir, r.Etag)
	if len(r.Dropped) == 0 {
		text += "no damage found\n"
	}
	for _, d := range r.Dropped {
		text += "dropped: " + d.File
		if d.Byte != nil {
			text += fmt.Sprintf(", from byte %d", *d.Byte)
		}
		text += ": " + d.Problem
		if d.Loss != "" {
			text += "; lost: " + d.Loss
		}
		text += "\n"
	}
	return a.print(text)
}

// copyDatabase copies the files of a directory into a new one. If that fails it
// removes the new directory.
func (a *app) copyDatabase(ctx context.Context, src, dst string) (err error) {
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dst, 0o777); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = andThen(err, os.RemoveAll(dst))
		}
	}()
	bar := a.newByteProgress("copy", -1)
	defer bar.done()
	for _, entry := range entries {
		if !entry.Type().IsRegular() || entry.Name() == "LOCK" { // the copy gets a lock of its own
			continue
		}
		if err := copyFile(ctx, filepath.Join(src, entry.Name()), filepath.Join(dst, entry.Name()), bar); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(ctx context.Context, from, to string, bar *progress) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	buffer := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, out.Close())
		}
		n, err := in.Read(buffer)
		if n > 0 {
			bar.add(n)
			if _, err := out.Write(buffer[:n]); err != nil {
				return errors.Join(err, out.Close())
			}
		}
		if errors.Is(err, io.EOF) {
			return errors.Join(out.Sync(), out.Close())
		}
		if err != nil {
			return errors.Join(&fs.PathError{Op: "read", Path: from, Err: err}, out.Close())
		}
	}
}
