//go:build unix

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// isLong skips a test that takes a minute, or needs what install.sh installs.
func isLong(t *testing.T) {
	t.Helper()
	if os.Getenv("JAY_CLUSTER") == "" {
		t.Skip("takes long, and needs etcd; make cluster runs it")
	}
}

// rounds is how often the faults come, one after the other.
func rounds(t *testing.T) int {
	text := os.Getenv("JAY_CLUSTER_ROUNDS")
	if text == "" {
		return 1
	}
	var n int
	if _, err := fmt.Sscan(text, &n); err != nil || n < 1 {
		t.Fatalf("JAY_CLUSTER_ROUNDS is %q, want a number above 0", text)
	}
	return n
}

// embeddedMembers are members that run in this process.
type embeddedMembers struct {
	t       *testing.T
	configs []embedded.Config
	running []*embedded.Member // nil for one that is stopped
}

// startEmbedded starts three members.
func startEmbedded(t *testing.T) *embeddedMembers {
	t.Helper()
	m := &embeddedMembers{t: t, running: make([]*embedded.Member, 3)}
	peers := make(map[string]string)
	ports := freePorts(t, 2*len(m.running))
	for i := range m.running {
		c := embedded.Config{
			Name: fmt.Sprint("m", i+1), Dir: filepath.Join(t.TempDir(), "etcd"),
			ClientURL: "http://127.0.0.1:" + ports[2*i], PeerURL: "http://127.0.0.1:" + ports[2*i+1], UnsafeNoSync: true, // a member never loses its machine here
		}
		peers[c.Name] = c.PeerURL
		m.configs = append(m.configs, c)
	}
	for i := range m.configs {
		m.configs[i].Peers = peers
		m.start(i)
	}
	t.Cleanup(func() {
		for i := range m.running {
			m.stop(i)
		}
	})
	return m
}

func (m *embeddedMembers) urls() (urls []string) {
	for _, c := range m.configs {
		urls = append(urls, c.ClientURL)
	}
	return urls
}

func (m *embeddedMembers) start(i int) {
	m.t.Helper()
	member, err := embedded.Start(m.configs[i])
	if err != nil {
		m.t.Fatal(err)
	}
	m.running[i] = member
}

func (m *embeddedMembers) stop(i int) {
	if m.running[i] == nil {
		return
	}
	if err := m.running[i].Close(); err != nil {
		m.t.Errorf("close member %d: %v", i, err)
	}
	m.running[i] = nil
}

// Ensure that 16 clients on three nodes never get an ID twice, that what needs no majority
// never fails, that all they were told is linearizable, and that everything goes on by itself
// behind each fault: of three members that run in this process, and of the lines to them.
func TestEmbedded_Faults(t *testing.T) {
	isLong(t)
	r := newRig(t, startEmbedded(t))
	w := startWorkload(t, r.nodes, time.Second)
	w.agree(r.nodes...)
	for range rounds(t) {
		r.losesLeader(w)
		r.losesReplies(w)
		r.losesNode(w)
		r.losesMajority(w)
		r.jumps(w)
		r.compacts(w)
		r.stops(w)
		r.kills(w)
	}
	w.agree(r.nodes...)
	w.finish()
	for _, n := range r.nodes {
		if err := n.close(); err != nil {
			t.Errorf("close node %s: %v", n.name, err)
		}
	}
}

// step says in the log what comes now.
func (r *rig) step(format string, args ...any) {
	r.t.Helper()
	r.t.Logf("%s "+format, append([]any{time.Now().Format("15:04:05.0")}, args...)...)
}

// losesLeader stops the member that leads: another one takes over.
func (r *rig) losesLeader(w *workload) {
	i := r.leader()
	r.step("the leader, member %d, is stopped", i+1)
	r.members.stop(i)
	w.agree(r.nodes...)
	r.members.start(i)
	w.agree(r.nodes...)
}

// losesReplies cuts connections in the middle of requests and of replies.
func (r *rig) losesReplies(w *workload) {
	r.step("connections are cut in the middle")
	cuts := func() (n int) {
		for _, list := range r.proxies {
			for _, p := range list {
				n += p.cutConnections()
			}
		}
		return n
	}
	before := cuts()
	for i, list := range r.proxies {
		for k, p := range list {
			p.cutInTheMiddle(rand.New(rand.NewPCG(uint64(i), uint64(k))))
		}
	}
	eventually(r.t, "connections that are cut in the middle", func() error {
		if made := cuts() - before; made < 50 && !r.t.Failed() {
			return fmt.Errorf("%d of 50", made)
		}
		return nil
	})
	for _, list := range r.proxies {
		for _, p := range list {
			p.cutInTheMiddle(nil)
		}
	}
	w.agree(r.nodes...)
}

