package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/bench/fixture"
)

// batchSize is the number of documents in an atomic batch.
const batchSize = 1000

// workload is one line of the table.
type workload struct {
	name     string
	docs     int // operations in one round
	settings settings
	// Ratios to raw that Jay means to reach now and later; 0 for none.
	target, later float64

	// prepare brings a new engine to where a round begins. A workload that
	// only reads is prepared once; every other gets a new engine each round.
	prepare  func(e engine, docs *fixture.Documents) error
	readOnly bool
	// run is what is timed.
	run func(e engine, docs *fixture.Documents) error
	// want returns what document i must be after run, nil if it must be gone.
	want func(docs *fixture.Documents, i int) []byte
}

// workloads are all of them, for n documents.
func workloads(n int) []workload {
	relaxed := settings{cacheBytes: fixture.DefaultCacheBytes, capacity: n}
	synced := relaxed
	synced.synced = true
	v4, v7 := relaxed, relaxed
	v4.ids, v7.ids = guidV4, guidV7
	cached := relaxed
	cached.cacheBytes = 1 << 30
	cachedAway := cached
	cachedAway.ids = guidV4

	list := []workload{
		{name: "insert HiLo, batches, no sync", docs: n, settings: relaxed, run: insertAll, target: 2, later: 1.5},
		{name: "insert HiLo, batches, synced", docs: n, settings: synced, run: insertAll, target: 2, later: 1.5},
		{name: "insert GUID v4, batches, no sync", docs: n, settings: v4, run: insertAll},
		{name: "insert GUID v7, batches, no sync", docs: n, settings: v7, run: insertAll},
		{name: "update at random, batches, no sync", docs: n, settings: relaxed, prepare: loadCompacted, run: updateAll, want: updated},
		{name: "delete half at random, batches, no sync", docs: n / 2, settings: relaxed, prepare: loadCompacted, run: removeHalf, want: halfRemoved},
		{name: "get by id at random, in cache", docs: n, settings: cached, prepare: loadWarm, readOnly: true, run: getAll, target: 1.6, later: 1.3},
		{name: "scan collection, HiLo ids, in cache", docs: n, settings: cached, prepare: loadWarm, readOnly: true, run: scanAll, target: 2, later: 1.5},
		{name: "scan collection, GUID ids, in cache", docs: n, settings: cachedAway, prepare: loadWarm, readOnly: true, run: scanAll},
	}
	for _, goroutines := range []int{1, 8, 32, 128} {
		one := synced
		one.capacity = max(128, n/20)
		list = append(list, workload{
			name: fmt.Sprintf("insert one by one, synced, %d goroutines", goroutines), docs: one.capacity, settings: one,
			run: func(e engine, docs *fixture.Documents) error { return insertSingly(e, docs, one.capacity, goroutines) },
		})
	}
	return list
}

// insertAll inserts every document, in batches.
func insertAll(e engine, docs *fixture.Documents) error {
	bodies := make([][]byte, 0, batchSize)
	for first := 0; first < docs.Len(); first += batchSize {
		bodies = bodies[:0]
		for i := first; i < min(first+batchSize, docs.Len()); i++ {
			bodies = append(bodies, docs.Body(i))
		}
		if err := e.insert(first, bodies); err != nil {
			return err
		}
	}
	return nil
}

// insertSingly inserts n documents, each in a commit of its own.
func insertSingly(e engine, docs *fixture.Documents, n, goroutines int) error {
	var next atomic.Int64
	var group sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := e.insertOne(i, docs.Body(i)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

func updateAll(e engine, docs *fixture.Documents) error {
	bodies := make([][]byte, 0, batchSize)
	return eachBatch(shuffled(docs.Len()), func(numbers []int) error {
		bodies = bodies[:0]
		for _, i := range numbers {
			bodies = append(bodies, updated(docs, i))
		}
		return e.update(numbers, bodies)
	})
}

// updated is the body that updateAll gives to document i: its neighbour's.
func updated(docs *fixture.Documents, i int) []byte { return docs.Body((i + 1) % docs.Len()) }

func removeHalf(e engine, docs *fixture.Documents) error {
	var half []int
	for _, i := range shuffled(docs.Len()) {
		if i%2 == 0 {
			half = append(half, i)
		}
	}
	return eachBatch(half, e.remove)
}

func halfRemoved(docs *fixture.Documents, i int) []byte {
	if i%2 == 0 {
		return nil
	}
	return docs.Body(i)
}

func getAll(e engine, docs *fixture.Documents) error {
	sum := 0
	for _, i := range shuffled(docs.Len()) {
		body, err := e.get(i)
		if err != nil {
			return err
		}
		sum += touch(body)
	}
	return touched(sum)
}

func scanAll(e engine, docs *fixture.Documents) error {
	sum := 0
	if _, err := e.scan(func(body []byte) { sum += touch(body) }); err != nil {
		return err
	}
	return touched(sum)
}

func touched(sum int) error {
	if sum == 0 {
		return fmt.Errorf("nothing was read")
	}
	return nil
}

// loadCompacted fills an engine and brings its tables to rest.
func loadCompacted(e engine, docs *fixture.Documents) error {
	if err := insertAll(e, docs); err != nil {
		return err
	}
	return e.restCompacted()
}

// loadWarm is loadCompacted, and fills the cache by reading it all.
func loadWarm(e engine, docs *fixture.Documents) error {
	if err := loadCompacted(e, docs); err != nil {
		return err
	}
	return scanAll(e, docs)
}

// shuffled returns the numbers below n in an order that is always the same.
func shuffled(n int) []int { return rand.New(rand.NewPCG(3, 4)).Perm(n) }

func eachBatch(numbers []int, fn func([]int) error) error {
	for first := 0; first < len(numbers); first += batchSize {
		if err := fn(numbers[first:min(first+batchSize, len(numbers))]); err != nil {
			return err
		}
	}
	return nil
}

// timed runs w once on a prepared engine and checks what it left.
func (w *workload) timed(e engine, docs *fixture.Documents) (took time.Duration, failure, err error) {
	collectGarbage()
	start := time.Now()
	if err := w.run(e, docs); err != nil {
		return 0, nil, err
	}
	took = time.Since(start)

	want := docs.Body
	if w.want != nil {
		want = func(i int) []byte { return w.want(docs, i) }
	}
	return took, check(e, w.settings.capacity, want), nil
}
