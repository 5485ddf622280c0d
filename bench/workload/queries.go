package workload

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

// The names of the rows of queries.
const (
	RowEqual  = "query: equality on an index, 10 documents"
	RowTop    = "query: range and order by an index, top 10"
	RowCount  = "query: count over an index, 1 of 8"
	RowFilter = "query: scan with a filter, 1 of 1,000"
	RowFirst  = "query: first count over an index after an open, 1 of 8"
	RowSorted = "query: filter and order without an index, top 10"
	RowGroups = "query: groups and a sum without an index"

	RowIndexed       = "bulk load, 3 indexes, unsynced"
	RowIndexedSynced = "bulk load, 3 indexes, synced"
)

const (
	topDocs     = 10
	rangeShare  = 100  // a range has one of that many documents
	filterShare = 1000 // and a filter lets one of that many pass
	// indexedLimits is how many times as long as a round of single operations
	// one of inserts with indexes may take.
	indexedLimits = 6
	// verified is the number of queries whose answers are compared byte by byte.
	verified = 20
)

// ExtraIndexes is how long it took to build the indexes over loaded documents.
const ExtraIndexes = "three indexes built after the load, per document"

// addQueries lists the workloads that need secondary indexes, or the lack of
// them. Each query's answer is compared with the one that follows from the
// documents' numbers.
func (l *list) addQueries() {
	query := Workload{
		Group: "queries", Unit: "query", loaded: true, warm: true, queries: true, indexes: true,
		Docs: l.p.Docs / 10 * 10, Settings: engine.Settings{CacheBytes: l.wholeCache()},
	}
	add := func(name string, ops int, pick func(a *asker) question) {
		w := query
		w.Name, w.Ops, w.pick, w.round = name, ops, pick, asking
		w.indexes = name != RowFilter && name != RowSorted
		l.add(w)
	}
	add(RowEqual, max(200, l.p.Docs/10), (*asker).equal)
	add(RowTop, max(200, l.p.Docs/10), (*asker).top)
	add(RowCount, max(20, l.p.Docs/1000), (*asker).count)
	add(RowFilter, 5, (*asker).filter)
	add(RowSorted, 5, (*asker).sorted)
	first := query
	first.Name, first.Ops, first.round = RowFirst, 1, countingFirst
	l.add(first)
	groups := query
	groups.Name, groups.Ops, groups.indexes, groups.round = RowGroups, 5, false, grouping
	groups.engines = []string{engine.Raw, engine.Jay, "sqlite-modernc", "sqlite-mattn"}
	l.add(groups)
	for _, synced := range []bool{false, true} {
		w := Workload{
			Name: RowIndexed, Group: "queries", Writes: true, fresh: true, queries: true, indexes: true, LatencyOf: "batch",
			Settings: engine.Settings{Synced: synced}, round: bulkIndexed,
		}
		if synced {
			w.Name = RowIndexedSynced
		}
		l.add(w)
	}
}

// bulkIndexed is a bulk load with indexes, which may end early. What it has
// inserted counts.
func bulkIndexed(r *Run) error {
	for r.result.Ops < r.w.Docs && r.result.Nanos < indexedLimits*r.p.Limit {
		n := min(r.batchSize(), r.w.Docs-r.result.Ops)
		if err := r.bulk(r.result.Ops, n); err != nil {
			return err
		}
		r.result.Ops += n
	}
	return nil
}

// question is a query with its answer.
type question struct {
	engine.Query
	counts bool // only the count is asked for
	// The number of documents, the sum of their numbers, and, if they are in an
	// order, the first of them.
	want, sum, first int
}

// asker makes questions about the documents with the numbers below docs, all
// in their first revision.
type asker struct {
	r       *Run
	docs    int
	byTotal []int // numbers, the least total first
	states  map[string]int
}

func (r *Run) newAsker(docs int) *asker {
	a := &asker{r: r, docs: docs, byTotal: fixture.Numbers(docs), states: make(map[string]int)}
	for number := range docs {
		a.states[fixture.State(number)]++
	}
	return a
}

// equal asks for a bucket.
func (a *asker) equal() question {
	number := a.r.random.IntN(a.docs)
	bucket := a.r.source.Bucket(number)
	q := question{Query: engine.Query{Field: "Bucket", Equal: bucket}}
	first, n := a.r.source.Buckets()
	for other := int(bucket) - first; other < a.docs; other += n {
		q.want++
		q.sum += other
	}
	return q
}

// between asks for documents whose totals follow on each other.
func (a *asker) between(share int) (q question, numbers []int) {
	n := max(1, a.docs/share)
	i := a.r.random.IntN(a.docs - n + 1)
	numbers = a.byTotal[i : i+n]
	q.Query = engine.Query{Field: "Total", From: fixture.Total(numbers[0]), To: fixture.Total(numbers[n-1])}
	return q, numbers
}

// expect notes that the answer is numbers.
func (q *question) expect(numbers []int) {
	q.want, q.first = len(numbers), numbers[len(numbers)-1]
	for _, number := range numbers {
		q.sum += number
	}
}

// top asks for the greatest totals of a range.
func (a *asker) top() question {
	q, numbers := a.between(rangeShare)
	q.Descending, q.Limit = true, topDocs
	q.expect(numbers[max(0, len(numbers)-topDocs):])
	return q
}

// count asks how many documents have a state.
func (a *asker) count() question {
	state := fixture.States[a.r.random.IntN(len(fixture.States))]
	return question{Query: engine.Query{Field: "State", Equal: state}, counts: true, want: a.states[state]}
}

