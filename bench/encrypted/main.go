// Command encrypted measures what encryption costs: the same work on an encrypted database
// and on a plain one.
//
//	go run ./encrypted [-pairs N] [-slice D] [-docs N] [-only REGEXP] [-dir DIR] [-smoke]
//
// The sides are measured in turns in one process, each with a database of its own, so that
// the machine is the same for all: plain, plain again, encrypted. In each pair they are
// compared with plain; the ratio of the time of an operation is printed with its interval.
// The ratio of plain to itself shows what is noise.
//
//	insert     a durable put of a new document, by 1 and by 8 goroutines
//	get        a read by ID, of a database that fits its caches; and of one whose caches
//	           are far smaller than it, so that most reads decrypt
//	scan       a walk over all documents of the same two databases
//	bulk       a bulk writer that fills a new database, with its Close
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"

	"github.com/jaydb/jay/bench/stats"
)

// options are the command line.
type options struct {
	pairs, docs int
	slice       time.Duration
	dir         string
	only        *regexp.Regexp
}

func main() {
	var o options
	flag.IntVar(&o.pairs, "pairs", 20, "pairs, each with every side in turn: at least 6, for an interval of 95 %")
	flag.IntVar(&o.docs, "docs", 100_000, "documents that are read, and that a bulk writer stores")
	flag.DurationVar(&o.slice, "slice", 300*time.Millisecond, "how long a side inserts or reads in a pair")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the databases are put, and removed: on the disk that is to be measured")
	only := flag.String("only", "", "measure only the work whose name matches this regular expression")
	smoke := flag.Bool("smoke", false, "one short pair with few documents, to see that it works")
	flag.Parse()
	if *smoke {
		o.pairs, o.docs, o.slice = 1, 1000, 10*time.Millisecond
	}
	err := error(nil)
	if o.only, err = regexp.Compile(*only); err == nil {
		err = o.measure(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "encrypted:", err)
		os.Exit(1)
	}
}

// side is one of those that are compared.
type side struct {
	name string
	keys jay.EncryptionKeys // nil for plain
	dir  string

	inserted, cached, small *jay.DB // what is inserted into; what is read, by the size of the caches
	written                 atomic.Int64
}

// work is something that is measured. It returns the time of an operation.
type work struct {
	name string
	aim  float64 // of the ratio
	run  func(context.Context, *side) (time.Duration, error)
}

// measure prints the ratios of each work.
func (o *options) measure(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp(o.dir, "encrypted")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	key, err := keys.New("bench")
	if err != nil {
		return err
	}
	sides := []*side{{name: "plain"}, {name: "plain'"}, {name: "encrypted", keys: keys.Of(key)}}
	for _, s := range sides {
		s.dir = filepath.Join(dir, s.name)
		if err := s.open(ctx, o.docs); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
	}
	fmt.Printf("%d pairs, %d documents\n| work | plain | plain ÷ itself | encrypted ÷ plain | aim |\n|---|---:|---|---|---:|\n", o.pairs, o.docs)
	for _, w := range o.works() {
		if !o.only.MatchString(w.name) {
			continue
		}
		times := make([][]float64, len(sides))
		for pair := range o.pairs {
			for i := range sides {
				at := (pair + i) % len(sides)
				took, err := w.run(ctx, sides[at])
				if err != nil {
					return fmt.Errorf("%s, %s: %w", w.name, sides[at].name, err)
				}
				times[at] = append(times[at], float64(took))
			}
		}
		ratio := func(of int) string {
			r := stats.IntervalOf(stats.Ratios(times[of], times[0]), 0.95)
			return fmt.Sprintf("%.3f (%.3f–%.3f)", r.Median, r.Low, r.High)
		}
		fmt.Printf("| %s | %v | %s | %s | %.2f |\n", w.name, time.Duration(stats.Median(times[0])).Round(10*time.Nanosecond), ratio(1), ratio(2), w.aim)
	}
	return nil
}

// works returns what is measured.
func (o *options) works() []work {
	return []work{
		{"insert ×1", 1.15, o.insert(1)},
		{"insert ×8", 1.15, o.insert(8)},
		{"get, from the caches", 1.1, o.get(func(s *side) *jay.DB { return s.cached })},
		{"get, decrypted", 1.1, o.get(func(s *side) *jay.DB { return s.small })},
		{"scan, from the caches", 1.2, scan(func(s *side) *jay.DB { return s.cached })},
		{"scan, decrypted", 1.2, scan(func(s *side) *jay.DB { return s.small })},
		{"bulk", 1.3, o.bulk()},
	}
}

