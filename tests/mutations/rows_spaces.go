package main

// spaces are changes that forget a key space, or what one needs.
var spaces = []mutation{
	{
		name:  "a key space has no row in the table",
		edits: []edit{{"internal/format/spaces.go", "\t{SpaceExchange, \"compare-exchange values\", \"exchange\", Original, CarriedWhole, ShortValues, KeptByRetag, DiskOther},\n", ""}},
		tests: []tests{{"internal/format", "TestSpaces"}},
	},
	{
		name:  "Verify has no words for the keys of a space",
		edits: []edit{{"internal/verify/spaces.go", "\tformat.SpaceExchange:     {describe: named(\"compare-exchange value %q\")},\n", ""}},
		tests: []tests{{"internal/verify", "TestSpaces"}},
	},
	{
		name:  "no step of Verify reads a space",
		edits: []edit{{"internal/verify/numbers.go", "\treturn v.readAll(format.SpaceExchange, v.exchange)\n", "\treturn nil\n"}},
		tests: []tests{{"internal/verify", "TestSpaces"}},
	},
	{
		name:  "Verify has no kind of damage for what a document needs in a space",
		edits: []edit{{"internal/verify/spaces.go", "{describe: describeDue, missing: TimeMissing, wrong: TimeWrong}", "{describe: describeDue}"}},
		tests: []tests{{"internal/verify", "TestSpaces"}},
	},
	{
		name:  "a repair copies nothing of a space that is original",
		edits: []edit{{"internal/salvage/salvage.go", "\tlo, hi = space(format.SpaceExchange)\n", "\tlo, hi = space(format.SpaceIdentity)\n"}},
		tests: []tests{{"internal/salvage", "TestSpaces"}},
	},
	{
		name:  "an incremental backup has no part for what has changed in a space",
		edits: []edit{{"internal/backup/source.go", "\t{format.SpaceChunks, (*Source).streamed},\n", ""}},
		tests: []tests{{"internal/backup", "TestSpaces"}},
	},
	{
		name:  "the reader of an incremental backup derives nothing in a space that follows from documents",
		edits: []edit{{"internal/backup/apply.go", "\tif !format.IsClustered(id, collection, foldedSeparator) {\n\t\tfn(", "\tif false {\n\t\tfn("}},
		tests: []tests{{"internal/backup", "TestSpaces"}},
	},
	{
		name:  "a backup carries a space that is built anew",
		edits: []edit{{"internal/format/spaces.go", "\"catalog\", Derived, NotCarried,", "\"catalog\", Derived, CarriedWhole,"}},
		tests: []tests{{"internal/backup", "TestSpaces"}},
	},
	{
		name:  "a new tag changes nothing in a space that it should change",
		edits: []edit{{"internal/settings/retag.go", "\tformat.SpaceHiLo: voidLeases,\n", ""}},
		tests: []tests{{"internal/settings", "TestSpaces"}},
	},
	{
		name:  "a space is measured under another heading",
		edits: []edit{{"internal/format/spaces.go", "KeptByRetag, DiskRevisions}", "KeptByRetag, DiskOther}"}},
		tests: []tests{{".", "TestDiskUsage"}},
	},
	{
		name:  "the leases of ranges stay in a space that a new tag should change",
		edits: []edit{{"internal/settings/retag.go", "\t\tmarks.Leases = nil\n", "\t\t_ = marks.Leases\n"}},
		tests: []tests{{"internal/recovery", "TestSpaces"}},
	},
	{
		name:  "a definition does not raise the format",
		edits: []edit{{"internal/definitions/definitions.go", "\ttx.RequireFeature(storage.FeatureDefinitions)\n", ""}},
		tests: []tests{{"internal/definitions", "TestDefinitions"}},
	},
	{
		name:  "an index that is a condition as utc does not raise the format",
		edits: []edit{{"internal/catalog/catalog.go", "\t\tslices.ContainsFunc(query.Fields(ix.Filter), func(f query.Field) bool { return slices.ContainsFunc(f.Operands(), isUTC) })\n", "\t\tfalse\n"}},
		tests: []tests{{"internal/indexer", "TestUTC_Format"}},
	},
	{
		name:  "a condition as date uses an index as utc",
		edits: []edit{{"internal/catalog/catalog.go", "f.Date == field.Date && f.UTC == field.UTC && f.HasPath(field)", "f.Date == field.Date && f.HasPath(field)"}},
		tests: []tests{{"tests/query", "TestUTC_Index"}},
	},
	{
		name:  "a definition that is there is replaced by one for a missing one",
		edits: []edit{{"internal/definitions/definitions.go", "c.Value == nil, there && c.IfMissing:", "c.Value == nil:"}},
		tests: []tests{{"internal/definitions", "TestDefinitions"}},
	},
}
