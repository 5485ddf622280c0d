package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/internal/querytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/query"
)

// asker is what queries are asked of: a database, or a transaction.
type asker interface {
	RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
	Query(collection string) jay.Query[jay.Document]
}

// Ensure that every plan gives the answer that a slow evaluator gives, which
// knows no index: same rows, same order, same counts, and pages that are the
// whole when joined; on the database, and in a transaction over what it has
// staged.
func TestQuery_AgainstNaive(t *testing.T) {
	sample.OneGoroutine(t)
	first := querytest.Seed(t)
	total, plans := 0, make(map[string]int)
	met := func() bool {
		return testing.Short() || plans["a plan that gives way to another"] > total/1000 && plans["a plan compared with the scan"] > total/1000 && plans["answers from entries"] >= total/100 && plans["answers from some entries"] >= total/200 && plans["ends of a range"] > 0 &&
			plans["an index that the query names"] >= total/100
	}
	rounds := querytest.Rounds(t, 24)
	more := jaytest.Patience()
	for round := 0; round < rounds || more(met()); round++ {
		seed := first + uint64(round)
		n := differentialRound(t, seed, plans)
		if total += n; t.Failed() {
			t.Fatalf("JAY_QUERY_SEED=%d JAY_QUERY_ROUNDS=1 repeats it", seed)
		}
	}
	t.Logf("%d queries, first seed %d, plans: %v", total, first, plans)
	if !met() {
		t.Error("entries have answered too few queries for a test of it")
	}
}

// setProbes makes the planner look at fewer keys, so that few documents are
// enough for every kind of plan, and returns what undoes that.
func setProbes(keys, many int) (restore func()) {
	oldKeys, oldMany, oldFrom, oldEarly := plan.EstimateKeys, plan.EstimateMany, plan.ScanFrom, plan.EarlyLookUps
	plan.EstimateKeys, plan.EstimateMany, plan.ScanFrom, plan.EarlyLookUps = keys, many, min(keys, oldFrom), min(keys, oldEarly)
	return func() {
		plan.EstimateKeys, plan.EstimateMany, plan.ScanFrom, plan.EarlyLookUps = oldKeys, oldMany, oldFrom, oldEarly
	}
}

func differentialRound(t *testing.T, seed uint64, plans map[string]int) (asked int) {
	g := querytest.New(seed)
	g.Groups = true
	sensitive := g.Chance(20)
	defer setProbes(querytest.Pick(g, 1, 2, 3, 10, 25, 500), querytest.Pick(g, 40, 20_000))()
	db, err := jaytest.OpenMemory(&jay.Options{CaseSensitive: sensitive})
	must(t, err)
	defer closeDB(t, db)
	size := 40 + g.IntN(80)
	fill(t, g, db, size)
	sized := g.Chance(50)
	if sized { // by what lies in tables
		defer func(index uint64, documents int64) { plan.LeastIndex, plan.LeastDocuments = index, documents }(plan.LeastIndex, plan.LeastDocuments)
		plan.LeastIndex, plan.LeastDocuments = 1, 1
	}

	var indexes []jay.Index
	for phase := range 4 {
		if phase > 0 {
			indexes = querytest.ChangeIndexes(t, g, db, indexes)
			fill(t, g, db, 10)
		}
		if sized {
			must(t, db.Compact(ctx))
		}
		d := differential{t: t, g: g, seed: seed, indexes: indexes, plans: plans, sensitive: sensitive}
		d.run(db, allDocuments(t, db, sensitive), 60)
		err := db.Update(ctx, func(tx *jay.Tx) error {
			stageAtRandom(t, g, tx)
			d.inTx = true
			docs := []*naiveDoc{}
			for doc, err := range tx.Documents(ctx, jay.Scan{}) {
				must(t, err)
				docs = append(docs, newNaiveDoc(doc, sensitive))
			}
			d.run(tx, docs, 30)
			return errors.New("enough")
		})
		if err == nil || err.Error() != "enough" {
			t.Fatal(err)
		}
		if asked += d.asked; t.Failed() {
			return asked
		}
	}
	return asked
}

