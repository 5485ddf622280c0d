package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jaydb/jay/transfer"
)

// exchangeFormat is the form of an import or an export.
type exchangeFormat string

const (
	formatNDJSON   exchangeFormat = "ndjson"
	formatJSON     exchangeFormat = "json"
	formatCSV      exchangeFormat = "csv"
	formatExtended exchangeFormat = "extjson"
	formatDump     exchangeFormat = "ravendbdump"
	formatSQLite   exchangeFormat = "sqlite"
)

// formatHelp explains the formats in the help of import and export.
const formatHelp = `The format follows from the file's name, or --format says it: .ndjson and .jsonl, .json, .csv and .tsv, .ejson (MongoDB's Extended JSON v2), .ravendbdump (RavenDB's export), .sqlite; ndjson for any other. A further .gz or .zst is compression.`

// extensions are the formats of file names.
var extensions = map[string]exchangeFormat{
	".ndjson": formatNDJSON, ".jsonl": formatNDJSON, ".json": formatJSON, ".csv": formatCSV, ".tsv": formatCSV,
	".ejson": formatExtended, ".ravendbdump": formatDump, ".sqlite": formatSQLite, ".sqlite3": formatSQLite,
}

// formatOf returns the requested format, or that of the file's name.
func formatOf(name, asked string) exchangeFormat {
	if asked != "" {
		return exchangeFormat(asked)
	}
	_, name = transfer.Compressed(name)
	if f, found := extensions[strings.ToLower(filepath.Ext(name))]; found {
		return f
	}
	return formatNDJSON
}

// commaOf returns the byte between the cells of a CSV file.
func commaOf(name, asked string) (byte, error) {
	switch {
	case len(asked) == 1 && asked[0] >= ' ' && asked[0] < 0x7f && asked != `"`, asked == "\t":
		return asked[0], nil
	case asked == "tab", asked == `\t`:
		return '\t', nil
	case asked != "":
		return 0, usageError{text: fmt.Sprintf("--delimiter is one ASCII character, or tab, and no quote; got %q", asked)}
	}
	_, name = transfer.Compressed(name)
	if strings.EqualFold(filepath.Ext(name), ".tsv") {
		return '\t', nil
	}
	return ',', nil
}
