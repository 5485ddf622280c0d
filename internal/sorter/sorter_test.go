package sorter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay/storage"
)

// memoryFile is a File in memory.
type memoryFile struct {
	bytes.Buffer
	finished, removed bool
	open              int
	damage            func([]byte) []byte // of what is read; nil for none
}

func (f *memoryFile) Finish() error { f.finished = true; return nil }

func (f *memoryFile) Open() (io.ReadCloser, error) {
	if !f.finished || f.removed {
		return nil, errors.New("the file is not there")
	}
	data := bytes.Clone(f.Bytes())
	if f.damage != nil {
		data = f.damage(data)
	}
	f.open++
	return &reader{bytes.NewReader(data), f}, nil
}

func (f *memoryFile) Remove() error {
	if f.removed || f.open > 0 {
		return errors.New("the file is open, or gone")
	}
	f.removed = true
	return nil
}

type reader struct {
	*bytes.Reader
	f *memoryFile
}

func (r *reader) Close() error { r.f.open--; return nil }

// files makes files and remembers them.
type files struct {
	mu  sync.Mutex
	all []*memoryFile
}

func (fs *files) create() (File, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := new(memoryFile)
	fs.all = append(fs.all, f)
	return f, nil
}

// fill adds entries to the sorter by some goroutines, and returns them in order.
func fill(t *testing.T, s *Sorter, entries, goroutines int) (want []string) {
	random := rand.New(rand.NewPCG(1, uint64(entries)))
	parts := make([][]string, goroutines)
	for i := range entries {
		key := make([]byte, random.IntN(20))
		for j := range key {
			key[j] = byte(random.IntN(3))
		}
		entry := fmt.Sprintf("%s|%d", key, i)
		if i%100 == 0 {
			entry += strings.Repeat("x", 5000)
		}
		parts[i%goroutines] = append(parts[i%goroutines], entry)
		want = append(want, entry)
	}
	var group sync.WaitGroup
	for _, part := range parts {
		group.Go(func() {
			b := s.NewBuffer()
			for _, entry := range part {
				key, value, _ := strings.Cut(entry, "|")
				if err := b.Add([]byte(key), []byte(value)); err != nil {
					t.Errorf("add: %v", err)
				}
			}
		})
	}
	group.Wait()
	slices.Sort(want)
	return want
}

// mergeAll merges the ranges of a sorter, one after another.
func mergeAll(ctx context.Context, s *Sorter, ranges int, fn func(key, value []byte) error) error {
	all, err := s.Split(ctx, ranges, 1)
	for i := 0; i < len(all) && err == nil; i++ {
		err = all[i].Merge(ctx, fn)
	}
	return err
}

// Ensure that all entries come in the order of their keys, whatever fits into
// memory, and that no file is left.
func TestSorter_Merge(t *testing.T) {
	defer func(n int) { maxMerge = n }(maxMerge)
	for _, test := range []struct{ memory, merge, entries, fewest int }{
		{1 << 20, 64, 0, 0}, {1 << 20, 64, 1, 0}, {1 << 20, 64, 3000, 0},
		{10_000, 64, 3000, 10}, {10_000, 3, 3000, 10}, {10_000, 2, 3000, 10}, {1, 64, 50, 40},
	} {
		maxMerge = test.merge
		fs := new(files)
		s := New(test.memory, 2, fs.create)
		want := fill(t, s, test.entries, 2)
		var got []string
		last := []byte(nil)
		err := mergeAll(context.Background(), s, 5, func(key, value []byte) error {
			if bytes.Compare(key, last) < 0 {
				t.Errorf("%q comes after %q", key, last)
			}
			last = append(last[:0], key...)
			got = append(got, fmt.Sprintf("%s|%s", key, value))
			return nil
		})
		slices.Sort(got) // equal keys come in any order
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: %d entries, %v, want %d", test, len(got), err, len(want))
		}
		if len(fs.all) < test.fewest {
			t.Errorf("%+v: %d runs, want %d at least: the test does not test it", test, len(fs.all), test.fewest)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		for _, f := range fs.all {
			if !f.removed {
				t.Errorf("%+v: a file is left", test)
			}
		}
	}
}

// Ensure that there are as many ranges as are asked for, but none for few bytes of entries,
// and that no key is in two.
func TestSorter_Split(t *testing.T) {
	const entries, bytesEach = 1000, 10
	for _, test := range []struct{ memory, ranges, least, want int }{
		{1 << 20, 4, 1, 4}, {1 << 20, 1, 1, 1}, {1 << 20, 0, 1, 1}, {1 << 20, 4, 0, 4},
		{1 << 20, 4, entries * bytesEach / 4, 4}, {1 << 20, 4, entries*bytesEach/4 + 1, 3},
		{1 << 20, 4, entries*bytesEach/2 + 1, 1}, {1 << 20, 4, 1 << 30, 1},
		{5000, 4, 1, 1}, // there are runs
	} {
		s := New(test.memory, 2, new(files).create)
		var group sync.WaitGroup
		for i := range 2 {
			group.Go(func() {
				b := s.NewBuffer()
				for n := range entries / 2 {
					if err := b.Add(fmt.Appendf(nil, "key%03d", n%100), []byte{'v', byte(n), byte(i)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		all, err := s.Split(context.Background(), test.ranges, test.least)
		if err != nil || len(all) != test.want {
			t.Errorf("%+v: %d ranges, %v", test, len(all), err)
		}
		n, in := 0, make(map[string]int) // the range of a key
		for i, r := range all {
			err := r.Merge(context.Background(), func(key, _ []byte) error {
				if at, found := in[string(key)]; found && at != i {
					t.Errorf("%+v: %s is in ranges %d and %d", test, key, at, i)
				}
				in[string(key)] = i
				n++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if n != entries {
			t.Errorf("%+v: %d entries, want %d", test, n, entries)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that a run that does not hold what was written to it is damage, that an error
// of the caller ends the merge, and that a cancelled context does.
func TestSorter_Merge_Refused(t *testing.T) {
	add := func([]byte, []byte) error { return nil }
	fs := new(files)
	s := New(5000, 1, fs.create)
	fill(t, s, 1000, 1)
	run := fs.all[len(fs.all)/2]
	for name, damage := range map[string]func([]byte) []byte{
		"a bit":       func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"the length":  func(b []byte) []byte { b[0] ^= 1; return b },
		"a huge one":  func(b []byte) []byte { b[3] = 0xff; return b },
		"half of it":  func(b []byte) []byte { return b[:len(b)/2] },
		"few of it":   func(b []byte) []byte { return b[:3] },
		"nothing new": func(b []byte) []byte { return append(b, 0) },
	} {
		run.damage = damage
		if err := mergeAll(context.Background(), s, 5, add); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: %v, want %v", name, err, storage.ErrCorrupt)
		}
	}
	run.damage = nil
	refused := errors.New("refused")
	if err := mergeAll(context.Background(), s, 5, func([]byte, []byte) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v, want the caller's error", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := mergeAll(ended, s, 5, add); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
