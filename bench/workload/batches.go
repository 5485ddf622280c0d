package workload

import (
	"math/rand/v2"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

// The size of an atomic batch: batchDocs documents, fewer if they are large.
const (
	batchDocs  = 1000
	batchBytes = 4 << 20
)

// batchSize is the number of documents in a batch of this workload.
func (r *Run) batchSize() int { return max(1, min(batchDocs, batchBytes/r.source.MeanBytes())) }

// bulkLoad is the round of a bulk load: Docs new documents in batches.
func bulkLoad(r *Run) error {
	r.result.Ops = r.w.Docs
	return r.bulk(0, r.w.Docs)
}

// bulk inserts n documents, from first on, in batches. Only the engine's calls
// are on the clock.
func (r *Run) bulk(first, n int) error {
	size := r.batchSize()
	for end := first + n; first < end; first += size {
		docs, err := r.fill(min(size, end-first), func(i int) (engine.Key, int, int, error) {
			key, err := r.freshKey(first + i)
			return key, first + i, fixture.FirstRevision, err
		})
		if err != nil {
			return err
		}
		if err := r.batch(func() error { return r.engine.Insert(docs) }); err != nil {
			return err
		}
		r.expected.set(first, len(docs), fixture.FirstRevision)
	}
	return nil
}

// fill makes n documents; next returns the key, number and revision of each.
// They are good until the next call.
func (r *Run) fill(n int, next func(i int) (engine.Key, int, int, error)) ([]engine.Doc, error) {
	r.docs, r.arena = r.docs[:0], r.arena[:0]
	if need := n * 2 * r.source.MeanBytes(); cap(r.arena) < need {
		r.arena = make([]byte, 0, need)
	}
	for i := range n {
		key, number, revision, err := next(i)
		if err != nil {
			return nil, err
		}
		start := len(r.arena)
		r.arena = r.source.Append(r.arena, number, revision)
		r.docs = append(r.docs, engine.Doc{Key: key, Body: r.arena[start:len(r.arena):len(r.arena)]})
		r.logical.Add(int64(len(key.Bytes) + len(r.arena) - start))
	}
	return r.docs, nil
}

// batch times the commit of one batch.
func (r *Run) batch(commit func() error) error {
	start := time.Now()
	err := commit()
	took := time.Since(start)
	r.result.Nanos += took
	r.latency.Record(took)
	return err
}

// updateBatches gives every document its next revision, in an order that has
// nothing to do with IDs.
func updateBatches(r *Run) error {
	order, size := r.shuffled(), r.batchSize()
	r.result.Ops = len(order)
	for first := 0; first < len(order); first += size {
		numbers := order[first:min(first+size, len(order))]
		docs, err := r.fill(len(numbers), func(i int) (engine.Key, int, int, error) {
			number := numbers[i]
			r.expected.revisions[number]++
			return newKey(number), number, int(r.expected.revisions[number]), nil
		})
		if err != nil {
			return err
		}
		if err := r.batch(func() error { return r.engine.Update(docs) }); err != nil {
			return err
		}
	}
	return nil
}

// deleteBatches deletes a share of the documents, another one in each round.
func deleteBatches(r *Run) error {
	numbers, size := r.share(r.w.Docs), r.batchSize()
	r.result.Ops = len(numbers)
	keys := make([]engine.Key, 0, size)
	for first := 0; first < len(numbers); first += size {
		keys = keys[:0]
		for _, number := range numbers[first:min(first+size, len(numbers))] {
			keys = append(keys, newKey(number))
			r.expected.revisions[number] = 0
			r.logical.Add(int64(len(newKey(number).Bytes)))
		}
		if err := r.batch(func() error { return r.engine.Delete(keys) }); err != nil {
			return err
		}
	}
	return nil
}

// shuffled returns the documents' numbers in an order that is the same in
// every process and every round.
func (r *Run) shuffled() []int {
	if r.order == nil {
		r.order = rand.New(rand.NewPCG(3, 4)).Perm(r.w.Docs)
	}
	return r.order
}

// share returns documents that no other round gets, at most that many, so that
// some are left after the last round.
func (r *Run) share(most int) []int {
	n := min(most, r.w.Docs/(r.w.Rounds+1))
	return r.shuffled()[r.number*n:][:n]
}
