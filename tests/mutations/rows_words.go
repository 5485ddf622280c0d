package main

// worded are changes of searches for words and of the index that answers them.
var worded = []mutation{
	{
		name:  "words: what is in the tail is not found",
		edits: []edit{{"internal/fulltext/answer.go", "\tfor ok := c.step(); ok; ok = c.step() {\n", "\tfor ok := false && c.step(); ok; ok = c.step() {\n"}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: a document that changes while it is settled is taken for settled",
		edits: []edit{{"internal/fulltext/settle.go", "texts == nil || !bytes.Equal(texts, m.texts)", "texts == nil"}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: postings of documents that have changed stay for ever",
		edits: []edit{{"internal/fulltext/sweep.go", "\t\tif !dead {\n", "\t\tif dead || !dead {\n"}},
		tests: []tests{{"internal/fulltext", "TestText_Swept"}},
	},
	{
		name:  "words: small blocks are not joined",
		edits: []edit{{"internal/fulltext/sweep.go", "p.changed || len(p.keys) > 1", "p.changed"}},
		tests: []tests{{"internal/fulltext", "TestText_Joined"}},
	},
	{
		name:  "words: an index answers searches by another analyzer",
		edits: []edit{{"internal/fulltext/answer.go", "analyzer != k.analyzer.Name()", "analyzer == \"\""}},
		tests: []tests{{"internal/fulltext", "TestText_Analyzer"}},
	},
	{
		name:  "words: an index answers a search that only leaves out documents",
		edits: []edit{{"internal/fulltext/answer.go", "!slices.ContainsFunc(parsed.Clauses, func(c text.Clause) bool { return c.Occur != text.MustNot })", "false"}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: a change of a settled document keeps its length",
		edits: []edit{{"internal/fulltext/stage.go", "\tk.addLengths(tx, s.lengths, -1)\n", ""}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: patterns mean any number of words",
		edits: []edit{{"internal/fulltext/answer.go", "f.terms > MaxTerms", "f.terms < 0"}},
		tests: []tests{{"internal/fulltext", "TestText_Terms"}},
	},
	{
		name:  "words: a phrase reaches from one text of an array into the next",
		edits: []edit{{"internal/text/document.go", "d.base += n + ValueGap", "d.base += n"}},
		tests: []tests{{"internal/text", "TestDocument_Values"}},
	},
	{
		name:  "words: two neighbours that have changed places are two changes",
		edits: []edit{{"internal/text/distance.go", "word[j-2] == r", "word[j-2] == 0"}},
		tests: []tests{{"internal/text", "TestDocument_Random"}},
	},
	{
		name:  "words: a large text is searched to its end when nobody waits",
		edits: []edit{{"query/matcher.go", "s.words.Spend = p.Spend", "_ = s"}},
		tests: []tests{{"query", "TestSearch_Pace"}},
	},
	{
		name:  "words: conditions of indexes search",
		edits: []edit{{"internal/catalog/field.go", "query.Searches(e)", "false && query.Searches(e)"}},
		tests: []tests{{"tests/query", "TestQuery_Search_Refused"}},
	},
}
