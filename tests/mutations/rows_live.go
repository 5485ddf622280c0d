package main

// live are changes to which documents enter and leave the answers of live queries.
var live = []mutation{
	{
		name:  "live: bounds of two conditions are merged for documents with several values, too",
		edits: []edit{{"internal/live/finder.go", "if values > 1 {", "if values < 0 {"}},
		tests: []tests{{"internal/live", "TestFinder_Few"}},
	},
	{
		name:  "live: the bounds of an or are those of its first condition",
		edits: []edit{{"internal/live/bounds.go", "all, kind = append(all, more...), max(kind, k)\n\t\t}", "if all == nil {\n\t\t\t\tall, kind = more, max(kind, k)\n\t\t\t}\n\t\t}"}},
		tests: []tests{{"internal/live", "TestFinder"}},
	},
}
