package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/jaydb/jay"
)

// importCommand stores a stream of documents.
type importCommand struct {
	Collection string   `placeholder:"NAME" help:"Collection of the documents that name none."`
	ID         *string  `name:"id" placeholder:"REQUEST" help:"ID to ask for, for the documents that bring none, such as users| or users/."`
	Rejects    string   `name:"rejects" aliases:"skip-invalid" placeholder:"FILE" help:"Go on after a bad document, and keep it in this new file."`
	Files      []string `arg:"" optional:"" name:"file" help:"Files to read, - or none for standard input."`
}

// Help is shown by jay import --help.
func (*importCommand) Help() string {
	return `The input is JSON: one document a line, or one behind the other, or all in one array; as it is or packed with gzip. It is read as a stream and stored in batches.

A document keeps the @id and the @collection of its @metadata. One with an @id is taken as an export wrote it: without a @collection it belongs to @empty, whatever --collection says. Any other goes to its own @collection or else to --collection, under the next HiLo ID, or the one that --id asks for.

A bad document ends the import; those before it are stored. With --rejects FILE it is kept in that file instead, one a line, with line breaks turned into blanks, and all others are stored. The file is created at the first bad document; one that exists and is not empty is refused. --skip-invalid FILE is the older name of the flag. Bad is what is no JSON object within the limits, and what the database refuses of one document: its ID, its collection, a value that a unique index has already. A counter that has no number to give ends the import in any case. What jay export wrote also carries the database's counters: the import raises its own to them, so that no number comes again; and revisions, which keep their change vectors. They come before the documents: a document that is there already gets no past. Its configuration of revisions is taken over if the database has none. Subscriptions begin behind the import if they had nothing left to send, and else with all documents.

Examples:

    jay import --collection Orders orders.ndjson
    curl -s https://example.org/users.json.gz | jay import --id 'users|' --collection Users
    jay --db copy.db import --rejects rejects.ndjson backup.ndjson.gz`
}

// importError is the error of an import with its place in the input.
type importError struct {
	file   string
	number int64 // of the document, from 1; 0 for no particular document
	line   int64 // of the document's first byte, from 1
	offset int64 // of the document's first byte, from 0
	stored int64 // number of documents stored so far
	err    error

	skipped bool // the import skipped the document
}

// Error names the file, the document and the place.
func (e *importError) Error() string {
	text := e.file
	if e.number > 0 {
		text += fmt.Sprintf(": document %d at byte %d (line %d)", e.number, e.offset, e.line)
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
	total, err := c.checkFiles()
	if err != nil {
		return err
	}
	if c.overwritesInput() {
		return usageError{text: "--rejects must not name a file that is imported"}
	}
	var rejected *rejects
	if c.Rejects != "" {
		if rejected, err = newRejects(c.Rejects, a); err != nil {
			return err
		}
	}
	return a.withDatabase(true, func(db *jay.DB) error {
		l := &loader{db: db, collection: c.Collection, request: c.ID, maxBytes: a.options.MaxDocumentBytes, maxDepth: a.options.MaxDepth}
		l.rejects = rejected
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
	return nil
}

func (c *importCommand) loadFile(ctx context.Context, a *app, l *loader, name string, bar *progress) error {
	r, shown := a.stdin, "standard input"
	if name == stdinName {
		a.promptForInput("documents")
	} else {
		f, err := os.Open(name)
		if err != nil {
			return l.fail(value{}, err)
		}
		defer f.Close()
		r, shown = f, name
	}
	return l.load(ctx, shown, countedReader{r, bar.add})
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

// load stores all documents of r. The name of r is for errors.
func (l *loader) load(ctx context.Context, name string, r io.Reader) error {
	ahead := newReadAhead(ctx, newUnzipped(r))
	defer ahead.stop()
	defer func() { _ = l.endInput() }() // after an error
	l.file = name
	values := newSplitter(ahead, l.maxBytes, l.maxDepth)
	for {
		v, err := values.next()
		if err == io.EOF {
			if err := l.endInput(); err != nil {
				return l.fail(v, err)
			}
			return l.flush(ctx)
		}
		if err == nil {
			err = l.add(ctx, v)
		} else if stop := l.flush(ctx); stop != nil {
			return stop // an error of the values before this one comes first
		} else if errors.Is(err, jay.ErrInvalidDocument) && l.rejects != nil {
			err = l.skip(values, v, err)
		} else {
			err = l.fail(v, err)
		}
		if err != nil {
			return err
		}
	}
}
