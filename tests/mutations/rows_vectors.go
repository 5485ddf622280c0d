package main

// vectors are changes to what is computed of vectors.
var vectors = []mutation{
	{
		name:  "vectors: of several the last one counts",
		edits: []edit{{"query/similar.go", "distance, is = min(distance, d), true", "distance, is = d, true"}},
		tests: []tests{{"query", "TestSimilar$|TestVectorDistance_Order"}},
	},
	{
		name:  "vectors: documents without one are the nearest",
		edits: []edit{{"query/distance.go", "x.root.function != nil && o.As == CastNone {", "x.root.function != nil && x.root.function != vectorFunction && o.As == CastNone {"}},
		tests: []tests{{"query", "TestVectorDistance_Order"}},
	},
	{
		name:  "vectors: the elements of an array are vectors of their own",
		edits: []edit{{"query/rql_vector.go", "p.expr.fieldOperand(path.Whole())", "p.expr.fieldOperand(path)"}},
		tests: []tests{{"query", "TestVectorDistance_Order"}},
	},
	{
		name:  "vectors: one of zeros has a direction",
		edits: []edit{{"internal/vector/metric.go", "if square == 0 {", "if square < 0 {"}},
		tests: []tests{{"internal/vector", "TestTarget_Distance"}},
	},
	{
		name:  "vectors: numbers behind the bound are read",
		edits: []edit{{"internal/vector/vector.go", "if n++; n > MaxDimensions {", "if n++; n > MaxDimensions+1 {"}},
		tests: []tests{{"internal/vector", "TestRead_Refused"}},
	},
	{
		name:  "vectors: NaN in base64 is a number",
		edits: []edit{{"internal/vector/vector.go", "\t\tif !isFinite(float64(f)) {\n\t\t\treturn dst,", "\t\tif false {\n\t\t\treturn dst,"}},
		tests: []tests{{"internal/vector", "TestRead_Refused"}},
	},
}
