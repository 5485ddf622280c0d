package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// exporter writes an export, and counts what it writes and what the format cannot hold.
type exporter struct {
	db         *jay.DB
	collection string
	bar        *progress
	summary    exportSummary

	attachments int64 // attachments that the format cannot hold
	unnamed     int64 // fields that a SQLite view cannot have
}

// eachExported calls fn with every document of the export.
func (e *exporter) eachExported(ctx context.Context, fn func(*jay.Document) error) error {
	return eachDocument(ctx, e.db, jay.Scan{Collection: e.collection}, func(doc *jay.Document) error {
		e.summary.Documents++
		return fn(doc)
	})
}

// wrote counts bytes.
func (e *exporter) wrote(n int) {
	e.summary.Bytes += int64(n)
	e.bar.add(n)
}

// countingWriter counts the bytes that an exporter writes.
type countingWriter struct {
	e *exporter
	w io.Writer
}

// Write implements io.Writer.
func (c countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.e.wrote(n)
	return n, err
}

// document returns a document in the form of package transfer. Its attachments are left
// out, and counted.
func (e *exporter) document(doc *jay.Document) *transfer.Document {
	m := doc.Metadata()
	e.attachments += int64(len(m.Attachments))
	return &transfer.Document{ID: m.ID, Collection: m.Collection, Custom: m.Custom, Body: doc.Body()}
}

// named adds the document to an error.
func named(doc *jay.Document, err error) error {
	if bad, is := errors.AsType[*transfer.Error](err); is {
		return fmt.Errorf("document %q: %w", doc.ID(), &formatError{bad})
	}
	return err
}

// arrayWriter turns lines of JSON into one JSON array. A line may be written in several
// parts.
type arrayWriter struct {
	w     io.Writer
	begun bool
	line  bool // in the middle of a line
}

// Write implements io.Writer.
func (a *arrayWriter) Write(p []byte) (int, error) {
	rest := p
	for len(rest) > 0 {
		if !a.line {
			open := ",\n"
			if !a.begun {
				open = "[\n"
			}
			if _, err := io.WriteString(a.w, open); err != nil {
				return 0, err
			}
			a.begun, a.line = true, true
		}
		end := len(rest)
		part := rest
		if rest[end-1] == '\n' { // jay writes no line break inside a line of JSON
			part, a.line = rest[:end-1], false
		}
		if _, err := a.w.Write(part); err != nil {
			return 0, err
		}
		rest = rest[end:]
	}
	return len(p), nil
}

// close ends the array.
func (a *arrayWriter) close() error {
	end := "\n]\n"
	if !a.begun {
		end = "[]\n"
	}
	_, err := io.WriteString(a.w, end)
	return err
}

// writeCSV reads the documents twice: for the columns, and for the rows.
func (e *exporter) writeCSV(ctx context.Context, w io.Writer, comma byte) error {
	var columns transfer.CSVColumns
	err := eachDocument(ctx, e.db, jay.Scan{Collection: e.collection}, func(doc *jay.Document) error {
		return named(doc, columns.Add(&transfer.Document{Custom: doc.Metadata().Custom, Body: doc.Body()}))
	})
	if err != nil {
		return err
	}
	rows, err := transfer.NewCSVWriter(w, &columns, comma)
	if err != nil {
		return err
	}
	return e.eachExported(ctx, func(doc *jay.Document) error {
		return named(doc, rows.Write(e.document(doc)))
	})
}

func (e *exporter) writeExtended(ctx context.Context, w io.Writer) error {
	var line []byte
	return e.eachExported(ctx, func(doc *jay.Document) (err error) {
		if line, err = transfer.ToExtended(line[:0], e.document(doc)); err != nil {
			return named(doc, err)
		}
		line = append(line, '\n')
		_, err = w.Write(line)
		if cap(line) > 1<<20 {
			line = nil
		}
		return err
	})
}

// maxDumpHashes bounds the contents that an export remembers, to write each only once.
// RavenDB accepts repeated contents.
const maxDumpHashes = 1 << 16

