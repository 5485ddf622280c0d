package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// importCommand stores a stream of documents.
type importCommand struct {
	Collection string   `placeholder:"NAME" help:"Collection of the documents that name none."`
	ID         *string  `name:"id" placeholder:"REQUEST" help:"ID to ask for, for the documents that bring none, such as users| or users/."`
	Rejects    string   `name:"rejects" aliases:"skip-invalid" placeholder:"FILE" help:"Go on after a bad document, and keep it in this new file."`
	Resume     *string  `placeholder:"NAME" help:"Note under this name how far the import is; with the same name again it goes on there."`
	Insert     bool     `help:"Refuse a document whose ID is in use, in place of overwriting what is there."`
	Format     string   `enum:",ndjson,json,csv,extjson,ravendbdump,sqlite" default:"" placeholder:"FORMAT" help:"Format of the input, if its name does not say: ndjson, json, csv, extjson, ravendbdump or sqlite."`
	IDPrefix   string   `name:"id-prefix" placeholder:"TEXT" help:"Put this in front of the IDs of CSV, Extended JSON and SQLite, such as users/."`
	IDColumn   string   `name:"id-column" placeholder:"NAME" help:"Column with the IDs, of CSV and SQLite."`
	JSONColumn string   `name:"json-column" placeholder:"NAME" help:"Column with the documents, of SQLite."`
	Table      string   `placeholder:"NAME" help:"Table of a SQLite file; not needed if there is only one."`
	Infer      bool     `help:"In CSV columns without a type, take numbers, true, false and null for what they are."`
	Delimiter  string   `placeholder:"C" help:"Character between the cells of CSV; a comma, or a tab in .tsv files."`
	Revisions  bool     `help:"Read a dump of RavenDB twice: first its revisions, which it has behind the documents."`
	MaxInput   int64    `name:"max-input-bytes" placeholder:"N" help:"Stop after so many bytes of input, unpacked; the default is no limit."`
	Files      []string `arg:"" optional:"" name:"file" help:"Files to read, - or none for standard input."`
}

// Help is shown by jay import --help.
func (*importCommand) Help() string {
	return `Documents are read as a stream and stored in batches. ` + formatHelp + ` JSON may be one document a line, one behind the other, or all in one array.

A document keeps the @id and the @collection of its @metadata. One with an @id is taken as an export wrote it: without a @collection it belongs to @empty, whatever --collection says. Any other goes to its own @collection or else to --collection, under the next HiLo ID, or the one that --id asks for. IDs of other systems, such as _id of Extended JSON, get --id-prefix in front and go to --collection. The rules of each format are in docs/import-export.md.

A bad document ends the import; those before it are stored. With --rejects FILE it is kept in that file instead, one a line, with line breaks turned into blanks, and all others are stored; what was a row of a table is an array of its cells. The file is created at the first bad document; one that exists and is not empty is refused. --skip-invalid FILE is the older name of the flag. Bad is what is no JSON object within the limits, and what the database refuses of one document: its ID, its collection, a value that a unique index has already. A counter that has no number to give ends the import in any case.

With --resume NAME the import notes in the database how far it is, in the transaction of each batch. If it is stopped, even killed, the same command goes on where it was, and stores nothing twice; once it is finished, the same command stores nothing. The note is the document Raven/Jay/Import/NAME.

What jay export wrote as NDJSON or JSON also carries the database's counters: the import raises its own to them, so that no number comes again; and revisions, which keep their change vectors. They come before the documents: a document that is there already gets no past. Its configuration of revisions is taken over if the database has none. Subscriptions begin behind the import if they had nothing left to send, and else with all documents.

Examples:

    jay import --collection Orders orders.ndjson
    curl -s https://example.org/users.json.gz | jay import --id 'users|' --collection Users
    jay --db copy.db import --rejects rejects.ndjson backup.ndjson.gz
    jay import --resume monday export.ravendbdump
    jay import --collection Users --id-column email --infer users.csv
    mongoexport -d shop -c users | jay import --format extjson --collection Users --id-prefix users/`
}

// importError is the error of an import with its place in the input.
type importError struct {
	file   string
	number int64 // of the document, from 1; 0 for no particular document
	line   int64 // of the document's first byte, from 1; 0 for none
	offset int64 // of the document's first byte, from 0; -1 for none
	stored int64 // number of documents stored so far
	err    error

	skipped bool // the import skipped the document
}

// Error names the file, the document and the place.
func (e *importError) Error() string {
	text := e.file
	if e.number > 0 {
		text += fmt.Sprintf(": document %d", e.number)
		if e.offset >= 0 {
			text += fmt.Sprintf(" at byte %d", e.offset)
		}
		if e.line > 0 {
			text += fmt.Sprintf(" (line %d)", e.line)
		}
	}
	if e.skipped {
		return fmt.Sprintf("import %s is skipped: %v", text, e.err)
	}
	return fmt.Sprintf("import %s: %v; %s stored", text, e.err, counted(e.stored))
}

// Unwrap returns the error of the document.
func (e *importError) Unwrap() error { return e.err }

