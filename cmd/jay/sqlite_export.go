//go:build !nosqlite

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay/transfer"
	"github.com/jaydb/jay/transfer/smuggler"
)

// sqliteBatch is the number of rows that one transaction of an export to SQLite
// inserts.
const sqliteBatch = 50_000

// sqliteFormat returns the format of SQLite with what the flags ask for. It counts the
// fields that a view cannot have.
func (c *exportCommand) sqliteFormat(unnamed *int64) *smuggler.Format {
	format := *sqliteFormat
	format.WriteFile = func(ctx context.Context, e *smuggler.Exporter, path string) (err error) {
		*unnamed, err = writeSQLite(ctx, e, path, c.Table, c.Columns)
		return err
	}
	return &format
}

// writeSQLite makes a SQLite database in a new file. It returns the number of fields that
// the view of the columns lacks.
func writeSQLite(ctx context.Context, e *smuggler.Exporter, name, table string, columns bool) (unnamed int64, err error) {
	// Without a journal: a file that is not complete is removed.
	uri, err := sqliteURI(name, "_pragma=journal_mode(off)&_pragma=synchronous(off)&_pragma=cache_size(-16000)&_pragma=locking_mode(exclusive)")
	if err != nil {
		return 0, err
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return 0, err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = andThen(err, db.Close()) }()
	view := quoteSQL(table + "_columns")
	table = quoteSQL(table)
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+table+" (id TEXT NOT NULL PRIMARY KEY, collection TEXT NOT NULL, metadata JSON, body JSON NOT NULL)"); err != nil {
		return 0, fmt.Errorf("SQLite: %w", err)
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
	err = e.Each(ctx, func(one smuggler.Exported) (err error) {
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
		d := e.Bare(one)
		collection, metadata := d.Collection, any(nil)
		if collection == "@empty" {
			collection = ""
		}
		if len(d.Custom) > 2 {
			metadata = string(d.Custom)
		}
		e.Wrote(len(d.Body))
		_, err = insert.ExecContext(ctx, d.ID, collection, metadata, string(d.Body))
		return err
	})
	if err == nil {
		err = commit()
	}
	if err == nil && columns {
		unnamed, err = addView(ctx, e, db, table, view)
	}
	if err != nil {
		return 0, fmt.Errorf("SQLite: %w", err)
	}
	return unnamed, nil
}

// addView adds a view with a column for each field. It is a view because the table
// keeps the documents as they are, and SQLite's numbers would lose digits. It returns the
// number of fields without one.
func addView(ctx context.Context, e *smuggler.Exporter, db *sql.DB, table, view string) (unnamed int64, err error) {
	var columns transfer.CSVColumns
	err = e.Look(ctx, func(one smuggler.Exported) error {
		return columns.Add(&transfer.Document{Body: one.Document.Body()})
	})
	if err != nil {
		return 0, err
	}
	fields, err := columns.Fields()
	if err != nil {
		return 0, err
	}
	if len(fields)+2 > maxSQLiteColumns {
		return 0, fmt.Errorf("a view has at most %d columns, the documents need %d: export without --columns", maxSQLiteColumns, len(fields)+2)
	}
	statement := "CREATE VIEW " + view + " AS SELECT id, collection"
	for _, f := range fields {
		path := "$"
		for _, key := range f.Path {
			path += `."` + key + `"`
		}
		if strings.Count(path, `"`) != 2*len(f.Path) || strings.Contains(path, `\`) {
			unnamed++ // SQLite's paths cannot name such a key
			continue
		}
		get := "->>"
		if f.Type == "json" {
			get = "->"
		}
		statement += ", body " + get + " '" + strings.ReplaceAll(path, "'", "''") + "' AS " + quoteSQL(strings.Join(f.Path, "."))
	}
	_, err = db.ExecContext(ctx, statement+" FROM "+table)
	return unnamed, err
}