// writeDump writes a RavenDB dump. The revisions come first, where an import by Jay
// needs them.
func (e *exporter) writeDump(ctx context.Context, w io.Writer) error {
	counters, err := e.db.Counters(ctx)
	if err != nil {
		return err
	}
	dump, err := transfer.NewDumpWriter(w, filepath.Base(e.summary.database))
	if err != nil {
		return err
	}
	if err := e.writeDumpRevisions(ctx, dump); err != nil {
		return err
	}
	if err := dump.Section(transfer.DumpDocuments); err != nil {
		return err
	}
	written := make(map[string]struct{})
	err = e.eachExported(ctx, func(doc *jay.Document) error {
		for _, at := range doc.Metadata().Attachments {
			if _, found := written[at.Hash]; found {
				continue
			}
			if len(written) == maxDumpHashes {
				clear(written)
			}
			written[at.Hash] = struct{}{}
			if err := e.writeContent(ctx, dump, doc.ID(), at); err != nil {
				return err
			}
		}
		text, err := doc.MarshalJSON()
		if err != nil {
			return err
		}
		return dump.Item(text)
	})
	if err != nil {
		return err
	}
	if err := dump.Section(transfer.DumpIdentities); err != nil {
		return err
	}
	for _, prefix := range slices.Sorted(maps.Keys(counters.Identities)) {
		if err := dump.Identity(prefix, counters.Identities[prefix]); err != nil {
			return err
		}
	}
	if e.collection == "" {
		if err := e.writeDumpExchanges(ctx, dump); err != nil {
			return err
		}
	}
	return dump.Close()
}

// writeDumpExchanges writes the section of the compare-exchange values.
func (e *exporter) writeDumpExchanges(ctx context.Context, dump *transfer.DumpWriter) error {
	if err := dump.Section(transfer.DumpCompareExchange); err != nil {
		return err
	}
	return eachExchange(ctx, e.db, "", "", 0, func(v *jay.CompareExchangeValue) error {
		var value, item bytes.Buffer
		if err := writeLine(&value, exchangeValue{v.Value, v.Metadata}); err != nil {
			return err
		}
		if err := writeLine(&item, dumpExchange{v.Key, strings.TrimSpace(value.String())}); err != nil {
			return err
		}
		return dump.Item(bytes.TrimSpace(item.Bytes()))
	})
}

// writeDumpRevisions writes the section of the revisions, if there are any.
func (e *exporter) writeDumpRevisions(ctx context.Context, dump *transfer.DumpWriter) error {
	for rev, err := range e.db.Revisions().All(ctx, e.collection) {
		if err != nil {
			return err
		}
		if e.summary.Revisions == 0 {
			if err := dump.Section(transfer.DumpRevisions); err != nil {
				return err
			}
		}
		e.summary.Revisions++
		text, err := rev.MarshalJSON()
		if err != nil {
			return err
		}
		if err := dump.Item(text); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) writeContent(ctx context.Context, dump *transfer.DumpWriter, id string, at jay.Attachment) error {
	r, err := e.db.Attachments(id).Get(ctx, at.Name)
	if err != nil {
		return err
	}
	return andThen(dump.Attachment(at.Hash, dumpTag+at.Hash, at.Size, contextReader{ctx, r}), r.Close())
}

// sqliteBatch is the number of rows that one transaction of an export to SQLite
// inserts.
const sqliteBatch = 50_000

// writeSQLite makes a SQLite database in a new file.
func (e *exporter) writeSQLite(ctx context.Context, name, table string, columns bool) (err error) {
	// Without a journal: a file that is not complete is removed.
	uri, err := sqliteURI(name, "_pragma=journal_mode(off)&_pragma=synchronous(off)&_pragma=cache_size(-16000)&_pragma=locking_mode(exclusive)")
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = andThen(err, db.Close()) }()
	view := quoteSQL(table + "_columns")
	table = quoteSQL(table)
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+table+" (id TEXT NOT NULL PRIMARY KEY, collection TEXT NOT NULL, metadata JSON, body JSON NOT NULL)"); err != nil {
		return fmt.Errorf("SQLite: %w", err)
	}
	var tx *sql.Tx
	var insert *sql.Stmt
	commit := func() error {
		if tx == nil {
			return nil
		}
		err := errors.Join(insert.Close(), tx.Commit())
		tx = nil
		return err
	}
	defer func() {
		if tx != nil {
			err = andThen(err, tx.Rollback())
		}
	}()
	rows := 0
	err = e.eachExported(ctx, func(doc *jay.Document) (err error) {
		if rows%sqliteBatch == 0 {
			if err := commit(); err != nil {
				return err
			}
			if tx, err = db.BeginTx(ctx, nil); err != nil {
				return err
			}
			if insert, err = tx.PrepareContext(ctx, "INSERT INTO "+table+" VALUES (?, ?, ?, ?)"); err != nil {
				return err
			}
		}
		rows++
		d := e.document(doc)
		collection, metadata := d.Collection, any(nil)
		if collection == "@empty" {
			collection = ""
		}
		if len(d.Custom) > 2 {
			metadata = string(d.Custom)
		}
		e.wrote(len(d.Body))
		_, err = insert.ExecContext(ctx, d.ID, collection, metadata, string(d.Body))
		return err
	})
	if err == nil {
		err = commit()
	}
	if err == nil && columns {
		err = e.addView(ctx, db, table, view)
	}
	if err != nil {
		return fmt.Errorf("SQLite: %w", err)
	}
	return nil
}

