package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that after a loss of power at any sync, no batch comes again that was
// acknowledged before it, every document's last state and every deletion is sent, and what was not
// acknowledged comes again; and that no document comes twice in one version to workers that
// acknowledge, but over a crash.
func TestSubscription_Crash_AtAnySync(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced data kept", percent), func(t *testing.T) {
			today := sample.Of(t, 4)
			random := rand.New(rand.NewPCG(31+today.Seed(), uint64(percent)))
			disk := storagetest.NewDisk()
			acknowledged := make(map[uint64]string) // by etag
			again := 0
			sub := jay.Subscription{Name: "all", Query: "from @all_docs where n >= 0", MaxFailures: 1000, Deletions: percent > 0}
			more := jaytest.Patience()
			for round := 0; round < today.Rounds(20) || more(again > 0 && len(acknowledged) > 0); round++ {
				db := onDisk(t, disk, jay.Options{})
				subscribed(t, db, sub)
				var mu sync.Mutex
				var crashed *storagetest.Disk
				left := 2 + random.IntN(40)
				disk.OnSync(func() {
					mu.Lock()
					defer mu.Unlock()
					if left--; left == -1 {
						crashed = disk.Crash(percent, random)
					}
				})
				gone := func() bool { mu.Lock(); defer mu.Unlock(); return crashed != nil }

				working, stop := context.WithCancel(ctx)
				var worker, writers sync.WaitGroup
				var pending []jay.SubscriptionItem // of a batch whose acknowledgement is under way
				worker.Go(func() {
					note := func() {
						mu.Lock()
						defer mu.Unlock()
						if crashed != nil {
							return
						}
						for _, item := range pending {
							acknowledged[item.Etag] = item.ID
						}
						pending = nil
					}
					seen := make(map[uint64]bool)
					random := rand.New(rand.NewPCG(uint64(round), 99))
					err := db.Subscriptions().Work(working, "all", &jay.WorkOptions{BatchDocuments: 5}, func(_ context.Context, b *jay.SubscriptionBatch) error {
						note() // the batch before: its acknowledgement has returned
						for _, item := range b.Items {
							if seen[item.Etag] && item.Failures == 0 {
								t.Errorf("%s at %d came twice to one worker", item.ID, item.Etag)
							}
							seen[item.Etag] = true
							mu.Lock()
							if id, done := acknowledged[item.Etag]; done && crashed == nil {
								t.Errorf("round %d: %s at %d came again, and was acknowledged as %s", round, item.ID, item.Etag, id)
							}
							mu.Unlock()
							if random.IntN(10) == 0 {
								must(t, b.Fail(item.ID, errors.New("by chance")))
								again++
								continue
							}
							if !gone() { // else it was sent in a world that is gone
								pending = append(pending, item)
							}
						}
						return nil
					})
					if !errors.Is(err, context.Canceled) {
						t.Errorf("round %d: %v", round, err)
					}
				})
				for w := range 3 {
					random := rand.New(rand.NewPCG(uint64(round), uint64(w)))
					writers.Go(func() {
						for i := 0; !gone() && !t.Failed(); i++ {
							id := fmt.Sprint("docs/", random.IntN(30))
							if random.IntN(6) == 0 {
								must(t, db.Delete(ctx, id))
							} else {
								put(t, db, id, fmt.Sprintf(`{"n":%d}`, i))
							}
						}
					})
				}
				writers.Wait()
				stop()
				worker.Wait()
				disk.OnSync(func() {})
				closeDB(t, db)
				if disk = crashed; t.Failed() {
					t.Fatalf("round %d", round)
				}

				// The next worker is sent the rest, and nothing that is done.
				db = onDisk(t, disk, jay.Options{})
				subscribed(t, db, sub)
				must(t, db.Subscriptions().Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
					for _, item := range b.Items {
						if id, done := acknowledged[item.Etag]; done {
							t.Errorf("round %d: %s at %d came after the crash, and was acknowledged as %s", round, item.ID, item.Etag, id)
						}
						acknowledged[item.Etag] = item.ID
					}
					return nil
				}))
				newest := make(map[string]jay.Change) // an older deletion that has failed is not sent again
				for _, c := range changed(t, db, "") {
					newest[c.ID] = c
				}
				for _, c := range newest {
					if c.Deleted && !sub.Deletions {
						continue
					}
					inDoubt := slices.ContainsFunc(pending, func(i jay.SubscriptionItem) bool { return i.Etag == c.Etag })
					if acknowledged[c.Etag] == "" && inDoubt {
						acknowledged[c.Etag] = c.ID // sent, and acknowledged before the crash
					}
					if acknowledged[c.Etag] == "" {
						t.Errorf("round %d: %s at %d, deleted %t, was never sent", round, c.ID, c.Etag, c.Deleted)
					}
				}
				closeDB(t, db)
				if t.Failed() {
					t.Fatalf("round %d", round)
				}
			}
			t.Logf("%d documents acknowledged, %d failed by chance", len(acknowledged), again)
			if again == 0 || len(acknowledged) == 0 {
				t.Error("nothing was sent while writers wrote: the test does not test it")
			}
		})
	}
}

func subscribed(t testing.TB, db *jay.DB, sub jay.Subscription) {
	t.Helper()
	sub.RetryDelay = 1
	must(t, db.Subscriptions().Ensure(ctx, sub))
}
