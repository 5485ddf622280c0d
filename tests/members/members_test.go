package members_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage/storagetest"
)

func init() {
	knobs.ClusterStill = true // hearts beat when a test says so
	knobs.ClusterPatience = time.Second
	knobs.ClusterPause = 5 * time.Millisecond
}

// inCluster returns the options of a node.
func inCluster(c cluster.Coordinator, tag string) *jay.Options {
	return &jay.Options{Cluster: c, NodeTag: tag, ClusterPeriod: 100 * time.Millisecond}
}

// members opens databases in memory, with the tags A, B, …
func members(t testing.TB, n int) (*clustertest.Memory, []*jay.DB, []*clustertest.Client) {
	t.Helper()
	m := clustertest.NewMemory()
	var nodes []*jay.DB
	var clients []*clustertest.Client
	for i := range n {
		c := m.Connect()
		clients = append(clients, c)
		nodes = append(nodes, memory(t, inCluster(c, string(rune('A'+i)))))
	}
	return m, nodes, clients
}

// cutOff makes a call with a context that ends soon, which must return what a call without a majority
// does. If the context ends before the call asks for a majority, as on a busy machine, there is only
// the context's error: then the call is made again with more time.
func cutOff(t testing.TB, what string, call func(ctx context.Context) error) {
	t.Helper()
	for limit := 300 * time.Millisecond; ; limit *= 2 {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := call(limited)
		cancel()
		if early := errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, jay.ErrNoMajority); early && limit < jaytest.HangGuard {
			continue
		}
		noMajority(t, what, err, context.DeadlineExceeded)
		return
	}
}

// noMajority checks that err is what a call without a majority returns whose context has ended.
func noMajority(t testing.TB, what string, err, ended error) {
	t.Helper()
	if !errors.Is(err, jay.ErrNoMajority) || !errors.Is(err, ended) {
		t.Errorf("%s without a majority: got %v, want ErrNoMajority and %v", what, err, ended)
	}
	if errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("%s without a majority: got %v, but nothing was written", what, err)
	}
}

// Ensure that the table of what a partition stops holds row by row: a node that is cut
// off makes semantic, GUID, server-side and HiLo IDs, refuses identities within the
// context's deadline, and makes them again when it is back, without being opened again.
// The nodes of the majority do not notice.
func TestCluster_Partition(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 3)
	a, b := nodes[0], nodes[1]
	equal(t, put(t, a, "users|", `{}`).ID, "users/1")
	equal(t, put(t, b, "users|", `{}`).ID, "users/2")

	clients[0].Cut()
	before := dump(t, a)
	cutOff(t, "an identity", func(ctx context.Context) error { return second(a.Put(ctx, "users|", []byte(`{}`))) })
	cutOff(t, "a new identity", func(ctx context.Context) error { return second(a.Put(ctx, "never|", []byte(`{}`))) })
	cutOff(t, "a transaction with an identity", func(limited context.Context) error {
		return a.Update(limited, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "users/ann", []byte(`{}`)); err != nil {
				return err
			}
			return second(tx.Put(ctx, "users|", []byte(`{}`)))
		})
	})
	cutOff(t, "a batch with an identity", func(ctx context.Context) error {
		var batch jay.Batch
		batch.Put("users/ann", []byte(`{}`))
		batch.Put("users|", []byte(`{}`))
		return second(a.Apply(ctx, &batch))
	})
	cutOff(t, "NextIdentity", func(ctx context.Context) error { return second(a.NextIdentity(ctx, "users")) })
	cutOff(t, "SeedIdentity", func(ctx context.Context) error { return second(a.SeedIdentity(ctx, "users", 100, false)) })
	cutOff(t, "Identities", func(ctx context.Context) error { return second(a.Identities(ctx)) })
	equal(t, dump(t, a), before)

	equal(t, put(t, a, "users/ann", `{}`).ID, "users/ann")
	equal(t, len(put(t, a, "", `{}`).ID), 36)
	if id := put(t, a, "users/", `{}`).ID; !strings.HasSuffix(id, "-A") || len(id) != len("users/0000000000000000001-A") {
		t.Errorf("server-side: got %s", id)
	}
	for n := range 40 { // more than one range
		equal(t, store(t, a, "Users"), fmt.Sprintf("users/%d-A", n+1))
	}
	equal(t, put(t, b, "users|", `{}`).ID, "users/3")

	// One that waits goes on when the majority is back.
	waiting := make(chan error, 1)
	go func() {
		_, err := a.Put(ctx, "users|", []byte(`{}`))
		waiting <- err
	}()
	for checks.IdentitiesWaiting(a, "users|") == 0 {
		time.Sleep(time.Millisecond)
	}
	clients[0].Mend()
	must(t, within(t, waiting, "an identity that waits for the majority"))
	last := afterPrefix(put(t, a, "users|", `{}`).ID, "users/")
	if last < 5 {
		t.Errorf("got number %d after 4 identities", last)
	}
	allExplained(t, "users|", nodes...)
}

