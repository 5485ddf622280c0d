package main

// schemaRules are changes of the rules about the shape of documents: when a document is checked.
var schemaRules = []mutation{
	{
		name:  "schemas: a transaction does not look for another rule",
		edits: []edit{{"internal/write/schema.go", "if o.rule != t.schemas().Of(o.FoldedCollection) {", "if false && o.rule != t.schemas().Of(o.FoldedCollection) {"}},
		tests: []tests{{"internal/schemas", "TestRule_SetInTransaction"}},
	},
	{
		name:  "schemas: another process does not learn of a rule",
		edits: []edit{{"internal/core/open.go", "db.shared.Remembers = schemas.IsRule", "_ = schemas.IsRule"}},
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
		name:  "schemas: an import ends at a document that violates a schema",
		edits: []edit{{"transfer/smuggler/errors.go", "jay.ErrCollection, jay.ErrSchema, ", "jay.ErrCollection, "}},
		tests: []tests{{"transfer/smuggler", "TestImporter_Schemas"}},
	},
}
