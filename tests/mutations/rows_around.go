package main

// around are changes of what is around full text: highlights, suggestions, documents like another one, explanations.
var around = []mutation{
	{
		name:  "the worker of a dropped subscription acknowledges for the next one of its name",
		edits: []edit{{"internal/subs/subs.go", "Base: base, Worker: first})", "Base: base, Worker: 0 * first})"}},
		tests: []tests{{".", "TestSubscription_CreatedAgain$"}},
	},
	{
		name:  "a long delay of a subscription runs over",
		edits: []edit{{"internal/subs/worker.go", "min(min(w.definition.RetryDelay, maxRetryDelay)<<", "min(w.definition.RetryDelay<<"}},
		tests: []tests{{".", "TestSubscription_LongDelays$"}},
	},
	{
		name:  "an import that was refused keeps rejects",
		edits: []edit{{"server/internal/own/import.go", "\treturn im, nil\n}\n\n// openRejects", "\tim.openRejects()\n\treturn im, nil\n}\n\n// openRejects"}},
		tests: []tests{{"server", "TestImport_RejectsOfRefused$"}},
	},
	{
		name:  "around text: a word that goes on behind what is looked at is marked",
		edits: []edit{{"internal/text/mark.go", "if t.End < len(head) || len(head) == len(text) {", "{"}},
		tests: []tests{{"internal/text", "TestMarker_Ends"}},
	},
	{
		name:  "around text: words of a phrase are marked from one text into the next",
		edits: []edit{{"internal/text/mark.go", "\tif position < m.document.base {\n\t\treturn at, false\n\t}\n", ""}},
		tests: []tests{{"internal/text", "TestMarker_Ends"}},
	},
	{
		name:  "around text: a word of a phrase does not stand for one that the phrase leaves open",
		edits: []edit{{"internal/text/document.go", "s.begun.andEither(at.slots, s.gaps)", "s.begun.and(at.slots)"}},
		tests: []tests{{"internal/text", "TestDocument_Gaps"}},
	},
	{
		name:  "around text: what must not be there is marked",
		edits: []edit{{"internal/text/mark.go", "return c.Occur == MustNot", "return false"}},
		tests: []tests{{"internal/text", "TestFragment"}},
	},
	{
		name:  "around text: fragments are not escaped",
		edits: []edit{{"internal/text/fragment.go", "if !tags.Plain {", "if tags.Plain {"}},
		tests: []tests{{"internal/text", "TestFragment"}},
	},
	{
		name:  "around text: a fragment begins in a word",
		edits: []edit{{"internal/text/fragment.go", "for e.start < first && !isBorder(e.text, e.start) && e.start > low {", "for false {"}},
		tests: []tests{{"internal/text", "TestFragments"}},
	},
	{
		name:  "around text: fragments overlap",
		edits: []edit{{"internal/text/fragment.go", "low = fragments[i-1].End", "low = 0"}},
		tests: []tests{{"internal/text", "TestFragments"}, {"internal/text", "FuzzFragments"}},
	},
	{
		name:  "around text: the order decides which fragments are taken, and not their words",
		edits: []edit{{"internal/text/fragment.go", "return cmp.Compare(b.score, a.score)", "return 0"}},
		tests: []tests{{"internal/text", "TestFragments"}},
	},
	{
		name:  "around text: a covering index answers a query with highlights",
		edits: []edit{{"query/highlight.go", "return len(q.Include) > 0 || len(q.Highlights) > 0 || q.Explanations", "return len(q.Include) > 0"}},
		tests: []tests{{"internal/score", "TestHighlights"}},
	},
	{
		name:  "around text: an explanation leaves out the weight of the field",
		edits: []edit{{"internal/score/explain.go", "w.Score = p.Boost * w.Boost * f.Weight *", "w.Score = p.Boost * w.Boost *"}},
		tests: []tests{{"internal/score", "TestScores_Histories"}},
	},
	{
		name:  "around text: an explanation has conditions that are not true",
		edits: []edit{{"internal/score/explain.go", "if _, is := p.Score(func(p *Part) (float64, bool) { return r.part(p, doc) }); !is {", "if false {"}},
		tests: []tests{{"internal/score", "TestScores_Histories"}},
	},
	{
		name:  "around text: documents that have changed count for their former words in suggestions",
		edits: []edit{{"internal/fulltext/vocabulary.go", "if hides = hides[at:]; is {", "if hides = hides[at:]; is && n < 0 {"}},
		tests: []tests{{"internal/vocabulary", "TestVocabulary_Histories"}},
	},
	{
		name:  "around text: the tail has no words to suggest",
		edits: []edit{{"internal/fulltext/vocabulary.go", "err = errs.First(t.document(folded, it.Value(), own), t.add(own))\n", "clear(own)\n"}},
		tests: []tests{{"internal/vocabulary", "TestVocabulary_Histories"}},
	},
	{
		name:  "around text: a transaction is suggested what it has replaced",
		edits: []edit{{"internal/fulltext/vocabulary.go", "if of.ordinal > 0 {", "if false {"}},
		tests: []tests{{"internal/vocabulary", "TestVocabulary_Histories"}},
	},
	{
		name:  "around text: the walk over words seeks too far",
		edits: []edit{{"internal/text/distance.go", "return far, at\n", "return far, max(at-1, 1)\n"}},
		tests: []tests{{"internal/vocabulary", "TestVocabulary_Histories"}},
	},
	{
		name:  "around text: lists of words forget some of the tail",
		edits: []edit{{"internal/fulltext/vocabulary.go", "t.last = sorted[limit-1]", "t.last = sorted[0]"}},
		tests: []tests{{"internal/vocabulary", "TestVocabulary_Histories"}},
	},
	{
		name:  "around text: a document is like itself",
		edits: []edit{{"internal/exec/likes.go", "return query.And{any, query.Not{Expr: itself}}", "return query.And{any, query.Or{query.And{}, itself}}"}},
		tests: []tests{{"internal/score", "TestMoreLikeThis"}},
	},
	{
		name:  "around text: pages choose the words anew that are like a document",
		edits: []edit{{"internal/exec/likes.go", "if after := l.r.options.After; after == nil {", "if after := l.r.options.After; true {"}},
		tests: []tests{{"internal/score", "TestMoreLikeThis$"}},
	},
	{
		name:  "around text: words tell by their count alone",
		edits: []edit{{"internal/exec/likes.go", "t.weight = float64(t.count) * text.Rarity(all.Documents, n)", "t.weight = float64(t.count)"}},
		tests: []tests{{"internal/score", "TestMoreLikeThis"}},
	},
}