// fill writes random documents.
func fill(t *testing.T, g *querytest.Generator, db *jay.DB, n int) {
	t.Helper()
	for range n {
		writeAtRandom(t, g, db)
	}
}

func writeAtRandom(t *testing.T, g *querytest.Generator, db *jay.DB) {
	t.Helper()
	id := g.ID(g.IntN(120))
	_, err := db.Put(ctx, id, json.RawMessage(g.Body(g.IntN(100_000))), jay.InCollection(g.Collection()), jay.WithMetadata(g.Metadata()))
	if err != nil && !errors.Is(err, jay.ErrCollection) && !errors.Is(err, jay.ErrUnique) {
		t.Fatal(err)
	}
}

// stageAtRandom writes and deletes in a transaction.
func stageAtRandom(t *testing.T, g *querytest.Generator, tx *jay.Tx) {
	t.Helper()
	for range g.IntN(12) {
		id := g.ID(g.IntN(120))
		doc, err := tx.Get(ctx, id)
		switch {
		case err == nil && g.Chance(40):
			must(t, tx.Delete(ctx, id))
		case err == nil:
			_, err = tx.Put(ctx, id, json.RawMessage(g.Body(g.IntN(100_000))), jay.InCollection(doc.Collection()))
			must(t, err)
		case errors.Is(err, jay.ErrNotFound):
			_, err = tx.Put(ctx, id, json.RawMessage(g.Body(g.IntN(100_000))), jay.InCollection(g.Collection()))
			must(t, err)
		default:
			t.Fatal(err)
		}
	}
}

func allDocuments(t *testing.T, db *jay.DB, sensitive bool) []*naiveDoc {
	t.Helper()
	var docs []*naiveDoc
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		docs = append(docs, newNaiveDoc(doc, sensitive))
	}
	return docs
}

// differential asks random queries.
type differential struct {
	t         *testing.T
	g         *querytest.Generator
	seed      uint64
	indexes   []jay.Index
	plans     map[string]int
	sensitive bool
	inTx      bool
	asked     int
}

func (d *differential) run(via asker, docs []*naiveDoc, n int) {
	for range n {
		q := d.g.Query(d.indexes)
		for d.inTx && usesVersion(q) {
			q = d.g.Query(d.indexes)
		}
		if d.check(via, docs, q); d.t.Failed() {
			return
		}
		d.asked++
	}
}

// usesVersion reports whether a query looks at what a document has only once it
// is committed.
func usesVersion(q *query.Query) bool {
	text := q.String()
	return strings.Contains(text, "@change-vector") || strings.Contains(text, "@last-modified")
}

