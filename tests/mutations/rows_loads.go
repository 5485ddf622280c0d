package main

// loadingIndexes are changes of indexes of fields of documents to which others refer.
var loadingIndexes = []mutation{
	{
		name:  "loads: documents that refer to one are not entered again",
		edits: []edit{{"internal/write/stage_loads.go", "\tif !others {\n", "\tif true || !others {\n"}},
		tests: []tests{{"internal/computed", "TestLoads_History"}},
	},
	{
		name:  "loads: references of the same transaction are not seen",
		edits: []edit{{"internal/write/stage_loads.go", "\t\tif there {\n\t\t\tall", "\t\tif false && there {\n\t\t\tall"}},
		tests: []tests{{"internal/computed", "TestLoads_OneCommit"}},
	},
	{
		name:  "loads: any number of documents is entered again",
		edits: []edit{{"internal/write/stage_loads.go", "if len(all) > catalog.MaxReferrers {", "if false && len(all) > catalog.MaxReferrers {"}},
		tests: []tests{{"internal/computed", "TestLoads_Referrers"}},
	},
	{
		name:  "loads: a change that is not loaded is one",
		edits: []edit{{"internal/write/stage_loads.go", "if !of.Only().Loads.Differs(", "if false && !of.Only().Loads.Differs("}},
		tests: []tests{{"internal/computed", "TestLoads_Referrers"}},
	},
	{
		name:  "loads: a transaction that has written uses an index that loads",
		edits: []edit{{"internal/exec/loading.go", "db.Catalog = db.Catalog.WithoutLoads()", "_ = db.Catalog.WithoutLoads"}},
		tests: []tests{{"internal/computed", "TestLoads_History"}},
	},
	{
		name:  "loads: what is loaded is read beside the transaction",
		edits: []edit{{"internal/write/stage_loads.go", "\tfrom := loads.From(l.T.Tx)\n\twas, is", "\tfrom := loads.From(l.T.Writer.Env.Engine)\n\twas, is"}},
		tests: []tests{{"internal/computed", "TestLoads_Race"}},
	},
	{
		name:  "loads: errors are looked for in documents without what they load",
		edits: []edit{{"internal/core/index_errors.go", "if ix.Loads == nil {", "if ix.Loads == nil || true {"}},
		tests: []tests{{"internal/computed", "TestLoads_PreviewAndErrors"}},
	},
}
