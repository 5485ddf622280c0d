package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/etcd"
	"github.com/jaydb/jay/internal/jaytest"
)

// ledger is a counter that callers raise, as identities are: each number has a record of who has
// got it, in the same commit. A number that was given twice, or to two callers, shows.
type ledger struct {
	mu      sync.Mutex
	got     map[int]string // by number, who was told that it is theirs
	unknown int            // outcomes that were unknown, and were decided by reading
}

// raise takes the next number for a caller, and returns it. The condition of a commit whose
// outcome is unknown stays the same when it is tried again, so that it cannot happen twice; what
// has happened shows in the record.
func (l *ledger) raise(ctx context.Context, c cluster.Coordinator, caller string) error {
	for {
		found, err := c.Read(ctx, "counter", "by/"+caller)
		if err != nil {
			return err
		}
		n := len(found[0].Value) + 1
		conditions := []cluster.Condition{{Key: "counter", Index: found[0].Index}}
		mine := fmt.Sprintf("%s took %d", caller, n)
		changes := []cluster.Change{
			put("counter", strings.Repeat("+", n)),
			put("by/"+caller, mine),
			put(fmt.Sprintf("number/%06d", n), caller),
		}
		for {
			result, err := c.Commit(ctx, conditions, changes)
			if errors.Is(err, cluster.ErrUnknownOutcome) {
				l.mu.Lock()
				l.unknown++
				l.mu.Unlock()
				now, err := c.Read(ctx, "by/"+caller)
				if err != nil {
					return err
				}
				if string(now[0].Value) == mine {
					return l.take(n, caller)
				}
				continue // with the same condition
			}
			if err != nil {
				return err
			}
			if result.Committed() {
				return l.take(n, caller)
			}
			break
		}
		// The condition does not hold: by a commit of another caller, or by this one, whose answer
		// was lost.
		now, err := c.Read(ctx, "by/"+caller)
		if err != nil {
			return err
		}
		if string(now[0].Value) == mine {
			return l.take(n, caller)
		}
	}
}

func (l *ledger) take(n int, caller string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, taken := l.got[n]; taken {
		return fmt.Errorf("number %d was given to %s and to %s", n, other, caller)
	}
	l.got[n] = caller
	return nil
}