// allExplained checks that each number of an identity, up to the last one, is that of a
// document of one node, or is recorded as one that no document has.
func allExplained(t testing.TB, name string, nodes ...*jay.DB) {
	t.Helper()
	list, err := nodes[0].Identities(ctx)
	must(t, err)
	last := list[name]
	for _, db := range nodes {
		checks.AwaitLost(db)
	}
	for n := int64(1); n <= last; n++ {
		documents, lost := 0, 0
		for _, db := range nodes {
			found, err := db.Exists(ctx, fmt.Sprintf("%s/%d", strings.TrimSuffix(name, "|"), n))
			must(t, err)
			if found {
				documents++
			}
			if slices.Contains(checks.LostNumbers(db, name), n) {
				lost++
			}
		}
		if documents > 1 || documents+lost == 0 {
			t.Errorf("number %d of %s: %d documents, and %d records that there is none", n, name, documents, lost)
		}
	}
}

// Ensure that all ways to ask for identities count together on all nodes: batches reserve
// their numbers together.
func TestCluster_Identities(t *testing.T) {
	t.Parallel()
	m, nodes, _ := members(t, 2)
	a, b := nodes[0], nodes[1]
	equal(t, put(t, a, "users|", `{}`).ID, "users/1")
	equal(t, put(t, b, "USERS|", `{}`).ID, "USERS/2")

	commits := m.Commits()
	var batch jay.Batch
	for range 5 {
		batch.Put("users|", []byte(`{}`))
		batch.Put("orders|", []byte(`{}`))
	}
	results, err := b.Apply(ctx, &batch)
	must(t, err)
	equal(t, results[0].ID+" "+results[8].ID+" "+results[1].ID+" "+results[9].ID, "users/3 users/7 orders/1 orders/5")
	if n := m.Commits() - commits; n > 4 { // a counter and a slot, for each name
		t.Errorf("a batch of 2 identities took %d commits", n)
	}

	var first, second jay.Metadata
	must(t, a.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "users|", []byte(`{}`), jay.Returning(&first)); err != nil {
			return err
		}
		_, err := tx.Put(ctx, "users|", []byte(`{}`), jay.Returning(&second))
		return err
	}))
	equal(t, first.ID+" "+second.ID, "users/8 users/9")

	w, err := b.BulkInsert(nil)
	must(t, err)
	var bulk [3]jay.Metadata
	for i := range bulk {
		_, err := w.Put(ctx, "users|", []byte(`{}`), jay.Returning(&bulk[i]))
		must(t, err)
	}
	must(t, w.Close())
	equal(t, bulk[0].ID+" "+bulk[2].ID, "users/10 users/12")

	n, err := a.NextIdentity(ctx, "users")
	must(t, err)
	equal(t, n, 13)
	n, err = b.SeedIdentity(ctx, "users", 100, false)
	must(t, err)
	equal(t, n, 100)
	n, err = a.SeedIdentity(ctx, "users", 50, false)
	must(t, err)
	equal(t, n, 100)
	equal(t, put(t, a, "users|", `{}`).ID, "users/101")
	for _, db := range nodes {
		list, err := db.Identities(ctx)
		must(t, err)
		equal(t, fmt.Sprint(list), "map[orders|:5 users|:101]")
	}
	n, err = a.SeedIdentity(ctx, "users", 20, true)
	must(t, err)
	equal(t, n, 20)
	equal(t, put(t, b, "users|", `{}`).ID, "users/21")
	must(t, a.RaiseCounters(ctx, jay.Counters{Identities: map[string]int64{"users|": 300}}))
	equal(t, put(t, b, "users|", `{}`).ID, "users/301")
}

