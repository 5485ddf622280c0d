package main

// worded are changes of searches for words and of the index that answers them.
var worded = []mutation{
	{
		name:  "an index that finds nothing does not look at the context",
		edits: []edit{{"internal/exec/means.go", "{ return it.Iterator.Next() && it.pace.Spend(workPerKey) }", "{ return it.Iterator.Next() }"}, {"internal/exec/means.go", "\tit.pace.Spend(len(value))\n", ""}},
		tests: []tests{{"tests/query", "TestQuery_EndsWhileNothingIsFound$"}},
	},
	{
		name:  "what an index of words finds is in memory without a bound",
		edits: []edit{{"internal/exec/means.go", "limit := m.r.env.MaxQueryBytes; m.held > limit", "limit := m.r.env.MaxQueryBytes; false"}},
		tests: []tests{{"tests/query", "TestQuery_MemoryOfSearches$"}},
	},
	{
		name:  "an index of words has all searches in memory at a time",
		edits: []edit{{"internal/fulltext/answer.go", "\t\tl.forget(s)\n", ""}},
		tests: []tests{{"tests/query", "TestQuery_MemoryOfSearches$"}},
	},
	{
		name:  "elements of all documents count when the plan of a query with each gives way",
		edits: []edit{{"internal/exec/run.go", "\tfn = func(doc query.Doc) error { return r.fan.visit(doc, given) }", "\tfan := r.fan\n\tfn = func(doc query.Doc) error { return fan.visit(doc, given) }"}},
		tests: []tests{{"tests/query", "TestQuery_EachReplanned$"}},
	},
	{
		name:  "the error of the code of a very small vector is rounded down",
		edits: []edit{{"internal/vectors/code.go", " + math.SmallestNonzeroFloat32,", ","}},
		tests: []tests{{"tests/query", "TestVectors_Small$"}},
	},
	{
		name:  "a count of facets without a condition counts documents",
		edits: []edit{{"internal/builder/run.go", " || len(q.Query.Facets) > 0 || q.Query.Where", " || q.Query.Where"}},
		tests: []tests{{"tests/query", "TestFacets_Count$"}},
	},
	{
		name:  "words: what is in the tail is not found",
		edits: []edit{{"internal/fulltext/answer.go", "\tfor ok := c.step(); ok; ok = c.step() {\n\t\tfolded", "\tfor ok := false && c.step(); ok; ok = c.step() {\n\t\tfolded"}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: a document that changes while it is settled is taken for settled",
		edits: []edit{{"internal/fulltext/settle.go", "texts == nil || !bytes.Equal(texts, m.texts)", "texts == nil"}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: postings of documents that have changed stay for ever",
		edits: []edit{{"internal/fulltext/sweep.go", "\t\t\tif !dead {\n", "\t\t\tif dead || !dead {\n"}},
		tests: []tests{{"internal/fulltext", "TestText_Swept"}},
	},
	{
		name:  "words: queries find the words anew of documents that were settled and not synced",
		edits: []edit{{"internal/fulltext/analyzed.go", "\tm.leaving = make([]string, len(all))\n\tfor i := range all {\n\t\tm.leaving[i] = all[i].folded\n\t}\n", "\tfor i := range all {\n\t\tm.drop(all[i].folded)\n\t}\n"}},
		tests: []tests{{"internal/fulltext", "TestKept_Settled"}},
	},
	{
		name:  "words: a term that is looked up among those of a document is the next one",
		edits: []edit{{"internal/text/document.go", "string(at) == name {", "string(at) >= name {"}},
		tests: []tests{{"internal/text", "TestDocument_Random"}},
	},
	{
		name:  "words: the beginning of the tail is never settled while writers add to its end",
		edits: []edit{{"internal/fulltext/settle.go", "if now.parts%wholeEvery == 0 {", "if false {"}},
		tests: []tests{{"internal/fulltext", "TestText_TailFromItsBeginning"}},
	},
	{
		name:  "words: writers do not wait for the settler",
		edits: []edit{{"internal/write/stage.go", "if ix.Throttled.Load() {", "if ix.Throttled.Load() && folded == \"\" {"}},
		tests: []tests{{"internal/fulltext", "TestText_Throttled"}},
	},
	{
		name:  "words: small blocks are not joined",
		edits: []edit{{"internal/fulltext/sweep.go", "if !p.changed && len(p.some) < 2 {", "if !p.changed {"}},
		tests: []tests{{"internal/fulltext", "TestText_Joined"}},
	},
	{
		name:  "words: an index answers searches by another analyzer",
		edits: []edit{{"internal/fulltext/answer.go", "k.analyzers[i] == w.Analyzer && ", ""}},
		tests: []tests{{"internal/fulltext", "TestText_Analyzer"}},
	},
	{
		name:  "words: an index answers a search that only leaves out documents",
		edits: []edit{{"internal/score/scores.go", "err != nil || words.leavesOut()", "err != nil"}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: a change of a settled document keeps its length",
		edits: []edit{{"internal/fulltext/stage.go", "\tk.addLengths(tx, s.lengths, -1)\n", ""}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: patterns mean any number of words",
		edits: []edit{{"internal/fulltext/find.go", "f.terms > MaxTerms", "f.terms < 0"}},
		tests: []tests{{"internal/fulltext", "TestText_Terms"}},
	},
	{
		name:  "words: counts have documents that have changed",
		edits: []edit{{"internal/fulltext/answer.go", "if dead = dead[at:]; is {", "if dead = dead[at:]; is && n < 0 {"}},
		tests: []tests{{"internal/score", "TestScores_Histories"}},
	},
	{
		name:  "scores: the tail does not count for the frequencies",
		edits: []edit{{"internal/fulltext/rank.go", "\t\t\tif missing[i] {\n", "\t\t\tif missing[i] && s.words.Length < 0 {\n"}},
		tests: []tests{{"internal/score", "TestScores_Histories"}},
	},
	{
		name:  "scores: each page counts anew how frequent words are",
		edits: []edit{{"internal/exec/score.go", "if s.scores.SetFrequencies(after.Scores) != nil {", "if s.scores.SetFrequencies(after.Scores); false {"}, {"internal/score/scores.go", "\t\ts.Frequencies[i] = f\n", "\t\t_ = f\n"}},
		tests: []tests{{"internal/score", "TestScores_Pages"}},
	},
	{
		name:  "scores: a page begins with the last answer of the one before it",
		edits: []edit{{"internal/fulltext/rank.go", "return id >= after.ID", "return id > after.ID"}, {"internal/exec/run.go", "if r.options.After != nil && !r.isAfter(row.Cursor) {", "if false {"}},
		tests: []tests{{"internal/score", "TestScores_Histories"}},
	},
	{
		name:  "scores: weights of fields do not count",
		edits: []edit{{"internal/fulltext/rank.go", "Weight: l.k.weights[s.field]", "Weight: 1"}},
		tests: []tests{{"internal/score", "TestScores_Histories"}},
	},
	{
		name:  "scores: a boost of a condition without words counts where it is not true",
		edits: []edit{{"internal/score/scorer.go", "if !r.matchers[p].Match(doc) {", "if r.matchers[p] == nil {"}},
		tests: []tests{{"internal/score", "TestScores_Boosts"}},
	},
	{
		name:  "scores: NoScan lets a query count in all documents",
		edits: []edit{{"internal/exec/score.go", "if r.options.NoScan {", "if false {"}},
		tests: []tests{{"internal/score", "TestScores_NoScan"}},
	},
	{
		name:  "scores: an index orders by scores that it does not know all",
		edits: []edit{{"internal/fulltext/answer.go", "a.Ordered = false // it counts, too", "_ = i // it counts, too"}},
		tests: []tests{{"internal/score", "TestScores_TwoIndexes"}},
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
	{
		name:  "words: what is kept of a document is that of its texts",
		edits: []edit{{"internal/fulltext/analyzed.go", "a == nil || !bytes.Equal(a.texts, texts)", "a == nil || bytes.Equal(a.texts, nil)"}},
		tests: []tests{{"internal/fulltext", "TestText$"}},
	},
	{
		name:  "words: terms of a phrase are found in the order of their positions",
		edits: []edit{{"internal/text/document.go", "return a.position - b.position", "return 0"}},
		tests: []tests{{"internal/text", "TestDocument"}},
	},
	{
		name:  "words: what was settled comes to the disk",
		edits: []edit{{"internal/indexer/settle.go", "s.stale, s.unsynced = 0, true", "s.stale = 0"}},
		tests: []tests{{"internal/fulltext", "TestText_Synced"}},
	},
	{
		name:  "lucene: AND leaves what stands before it as it was",
		edits: []edit{{"internal/text/lucene.go", "last.Occur != MustNot {", "last.Occur > MustNot {"}},
		tests: []tests{{"query", "TestLucene$"}},
	},
	{
		name:  "lucene: what need not be there must be, beside what must",
		edits: []edit{{"query/lucene.go", "append(Or{And{}}, should...)", "append(Or{}, should...)"}},
		tests: []tests{{"query", "TestLucene_Groups"}},
	},
	{
		name:  "lucene: a group of exclusions finds all else",
		edits: []edit{{"query/lucene.go", "return s.occur != text.MustNot }) {", "return true }) {"}},
		tests: []tests{{"query", "TestLucene$"}},
	},
	{
		name:  "fuzzy: a text that is just as similar is found",
		edits: []edit{{"query/fuzzy.go", "float64(shorter) > c.fuzzy.above", "float64(shorter) >= c.fuzzy.above"}},
		tests: []tests{{"query", "TestFuzzy"}},
	},
	{
		name:  "fuzzy: changes at the edge of what is computed are free",
		edits: []edit{{"query/fuzzy.go", "v.row[lo-1] = most + 1", "v.row[lo-1] = 0"}},
		tests: []tests{{"query", "TestFuzzy"}},
	},
	{
		name:  "fuzzy: words of a search are found whatever their similarity",
		edits: []edit{{"internal/text/match.go", "m.similarity < 0 || similar(", "m.similarity < 1 || similar("}},
		tests: []tests{{"query", "TestFuzzy"}},
	},
	{
		name:  "definitions: a search by an index has the analyzer of documents",
		edits: []edit{{"server/internal/verbs/words.go", "			e.Analyzer = o.Analyzer\n", "			e.Analyzer = \"\"\n"}},
		tests: []tests{{"server", "TestDefinitions_Words$"}},
	},
	{
		name:  "definitions: an exact field is found without regard to case",
		edits: []edit{{"server/internal/verbs/words.go", "return fold && (f.Meta != query.MetaNone || !all.Of(f.Path.String()).Exact)", "return fold || all.Of(f.Path.String()).Exact"}},
		tests: []tests{{"server", "TestDefinitions_Words$"}},
	},
	{
		name:  "definitions: a query through Jay's own interface has no options of fields",
		edits: []edit{{"server/internal/verbs/indexed.go", "if text, given, err = ix.adaptText(text, given); err != nil {", "if text, given, err = ix.AdaptText(text, given); err != nil {"}},
		tests: []tests{{"server", "TestDefinitions_Words_Own"}},
	},
	{
		name:  "definitions: the index of words stays when its definition is dropped",
		edits: []edit{{"server/internal/raven/indexes.go", "c.DB.DropIndex(c.Ctx, side.Collection, side.Name)", "error(nil)"}},
		tests: []tests{{"server", "TestDefinitions_Words$"}},
	},
	{
		name:  "definitions: suggestions of what is computed are accepted",
		edits: []edit{{"server/internal/raven/indexdefinitions.go", "d.SuggestsNothing(); is {", "d.SuggestsNothing(); is && field == \"\" {"}},
		tests: []tests{{"server", "TestDefinitions_Words_Refused"}},
	},
	{
		name:  "words: a sweep keeps the settler from the tail",
		edits: []edit{{"internal/fulltext/settle.go", "sweeps := due && !k.progress.swept", "sweeps := due"}},
		tests: []tests{{"internal/fulltext", "TestText_TailBesideSweep"}},
	},
	{
		name:  "words: a tail that is too short for a part leaves a gap in the ordinals",
		edits: []edit{{"internal/fulltext/settle.go", "\t\tp.state.next -= uint64(len(p.moved))\n", ""}},
		tests: []tests{{"internal/fulltext", "TestText_TailBesideSweep"}},
	},
	{
		name:  "settling: what it leaves is not compacted",
		edits: []edit{{"internal/indexer/settle.go", "\t\t\ts.compactTrails()\n", "\t\t\t_ = s.compactTrails\n"}},
		tests: []tests{{"internal/vectors", "TestVectors$"}},
	},
	{
		name:  "lsm: an iterator that is used again has passed what the reader before has",
		edits: []edit{{"storage/lsm/snapshot.go", "\t\tkept.ResetStats() // of the reader before: see Passed\n", ""}},
		tests: []tests{{"storage/lsm", "TestEngine_CompactRange"}},
	},
}
