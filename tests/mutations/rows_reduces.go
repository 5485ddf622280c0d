package main

// reducing are changes of what reduces compute of entries, of fields with names in documents, and of conditions on loaded documents.
var reducing = []mutation{
	{
		name:  "reduces: a list has each value once",
		edits: []edit{{"query/listed.go", "\tg.pace.Spend(1 + len(v.raw))\n\tif fn == FuncListDistinct {", "\tg.pace.Spend(1 + len(v.raw))\n\tif fn >= FuncList {"}},
		tests: []tests{{"query", "TestGroups_Listed$"}},
	},
	{
		name:  "reduces: a list has the order of documents",
		edits: []edit{{"query/listed.go", "\tslices.SortStableFunc(c.listed, Value.Compare)\n", "\t_ = slices.SortStableFunc[[]Value]\n"}},
		tests: []tests{{"query", "TestGroups_Listed$"}},
	},
	{
		name:  "reduces: the values of lists are not bounded",
		edits: []edit{{"query/listed.go", "case g.listed > MaxListed:", "case false && g.listed > MaxListed:"}},
		tests: []tests{{"query", "TestGroups_Listed_Bound"}},
	},
	{
		name:  "reduces: merged groups count none of the values of lists",
		edits: []edit{{"query/listed.go", "\tg.listed++\n", ""}},
		tests: []tests{{"query", "TestGroups_Listed_Bound"}},
	},
	{
		name:  "reduces: if without a second value is null",
		edits: []edit{{"query/expression_functions.go", "\tif len(chosen) == 0 {\n\t\treturn Value{}, nil", "\tif len(chosen) == 0 {\n\t\treturn null, nil"}},
		tests: []tests{{"query", "TestExpression_JoinAndIf"}, {"internal/computed", "TestListed_History"}},
	},
	{
		name:  "reduces: a text that is joined has no bound",
		edits: []edit{{"query/expression_functions.go", "err == nil && len(text) > MaxComputedBytes {\n\t\t\terr = &LimitError", "err == nil && len(text) > 8*MaxComputedBytes {\n\t\t\terr = &LimitError"}, {"query/expression.go", "case len(v.raw) > MaxComputedBytes:", "case len(v.raw) > 8*MaxComputedBytes:"}},
		tests: []tests{{"query", "TestExpression_JoinAndIf"}},
	},
	{
		name:  "reduces: a list is in no index beside kept sums",
		edits: []edit{{"internal/plan/beside.go", "pl.Along.Skip < 0 && !slices.ContainsFunc(columns, isListed)", "pl.Along.Skip < 0"}},
		tests: []tests{{"internal/computed", "TestListed_History"}},
	},
	{
		name:  "reduces: a list of different values misses some beside an index",
		edits: []edit{{"internal/plan/along.go", "case query.FuncCountDistinct, query.FuncListDistinct:", "case query.FuncCountDistinct:"}, {"internal/plan/beside.go", "func isListed(c query.Column) bool { return c.Func == query.FuncList }", "func isListed(c query.Column) bool { return false }"}},
		tests: []tests{{"internal/computed", "TestListed_History"}},
	},
	{
		name:  "reduces: a query computes results that it does not name",
		edits: []edit{{"internal/computed/resolve.go", "if len(q.Select) == 0 {\n\t\treturn d.reduce.results", "if len(q.Select) >= 0 {\n\t\treturn d.reduce.results"}},
		tests: []tests{{"internal/computed", "TestListed_NotAsked"}},
	},
	{
		name:  "reduces: a condition on a result does not name it",
		edits: []edit{{"internal/computed/resolve.go", "\tfields := query.Fields(q.Where)\n\tfor _, o := range q.OrderBy {\n\t\tfields", "\tfields := query.Fields(nil)\n\tfor _, o := range q.OrderBy {\n\t\tfields"}},
		tests: []tests{{"internal/computed", "TestListed_NotAsked"}},
	},
	{
		name:  "reduces: the error of a list names no index",
		edits: []edit{{"internal/exec/computed.go", "e.Index = x.of.Name", "e.Index = \"\""}},
		tests: []tests{{"internal/computed", "TestListed_Bound"}},
	},
	{
		name:  "reduces: null is no different value in a definition",
		edits: []edit{{"server/internal/algebra/entries.go", "\tif !v.maybe {\n\t\treturn value{text: text, kind: integerKind}, nil", "\tif text != \"\" {\n\t\treturn value{text: text, kind: integerKind}, nil"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate$"}},
	},
	{
		name:  "reduces: all entries satisfy what some do",
		edits: []edit{{"server/internal/algebra/entries.go", "c = and(of.rows.where, not(c)); c.never", "c = and(of.rows.where, c); c.never"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate$"}, {"server", "TestComputed_Entries"}},
	},
	{
		name:  "reduces: the value of a created field may be of another element than its name",
		edits: []edit{{"query/created.go", "And{Compare{Field: c.Name, Op: Equal, Value: TextValue(name)}, value}", "And{value}"}},
		tests: []tests{{"internal/computed", "TestCreated_History"}},
	},
	{
		name:  "reduces: case does not matter in the name of a created field",
		edits: []edit{{"query/created.go", "Value: TextValue(name)}", "Value: TextValue(name), Fold: true}"}},
		tests: []tests{{"internal/computed", "TestCreated_History"}},
	},
	{
		name:  "reduces: one element of a created field has all values",
		edits: []edit{{"internal/computed/created.go", "is && in.All {", "is && in.All && false {"}},
		tests: []tests{{"internal/computed", "TestCreated_History"}},
	},
	{
		name:  "reduces: created fields have no index",
		edits: []edit{{"internal/computed/children.go", "return append(children, more...), append(without, why...)", "_ = more\n\treturn children, append(without, why...)"}},
		tests: []tests{{"internal/computed", "TestCreated_History"}},
	},
	{
		name:  "loads: a document is answered with what it loads",
		edits: []edit{{"internal/exec/loading.go", "} else if l.expands {", "} else if false && l.expands {"}},
		tests: []tests{{"internal/computed", "TestLoads_AnswersAsStored"}},
	},
	{
		name:  "loads: what an index does not decide looks at documents as they are stored",
		edits: []edit{{"internal/exec/loading.go", "IsGrouped(r.q) || query.LoadsIn(where) ||", "IsGrouped(r.q) ||"}},
		tests: []tests{{"internal/computed", "TestLoads_AnswersAsStored"}},
	},
	{
		name:  "loads: a change by query does not conflict with what it loads",
		edits: []edit{{"internal/txn/query.go", "doc, err := t.stored(folded)", "doc, err := t.docs.ReadFolded(t.snapshot, folded)"}},
		tests: []tests{{"internal/computed", "TestLoads_Changes"}},
	},
	{
		name:  "loads: a condition in a transaction does not see its own writes",
		edits: []edit{{"internal/txn/query.go", "if i, found := t.staged[folded]; found {\n\t\t\tif o := t.ops[i]; !o.Verb.Deletes() {", "if i, found := t.staged[folded]; found && false {\n\t\t\tif o := t.ops[i]; !o.Verb.Deletes() {"}},
		tests: []tests{{"internal/computed", "TestLoads_Changes"}},
	},
	{
		name:  "loads: a member with the alias in front is taken for a name of load",
		edits: []edit{{"query/rql_script.go", " && !s.p.ofAlias[l.Name] })", " })"}},
		tests: []tests{{"internal/computed", "TestLoads_Changes"}},
	},
	{
		name:  "reduces: of equal members of a map each column has the last one",
		edits: []edit{{"query/aggregate.go", "(at < 0 || slices.Contains(g.keys, at))", "true"}},
		tests: []tests{{"internal/computed", "TestComputed_EqualMembers"}},
	},
	{
		name:  "reduces: of equal members of a map each column has the first one",
		edits: []edit{{"query/aggregate.go", "(at < 0 || slices.Contains(g.keys, at))", "at < 0"}},
		tests: []tests{{"internal/computed", "TestComputed_EqualMembers"}},
	},
}
