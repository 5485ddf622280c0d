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
		name:  "rename: an index that was declared meanwhile is dropped",
		edits: []edit{{"internal/collections/rename.go", "has := ix.Automatic || ", "has := true || ix.Automatic || "}, {"internal/collections/rename.go", "EnsureIndexes(ctx, r.To, declared, indexer.Options{})", "EnsureIndexes(ctx, r.To, declared[:0], indexer.Options{})"}},
		tests: []tests{{"internal/computed", "TestRename_IndexDeclaredMeanwhile"}},
	},
	{
		name:  "rename: the record is stored after the first definitions",
		edits: []edit{{"internal/collections/rename.go", "\tif err := r.store(ctx); err != nil {\n\t\treturn err\n\t}\n", ""}, {"internal/collections/rename.go", "\tif err := r.moveAll(ctx); err != nil {", "\tif err := r.store(ctx); err != nil {\n\t\treturn err\n\t}\n\tif err := r.moveAll(ctx); err != nil {"}},
		tests: []tests{{"internal/computed", "TestRename_GoesBack"}},
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
	{
		name:  "first and last: of equal orders any value",
		edits: []edit{{"query/picked.go", "\tif c == 0 {\n\t\tc = value", "\tif false {\n\t\tc = value"}},
		tests: []tests{{"query", "TestGroups_FirstLast"}},
	},
	{
		name:  "first and last: what has no order counts",
		edits: []edit{{"query/picked.go", "\tif order.IsMissing() {\n\t\treturn\n", "\tif false {\n\t\treturn\n"}},
		tests: []tests{{"query", "TestGroups_FirstLast"}},
	},
	{
		name:  "first and last: values of an element are paired with those of others",
		edits: []edit{{"query/picked.go", "if len(p.pairs.axes) == 2 {", "if true {"}},
		tests: []tests{{"query", "TestGroups_FirstLast"}},
	},
	{
		name:  "first and last: merged groups have those of the first",
		edits: []edit{{"query/shares.go", "if cell.order != nil {", "if false {"}},
		tests: []tests{{"query", "TestGroups_FirstLast_Merge"}},
	},
	{
		name:  "count(distinct): merged groups have those of the first",
		edits: []edit{{"query/shares.go", "\t\t\tg.mergeSeen(&to.cells[i], cell.seen)\n", ""}},
		tests: []tests{{"query", "TestGroups_FirstLast_Merge"}},
	},
	{
		name:  "first and last: entries of which count(distinct) needs one are jumped over",
		edits: []edit{{"internal/plan/along.go", "if ordered && distinct {", "if false {"}},
		tests: []tests{{"internal/computed", "TestEnds_AlongIndexes"}},
	},
	{
		name:  "first and last: an index whose fields run against each other answers",
		edits: []edit{{"internal/catalog/catalog.go", " && ix.Fields[i+1].Descending == ix.Fields[i].Descending", ""}},
		tests: []tests{{"internal/computed", "TestEnds_AlongIndexes"}},
	},
	{
		name:  "computed: an index of ends has documents that the map leaves out",
		edits: []edit{{"internal/computed/children.go", "\tif p.where != nil {\n\t\tix.Where = query.FormatCondition(p.where)\n\t}\n\treturn ix, \"\"\n}\n\n// endOfElements", "\treturn ix, \"\"\n}\n\n// endOfElements"}},
		tests: []tests{{"internal/computed", "TestComputed_Ends"}},
	},
	{
		name:  "computed: groups that a condition leaves out are called damage",
		edits: []edit{{"internal/exec/kept.go", " && !b.Narrow {", " {"}},
		tests: []tests{{"internal/computed", "TestComputed_Ends_Narrow"}},
	},
	{
		name:  "computed: a preview has elements that the map leaves out",
		edits: []edit{{"internal/computed/sample.go", "if m.where != nil && !m.where.Match(doc) {", "if false {"}},
		tests: []tests{{"internal/computed", "TestPreview_Documents"}},
	},
	{
		name:  "computed: errors of the second part are not listed",
		edits: []edit{{"internal/core/computed_preview.go", "\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tfor _, f := range list {", "\t\tif err != nil || len(all) > 0 {\n\t\t\treturn all, err\n\t\t}\n\t\tfor _, f := range list {"}},
		tests: []tests{{"internal/computed", "TestComputed_Errors"}},
	},
	{
		name:  "functions: a program that lacks one drops its indexes",
		edits: []edit{{"internal/catalog/computed.go", "\t\t\terr = nil // the parts", "\t\t\t_ = err // the parts"}},
		tests: []tests{{"internal/computed", "TestFunctions_Missing$"}},
	},
	{
		name:  "functions: one that fails leaves no note",
		edits: []edit{{"internal/groups/elements.go", "failed.Add(0, r.k.fan, r.elements.Failed())", "failed.Add(0, r.k.fan, nil)"}},
		tests: []tests{{"internal/computed", "TestFunctions_History$"}},
	},
	{
		name:  "functions: a panic is one of the writer",
		edits: []edit{{"internal/native/native.go", "if p := recover(); p != nil {", "if p := any(nil); p != nil {"}},
		tests: []tests{{"internal/computed", "TestFunctions_Refused$"}},
	},
}
