package main

// ofClients are changes to how the server answers RavenDB's clients for Python, Java and .NET, and to what meets in it.
var ofClients = []mutation{
	{
		name:  "clients: a second question mark is a parameter",
		edits: []edit{{"server/internal/serve/params.go", `part == "" || part == "?" {`, `part == "" {`}},
		tests: []tests{{"server", "TestPython_BatchOptions$"}},
	},
	{
		name:  "clients: a member that asks for something is passed over",
		edits: []edit{{"server/internal/serve/decode.go", "if !known && !IsEmpty(m.text[value:m.at]) {", "if value < 0 {"}},
		tests: []tests{{"server", "TestPython_Databases$|TestPython_Indexes$"}},
	},
	{
		name:  "clients: any window of zstd",
		edits: []edit{{"server/internal/serve/unpack.go", "if window > maxZstdWindow {", "if window > 1<<40 {"}},
		tests: []tests{{"server", "TestCSharp_PackedBounds$"}},
	},
	{
		name:  "clients: parts of a batch are not unpacked",
		edits: []edit{{"server/internal/serve/unpack.go", "if packing(encoding) == \"\" {", "if packing(encoding) != \"none\" {"}},
		tests: []tests{{"server", "TestCSharp_PackedBodies$"}},
	},
	{
		name:  "clients: a socket does not say what it has",
		edits: []edit{{"server/internal/serve/hub.go", "\tk.enqueue(features)\n", ""}},
		tests: []tests{{"server", "TestCSharp_Changes$"}},
	},
	{
		name:  "server: a batch is committed, and then its revision is refused",
		edits: []edit{{"server/internal/raven/batchtx.go", "\t\treturn checkForced(c, tx, request)\n", "\t\treturn nil\n"}},
		tests: []tests{{"server", "TestBatch_ForceRevisionOfMissing$"}},
	},
	{
		name:  "server: a connection whose context has ended takes further requests",
		edits: []edit{{"server/internal/serve/body.go", "\t\tif !stopped {\n\t\t\tcloseConnection(r, reply)\n", "\t\tif !stopped {\n"}, {"server/internal/serve/handle.go", "\t\tif r.Context().Err() != nil {\n", "\t\tif false {\n"}},
		tests: []tests{{"server", "TestOwn_Import_KilledAtTheEnd$"}},
	},
	{
		name:  "server: a document is included once for each spelling of its ID",
		edits: []edit{{"server/internal/raven/reading.go", "if f.written[doc.ID()] {", "if false {"}},
		tests: []tests{{"server", "TestDocuments_IncludesOnce$"}},
	},
	{
		name:  "clients: an empty list is no object",
		edits: []edit{{"server/internal/serve/decode.go", "\tif IsEmptyList(text) {\n\t\t*o = nil", "\tif false {\n\t\t*o = nil"}},
		tests: []tests{{"server", "TestPHP_EmptyObjects$"}},
	},
	{
		name:  "clients: a name with a hyphen is a subtraction",
		edits: []edit{{"server/internal/raven/hyphens.go", "\tif !strings.Contains(text, \"-\") {", "\tif text != \"\" {"}},
		tests: []tests{{"server", "TestCSharp_Hyphens$"}, {"server/internal/raven", "TestQuoteHyphens"}},
	},
	{
		name:  "scripts: an alias in quotes is a member in front of a path",
		edits: []edit{{"query/rql_field.go", "p.quoted && start.kind == tokenText", "false"}},
		tests: []tests{{"tests/query", "TestScript$"}, {"query", "TestParse_Dialogues$"}},
	},
	{
		name:  "scripts: a load that begins with an earlier one reads the document",
		edits: []edit{{"internal/exec/scripted.go", "\t\tif l.From == \"\" {", "\t\tif true {"}},
		tests: []tests{{"tests/query", "TestScript$"}},
	},
	{
		name:  "server: of a database that is read only the files can be deleted",
		edits: []edit{{"server/internal/serve/databases.go", "\tif ds.opts.Database.ReadOnly {\n\t\treturn jay.ErrReadOnly\n", "\tif false {\n\t\treturn jay.ErrReadOnly\n"}},
		tests: []tests{{"server", "TestDatabases_DeletionReadOnly$"}},
	},
	{
		name:  "imports: rejected records are not synced",
		edits: []edit{{"transfer/smuggler/rejects.go", "\tif !can || !r.unsynced {", "\tif !can || r.unsynced {"}},
		tests: []tests{{"cmd/jay", "TestFormats_RejectsAfterKill$"}},
	},
}
