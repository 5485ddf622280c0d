package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
	"github.com/jaydb/jay/transfer/smuggler"
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
	Infer      bool     `help:"Give each CSV column without a type the one that all its cells look like: number, boolean or string."`
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

// Run imports the files in their order and prints a summary.
func (c *importCommand) Run(ctx context.Context, a *app) error {
	if len(c.Files) == 0 {
		c.Files = []string{stdinName}
	}
	if c.Resume != nil {
		if err := smuggler.CheckResume(*c.Resume); err != nil {
			return usageError{text: "--resume: " + oneLine(err)}
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
	a.options = smallCaches(a.options)
	return a.withDatabase(true, func(db *jay.DB) error {
		im := smuggler.NewImporter(db, c.importOptions(a, rejected))
		if found, err := im.Begin(ctx); err != nil {
			return err
		} else if found.Finished {
			a.note("the import %q is finished, with %s; nothing is left to do", *c.Resume, count(found.Documents, "document"))
			return a.printSummary(importSummary{Finished: true})
		} else if found.Records > 0 {
			a.note("the import %q goes on after record %s", *c.Resume, thousands(found.Records))
		}
		defer debug.SetGCPercent(debug.SetGCPercent(importGCPercent))
		start := time.Now()
		bar := a.newByteProgress("import", total)
		err = c.load(ctx, a, im, bar)
		bar.done()
		if err := andThen(err, rejected.close()); err != nil {
			return err
		}
		done := im.Progress()
		for _, section := range slices.Sorted(maps.Keys(done.LeftOut)) {
			verb := "are"
			if done.LeftOut[section] == 1 {
				verb = "is"
			}
			if section == smuggler.LeftAttachments {
				a.note("%s %s left out: the document has expired or was deleted", count(done.LeftOut[section], "attachment"), verb)
				continue
			}
			a.note("%s of %s %s left out: Jay has no place for such items", count(done.LeftOut[section], "item"), section, verb)
		}
		if done.LooksExtended {
			a.note("the first documents look like Extended JSON of MongoDB, and are stored as they are: --format extjson makes IDs, times and numbers of it")
		}
		return a.printSummary(summaryOf(done, time.Since(start)))
	})
}

// importOptions returns the options of the flags.
func (c *importCommand) importOptions(a *app, rejected *rejects) smuggler.ImportOptions {
	o := smuggler.ImportOptions{
		Collection: c.Collection, Request: c.ID, IDPrefix: c.IDPrefix, IDColumn: c.IDColumn,
		Infer: c.Infer, Insert: c.Insert, Revisions: c.Revisions, Ahead: true,
		MaxBytes: a.options.MaxDocumentBytes, MaxDepth: a.options.MaxDepth,
		Names: importNames,
	}
	if rejected != nil {
		o.Rejects = rejected
	}
	if c.Resume != nil {
		o.Resume = *c.Resume
	}
	return o
}

// importNames are the flags that errors name.
var importNames = smuggler.Names{MaxBytes: "--max-document-bytes", MaxDepth: "--max-depth", Place: "--collection or --id", Resume: "--resume "}

// importGCPercent makes the collector run when the heap has grown by half, not by all of
// it: an import of 1 GiB takes 118 MB instead of 134, in the same time.
const importGCPercent = 50

// smallCaches returns the options of a database for an import. Caches are small, because documents
// pass through once and a large cache would help only to find older versions. With the
// default options an import of 1 GiB takes twice the memory and the same time.
func smallCaches(o jay.Options) jay.Options {
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

func (c *importCommand) load(ctx context.Context, a *app, im *smuggler.Importer, bar *progress) error {
	for _, name := range c.Files {
		if err := c.loadFile(ctx, a, im, name, bar); err != nil {
			return err
		}
	}
	return im.Finish(ctx)
}

func (c *importCommand) loadFile(ctx context.Context, a *app, im *smuggler.Importer, name string, bar *progress) error {
	format := formatOf(name, c.Format)
	in := smuggler.Input{Name: name, Path: name}
	var err error
	if in.Comma, err = commaOf(name, c.Delimiter); err != nil && format == smuggler.CSV {
		return err
	}
	switch {
	case format == sqliteFormat && name == stdinName:
		return usageError{text: "a SQLite file cannot be read from standard input"}
	case format == sqliteFormat:
		return c.loadSQLite(ctx, im, in, bar)
	case name == stdinName && c.Revisions && format == smuggler.RavenDBDump && !im.Behind():
		return usageError{text: "--revisions reads a dump twice, which standard input cannot be"}
	case name == stdinName:
		in.Name, in.Path = "standard input", ""
		a.input().prompt("documents")
		ahead := c.unpacked(ctx, countedReader{a.stdin, bar.add})
		defer ahead.stop()
		in.Reader = ahead
		return im.Load(ctx, format, in)
	}
	f, err := os.Open(name)
	if err != nil {
		return &smuggler.ImportError{Input: name, Stored: im.Progress().Documents, Err: err}
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() { // it can be read twice
		in.Again = func() (io.ReadCloser, error) {
			f, err := os.Open(name)
			if err != nil {
				return nil, err
			}
			return openFile{c.unpacked(ctx, f), f}, nil
		}
	}
	ahead := c.unpacked(ctx, countedReader{f, bar.add})
	defer ahead.stop()
	in.Reader = ahead
	return im.Load(ctx, format, in)
}

// unpacked returns what a reader has, unpacked and within bounds. The caller must stop it.
func (c *importCommand) unpacked(ctx context.Context, r io.Reader) *readAhead {
	return newReadAhead(ctx, &boundedReader{r: transfer.NewInput(r), max: c.MaxInput})
}

// openFile is a file that is read ahead.
type openFile struct {
	*readAhead
	file *os.File
}

// Close implements io.Closer.
func (f openFile) Close() error {
	f.stop()
	return f.file.Close()
}

// errInputTooLarge is the error of an input beyond --max-input-bytes.
type errInputTooLarge int64

// Error names the limit.
func (e errInputTooLarge) Error() string {
	return fmt.Sprintf("the input has at most %s bytes, unpacked (--max-input-bytes)", thousands(int64(e)))
}

// Is makes errors.Is(err, jay.ErrTooLarge) true.
func (errInputTooLarge) Is(target error) bool { return target == jay.ErrTooLarge }

// boundedReader fails once more than max bytes were read. A max of 0 is no bound.
type boundedReader struct {
	r    io.Reader
	max  int64
	read int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.max > 0 && b.read > b.max {
		return 0, errInputTooLarge(b.max)
	}
	return n, err
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

// summaryOf returns the summary of what an import has done.
func summaryOf(p smuggler.ImportProgress, took time.Duration) importSummary {
	return importSummary{Documents: p.Documents, Bytes: p.Bytes, Seconds: took.Seconds(), First: p.First, Last: p.Last, Revisions: p.Revisions, Rejected: p.Rejected}
}
