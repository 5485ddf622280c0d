//go:build cgo

package engine

import (
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

var mattnMaker = Maker{
	Name:     "sqlite-mattn",
	Module:   "github.com/mattn/go-sqlite3",
	Synced:   sqliteSynced,
	Unsynced: sqliteUnsynced,
	Notes:    sqliteNotes + " SQLite in C, by way of cgo.",
	Queries:  true,
	Open: func(s Settings) (Engine, error) {
		return openSQLite("sqlite3", mattnAddress, s)
	},
}

func mattnAddress(file string, pragmas [][2]string) string {
	return address(file, pragmas, func(name, value string) (string, string) { return "_" + name, value })
}
