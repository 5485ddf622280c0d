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
}
