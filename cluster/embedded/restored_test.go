package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// single is a member of etcd that is a cluster by itself. Nodes reach it behind a proxy, also
// after it was stopped and started again.
type single struct {
	t      *testing.T
	base   string // directory of all its files
	proxy  *proxy
	config embedded.Config
	member *embedded.Member
}

func newSingle(t *testing.T) *single {
	s := &single{t: t, base: t.TempDir(), proxy: newProxy(t)}
	s.config = embedded.Config{Name: "a", Dir: filepath.Join(s.base, "data"), ClientURL: s.proxy.url(), ListenClient: "127.0.0.1:0", PeerURL: "http://127.0.0.1:0", UnsafeNoSync: true, Logger: testLogger()}
	return s
}

func (s *single) where() etcd.Config { return etcd.Config{Endpoints: []string{s.proxy.url()}} }

func (s *single) start() {
	s.t.Helper()
	m, err := embedded.Start(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := m.Ready(within(s.t)); err != nil {
		s.t.Fatal(err)
	}
	s.member = m
	s.proxy.set(func() { s.proxy.target = m.ClientAddress() })
}

func (s *single) stop() {
	s.t.Helper()
	if err := s.member.Close(); err != nil {
		s.t.Error(err)
	}
}

// backUp copies the directory of the stopped member.
func (s *single) backUp() {
	s.t.Helper()
	if err := os.CopyFS(filepath.Join(s.base, "backup"), os.DirFS(s.config.Dir)); err != nil {
		s.t.Fatal(err)
	}
}

// restore makes the copy the directory of the next start.
func (s *single) restore() { s.config.Dir = filepath.Join(s.base, "backup") }

// Ensure that an etcd that was set back while a node runs is refused, that nothing is
// committed to it, and that it goes on once it was accepted: with indexes above all that there were.
func TestRestored(t *testing.T) {
	t.Parallel()
	s := newSingle(t)
	where := s.where()
	node := open(t, where)

	s.start()
	commit(t, node, nil, put("counter", "1"))
	s.stop()
	s.backUp()
	s.start()
	var last uint64
	for i := range 20 {
		last = commit(t, node, nil, put("counter", fmt.Sprint(i)))
	}
	s.stop()
	s.restore()
	s.start()
	defer s.stop()

	if _, err := node.Read(within(t), "counter"); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("a node that has seen later revisions: got %v", err)
	}
	_, err := node.Commit(within(t), []cluster.Condition{{Key: "counter", Index: last}}, []cluster.Change{put("counter", "21")})
	if !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("a commit: got %v", err)
	}

	failed := errors.New("not now")
	if err := etcd.Accept(within(t), where, func(context.Context, cluster.Coordinator) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	err = etcd.Accept(within(t), where, func(ctx context.Context, c cluster.Coordinator) error {
		found, err := c.Read(ctx, "counter")
		if err != nil {
			return err
		}
		if string(found[0].Value) != "1" || found[0].Index <= last {
			t.Errorf("got %q with index %d, want one above %d", found[0].Value, found[0].Index, last)
		}
		stale, err := c.Commit(ctx, []cluster.Condition{{Key: "counter", Index: last}}, []cluster.Change{put("counter", "stale")})
		if err != nil || stale.Committed() {
			t.Errorf("an index of before: %+v, %v", stale, err)
		}
		done, err := c.Commit(ctx, []cluster.Condition{{Key: "counter", Index: found[0].Index}}, []cluster.Change{put("counter", "1000")})
		if err != nil || !done.Committed() || done.Index <= found[0].Index {
			t.Errorf("got %+v, %v", done, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, where)
	if got := value(t, again, "counter"); got != "1000" {
		t.Errorf("got %q", got)
	}
	if index := commit(t, again, nil, put("counter", "1001")); index <= last {
		t.Errorf("index %d after %d", index, last)
	}
	if err := etcd.Accept(within(t), etcd.Config{Endpoints: where.Endpoints, Prefix: "empty/"}, func(context.Context, cluster.Coordinator) error { return nil }); !errors.Is(err, cluster.ErrUsage) {
		t.Errorf("nothing to accept: got %v", err)
	}
}

// Ensure that an etcd that was set back while all databases were closed, with the ID that
// it had, is refused when one is opened, also by one whose record it has forgotten; and
// that both go on, under their tags, when it was accepted.
func TestRestored_Closed(t *testing.T) {
	t.Parallel()
	s := newSingle(t)
	where := s.where()
	with := func(c cluster.Coordinator, tag string, fn func(db *jay.DB)) error {
		db, err := whenReached(t, func() (*jay.DB, error) {
			return jay.Open(filepath.Join(s.base, tag), &jay.Options{Cluster: c, NodeTag: tag, ClusterPeriod: 200 * time.Millisecond})
		})
		if err != nil {
			return err
		}
		fn(db)
		return db.Close()
	}
	insert := func(tag, want string) {
		t.Helper()
		err := with(open(t, where), tag, func(db *jay.DB) {
			m, err := db.Put(within(t), "users|", []byte(`{}`))
			if err != nil || m.ID != want {
				t.Errorf("node %s: got %q, %v, want %q", tag, m.ID, err, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	s.start()
	insert("A", "users/1")
	s.stop()
	s.backUp()
	s.start()
	insert("B", "users/2")
	insert("A", "users/3")
	s.stop()
	s.restore()
	s.start()
	defer s.stop()
	for range 3 {
		for _, tag := range []string{"A", "B"} {
			if err := with(open(t, where), tag, func(*jay.DB) {}); !errors.Is(err, jay.ErrClusterRestored) {
				t.Fatalf("node %s: got %v", tag, err)
			}
		}
	}
	err := etcd.Accept(within(t), where, func(ctx context.Context, c cluster.Coordinator) error {
		return with(c, "A", func(db *jay.DB) {
			if _, err := db.SeedIdentity(ctx, "users", 3, false); err != nil {
				t.Error(err)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	insert("B", "users/4")
	insert("A", "users/5")
}

// Ensure that reads of one moment survive a compaction at any time: a writer changes all records
// in each commit, and compacts all that was before.
func TestCompaction(t *testing.T) {
	t.Parallel()
	member := alone(t, nil)
	writer, reader := open(t, etcd.Config{Endpoints: []string{member.ClientURL()}}), open(t, etcd.Config{Endpoints: []string{member.ClientURL()}})
	raw := rawClient(t, member.ClientURL(), "", "")
	const records, of = 120, 100
	var keys []string
	for i := range records {
		keys = append(keys, fmt.Sprintf("r%03d", i))
	}
	ctx := within(t)
	change := func(n int) error {
		var changes []cluster.Change
		for _, key := range keys {
			changes = append(changes, put(key, strings.Repeat(fmt.Sprintf("%04d", n), 4<<10/4)))
		}
		_, err := writer.Commit(ctx, nil, changes)
		if err != nil {
			return err
		}
		now, err := raw.Get(ctx, "x")
		if err != nil {
			return err
		}
		_, err = raw.Compact(ctx, now.Header.Revision)
		return err
	}
	if err := change(0); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for n := 1; n < of && err == nil; n++ {
			err = change(n)
		}
		done <- err
	}()
	// More keys than one request reads, so that the second one asks for an old revision.
	double := append(append([]string{}, keys...), keys...)
	for finished := false; !finished; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			finished = true
		default:
		}
		for what, read := range map[string]func() ([]cluster.Record, error){
			"Read": func() ([]cluster.Record, error) { return reader.Read(ctx, double...) },
			"Page": func() ([]cluster.Record, error) { return reader.Page(ctx, "r", "", cluster.MaxPage) },
		} {
			found, err := read()
			if err != nil || len(found) == 0 {
				t.Fatalf("%s: %d records, %v", what, len(found), err)
			}
			for _, r := range found {
				if r.Index != found[0].Index || string(r.Value) != string(found[0].Value) {
					t.Fatalf("%s shows %.4q and %.4q", what, found[0].Value, r.Value)
				}
			}
		}
	}
}