// open makes the databases of a side, and fills those that are read.
func (s *side) open(ctx context.Context, docs int) (err error) {
	if s.inserted, err = jay.Open(filepath.Join(s.dir, "inserted"), &jay.Options{EncryptionKeys: s.keys}); err != nil {
		return err
	}
	if s.cached, err = jay.Open(filepath.Join(s.dir, "cached"), &jay.Options{EncryptionKeys: s.keys, CacheBytes: 256 << 20}); err != nil {
		return err
	}
	if s.small, err = jay.Open(filepath.Join(s.dir, "small"), &jay.Options{EncryptionKeys: s.keys, CacheBytes: 4 << 20, DocumentCacheBytes: -1}); err != nil {
		return err
	}
	for _, db := range []*jay.DB{s.cached, s.small} {
		if err := fill(ctx, db, docs); err != nil {
			return err
		}
		if err := db.Compact(ctx); err != nil {
			return err
		}
		if _, err := walk(ctx, db); err != nil { // into the caches
			return err
		}
	}
	return nil
}

// close closes the databases.
func (s *side) close() error {
	return errors.Join(s.inserted.Close(), s.cached.Close(), s.small.Close())
}

// document makes a document of some 400 bytes, of which about half can be compressed.
func document(i int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	return fmt.Appendf(nil, `{"name":"customer %d","address":{"street":"a street of some length","city":"a city"},"note":"%016x%016x%016x%016x%016x%016x%016x%016x%016x%016x","total":%d,"tags":["red","green","blue"]}`,
		i, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.IntN(1e6))
}

func documentID(i int) string { return fmt.Sprintf("customers/%d", i) }

// fill stores documents by a bulk writer.
func fill(ctx context.Context, db *jay.DB, docs int) error {
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i := range docs {
		if _, err := w.Put(ctx, documentID(i), document(i), jay.InCollection("Customers")); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// insert puts new documents for a slice of time.
func (o *options) insert(writers int) func(context.Context, *side) (time.Duration, error) {
	return func(ctx context.Context, s *side) (time.Duration, error) {
		begun := time.Now()
		var done atomic.Int64
		errs := make([]error, writers)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for time.Since(begun) < o.slice && errs[w] == nil {
					i := int(s.written.Add(1))
					_, errs[w] = s.inserted.Put(ctx, documentID(i), document(i), jay.InCollection("Customers"))
					done.Add(1)
				}
			})
		}
		all.Wait()
		return time.Since(begun) / time.Duration(done.Load()), errors.Join(errs...)
	}
}

// get reads documents by their IDs, in the same random order on all sides, for a slice of time.
func (o *options) get(of func(*side) *jay.DB) func(context.Context, *side) (time.Duration, error) {
	return func(ctx context.Context, s *side) (time.Duration, error) {
		r, db, n := rand.New(rand.NewPCG(2, 3)), of(s), 0
		begun := time.Now()
		for ; time.Since(begun) < o.slice; n++ {
			if _, err := db.Get(ctx, documentID(r.IntN(o.docs))); err != nil {
				return 0, err
			}
		}
		return time.Since(begun) / time.Duration(n), nil
	}
}

// walk reads all documents, and returns how many there are.
func walk(ctx context.Context, db *jay.DB) (n int, err error) {
	for _, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// scan reads all documents once.
func scan(of func(*side) *jay.DB) func(context.Context, *side) (time.Duration, error) {
	return func(ctx context.Context, s *side) (time.Duration, error) {
		begun := time.Now()
		n, err := walk(ctx, of(s))
		return time.Since(begun) / time.Duration(max(n, 1)), err
	}
}

// bulk fills a new database, and removes it.
func (o *options) bulk() func(context.Context, *side) (time.Duration, error) {
	return func(ctx context.Context, s *side) (took time.Duration, err error) {
		dir := filepath.Join(s.dir, "bulk")
		begun := time.Now()
		db, err := jay.Open(dir, &jay.Options{EncryptionKeys: s.keys})
		if err != nil {
			return 0, err
		}
		err = errors.Join(fill(ctx, db, o.docs), db.Close())
		took = time.Since(begun) / time.Duration(o.docs)
		return took, errors.Join(err, os.RemoveAll(dir))
	}
}