// counted returns "1 document is", "2 documents are".
func counted(n int64) string {
	if n == 1 {
		return "1 document is"
	}
	return thousands(n) + " documents are"
}

// Run imports the files in their order and prints a summary.
func (c *importCommand) Run(ctx context.Context, a *app) error {
	if len(c.Files) == 0 {
		c.Files = []string{stdinName}
	}
	if c.Resume != nil {
		if err := checkResume(*c.Resume); err != nil {
			return err
		}
	}
	if c.MaxInput < 0 {
		return usageError{text: fmt.Sprintf("--max-input-bytes is not negative, got %d", c.MaxInput)}
	}
	total, err := c.checkFiles()
	if err != nil {
		return err
	}
	if c.overwritesInput() {
		return usageError{text: "--rejects must not name a file that is imported"}
	}
	var rejected *rejects
	if c.Rejects != "" {
		if rejected, err = newRejects(c.Rejects, a, c.Resume != nil); err != nil {
			return err
		}
	}
	a.options = importOptions(a.options)
	return a.withDatabase(true, func(db *jay.DB) error {
		l := &loader{db: db, collection: c.Collection, request: c.ID, maxBytes: a.options.MaxDocumentBytes, maxDepth: a.options.MaxDepth}
		l.rejects, l.insert = rejected, c.Insert
		if c.Resume != nil {
			l.resume = &resumption{name: *c.Resume}
			if err := l.resume.load(ctx, db); err != nil {
				return err
			}
			if found := l.resume.found; found.Finished {
				a.note("the import %q is finished, with %s; nothing is left to do", *c.Resume, count(found.Documents, "document"))
				return a.printSummary(importSummary{Finished: true})
			} else if found.Records > 0 {
				a.note("the import %q goes on behind record %s", *c.Resume, thousands(found.Records))
			}
		}
		defer debug.SetGCPercent(debug.SetGCPercent(importGCPercent))
		start := time.Now()
		bar := a.newByteProgress("import", total)
		err = c.load(ctx, a, l, bar)
		bar.done()
		if err := andThen(err, l.rejects.close()); err != nil {
			return err
		}
		return a.printSummary(l.summary(time.Since(start)))
	})
}

// importGCPercent makes the collector run when the heap has grown by half, not by all of
// it: an import of 1 GiB takes 118 MB instead of 134, in the same time.
const importGCPercent = 50

// importOptions returns the options of an import. Caches are small, because documents
// pass through once and a large cache would help only to find older versions. With the
// default options an import of 1 GiB takes twice the memory and the same time.
func importOptions(o jay.Options) jay.Options {
	o.CacheBytes, o.DocumentCacheBytes, o.MemTableBytes = 8<<20, -1, 16<<20
	return o
}

// checkFiles returns an error if a file is missing, before anything is stored, and
// the total size in bytes, -1 if it is unknown.
func (c *importCommand) checkFiles() (total int64, err error) {
	for _, name := range c.Files {
		if name == stdinName {
			total = -1
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		if info.IsDir() {
			return 0, fmt.Errorf("import %s: it is a directory, not a file", name)
		}
		if !info.Mode().IsRegular() || total < 0 {
			total = -1
			continue
		}
		total += info.Size()
	}
	return total, nil
}

// overwritesInput reports whether the file for rejects is one of the inputs.
func (c *importCommand) overwritesInput() bool {
	rejects, err := os.Stat(c.Rejects)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(c.Files, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && os.SameFile(info, rejects)
	})
}

func (c *importCommand) load(ctx context.Context, a *app, l *loader, bar *progress) error {
	for _, name := range c.Files {
		if err := c.loadFile(ctx, a, l, name, bar); err != nil {
			return err
		}
	}
	if l.resume != nil {
		if err := l.resume.finish(ctx, l.db, l.documents+l.resume.found.Documents); err != nil {
			return l.fail(value{}, err)
		}
	}
	return nil
}

func (c *importCommand) loadFile(ctx context.Context, a *app, l *loader, name string, bar *progress) error {
	format := formatOf(name, c.Format)
	if c.Revisions && format == formatDump && !l.resume.isBehind() {
		if err := c.loadPast(ctx, a, l, name); err != nil {
			return err
		}
	}
	r, shown := a.stdin, "standard input"
	switch {
	case name != stdinName && format == formatSQLite:
		return c.loadSQLite(ctx, l, name, bar)
	case name != stdinName:
		f, err := os.Open(name)
		if err != nil {
			return l.fail(value{}, err)
		}
		defer f.Close()
		r, shown = f, name
	case format == formatSQLite:
		return usageError{text: "a SQLite file cannot be read from standard input"}
	default:
		a.promptForInput("documents")
	}
	l.file = shown
	ahead := newReadAhead(ctx, &boundedReader{r: transfer.NewUnpacked(countedReader{r, bar.add}), max: c.MaxInput})
	defer ahead.stop()
	if format == formatDump {
		return l.loadDump(ctx, a, ahead, c.Revisions)
	}
	values, err := c.source(l, ahead, name, format)
	if err != nil {
		return err
	}
	return l.loadValues(ctx, values)
}

