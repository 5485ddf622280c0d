// Package garbage counts what one operation allocates, in Jay and in its peers.
//
//	go run ./measure garbage [-docs N] [-engines LIST] [-smoke]
//
// The rows are operations of the benchmarks; a cell has bytes and allocations per
// document or per operation, of all goroutines, those of flushes and compactions
// included. It is Go's memory that is counted: what SQLite allocates in C, and the block
// caches and memtables of Pebble, are not garbage of Go's.
//
// One more row has the heap of an open database at rest, beside what was there before.
package garbage

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
	"github.com/jaydb/jay/bench/harness"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "garbage", About: "what one operation allocates, in Jay and in its peers",
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		docs := flags.Int("docs", 50_000, "documents of 550 bytes")
		engines := flags.String("engines", "jay,pebble,bbolt,sqlite-mattn,sqlite-modernc", "engines, in their order")
		return func(r *harness.Run) error {
			if r.Smoke {
				*docs, *engines = 2000, "jay,bbolt"
			}
			return run(r.Dir, *docs, strings.Split(*engines, ","))
		}
	},
}

// cost is what operations allocate.
type cost struct{ bytes, allocs, ops uint64 }

// String returns bytes and allocations per operation.
func (c cost) String() string {
	if c.ops == 0 {
		return "–"
	}
	return fmt.Sprintf("%d B, %.1f", c.bytes/c.ops, float64(c.allocs)/float64(c.ops))
}

// measure counts what fn, which does ops operations, allocates.
func measure(ops int, fn func() error) (cost, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := fn()
	runtime.ReadMemStats(&after)
	return cost{after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs, uint64(ops)}, err
}

// heap returns the bytes of live objects.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 { // finalizers, then what they let go, then pools
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var rows = []string{"bulk load, per document", "insert", "get", "update in batch, per document", "indexed query, 10 documents, per document", "scan, per document"}

func run(parent string, docs int, names []string) error {
	source, err := fixture.NewSource(fixture.BodyBytes, docs)
	if err != nil {
		return err
	}
	table := make([][]string, len(rows)+1)
	for _, name := range names {
		maker, ok := engine.ByName(name)
		if !ok {
			return fmt.Errorf("there is no engine %q", name)
		}
		if maker.Missing != "" {
			return fmt.Errorf("%s: %s", name, maker.Missing)
		}
		costs, rest, err := measureEngine(parent, maker, source, docs)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i, c := range costs {
			table[i] = append(table[i], c.String())
		}
		table[len(rows)] = append(table[len(rows)], fmt.Sprintf("%.2f MB", float64(rest)/1e6))
	}
	fmt.Printf("%d documents of %d bytes; bytes and allocations\n\n| | %s |\n|---%s|\n", docs, fixture.BodyBytes, strings.Join(names, " | "), strings.Repeat("|---", len(names)))
	for i, cells := range table {
		row := "heap of the open database at the end"
		if i < len(rows) {
			row = rows[i]
		}
		fmt.Printf("| %s | %s |\n", row, strings.Join(cells, " | "))
	}
	return nil
}

const batch = 1000

// measureEngine measures all rows. rest is the heap that the engine holds at the end.
func measureEngine(parent string, maker engine.Maker, source *fixture.Source, docs int) (costs []cost, rest int64, err error) {
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{source: source, docs: docs, made: make([]engine.Doc, 0, batch)}
	b.arena = make([]byte, 0, 2*batch*fixture.BodyBytes)
	before := heap()
	if b.engine, err = maker.Open(engine.Settings{Dir: dir, Writers: 1, CacheBytes: 64 << 20}); err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, b.engine.Close()) }()
	for _, fn := range []func() (cost, error){b.load, b.insert, b.get, b.update, b.query, b.scan} {
		c, err := fn()
		if err != nil {
			return nil, 0, err
		}
		costs = append(costs, c)
	}
	return costs, int64(heap()) - int64(before), nil
}

// bench is one engine under measurement. Documents are made in memory that is used
// again, and do not count.
type bench struct {
	engine engine.Engine
	source *fixture.Source
	docs   int
	made   []engine.Doc
	arena  []byte
}

// key returns the ID of a document, as Jay numbers them.
func key(i int) engine.Key {
	text := fmt.Sprintf("orders/%d-A", i+1)
	return engine.Key{Text: text, Bytes: []byte(text)}
}

// make makes the documents from first on, in one revision.
func (b *bench) make(first, n, revision int) []engine.Doc {
	b.made, b.arena = b.made[:0], b.arena[:0]
	for i := first; i < first+n; i++ {
		start := len(b.arena)
		b.arena = b.source.Append(b.arena, i, revision)
		b.made = append(b.made, engine.Doc{Key: key(i), Body: b.arena[start:len(b.arena):len(b.arena)]})
	}
	return b.made
}

// batches measures fn over all documents, without what making them costs.
func (b *bench) batches(revision int, fn func([]engine.Doc) error) (sum cost, err error) {
	for first := 0; first < b.docs; first += batch {
		docs := b.make(first, min(batch, b.docs-first), revision)
		c, err := measure(len(docs), func() error { return fn(docs) })
		if err != nil {
			return cost{}, err
		}
		sum = cost{sum.bytes + c.bytes, sum.allocs + c.allocs, sum.ops + c.ops}
	}
	return sum, nil
}

func (b *bench) load() (cost, error) { return b.batches(fixture.FirstRevision, b.engine.Insert) }

func (b *bench) update() (cost, error) { return b.batches(fixture.FirstRevision+1, b.engine.Update) }

func (b *bench) insert() (cost, error) {
	docs := b.make(b.docs, batch, fixture.FirstRevision)
	return measure(len(docs), func() error {
		for _, doc := range docs {
			if err := b.engine.InsertOne(doc); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) get() (cost, error) {
	keys := make([]engine.Key, batch)
	for i := range keys {
		keys[i] = key(i * 7919 % b.docs)
	}
	return measure(len(keys), func() error {
		for _, k := range keys {
			if _, err := b.engine.Get(k); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) query() (cost, error) {
	q, ok := b.engine.(engine.Querier)
	if !ok {
		return cost{}, nil
	}
	if err := q.CreateIndexes(); err != nil {
		return cost{}, err
	}
	first, buckets := b.source.Buckets()
	found := 0
	c, err := measure(1, func() error {
		for i := range 100 {
			query := engine.Query{Field: "Bucket", Equal: int64(first + i*31%buckets)}
			if err := q.Query(query, func(func() string, []byte) error { found++; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && found == 0 {
		err = errors.New("queries found nothing")
	}
	c.ops = uint64(max(1, found))
	return c, err
}

func (b *bench) scan() (cost, error) {
	n := 0
	c, err := measure(1, func() error {
		return b.engine.Scan("", func(func() string, []byte) error { n++; return nil })
	})
	if err == nil && n < b.docs {
		err = fmt.Errorf("a scan found %d documents of %d", n, b.docs)
	}
	c.ops = uint64(max(1, n))
	return c, err
}
