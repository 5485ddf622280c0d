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
		edits: []edit{{"internal/exec/kept.go", "changes.Hidden[folded] = true })", "_ = folded })"}},
		tests: []tests{{"internal/groups", "TestGroups_Expired"}},
	},
	{
		name:  "kept sums: a transaction does not see what it has written",
		edits: []edit{{"internal/exec/kept.go", "changes.Bodies = append(changes.Bodies, doc.JSON())", "_ = doc"}},
		tests: []tests{{"internal/groups", "TestGroups_InTransaction"}},
	},
	{
		name:  "kept sums: numbers that limbs cannot hold stay when their document changes",
		edits: []edit{{"internal/groups/stage.go", "\t\t\ttx.Delete(k.restKey(old[i].key, old[i].value, folded))\n", ""}},
		tests: []tests{{"internal/groups", "TestGroups_History"}},
	},
	{
		name:  "kept sums: missing and null of one document are two groups",
		edits: []edit{{"internal/groups/extract.go", "combinations > 1 && v.IsMissing()", "combinations > 10_000 && v.IsMissing()"}},
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
}
