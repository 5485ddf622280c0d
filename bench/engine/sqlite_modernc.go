package engine

import (
	"fmt"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

var moderncMaker = Maker{
	Name:     "sqlite-modernc",
	Module:   "modernc.org/sqlite",
	Synced:   sqliteSynced,
	Unsynced: sqliteUnsynced,
	Notes:    sqliteNotes + " SQLite translated into Go.",
	Queries:  true,
	Open: func(s Settings) (Engine, error) {
		return openSQLite("sqlite", moderncAddress, s)
	},
}

func moderncAddress(file string, pragmas [][2]string) string {
	return address(file, pragmas, func(name, value string) (string, string) {
		return "_pragma", fmt.Sprintf("%s(%s)", name, value)
	})
}