// Ensure that a number whose ID a document has is passed over, as on one node: documents
// 1, 2, 4, 8, 9 give 10.
func TestCluster_Identities_InUse(t *testing.T) {
	t.Parallel()
	_, nodes, _ := members(t, 2)
	a, b := nodes[0], nodes[1]
	for _, n := range []int{1, 2, 4, 8, 9} {
		put(t, a, fmt.Sprintf("users/%d", n), `{"by":"hand"}`)
	}
	equal(t, put(t, a, "users|", `{}`).ID, "users/10")
	equal(t, put(t, b, "users|", `{}`).ID, "users/11")
	put(t, a, "users/12", `{"by":"hand"}`)
	must(t, a.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "users|", []byte(`{}`))
		return err
	}))
	put(t, a, "users/14", `{"by":"hand"}`)
	w, err := a.BulkInsert(nil)
	must(t, err)
	_, err = w.Put(ctx, "users|", []byte(`{}`))
	must(t, err)
	must(t, w.Close())
	put(t, a, "users/16", `{"by":"hand"}`)
	n, err := a.NextIdentity(ctx, "users")
	must(t, err)
	equal(t, n, 17)
	for _, n := range []int{1, 2, 4, 8, 9, 12, 14, 16} {
		equal(t, body(t, a, fmt.Sprintf("users/%d", n)), `{"by":"hand"}`)
	}
	for _, n := range []int{13, 15} {
		equal(t, body(t, a, fmt.Sprintf("users/%d", n)), `{}`)
	}
}

// Ensure that numbers are given only after the commit that reserves them, that callers who
// come meanwhile share the next one, and that those who leave cost no more than a gap.
func TestCluster_Identities_Combined(t *testing.T) {
	t.Parallel()
	m, nodes, clients := members(t, 1)
	db, client := nodes[0], clients[0]
	put(t, db, "users|", `{}`)

	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	client.Before(func(c clustertest.Call) {
		if c.Method == "Commit" {
			once.Do(func() {
				close(arrived)
				<-release
			})
		}
	})
	before := m.Commits()
	const callers = 64
	answers := make(chan string, callers)
	insert := func() {
		m, err := db.Put(ctx, "users|", []byte(`{}`))
		if err != nil {
			t.Error(err)
		}
		answers <- m.ID
	}
	go insert()
	<-arrived
	for range callers - 1 {
		go insert()
	}
	for checks.IdentitiesWaiting(db, "users|") < callers {
		time.Sleep(time.Millisecond)
	}
	select {
	case id := <-answers:
		t.Fatalf("%s was handed out before the commit", id)
	default:
	}
	close(release)
	seen := make(map[string]bool)
	for range callers {
		seen[<-answers] = true
	}
	equal(t, len(seen), callers)
	equal(t, m.Commits()-before, 2)
	allExplained(t, "users|", db)
}

// Ensure that no number comes twice, and that each is explained, when the answers of
// reservations are lost: whether they have happened, have not, or happen later, after the
// reservation was made again or given up.
func TestCluster_Identities_UnknownOutcome(t *testing.T) {
	t.Parallel()
	faults := []clustertest.Fault{clustertest.Happens, clustertest.Never, clustertest.Withhold, clustertest.Passes}
	var seeds sync.WaitGroup // beside one another: they wait for answers that do not come
	for seed := range uint64(4) {
		seeds.Go(func() {
			_, nodes, clients := members(t, 2)
			random := rand.New(rand.NewPCG(seed, 1))
			seen := make(map[string]bool)
			for range 20 {
				i := random.IntN(2)
				var meet []clustertest.Fault
				for range random.IntN(4) {
					meet = append(meet, faults[random.IntN(len(faults))])
				}
				limited, end := context.WithCancel(ctx)
				if random.IntN(8) == 0 { // in doubt, and then cut off until the caller gives up
					meet = []clustertest.Fault{faults[random.IntN(3)], faults[random.IntN(3)]}
					commits := 0
					clients[i].Before(func(call clustertest.Call) {
						if call.Method == "Commit" {
							if commits++; commits > len(meet) {
								clients[i].Cut()
								end()
							}
						}
					})
				}
				clients[i].Fail(meet...)
				meta, err := nodes[i].Put(limited, "users|", []byte(`{}`))
				end()
				if err != nil {
					noMajority(t, fmt.Sprintf("seed %d: an identity whose reservation is in doubt", seed), err, context.Canceled)
				} else if seen[meta.ID] {
					t.Errorf("seed %d: %s came twice", seed, meta.ID)
				}
				seen[meta.ID] = err == nil
				clients[i].Before(nil)
				clients[i].Mend()
				if random.IntN(3) == 0 {
					clients[i].Deliver()
				}
				if seed%2 == 0 && random.IntN(8) == 0 {
					if _, err := nodes[i].SeedIdentity(ctx, "users", int64(random.IntN(40)), false); err != nil {
						t.Error(err)
					}
				}
			}
			for _, c := range clients {
				c.Deliver()
			}
			for _, db := range nodes {
				put(t, db, "users|", `{}`) // settles what was in doubt
			}
			if seed%2 != 0 { // a seed skips numbers
				allExplained(t, "users|", nodes...)
			}
		})
	}
	seeds.Wait()
}

