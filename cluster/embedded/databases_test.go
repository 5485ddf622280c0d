package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/etcd"
)

// period is how long a database without a heartbeat counts as alive: several heartbeats of
// a busy machine.
const period = 8 * time.Second

// inCluster opens a database in memory as a member.
func inCluster(t *testing.T, c cluster.Coordinator, tag string) *jay.DB {
	t.Helper()
	db, err := whenReached(t, func() (*jay.DB, error) {
		return jay.OpenMemory(&jay.Options{Cluster: c, NodeTag: tag, ClusterPeriod: period})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// whenReached opens a database, and again if etcd has not answered: Open waits for some
// seconds, which a busy machine can need.
func whenReached(t *testing.T, open func() (*jay.DB, error)) (*jay.DB, error) {
	t.Helper()
	for ctx := within(t); ; {
		db, err := open()
		if !errors.Is(err, jay.ErrNoMajority) || ctx.Err() != nil {
			return db, err
		}
	}
}

// Ensure that 16 callers on 3 nodes never get an ID twice, under any strategy, while the leader
// is killed and connections are cut in the middle of requests; and that each number of the
// identity has its document, as no caller has given up. JAY_CLUSTER is how long it goes on.
func TestDatabases_Faults(t *testing.T) {
	long(t)
	t.Parallel()
	atLeast := time.Duration(0)
	if text := os.Getenv("JAY_CLUSTER"); text != "" {
		var err error
		if atLeast, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	c := startCell(t, 3, nil)
	var nodes []*jay.DB
	for i := range 3 {
		nodes = append(nodes, inCluster(t, c.open(t), string(rune('A'+i))))
	}

	var mu sync.Mutex
	owner := make(map[string]int)
	note := func(node int, id string) {
		mu.Lock()
		defer mu.Unlock()
		if other, taken := owner[id]; taken {
			t.Errorf("%s was given on node %d, and on node %d", id, other, node)
		}
		owner[id] = node
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(owner)
	}
	ctx, cancel := context.WithTimeout(t.Context(), atLeast+2*patience)
	defer cancel()
	var enough atomic.Bool
	var group sync.WaitGroup
	for g := range 16 {
		i := g % len(nodes)
		group.Go(func() {
			for n := 0; !enough.Load(); n++ {
				for _, request := range []string{"invoices|", "invoices/", "", fmt.Sprintf("invoices/%d-%d", g, n)} {
					m, err := nodes[i].Put(ctx, request, []byte(`{}`))
					if err != nil {
						t.Errorf("node %d, %q: %v", i, request, err)
						return
					}
					note(i, m.ID)
				}
				m, err := nodes[i].Store(ctx, "Invoices", []byte(`{}`))
				if err != nil {
					t.Errorf("node %d, HiLo: %v", i, err)
					return
				}
				note(i, m.ID)
			}
		})
	}
	cuts := 0
	for begin, round := time.Now(), 0; round < 2 || time.Since(begin) < atLeast; round++ {
		for j := range 20 {
			before := count()
			c.eventually("another document", func() bool { return count() > before+20 || t.Failed() })
			cuts += c.clients[j%3].cut()
		}
		i := max(c.leader(), 0)
		c.isolate(i)
		c.hide(i)
		c.stop(i)
		before := count()
		c.eventually("documents without the leader", func() bool { return count() > before+100 || t.Failed() })
		c.mend()
		c.start(i)
		c.waitForLeader()
	}
	enough.Store(true)
	group.Wait()

	last, err := nodes[0].Identities(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= last["invoices|"]; n++ {
		id := fmt.Sprint("invoices/", n)
		i, given := owner[id]
		if !given {
			t.Errorf("%s was given to no caller", id)
			continue
		}
		if found, err := nodes[i].Exists(ctx, id); err != nil || !found {
			t.Errorf("%s is not on node %d: %v", id, i, err)
		}
	}
	t.Logf("%d IDs, %d of them identities; %d connections were cut", len(owner), last["invoices|"], cuts)
}

// Ensure that each row of the table of partitions holds for a node whose member of etcd is cut off
// from the others: only identities need the majority, they fail by the deadline, and
// go on by themselves.
func TestDatabases_Partition(t *testing.T) {
	long(t)
	t.Parallel()
	c := startCell(t, 3, nil)
	cut, other := inCluster(t, c.open(t, 0), "A"), inCluster(t, c.open(t, 1, 2), "B")
	if m, err := cut.Put(within(t), "invoices|", []byte(`{}`)); err != nil || m.ID != "invoices/1" {
		t.Fatalf("got %+v, %v", m, err)
	}
	c.isolate(0)
	for what, request := range map[string]string{"semantic": "users/ann", "GUID": "", "server-side": "users/"} {
		if _, err := cut.Put(within(t), request, []byte(`{}`)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if m, err := cut.Store(within(t), "Users", []byte(`{}`)); err != nil || !strings.HasSuffix(m.ID, "-A") {
		t.Errorf("HiLo: %+v, %v", m, err)
	}
	for range 3 {
		brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := cut.Put(brief, "invoices|", []byte(`{}`))
		if !errors.Is(err, jay.ErrNoMajority) || errors.Is(err, jay.ErrUnknownOutcome) {
			t.Errorf("identity: got %v", err)
		}
		cancel()
	}
	if _, err := other.Put(within(t), "invoices|", []byte(`{}`)); err != nil {
		t.Errorf("the majority: %v", err)
	}
	waiting := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := cut.Put(ctx, "invoices|", []byte(`{}`))
		waiting <- err
	}()
	c.mend()
	if err := <-waiting; err != nil {
		t.Errorf("an identity that waited: %v", err)
	}
}

// Ensure that a tag is given once, that a second copy does not start beside the first, and that a
// copy which ran while the first could not be heard of is noticed by both. The first is a process
// that is stopped for longer than its period and goes on: its coordinator hears nothing and says nothing.
func TestDatabases_Tags(t *testing.T) {
	long(t)
	t.Parallel()
	member := alone(t, nil)
	p := newProxy(t)
	p.set(func() { p.target = strings.TrimPrefix(member.ClientURL(), "http://") })
	direct := open(t, etcd.Config{Endpoints: []string{member.ClientURL()}})
	through := open(t, etcd.Config{Endpoints: []string{p.url()}})

	tagError := func(what string, err error, reason cluster.TagReason) {
		t.Helper()
		if failure, is := errors.AsType[*cluster.TagError](err); !is || failure.Reason != reason || failure.Tag != "A" {
			t.Errorf("%s: got %v, want %s", what, err, reason)
		}
	}
	base := t.TempDir()
	start := func(name string, c cluster.Coordinator) (*jay.DB, error) {
		return whenReached(t, func() (*jay.DB, error) {
			return jay.Open(filepath.Join(base, name), &jay.Options{Cluster: c, NodeTag: "A", ClusterPeriod: period})
		})
	}
	first, err := start("first", through)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Store(within(t), "Users", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := first.Checkpoint(within(t), filepath.Join(base, "copy")); err != nil {
		t.Fatal(err)
	}
	_, err = start("another", direct)
	tagError("another database", err, cluster.TagTaken)
	_, err = start("copy", direct)
	tagError("a copy beside its original", err, cluster.TagRunning)

	p.set(func() { p.down = true })
	twin, err := start("copy", direct)
	if err != nil {
		t.Fatalf("a copy whose original is dead, for all that is known: %v", err)
	}
	for what, db := range map[string]*jay.DB{"the original": first, "the copy": twin} {
		if _, err := db.Store(within(t), "Users", []byte(`{}`)); err != nil {
			t.Errorf("%s, before it is found: %v", what, err)
		}
	}
	p.set(func() { p.down = false })
	for what, db := range map[string]*jay.DB{"the original": first, "the copy": twin} {
		eventually(t, "a refusal of "+what, func() bool {
			stats, err := db.Stats(within(t))
			return err == nil && stats.Cluster.Refusal != ""
		})
		_, err := db.Store(within(t), "Users", []byte(`{}`))
		tagError(what, err, cluster.TagCopied)
		if _, err := db.Put(within(t), "users/ann", []byte(`{}`)); err != nil {
			t.Errorf("%s: another ID: %v", what, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}

	if _, err := cluster.Leave(within(t), direct, "A", time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = start("another", direct)
	tagError("another database with a retired tag", err, cluster.TagTaken)
	retired, err := start("first", direct)
	if err == nil {
		_, err = retired.Store(within(t), "Users", []byte(`{}`))
		if closing := retired.Close(); closing != nil {
			t.Error(closing)
		}
	}
	tagError("the database that has left", err, cluster.TagRetired)
}
