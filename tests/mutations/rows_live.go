package main

// live are changes to which documents enter and leave the answers of live queries.
var live = []mutation{
	{
		name:  "live: a document that was an answer enters again",
		edits: []edit{{"internal/live/dispatch.go", "if w.was == h.number {\n\t\t\tkind = Change", "if w.was == 0 {\n\t\t\tkind = Change"}},
		tests: []tests{{"tests/live", "TestLive$"}},
	},
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
	{
		name:  "live: the token of another query is taken",
		edits: []edit{{"internal/live/live.go", "if number != w.number {", "if len(number) != len(w.number) {"}},
		tests: []tests{{"tests/live", "TestLive_Tokens"}},
	},
	{
		name:  "live: a reader joins at the end of a snapshot that is older than what it has read",
		edits: []edit{{"internal/live/dispatch.go", "if len(h.joins) == 0 || !h.joins[0].invited {", "if len(h.joins) == 0 {"}},
		tests: []tests{{"tests/live", "TestModel"}},
	},
}
