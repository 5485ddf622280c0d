package main

// computedIndexes are changes of computed indexes and of their parts.
var computedIndexes = []mutation{
	{
		name:  "computed: parts that no index wants stay",
		edits: []edit{{"internal/catalog/computed.go", "c == nil || c.Unknown == nil {\n\t\t\te.State", "c != nil && c.Unknown == nil {\n\t\t\te.State"}},
		tests: []tests{{"internal/computed", "TestComputed_Crash_AtEachSync"}},
	},
	{
		name:  "computed: a replacement is in force before its parts are ready",
		edits: []edit{{"internal/catalog/computed.go", "return e == nil || e.State != index.Ready", "return false && e.State != index.Ready"}},
		tests: []tests{{"internal/computed", "TestComputed_RefusedByDocuments"}},
	},
	{
		name:  "computed: while a collection is renamed an index is of the new one only",
		edits: []edit{{"internal/collections/rename.go", "RetargetComputed(ctx, r.From, r.To, true)", "RetargetComputed(ctx, r.From, r.To, false)"}},
		tests: []tests{{"internal/computed", "TestComputed_Rename"}},
	},
	{
		name:  "computed: a dropped collection takes indexes of others with it",
		edits: []edit{{"internal/catalog/computed.go", "isOfOnly(c.Declared, collection) && (", "true || isOfOnly(c.Declared, collection) && ("}},
		tests: []tests{{"internal/computed", "TestComputed_DropCollection"}},
	},
	{
		name:  "computed: the format does not rise",
		edits: []edit{{"internal/catalog/catalog.go", "\t\tc.require(storage.FeatureComputed)\n", ""}},
		tests: []tests{{"internal/computed", "TestComputed_FormatRises"}},
	},
	{
		name:  "computed: conditions on results decide nothing",
		edits: []edit{{"internal/exec/computed.go", "if m.keep != nil && !m.keep.Match(", "if false && !m.keep.Match("}},
		tests: []tests{{"internal/computed", "TestComputed_History"}},
	},
	{
		name:  "computed: a condition that null satisfies chooses documents",
		edits: []edit{{"internal/computed/resolve.go", "\t\treturn e.Value.Kind() > query.KindNull\n", "\t\treturn true\n"}},
		tests: []tests{{"internal/computed", "TestComputed_History"}},
	},
}