// check asks one query in every way.
func (d *differential) check(via asker, docs []*naiveDoc, q *query.Query) {
	text := q.String()
	want := answer(q, docs)
	asked, err := via.RQL(text, nil)
	if err != nil {
		d.t.Errorf("%s\n%v", text, err)
		return
	}
	explain, err := asked.Explain(ctx)
	if err != nil {
		d.t.Errorf("explain %s\n%v", text, err)
		return
	}
	d.plans[planKind(explain.Plan)]++
	for _, step := range explain.Plan {
		if strings.Contains(step, "given up after") {
			d.plans["a plan that gives way to another"]++
		} else if strings.HasPrefix(step, "expected") {
			d.plans["a plan compared with the scan"]++
		} else if strings.HasPrefix(step, "take the ends") {
			d.plans["ends of a range"]++
		} else if strings.HasPrefix(step, "answer from entries") && explain.Documents == 0 {
			d.plans["answers from entries"]++
		} else if strings.HasPrefix(step, "answer from entries") && int(explain.Documents) < len(docs) {
			d.plans["answers from some entries"]++
		}
	}
	fail := func(format string, args ...any) {
		d.t.Helper()
		var indexes []string
		for _, ix := range d.indexes {
			indexes = append(indexes, fmt.Sprintf("%+v", ix))
		}
		d.t.Errorf("seed %d, in a transaction %v, case-sensitive %v\n%s\nplan: %s\nindexes:\n  %s\n%s", d.seed, d.inTx, d.sensitive, text,
			strings.Join(explain.Plan, "; "), strings.Join(indexes, "\n  "), fmt.Sprintf(format, args...))
	}

	got, err := rowsOf(asked)
	if err != nil {
		fail("%v", err)
		return
	}
	if problem := want.differs(q, got); problem != "" {
		fail("%s%s", problem, describe(docs, want.rows, got))
		return
	}
	d.checkHinted(asked, q, want, fail)
	n, err := asked.Count(ctx)
	if err != nil || int(n) != len(got) {
		fail("Count: %d, %v; there are %d answers", n, err, len(got))
	}
	if int(explain.Returned) != len(got) {
		fail("Explain: %d returned; there are %d answers", explain.Returned, len(got))
	}
	if found, err := asked.Exists(ctx); err != nil || found != (len(got) > 0) {
		fail("Exists: %v, %v", found, err)
	}
	if len(q.Select) > 0 {
		d.checkRowPages(asked, q, want, fail)
		return
	}

	built := build(via, q)
	if built == nil {
		return
	}
	var byBuilder []string
	for doc, err := range built.Iter(ctx) {
		if err != nil {
			fail("builder: %v", err)
			return
		}
		byBuilder = append(byBuilder, doc.ID())
	}
	if problem := want.differs(q, byBuilder); problem != "" {
		fail("by the builder: %s%s", problem, describe(docs, want.rows, byBuilder))
		return
	}
	d.checkPages(built, q, want, fail)
}

// checkHinted forces each plan once: each of the indexes is asked to answer, and gives the same answer or refuses; and a plan without an
// index. In short mode some queries are asked so.
func (d *differential) checkHinted(asked jay.Query[jay.Row], q *query.Query, want naiveAnswer, fail func(string, ...any)) {
	if len(d.indexes) == 0 || !strings.EqualFold(q.From, "Orders") || testing.Short() && d.g.Chance(60) {
		return
	}
	for _, ix := range d.indexes {
		d.checkIndex(ix.Name, asked, q, want, fail)
	}
	if got, err := rowsOf(asked.NoIndex()); err != nil {
		fail("use no index: %v", err)
	} else if problem := want.differs(q, got); problem != "" {
		fail("use no index: %s", problem)
	}
}

// checkIndex asks one index to answer.
func (d *differential) checkIndex(name string, asked jay.Query[jay.Row], q *query.Query, want naiveAnswer, fail func(string, ...any)) {
	got, err := rowsOf(asked.UseIndex(name))
	switch {
	case errors.Is(err, jay.ErrNoIndex):
		d.plans["an index that is of no use"]++
	case err != nil:
		fail("use index %s: %v", name, err)
	default:
		d.plans["an index that the query names"]++
		if problem := want.differs(q, got); problem != "" {
			fail("use index %s: %s", name, problem)
		}
	}
}

