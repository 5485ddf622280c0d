package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// replica is what a reader makes of the changes. It checks that etags rise, and that one
// etag has one content.
type replica struct {
	t       testing.TB
	token   string
	etag    uint64
	bodies  map[string]string // by folded ID
	etags   map[string]uint64
	content map[uint64]string // by etag; shared by all that read one history
}

func newReplica(t testing.TB, content map[uint64]string) *replica {
	return &replica{t: t, bodies: make(map[string]string), etags: make(map[string]uint64), content: content}
}

func (r *replica) apply(c jay.Change) {
	r.t.Helper()
	if c.Etag <= r.etag {
		r.t.Errorf("etag %d of %s comes after %d", c.Etag, c.ID, r.etag)
	}
	id := strings.ToLower(c.ID)
	text := id
	r.etag, r.token = c.Etag, c.Token()
	if c.Deleted {
		delete(r.bodies, id)
		delete(r.etags, id)
		text += " deleted"
	} else {
		r.bodies[id], r.etags[id] = string(c.Document.Body()), c.Etag
		text += " " + r.bodies[id]
	}
	if before, found := r.content[c.Etag]; found && before != text {
		r.t.Errorf("etag %d is %q, and was %q", c.Etag, text, before)
	}
	r.content[c.Etag] = text
}

// same compares the replica with the documents.
func (r *replica) same(db *jay.DB) {
	r.t.Helper()
	n := 0
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(r.t, err)
		id := strings.ToLower(doc.ID())
		if n++; r.bodies[id] != string(doc.Body()) || r.etags[id] != doc.Metadata().Etag {
			r.t.Errorf("%s is %s at %d, and the reader has %q at %d", id, doc.Body(), doc.Metadata().Etag, r.bodies[id], r.etags[id])
		}
	}
	equal(r.t, len(r.bodies), n)
}

// Ensure that after a loss of power, at any sync of the log and whatever part of the
// unsynced data survives, all that feeds have shown is there, and that a reader that
// goes on behind its last token comes to hold what the database holds.
func TestChanges_Crash_AtAnySync(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced data kept", percent), func(t *testing.T) {
			today := sample.Of(t, 4)
			random := rand.New(rand.NewPCG(16+today.Seed(), uint64(percent)))
			disk := storagetest.NewDisk()
			content := make(map[uint64]string)
			seen := newReplica(t, content)
			shown := 0
			for round := range today.Rounds(25) {
				db := onDisk(t, disk, jay.Options{})
				var mu sync.Mutex
				var crashed *storagetest.Disk
				var justBefore []jay.Change
				// Every second round goes on until the reader was shown something.
				left, before, more := random.IntN(40), shown, jaytest.Patience()
				disk.OnSync(func() {
					mu.Lock()
					defer mu.Unlock()
					if left--; left < 0 && crashed == nil && !more(round%2 == 0 || shown > before) {
						// A commit is in the engine, and not on disk.
						justBefore = changed(t, db, "", jay.WithDocuments())
						crashed = disk.Crash(percent, random)
					}
				})
				gone := func() bool { mu.Lock(); defer mu.Unlock(); return crashed != nil }

				var reader sync.WaitGroup
				reading, stop := context.WithCancel(ctx)
				reader.Go(func() {
					for c, err := range db.Changes(reading, seen.token, jay.WithDocuments()) {
						if err != nil {
							if !errors.Is(err, context.Canceled) {
								t.Errorf("round %d: %v", round, err)
							}
							return
						}
						mu.Lock()
						// What is shown after the power went is of a world that is gone.
						if crashed == nil {
							seen.apply(c)
							shown++
						}
						mu.Unlock()
					}
				})
				var writers sync.WaitGroup
				for w := range 4 {
					random := rand.New(rand.NewPCG(uint64(round), uint64(w)))
					writers.Go(func() {
						for i := 0; !gone() && !t.Failed(); i++ {
							id := fmt.Sprint("docs/", random.IntN(30))
							if random.IntN(4) == 0 {
								must(t, db.Delete(ctx, id))
							} else {
								put(t, db, id, fmt.Sprintf(`{"round":%d,"writer":%d,"i":%d}`, round, w, i))
							}
						}
					})
				}
				writers.Wait()
				stop()
				reader.Wait()
				disk.OnSync(func() {})
				closeDB(t, db)
				if disk = crashed; t.Failed() {
					t.Fatalf("round %d", round)
				}

				db = onDisk(t, disk, jay.Options{})
				newest := make(map[string]jay.Change)
				for _, c := range changed(t, db, "", jay.WithDocuments()) {
					newest[strings.ToLower(c.ID)] = c
				}
				for _, c := range justBefore {
					if now := newest[c.ID]; now.Etag < c.Etag || now.Etag == c.Etag && jaytest.ChangesText([]jay.Change{c}) != jaytest.ChangesText([]jay.Change{now}) {
						t.Errorf("a feed showed %s before the crash, and there is %s", jaytest.ChangesText([]jay.Change{c}), jaytest.ChangesText([]jay.Change{now}))
					}
				}
				for c, err := range db.Changes(ctx, seen.token, jay.WithDocuments(), jay.UntilCaughtUp()) {
					must(t, err)
					seen.apply(c)
				}
				seen.same(db)
				closeDB(t, db)
				if t.Failed() {
					t.Fatalf("round %d", round)
				}
			}
			t.Logf("%d changes shown while writers wrote", shown)
			if shown == 0 {
				t.Error("the feeds showed nothing while writers wrote: the test does not test them")
			}
		})
	}
}