// Ensure that no ID comes twice when 16 goroutines on 3 nodes use every strategy, while
// nodes are cut off and answers are lost, and that each identity is explained afterwards.
func TestCluster_Strategies(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 3)
	var mu sync.Mutex
	seen := make(map[string]int)
	note := func(id string) {
		mu.Lock()
		defer mu.Unlock()
		seen[id]++
	}
	var group sync.WaitGroup
	for g := range 16 {
		random := rand.New(rand.NewPCG(uint64(g), 2))
		group.Go(func() {
			for i := range 25 {
				n := random.IntN(len(nodes))
				db := nodes[n]
				switch random.IntN(12) {
				case 0:
					clients[n].Cut()
					time.Sleep(time.Millisecond)
					clients[n].Mend()
				case 1:
					clients[n].Fail(clustertest.Happens)
				case 2:
					clients[n].Fail(clustertest.Withhold, clustertest.Never)
				case 3:
					clients[n].Deliver()
				}
				for _, request := range []string{"users|", "users/", "", fmt.Sprintf("users/%d-%d", g, i)} {
					m, err := db.Put(ctx, request, []byte(`{}`))
					if err != nil {
						t.Errorf("%s: %v", request, err)
						return
					}
					note(m.ID)
				}
				m, err := db.Store(ctx, "Users", []byte(`{}`))
				if err != nil {
					t.Error(err)
					return
				}
				note(m.ID)
				if err := db.Update(ctx, func(tx *jay.Tx) error {
					_, err := tx.Put(ctx, "users|", []byte(`{}`), jay.Returning(&m))
					return err
				}); err != nil {
					t.Error(err)
					return
				}
				note(m.ID)
			}
		})
	}
	group.Wait()
	for id, n := range seen {
		if n > 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	for i := range clients {
		clients[i].Deliver()
		put(t, nodes[i], "users|", `{}`)
	}
	allExplained(t, "users|", nodes...)
}

// onTag opens a database on a disk as a member.
func onTag(t testing.TB, disk *storagetest.Disk, c cluster.Coordinator, tag string) *jay.DB {
	t.Helper()
	o := *inCluster(c, tag)
	return onDisk(t, disk, o)
}

// Ensure that a number whose document a crash has prevented is never given again, and is
// explained after the next Open: at each sync of the log.
func TestCluster_Identities_Crash(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	crashes := 0
	for n := 0; ; n++ {
		m := clustertest.NewMemory()
		disk := storagetest.NewDisk()
		c := m.Connect()
		db := onTag(t, disk, c, "A")
		other := memory(t, inCluster(m.Connect(), "B"))
		disk.FailAfter(n)
		seen := make(map[string]bool)
		failed := false
		for range 3 {
			meta, err := db.Put(ctx, "users|", []byte(`{}`))
			if failed = failed || err != nil; err == nil {
				seen[meta.ID] = true
			}
			number, err := db.NextIdentity(ctx, "users", jay.RequestID("once"))
			if failed = failed || err != nil; err == nil {
				seen[fmt.Sprint("next ", number)] = true
			}
			seen[put(t, other, "users|", `{}`).ID] = true
		}
		if !failed {
			disk.Heal()
			closeDB(t, db)
			break
		}
		crashes++
		disk = disk.Crash(50, random)
		must(t, c.Close())
		_ = db.Close()
		db = onTag(t, disk, m.Connect(), "A")
		must(t, checks.BeatCluster(db))
		equal(t, seen[put(t, db, "users|", `{}`).ID], false)
		equal(t, seen[put(t, other, "users|", `{}`).ID], false)
		number, err := db.NextIdentity(ctx, "users", jay.RequestID("once"))
		must(t, err)
		for key := range maps.Keys(seen) {
			if strings.HasPrefix(key, "next ") {
				equal(t, fmt.Sprint("next ", number), key)
			}
		}
		allExplained(t, "users|", db, other)
		closeDB(t, db)
		closeDB(t, other)
		if t.Failed() {
			t.Fatalf("the disk fails after %d syncs", n)
		}
	}
	if crashes < 4 {
		t.Errorf("the power was cut %d times", crashes)
	}
}

