//go:build cgo && sqlite_fts5

package main

import (
	"database/sql"
	"errors"
	"os"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

// fts5 is SQLite with a table of FTS5 that has the texts.
type fts5 struct {
	db   *sql.DB
	file string
}

func openFTS5(file string) (engine, error) {
	db, err := sql.Open("sqlite3", file+"?_journal_mode=WAL&_synchronous=FULL&_cache_size=-65536")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE VIRTUAL TABLE notes USING fts5(text, tokenize = 'ascii')")
	return &fts5{db, file}, err
}

func (e *fts5) load(texts []string) error {
	tx, err := e.db.Begin()
	if err != nil {
		return err
	}
	insert, err := tx.Prepare("INSERT INTO notes (text) VALUES (?)")
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	for _, text := range texts {
		if _, err := insert.Exec(text); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (e *fts5) size() (int64, error) {
	if _, err := e.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return 0, err
	}
	info, err := os.Stat(e.file)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (e *fts5) top(q asked) (n int, err error) {
	rows, err := e.db.Query("SELECT rowid, text FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT 10", q.fts5)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		var id int64
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return n, errors.Join(err, rows.Close())
		}
		n++
	}
	return n, errors.Join(rows.Err(), rows.Close())
}

func (e *fts5) count(q asked) (n int, err error) {
	return n, e.db.QueryRow("SELECT count(*) FROM notes WHERE notes MATCH ?", q.fts5).Scan(&n)
}

func (e *fts5) close() error { return e.db.Close() }