// filter asks for a range without an index.
func (a *asker) filter() question {
	q, numbers := a.between(filterShare)
	q.expect(numbers)
	return q
}

// sorted asks for the greatest totals of a half of all documents.
func (a *asker) sorted() question {
	const half = 2
	q, numbers := a.between(half)
	q.Descending, q.Limit = true, topDocs
	q.expect(numbers[max(0, len(numbers)-topDocs):])
	return q
}

// countingFirst counts once after an open, so that nothing is remembered of earlier counts.
func countingFirst(r *Run) error {
	if r.asker == nil {
		r.asker = r.newAsker(r.w.Docs)
	}
	for _, step := range []func() error{r.close, r.open, r.createIndexes} {
		if err := step(); err != nil {
			return err
		}
	}
	q := r.asker.count()
	warm := q
	warm.Equal = "no such state" // what an open leaves to the first query
	if _, err := r.engine.(engine.Querier).Count(warm.Query); err != nil {
		return err
	}
	start := time.Now()
	if err := q.ask(r.engine.(engine.Querier), nil); err != nil {
		return err
	}
	took := time.Since(start)
	r.result.Nanos, r.result.Ops = took, 1
	r.latency.Record(took)
	return nil
}

// grouping asks for the groups of all documents by their state.
func grouping(r *Run) error {
	want := make(map[string]engine.Group)
	for number := range r.w.Docs {
		g := want[fixture.State(number)]
		g.Documents++
		g.Sum += fixture.Total(number)
		want[fixture.State(number)] = g
	}
	for r.result.Ops < r.w.Ops && !r.over() {
		start := time.Now()
		got, err := r.engine.(engine.Grouper).Groups("State", "Total")
		took := time.Since(start)
		if err != nil {
			return err
		}
		for name, g := range want { // sums in floating point depend on the order
			if is := got[name]; is.Documents != g.Documents || math.Abs(is.Sum-g.Sum) > 1e-9*g.Sum || len(got) != len(want) {
				return fmt.Errorf("group %q: %+v, want %+v, %d groups of %d", name, is, g, len(got), len(want))
			}
		}
		r.result.Nanos += took
		r.latency.Record(took)
		r.result.Ops++
	}
	return nil
}

// asking asks the workload's questions, after some whose answers are looked at
// more closely.
func asking(r *Run) error {
	querier := r.engine.(engine.Querier)
	if r.asker == nil {
		r.asker = r.newAsker(r.w.Docs)
	}
	if r.number == 0 && r.w.indexes {
		r.extra(ExtraIndexes, micros(r.building)/float64(r.w.Docs))
	}
	if err := r.verify(r.asker, r.w.pick, min(verified, r.w.Ops)); err != nil {
		return err
	}
	for r.result.Ops < r.w.Ops && !r.over() {
		q := r.w.pick(r.asker)
		start := time.Now()
		err := q.ask(querier, nil)
		took := time.Since(start)
		if err != nil {
			return err
		}
		r.result.Nanos += took
		r.latency.Record(took)
		r.result.Ops++
	}
	return nil
}

// verify asks n questions and compares every document of their answers.
func (r *Run) verify(a *asker, pick func(a *asker) question, n int) error {
	var body []byte
	for range n {
		q := pick(a)
		err := q.ask(r.engine.(engine.Querier), func(number int, id string, got []byte) error {
			body = r.source.Append(body[:0], number, fixture.FirstRevision)
			if !bytes.Equal(got, body) || id != "" && id != newKey(number).Text {
				return fmt.Errorf("document %d: got %q, %.200s, want %.200s", number, id, got, body)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyIndexes asks some questions of every kind that has an index about the
// first docs documents.
func (r *Run) verifyIndexes(docs int) error {
	if docs == 0 {
		return errors.New("no documents")
	}
	a := r.newAsker(docs)
	for _, pick := range []func(a *asker) question{(*asker).equal, (*asker).top, (*asker).count} {
		if err := r.verify(a, pick, 3); err != nil {
			return err
		}
	}
	return nil
}

// ask asks the question, calls look, if it isn't nil, with each document, and
// compares the answer with the one that is expected.
func (q *question) ask(e engine.Querier, look func(number int, id string, body []byte) error) error {
	if q.counts {
		n, err := e.Count(q.Query)
		if err == nil && n != q.want {
			err = fmt.Errorf("%+v: counted %d, want %d", q.Query, n, q.want)
		}
		return err
	}
	n, sum, last := 0, 0, 0
	err := e.Query(q.Query, func(id func() string, body []byte) error {
		number, _, ok := fixture.Parse(body)
		switch {
		case !ok:
			return fmt.Errorf("%+v: got %.200s", q.Query, body)
		case q.Descending && n == 0 && number != q.first:
			return fmt.Errorf("%+v: document %d comes first, want %d", q.Query, number, q.first)
		case q.Descending && n > 0 && fixture.Total(number) >= fixture.Total(last):
			return fmt.Errorf("%+v: document %d comes after %d", q.Query, number, last)
		}
		n, sum, last = n+1, sum+number, number
		if look == nil {
			return touch(body, nil)
		}
		return look(number, id(), body)
	})
	if err == nil && (n != q.want || sum != q.sum) {
		err = fmt.Errorf("%+v: got %d documents (sum of numbers %d), want %d (%d)", q.Query, n, sum, q.want, q.sum)
	}
	return err
}
