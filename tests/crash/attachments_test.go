package crash_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// putsUntilCrash is the work of TestAttachments_Crash_AtEachSync: it reports each step that was acknowledged.
func putsUntilCrash(db *jay.DB, acknowledged func(step int)) error {
	steps := []func() error{
		func() error { return second(db.Put(ctx, "a/1", []byte(`{}`))) },
		func() error { return second(db.Put(ctx, "a/2", []byte(`{}`))) },
		func() error { return putContent(db, "a/1", "x", 1, 395) }, // of 40 chunks
		func() error { return putContent(db, "a/2", "x", 1, 395) }, // once more
		func() error { return putContent(db, "a/2", "y", 2, 10) },  // of one
		func() error { return db.Attachments("a/1").Delete(ctx, "x") },
		func() error { return db.Attachments("a/2").Move(ctx, "y", "a/1", "z") },
		func() error { return db.Delete(ctx, "a/2") }, // its last reference
		func() error { return checks.RemoveContents(db) },
		func() error { return putContent(db, "a/1", "x", 1, 395) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		acknowledged(i)
	}
	return nil
}

func putContent(db *jay.DB, id, name string, seed uint64, size int) error {
	// Chunks reach the disk in the middle of an upload, under relaxed durability too.
	r := &jaytest.HookReader{R: bytes.NewReader(jaytest.RandomBytes(seed, size)), After: size / 2, Do: func() {
		if size > 100 {
			_ = db.Flush(ctx) // the put says whether the disk has failed
		}
	}}
	return second(db.Attachments(id).Put(ctx, name, r))
}

// attachmentsAfter is what there is after so many steps of putsUntilCrash: the
// documents with the names and sizes of their attachments.
var attachmentsAfter = []string{
	"", "a/1:", "a/1: a/2:", "a/1: x395 a/2:", "a/1: x395 a/2: x395", "a/1: x395 a/2: x395 y10", "a/1: a/2: x395 y10", "a/1: z10 a/2: x395", "a/1: z10", "a/1: z10", "a/1: x395 z10",
}

// attachmentsNow describes all documents and their attachments, and reads each.
func attachmentsNow(t *testing.T, db *jay.DB) string {
	t.Helper()
	var out []string
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		out = append(out, doc.ID()+":")
		for _, a := range doc.Metadata().Attachments {
			got, err := jaytest.Attached(t, db.Attachments(doc.ID()), a.Name)
			must(t, err)
			seed := uint64(1)
			if a.Size == 10 {
				seed = 2
			}
			if !bytes.Equal(got, jaytest.RandomBytes(seed, int(a.Size))) {
				t.Errorf("%s of %s has other bytes", a.Name, doc.ID())
			}
			out = append(out, fmt.Sprintf("%s%d", a.Name, a.Size))
		}
	}
	return strings.Join(out, " ")
}

// Ensure that after a loss of power at each sync of the log, whatever part of the
// unsynced data survives, each attachment that was acknowledged is there, whole, and
// those that were not are whole or not there at all; that references are counted
// right; and that the chunks without one are removed.
func TestAttachments_Crash_AtEachSync(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChunkBytes(10)()
	defer checks.KeepChunks()() // but for what the steps remove
	today := sample.Of(t, 4)
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		for _, percent := range []int{0, 50, 100} {
			orphans := 0
			for at := 0; ; at++ {
				if !today.Has(at) {
					continue
				}
				disk := storagetest.NewDisk()
				random := rand.New(rand.NewPCG(uint64(at), uint64(percent)))
				db := onDisk(t, disk, jay.Options{Durability: durability})
				var mu sync.Mutex
				var crashed *storagetest.Disk
				done, then, syncs := 0, 0, 0
				disk.OnSync(func() {
					mu.Lock()
					defer mu.Unlock()
					if syncs++; syncs == at+1 {
						crashed, then = disk.Crash(percent, random), done
					}
				})
				must(t, putsUntilCrash(db, func(step int) { mu.Lock(); done = step + 1; mu.Unlock() }))
				closeDB(t, db)
				disk.OnSync(func() {})
				if crashed == nil {
					break // beyond the last sync
				}

				name := fmt.Sprintf("durability %d, %d%% kept, crash at sync %d, after step %d", durability, percent, at, then)
				db = onDisk(t, crashed, jay.Options{Durability: durability})
				if err := checks.Contents(db); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if jaytest.AttachmentCounts(t, db).Removing > 0 || uploads(t, db) > 0 {
					orphans++
				}
				got, found := attachmentsNow(t, db), false
				for i, want := range attachmentsAfter {
					// What was acknowledged is there, under synced durability; of what was not, the next steps may be.
					found = found || got == want && (i >= then || durability == jay.Relaxed)
				}
				if !found {
					t.Fatalf("%s: got %q, want at least %q", name, got, attachmentsAfter[then])
				}
				jaytest.CheckContents(t, db)
				chunks := 0
				for _, size := range sizesOf(got) {
					chunks += (size + 9) / 10
				}
				equal(t, jaytest.ChunkKeys(t, db), chunks)
				closeDB(t, db)
			}
			t.Logf("durability %d, %d%% kept: %d crashes left chunks without a reference", durability, percent, orphans)
			if orphans == 0 && percent == 100 && !testing.Short() { // few syncs leave some
				t.Error("no crash left a chunk without a reference: the test does not test it")
			}
		}
	}
}