// tagError checks that err is a *cluster.TagError for a reason.
func tagError(t testing.TB, err error, reason cluster.TagReason) {
	t.Helper()
	var tag *cluster.TagError
	if !errors.As(err, &tag) || tag.Reason != reason || !errors.Is(err, jay.ErrTag) {
		t.Errorf("got %v, want a TagError: %s", err, reason)
	}
}

// Ensure that a tag belongs to one database for good: no other gets it, neither while the
// owner is closed nor after it has left.
func TestCluster_Tag(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	db := onTag(t, disk, m.Connect(), "A")
	_, err := jay.OpenMemory(inCluster(m.Connect(), "A"))
	tagError(t, err, cluster.TagTaken)
	closeDB(t, db)
	_, err = jay.OpenMemory(inCluster(m.Connect(), "A"))
	tagError(t, err, cluster.TagTaken)
	db = onTag(t, disk, m.Connect(), "A") // its own, and without a wait: it was closed
	put(t, db, "users|", `{}`)

	left, err := cluster.Leave(ctx, m.Connect(), "A", time.Now())
	must(t, err)
	equal(t, left.Tag, "A")
	tagError(t, checks.BeatCluster(db), cluster.TagRetired)
	for _, request := range []string{"users|", "users/"} {
		_, err := db.Put(ctx, request, []byte(`{}`))
		tagError(t, err, cluster.TagRetired)
	}
	_, err = db.Store(ctx, "Users", []byte(`{}`))
	tagError(t, err, cluster.TagRetired)
	_, err = db.CompareExchange().Get(ctx, "x")
	tagError(t, err, cluster.TagRetired)
	put(t, db, "users/ann", `{}`)
	closeDB(t, db)
	_, err = jay.Open("db", &jay.Options{FS: disk, Cluster: m.Connect(), ClusterPeriod: time.Second})
	tagError(t, err, cluster.TagRetired)
	_, err = jay.OpenMemory(inCluster(m.Connect(), "A"))
	tagError(t, err, cluster.TagTaken)

	list, err := cluster.Members(ctx, m.Connect())
	must(t, err)
	equal(t, len(list), 1)
	equal(t, list[0].Left.IsZero(), false)

	// With a tag of its own it is a new member, and its identities go on.
	o := jay.Options{Cluster: m.Connect(), ClusterPeriod: 100 * time.Millisecond, CopyTag: "C"}
	db = onDisk(t, disk, o)
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
	closeDB(t, db)
}

// Ensure that a copy that is started beside its original is refused, that a crash is not
// taken for a copy, and that a copy that ran while its original was cut off is noticed by
// both: neither makes IDs with the tag until the copy has one of its own.
func TestCluster_Copies(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	a := m.Connect()
	db := onTag(t, disk, a, "A")
	put(t, db, "users|", `{}`)

	// The original's heart beats while the copy looks.
	copied := disk.Crash(100, rand.New(rand.NewPCG(1, 1)))
	b := m.Connect()
	b.Before(func(c clustertest.Call) {
		if c.Method == "Read" && len(c.Keys) == 1 {
			if err := checks.BeatCluster(db); err != nil {
				t.Errorf("the original: %v", err)
			}
		}
	})
	_, err := jay.Open("db", &jay.Options{FS: copied, Cluster: b, ClusterPeriod: 100 * time.Millisecond})
	tagError(t, err, cluster.TagRunning)
	store(t, db, "Users") // the original goes on

	// Cut off, the original counts as dead, and makes IDs all the same.
	a.Cut()
	twin := onTag(t, copied, m.Connect(), "A")
	store(t, db, "Users")
	put(t, db, "users/", `{}`)
	store(t, twin, "Users")
	client := db.NewHiLoClient()
	if _, err := client.Next(ctx, "users"); err != nil {
		t.Error(err)
	}
	a.Mend()
	tagError(t, checks.BeatCluster(db), cluster.TagCopied)
	tagError(t, checks.BeatCluster(twin), cluster.TagCopied)
	for _, node := range []*jay.DB{db, twin} {
		_, err := node.Store(ctx, "Users", []byte(`{}`))
		tagError(t, err, cluster.TagCopied)
		_, err = node.Put(ctx, "users/", []byte(`{}`))
		tagError(t, err, cluster.TagCopied)
		_, err = node.NextRange(ctx, jay.RangeRequest{Tag: "users"})
		tagError(t, err, cluster.TagCopied)
		put(t, node, "users|", `{}`) // identities have no tag
		put(t, node, "users/ann", `{}`)
		stats, err := node.Stats(ctx)
		must(t, err)
		if !strings.Contains(stats.Cluster.Refusal, "CopyTag") || !strings.Contains(stats.Cluster.Refusal, "jay cluster resolve A") {
			t.Errorf("the refusal does not say what to do: %s", stats.Cluster.Refusal)
		}
	}
	_, err = client.Next(ctx, "users") // though it holds a range
	tagError(t, err, cluster.TagCopied)
	closeDB(t, twin)

	// A restart does not forget it.
	closeDB(t, db)
	db = onTag(t, disk, m.Connect(), "A")
	_, err = db.Store(ctx, "Users", []byte(`{}`))
	tagError(t, err, cluster.TagCopied)

	// The copy gets a tag, and the original has its own back.
	twin = onDisk(t, copied, jay.Options{Cluster: m.Connect(), ClusterPeriod: 100 * time.Millisecond, CopyTag: "B"})
	_, err = cluster.Resolve(ctx, m.Connect(), "A")
	must(t, err)
	must(t, checks.BeatCluster(db))
	must(t, checks.BeatCluster(twin))
	equal(t, strings.HasSuffix(store(t, db, "Users"), "-A"), true)
	equal(t, strings.HasSuffix(store(t, twin, "Users"), "-B"), true)
	put(t, twin, "users|", `{}`)
	put(t, db, "users|", `{}`)
	closeDB(t, twin)
	closeDB(t, db)
}