// Ensure that readers that come and go while writers write see the last state of each
// document, in order, and nothing that was not written; that one that slept for the whole
// time catches up; and that workers of a subscription, who come and go too, are sent
// nothing twice, deletions included, and each last state.
func TestChanges_WritersAndReaders(t *testing.T) {
	length := 300 // writes of each writer
	if testing.Short() {
		length = 60
	}
	more := func(i int) bool { return i < length }
	if text := os.Getenv("JAY_FEEDS"); text != "" {
		d, err := time.ParseDuration(text)
		must(t, err)
		end := time.Now().Add(d)
		more = func(int) bool { return time.Now().Before(end) }
	}
	db := open(t, filepath.Join(t.TempDir(), "db"), nil)
	defer closeDB(t, db)
	put(t, db, "first", `{}`)
	var readers sync.WaitGroup
	next, leave := iter.Pull2(db.Changes(ctx, "", jay.WithDocuments()))
	defer leave()
	first, err, _ := next() // and sleeps
	must(t, err)

	must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "all", Query: "from @all_docs", Deletions: true, Since: jay.SinceNow}))
	sent := make(map[uint64]string) // by etag
	working, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { workInTurns(t, db, working, stop, sent) })
	}

	replicas := make([]*replica, 8)
	for i := range replicas {
		r := newReplica(t, make(map[uint64]string))
		replicas[i] = r
		readers.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			for last := false; !last; {
				left := 1 + random.IntN(500) // changes until it comes again
				for c, err := range db.Changes(ctx, r.token, jay.WithDocuments()) {
					if err != nil {
						t.Errorf("reader %d: %v", i, err)
						return
					}
					r.apply(c)
					if last = c.ID == "last"; last {
						return
					}
					if left--; left == 0 {
						break
					}
				}
			}
		})
	}
	var written sync.Map // what each etag is of, as a replica has it
	concurrently(t, func(g int, random *rand.Rand) {
		for i := 0; more(i) && !t.Failed(); i++ {
			var b jay.Batch
			var texts []string
			writes := 1
			if random.IntN(6) == 0 {
				writes = random.IntN(20)
			}
			for range writes {
				id, body := fmt.Sprint("docs/", random.IntN(100)), fmt.Sprintf(`{"g":%d,"i":%d}`, g, i)
				if random.IntN(6) == 0 {
					b.Delete(id)
					texts = append(texts, id+" deleted")
				} else {
					b.Put(id, []byte(body))
					texts = append(texts, id+" "+body)
				}
			}
			metas, err := db.Apply(ctx, &b)
			if err != nil {
				t.Error(err)
			}
			for i, m := range metas {
				if m.Etag > 0 { // else there was nothing to delete
					written.Store(m.Etag, texts[i])
				}
			}
		}
	})
	written.Store(put(t, db, "last", `{}`).Etag, "last {}")
	jaytest.Await(t, "the readers", jaytest.Finished(&readers))
	jaytest.Await(t, "the workers", jaytest.Finished(&workers))
	wasWritten := func(who string, content map[uint64]string) {
		for etag, text := range content {
			if want, _ := written.Load(etag); text != want && text != "first {}" {
				t.Errorf("%s has seen %q at %d, and %v was written", who, text, etag, want)
			}
		}
	}
	for i, r := range replicas {
		r.same(db)
		wasWritten(fmt.Sprint("reader ", i), r.content)
	}
	wasWritten("the subscription", sent)
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		if sent[doc.Metadata().Etag] == "" && doc.ID() != "first" {
			t.Errorf("%s at %d was never sent", doc.ID(), doc.Metadata().Etag)
		}
	}
	r := newReplica(t, make(map[uint64]string))
	r.apply(first)
	for c := first; c.ID != "last"; {
		if c, err, _ = next(); err != nil {
			t.Fatal(err)
		}
		r.apply(c)
	}
	r.same(db)
}

// workInTurns works on the subscription "all" until the document "last" was sent, a few
// batches at a time, as others do, and notes what it is sent. All batches are acknowledged, so
// that nothing may come twice.
func workInTurns(t *testing.T, db *jay.DB, working context.Context, stop func(), sent map[uint64]string) {
	for working.Err() == nil && !t.Failed() {
		leaving, leave := context.WithCancel(working)
		left := 5
		err := db.Subscriptions().Work(leaving, "all", nil, func(_ context.Context, b *jay.SubscriptionBatch) error {
			for _, item := range b.Items { // one worker at a time: sent is its own
				if before, twice := sent[item.Etag]; twice {
					t.Errorf("%s at %d was acknowledged, and comes again", before, item.Etag)
				}
				text := item.ID + " deleted"
				if !item.Deleted {
					text = item.ID + " " + string(item.Body)
				}
				if sent[item.Etag] = text; item.ID == "last" {
					stop()
				}
			}
			if left--; left == 0 {
				leave() // the batch is acknowledged all the same
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		leave()
	}
}
