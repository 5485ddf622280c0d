package main

// querying are changes to plans, indexes and their entries.
var querying = []mutation{
	{
		name:  "a range that holds too much is taken for exact",
		edits: []edit{{"internal/plan/binding.go", "\t\tb.recheck = b.recheck || r.Recheck\n", ""}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_RangeHoldsTooMuch$"}},
	},
	{
		name:  "the order of a range that lacks a document's first entry is trusted",
		edits: []edit{{"internal/plan/path.go", "\tcase a.bounded && len(a.Ranges) == 1:\n", "\tcase false:\n"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_OrderOfSeveralEntries$"}},
	},
	{
		name:  "the order of values that the condition has chosen among is trusted",
		edits: []edit{{"internal/plan/path.go", "return a.Binds(o.Field) }):", "return false && a.Binds(o.Field) }):"}},
		tests: []tests{{"tests/query", "TestQuery_NewestOfTag$|TestQuery_LostOrder$"}},
	},
	{
		name:  "a document comes once for each of its entries",
		edits: []edit{{"internal/exec/source.go", "if s.seen == nil || ok && s.isOnly() {", "if true {"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_OrderOfSeveralEntries$"}},
	},
	{
		name:  "what an index had at one commit is taken for what it has at another",
		edits: []edit{{"internal/catalog/moment.go", "m != nil && m.commit == commit {", "m != nil {"}},
		tests: []tests{{"internal/catalog", "TestIndex_At$"}},
	},
	{
		name:  "what a snapshot of no known commit has is kept",
		edits: []edit{{"internal/catalog/moment.go", "\tif ok {\n\t\tix.moment.Store(m)\n\t}\n", "\tix.moment.Store(m)\n"}},
		tests: []tests{{"internal/catalog", "TestIndex_At$"}},
	},
	{
		name:  "all snapshots are of one commit",
		edits: []edit{{"storage/lsm/snapshot.go", "return s.state.commit, s.state.exact }", "return 1, true }"}},
		tests: []tests{{"storage/lsm", "TestEngine_Contract$"}},
	},
	{
		name:  "what is kept of one range is found by another",
		edits: []edit{{"internal/plan/sizes.go", "binary.AppendUvarint(keys, uint64(len(r.Lo)))", "binary.AppendUvarint(keys, 0)"}, {"internal/plan/sizes.go", "binary.AppendUvarint(keys, uint64(len(r.Hi)))", "binary.AppendUvarint(keys, 0)"}},
		tests: []tests{{"internal/plan", "TestAppendKeys$"}},
	},
	{
		name:  "a range that has grown misleads all plans",
		edits: []edit{{"internal/plan/sizes.go", "keys <= int64(2*pl.Access[0].estimate+manyKeys) {", "true {"}},
		tests: []tests{{"tests/query", "TestPlan_GrownRange$"}},
	},
	{
		name:  "of two conditions on an array, one counts as unknown",
		edits: []edit{{"internal/plan/sizes.go", "\t\tcase known:\n", "\t\tcase false && known:\n"}},
		tests: []tests{{"tests/query", "TestPlan_TwoOfOneArray$"}},
	},
	{
		name:  "a limit without an order is never compared with the scan",
		edits: []edit{{"internal/plan/plan.go", "p.q.Offset+p.q.Limit > raceKeys {", "false {"}},
		tests: []tests{{"tests/query", "TestPlan_Sizes$"}},
	},
	{
		name:  "answers from before a change of the plan come again, in order",
		edits: []edit{{"internal/exec/instead.go", "\tif c.last.Key != nil {\n", "\tif false {\n"}},
		tests: []tests{{"tests/query", "TestQuery_GivesUp$|TestQuery_AgainstNaive$"}},
	},
	{
		name:  "answers from before a change of the plan come again, without an order",
		edits: []edit{{"internal/exec/instead.go", "r.instead.given[doc.FoldedID()]; !found {", "r.instead.given[doc.FoldedID()]; true || !found {"}},
		tests: []tests{{"tests/query", "TestQuery_GivesUp$|TestQuery_AgainstNaive$"}},
	},
	{
		name:  "a scan that replaces a plan does not pass over what the plan has met",
		edits: []edit{{"internal/exec/lanes.go", "\tif r.unweighed.met == nil {\n\t\treturn false", "\tif true {\n\t\treturn false"}},
		tests: []tests{{"tests/query", "TestPlan_ScanIsCheaper$|TestQuery_AgainstNaive$"}},
	},
	{
		name:  "a plan is changed though the transaction's own documents are merged into it",
		edits: []edit{{"internal/exec/instead.go", "few || len(r.overlay.Own) > 0 ||", "few ||"}},
		tests: []tests{{"tests/query", "TestQuery_GivesUp$|TestQuery_AgainstNaive$"}},
	},
	{
		name:  "a walk along an order goes on though its answers are rarer than expected",
		edits: []edit{{"internal/plan/cheapest.go", "case c.rest(own.near, looked, given, int64(p.q.Offset)+int64(p.q.Limit)) > least:", "case false:"}},
		tests: []tests{{"tests/query", "TestPlan_RareAnswersInOrder"}},
	},
	{
		name:  "the scan that is cheaper is taken where it is refused",
		edits: []edit{{"internal/plan/cost.go", "case p.options.NoScan || a.Answer", "case a.Answer"}},
		tests: []tests{{"tests/query", "TestPlan_ScanIsCheaper$|TestQuery_GivesUp$"}},
	},
	{
		name:  "a partial index is used without its condition",
		edits: []edit{{"internal/plan/binding.go", "\t\tif !p.requires(needed) {", "\t\tif false && !p.requires(needed) {"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$"}},
	},
	{
		name:  "ties in the wrong direction",
		edits: []edit{{"internal/plan/path.go", "idsDescending := a.Index.LastDescending() != (match == orderReverse)", "idsDescending := a.Index.LastDescending() == (match == orderReverse)"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$"}},
	},
	{
		name:  "an entry counts as covering though its value comes from an array of one element",
		edits: []edit{{"internal/catalog/extract.go", "\t\tc.single = c.single && x.reader.Single(slot)\n", "\t\t_ = slot\n"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "an entry counts as covering though its value has another JSON text",
		edits: []edit{{"internal/catalog/extract.go", "covering && !truncated && query.Recoverable(v)", "covering && !truncated"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "an entry counts as covering though the ID has other capitals",
		edits: []edit{{"internal/catalog/entries.go", "dst, cased = appendCase(dst, id, folded)", "dst, cased = appendCase(dst, folded, folded)"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "a missing value of a covering entry counts as null",
		edits: []edit{{"internal/plan/covering.go", "\t\tif m.inner == nil && len(texts[m.field]) == 0 {\n\t\t\tcontinue\n", "\t\tif m.inner == nil && len(texts[m.field]) == 0 {\n\t\t\ttexts[m.field] = []byte(\"null\")\n"}},
		tests: []tests{{"tests/query", "TestQuery_AgainstNaive$|TestQuery_Cover_"}},
	},
	{
		name:  "an entry that is no longer covering is not updated",
		edits: []edit{{"internal/write/stage.go", "kept[same] = after.List[same].Covering == e.Covering", "kept[same] = true"}},
		tests: []tests{{"tests/query", "TestQuery_Cover_"}, {"tests/index", "TestIndex_Contents_AfterWrites$"}},
	},
	{
		name:  "a document that changes takes its entry out of a unique index under construction, though another has it by now",
		edits: []edit{{"internal/write/stage.go", "\tif e.Unique && e.Index.Info.State == index.Building {\n\t\tvalue, closer", "\tif false {\n\t\tvalue, closer"}},
		tests: []tests{{"tests/index", "TestIndex_Build_UniqueTaken$"}},
	},
	{
		name:  "old entries stay",
		edits: []edit{{"internal/write/stage.go", "\tt.Tx.Delete(t.key)\n\treturn nil\n", "\treturn nil\n"}},
		tests: []tests{{"tests/index", "TestIndex_Contents_"}},
	},
	{
		name:  "a build misses a write that was under way",
		edits: []edit{{"internal/indexer/build.go", "\treturn in.env.Engine.Update(in.ctx, false, func(storage.Tx) error { return nil })\n", "\treturn nil\n"}},
		tests: []tests{{"internal/indexer", "TestBuild_WriteUnderWay$"}},
	},
	{
		name:  "documents are written into a collection with an index of an unknown kind",
		edits: []edit{{"internal/write/stage.go", "\tif ci != nil && ci.Unknown != nil {\n\t\treturn ci.Unknown\n\t}\n\tif err := t.stageFit(o)", "\tif err := t.stageFit(o)"}},
		tests: []tests{{"internal/catalog", "TestKind_Unknown$"}},
	},
	{
		name:  "what another kind of index finds is not checked on documents",
		edits: []edit{{"internal/plan/path.go", "exact: answer.Exact}", "exact: answer.Used}"}},
		tests: []tests{{"internal/kindtest", "TestHash$"}},
	},
	{
		name:  "the entries of another kind of index are not sorted",
		edits: []edit{{"internal/catalog/entries.go", "if es.sort(ix, first); noted {", "if es.flag(ix, FlagMultiple); noted {"}},
		tests: []tests{{"internal/kindtest", "TestHash$"}},
	},
	{
		name:  "an index that stages its keys itself is not told of deletions",
		edits: []edit{{"internal/write/stage.go", "\tif ci != nil {\n\t\tfor _, ix := range ci.Stagers {", "\tif ci != nil && after != nil {\n\t\tfor _, ix := range ci.Stagers {"}},
		tests: []tests{{"internal/kindtest", "TestSums$"}},
	},
	{
		name:  "a part of an index is settled though a writer has overtaken it",
		edits: []edit{{"internal/catalog/seen.go", "if err != nil || (now == nil) != (value == nil) || !bytes.Equal(now, value) {", "if err != nil || value == nil && bytes.Equal(now, []byte(\"none\")) {"}},
		tests: []tests{{"internal/kindtest", "TestRanking_Strict$"}},
	},
	{
		name:  "a part of an index is settled though the index is being dropped",
		edits: []edit{{"internal/indexer/settle.go", "if settled = !s.in.isKept(ix.Number); settled {", "if settled {"}},
		tests: []tests{{"internal/kindtest", "TestRanking_Strict$"}},
	},
	{
		name:  "nothing is settled after a write",
		edits: []edit{{"internal/write/stage.go", "t.unsettled = true", "t.unsettled = false"}},
		tests: []tests{{"internal/kindtest", "TestRanking_Strict$"}},
	},
	{
		name:  "an index with other options counts as the same",
		edits: []edit{{"internal/catalog/declare.go", " && maps.Equal(ix.Options, other.Options)\n", " && (maps.Equal(ix.Options, other.Options) || true)\n"}},
		tests: []tests{{"internal/kindtest", "TestScore_Lenient$"}},
	},
	{
		name:  "an option that the kind does not have is kept",
		edits: []edit{{"internal/catalog/options.go", "\t\t\treturn nil, &index.OptionError{Index: ix.Name, Collection: collection, Kind: ix.Kind, Option: name, Value: ix.Options[name], Rule: k.has(name), Unknown: true}\n", "\t\t\tcontinue\n"}},
		tests: []tests{{"internal/catalog", "TestOptions_"}},
	},
	{
		name:  "a build does not take a new snapshot when its own has expired",
		edits: []edit{{"internal/indexer/build.go", "errors.Is(err, storage.ErrSnapshotExpired) && after != begin", "false && after != begin"}},
		tests: []tests{{".", "TestOptions_Engine_ShortSnapshots_Build$"}},
	},
	{
		name:  "JavaScript of a query: a transaction's documents are read from the snapshot",
		edits: []edit{{"internal/exec/scripted.go", "if o := rd.r.overlay; o.Enter != nil {", "if o := rd.r.overlay; false {"}},
		tests: []tests{{"tests/query", "TestScript_InTransaction"}},
	},
	{
		name:  "JavaScript of a query: what has expired is loaded",
		edits: []edit{{"internal/exec/scripted.go", "return docs.AliveAt(rd.r.moment, doc, err)", "return doc, err"}},
		tests: []tests{{"tests/query", "TestScript_InTransaction"}},
	},
	{
		name:  "JavaScript of a query: distinct rows are left out behind the limit",
		edits: []edit{{"internal/exec/scripted.go", "s.skip, s.left, r.skip, r.left = r.skip, r.left, 0, -1", ""}},
		tests: []tests{{"tests/query", "TestScript$"}},
	},
	{
		name:  "JavaScript of a query: the query has no budget of steps",
		edits: []edit{{"query/script.go", "Steps: min(MaxScriptSteps, in.Steps)", "Steps: MaxScriptSteps"}},
		tests: []tests{{"tests/query", "TestScript_Budget"}},
	},
	{
		name:  "JavaScript of a query: its text keeps the names of parameters",
		edits: []edit{{"query/script.go", "if len(s.values) == 0 {", "if true {"}},
		tests: []tests{{"tests/query", "TestScript$"}},
	},
	{
		name:  "JavaScript of a query: a bracket in a text ends it",
		edits: []edit{{"internal/script/lex.go", "if t.kind != symbol || !bracketed {", "if !bracketed {"}},
		tests: []tests{{"internal/script", "TestProjection_Brackets"}},
	},
	{
		name:  "scripts: spread arguments are one",
		edits: []edit{{"internal/script/run.go", "if !n.spread[i] {", "if !n.spread[i] || true {"}},
		tests: []tests{{"internal/script", "TestProjection$"}},
	},
	{
		name:  "scripts: var declares in its block",
		edits: []edit{{"internal/script/run.go", "s = s.ofFunction()", "_ = s.ofFunction()"}},
		tests: []tests{{"internal/script", "TestNode$"}},
	},
	{
		name:  "scripts: halves of digits go to the even one",
		edits: []edit{{"internal/script/numbers.go", "up := digits[end] >= '5'", "up := digits[end] > '5'"}},
		tests: []tests{{"internal/script", "TestNode$"}},
	},
	{
		name:  "scripts: halves of a character stay apart",
		edits: []edit{{"internal/script/run.go", "return glue(x, y), nil", "return x + y, nil"}},
		tests: []tests{{"internal/script", "TestNode$"}},
	},
	{
		name:  "JavaScript of a query: a subscription may have it",
		edits: []edit{{"internal/subs/subs.go", "if q.Script != nil {", "if false {"}},
		tests: []tests{{"tests/query", "TestScript_Refused"}},
	},
	{
		name:  "the garbage on Go's heap has no share of the memory",
		edits: []edit{{"internal/budget/divide.go", "\ts.Bound = all + s.Collector\n", "\ts.Bound = all\n"}},
		tests: []tests{{"internal/budget", "TestDivide"}},
	},
	{
		name:  "holders of memory wait for one another in a circle",
		edits: []edit{{"internal/budget/pool.go", "d.held > 0 && p.stuck+1 >= p.holders", "d.held > 0 && p.stuck > p.holders"}},
		tests: []tests{{"internal/budget", "TestPool_Refuses"}},
	},
	{
		name:  "a query keeps its share of the memory after its end",
		edits: []edit{{"internal/exec/run.go", "\tr.closed = cause\n\tr.payer.End()\n", "\tr.closed = cause\n"}},
		tests: []tests{{".", "TestMaxMemory_Work"}},
	},
	{
		name:  "a bulk writer keeps its share of the memory after its end",
		edits: []edit{{"internal/bulk/bulk.go", "\t\t\tw.memory.End()\n", ""}},
		tests: []tests{{".", "TestMaxMemory_Work"}},
	},
	{
		name:  "a database keeps its claim on shared memory after Close",
		edits: []edit{{"db.go", "\tdefer db.memory.End()\n", ""}},
		tests: []tests{{".", "TestMemory_Shared"}},
	},
	{
		name:  "a database that does not open keeps its claim on shared memory",
		edits: []edit{{"open.go", "\t\t\tclaim.End()\n", "\t\t\t_ = claim\n"}},
		tests: []tests{{".", "TestMemory_GivenBack"}},
	},
	{
		name:  "the last database gets memory that is claimed already",
		edits: []edit{{"internal/budget/common.go", "\tcase s.Bound > c.left:", "\tcase s.Bound > c.caches+1:"}},
		tests: []tests{{"internal/budget", "TestCommon"}},
	},
	{
		name:  "the server closes no database to make room in its memory for another one",
		edits: []edit{{"server/internal/serve/databases.go", "\t\tif !errors.Is(err, jay.ErrMemory) {\n", "\t\tif true {\n"}},
		tests: []tests{{"server", "TestMaxMemory_Databases"}},
	},
	{
		name:  "indexes: a typed collection does not check the names in a condition",
		edits: []edit{{"internal/builder/index.go", "return query.EachField(condition, check(\"condition\", x.Where))", "_ = condition\n\treturn nil"}},
		tests: []tests{{".", "TestCollection_EnsureIndex$"}},
	},
	{
		name:  "scans: what was copied is looked at after a long document behind it",
		edits: []edit{{"internal/exec/lanes.go", "\t\t\tn.lookAtCopies(p)\n\t\t\tn.look(p, folded, record)\n", "\t\t\tn.look(p, folded, record)\n"}},
		tests: []tests{{"tests/query", "TestScan_OnSeveralGoroutines$"}},
	},
	{
		name:  "scans: the error of a part is forgotten",
		edits: []edit{{"internal/exec/lanes.go", "\t\t\tif p.err != nil {\n\t\t\t\treturn nil, p.err\n\t\t\t}\n\t\t\tl.given++", "\t\t\tl.given++"}},
		tests: []tests{{"tests/query", "TestScan_Damaged$"}},
	},
	{
		name:  "scans: several goroutines look at documents of other collections",
		edits: []edit{{"internal/exec/lanes.go", "\tif !n.member.Has(n.header.Collection) {\n\t\treturn\n\t}\n", ""}},
		tests: []tests{{"tests/query", "TestScan_OnSeveralGoroutines$"}},
	},
	{
		name:  "scans: several goroutines find what the transaction has written",
		edits: []edit{{"internal/exec/lanes.go", "!n.pace.Spend(len(body)) || (scanRun{r}).leavesOut(folded, &n.header)", "!n.pace.Spend(len(body))"}},
		tests: []tests{{"tests/query", "TestScan_OfTransaction$"}},
	},
	{
		name:  "scans: of documents that are equal in the order the first ones are left out",
		edits: []edit{{"internal/exec/sort.go", "return exact && bytes.Compare(b.key, *key) < 0", "return exact && bytes.Compare(b.key, *key) <= 0"}},
		tests: []tests{{"tests/query", "TestScan_OnSeveralGoroutines$"}},
	},
	{
		name:  "scans: groups of a part are there once more in the next round",
		edits: []edit{{"internal/exec/lanes.go", "\t\tp.groups.Reset()\n", ""}},
		tests: []tests{{"tests/query", "TestScan_OnSeveralGoroutines$"}},
	},
	{
		name:  "scans: what a part has taken is taken by another goroutine, too",
		edits: []edit{{"internal/exec/lanes.go", "\tl.taken++\n\tsize := 0", "\tl.taken = min(l.taken+1, 2)\n\tsize := 0"}},
		tests: []tests{{"tests/query", "TestScan_OnSeveralGoroutines$"}},
	},
	{
		name:  "parallel: a processor is given twice",
		edits: []edit{{"internal/parallel/spare.go", "int64(runtime.GOMAXPROCS(0))-1-taken", "int64(runtime.GOMAXPROCS(0))-1"}},
		tests: []tests{{"internal/parallel", "TestDoSpare_Processors$"}},
	},
	{
		name:  "scans: a sort by scores leaves documents out before their scores are known",
		edits: []edit{{"internal/exec/sort.go", "keep > 0 && r.meta.scorer == nil", "keep > 0"}},
		tests: []tests{{"internal/score", "TestScores_PowerCut$"}},
	},
	{
		name:  "scans: groups that are too large for a part are too large",
		edits: []edit{{"internal/exec/lanes.go", "\t\treturn nil\n\t}\n\treturn groupError(doc, err, n.pace.Err())", "\t}\n\treturn groupError(doc, err, n.pace.Err())"}},
		tests: []tests{{"tests/query", "TestScan_LargeGroups$"}},
	},
	{
		name:  "scans: documents of which a part cannot make groups are in none",
		edits: []edit{{"internal/exec/lanes.go", "\tn.lookAtCopies(&again)\n", ""}},
		tests: []tests{{"tests/query", "TestScan_OnSeveralGoroutines$|TestScan_LargeGroups$"}},
	},
	{
		name:  "scans: one goroutine goes on until it finds an answer",
		edits: []edit{{"internal/exec/lanes.go", "\t\tscan.w.Interrupt = scan.askAlone\n", ""}},
		tests: []tests{{"tests/query", "TestScan_ReadsAhead$"}},
	},
	{
		name:  "streams: the status is sent before the first results",
		edits: []edit{{"server/internal/serve/reply.go", "if len(s.held)+len(b) <= streamHeldBytes {", "if false {"}},
		tests: []tests{{"server", "TestStreams_Fail"}},
	},
	{
		name:  "streams: a long stream that fails ends as if it were complete",
		edits: []edit{{"server/internal/serve/handle.go", "if err != nil && c.Started {", "if false && err != nil && c.Started {"}},
		tests: []tests{{"server", "TestStreams_Fail"}},
	},
}