// Ensure that a copy which ran and was closed before its original came back is noticed,
// by both at the next Open of either.
func TestCluster_Copies_OneAfterTheOther(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	db := onTag(t, disk, m.Connect(), "A")
	store(t, db, "Users")
	closeDB(t, db)
	copied := disk.Crash(100, rand.New(rand.NewPCG(1, 1)))
	twin := onTag(t, copied, m.Connect(), "A") // looks like the original
	store(t, twin, "Users")
	closeDB(t, twin)
	db = onTag(t, disk, m.Connect(), "A")
	_, err := db.Store(ctx, "Users", []byte(`{}`))
	tagError(t, err, cluster.TagCopied)
	closeDB(t, db)
	twin = onTag(t, copied, m.Connect(), "A")
	_, err = twin.Store(ctx, "Users", []byte(`{}`))
	tagError(t, err, cluster.TagCopied)
	closeDB(t, twin)
}

// Ensure that after a crash a database waits until its last run counts as dead, and has its
// tag then; at each commit of its joining whose answer is lost.
func TestCluster_Join_Crash(t *testing.T) {
	t.Parallel()
	var faults sync.WaitGroup // beside one another: they wait for a run that is dead
	for _, fault := range []clustertest.Fault{clustertest.Happens, clustertest.Never, clustertest.Withhold} {
		faults.Go(func() {
			m := clustertest.NewMemory()
			disk := storagetest.NewDisk()
			random := rand.New(rand.NewPCG(1, 1))
			closeDB(t, onTag(t, disk, m.Connect(), "A"))
			for run := range 6 {
				c := m.Connect()
				if run%2 == 0 {
					c.Fail(fault)
				}
				db, err := jay.Open("db", &jay.Options{FS: disk, Cluster: c, ClusterPeriod: 100 * time.Millisecond})
				must(t, err)
				if run%2 == 0 {
					c.Deliver()
					must(t, checks.BeatCluster(db))
				}
				store(t, db, "Users")
				crashed := disk.Crash(100, random)
				must(t, c.Close()) // so that Close cannot say that the node is closed
				_ = db.Close()
				disk = crashed
			}
		})
	}
	faults.Wait()
}

// Ensure that a member opens without a majority, makes all IDs but identities, and joins
// when the majority is back; and that a database that was never a member does not open.
func TestCluster_Open_NoMajority(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	db := onTag(t, disk, m.Connect(), "A")
	put(t, db, "users|", `{}`)
	closeDB(t, db)

	c := m.Connect()
	c.Cut()
	db = onTag(t, disk, c, "A")
	store(t, db, "Users")
	cutOff(t, "an identity", func(ctx context.Context) error { return second(db.Put(ctx, "users|", []byte(`{}`))) })
	if _, err := jay.OpenMemory(inCluster(c, "B")); !errors.Is(err, jay.ErrNoMajority) {
		t.Errorf("a new member: got %v, want ErrNoMajority", err)
	}
	c.Mend()
	must(t, checks.BeatCluster(db))
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
	closeDB(t, db)
}

