package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
	"github.com/jaydb/jay/transfer/smuggler"
)

// exportCommand writes documents as a stream.
type exportCommand struct {
	Collection string `placeholder:"NAME" help:"Only this collection; @empty is one too."`
	Format     string `enum:",ndjson,json,csv,extjson,ravendbdump,sqlite" default:"" placeholder:"FORMAT" help:"Format of the output, if its name does not say: ndjson, json, csv, extjson, ravendbdump or sqlite."`
	Table      string `placeholder:"NAME" default:"documents" help:"Table of a SQLite file; the default is documents."`
	Columns    bool   `help:"Add a view to a SQLite file, with a column for each field: its name is that of the table with _columns."`
	Delimiter  string `placeholder:"C" help:"Character between the cells of CSV; a comma, or a tab in .tsv files."`
	Sheet      bool   `name:"spreadsheet" help:"Write CSV that a spreadsheet can open: texts that it would take for formulas get an apostrophe in front."`
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
    jay export --collection Users --spreadsheet for-the-office.csv
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
	case format == sqliteFormat && (toStdout || compression != ""):
		return usageError{text: "a SQLite database is written to a file, and not packed"}
	case c.Sheet && format != smuggler.CSV:
		return usageError{text: fmt.Sprintf("--spreadsheet is for CSV, and the format is %s", format.Name)}
	case format == sqliteFormat && c.Table == "":
		return usageError{text: "--table must not be empty"}
	case format == smuggler.RavenDBDump && compression == "" && !toStdout:
		compression = "gzip" // as RavenDB compresses its dumps
	}
	a.options.CacheBytes, a.options.DocumentCacheBytes = 8<<20, -1 // each document is read once
	note := func(done smuggler.ExportProgress) {
		if what := leftOut(done); what != "" {
			a.note("%s has no place for %s: only ndjson and json have all", format.Name, what)
		}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		o := smuggler.ExportOptions{Collection: c.Collection, Counters: true, Name: filepath.Base(a.dir), Comma: comma, Spreadsheet: c.Sheet}
		if toStdout {
			e := smuggler.NewExporter(db, o)
			if err := e.Write(ctx, format, a.stdout); err != nil {
				return err
			}
			note(e.Progress())
			return nil
		}

		start := time.Now()
		bar := a.newByteProgress("export", -1)
		o.Report = func(p smuggler.ExportProgress) { bar.set(p.Bytes) }
		e := smuggler.NewExporter(db, o)
		var err error
		unnamed := int64(0)
		if format == sqliteFormat {
			err = a.replaceByPath(c.File, func(temporary string) error {
				if err := e.WriteFile(ctx, c.sqliteFormat(&unnamed), temporary); err != nil {
					return err
				}
				return syncFile(temporary)
			})
		} else {
			err = a.replaceFile(c.File, compression, func(w io.Writer) error { return e.Write(ctx, format, w) })
		}
		bar.done()
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		done := e.Progress()
		err = a.printExport(exportSummary{File: c.File, Documents: done.Documents, Revisions: done.Revisions, Bytes: done.Bytes, Seconds: time.Since(start).Seconds()})
		if err != nil {
			return err
		}
		if unnamed > 0 {
			a.note("%s with a quote or a backslash in the name left out of the view", count(unnamed, "field"))
		}
		note(done)
		return nil
	})
}

// leftOut names everything that the format of an export cannot hold; "" is nothing.
func leftOut(done smuggler.ExportProgress) string {
	var what []string
	if n := done.LeftOut[smuggler.LeftAttachments]; n > 0 {
		what = append(what, count(n, "attachment"))
	}
	for _, kind := range []string{smuggler.LeftRevisions, smuggler.LeftExchange} {
		if done.LeftOut[kind] > 0 {
			what = append(what, kind)
		}
	}
	if n := done.LeftOut[smuggler.LeftSubscriptions]; n > 0 {
		what = append(what, count(n, "subscription"))
	}
	return strings.Join(what, ", ")
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

// writeFile atomically replaces the file name by what fn writes: it writes and
// syncs a temporary file beside it and renames that. If the name ends in .gz or .zst the
// file is compressed. An existing file that is not regular, such as a pipe, is
// written to directly.
func (a *app) writeFile(name string, fn func(io.Writer) error) error {
	compression, _ := transfer.Compressed(name)
	return a.replaceFile(name, compression, fn)
}

// replaceFile is like writeFile, with a compression of the caller's choice, or none.
func (a *app) replaceFile(name, compression string, fn func(io.Writer) error) error {
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
	return a.replaceByPath(name, func(temporary string) error {
		f, err := os.OpenFile(temporary, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if err := writePacked(f, compression, fn); err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// fileMode is the mode of the files that the command makes: others have no business in
// documents, and the group has with --group-readable.
func (a *app) fileMode() os.FileMode {
	if a.options.GroupReadable {
		return 0o640
	}
	return 0o600
}

// replaceByPath atomically replaces the file name with one that fn fills and syncs under a
// temporary name, and that is empty at first. A crash leaves the old file or the new one.
// A new file has fileMode; one that is replaced keeps its mode.
func (a *app) replaceByPath(name string, fn func(temporary string) error) (err error) {
	// A rename must replace the target of a symbolic link, not the link.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	if err := checkReplaced(name, a.secrets); err != nil {
		return err
	}
	mode := a.fileMode()
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		mode = info.Mode().Perm()
	}
	temporary := fmt.Sprintf("%s.%d.tmp", name, os.Getpid())
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already: another process writes it, or was killed before the file was complete: remove it then", temporary)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if removeErr := os.Remove(temporary); !errors.Is(removeErr, os.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := fn(temporary); err != nil {
		return err
	}
	if err := os.Chmod(temporary, mode); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	syncDirectory(filepath.Dir(name))
	return nil
}

// checkReplaced refuses to write a file over secrets, the keys or the passphrase of the command, without which
// the database is lost, and into the directory of a database.
func checkReplaced(name string, secrets []string) error {
	now, err := os.Stat(name)
	for _, file := range secrets {
		if secret, statErr := os.Stat(file); err == nil && statErr == nil && os.SameFile(now, secret) {
			return usageError{text: fmt.Sprintf("%s has the keys or the passphrase, and is not replaced: name another file", name)}
		}
	}
	dir := filepath.Dir(name)
	if info, err := os.Stat(filepath.Join(dir, "JAY")); err == nil && info.Mode().IsRegular() {
		return usageError{text: fmt.Sprintf("%s is in the directory of a database, %s, whose files are not replaced: name a file elsewhere", name, dir)}
	}
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

// writePacked calls fn with a buffered writer to f, which compresses if a compression is
// named.
func writePacked(f *os.File, compression string, fn func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(f, 256<<10)
	packed, err := transfer.NewPacked(buffered, compression)
	if err != nil {
		return err
	}
	if err := fn(packed); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return buffered.Flush()
}