// loadPast stores the revisions of a dump.
func (c *importCommand) loadPast(ctx context.Context, a *app, l *loader, name string) error {
	if name == stdinName {
		return usageError{text: "--revisions reads a dump twice, which standard input cannot be"}
	}
	f, err := os.Open(name)
	if err != nil {
		return l.fail(value{}, err)
	}
	defer f.Close()
	l.file = name
	ahead := newReadAhead(ctx, &boundedReader{r: transfer.NewUnpacked(f), max: c.MaxInput})
	defer ahead.stop()
	return l.loadDumpPast(ctx, ahead)
}

// source returns the documents of an input.
func (c *importCommand) source(l *loader, r io.Reader, name string, format exchangeFormat) (source, error) {
	to := transfer.Placing{IDPrefix: c.IDPrefix, Collection: c.Collection}
	switch format {
	case formatCSV:
		comma, err := commaOf(name, c.Delimiter)
		if err != nil {
			return nil, err
		}
		return &csvSource{r: transfer.NewCSVReader(r, transfer.CSVOptions{Placing: to, Comma: comma, MaxBytes: l.maxBytes, Infer: c.Infer, IDColumn: c.IDColumn})}, nil
	case formatExtended:
		return &extendedSource{values: newSplitter(r, l.maxBytes, l.maxDepth), to: to}, nil
	}
	return newSplitter(r, l.maxBytes, l.maxDepth), nil
}

func (c *importCommand) loadSQLite(ctx context.Context, l *loader, name string, bar *progress) error {
	l.file = name
	info, err := os.Stat(name)
	if err == nil && c.MaxInput > 0 && info.Size() > c.MaxInput {
		err = errInputTooLarge(c.MaxInput)
	}
	if err != nil {
		return l.fail(value{}, err)
	}
	rows, err := openSQLite(ctx, name, sqliteOptions{c.Table, c.IDColumn, c.JSONColumn, c.IDPrefix, c.Collection, l.maxBytes})
	if err != nil {
		if _, is := errors.AsType[usageError](err); is {
			return err
		}
		return l.fail(value{}, err)
	}
	err = l.loadValues(ctx, rows)
	bar.add(int(info.Size()))
	return andThen(err, rows.close())
}

// importSummary is what import prints at its end.
type importSummary struct {
	Documents int64   `json:"documents"`
	Bytes     int64   `json:"bytes"`
	Seconds   float64 `json:"seconds"`
	First     string  `json:"first,omitempty"`
	Last      string  `json:"last,omitempty"`
	Rejected  int64   `json:"rejected"`
	Revisions int64   `json:"revisions,omitempty"`
	Finished  bool    `json:"finished,omitempty"` // an earlier run has finished the import
}

func (a *app) printSummary(s importSummary) error {
	if a.json {
		return a.printLine(s)
	}
	text := fmt.Sprintf("imported %s, %s, in %.1f s", count(s.Documents, "document"), size(s.Bytes), s.Seconds)
	if s.Documents > 0 {
		text += fmt.Sprintf(": %s to %s", s.First, s.Last)
	}
	if s.Revisions > 0 {
		text += "; " + count(s.Revisions, "revision")
	}
	if s.Rejected > 0 {
		text += fmt.Sprintf("; %s rejected", thousands(s.Rejected))
	}
	return a.print(text + "\n")
}

// load stores all documents of r, which are JSON. The name of r is for errors.
func (l *loader) load(ctx context.Context, name string, r io.Reader) error {
	ahead := newReadAhead(ctx, transfer.NewUnpacked(r))
	defer ahead.stop()
	l.file = name
	return l.loadValues(ctx, newSplitter(ahead, l.maxBytes, l.maxDepth))
}

// loadValues stores all documents of a source.
func (l *loader) loadValues(ctx context.Context, values source) (err error) {
	defer func() {
		_ = l.endInput() // after an error
		err = l.end(ctx, err)
	}()
	_, special := values.(*splitter) // only JSON has the special lines of jay export
	for {
		v, err := values.next()
		if err == io.EOF {
			if err := l.endInput(); err != nil {
				return l.fail(v, err)
			}
			return l.flush(ctx)
		}
		if err == nil || canSkip(err) {
			again, other := l.resume.take(v.text)
			switch {
			case other != nil:
				return l.fail(v, other)
			case again && err == nil:
				continue
			case again:
				if err := values.skip(io.Discard); err != nil {
					return l.fail(v, err)
				}
				continue
			}
		}
		switch {
		case err == nil && special:
			err = l.add(ctx, v)
		case err == nil:
			if err = l.makeRoom(ctx, v); err == nil {
				err = l.addDocument(ctx, v, metadataOf(v.text))
			}
		default:
			if stop := l.flush(ctx); stop != nil {
				return stop // the values before this one are stored first; their error wins
			}
			if canSkip(err) && l.rejects != nil {
				err = l.skip(values, v, err)
			} else {
				err = l.fail(v, err)
			}
		}
		if err != nil {
			return err
		}
	}
}