// losesNode cuts one node off, with its connections left open, and then as a machine that
// refuses them.
func (r *rig) losesNode(w *workload) {
	for i, state := range []proxyState{proxySwallows, proxyRefuses} {
		r.step("node %s is cut off", r.nodes[i].name)
		r.line(i, state)
		w.agree(r.nodes[(i+1)%3], r.nodes[(i+2)%3])
		w.goOn(r.nodes[i])
		cutOff(r.t, r.nodes[i])
		r.line(i, proxyForwards)
		w.agree(r.nodes...)
	}
}

// losesMajority stops two members.
func (r *rig) losesMajority(w *workload) {
	down := others(r.leader())
	r.step("two members are stopped")
	for _, i := range down {
		r.members.stop(i)
	}
	w.goOn(r.nodes...)
	cutOff(r.t, r.nodes...)
	r.step("the majority is back")
	for _, i := range down {
		r.members.start(i)
	}
	w.agree(r.nodes...)
}

// jumps moves the clock of one node forward by a day, and back.
func (r *rig) jumps(w *workload) {
	for _, by := range []time.Duration{24 * time.Hour, -48 * time.Hour, 24 * time.Hour} {
		r.step("the clock of node %s jumps by %v", r.nodes[2].name, by)
		r.nodes[2].must(request{Verb: "clock", Duration: by})
		w.agree(r.nodes...)
		w.goOn(r.nodes...)
	}
}

// compacts compacts and defragments etcd.
func (r *rig) compacts(w *workload) {
	r.step("etcd is compacted")
	for range 3 {
		within(r.t, "compact", func(ctx context.Context) error { return compact(ctx, r.client, r.members.urls()) })
		w.agree(r.nodes...)
	}
}

// compact removes all old revisions, and frees their room.
func compact(ctx context.Context, c *clientv3.Client, urls []string) error {
	now, err := c.Get(ctx, "now")
	if err != nil {
		return err
	}
	if _, err := c.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // there was no write since
		return err
	}
	for _, url := range urls {
		if _, err := c.Defragment(ctx, url); err != nil {
			return err
		}
	}
	return nil
}

// stops stops the process of a node for three periods of its heartbeat, and continues it.
func (r *rig) stops(w *workload) {
	n := r.nodes[1]
	r.step("the process of node %s is stopped", n.name)
	n.stop()
	time.Sleep(3 * period) // the fault itself: nothing is waited for
	w.agree(r.nodes[0], r.nodes[2])
	r.step("it goes on")
	n.carryOn()
	w.agree(r.nodes...)
	w.goOn(n)
}

// kills kills the process of a node, and starts it again.
func (r *rig) kills(w *workload) {
	n := r.nodes[0]
	r.step("the process of node %s is killed", n.name)
	n.kill()
	w.agree(r.nodes[1], r.nodes[2])
	if err := n.start(); err != nil {
		r.t.Fatalf("start node %s after a kill: %v", n.name, err)
	}
	w.agree(r.nodes...)
}

