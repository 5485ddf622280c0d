package enginetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jaydb/jay/storage"
)

// allKeys returns everything that r has.
func allKeys(t *testing.T, r storage.Reader) map[string]string {
	t.Helper()
	it, err := r.Iterate(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	all := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
	return all
}

// What a watcher of commits sees, on top of the snapshot that it began with, is the store after each commit, while
// several goroutines write: numbers that are added to, deletions, and commits larger than the engine's memory included.
func testWatchCommits(t *testing.T, e storage.Engine) {
	w, ok := e.(storage.CommitWatcher)
	if !ok {
		t.Skip("the engine shows no commits, and need not")
	}
	set(t, e, "k1", "old", "gone", "old")
	update(t, e, func(tx storage.Tx) error { tx.Add([]byte("n"), 5); return nil })

	random := rand.New(rand.NewPCG(1, 2))
	var writers sync.WaitGroup
	begin := make(chan struct{})
	for i := range 4 {
		seed := random.Uint64()
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 0))
			for n := range 200 {
				if n == 20 && i == 0 {
					close(begin)
				}
				err := e.Update(ctx, n%3 == 0, func(tx storage.Tx) error {
					for range 1 + random.IntN(8) {
						key := fmt.Append(nil, "k", random.IntN(60))
						if random.IntN(3) == 0 {
							tx.Delete(key)
						} else {
							tx.Set(key, fmt.Append(nil, i, n), make([]byte, random.IntN(100)))
						}
					}
					tx.Add([]byte("n"), int64(random.IntN(7)-3), 1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}

	<-begin
	type seen struct {
		number uint64
		writes []storage.Write
	}
	var commits []seen
	before, first, err := w.WatchCommits(ctx, func(c storage.Commit) {
		s := seen{number: c.Number}
		for one := range c.Writes {
			s.writes = append(s.writes, storage.Write{Key: append([]byte{}, one.Key...), Value: append([]byte{}, one.Value...), Deleted: one.Deleted})
		}
		if c.Ingested {
			t.Error("a commit took in tables")
		}
		commits = append(commits, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	copied := allKeys(t, before)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	update(t, e, func(tx storage.Tx) error {
		tx.Set([]byte("large"), make([]byte, 9<<20), nil)
		tx.Delete([]byte("gone"))
		return nil
	})
	for i, c := range commits {
		if c.number != first+uint64(i)+1 {
			t.Fatalf("commit %d has the number %d, and the snapshot has %d", i, c.number, first)
		}
		for _, one := range c.writes {
			if one.Deleted {
				delete(copied, string(one.Key))
			} else {
				copied[string(one.Key)] = string(one.Value)
			}
		}
	}
	if len(commits) == 0 || !maps.Equal(copied, allKeys(t, e)) {
		t.Errorf("after %d commits the copy differs from the store", len(commits))
	}
	want(t, w.DurableCommit(), commits[len(commits)-1].number)

	// A later watcher takes the place of this one, and sees that tables were taken in.
	var numbers []uint64
	later, second, err := w.WatchCommits(ctx, func(c storage.Commit) {
		for range c.Writes {
			t.Error("the writes of tables are not shown")
		}
		if c.Ingested {
			numbers = append(numbers, c.Number)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
	in := ingester(t, e)
	known := len(commits)
	if err := in.Ingest(ctx, []storage.Table{table(t, in, false, "a", "1")}, nil); err != nil {
		t.Fatal(err)
	}
	if len(numbers) != 1 || numbers[0] != second+1 || len(commits) != known {
		t.Errorf("after %d: got the numbers %d, and %d commits", second, numbers, len(commits)-known)
	}
}

// A table can delete keys, whether or not they are there.
func testIngestDeletes(t *testing.T, e storage.Engine) {
	in := ingester(t, e)
	set(t, e, "a", "1", "c", "1", "e", "1")
	w, err := in.NewTable(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Delete([]byte("a")), w.Set([]byte("b"), []byte("2")), w.Delete([]byte("c")), w.Delete([]byte("d"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Ingest(ctx, []storage.Table{made}, nil); err != nil {
		t.Fatal(err)
	}
	want(t, keys(t, e, "", "z"), "b e")
	want(t, read(t, e, "a"), "absent")
	set(t, e, "a", "3")
	want(t, keys(t, e, "", "z"), "a b e")
}