// check compares what callers were told with what is in etcd.
func (l *ledger) check(t *testing.T, c cluster.Coordinator) {
	t.Helper()
	count := len(value(t, c, "counter"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if count != len(l.got) {
		t.Errorf("the counter is at %d, and %d numbers were given", count, len(l.got))
	}
	for n, caller := range l.got {
		if got := value(t, c, fmt.Sprintf("number/%06d", n)); got != caller {
			t.Errorf("number %d was given to %s, and etcd has %q", n, caller, got)
		}
	}
}

// run lets callers raise the counter, each a number of times, through the coordinators in
// turns, and meanwhile runs disturb until they have finished.
func (l *ledger) run(t *testing.T, coordinators []*etcd.Coordinator, callers, each int, disturb func(finished func() bool)) {
	t.Helper()
	var group sync.WaitGroup
	var running atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range callers {
		c, caller := coordinators[i%len(coordinators)], fmt.Sprint("caller", i)
		running.Add(1)
		group.Go(func() {
			defer running.Add(-1)
			for range each {
				if err := l.raise(ctx, c, caller); err != nil {
					t.Errorf("%s: %v", caller, err)
					return
				}
			}
		})
	}
	disturb(func() bool { return running.Load() == 0 })
	group.Wait()
	l.check(t, coordinators[0])
	t.Logf("%d numbers, %d unknown outcomes", len(l.got), l.unknown)
}

func newLedger() *ledger { return &ledger{got: make(map[int]string)} }

// Ensure that callers go on when the leader is killed, that no number comes twice, and that the
// member joins again.
func TestFaults_LeaderKilled(t *testing.T) {
	long(t)
	t.Parallel()
	c := startCell(t, 3, nil)
	coordinators := []*etcd.Coordinator{c.open(t), c.open(t), c.open(t)}
	l := newLedger()
	l.run(t, coordinators, 16, 6, func(finished func() bool) {
		c.eventually("numbers", func() bool { return l.len() > 4 })
		i := c.leader()
		for ; i < 0; i = c.leader() {
			time.Sleep(time.Millisecond)
		}
		c.isolate(i)
		c.hide(i)
		c.stop(i)
		c.eventually("numbers without the leader", func() bool { return l.len() > 16 || finished() })
		c.mend()
		c.start(i)
	})
	c.waitForLeader()
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.got)
}

// Ensure that a node that reaches only the member that is cut off has an ErrNoMajority by its
// context's deadline, that the others go on, and that it goes on itself afterwards, without being
// opened again, and sees what was done meanwhile.
func TestFaults_MinorityCutOff(t *testing.T) {
	long(t)
	t.Parallel()
	c := startCell(t, 3, nil)
	for _, who := range []string{"leader", "follower"} {
		c.waitForLeader()
		i := c.leader()
		if who == "follower" {
			i = (i + 1) % 3
		}
		cut, others := c.open(t, i), c.open(t)
		commitAnyway(t, others, "x", "before the cut of a "+who)
		if got := value(t, cut, "x"); got != "before the cut of a "+who {
			t.Fatalf("%s: got %q", who, got)
		}
		c.isolate(i)
		c.hide(i)
		direct := open(t, etcd.Config{Endpoints: []string{"http://" + c.members[i].ClientAddress()}, Prefix: "test/" + t.Name() + "/"})
		for _, node := range []*etcd.Coordinator{cut, direct} {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			begin := time.Now()
			_, err := node.Read(ctx, "x")
			cancel()
			if !errors.Is(err, cluster.ErrNoMajority) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: read: got %v", who, err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("%s: a read with 300 ms took %v", who, took)
			}
		}
		commitAnyway(t, others, "x", "meanwhile")
		c.mend()
		for _, node := range []*etcd.Coordinator{cut, direct} {
			if got := value(t, node, "x"); got != "meanwhile" {
				t.Errorf("%s: got %q", who, got)
			}
		}
	}
}

// Ensure that calls fail within their deadlines as long as there is no majority, that those
// without a deadline fail after Timeout, and that all go on when it is back.
func TestFaults_MajorityLostAndBack(t *testing.T) {
	long(t)
	t.Parallel()
	c := startCell(t, 3, nil)
	node := c.open(t)
	commitAnyway(t, node, "x", "1")
	c.stop(1)
	c.stop(2)
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := node.Read(ctx, "x"); !errors.Is(err, cluster.ErrNoMajority) {
			t.Errorf("read %d: got %v", i, err)
		}
		cancel()
	}
	brief := open(t, etcd.Config{Endpoints: c.endpoints(), Timeout: 300 * time.Millisecond})
	if _, err := brief.Read(t.Context(), "x"); !errors.Is(err, cluster.ErrNoMajority) {
		t.Errorf("without a deadline: got %v", err)
	}
	waiting := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := node.Read(ctx, "x")
		waiting <- err
	}()
	c.start(1)
	if err := <-waiting; err != nil {
		t.Errorf("a read that waited: %v", err)
	}
	c.start(2)
	if got := value(t, node, "x"); got != "1" {
		t.Errorf("got %q", got)
	}
	commitAnyway(t, node, "x", "2")
	if now := value(t, node, "x"); now != "2" {
		t.Errorf("got %q", now)
	}
}