// Ensure that identities may be drawn while a node that was opened without a majority
// joins: with the race detector.
func TestCluster_Join_WhileDrawing(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	closeDB(t, onTag(t, disk, m.Connect(), "A"))
	for n := range 2 {
		c := m.Connect()
		c.Cut()
		db := onTag(t, disk, c, "A")
		c.Mend()
		joined := make(chan error)
		go func() { joined <- checks.BeatCluster(db) }()
		for i := range 4 {
			equal(t, put(t, db, "users|", `{}`).ID, fmt.Sprint("users/", 4*n+i+1))
		}
		must(t, <-joined)
		closeDB(t, db)
	}
}

// Ensure that a database knows its cluster: another one is refused, and without one its
// identities are, until it is a copy with a tag of its own.
func TestCluster_Other(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	db := onTag(t, disk, m.Connect(), "A")
	put(t, db, "users|", `{}`)
	closeDB(t, db)
	other := clustertest.NewMemory()
	open := func(c cluster.Coordinator) error {
		db, err := jay.Open("db", &jay.Options{FS: disk, Cluster: c, ClusterPeriod: 100 * time.Millisecond})
		if err == nil {
			closeDB(t, db)
		}
		return err
	}
	for _, tag := range []string{"X", "Y"} {
		if err := open(other.Connect()); !errors.Is(err, jay.ErrOtherCluster) {
			t.Errorf("got %v, want ErrOtherCluster", err)
		}
		closeDB(t, memory(t, inCluster(other.Connect(), tag)))
	}
	for _, o := range []jay.Options{{Separator: "-"}, {CaseSensitive: true}} {
		o.Cluster, o.ClusterPeriod, o.NodeTag = m.Connect(), time.Second, "B"
		if _, err := jay.OpenMemory(&o); !errors.Is(err, jay.ErrFixed) {
			t.Errorf("got %v, want ErrFixed", err)
		}
	}

	db = onDisk(t, disk, jay.Options{})
	for _, err := range []error{
		second(db.Put(ctx, "users|", []byte(`{}`))),
		second(db.NextIdentity(ctx, "users")),
		second(db.CompareExchange().Put(ctx, "x", 1, 0)),
		second(db.CompareExchange().Get(ctx, "x")),
	} {
		if !errors.Is(err, jay.ErrNeedsCluster) {
			t.Errorf("got %v, want ErrNeedsCluster", err)
		}
	}
	store(t, db, "Users")
	closeDB(t, db)
	db = onDisk(t, disk, jay.Options{CopyTag: "C"}) // on its own again
	if _, err := db.Put(ctx, "users|", []byte(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
		t.Errorf("got %v, want ErrNeedsFloor", err)
	}
	must(t, second(db.SeedIdentity(ctx, "users", 1000, false)))
	equal(t, put(t, db, "users|", `{}`).ID, "users/1001")
	closeDB(t, db)
}

// Ensure that a database which joins brings its identities along, and that a copy of one
// that is in no cluster needs floors there, too.
func TestCluster_Join_Identities(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	a := memory(t, inCluster(m.Connect(), "A"))
	equal(t, put(t, a, "users|", `{}`).ID, "users/1")
	disk := storagetest.NewDisk()
	alone := onDisk(t, disk, jay.Options{NodeTag: "B"})
	for range 5 {
		put(t, alone, "users|", `{}`)
	}
	closeDB(t, alone)
	copied := disk.Crash(100, rand.New(rand.NewPCG(1, 1)))
	b := onTag(t, disk, m.Connect(), "B")
	equal(t, put(t, a, "users|", `{}`).ID, "users/6")
	equal(t, put(t, b, "users|", `{}`).ID, "users/7")
	closeDB(t, b)

	c := onDisk(t, copied, jay.Options{CopyTag: "C", Cluster: m.Connect(), ClusterPeriod: time.Second})
	if _, err := c.Put(ctx, "users|", []byte(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
		t.Errorf("got %v, want ErrNeedsFloor", err)
	}
	must(t, second(c.SeedIdentity(ctx, "users", 50, false)))
	equal(t, put(t, c, "users|", `{}`).ID, "users/51")
	closeDB(t, c)
}

// Ensure that a call with a request ID returns what it returned at first, also when its
// node has crashed in between, and that a forced seed is not repeated.
func TestCluster_Identities_RequestID(t *testing.T) {
	t.Parallel()
	_, nodes, _ := members(t, 2)
	a, b := nodes[0], nodes[1]
	n, err := a.NextIdentity(ctx, "users", jay.RequestID("one"))
	must(t, err)
	put(t, b, "users|", `{}`)
	again, err := a.NextIdentity(ctx, "users", jay.RequestID("one"))
	must(t, err)
	equal(t, again, n)
	if _, err := a.NextIdentity(ctx, "orders", jay.RequestID("one")); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v, want ErrUsage", err)
	}
	n, err = a.SeedIdentity(ctx, "users", 0, true, jay.RequestID("two"))
	must(t, err)
	equal(t, n, 0)
	put(t, b, "x/1", `{}`)
	must(t, second(b.SeedIdentity(ctx, "users", 500, false)))
	n, err = a.SeedIdentity(ctx, "users", 0, true, jay.RequestID("two"))
	must(t, err)
	equal(t, n, 0)
	equal(t, put(t, b, "users|", `{}`).ID, "users/501")
}

// Ensure that the options of a cluster take their bounds, and nothing beyond.
func TestCluster_Options(t *testing.T) {
	t.Parallel()
	c := clustertest.NewMemory().Connect()
	for _, o := range []jay.Options{
		{ClusterAddress: "here"},
		{ClusterPeriod: time.Second},
		{Cluster: c, ClusterPeriod: 99 * time.Millisecond},
		{Cluster: c, ClusterPeriod: 5*time.Minute + 1},
		{Cluster: c, ClusterAddress: strings.Repeat("a", 1025)},
		{Cluster: c, ReadOnly: true},
	} {
		if _, err := jay.OpenMemory(&o); !errors.Is(err, jay.ErrOption) {
			t.Errorf("got %v, want ErrOption", err)
		}
	}
	db := memory(t, &jay.Options{Cluster: c, ClusterPeriod: 5 * time.Minute, ClusterAddress: strings.Repeat("a", 1024)})
	stats, err := db.Stats(ctx)
	must(t, err)
	equal(t, stats.Cluster.Joined && stats.Cluster.Cluster != "" && stats.Cluster.NodeTag == "A" && stats.Cluster.Refusal == "", true)
	list, err := cluster.Members(ctx, c)
	must(t, err)
	equal(t, list[0].Running && len(list[0].Address) == 1024 && list[0].Tag == "A", true)

	// Values of its own would not be seen in the cluster.
	disk := storagetest.NewDisk()
	alone := onDisk(t, disk, jay.Options{NodeTag: "B"})
	must(t, second(alone.CompareExchange().Put(ctx, "own", 1, 0)))
	closeDB(t, alone)
	if _, err := jay.Open("db", &jay.Options{FS: disk, Cluster: c}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("a database with values of its own: got %v, want ErrOption", err)
	}
}

// Ensure that the report on IDs explains the numbers that no document has.
func TestCluster_InspectIDs(t *testing.T) {
	t.Parallel()
	_, nodes, _ := members(t, 2)
	a, b := nodes[0], nodes[1]
	must(t, second(a.NextIdentity(ctx, "users")))                           // 1
	put(t, b, "users|", `{}`)                                               // 2
	_, err := a.Put(ctx, "users|", []byte(`{}`), jay.InCollection("Users")) // 3
	must(t, err)
	if _, err := a.Put(ctx, "users|", []byte(`{}`), jay.IfMatch("A:1-no")); err == nil {
		t.Error("an identity has no version")
	}
	checks.AwaitLost(a)
	report, err := a.InspectIDs(ctx, nil)
	must(t, err)
	i := report.Identities[0]
	equal(t, fmt.Sprint(i.Name, " ", i.Last, " ", i.Highest, " ", i.Unused, " ", i.Lost), "users| 3 3 2 1")
}

// Ensure that writes which need no agreement allocate no more in a cluster than without one.
func TestCluster_Allocations(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	alone := memory(t, &jay.Options{NodeTag: "A"})
	member := memory(t, inCluster(clustertest.NewMemory().Connect(), "A"))
	body := []byte(`{"Name":"Ann"}`)
	n := 1000 // fmt makes no allocation for smaller numbers
	for name, insert := range map[string]func(db *jay.DB) error{
		"HiLo":        func(db *jay.DB) error { return second(db.Store(ctx, "Orders", body)) },
		"server-side": func(db *jay.DB) error { return second(db.Put(ctx, "orders/", body)) },
		"GUID":        func(db *jay.DB) error { return second(db.Put(ctx, "", body)) },
		"semantic":    func(db *jay.DB) error { n++; return second(db.Put(ctx, fmt.Sprintf("orders/s%09d", n), body)) },
	} {
		in := func(db *jay.DB) func() { return func() { must(t, insert(db)) } }
		// As many inserts into both: what they allocate grows a little with the database.
		most := jaytest.Allocs(200, 0, in(alone))
		if got := jaytest.Allocs(200, 0, in(member)); got > most {
			t.Errorf("%s: %v allocations in a cluster, %v without one", name, got, most)
		}
	}
}
