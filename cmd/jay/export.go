package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// exportCommand writes documents as a stream.
type exportCommand struct {
	Collection string `placeholder:"NAME" help:"Only this collection; @empty is one too."`
	File       string `arg:"" optional:"" help:"File to write, - or none for standard output. A name that ends in .gz is packed with gzip."`
}

// Help is shown by jay export --help.
func (*exportCommand) Help() string {
	return `The first line holds the counters of the whole database. If revisions are kept, lines with their configuration and with the revisions follow, which a jay that does not know them refuses to import. Every other line holds one document with its @metadata. jay import makes the same documents of it, with their IDs, collections and custom metadata; change vectors and times are new. A document without a @collection is in @empty. The attachments of a document follow it, in lines of their own, and subscriptions and compare-exchange values come last, which such a jay refuses, too.

A file is there when it is complete: it is written under another name first.

Examples:

    jay export backup.ndjson.gz
    jay export --collection Orders - | jq .Total`
}

// Run writes the export.
func (c *exportCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		if c.File == "" || c.File == stdinName {
			_, err := c.write(ctx, db, a.stdout, nil)
			return err
		}

		start := time.Now()
		bar := a.newByteProgress("export", -1)
		var s exportSummary
		err := writeFile(c.File, func(w io.Writer) (err error) {
			s, err = c.write(ctx, db, w, bar)
			return err
		})
		bar.done()
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		s.File, s.Seconds = c.File, time.Since(start).Seconds()
		return a.printExport(s)
	})
}

// exportSummary is what an export to a file prints at its end. Bytes are
// before compression.
type exportSummary struct {
	File      string  `json:"file"`
	Documents int64   `json:"documents"`
	Revisions int64   `json:"revisions,omitempty"`
	Bytes     int64   `json:"bytes"`
	Seconds   float64 `json:"seconds"`
}

func (a *app) printExport(s exportSummary) error {
	if a.json {
		return a.printLine(s)
	}
	what := count(s.Documents, "document")
	if s.Revisions > 0 {
		what += ", " + count(s.Revisions, "revision")
	}
	return a.print(fmt.Sprintf("exported %s, %s, in %.1f s to %s\n", what, size(s.Bytes), s.Seconds, s.File))
}

// write writes the counters and the documents. The counters, read first, match the
// documents: no other process can write to the open database.
func (c *exportCommand) write(ctx context.Context, db *jay.DB, w io.Writer, bar *progress) (s exportSummary, err error) {
	counters, err := db.Counters(ctx)
	if err != nil {
		return s, err
	}
	line, err := appendCounters(nil, counters)
	if err != nil {
		return s, err
	}
	if _, err := w.Write(line); err != nil {
		return s, err
	}
	if s.Revisions, s.Bytes, err = writeRevisions(ctx, db, c.Collection, w, bar); err != nil {
		return s, err
	}
	err = eachDocument(ctx, db, jay.Scan{Collection: c.Collection}, func(doc *jay.Document) error {
		line, err := doc.MarshalJSON()
		if err != nil {
			return err
		}
		line = append(line, '\n')
		s.Documents++
		s.Bytes += int64(len(line))
		bar.add(len(line))
		if _, err = w.Write(line); err != nil {
			return err
		}
		n, err := writeAttachments(ctx, db, w, doc)
		s.Bytes += n
		bar.add(int(n))
		return err
	})
	if err != nil || c.Collection != "" {
		return s, err
	}
	if err := writeSubscriptions(ctx, db, w); err != nil {
		return s, err
	}
	return s, writeExchanges(ctx, db, w)
}

// writeFile atomically replaces the file name by what fn writes: it writes and
// syncs a temporary file beside it and renames that. If the name ends in .gz the
// file is compressed. An existing file that is not regular, such as a pipe, is
// written to directly.
func writeFile(name string, fn func(io.Writer) error) error {
	return replaceFile(name, strings.HasSuffix(name, ".gz"), fn)
}

// replaceFile is writeFile, and compresses if the caller says so.
func replaceFile(name string, packed bool, fn func(io.Writer) error) (err error) {
	// A rename must replace the target of a symbolic link, not the link.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", name)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(writePacked(f, packed, fn), f.Close())
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}

	// Write and sync a temporary file, and then rename it: a crash leaves the old
	// file or the new one.
	temporary := fmt.Sprintf("%s.%d.tmp", name, os.Getpid())
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary))
		}
	}()
	if err := writePacked(f, packed, fn); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	syncDirectory(filepath.Dir(name))
	return nil
}

// writePacked calls fn with a buffered writer to f, which compresses if packed is true.
func writePacked(f *os.File, packed bool, fn func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(f, 256<<10)
	if !packed {
		if err := fn(buffered); err != nil {
			return err
		}
		return buffered.Flush()
	}
	zipped := gzip.NewWriter(buffered)
	if err := fn(zipped); err != nil {
		return err
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	return buffered.Flush()
}

// syncDirectory makes a rename durable where the system supports that. It ignores
// errors: the file is complete under either name.
func syncDirectory(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}