// Ensure that a full quota of etcd is an error that says so, that everything else goes on,
// and that identities do when there is room again.
func TestEtcd_Quota(t *testing.T) {
	isLong(t)
	members := newMembers(t, []string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, nil, "--quota-backend-bytes", "4194304")
	for _, m := range members {
		m.start()
	}
	r := newRig(t, processes(members))
	agrees(t, r.nodes...)
	within(t, "fill etcd", func(ctx context.Context) error {
		for i := range 1000 {
			if _, err := r.client.Put(ctx, fmt.Sprint("ballast/", i), strings.Repeat("x", 256<<10)); err != nil {
				if strings.Contains(err.Error(), "database space exceeded") {
					return nil
				}
				return err
			}
		}
		return errors.New("there is no end of it")
	})
	for _, n := range r.nodes {
		for _, q := range []request{{Verb: "next", ID: "probes|"}, {Verb: "exchange", ID: "probe/" + n.name, Value: "x"}} {
			q.Within = 5 * time.Second
			if out, err := n.call(q); err != nil || out.Kind != kindQuota {
				t.Errorf("node %s with a full etcd: %s: got %q (%s), %v, want %q", n.name, q.Verb, out.Kind, out.Error, err, kindQuota)
			}
		}
		n.must(request{Verb: "store", Value: `{}`})
		n.must(request{Verb: "put", ID: "logs/", Value: `{}`})
	}
	within(t, "make room", func(ctx context.Context) error {
		if _, err := r.client.Delete(ctx, "ballast/", clientv3.WithPrefix()); err != nil {
			return err
		}
		return compact(ctx, r.client, r.members.urls())
	})
	// A member that has met the quota late raises its alarm again: it is ended until all agree.
	ctx, cancel := context.WithCancel(t.Context())
	var disarming sync.WaitGroup
	disarming.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			_, _ = r.client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		}
	})
	agrees(t, r.nodes...)
	cancel()
	disarming.Wait()
}

// Ensure that a copy of a directory cannot be started beside its original; that one which was
// started while the original was stopped is found, so that both stop making IDs with the tag,
// and nothing else; and that a tag for the copy, and Resolve, end that.
func TestCopies(t *testing.T) {
	isLong(t)
	r := newRig(t, startEmbedded(t))
	original := r.nodes[0]
	agrees(t, original)
	first := original.must(request{Verb: "store", Value: `{}`}).ID

	original.stop()
	config := original.config
	config.Dir = filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", original.config.Dir, config.Dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	original.carryOn()
	agrees(t, original)
	if _, err := startNode(t, "copy", config); !isKind(err, kindTag) {
		t.Fatalf("start a copy beside its original: got %v, want %q", err, kindTag)
	}
	agrees(t, original)

	original.stop()
	var twin *node
	eventually(t, "a copy that is started while the original is stopped", func() (err error) {
		twin, err = startNode(t, "copy", config)
		return err
	})
	agrees(t, twin)
	twin.must(request{Verb: "store", Value: `{}`})
	original.carryOn()
	for _, n := range []*node{original, twin} {
		for _, q := range []request{{Verb: "store", Value: `{}`}, {Verb: "put", ID: "logs/", Value: `{}`}} {
			eventually(t, "node "+n.name+" finds the other copy", func() error {
				if out, err := n.call(q); err != nil || out.Kind != kindTag {
					return fmt.Errorf("%s: got %q (%s), %v, want %q", q.Verb, out.Kind, out.Error, err, kindTag)
				}
				return nil
			})
		}
		n.must(request{Verb: "put", ID: "semantic/" + n.name, Value: `{}`})
		n.must(request{Verb: "put", Value: `{}`})
		n.must(request{Verb: "put", ID: "probes|", Value: `{}`}) // its number is from the majority
		if ids := n.must(request{Verb: "documents"}).IDs; !contains(ids, first) {
			t.Errorf("node %s does not read %s", n.name, first)
		}
	}

	if err := twin.close(); err != nil {
		t.Errorf("close the copy: %v", err)
	}
	twin.config.NodeTag, twin.config.CopyTag = "", "D"
	if err := twin.start(); err != nil {
		t.Fatalf("start the copy under a tag of its own: %v", err)
	}
	c, err := etcd.Open(etcd.Config{Endpoints: r.members.urls(), Prefix: config.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	within(t, "resolve", func(ctx context.Context) error {
		_, err := cluster.Resolve(ctx, c, "A")
		return err
	})
	for _, n := range []*node{original, twin} {
		eventually(t, "node "+n.name+" makes IDs again", func() error { return succeeds(n, request{Verb: "store", Value: `{}`}) })
	}
	agrees(t, original)
	if a, d := original.must(request{Verb: "store", Value: `{}`}).ID, twin.must(request{Verb: "store", Value: `{}`}).ID; !strings.HasSuffix(a, "-A") || !strings.HasSuffix(d, "-D") {
		t.Errorf("IDs of the original and of its copy: got %s and %s", a, d)
	}
}

func isKind(err error, kind string) bool {
	is, ok := errors.AsType[*nodeError](err)
	return ok && is.kind == kind
}

func contains(list []string, text string) bool {
	for _, one := range list {
		if one == text {
			return true
		}
	}
	return false
}
