package main

// kept are changes of indexes that keep counts and sums of groups.
var kept = []mutation{
	{
		name:  "kept sums: a condition on members chooses groups of documents in several",
		edits: []edit{{"internal/groups/answer.go", "if q.Several && (", "if false && ("}},
		tests: []tests{{"internal/groups", "TestGroups_Several"}},
	},
	{
		name:  "kept sums: documents that have expired count until they are deleted",
		edits: []edit{{"internal/exec/hidden.go", "\t\t\thidden[folded] = true\n\t\t\tfailed", "\t\t\tfailed"}},
		tests: []tests{{"internal/groups", "TestGroups_Expired"}},
	},
	{
		name:  "kept sums: a transaction does not see what it has written",
		edits: []edit{{"internal/exec/kept.go", "changes.Bodies = append(changes.Bodies, doc.JSON())", "_ = doc"}},
		tests: []tests{{"internal/groups", "TestGroups_InTransaction"}},
	},
	{
		name:  "groups: the first document of several groups, of a transaction, is counted in each",
		edits: []edit{{"internal/plan/kept.go", "p.options.OwnSeveral(ix) {", "false {"}},
		tests: []tests{{"internal/groups", "TestGroups_InTransaction_Several"}},
	},
	{
		name:  "groups: of several transaction's documents only the first is looked at",
		edits: []edit{{"internal/exec/kept.go", "); several {\n\t\t\t\tbreak", "); true {\n\t\t\t\tbreak"}},
		tests: []tests{{"internal/groups", "TestGroups_InTransaction_Several"}},
	},
	{
		name:  "groups: the condition of a partial index leaves out groups of documents of several",
		edits: []edit{{"internal/groups/answer.go", "if q.Several && !q.OfGroups {", "if false {"}},
		tests: []tests{{"internal/groups", "TestGroups_RangeOfSeveral"}},
	},
	{
		name:  "kept sums: numbers that limbs cannot hold stay when their document changes",
		edits: []edit{{"internal/groups/stage.go", "\t\t\ttx.Delete(k.restKey(old[i].key, old[i].value, folded))\n", ""}},
		tests: []tests{{"internal/groups", "TestGroups_History"}},
	},
	{
		name:  "kept sums: missing and null of one document are two groups",
		edits: []edit{{"internal/groups/extract.go", "if several && v.IsMissing()", "if false && v.IsMissing()"}},
		tests: []tests{{"internal/groups", "TestGroups_Several"}},
	},
	{
		name:  "kept sums: a build that goes on takes each document for a new one",
		edits: []edit{{"internal/write/stage.go", " && before.Body == nil && ix.Info.State == index.Ready {", " && before.Body == nil {"}},
		tests: []tests{{"internal/groups", "TestGroups_BuildResumed"}},
	},
	{
		name:  "kept sums: the format does not rise",
		edits: []edit{{"internal/indexer/indexer.go", "\t\t\ttx.RequireFeature(f)\n", "\t\t\t_ = f\n"}},
		tests: []tests{{"internal/groups", "TestGroups_FormatRises"}},
	},
	{
		name:  "kept sums: a member that is cut in its key is shown so",
		edits: []edit{{"query/shares.go", "return dst, !truncated", "return dst, true"}},
		tests: []tests{{"internal/groups", "TestGroups_History"}},
	},
	{
		name:  "kept sums: ranges that overlap count twice",
		edits: []edit{{"internal/groups/answer.go", "\t\t\tlo = last\n", "\t\t\tlo = lo[:len(lo):len(lo)]\n"}},
		tests: []tests{{"internal/groups", "TestGroups$"}},
	},
	{
		name:  "kept sums: a record of numbers counts its document again",
		edits: []edit{{"internal/groups/answer.go", "\t\tdocuments = 0\n", "\t\tdocuments = 1\n"}},
		tests: []tests{{"internal/groups", "TestGroups$"}},
	},
	{
		name:  "kept sums: groups outside of the ranges that are read are given",
		edits: []edit{{"internal/groups/answer.go", "if !a.inRanges([]byte(key)) {", "if false {"}},
		tests: []tests{{"internal/groups", "TestGroups_RangeBesideOthers"}},
	},
	{
		name:  "beside kept sums: a transaction's own documents are met by the first index only",
		edits: []edit{{"internal/exec/kept.go", "\tdefer func() { k.r.overlay.Own = own }()", "\tdefer func() { _ = own }()"}},
		tests: []tests{{"tests/query", "TestGroupBy_Beside"}},
	},
	{
		name:  "beside kept sums: extremes of an index of other documents are taken",
		edits: []edit{{"internal/plan/beside.go", "pl := sub.over(a, nil)\n", "pl := sub.over(a, nil)\n\tpl.Residual = nil\n"}},
		tests: []tests{{"tests/query", "TestGroupBy_Beside"}},
	},
	{
		name:  "facets by indexes: what is missing is a term of kept groups",
		edits: []edit{{"internal/groups/answer.go", "if a.present && members[at].IsMissing() {", "if false {"}},
		tests: []tests{{"tests/query", "TestGroupBy_Beside"}},
	},
	{
		name:  "facets by indexes: what is missing is a term of entries",
		edits: []edit{{"internal/exec/along.go", "if e.present && query", "if false && query"}},
		tests: []tests{{"tests/query", "TestGroupBy_Beside"}},
	},
	{
		name:  "along an index: missing and null are two groups in the stream",
		edits: []edit{{"internal/exec/along.go", "return e.nullFrom >= 0 && bytes", "return false && bytes"}},
		tests: []tests{{"tests/query", "TestGroupBy_Along"}},
	},
	{
		name:  "along an index: entries of expired documents count",
		edits: []edit{{"internal/exec/hidden.go", "\t\t\thidden[folded] = true\n\t\t\tfailed", "\t\t\tfailed"}},
		tests: []tests{{"tests/query", "TestGroupBy_Along"}},
	},
	{
		name:  "along an index: a transaction does not see what it has written",
		edits: []edit{{"internal/exec/along.go", "if doc == nil || err != nil {\n\t\t\treturn err", "if true {\n\t\t\treturn err"}},
		tests: []tests{{"tests/query", "TestGroupBy_Along"}},
	},
	{
		name:  "along an index: the other end of a group is not read",
		edits: []edit{{"internal/exec/along.go", "\tif e.Ends {\n", "\tif false {\n"}},
		tests: []tests{{"tests/query", "TestGroupBy_Along"}},
	},
	{
		name:  "along an index: fields that begin alike are taken as one entry has them",
		edits: []edit{{"internal/exec/along.go", "if e.Alike && plan.NotCovering(value)", "if false && plan.NotCovering(value)"}},
		tests: []tests{{"tests/query", "TestGroupBy_Along"}},
	},
	{
		name:  "count(distinct): null is a value",
		edits: []edit{{"query/aggregate.go", "if v.kind == KindNull {\n\t\treturn\n", "if false {\n\t\treturn\n"}},
		tests: []tests{{"tests/query", "TestGroupBy_CountDistinct"}},
	},
	{
		name:  "facets: a document without a value is of the term null",
		edits: []edit{{"query/facet_counts.go", "len(c.reader.Values(0)) == 0", "false"}},
		tests: []tests{{"tests/query", "TestFacets"}},
	},
	{
		name:  "facets: their memory has no bound",
		edits: []edit{{"query/facet_counts.go", "f.limit > 0 && f.used > f.limit", "false"}},
		tests: []tests{{"tests/query", "TestFacets_Refused"}},
	},
	{
		name:  "tables of sums: writers add to what the tables will hide",
		edits: []edit{{"internal/write/stage.go", "if t.Writer.Withheld.Has(ix.Number) {", "if false {"}},
		tests: []tests{{"internal/groups", "TestGroups$"}},
	},
	{
		name:  "tables of sums: documents that came meanwhile are not entered",
		edits: []edit{{"internal/indexer/tables.go", "!p.ix.Info.Unique && p.tabler == nil {", "!p.ix.Info.Unique {"}},
		tests: []tests{{"internal/groups", "TestGroups$"}},
	},
	{
		name:  "tables of sums: writers are kept out until the index is ready",
		edits: []edit{{"internal/indexer/tables.go", "\tb.in.writer.Withheld.End(p.ix.Number)\n\tif err := b.in.passWrites()", "\tif err := b.in.passWrites()"}},
		tests: []tests{{"internal/groups", "TestGroups$"}},
	},
	{
		name:  "tables of sums: of several sums of a key the last one counts",
		edits: []edit{{"internal/indexer/sums.go", "\tw.sum.add(value[1:])\n", "\t*w.sum = sum{}\n\tw.sum.add(value[1:])\n"}},
		tests: []tests{{"internal/groups", "TestGroups_Tables$"}},
	},
	{
		name:  "tables of sums: what writers added before stays",
		edits: []edit{{"internal/indexer/tables.go", "\tif err := in.removeEntries(number); err != nil {\n\t\treturn err\n\t}\n\treturn in.passWrites()\n}\n\n// byTables", "\treturn in.passWrites()\n}\n\n// byTables"}},
		tests: []tests{{"internal/groups", "TestGroups_Tables_Before$"}},
	},
	{
		name:  "ends: an entry that a query does not see counts",
		edits: []edit{{"internal/groups/endsread.go", "return !w.hidden[string(folded)], err", "return folded != nil || true, err"}},
		tests: []tests{{"internal/computed", "TestComputed_Ends_Elements$"}},
	},
	{
		name:  "ends: elements of an own document of which the condition is not true count",
		edits: []edit{{"internal/groups/endsread.go", "if a.own != nil && !a.own.Match(doc) {", "if false {"}},
		tests: []tests{{"internal/computed", "TestComputed_Ends_Elements"}},
	},
	{
		name:  "ends: an element that the index has not whole is no matter",
		edits: []edit{{"internal/groups/ends.go", "if !ok || q.Cut || q.Present", "if !ok || q.Present"}},
		tests: []tests{{"internal/groups", "TestEnds_NotWhole$"}},
	},
	{
		name:  "ends: an element without a value is the least one",
		edits: []edit{{"internal/groups/endsread.go", "case counts && !missing:", "case counts && (!missing || true):"}},
		tests: []tests{{"internal/groups", "TestEnds$"}},
	},
}