// sizesOf returns the sizes of the different contents in a description of
// attachmentsNow.
func sizesOf(description string) (sizes []int) {
	for _, size := range []int{395, 10} {
		if strings.Contains(description, fmt.Sprint(size)) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// Ensure that after random losses of power, with several writers and removals under
// way, contents, references and chunks fit.
func TestAttachments_Crash_Concurrent(t *testing.T) {
	defer checks.SetChunkBytes(20)()
	disk := storagetest.NewDisk()
	more := jaytest.Patience()
	interrupted := 0
	for round := 0; round < 12 || more(interrupted > 0); round++ {
		db := onDisk(t, disk, jay.Options{Durability: jay.Durability(round % 2)})
		interrupted += uploads(t, db)
		if err := checks.Contents(db); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for doc, err := range db.Documents(ctx, jay.Scan{}) {
			must(t, err)
			for _, a := range doc.Metadata().Attachments {
				if got, err := jaytest.Attached(t, db.Attachments(doc.ID()), a.Name); err != nil || int64(len(got)) != a.Size {
					t.Fatalf("round %d: %s of %s: %v", round, a.Name, doc.ID(), err)
				}
			}
		}
		disk = attachUntilCrash(t, db, disk, uint64(round))
	}
	db := onDisk(t, disk, jay.Options{})
	jaytest.CheckContents(t, db)
	closeDB(t, db)
}

// attachUntilCrash puts and deletes until the power goes, and returns the disk as it is
// found then.
func attachUntilCrash(t *testing.T, db *jay.DB, disk *storagetest.Disk, seed uint64) *storagetest.Disk {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 3))
	var mu sync.Mutex
	var crashed *storagetest.Disk
	left, percent := 5+random.IntN(40), random.IntN(101)
	disk.OnSync(func() {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == -1 {
			crashed = disk.Crash(percent, random)
		}
	})
	gone := func() bool { mu.Lock(); defer mu.Unlock(); return crashed != nil }
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			for !gone() {
				id := fmt.Sprint("a/", random.IntN(3))
				var err error
				switch random.IntN(6) {
				case 0:
					_, err = db.Put(ctx, id, []byte(`{}`))
				case 1:
					err = db.Attachments(id).Delete(ctx, "x")
				case 2:
					err = db.Delete(ctx, id)
				case 3:
					err = db.Flush(ctx)
				default:
					err = putContent(db, id, "x", uint64(random.IntN(3)), 15+20*random.IntN(5))
				}
				if err != nil && !errors.Is(err, jay.ErrNotFound) {
					t.Errorf("a write: %v", err)
					return
				}
			}
		})
	}
	writers.Wait()
	disk.OnSync(func() {})
	closeDB(t, db)
	return crashed
}

// Ensure that a put whose commit the disk refuses stores nothing or all, that readers
// see what is on disk, and that the next Open removes what is left.
func TestAttachments_DiskFails(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	failed := 0
	for n := range 12 {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		put(t, db, "a/1", `{}`)
		jaytest.Attach(t, db, "a/1", "old", jaytest.RandomBytes(1, 35))
		disk.FailAfter(n % 4)
		begun := 0
		for err := error(nil); err == nil && begun < 10; begun++ {
			err = putContent(db, "a/1", fmt.Sprint("new", begun), uint64(begun), 5+n*7)
			if err != nil {
				failed++
				if !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed) {
					t.Errorf("the disk fails: %v", err)
				}
			}
		}
		if got, err := jaytest.Attached(t, db.Attachments("a/1"), "old"); err != nil && !errors.Is(err, jay.ErrUnknownOutcome) || err == nil && !bytes.Equal(got, jaytest.RandomBytes(1, 35)) {
			t.Errorf("a read on a database that has failed: %v", err)
		}
		_ = db.Close() // says that the disk failed
		disk.Heal()
		db = onDisk(t, disk.Crash(50, rand.New(rand.NewPCG(uint64(n), 1))), jay.Options{})
		list, err := db.Attachments("a/1").List(ctx)
		must(t, err)
		if len(list) < begun { // old, and all but the last of the new ones
			t.Errorf("%d of %d puts: %v", begun, n, list)
		}
		for _, a := range list {
			if got, err := jaytest.Attached(t, db.Attachments("a/1"), a.Name); err != nil || hashOf(got) != a.Hash {
				t.Errorf("%s: %v", a.Name, err)
			}
		}
		jaytest.CheckContents(t, db)
		closeDB(t, db)
	}
	if failed == 0 {
		t.Error("no put failed: the test does not test it")
	}
}

// uploads returns how many uploads are in progress, or were broken off.
func uploads(t testing.TB, db *jay.DB) int {
	t.Helper()
	n, err := checks.Uploads(db)
	must(t, err)
	return n
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.StdEncoding.EncodeToString(sum[:])
}
