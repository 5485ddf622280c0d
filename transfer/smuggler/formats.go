package smuggler

// The formats of this package.
var (
	NDJSON = &Format{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, MediaType: "application/x-ndjson; charset=utf-8", Whole: true, Open: openLines, Write: writeLines, lines: true}

	JSON = &Format{Name: "json", Extensions: []string{".json"}, MediaType: "application/json; charset=utf-8", Whole: true, Open: openLines, Write: writeArray, lines: true}

	CSV = &Format{Name: "csv", Extensions: []string{".csv", ".tsv"}, MediaType: "text/csv; charset=utf-8", Open: openCSV, Write: writeCSV}

	ExtendedJSON = &Format{Name: "extjson", Extensions: []string{".ejson"}, MediaType: "application/x-ndjson; charset=utf-8", Open: openExtended, Write: writeExtended}

	RavenDBDump = &Format{Name: "ravendbdump", Extensions: []string{".ravendbdump"}, MediaType: "application/octet-stream", Write: writeDump, dump: true}
)

// All returns the formats of this package.
func All() Formats { return Formats{NDJSON, JSON, CSV, ExtendedJSON, RavenDBDump} }
