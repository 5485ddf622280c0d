package main

// querying are changes to plans, indexes and their entries.
var querying = []mutation{
	{
		name:  "a range that holds too much is taken for exact",
		edits: []edit{{"internal/plan/binding.go", "\t\tb.recheck = b.recheck || r.Recheck\n", ""}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_RangeHoldsTooMuch$"}},
	},
	{
		name:  "a multikey order is trusted",
		edits: []edit{{"internal/plan/path.go", "\tif a.flags&(catalog.FlagMultiple|catalog.FlagCut) != 0 {\n\t\treturn orderNone", "\tif a.flags&catalog.FlagCut != 0 {\n\t\treturn orderNone"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_OrderOfSeveralEntries$"}},
	},
	{
		name:  "a partial index is used without its condition",
		edits: []edit{{"internal/plan/binding.go", "\t\tif !p.requires(needed) {", "\t\tif false && !p.requires(needed) {"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$"}},
	},
	{
		name:  "ties in the wrong direction",
		edits: []edit{{"internal/plan/path.go", "idsDescending := a.Index.LastDescending() != (match == orderReverse)", "idsDescending := a.Index.LastDescending() == (match == orderReverse)"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$"}},
	},
	{
		name:  "an entry counts as covering though its value comes from an array of one element",
		edits: []edit{{"internal/catalog/extract.go", "\t\tc.single = c.single && x.reader.Single(slot)\n", "\t\t_ = slot\n"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "an entry counts as covering though its value has another JSON text",
		edits: []edit{{"internal/catalog/extract.go", "covering && !truncated && query.Recoverable(v)", "covering && !truncated"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "an entry counts as covering though the ID has other capitals",
		edits: []edit{{"internal/catalog/entries.go", "dst, cased = appendCase(dst, id, folded)", "dst, cased = appendCase(dst, folded, folded)"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "a missing value of a covering entry counts as null",
		edits: []edit{{"internal/plan/covering.go", "\t\tif m.inner == nil && len(texts[m.field]) == 0 {\n\t\t\tcontinue\n", "\t\tif m.inner == nil && len(texts[m.field]) == 0 {\n\t\t\ttexts[m.field] = []byte(\"null\")\n"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "an entry that is no longer covering is not updated",
		edits: []edit{{"internal/write/stage.go", "kept[same] = after.List[same].Covering == e.Covering", "kept[same] = true"}},
		tests: []tests{{"tests/query", "TestQuery_Cover_"}, {"tests/index", "TestIndex_Contents_AfterWrites$"}},
	},
	{
		name:  "a document that changes takes its entry out of a unique index under construction, though another has it by now",
		edits: []edit{{"internal/write/stage.go", "\tif e.Unique && e.Index.Info.State == index.Building {\n\t\tvalue, closer", "\tif false {\n\t\tvalue, closer"}},
		tests: []tests{{"tests/index", "TestIndex_Build_UniqueTaken$"}},
	},
	{
		name:  "old entries stay",
		edits: []edit{{"internal/write/stage.go", "\tt.Tx.Delete(t.key)\n\treturn nil\n", "\treturn nil\n"}},
		tests: []tests{{"tests/index", "TestIndex_Contents_"}},
	},
	{
		name:  "a build misses a write that was under way",
		edits: []edit{{"internal/indexer/build.go", "\treturn in.env.Engine.Update(in.ctx, false, func(storage.Tx) error { return nil })\n", "\treturn nil\n"}},
		tests: []tests{{"internal/indexer", "TestBuild_WriteUnderWay$"}},
	},
	{
		name:  "documents are written into a collection with an index of an unknown kind",
		edits: []edit{{"internal/write/stage.go", "\tif ci != nil && ci.Unknown != nil {\n\t\treturn ci.Unknown\n\t}\n\tif found {", "\tif found {"}},
		tests: []tests{{"internal/catalog", "TestKind_Unknown$"}},
	},
	{
		name:  "what another kind of index finds is not checked on documents",
		edits: []edit{{"internal/plan/path.go", "exact: answer.Exact}", "exact: answer.Used}"}},
		tests: []tests{{"internal/kindtest", "TestHash$"}},
	},
	{
		name:  "the entries of another kind of index are not sorted",
		edits: []edit{{"internal/catalog/extract.go", "\t\tout.sort(ix, first)\n", "\t\tout.flag(ix, FlagMultiple)\n"}},
		tests: []tests{{"internal/kindtest", "TestHash$"}},
	},
}
