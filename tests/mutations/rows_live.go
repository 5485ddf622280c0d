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
	{
		name:  "live: bounds decide a condition for which case matters",
		edits: []edit{{"internal/live/bounds.go", "\t\texact = e.Fold || e.Value.Kind() != query.KindText\n", "\t\texact = true\n"}},
		tests: []tests{{"internal/live", "TestFinder"}},
	},
	{
		name:  "live: bounds decide a condition on a text of which the key holds the beginning",
		edits: []edit{{"internal/live/bounds.go", "exact && isReadable(f) && !slices.ContainsFunc(ranges, func(r query.KeyRange) bool { return r.Recheck })", "exact && isReadable(f) && len(ranges) > 0"}},
		tests: []tests{{"internal/live", "TestFinder"}},
	},
	{
		name:  "live: bounds decide that a field has all of several values",
		edits: []edit{{"internal/live/bounds.go", "values, exact = values[:1], false", "values = values[:1]"}},
		tests: []tests{{"internal/live", "TestFinder"}},
	},
	{
		name:  "live: the members of a live query leave out what has expired",
		edits: []edit{{"internal/exec/run.go", "if o.Expired {", "if false {"}},
		tests: []tests{{"tests/live", "TestLive_ExactExpiry"}},
	},
	{
		name:  "live: the members of a live query are paid for twice while it joins",
		edits: []edit{{"internal/live/dispatch.go", "r.forget(folded) // so", "_ = folded // so"}},
		tests: []tests{{"tests/live", "TestLive_MemoryOfOne"}},
	},
	{
		name:  "live: a reader tries to join for ever though each snapshot expires",
		edits: []edit{{"internal/live/reader.go", "r.expired == fruitless", "r.expired < 0"}},
		tests: []tests{{"tests/live", "TestLive_ShortSnapshots"}},
	},
	{
		name:  "live: case-sensitive bounds leave out texts that differ in case alone",
		edits: []edit{{"internal/live/bounds.go", "if !exact { // of the texts", "if false { // of the texts"}},
		tests: []tests{{"internal/live", "TestFinder_ExactRange"}, {"internal/live", "TestFinder$"}},
	},
	{
		name:  "server: a live query keeps its place among the streams",
		edits: []edit{{"server/internal/own/live.go", "				leave()\n", ""}},
		tests: []tests{{"server", "TestOwn_LiveIsAStreamAtFirst"}},
	},
}
