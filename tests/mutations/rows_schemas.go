package main

// schemaRules are changes of the rules about the shape of documents: when a document is checked.
var schemaRules = []mutation{
	{
		name:  "schemas: the report on a renamed collection is that of the documents that moved first",
		edits: []edit{{"internal/schemas/change.go", "if there == nil || last {", "if there == nil {"}},
		tests: []tests{{"internal/schemas", "TestRename_Report"}},
	},
	{
		name:  "schemas: documents are validated before the transactions that have begun with other rules have ended",
		edits: []edit{{"internal/schemas/pass.go", "if err := passWrites(ctx, p.env); err != nil {", "if err := error(nil); err != nil {"}},
		tests: []tests{{"internal/schemas", "TestRule_SetBesideLooks"}},
	},
	{
		name:  "schemas: only documents that are on disk are validated",
		edits: []edit{{"internal/schemas/pass.go", "walk(ctx, p.docs, p.env.Engine.Latest,", "walk(ctx, p.docs, p.env.Engine.Snapshot,"}},
		tests: []tests{{"internal/schemas", "TestRule_SetBesideLooks"}},
	},
	{
		name:  "schemas: a transaction does not look for another rule",
		edits: []edit{{"internal/write/schema.go", "if o.rule != t.schemas().Of(o.FoldedCollection) {", "if false && o.rule != t.schemas().Of(o.FoldedCollection) {"}},
		tests: []tests{{"internal/schemas", "TestRule_SetInTransaction"}},
	},
	{
		name:  "schemas: another process does not learn of a rule",
		edits: []edit{{"internal/format/records.go", "\tLastDefinitionKey(),\n", ""}},
		tests: []tests{{"internal/schemas", "TestMeetings_SharedStore"}},
	},
	{
		name:  "schemas: what a patch makes is not checked",
		edits: []edit{{"internal/write/schema.go", "if g.rule != nil && g.changed {", "if false && g.rule != nil && g.changed {"}},
		tests: []tests{{"internal/schemas", "TestRule_EveryWrite"}},
	},
	{
		name:  "schemas: a refresh is checked",
		edits: []edit{{"internal/write/schema.go", "	if o.due != nil {\n		return\n	}\n", ""}},
		tests: []tests{{"internal/schemas", "TestWays_Sweep"}},
	},
	{
		name:  "schemas: the validation in the background is given up after an error",
		edits: []edit{{"internal/schemas/pass.go", "case <-timer.C:\n\t\t\tp.Wake()\n", "case <-timer.C:\n"}},
		tests: []tests{{"internal/schemas", "TestPass_AfterAnError"}},
	},
	{
		name:  "jsonschema: formats are annotations",
		edits: []edit{{"schema/jsonschema/compiler.go", "	l.AssertFormat()\n", ""}},
		tests: []tests{{"schema/jsonschema", "TestSuite"}},
	},
	{
		name:  "server: all violations of a document are listed, however many bytes they have",
		edits: []edit{{"server/internal/serve/errors.go", "size > schema.MaxReportedBytes {", "size < 0 {"}},
		tests: []tests{{"server", "TestSchemas_Validate"}},
	},
	{
		name:  "schemas: an import ends at a document that violates a schema",
		edits: []edit{{"transfer/smuggler/errors.go", "jay.ErrCollection, jay.ErrSchema, ", "jay.ErrCollection, "}},
		tests: []tests{{"transfer/smuggler", "TestImporter_Schemas"}},
	},
	{
		name:  "schemas: each process validates",
		edits: []edit{{"internal/schemas/pass.go", "p.mine, err = p.env.Does(ctx, validating)", "p.mine, err = true, error(nil)"}},
		tests: []tests{{"tests/shared", "TestValidating_OneProcess"}},
	},
	{
		name:  "schemas: a process keeps the work of validating",
		edits: []edit{{"internal/schemas/pass.go", "p.env.Works.Leave(ctx, validating)", "error(nil)"}},
		tests: []tests{{"tests/shared", "TestValidating_OneProcess"}},
	},
	{
		name:  "schemas: no process looks for rules that others have set",
		edits: []edit{{"internal/schemas/pass.go", "\t\tp.looks.Every(Look, p.look)\n", "\t\t_ = p.look\n"}},
		tests: []tests{{"tests/shared", "TestValidating_OneProcess"}},
	},
}
