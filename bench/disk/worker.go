package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/bench/workload"
)

const (
	docBytes  = 550
	batchDocs = 1000 // documents of a batch of the load
	tenths    = 10
	together  = 8   // goroutines
	changed   = 100 // documents of a batch of updates
)

// said is a line of a worker to its parent.
type said struct {
	What, Figure, Error string
	Kill, Done          bool
}

// store is an engine at work.
type store struct {
	*options
	engine engine.Engine
	out    *json.Encoder
}

// work is the worker's process: it reads its options, which come when its group has been made.
func work(in io.Reader, out io.Writer) error {
	s := &store{options: &options{}, out: json.NewEncoder(out)}
	if err := json.NewDecoder(in).Decode(s.options); err != nil {
		return err
	}
	err := s.all()
	if err != nil {
		return s.out.Encode(said{Error: err.Error()})
	}
	return s.out.Encode(said{Done: true})
}

func (s *store) all() error {
	if s.Killed {
		return s.reopen()
	}
	for _, step := range []func() error{s.load, s.settle, s.sizes, s.gets, s.inserts} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) say(what, format string, args ...any) error {
	return s.out.Encode(said{What: what, Figure: fmt.Sprintf(format, args...)})
}

func (s *store) open(synced bool) error {
	m, _ := engine.ByName(s.Engine)
	cache := s.Cache
	if strings.HasPrefix(s.Engine, "sqlite") { // each connection has a cache of its own
		cache /= together + 1
	}
	var err error
	s.engine, err = m.Open(engine.Settings{Dir: s.Dir, Synced: synced, CacheBytes: cache, Writers: together + 1})
	return err
}

// load loads the documents.
func (s *store) load() error {
	if err := s.open(false); err != nil {
		return err
	}
	docs := make([]engine.Doc, 0, batchDocs)
	perTenth := s.Docs / tenths
	var took []time.Duration
	begun := time.Now()
	for from := 0; from < s.Docs; from += batchDocs {
		docs = docs[:0]
		for n := from; n < from+batchDocs; n++ {
			docs = append(docs, engine.Doc{Key: key(n), Body: body(n, 0)})
		}
		if err := s.engine.Insert(docs); err != nil {
			return err
		}
		if (from+batchDocs)%perTenth == 0 {
			took = append(took, time.Since(begun))
			begun = time.Now()
		}
	}
	if y, ok := s.engine.(engine.Syncer); ok {
		if err := y.Sync(); err != nil {
			return err
		}
	}
	total := time.Duration(0)
	var rates []string
	for _, t := range took {
		total += t
		rates = append(rates, fmt.Sprintf("%.0f", float64(perTenth)/t.Seconds()/1000))
	}
	return errors.Join(
		s.say("load", "%.0f documents a second, %s in all", float64(s.Docs)/total.Seconds(), total.Round(time.Second/10)),
		s.say("load, last tenth ÷ first", "%.2f", took[0].Seconds()/took[tenths-1].Seconds()),
		s.say("load, thousands a second by tenth", "%s", strings.Join(rates, " ")),
	)
}

// settle waits until the process writes nothing more, at most 10 minutes, and closes and opens the store.
func (s *store) settle() error {
	begun := time.Now()
	if err := s.rest(); err != nil {
		return err
	}
	if err := errors.Join(s.engine.Close(), s.open(false)); err != nil {
		return err
	}
	if err := s.rest(); err != nil { // some engines go on then
		return err
	}
	return s.say("settled", "after %s", time.Since(begun).Round(time.Second))
}

// rest waits until the process has written less than 1 MiB in 5 seconds, at most 10 minutes.
func (s *store) rest() error {
	begun, quiet := time.Now(), 0
	for at := workload.WrittenBytes(); quiet < 5 && time.Since(begun) < 10*time.Minute; quiet++ {
		time.Sleep(min(time.Second, s.Slice))
		if now := workload.WrittenBytes(); now-at > 1<<20 {
			at, quiet = now, 0
		}
	}
	if quiet < 5 {
		return errors.New("it still writes after 10 minutes")
	}
	return nil
}

// sizes says what the documents have cost.
func (s *store) sizes() error {
	size, err := workload.DiskBytes(s.Dir)
	if err != nil {
		return err
	}
	all := float64(s.Docs) * docBytes
	return errors.Join(
		s.say("written ÷ documents", "%.2f", float64(workload.WrittenBytes())/all),
		s.say("on disk ÷ documents", "%.2f", float64(size)/all),
		s.say("most memory", "%d MB", workload.PeakBytes()>>20),
	)
}

// gets reads random documents.
func (s *store) gets() error {
	for _, n := range []int{1, together} {
		l, took, err := s.each(n, func(random *rand.Rand, _ int) error {
			return s.get(random.IntN(s.Docs))
		})
		if err != nil {
			return err
		}
		p := l.Percentiles()
		err = s.say(fmt.Sprintf("get, %d at a time", n), "%.1f µs each; p50 %.1f, p99 %.1f µs", float64(took.Microseconds())/float64(p.Count), p.P50, p.P99)
		if err != nil {
			return err
		}
	}
	return nil
}