// Ensure that connections that are cut in the middle of requests cost no number, and give none
// twice.
func TestFaults_CutInTheMiddle(t *testing.T) {
	t.Parallel()
	c := startCell(t, 1, nil)
	coordinators := []*etcd.Coordinator{c.open(t), c.open(t), c.open(t)}
	cuts := 0
	l := newLedger()
	for more, rounds := jaytest.Patience(), 0; cuts < 3 && !t.Failed() && (rounds < 20 || more(false)); rounds++ {
		l.run(t, coordinators, 16, 12, func(finished func() bool) {
			for i := 0; !finished(); i++ {
				before := l.len()
				c.eventually("another number", func() bool { return l.len() > before || finished() })
				cuts += c.clients[i%len(c.clients)].cut()
			}
		})
	}
	if cuts < 3 {
		t.Errorf("%d connections were cut: the test has shown nothing", cuts)
	}
	t.Logf("%d connections were cut", cuts)
}

// Ensure that a commit without a condition is never carried out twice, however its connection
// is cut: it has happened if it succeeded, maybe if its outcome is unknown, and otherwise not.
func TestFaults_OnceAtMost(t *testing.T) {
	t.Parallel()
	c := startCell(t, 1, nil)
	raw := rawClient(t, "http://"+c.members[0].ClientAddress(), "", "")
	const callers, each = 8, 30 // and more until an outcome was unknown
	outcomes := make([]map[string]error, callers)
	var group sync.WaitGroup
	var finished, made, lost atomic.Int64
	ctx, more := within(t), jaytest.Patience()
	for i := range callers {
		node := c.open(t)
		outcomes[i] = make(map[string]error)
		group.Go(func() {
			defer finished.Add(1)
			for n := 0; n < each || more(lost.Load() > 0); n++ {
				key := fmt.Sprintf("%d/%d", i, n)
				_, err := node.Commit(ctx, nil, []cluster.Change{put(key, "x")})
				outcomes[i][key] = err
				made.Add(1)
				if errors.Is(err, cluster.ErrUnknownOutcome) {
					lost.Add(1)
				}
			}
		})
	}
	for i, last := 0, int64(-1); finished.Load() < callers; i++ {
		c.eventually("another commit", func() bool { return made.Load() > last || finished.Load() == callers })
		last = made.Load()
		c.clients[i%len(c.clients)].cut()
	}
	group.Wait()
	unknown := 0
	for _, list := range outcomes {
		for key, outcome := range list {
			found, err := raw.Get(within(t), "test/"+t.Name()+"/r/"+key)
			if err != nil {
				t.Fatal(err)
			}
			times := int64(0)
			if len(found.Kvs) > 0 {
				times = found.Kvs[0].Version
			}
			switch {
			case outcome == nil && times != 1:
				t.Errorf("%s has succeeded, and happened %d times", key, times)
			case errors.Is(outcome, cluster.ErrUnknownOutcome):
				unknown++
				if times > 1 {
					t.Errorf("%s happened %d times", key, times)
				}
			case outcome != nil:
				t.Errorf("%s: %v", key, outcome)
			}
		}
	}
	if unknown == 0 {
		t.Error("no outcome was unknown: the test has shown nothing")
	}
	t.Logf("%d of %d outcomes were unknown", unknown, made.Load())
}

// Ensure that a member that accepts connections and answers nothing, as behind a firewall that
// drops packets, delays calls and does not stop them.
func TestFaults_SilentMember(t *testing.T) {
	long(t)
	t.Parallel()
	c := startCell(t, 3, nil)
	c.clients[0].set(func() { c.clients[0].silent = true })
	node := c.open(t)
	for i := range 6 {
		commitAnyway(t, node, "x", fmt.Sprint(i))
	}
	if got := value(t, node, "x"); got != "5" {
		t.Errorf("got %q", got)
	}
	only := c.open(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := only.Commit(ctx, nil, []cluster.Change{put("x", "6")})
	if !errors.Is(err, cluster.ErrNoMajority) || errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("a commit that could not be sent: got %v", err)
	}
	c.mend()
	if got := value(t, only, "x"); got != "5" {
		t.Errorf("got %q", got)
	}
}
