package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"

	"github.com/jaydb/jay"
)

const (
	hiloName      = "Jay HiLo"
	yardstickName = "atomic add + text"
	bandwidth     = 1000 // of Badger's sequence
)

// warmIDs are drawn before the clock starts: ranges double from 32 up to
// 1,048,576, which the 2,097,120th number reaches.
const warmIDs = 2_200_000

// maker makes one ID per call, on any number of goroutines.
type maker struct {
	name string
	next func() (string, error)
}

// makerLine is the outcome of one maker: nanoseconds per ID, by round.
type makerLine struct {
	Name   string    `json:"name"`
	One    []float64 `json:"oneGoroutineNanos"`
	Two    []float64 `json:"twoGoroutinesNanos"`
	Allocs float64   `json:"allocationsPerID"`
	IDs    int       `json:"idsChecked"`
	Repeat int       `json:"idsRepeated"`

	maker  maker
	hashes []uint64 // of the IDs checked
}

func measureMakers(n, rounds int) (lines []*makerLine, err error) {
	err = withDir(func(dir string) (err error) {
		db, err := jay.Open(filepath.Join(dir, "jay"), nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		client := db.NewHiLoClient()
		defer func() { err = errors.Join(err, client.Close(context.Background())) }()

		other, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, "badger")).WithLogger(nil))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		sequence, err := other.GetSequence([]byte("users"), bandwidth)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sequence.Release()) }()

		for _, m := range makers(client, sequence) {
			lines = append(lines, &makerLine{Name: m.name, maker: m})
		}
		for i := 0; i < warmIDs; i += 100_000 {
			if _, err := client.NextN(context.Background(), "users", 100_000); err != nil {
				return err
			}
		}
		for round := range rounds {
			if err := measureRound(lines, round, n); err != nil {
				return err
			}
		}
		for _, l := range lines {
			l.finish()
		}
		return nil
	})
	return lines, err
}

// measureRound times every maker on one goroutine and on two. The order
// turns with the round, so that none always follows the same one.
func measureRound(lines []*makerLine, round, n int) error {
	for i := range lines {
		l := lines[(i+round)%len(lines)]
		for _, goroutines := range []int{1, 2} {
			nanos, err := l.timed(goroutines, n)
			if err != nil {
				return fmt.Errorf("%s: %w", l.Name, err)
			}
			if goroutines == 1 {
				l.One = append(l.One, nanos)
			} else {
				l.Two = append(l.Two, nanos)
			}
		}
	}
	return nil
}

// makers returns all that are compared. The yardstick counts in the same
// region as the warmed HiLo client: its texts are as long.
func makers(client *jay.HiLoClient, sequence *badger.Sequence) []maker {
	ctx := context.Background()
	counter := new(struct {
		_ [128]byte // no neighbours on its cache line
		n atomic.Int64
		_ [128]byte
	})
	counter.n.Store(warmIDs)
	return []maker{
		{yardstickName, func() (string, error) { return text(counter.n.Add(1)), nil }},
		{hiloName, func() (string, error) { return client.Next(ctx, "users") }},
		{"rs/xid", func() (string, error) { return xid.New().String(), nil }},
		{"google/uuid v4", func() (string, error) {
			id, err := uuid.NewRandom()
			return id.String(), err
		}},
		{"google/uuid v7", func() (string, error) {
			id, err := uuid.NewV7()
			return id.String(), err
		}},
		{"oklog/ulid", func() (string, error) { return ulid.Make().String(), nil }},
		{"segmentio/ksuid", func() (string, error) {
			id, err := ksuid.NewRandom()
			return id.String(), err
		}},
		{"badger sequence + text", func() (string, error) {
			n, err := sequence.Next()
			return text(int64(n) + warmIDs), err
		}},
	}
}

// text is what a HiLo ID looks like, with one allocation.
func text(n int64) string {
	var buffer [64]byte
	id := append(buffer[:0], "users/"...)
	id = strconv.AppendInt(id, n, 10)
	id = append(id, "-A"...)
	return string(id)
}

// timed returns the nanoseconds per ID on that many goroutines and as many
// CPUs. Then, outside the clock, it does a quarter of the same again and keeps
// what comes out, for the check.
func (l *makerLine) timed(goroutines, n int) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(goroutines))
	runtime.GC()
	each := n / goroutines
	start := time.Now()
	err := parallel(goroutines, func(int) error { return l.maker.discard(each) })
	took := time.Since(start)
	if err != nil {
		return 0, err
	}

	each /= 4
	first := len(l.hashes)
	l.hashes = append(l.hashes, make([]uint64, goroutines*each)...)
	err = parallel(goroutines, func(i int) error {
		return l.maker.keep(l.hashes[first+i*each : first+(i+1)*each])
	})
	return float64(took) / float64(goroutines*(n/goroutines)), err
}

// parallel calls fn on that many goroutines and waits.
func parallel(goroutines int, fn func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, goroutines)
	for i := range goroutines {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (m *maker) discard(n int) error {
	for range n {
		if _, err := m.next(); err != nil {
			return err
		}
	}
	return nil
}

// keep fills in a hash of each ID: a repeated ID is a repeated hash.
func (m *maker) keep(hashes []uint64) error {
	for i := range hashes {
		id, err := m.next()
		if err != nil {
			return err
		}
		hashes[i] = maphash.String(seed, id)
	}
	return nil
}

var seed = maphash.MakeSeed()

// finish counts allocations and repeated IDs.
func (l *makerLine) finish() {
	l.Allocs = testing.AllocsPerRun(100_000, func() { sink, _ = l.maker.next() })
	slices.Sort(l.hashes)
	l.IDs = len(l.hashes)
	l.Repeat = l.IDs - len(slices.Compact(l.hashes))
	l.hashes = nil
}

var sink string
