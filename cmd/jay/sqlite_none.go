//go:build nosqlite

package main

import (
	"context"

	"github.com/jaydb/jay/transfer/smuggler"
)

var errNoSQLite = errLeftOut{part: "SQLite's format", tag: "nosqlite"}

func (*importCommand) loadSQLite(context.Context, *smuggler.Importer, smuggler.Input, *progress) error {
	return errNoSQLite
}

func (*exportCommand) sqliteFormat(*int64) *smuggler.Format {
	format := *sqliteFormat
	format.WriteFile = func(context.Context, *smuggler.Exporter, string) error {
		return errNoSQLite
	}
	return &format
}