// addView adds a view with a column for each field. It is a view because the table
// keeps the documents as they are, and SQLite's numbers would lose digits.
func (e *exporter) addView(ctx context.Context, db *sql.DB, table, view string) error {
	var columns transfer.CSVColumns
	err := eachDocument(ctx, e.db, jay.Scan{Collection: e.collection}, func(doc *jay.Document) error {
		return named(doc, columns.Add(&transfer.Document{Body: doc.Body()}))
	})
	if err != nil {
		return err
	}
	fields, err := columns.Fields()
	if err != nil {
		return err
	}
	if len(fields)+2 > maxSQLiteColumns {
		return fmt.Errorf("a view has at most %d columns, the documents need %d: export without --columns", maxSQLiteColumns, len(fields)+2)
	}
	statement := "CREATE VIEW " + view + " AS SELECT id, collection"
	for _, f := range fields {
		path := "$"
		for _, key := range f.Path {
			path += `."` + key + `"`
		}
		if strings.Count(path, `"`) != 2*len(f.Path) || strings.Contains(path, `\`) {
			e.unnamed++ // SQLite's paths cannot name such a key
			continue
		}
		get := "->>"
		if f.Type == "json" {
			get = "->"
		}
		statement += ", body " + get + " '" + strings.ReplaceAll(path, "'", "''") + "' AS " + quoteSQL(strings.Join(f.Path, "."))
	}
	_, err = db.ExecContext(ctx, statement+" FROM "+table)
	return err
}

// leftOut prints notes about everything that the format of an export cannot hold.
func (e *exporter) leftOut(ctx context.Context, a *app, format exchangeFormat) error {
	var what []string
	if e.attachments > 0 {
		what = append(what, count(e.attachments, "attachment"))
	}
	if format != formatDump {
		for _, err := range e.db.Revisions().All(ctx, e.collection) {
			if err != nil {
				return err
			}
			what = append(what, "revisions")
			break
		}
	}
	if e.collection == "" { // only an export of all documents would include these
		values, err := e.db.CompareExchange().List(ctx, "", "", 1)
		if err != nil {
			return err
		}
		if len(values) > 0 && format != formatDump {
			what = append(what, "compare-exchange values")
		}
		subs, err := e.db.Subscriptions().List(ctx)
		if err != nil {
			return err
		}
		if len(subs) > 0 {
			what = append(what, count(int64(len(subs)), "subscription"))
		}
	}
	if e.unnamed > 0 {
		a.note("%s with a quote or a backslash in the name left out of the view", count(e.unnamed, "field"))
	}
	if len(what) > 0 {
		a.note("%s has no place for %s: only ndjson and json have all", format, strings.Join(what, ", "))
	}
	return nil
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
