package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// exportCommand writes documents as a stream.
type exportCommand struct {
	Collection string `placeholder:"NAME" help:"Only this collection; @empty is one too."`
	Format     string `enum:",ndjson,json,csv,extjson,ravendbdump,sqlite" default:"" placeholder:"FORMAT" help:"Format of the output, if its name does not say: ndjson, json, csv, extjson, ravendbdump or sqlite."`
	Table      string `placeholder:"NAME" default:"documents" help:"Table of a SQLite file; the default is documents."`
	Columns    bool   `help:"Add a view to a SQLite file, with a column for each field: its name is that of the table with _columns."`
	Delimiter  string `placeholder:"C" help:"Character between the cells of CSV; a comma, or a tab in .tsv files."`
	File       string `arg:"" optional:"" help:"File to write, - or none for standard output. A name that ends in .gz or .zst is packed."`
}

// Help is shown by jay export --help.
func (*exportCommand) Help() string {
	return formatHelp + `

Only NDJSON and JSON have everything; the others have documents with their IDs, collections and custom metadata, RavenDB's dumps attachments, revisions, identities and compare-exchange values, too. A note says what is left out. docs/import-export.md has the rules of each format.

In NDJSON the first line holds the counters of the whole database. If revisions are kept, lines with their configuration and with the revisions follow, which a jay that does not know them refuses to import. Every other line holds one document with its @metadata. jay import makes the same documents of it, with their IDs, collections and custom metadata; change vectors and times are new. A document without a @collection is in @empty. The attachments of a document follow it, in lines of their own, and subscriptions and compare-exchange values come last, which such a jay refuses, too. JSON is the same in one array.

A file is there when it is complete: it is written under another name first.

Examples:

    jay export backup.ndjson.gz
    jay export --collection Orders - | jq .Total
    jay export --collection Users users.csv
    jay export shop.ravendbdump`
}

// Run writes the export.
func (c *exportCommand) Run(ctx context.Context, a *app) error {
	format := formatOf(c.File, c.Format)
	toStdout := c.File == "" || c.File == stdinName
	compression, _ := transfer.Compressed(c.File)
	comma, err := commaOf(c.File, c.Delimiter)
	switch {
	case err != nil:
		return err
	case format == formatSQLite && (toStdout || compression != ""):
		return usageError{text: "a SQLite database is written to a file, and not packed"}
	case format == formatSQLite && c.Table == "":
		return usageError{text: "--table must not be empty"}
	case format == formatDump && compression == "" && !toStdout:
		compression = "gzip" // as RavenDB compresses its dumps
	}
	a.options.CacheBytes, a.options.DocumentCacheBytes = 8<<20, -1 // each document is read once
	return a.withDatabase(false, func(db *jay.DB) error {
		e := &exporter{db: db, collection: c.Collection}
		e.summary.database = a.dir
		if toStdout {
			if err := c.write(ctx, e, a.stdout, format, comma); err != nil {
				return err
			}
			return e.note(ctx, a, format)
		}

		start := time.Now()
		e.bar = a.newByteProgress("export", -1)
		var err error
		if format == formatSQLite {
			err = replaceByPath(c.File, func(temporary string) error {
				if err := e.writeSQLite(ctx, temporary, c.Table, c.Columns); err != nil {
					return err
				}
				return syncFile(temporary)
			})
		} else {
			err = replaceFile(c.File, compression, func(w io.Writer) error { return c.write(ctx, e, w, format, comma) })
		}
		e.bar.done()
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		e.summary.File, e.summary.Seconds = c.File, time.Since(start).Seconds()
		if err := a.printExport(e.summary); err != nil {
			return err
		}
		return e.note(ctx, a, format)
	})
}

// note prints notes about everything that the format cannot hold.
func (e *exporter) note(ctx context.Context, a *app, format exchangeFormat) error {
	if format == formatNDJSON || format == formatJSON {
		return nil
	}
	return e.leftOut(ctx, a, format)
}

// write writes an export as a stream.
func (c *exportCommand) write(ctx context.Context, e *exporter, w io.Writer, format exchangeFormat, comma byte) error {
	w = countingWriter{e, w}
	switch format {
	case formatCSV:
		return e.writeCSV(ctx, w, comma)
	case formatExtended:
		return e.writeExtended(ctx, w)
	case formatDump:
		return e.writeDump(ctx, w)
	case formatJSON:
		array := &arrayWriter{w: w}
		if err := e.writeLines(ctx, array); err != nil {
			return err
		}
		return array.close()
	}
	return e.writeLines(ctx, w)
}

// exportSummary is what an export to a file prints at its end. Bytes are
// before compression.
type exportSummary struct {
	File      string  `json:"file"`
	Documents int64   `json:"documents"`
	Revisions int64   `json:"revisions,omitempty"`
	Bytes     int64   `json:"bytes"`
	Seconds   float64 `json:"seconds"`

	database string // its directory
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

// writeLines writes the counters and the documents. The counters, read first, match the
// documents: no other process can write to the open database.
func (e *exporter) writeLines(ctx context.Context, w io.Writer) error {
	counters, err := e.db.Counters(ctx)
	if err != nil {
		return err
	}
	line, err := appendCounters(nil, counters)
	if err != nil {
		return err
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	if e.summary.Revisions, err = writeRevisions(ctx, e.db, e.collection, w); err != nil {
		return err
	}
	err = e.eachExported(ctx, func(doc *jay.Document) error {
		line, err := doc.MarshalJSON()
		if err != nil {
			return err
		}
		if _, err = w.Write(append(line, '\n')); err != nil {
			return err
		}
		return writeAttachments(ctx, e.db, w, doc)
	})
	if err != nil || e.collection != "" {
		return err
	}
	if err := writeSubscriptions(ctx, e.db, w); err != nil {
		return err
	}
	return writeExchanges(ctx, e.db, w)
}

// writeFile atomically replaces the file name by what fn writes: it writes and
// syncs a temporary file beside it and renames that. If the name ends in .gz or .zst the
// file is compressed. An existing file that is not regular, such as a pipe, is
// written to directly.
func writeFile(name string, fn func(io.Writer) error) error {
	compression, _ := transfer.Compressed(name)
	return replaceFile(name, compression, fn)
}

// replaceFile is like writeFile, with a compression of the caller's choice, or none.
func replaceFile(name, compression string, fn func(io.Writer) error) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", name)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(writePacked(f, compression, fn), f.Close())
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	return replaceByPath(name, func(temporary string) error {
		f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return err
		}
		if err := writePacked(f, compression, fn); err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// replaceByPath atomically replaces the file name with one that fn creates and syncs
// under a temporary name. A crash leaves the old file or the new one.
func replaceByPath(name string, fn func(temporary string) error) (err error) {
	// A rename must replace the target of a symbolic link, not the link.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	temporary := fmt.Sprintf("%s.%d.tmp", name, os.Getpid())
	if _, err := os.Lstat(temporary); err == nil {
		return fmt.Errorf("%s is there already", temporary)
	}
	defer func() {
		if err != nil {
			if removeErr := os.Remove(temporary); !errors.Is(removeErr, os.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}()
	if err := fn(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	syncDirectory(filepath.Dir(name))
	return nil
}

// syncFile syncs a closed file.
func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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
