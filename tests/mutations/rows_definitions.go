package main

// definitions are changes of the index definitions of RavenDB's clients: what they mean, and what is done with them.
var definitions = []mutation{
	{
		name:  "definitions: a quotient of integers has decimals",
		edits: []edit{{"server/internal/algebra/operators.go", "if op == \"/\" && !t.script && kind == integerKind {", "if false && op == \"/\" && !t.script && kind == integerKind {"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp"}},
	},
	{
		name:  "definitions: a quotient of what the document has is never one of integers",
		edits: []edit{{"server/internal/algebra/operators.go", "if op == \"/\" && !t.script && kind == anyKind {", "if false && op == \"/\" && !t.script && kind == anyKind {"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp"}},
	},
	{
		name:  "definitions: a cast to a number leaves out what is missing",
		edits: []edit{{"server/internal/algebra/functions.go", "if o.maybe && !nullable {\n\t\t\to = call(", "if false && o.maybe && !nullable {\n\t\t\to = call("}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp"}},
	},
	{
		name:  "definitions: null is nothing in arithmetic of JavaScript",
		edits: []edit{{"server/internal/algebra/operators.go", "case t.script && v.maybe:\n\t\treturn value{at: v.at, text: \"coalesce(\" + v.text + \", 0)\"", "case false && t.script && v.maybe:\n\t\treturn value{at: v.at, text: \"coalesce(\" + v.text + \", 0)\""}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Meaning$"}},
	},
	{
		name:  "definitions: null is nothing in a text of JavaScript",
		edits: []edit{{"server/internal/algebra/operators.go", "return []string{\"coalesce(\" + v.text + \", 'null')\"}", "return []string{v.text}"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Meaning$"}},
	},
	{
		name:  "definitions: 0 is true in JavaScript",
		edits: []edit{{"server/internal/algebra/operators.go", "in (null, false, 0, ''))\", order", "in (null, false, ''))\", order"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Meaning$"}},
	},
	{
		name:  "definitions: null is above or below nothing in JavaScript",
		edits: []edit{{"server/internal/algebra/operators.go", "if x.maybe && !(y.constant && !zeroIs(op, y.raw)) {", "if false {"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Meaning$"}},
	},
	{
		name:  "definitions: case does not count in a comparison",
		edits: []edit{{"server/internal/algebra/operators.go", "return one(\"exact(%s %s %s)\", left, op, y.text)", "return one(\"%s %s %s\", left, op, y.text)"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp"}},
	},
	{
		name:  "definitions: a comparison with a constant in front is not turned round",
		edits: []edit{{"server/internal/algebra/operators.go", "\t\t\top = other\n", "\t\t\t_ = other\n"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp|TestTranslate_Meaning$"}},
	},
	{
		name:  "definitions: what is missing differs from null where members are compared",
		edits: []edit{{"server/internal/algebra/operators.go", "same = or(same, and(t.absent(a), t.absent(b)))", "_ = t.absent"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp"}},
	},
	{
		name:  "definitions: the condition of an if is forgotten behind it",
		edits: []edit{{"server/internal/algebra/steps.go", "return guarded(no, not(c)), nil", "return guarded(no, condition{}), nil"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Meaning$"}},
	},
	{
		name:  "definitions: an element has the name of a member of the document",
		edits: []edit{{"server/internal/algebra/translate.go", "for t.roots[name] {", "for false && t.roots[name] {"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate$"}},
	},
	{
		name:  "definitions: halves are rounded away from zero in C#",
		edits: []edit{{"server/internal/algebra/functions.go", "\tif away {\n", "\tif away || true {\n"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp"}},
	},
	{
		name:  "definitions: a part of a date hides a member",
		edits: []edit{{"server/internal/algebra/eval.go", "return call(\"coalesce\", kind, true, v.pathText(), p.text), nil", "return value{text: p.text, kind: kind, maybe: true}, nil"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_MeaningOfSharp"}},
	},
	{
		name:  "definitions: a reduce sums what is no member of the maps",
		edits: []edit{{"server/internal/algebra/reduce.go", "name := v.path[0].name; slices.Contains(t.members, name) {", "name := v.path[0].name; true || slices.Contains(t.members, name) {"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Refused"}},
	},
	{
		name:  "definitions: a disabled index is asked",
		edits: []edit{{"server/internal/verbs/definitions.go", "\tcase Disabled:\n\t\treturn serve", "\tcase \"-\":\n\t\treturn serve"}},
		tests: []tests{{"server", "TestIndexes_Disable"}},
	},
	{
		name:  "definitions: a new definition builds a disabled index",
		edits: []edit{{"server/internal/raven/indexes.go", "\t\td.State = old.State\n", "\t\t_ = old.State\n"}},
		tests: []tests{{"server", "TestIndexes_Disable"}},
	},
	{
		name:  "definitions: a disabled index keeps its entries",
		edits: []edit{{"server/internal/raven/indexadmin.go", "\t\tif err := dropIndexes(c, d, nil); err != nil {\n\t\t\treturn err\n\t\t}\n\t} else", "\t} else"}},
		tests: []tests{{"server", "TestIndexes_Disable"}},
	},
	{
		name:  "definitions: a page of terms begins with the term before it",
		edits: []edit{{"server/internal/raven/indexadmin.go", "\t\tif found {\n\t\t\ti++\n\t\t}\n", "\t\t_ = found\n"}},
		tests: []tests{{"server", "TestIndexes_Terms"}},
	},
	{
		name:  "definitions: rows take members of documents in place of what the index stores",
		edits: []edit{{"internal/computed/documents.go", "if f.Meta != query.MetaNone || !isMember(f.Path.Root()) {", "if true || !isMember(f.Path.Root()) {"}},
		tests: []tests{{"internal/computed", "TestDefinition_Documents"}, {"server", "TestComputed_Map"}},
	},
	{
		name:  "definitions: a facet of an index is of the member that documents have",
		edits: []edit{{"internal/computed/documents.go", "if f.Field.Meta != query.MetaNone || !f.Field.Path.IsZero() {", "if f.Field.Meta != query.MetaNone {"}},
		tests: []tests{{"internal/computed", "TestDefinition_Documents"}},
	},
	{
		name:  "definitions: a document matches if any of its elements is in the index",
		edits: []edit{{"internal/exec/filter.go", "case f.matcher == nil || f.matcher.Match(doc):\n\t\t\treturn errFound", "case f.matcher == nil || len(doc.Element) > 0:\n\t\t\treturn errFound"}},
		tests: []tests{{".", "TestComputed_Matcher"}},
	},
	{
		name:  "definitions: a document matches a map of another collection",
		edits: []edit{{"internal/exec/filter.go", "case e.collection != \"\" && !d.IsIn(e.collection):", "case e.collection != \"\" && len(d.JSON()) == 0:"}},
		tests: []tests{{".", "TestComputed_Matcher"}},
	},
	{
		name:  "definitions: errors of the parts of a computed index are not counted",
		edits: []edit{{"internal/core/computed.go", "if part.Errors {", "if false && part.Errors {"}},
		tests: []tests{{".", "TestComputed_DeclaredAndErrors"}},
	},
	{
		name:  "definitions: a document of several entries is several answers",
		edits: []edit{{"server/internal/verbs/entries.go", "\tcase e.repeats:\n\t\treturn one.id", "\tcase e.repeats && len(one.id) == 0:\n\t\treturn one.id"}},
		tests: []tests{{"server", "TestComputed_SeveralEntries"}},
	},
	{
		name:  "definitions: a page of documents ends with the entries that were asked for first",
		edits: []edit{{"server/internal/verbs/entries.go", "if entries < limit || done == most || limit > math.MaxInt/4 {", "if entries < limit || done == most || limit > 0 {"}, {"server/internal/verbs/entries.go", "limit = 2*limit + 64", "limit = limit + 0"}},
		tests: []tests{{"server", "TestComputed_SeveralEntries"}},
	},
	{
		name:  "definitions: what is no text, array or object is its own element, for ever",
		edits: []edit{{"server/internal/raven/queries.go", "\tif value.Type != gjson.JSON {", "\tif value.Type == gjson.False {"}},
		tests: []tests{{"server", "TestQueries_IncludesOther"}},
	},
	{
		name:  "pages: the result after the page is on it",
		edits: []edit{{"server/internal/raven/queries.go", "r.QueryPage.Full(found.results())", "r.QueryPage.Full(found.results() - 1)"}},
		tests: []tests{{"server", "TestQueries_Pages"}},
	},
	{
		name:  "pages: the total of a page that others follow is its own",
		edits: []edit{{"server/internal/raven/queries.go", "!known || more || verbs", "!known || verbs"}},
		tests: []tests{{"server", "TestQueries_Pages"}},
	},
	{
		name:  "pages: the total of a page does not have what precedes it",
		edits: []edit{{"server/internal/verbs/queries.go", "return int64(*p.Start) + int64(n), n > 0", "return int64(n), n > 0"}},
		tests: []tests{{"server", "TestQueries_Pages"}},
	},
	{
		name:  "pages: the total of an empty page is where it begins",
		edits: []edit{{"server/internal/verbs/queries.go", "return int64(*p.Start) + int64(n), n > 0", "return int64(*p.Start) + int64(n), true"}},
		tests: []tests{{"server", "TestQueries_Pages"}},
	},
	{
		name:  "definitions: the total counts entries",
		edits: []edit{{"server/internal/verbs/entries.go", "\tif !e.distinct && !e.repeats {\n", "\tif !e.distinct {\n"}},
		tests: []tests{{"server", "TestComputed_SeveralEntries"}},
	},
	{
		name:  "definitions: columns of the index and of the document change places",
		edits: []edit{{"server/internal/verbs/entries.go", "\t\tif ofIndex {\n", "\t\tif !ofIndex {\n"}},
		tests: []tests{{"server", "TestComputed_SeveralEntries"}},
	},
	{
		name:  "definitions: a definition that is refused drops the index of a program",
		edits: []edit{{"server/internal/raven/indexes.go", "\tif old != nil || !declared {\n", "\tif true || !declared {\n"}},
		tests: []tests{{"server", "TestComputed_RefusedOverPrograms"}},
	},
	{
		name:  "definitions: another definition stays beside the computed index of the one before",
		edits: []edit{{"server/internal/raven/indexes.go", " || old.Computed != nil && d.Computed == nil || len(", " || len("}, {"server/internal/raven/indexes.go", "if d.Computed != nil && (next == nil || next.Computed == nil) {", "if d.Computed != nil && next == nil {"}},
		tests: []tests{{"server", "TestComputed_Administration"}},
	},
	{
		name:  "definitions: what the index stores does not change a definition",
		edits: []edit{{"server/internal/raven/indexes.go", "case !sameStorage(old, d):", "case false:"}},
		tests: []tests{{"server", "TestComputed_Administration"}},
	},
	{
		name:  "definitions: more errors of an index are listed than the bound",
		edits: []edit{{"server/internal/raven/listed.go", "failures[:min(len(failures), maxIndexErrors)]", "failures"}},
		tests: []tests{{"server", "TestComputed_ManyErrors"}},
	},
	{
		name:  "definitions: documents that have refused an index are asked again by each query",
		edits: []edit{{"server/internal/verbs/indexed.go", "if err := c.DB.Definitions().Change(c.Ctx, d.Change()); err != nil {", "if err := c.Ctx.Err(); err != nil {"}},
		tests: []tests{{"server", "TestComputed_Gone"}},
	},
	{
		name:  "definitions: enabling builds for the collection that was renamed",
		edits: []edit{{"server/internal/raven/indexadmin.go", "\t\t\td.Computed = &declared.Computed\n", ""}},
		tests: []tests{{"server", "TestComputed_BackupRenameReadOnly"}},
	},
	{
		name:  "definitions: a list forgets its condition",
		edits: []edit{{"server/internal/algebra/loads.go", "case !r.where.always():", "case false && !r.where.always():"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Refused"}},
	},
	{
		name:  "definitions: one of several loaded documents is the first one",
		edits: []edit{{"server/internal/algebra/loads.go", "v, err := t.reference(of, step{index: i})", "v, err := t.reference(of, step{index: 0})"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate$"}},
	},
	{
		name:  "definitions: what is around a reference is found out when the index is made",
		edits: []edit{{"server/internal/algebra/translate.go", "return m, loader{t}.check(n.at, m)", "return m, nil"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate_Refused"}},
	},
	{
		name:  "definitions: the first one of a falling order is the first of the rising one",
		edits: []edit{{"server/internal/algebra/firsts.go", "\tif descending {\n", "\tif false && descending {\n"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate$"}, {"server", "TestComputed_Firsts"}},
	},
	{
		name:  "definitions: values that a script has sorted are read as if they had no order",
		edits: []edit{{"server/internal/algebra/firsts.go", "if order == \"\" && t.sorted != nil {", "if false && order == \"\" && t.sorted != nil {"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate$"}},
	},
	{
		name:  "definitions: a field is created without its options",
		edits: []edit{{"server/internal/verbs/words.go", "\tfor name, one := range d.Created {\n\t\tadd(name, &one.GivenField)\n\t}\n", ""}},
		tests: []tests{{"server", "TestComputed_Created"}},
	},
	{
		name:  "definitions: a field is created beside options of the definition",
		edits: []edit{{"server/internal/raven/indexdefinitions.go", "if given.Fields[name] != nil {\n\t\t\treturn serve.NotSupported(", "if false && given.Fields[name] != nil {\n\t\t\treturn serve.NotSupported("}},
		tests: []tests{{"server", "TestComputed_Created"}},
	},
	{
		name:  "each: an element that is an ID has the document of another one",
		edits: []edit{{"query/fanout.go", "\t\trefers := references.next()\n", "\t\trefers := references.next()\n\t\t_ = references.next()\n"}},
		tests: []tests{{"query", "TestEach_LoadedElements"}},
	},
	{
		name:  "loads: a change of a document counts where only its existence is asked for",
		edits: []edit{{"internal/loads/spec.go", "p.At(i).IsLoad() && i+1 < p.Len() && ", "p.At(i).IsLoad() && "}},
		tests: []tests{{"internal/loads", "TestDiffers"}},
	},
}
