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
		edits: []edit{{"internal/vector/vector.go", "if bits&infinite == infinite {", "if bits&infinite == bits {"}},
		tests: []tests{{"internal/vector", "TestRead_Refused"}},
	},
	{
		name:  "vectors: what a document had in partitions stays when it changes",
		edits: []edit{{"internal/vectors/stage.go", "\t\ttx.Delete(k.vectorKey(partition, folded, i, len(r.partitions)))\n", ""}, {"internal/vectors/stage.go", "for i, partition := range r.partitions", "for _, partition := range r.partitions"}, {"internal/vectors/stage.go", "remove(tx catalog.Staging, folded string,", "remove(tx catalog.Staging, _ string,"}},
		tests: []tests{{"internal/vectors", "TestVectors$"}},
	},
	{
		name:  "vectors: a document that changes meanwhile is moved as it was",
		edits: []edit{{"internal/vectors/settle.go", "if err != nil || codes == nil || !bytes.Equal(codes, d.codes) {", "if err != nil || codes == nil {"}},
		tests: []tests{{"internal/vectors", "TestVectors$"}},
	},
	{
		name:  "vectors: a code is off by nothing",
		edits: []edit{{"internal/vectors/code.go", "off := s.share * (s.length*c.off + s.off*(c.length+c.off))", "off := 0.0 * s.share"}},
		tests: []tests{{"internal/vectors", "TestSight"}},
	},
	{
		name:  "vectors: a query ends before there are enough answers",
		edits: []edit{{"internal/vectors/near.go", "(n.exact || math.IsInf(n.bound, 1))", "n.exact"}},
		tests: []tests{{"internal/vectors", "TestVectors_Conditions"}},
	},
	{
		name:  "vectors: exact() reads some partitions",
		edits: []edit{{"internal/vectors/near.go", "(n.exact || math.IsInf(n.bound, 1))", "math.IsInf(n.bound, 1)"}},
		tests: []tests{{"internal/vectors", "TestVectors_Recall"}},
	},
	{
		name:  "vectors: a strict index leaves out what is no vector",
		edits: []edit{{"internal/vectors/kind.go", "strict: ix.Option(catalog.OptionStrict) == \"yes\"", "strict: ix.Option(catalog.OptionStrict) == \"\""}},
		tests: []tests{{"internal/vectors", "TestVectors_Strict"}},
	},
	{
		name:  "vectors: the codes of a document are not verified",
		edits: []edit{{"internal/vectors/facts.go", "err = errs.First(add(vectorFact(folded, i, value), 1), add(placeFact(folded, i, several, partition), -1))", "err = add(placeFact(folded, i, several, partition), -1)"}},
		tests: []tests{{"internal/vectors", "TestVectors$"}},
	},
	{
		name:  "vectors: centers are not verified",
		edits: []edit{{"internal/vectors/facts.go", "return errs.First(add(centersFact, 1), add(centerFact(partition), 1))", "return nil"}},
		tests: []tests{{"internal/vectors", "TestVectors$"}},
	},
	{
		name:  "vectors: the format does not rise",
		edits: []edit{{"internal/vectors/kind.go", "\tFeature: storage.FeatureVectors,\n", ""}, {"internal/vectors/kind.go", "\t\"github.com/jaydb/jay/storage\"\n", ""}},
		tests: []tests{{"internal/vectors", "TestVectors_Format"}},
	},
	{
		name:  "vectors: an order by distance waits for no candidate",
		edits: []edit{{"internal/exec/source.go", "\tb.Bound(distance)\n", "\tb.Bound(distance - 1e3)\n"}},
		tests: []tests{{"internal/vectors", "TestVectors_Recall"}},
	},
	{
		name:  "vectors: a split does not notice that another process has moved vectors",
		edits: []edit{{"internal/vectors/settle.go", "\tp.state.parts++\n", ""}},
		tests: []tests{{"internal/vectors", "TestVectors_Races_Shared"}},
	},
	{
		name:  "vectors: what AVX2 leaves over is left out",
		edits: []edit{{"internal/vectors/kernel.go", "return sum + dotPlain(q, c)", "return max(sum, min(sum, dotPlain(q, c)))"}},
		tests: []tests{{"internal/vectors", "TestDot$"}},
	},
	{
		name:  "vectors: halves of a byte are cut off",
		edits: []edit{{"internal/vectors/code.go", "return int32(uint32(math.Float64bits(x + 3<<51)))", "return int32(x)"}},
		tests: []tests{{"internal/vectors", "TestAppendCode"}},
	},
	{
		name:  "vectors: a byte of a very small vector runs over",
		edits: []edit{{"internal/vectors/code.go", "max(-127, min(127, nearest(wide/unit)))", "nearest(wide/unit)"}},
		tests: []tests{{"internal/vectors", "TestAppendCode"}},
	},
	{
		name:  "vectors: both halves have the center of all",
		edits: []edit{{"internal/vectors/split.go", "rest[i] = all[i] - part[i]", "rest[i], part[i] = all[i], all[i]"}},
		tests: []tests{{"internal/vectors", "TestHalve"}},
	},
	{
		name:  "vectors: AVX2 leaves a round out",
		edits: []edit{{"internal/vectors/kernel.go", "wide(&q[0], &c[0], whole)", "wide(&q[0], &c[0], max(wideStep, whole-wideStep))"}},
		tests: []tests{{"internal/vectors", "TestDot$"}},
	},
	{
		name:  "vectors: bytes have no sign in Go",
		edits: []edit{{"internal/vectors/kernel.go", "int32(q[7])*int32(int8(c[7]))", "int32(q[7])*int32(c[7])"}},
		tests: []tests{{"internal/vectors", "TestDot$"}},
	},
	{
		name:  "vectors: bits are read from the lowest one on",
		edits: []edit{{"internal/vector/form.go", "float32(int(b>>bit&1)*2-1)", "float32(int(b>>(7-bit)&1)*2-1)"}},
		tests: []tests{{"internal/vector", "TestForm_Read$"}},
	},
	{
		name:  "vectors: bytes of documents have no sign",
		edits: []edit{{"internal/vector/form.go", "float64(int8(b))*part", "float64(b)*part"}},
		tests: []tests{{"internal/vector", "TestForm_Read$"}},
	},
	{
		name:  "vectors: bits are compared in parts of a byte",
		edits: []edit{{"internal/vector/metric.go", "float64((len(v)+7)&^7)", "float64(len(v))"}},
		tests: []tests{{"internal/vector", "TestTarget_Hamming"}},
	},
	{
		name:  "vectors: more bytes than the bound are read",
		edits: []edit{{"internal/vector/form.go", "most, least := MaxDimensions/8, 1", "most, least := MaxDimensions, 1"}},
		tests: []tests{{"internal/vector", "TestForm_ReadRefused"}},
	},
	{
		name:  "vectors: the form of a condition is not written",
		edits: []edit{{"query/similar.go", "e.Vector.source(e.Field.String())", "e.Field.String()"}},
		tests: []tests{{"query", "TestSimilar_Forms"}},
	},
	{
		name:  "definitions: vectors have no index",
		edits: []edit{{"server/internal/verbs/sides.go", "d.placesIndexes(), d.vectorsIndexes())", "d.placesIndexes(), d.vectorsIndexes()[:0])"}},
		tests: []tests{{"server", "TestDefinitions_Vectors$"}},
	},
	{
		name:  "vectors: an index of numbers answers for their signs",
		edits: []edit{{"internal/vectors/answer.go", "v.Form() == vector.Singles && ", ""}},
		tests: []tests{{"internal/vectors", "TestVectors_Forms"}},
	},
	{
		name:  "vectors: a search beside another one is a scan",
		edits: []edit{{"internal/plan/combine.go", "a.more && !p.hint && !a.readsAll()", "a.more && !p.hint"}},
		tests: []tests{{"internal/vectors", "TestVectors_Union"}},
	},
	{
		name:  "compaction: views that wait to be closed keep what was removed",
		edits: []edit{{"storage/lsm/compact.go", "\te.durability.closeUnused(1)\n", ""}},
		tests: []tests{{"storage/lsm", "TestCompact_Views"}},
	},
	{
		name:  "ranks: equal numbers have ranks of their own",
		edits: []edit{{"query/fused.go", "if at == 0 || number(i) != number(ranked[at-1]) {", "if at >= 0 {"}},
		tests: []tests{{"query", "TestFuseRanks"}},
	},
	{
		name:  "ranks: what has no number has a rank",
		edits: []edit{{"query/fused.go", "if !math.IsNaN(number(i)) {", "if count > 0 {"}},
		tests: []tests{{"query", "TestFuseRanks"}},
	},
	{
		name:  "ranks: what no search has found has a rank",
		edits: []edit{{"query/fused.go", " && !(f == 0 && o.Field.Meta == MetaScore)", ""}},
		tests: []tests{{".", "TestQuery_Fused$"}},
	},
	{
		name:  "ranks: sums depend on the order of orders",
		edits: []edit{{"query/fused.go", "\t\tslices.Sort(own) // the sum must not depend on which order has which rank\n", ""}},
		tests: []tests{{"query", "TestFuseRanks"}},
	},
	{
		name:  "ranks: a document is ranked by the words of another one",
		edits: []edit{{"internal/exec/fused.go", "\t\tr.meta.body = doc.Body\n", ""}},
		tests: []tests{{".", "TestQuery_Fused$"}},
	},
	{
		name:  "ranks: what a transaction has written is read as it was",
		edits: []edit{{"internal/exec/fused.go", "own[doc.FoldedID()] = doc", "own[doc.FoldedID()] = nil"}},
		tests: []tests{{".", "TestQuery_Fused$"}},
	},
	{
		name:  "ranks: an order by ranks has a cursor",
		edits: []edit{{"internal/builder/check.go", "if q.Query.Fused {", "if q.Query.Fused && q.cursor != \"\" {"}},
		tests: []tests{{".", "TestQuery_FusedRefused"}},
	},
	{
		name:  "ranks: another order is one by ranks, too",
		edits: []edit{{"internal/builder/definition.go", "q.Query.OrderBy, q.Query.Fused = nil, false", "q.Query.OrderBy = nil"}},
		tests: []tests{{".", "TestQuery_FusedRefused"}},
	},
}
