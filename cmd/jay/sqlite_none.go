//go:build nosqlite

package main

import (
	"context"

	"github.com/jaydb/jay/transfer/smuggler"
)

func (*importCommand) loadSQLite(context.Context, *smuggler.Importer, smuggler.Input, *progress) error {
	return errLeftOut{part: "SQLite's format", tag: "nosqlite"}
}

func (*exportCommand) sqliteFormat(*int64) *smuggler.Format {
	format := *sqliteFormat
	format.WriteFile = func(context.Context, *smuggler.Exporter, string) error {
		return errLeftOut{part: "SQLite's format", tag: "nosqlite"}
	}
	return &format
}