// checkRowPages is checkPages for rows of columns.
func (d *differential) checkRowPages(asked jay.Query[jay.Row], q *query.Query, want naiveAnswer, fail func(string, ...any)) {
	if q.Offset > 0 || q.Distinct || len(q.OrderBy) == 0 || len(q.GroupBy) > 0 || slices.ContainsFunc(q.Select, func(c query.Column) bool { return c.Func != query.FuncNone }) {
		return
	}
	size := 1 + d.g.IntN(9)
	var joined []string
	for cursor, pages := "", 0; ; pages++ {
		p, err := asked.Limit(size).After(cursor).Page(ctx)
		if errors.Is(err, jay.ErrQuery) && strings.Contains(err.Error(), "too long to go on") {
			return
		}
		if err != nil {
			fail("page %d: %v", pages, err)
			return
		}
		for _, row := range p.Items {
			joined = append(joined, canonicalRow(string(row.JSON)))
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(joined, want.rows) {
		fail("pages of %d joined:\n%q\nwhole:\n%q", size, joined, want.rows)
	}
}

// checkPages joins pages, and compares them with the whole.
func (d *differential) checkPages(built *jay.Query[jay.Document], q *query.Query, want naiveAnswer, fail func(string, ...any)) {
	if q.Offset > 0 {
		return // every page would leave out its first
	}
	whole := want.rows
	if len(q.OrderBy) == 0 {
		ordered := slices.Clone(want.docs)
		slices.SortFunc(ordered, func(a, b *naiveDoc) int {
			return compareKeys([]query.Order{{}}, []*node{a.meta[query.MetaID]}, []*node{b.meta[query.MetaID]})
		})
		whole = nil
		for _, doc := range ordered {
			whole = append(whole, doc.id)
		}
	}
	size := 1 + d.g.IntN(9)
	var joined []string
	for cursor, pages := "", 0; ; pages++ {
		p, err := built.Limit(size).After(cursor).Page(ctx)
		if err != nil {
			if errors.Is(err, jay.ErrQuery) && strings.Contains(err.Error(), "too long to go on") {
				return
			}
			fail("page %d: %v", pages, err)
			return
		}
		for _, doc := range p.Items {
			joined = append(joined, doc.ID())
		}
		if len(p.Items) > size || p.Next != "" && len(p.Items) < size {
			fail("page %d has %d answers, next %q", pages, len(p.Items), p.Next)
			return
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(joined, whole) {
		fail("pages of %d joined:\n%q\nwhole:\n%q", size, joined, whole)
	}
}

// planKind is what a plan is like, to see that all kinds come.
func planKind(plan []string) string {
	kind, _, _ := strings.Cut(plan[0], " ")
	for _, step := range plan[1:] {
		for _, mark := range []string{"keep", "count entries", "already in order", "sort"} {
			if strings.HasPrefix(step, mark) {
				kind += "+" + mark
			}
		}
	}
	if strings.Contains(plan[0], "backwards") {
		kind += "+backwards"
	}
	if strings.Contains(plan[0], "ranges") {
		kind += "+ranges"
	}
	return kind
}

func rowsOf(q jay.Query[jay.Row]) ([]string, error) {
	var out []string
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		if row.Document != nil {
			out = append(out, row.Document.ID())
		} else {
			out = append(out, canonicalRow(string(row.JSON)))
		}
	}
	return out, nil
}

// differs compares an answer with the one that is wanted, as far as the query
// says what comes: which rows with a limit but no order is open, and so is
// the order of groups that are ordered alike.
func (a naiveAnswer) differs(q *query.Query, got []string) string {
	window := a.rows[min(q.Offset, len(a.rows)):]
	if q.HasLimit {
		window = window[:min(q.Limit, len(window))]
	}
	if len(got) != len(window) {
		return fmt.Sprintf("%d answers, want %d", len(got), len(window))
	}
	if len(q.OrderBy) > 0 && !isGroupedQuery(q) {
		if !slices.Equal(got, window) {
			return "wrong answers, or in the wrong order"
		}
		return ""
	}
	left := make(map[string]int)
	for _, row := range a.rows {
		left[row]++
	}
	for _, row := range got {
		if left[row]--; left[row] < 0 {
			return "this should not be there, or not so often: " + row
		}
	}
	if isGroupedQuery(q) && len(q.OrderBy) > 0 {
		keys := make(map[string][][]*node) // of rows that look alike: objects are ordered by their text
		for i, row := range a.rows {
			keys[row] = append(keys[row], a.keys[i])
		}
		for i, row := range got {
			here := a.keys[q.Offset+i]
			if !slices.ContainsFunc(keys[row], func(k []*node) bool { return compareKeys(q.OrderBy, k, here) == 0 }) {
				return fmt.Sprintf("row %d is out of order: %s", i, row)
			}
		}
	}
	return ""
}

// describe shows where two answers differ, and the documents there.
func describe(docs []*naiveDoc, want, got []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\ngot  %.2000q\nwant %.2000q (without offset and limit)", got, want)
	shown := 0
	for _, doc := range docs {
		if slices.Contains(want, doc.id) != slices.Contains(got, doc.id) && shown < 3 {
			fmt.Fprintf(&b, "\n%s in %s: %.300s", doc.id, doc.source.Collection(), doc.body.raw)
			shown++
		}
	}
	return b.String()
}

// build makes the same query by the builder, or returns nil if it cannot.
func build(via asker, q *query.Query) *jay.Query[jay.Document] {
	built := via.Query(q.From)
	if q.Where != nil {
		built = built.Where(conditionOf(q.Where))
	}
	var orders []string
	for _, o := range q.OrderBy {
		if o.As != query.CastNone {
			return nil
		}
		text := builderField(o.Field)
		if o.Descending {
			text = "-" + text
		}
		orders = append(orders, text)
	}
	if len(orders) > 0 {
		built = built.OrderBy(orders...)
	}
	if q.Offset > 0 {
		built = built.Skip(q.Offset)
	}
	if q.HasLimit {
		built = built.Limit(q.Limit)
	}
	return &built
}

func builderField(f query.Field) string {
	switch f.Meta {
	case query.MetaID:
		return "id()"
	case query.MetaCollection:
		return "@metadata.@collection"
	case query.MetaLastModified:
		return "@metadata.@last-modified"
	case query.MetaChangeVector:
		return "@metadata.@change-vector"
	case query.MetaEtag:
		return "@metadata.@etag"
	case query.MetaCustom:
		return "@metadata." + f.Path.String()
	case query.MetaExpression:
		return f.String()
	}
	return f.Path.String()
}

func conditionOf(e query.Expr) jay.Condition {
	list := func(kids []query.Expr) (out []jay.Condition) {
		for _, kid := range kids {
			out = append(out, conditionOf(kid))
		}
		return out
	}
	folding := func(fold bool, c jay.Condition) jay.Condition {
		if fold {
			return jay.IgnoreCase(c)
		}
		return c
	}
	switch e := e.(type) {
	case query.And:
		return jay.And(list(e)...)
	case query.Or:
		return jay.Or(list(e)...)
	case query.Not:
		return jay.Not(conditionOf(e.Expr))
	case query.ElemMatch:
		return jay.ElemMatch(builderField(e.Field), conditionOf(e.Where))
	case query.HasSize:
		return jay.Size(builderField(e.Field), [...]string{"=", "<", "<=", ">", ">="}[e.Op], e.N)
	case query.HasType:
		return jay.Type(builderField(e.Field), e.Type)
	case query.Exists:
		return jay.Exists(builderField(e.Field))
	case query.Compare:
		compare := [...]func(string, any) jay.Condition{jay.Eq, jay.Lt, jay.Le, jay.Gt, jay.Ge}[e.Op]
		return folding(e.Fold, compare(builderField(e.Field), e.Value))
	case query.CompareFields:
		compare := [...]func(string, any) jay.Condition{jay.Eq, jay.Lt, jay.Le, jay.Gt, jay.Ge}[e.Op]
		return folding(e.Fold, compare(builderField(e.Field), jay.Field(builderField(e.Other))))
	case query.Between:
		return folding(e.Fold, jay.Between(builderField(e.Field), e.Lo, e.Hi))
	case query.In:
		if e.All {
			return folding(e.Fold, jay.AllIn(builderField(e.Field), e.Values...))
		}
		return folding(e.Fold, jay.In(builderField(e.Field), e.Values...))
	case query.StartsWith:
		return folding(e.Fold, jay.StartsWith(builderField(e.Field), e.Text))
	case query.EndsWith:
		return folding(e.Fold, jay.EndsWith(builderField(e.Field), e.Text))
	case query.Contains:
		return folding(e.Fold, jay.Contains(builderField(e.Field), e.Text))
	case query.Regexp:
		return folding(e.Fold, jay.Matches(builderField(e.Field), e.Pattern))
	}
	panic(fmt.Sprintf("%T", e))
}
