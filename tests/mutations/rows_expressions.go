package main

// expressed are changes of indexes of expressions, and of errors of documents.
var expressed = []mutation{
	{
		name:  "index expressions: the value depends on the other indexes",
		edits: []edit{{"internal/catalog/catalog.go", "\treader.Apart()\n", ""}},
		tests: []tests{{"internal/catalog", "TestIndex_ComputesTooMuch"}},
	},
	{
		name:  "index expressions: a scan along an index meets the notes of errors",
		edits: []edit{{"internal/plan/path.go", "r.Hi = format.EntriesEnd(r.Lo)", "r.Hi = format.PrefixEnd(r.Lo)"}},
		tests: []tests{{"internal/kindtest", "TestOrdered_Expressions$"}},
	},
	{
		name:  "index expressions: a member of an older record becomes an expression",
		edits: []edit{{"internal/catalog/field.go", "e.Fields[i] = pathText(path) + as", "e.Fields[i] = path.String() + as"}},
		tests: []tests{{"internal/catalog", "TestRecordEntry_OlderMember"}},
	},
	{
		name:  "index expressions: the format does not rise",
		edits: []edit{{"internal/catalog/catalog.go", "if ix.computes() || ix.Errors {", "if false {"}},
		tests: []tests{{"internal/catalog", "TestIndex_Expression_FormatRises"}},
	},
	{
		name:  "index expressions: lower and upper are kept",
		edits: []edit{{"internal/catalog/field.go", "if slices.Contains(unstable, name) {", "if false {"}},
		tests: []tests{{"internal/catalog", "TestCanonical_Fields_Refused"}},
	},
	{
		name:  "index expressions: lower and upper are kept in conditions on elements",
		edits: []edit{{"internal/catalog/field.go", "inner = []query.Expr{e.Where}", "inner = nil"}},
		tests: []tests{{"tests/query", "TestIndex_Bounds"}},
	},
	{
		name:  "errors of documents: an ordered index notes none",
		edits: []edit{{"internal/catalog/errors.go", "if err := fs.refusal(ix); err != nil || fs.which == 0 || !ix.Errors {", "if err := fs.refusal(ix); err != nil || fs.which == 0 || ix.Ordered {"}},
		tests: []tests{{"internal/catalog", "TestIndexErrors$"}},
	},
	{
		name:  "errors of documents: the note of groups stays when its document is repaired",
		edits: []edit{{"internal/groups/stage.go", "\tcase note == nil:\n\t\ttx.Delete(", "\tcase note == nil:\n\t\t_ = string("}},
		tests: []tests{{"internal/catalog", "TestIndexErrors$"}},
	},
	{
		name:  "errors of documents: a strict index notes them",
		edits: []edit{{"internal/catalog/errors.go", "\tif !ix.Strict {\n", "\tif true {\n"}},
		tests: []tests{{"internal/catalog", "TestIndex_Strict"}},
	},
}
