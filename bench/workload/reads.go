package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

const (
	// chunk is the number of IDs that are made at a time, off the clock.
	chunk = 1024
	// sampleEvery is how many reads there are to each one whose latency is
	// taken: reading the clock twice costs a tenth of a quick read.
	sampleEvery = 8
)

// reading runs reads, up to Ops, by one goroutine. pick chooses the IDs, off the
// clock; do reads one.
func (r *Run) reading(pick func() engine.Key, do func(key engine.Key) error) error {
	keys := make([]engine.Key, chunk)
	for r.result.Ops < r.w.Ops && !r.over() {
		keys = keys[:min(chunk, r.w.Ops-r.result.Ops)]
		for i := range keys {
			keys[i] = pick()
		}
		if err := r.timed(func() error { return r.readChunk(keys, do) }); err != nil {
			return err
		}
		r.result.Ops += len(keys)
	}
	return nil
}

func (r *Run) readChunk(keys []engine.Key, do func(key engine.Key) error) error {
	for i, key := range keys {
		if i%sampleEvery != 0 {
			if err := do(key); err != nil {
				return fmt.Errorf("%s: %w", key.Text, err)
			}
			continue
		}
		start := time.Now()
		if err := do(key); err != nil {
			return fmt.Errorf("%s: %w", key.Text, err)
		}
		r.latency.Record(time.Since(start))
	}
	return nil
}

// get reads one document.
func (r *Run) get(key engine.Key) error {
	body, err := r.engine.Get(key)
	return touch(body, err)
}

func (r *Run) uniform() engine.Key { return newKey(r.random.IntN(r.w.Docs)) }

func randomGet(r *Run) error { return r.reading(r.uniform, r.get) }

// hotGet reads few documents often and many rarely.
func hotGet(r *Run) error {
	zipf := newZipf(r.w.Docs, zipfTheta)
	return r.reading(func() engine.Key { return newKey(zipf.scrambled(r.random)) }, r.get)
}

func missingGet(r *Run) error {
	pick := func() engine.Key { return missingKey(r.random.IntN(r.w.Docs)) }
	return r.reading(pick, func(key engine.Key) error {
		body, err := r.engine.Get(key)
		if errors.Is(err, engine.ErrNotFound) {
			return nil
		}
		return fmt.Errorf("got %.60q, error %v, for a missing document", body, err)
	})
}

// typedGet reads documents into a struct, and then times the decoding of the same
// bytes separately.
func typedGet(r *Run) error {
	err := r.reading(r.uniform, func(key engine.Key) error {
		var order fixture.Order
		if err := r.engine.GetTyped(key, &order); err != nil {
			return err
		}
		if order.Company == "" {
			return errors.New("nothing was decoded")
		}
		return nil
	})
	if err != nil {
		return err
	}
	var took time.Duration
	for range r.result.Ops {
		number := r.random.IntN(r.w.Docs)
		r.arena = r.source.Append(r.arena[:0], number, fixture.FirstRevision)
		var order fixture.Order
		start := time.Now()
		if err := json.Unmarshal(r.arena, &order); err != nil {
			return err
		}
		took += time.Since(start)
	}
	r.extra(ExtraDecode, micros(took)/float64(r.result.Ops))
	return nil
}

// The names of further figures of a round.
const (
	ExtraDecode = "JSON decoding alone"
	ExtraBare   = "bare Pebble's open of the same files"
)

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// scanShare is the part of the limit for which scans are repeated: the time of one
// scan of few documents would say little.
const scanShare = 10

// collectionScan reads all documents in a row, again and again.
func collectionScan(r *Run) error {
	for r.result.Ops == 0 || r.result.Nanos < r.p.Limit/scanShare {
		if err := r.scan(""); err != nil {
			return err
		}
	}
	return nil
}

// prefixScan reads the documents whose numbers begin with the same two digits,
// by turns, which come to all with two digits or more.
func prefixScan(r *Run) error {
	for digits := 10; digits < 100 && !r.over(); digits++ {
		if err := r.scan(fmt.Sprint(prefix, digits)); err != nil {
			return err
		}
	}
	return nil
}

// edgeDocs is the number of documents of a page at either end of the order of IDs.
const edgeDocs = 100

// edge reads the page of the newest documents, or of the oldest, again and again.
func edge(newest bool) func(r *Run) error {
	return func(r *Run) error {
		pager := r.engine.(engine.Pager)
		for r.result.Ops < r.w.Ops && !r.over() {
			n := 0
			start := time.Now()
			err := pager.Edge(newest, edgeDocs, func(_ func() string, body []byte) error {
				n++
				return touch(body, nil)
			})
			took := time.Since(start)
			r.result.Nanos += took
			r.latency.Record(took)
			if err != nil {
				return err
			}
			if n != min(edgeDocs, r.w.Docs) {
				return fmt.Errorf("a page of %d documents", n)
			}
			r.result.Ops += n
		}
		return nil
	}
}

// scan walks over the documents with that prefix; each is an operation.
func (r *Run) scan(prefix string) error {
	before := r.result.Ops
	start := time.Now()
	err := r.engine.Scan(prefix, func(_ func() string, body []byte) error {
		r.result.Ops++
		return touch(body, nil)
	})
	took := time.Since(start)
	r.result.Nanos += took
	r.latency.Record(took)
	if err == nil && r.result.Ops == before {
		return fmt.Errorf("scan of %q found nothing", prefix)
	}
	return err
}
