package crash_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// diary is what a writer has done to one document, in order: its bodies, "-" for a
// deletion.
type diary struct {
	did   []string
	acked int // how many of them were acknowledged
	cut   int // acknowledged when the power went
}

// Ensure that a loss of power at any sync, whatever part of the unsynced data survives,
// leaves of each document the versions that were acknowledged and perhaps those after
// them, in order: a revision is there if and only if its version was committed.
func TestRevisions_Crash_AtAnySync(t *testing.T) {
	today := sample.Of(t, 4)
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced data kept", percent), func(t *testing.T) {
			t.Parallel()
			for round := range 12 {
				if !today.Has(round) {
					continue
				}
				random := rand.New(rand.NewPCG(uint64(round), uint64(percent)))
				disk := storagetest.NewDisk()
				db := onDisk(t, disk, jay.Options{})
				jaytest.KeepRevisions(t, db, jay.RevisionRule{})
				diaries := make([]*diary, 3)
				for i := range diaries {
					diaries[i] = new(diary)
				}
				var mu sync.Mutex // guards the diaries and what follows
				var crashed *storagetest.Disk
				left := 1 + random.IntN(60)
				disk.OnSync(func() {
					mu.Lock()
					defer mu.Unlock()
					if left--; left == -1 {
						for _, d := range diaries {
							d.cut = d.acked
						}
						crashed = disk.Crash(percent, random)
					}
				})
				var writers sync.WaitGroup
				for i, d := range diaries {
					writers.Go(func() {
						random := rand.New(rand.NewPCG(uint64(round), uint64(i)))
						for n := 0; !t.Failed(); n++ {
							mu.Lock()
							gone := crashed != nil
							if !gone {
								d.did = append(d.did, diaryEntry(random, d.did, n)...)
							}
							mu.Unlock()
							if gone {
								return
							}
							if err := writeDiary(db, i, d, n); err != nil {
								t.Errorf("write %d: %v", n, err)
							}
							mu.Lock()
							d.acked = len(d.did)
							mu.Unlock()
						}
					})
				}
				writers.Wait()
				disk.OnSync(func() {})
				closeDB(t, db)

				db = onDisk(t, crashed, jay.Options{})
				if err := checks.Revisions(db); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				for i, d := range diaries {
					d.check(t, db, fmt.Sprint("docs/", i))
				}
				closeDB(t, db)
			}
		})
	}
}

// diaryEntry returns what the next write of a document does: one thing, or two in a
// batch.
func diaryEntry(random *rand.Rand, did []string, n int) []string {
	if len(did) > 0 && did[len(did)-1] != "-" && random.IntN(5) == 0 {
		return []string{"-"}
	}
	next := []string{fmt.Sprintf(`{"n":%d}`, n)}
	if random.IntN(3) == 0 {
		next = append(next, fmt.Sprintf(`{"n":%d,"again":true}`, n))
	}
	return next
}

func writeDiary(db *jay.DB, i int, d *diary, n int) error {
	id := fmt.Sprint("docs/", i)
	var b jay.Batch
	for _, what := range d.did[d.acked:] {
		if what == "-" {
			b.Delete(id)
		} else {
			b.Put(id, []byte(what))
		}
	}
	_, err := db.Apply(ctx, &b)
	return err
}

// check compares the revisions of the document with the diary.
func (d *diary) check(t *testing.T, db *jay.DB, id string) {
	t.Helper()
	got := strings.Fields(jaytest.RevisionBodies(t, db, id, jay.RevisionPage{}))
	if len(got) < d.cut || len(got) > len(d.did) {
		t.Fatalf("%s has %d versions, %d were acknowledged and %d begun", id, len(got), d.cut, len(d.did))
	}
	for i, version := range got {
		if want := d.did[len(got)-1-i]; version != want {
			t.Fatalf("%s: version %d is %s, want %s", id, len(got)-1-i, version, want)
		}
	}
}

