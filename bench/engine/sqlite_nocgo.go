//go:build !cgo

package engine

import "errors"

var mattnMaker = Maker{
	Name:     "sqlite-mattn",
	Module:   "github.com/mattn/go-sqlite3",
	Synced:   sqliteSynced,
	Unsynced: sqliteUnsynced,
	Notes:    sqliteNotes + " SQLite in C, by way of cgo.",
	Missing:  "built without cgo: it needs CGO_ENABLED=1 and a C compiler",
	Queries:  true,
	Open: func(Settings) (Engine, error) {
		return nil, errors.New("built without cgo")
	},
}
