package main

import (
	"github.com/jaydb/jay/transfer/smuggler"
)

// formatHelp explains the formats in the help of import and export.
const formatHelp = `The format follows from the file's name, or --format says it: .ndjson and .jsonl, .json, .csv and .tsv, .ejson (MongoDB's Extended JSON v2), .ravendbdump (RavenDB's export), .sqlite; ndjson for any other. A further .gz or .zst is compression.`

// formats are the formats of imports and exports: those of package smuggler, and SQLite,
// which only the command knows.
var formats = append(smuggler.All(), sqliteFormat)

// sqliteFormat is the format of SQLite's databases.
var sqliteFormat = &smuggler.Format{Name: "sqlite", Extensions: []string{".sqlite", ".sqlite3"}}

// formatOf returns the requested format, which is one of formats, or that of the file's
// name.
func formatOf(name, asked string) *smuggler.Format {
	if f, err := formats.Named(asked); asked != "" && err == nil {
		return f
	}
	return formats.OfFile(name)
}

// commaOf returns the byte between the cells of a CSV file.
func commaOf(name, asked string) (byte, error) {
	comma, err := smuggler.Comma(asked, name)
	if err != nil {
		return 0, usageError{text: "--delimiter: " + oneLine(err)}
	}
	return comma, nil
}
