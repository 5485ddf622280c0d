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
		edits: []edit{{"server/internal/verbs/definitions.go", "\tif d.State == \"\" {\n\t\treturn nil", "\tif d.State == \"\" || true {\n\t\treturn nil"}},
		tests: []tests{{"server", "TestIndexes_Disable"}},
	},
	{
		name:  "definitions: a new definition builds a disabled index",
		edits: []edit{{"server/internal/raven/indexes.go", "\t\td.State = old.State\n", "\t\t_ = old.State\n"}},
		tests: []tests{{"server", "TestIndexes_Disable"}},
	},
	{
		name:  "definitions: a disabled index keeps its entries",
		edits: []edit{{"server/internal/raven/indexadmin.go", "\t\tif err := dropFields(c, d, nil); err != nil {\n\t\t\treturn err\n\t\t}\n\t} else", "\t} else"}},
		tests: []tests{{"server", "TestIndexes_Disable"}},
	},
	{
		name:  "definitions: a page of terms begins with the term before it",
		edits: []edit{{"server/internal/raven/indexadmin.go", "\t\tif found {\n\t\t\ti++\n\t\t}\n", "\t\t_ = found\n"}},
		tests: []tests{{"server", "TestIndexes_Terms"}},
	},
}