// Ensure that a purge which the power cuts at any of its syncs has removed the oldest
// revisions of some documents and nothing else, and that another purge finishes it.
func TestRevisions_Crash_InPurge(t *testing.T) {
	defer checks.SetPurgeSteps(50, 2, 3)()
	today := sample.Of(t, 3)
	const documents, versions = 36, 10 // enough steps for six syncs, of 16 steps each
	for _, percent := range []int{0, 50, 100} {
		cuts := 0
		for cut := 0; ; cut++ {
			if !today.Has(cut) {
				continue
			}
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
			jaytest.KeepRevisions(t, db, jay.RevisionRule{})
			var b jay.Batch
			for v := range versions {
				for i := range documents {
					b.Put(fmt.Sprint("docs/", i), []byte(fmt.Sprintf(`{"n":%d}`, v)))
				}
			}
			for i := range documents / 2 {
				b.Delete(fmt.Sprint("docs/", i))
			}
			_, err := db.Apply(ctx, &b)
			must(t, err)
			closeDB(t, db)

			db = onDisk(t, disk, jay.Options{})
			jaytest.KeepRevisions(t, db, jay.RevisionRule{Keep: 2})
			var left atomic.Int64
			left.Store(int64(cut))
			var crashed atomic.Pointer[storagetest.Disk]
			random := rand.New(rand.NewPCG(uint64(cut), uint64(percent)))
			disk.OnSync(func() {
				if left.Add(-1) == -1 {
					crashed.Store(disk.Crash(percent, random))
				}
			})
			done, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true})
			must(t, err)
			disk.OnSync(func() {})
			equal(t, done.Revisions, documents*(versions-2))
			closeDB(t, db)
			if crashed.Load() == nil {
				break
			}
			cuts++

			db = onDisk(t, crashed.Load(), jay.Options{})
			must(t, checks.Revisions(db))
			kept := 0
			for i := range documents {
				got := strings.Fields(jaytest.RevisionBodies(t, db, fmt.Sprint("docs/", i), jay.RevisionPage{}))
				kept += len(got)
				newest := versions - 1
				if i < documents/2 {
					equal(t, got[0], "-")
					got = got[1:]
				}
				if len(got) < 2 {
					t.Fatalf("docs/%d has %d versions", i, len(got))
				}
				for j, version := range got {
					equal(t, version, fmt.Sprintf(`{"n":%d}`, newest-j))
				}
			}
			again, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true})
			must(t, err)
			equal(t, int(again.Revisions), kept-2*documents-documents/2)
			must(t, checks.Revisions(db))
			closeDB(t, db)
		}
		if cuts == 0 || cuts < 5 && !testing.Short() {
			t.Errorf("the purge was cut %d times: the test does not test it", cuts)
		}
	}
}

// Ensure that writes follow a configuration from when Configure has returned, while
// writers run: what was begun under a rule and ended under it is kept.
func TestRevisions_Configure_WhileWriting(t *testing.T) {
	db := memory(t, nil)
	var on atomic.Int64 // odd while a rule is there
	var writers sync.WaitGroup
	type kept struct{ id, vector string }
	all := make([][]kept, 4)
	wrote, stop := make(chan struct{}), make(chan struct{})
	for w := range all {
		writers.Go(func() {
			id := fmt.Sprint("docs/", w)
			for n := 0; ; n++ {
				before := on.Load()
				m, err := db.Put(ctx, id, []byte(fmt.Sprintf(`{"n":%d}`, n)))
				if err != nil {
					t.Error(err)
				}
				if before%2 == 1 && on.Load() == before {
					all[w] = append(all[w], kept{id, m.ChangeVector})
				}
				select {
				case wrote <- struct{}{}:
				case <-stop:
					return
				}
			}
		})
	}
	for change := range 40 {
		for range 10 { // of which those of a writer after its first began under this configuration
			<-wrote
		}
		if change%2 == 0 {
			jaytest.KeepRevisions(t, db, jay.RevisionRule{})
			on.Add(1)
		} else {
			on.Add(1)
			must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{}))
		}
	}
	close(stop)
	writers.Wait()
	n := 0
	for _, some := range all {
		for _, k := range some {
			if _, err := db.Revisions().Get(ctx, k.id, k.vector); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("nothing was written under a rule")
	}
	must(t, checks.Revisions(db))
}