// get reads a document, which may have been updated, and compares it with what was written.
func (s *store) get(n int) error {
	got, err := s.engine.Get(key(n))
	if err != nil {
		return fmt.Errorf("document %d: %w", n, err)
	}
	revision := 0
	if len(got) == docBytes {
		revision = int(got[revisionAt] - '0')
	}
	if want := body(n, revision); !bytes.Equal(got, want) {
		return fmt.Errorf("document %d is %q, not %q", n, got, want)
	}
	return nil
}

// each calls do from n goroutines for the slice.
func (s *store) each(n int, do func(random *rand.Rand, goroutine int) error) (*stats.Latency, time.Duration, error) {
	var group sync.WaitGroup
	all, errs := make([]stats.Latency, n), make([]error, n)
	begun := time.Now()
	for i := range n {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), uint64(n)))
			for time.Since(begun) < s.Slice && errs[i] == nil {
				at := time.Now()
				errs[i] = do(random, i)
				all[i].Record(time.Since(at))
			}
		})
	}
	group.Wait()
	took := time.Since(begun)
	for i := range n {
		if i > 0 {
			all[0].Merge(&all[i])
		}
	}
	return &all[0], took, errors.Join(errs...)
}

// inserts inserts durably while random documents are updated. It returns only with an error: the parent kills the process.
func (s *store) inserts() error {
	if err := errors.Join(s.engine.Close(), s.open(true)); err != nil {
		return err
	}
	// The updates: until the process is killed.
	failed := make(chan error, 2)
	var updates atomic.Int64
	go func() {
		random := rand.New(rand.NewPCG(3, 4))
		docs := make([]engine.Doc, changed)
		for {
			for i := range docs {
				n := random.IntN(s.Docs)
				docs[i] = engine.Doc{Key: key(n), Body: body(n, 1+random.IntN(8))}
			}
			if err := s.engine.Update(docs); err != nil {
				failed <- err
				return
			}
			updates.Add(changed)
		}
	}()
	number := atomic.Int64{}
	number.Store(int64(s.Docs))
	insert := func(*rand.Rand, int) error {
		n := int(number.Add(1)) - 1
		return s.engine.InsertOne(engine.Doc{Key: key(n), Body: body(n, 0)})
	}
	l, took, err := s.each(together, insert)
	if err != nil {
		return err
	}
	p := l.Percentiles()
	err = errors.Join(
		s.say("durable inserts, 8 at a time", "%.0f a second, beside %.0f updates a second; p50 %.2f, p99 %.2f, p99.9 %.2f, longest %.0f ms",
			float64(p.Count)/took.Seconds(), float64(updates.Load())/took.Seconds(), p.P50/1e3, p.P99/1e3, p.P999/1e3, p.Max/1e3),
		s.say("most memory", "%d MB", workload.PeakBytes()>>20),
		s.out.Encode(said{Kill: true}),
	)
	if err != nil {
		return err
	}
	for { // until it is killed
		if _, _, err := s.each(together, insert); err != nil {
			return err
		}
		select {
		case err := <-failed:
			return err
		default:
		}
	}
}

// reopen opens the store of a process that was killed.
func (s *store) reopen() error {
	begun := time.Now()
	if err := s.open(false); err != nil {
		return err
	}
	opened := time.Since(begun)
	if err := s.get(s.Docs / 2); err != nil {
		return err
	}
	read := time.Since(begun)
	random := rand.New(rand.NewPCG(5, 6))
	for range min(10_000, s.Docs) {
		if err := s.get(random.IntN(s.Docs)); err != nil {
			return err
		}
	}
	size, err := workload.DiskBytes(s.Dir)
	if err != nil {
		return err
	}
	return errors.Join(
		s.say("open after kill", "%s; first document after %s", opened.Round(time.Millisecond), read.Round(time.Millisecond)),
		s.say("on disk ÷ documents, after updates", "%.2f", float64(size)/(float64(s.Docs)*docBytes)),
		s.engine.Close(),
	)
}

// key returns the ID of document n, as HiLo makes it.
func key(n int) engine.Key {
	b := strconv.AppendInt([]byte("orders/"), int64(n)+1, 10)
	b = append(b, "-A"...)
	return engine.Key{Text: string(b), Bytes: b}
}

const (
	head       = `{"Number":0000000000,"Revision":0,"Note":"`
	revisionAt = len(`{"Number":0000000000,"Revision":`)
	alphabet   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
)

// body returns document n, in which nothing repeats: 64 symbols, all as probable.
func body(n, revision int) []byte {
	random := rand.NewPCG(uint64(n), uint64(revision))
	b := make([]byte, 0, docBytes+8)
	b = fmt.Appendf(b, `{"Number":%010d,"Revision":%d,"Note":"`, 1_000_000_000+n, revision)
	var eight [8]byte
	for len(b) < docBytes-2 {
		binary.LittleEndian.PutUint64(eight[:], random.Uint64())
		for _, c := range eight {
			b = append(b, alphabet[c&63])
		}
	}
	return append(b[:docBytes-2], `"}`...)
}
