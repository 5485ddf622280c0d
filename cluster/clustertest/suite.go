package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/cluster"
)

// Setup connects one test to the coordinator under test, which begins without records.
type Setup struct {
	// Connect returns the Coordinator of another node. Run closes it.
	Connect func(t *testing.T) cluster.Coordinator

	// LoseMajority takes the majority away from all nodes, and RestoreMajority gives it
	// back. Each returns when the change is effective. If they are nil, the tests that
	// need them are skipped.
	LoseMajority, RestoreMajority func(t *testing.T)

	// Patience bounds the calls that should succeed; 0 means 30 seconds.
	Patience time.Duration
}

// Run checks that a coordinator keeps the contract of cluster.Coordinator. It calls setup
// once for each test.
func Run(t *testing.T, setup func(t *testing.T) Setup) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"Read", testRead},
		{"Conditions", testConditions},
		{"Index", testIndex},
		{"Page", testPage},
		{"Bounds", testBounds},
		{"Race", testRace},
		{"Moment", testMoment},
		{"Close", testClose},
		{"NoMajority", testNoMajority},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &suite{Setup: setup(t)}
			if s.Patience == 0 {
				s.Patience = 30 * time.Second
			}
			test.run(t, s)
		})
	}
}

type suite struct{ Setup }

func (s *suite) connect(t *testing.T) *node {
	t.Helper()
	c := s.Connect(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	t.Cleanup(cancel)
	return &node{c, ctx, t}
}

// node is a Coordinator whose calls must succeed.
type node struct {
	cluster.Coordinator
	ctx context.Context
	t   *testing.T
}

func (n *node) read(keys ...string) []cluster.Record {
	n.t.Helper()
	found, err := n.Read(n.ctx, keys...)
	if err != nil {
		n.t.Fatalf("Read %q: %v", keys, err)
	}
	if len(found) != len(keys) {
		n.t.Fatalf("Read %q: %d records", keys, len(found))
	}
	return found
}

func (n *node) commit(conditions []cluster.Condition, changes ...cluster.Change) cluster.Result {
	n.t.Helper()
	result, err := n.Commit(n.ctx, conditions, changes)
	if err != nil {
		n.t.Fatalf("Commit: %v", err)
	}
	if result.Committed() != (result.Actual == nil) {
		n.t.Fatalf("Commit: index %d with %d records", result.Index, len(result.Actual))
	}
	return result
}

func (n *node) page(prefix, after string, limit int) string {
	n.t.Helper()
	found, err := n.Page(n.ctx, prefix, after, limit)
	if err != nil {
		n.t.Fatalf("Page %q: %v", prefix, err)
	}
	var keys []string
	for _, r := range found {
		keys = append(keys, r.Key+"="+string(r.Value))
	}
	return strings.Join(keys, " ")
}

func put(key, value string) cluster.Change {
	return cluster.Change{Key: key, Value: []byte(value)}
}

func when(key string, index uint64) []cluster.Condition {
	return []cluster.Condition{{Key: key, Index: index}}
}

// Ensure that a node reads what another one has committed, in the order asked for, and
// owns it.
func testRead(t *testing.T, s *suite) {
	a, b := s.connect(t), s.connect(t)
	if found := a.read("x", "y"); found[0].Index != 0 || found[0].Value != nil || found[0].Key != "x" || found[1].Key != "y" {
		t.Fatalf("without records: %v", found)
	}
	index := a.commit(nil, put("y", "1"), put("x", ""), put("ü/\"|", "3")).Index
	found := b.read("x", "missing", "y", "ü/\"|", "x")
	for i, want := range []string{"", "", "1", "3", ""} {
		if string(found[i].Value) != want || (found[i].Index == index) != (i != 1) {
			t.Errorf("record %d: %+v, want %q and index %d", i, found[i], want, index)
		}
	}
	found[2].Value[0] = 'X'
	if found := b.read("y"); string(found[0].Value) != "1" {
		t.Errorf("a caller's change of what it was given is shown to others: %s", found[0].Value)
	}
	if got := b.read(); len(got) != 0 {
		t.Errorf("nothing: %v", got)
	}
	value := []byte("before")
	a.commit(nil, cluster.Change{Key: "z", Value: value})
	copy(value, "after!")
	if found := b.read("z"); string(found[0].Value) != "before" {
		t.Errorf("the caller's memory was kept: %s", found[0].Value)
	}
}

// Ensure that all changes are made if all conditions hold, and none if one does not.
func testConditions(t *testing.T, s *suite) {
	a, b := s.connect(t), s.connect(t)
	first := a.commit(when("a", 0), put("a", "1"), put("b", "1"))
	if !first.Committed() {
		t.Fatal("a record that is not there has index 0")
	}
	refused := b.commit([]cluster.Condition{{Key: "b", Index: first.Index}, {Key: "a"}, {Key: "c"}}, put("b", "2"), put("c", "2"), cluster.Change{Key: "a", Delete: true})
	if refused.Committed() {
		t.Fatal("committed though a condition does not hold")
	}
	for i, want := range []string{"b=1", "a=1", "c="} {
		r := refused.Actual[i]
		if got := r.Key + "=" + string(r.Value); got != want || (r.Index == first.Index) != (r.Key != "c") {
			t.Errorf("actual record %d: %s with index %d, want %s", i, got, r.Index, want)
		}
	}
	if got := b.page("", "", 10); got != "a=1 b=1" {
		t.Fatalf("a refused commit has changed: %s", got)
	}
	second := b.commit([]cluster.Condition{{Key: "b", Index: first.Index}, {Key: "a", Index: first.Index}, {Key: "c"}}, cluster.Change{Key: "a", Delete: true}, put("c", "2"))
	if !second.Committed() || second.Index <= first.Index {
		t.Fatalf("got index %d after %d", second.Index, first.Index)
	}
	if got := a.page("", "", 10); got != "b=1 c=2" {
		t.Fatalf("got %s", got)
	}
	if compared := a.commit(when("c", second.Index)); !compared.Committed() {
		t.Error("a commit without changes compares")
	}
	if compared := a.commit(when("c", first.Index)); compared.Committed() {
		t.Error("a commit without changes compares")
	}
	if gone := a.commit(when("a", first.Index), put("a", "3")); gone.Committed() {
		t.Error("a deleted record has its index no more")
	}
	if !a.commit(nil, cluster.Change{Key: "a", Delete: true}, cluster.Change{Key: "never", Delete: true}).Committed() {
		t.Error("to delete what is not there does nothing")
	}
}

// Ensure that no index comes twice, for a key or for another, also after deletions.
func testIndex(t *testing.T, s *suite) {
	a, b := s.connect(t), s.connect(t)
	last := uint64(0)
	for i := range 20 {
		n, key := a, fmt.Sprint("key", i%3)
		if i%2 == 1 {
			n = b
		}
		index := n.commit(nil, put(key, "x"), put("same", "value")).Index
		if index <= last {
			t.Fatalf("index %d after %d", index, last)
		}
		if got := n.read(key)[0].Index; got != index {
			t.Fatalf("index %d was committed, %d is read", index, got)
		}
		last = index
		if i%4 == 3 {
			b.commit(nil, cluster.Change{Key: "same", Delete: true}, cluster.Change{Key: key, Delete: true})
		}
	}
}

// Ensure that pages are in the order of keys, within their prefix and limit.
func testPage(t *testing.T, s *suite) {
	a, b := s.connect(t), s.connect(t)
	a.commit(nil, put("p", "0"), put("p/", "1"), put("p/b", "2"), put("p/a", "3"), put("p/a/z", "4"), put("p0", "5"), put("o", "6"), put("p/ü", "7"))
	for _, row := range []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"p/", "", 10, "p/=1 p/a=3 p/a/z=4 p/b=2 p/ü=7"},
		{"p/", "", 2, "p/=1 p/a=3"},
		{"p/", "p/a", 2, "p/a/z=4 p/b=2"},
		{"p/", "p/a0", 2, "p/b=2 p/ü=7"},
		{"p/", "o", 1, "p/=1"},
		{"p/", "p/ü", 2, ""},
		{"p/", "q", 2, ""},
		{"q", "", 2, ""},
		{"", "", 2, "o=6 p=0"},
		{"p", "p/ü", 1024, "p0=5"},
	} {
		if got := b.page(row.prefix, row.after, row.limit); got != row.want {
			t.Errorf("%q after %q, %d: got %s, want %s", row.prefix, row.after, row.limit, got, row.want)
		}
	}
	// More than fit into one answer.
	large := strings.Repeat("x", cluster.MaxValueBytes)
	for i := range 6 {
		a.commit(nil, put(fmt.Sprint("large/", i), large))
	}
	after, n := "", 0
	for {
		found, err := b.Page(b.ctx, "large/", after, cluster.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			break
		}
		n += len(found)
		after = found[len(found)-1].Key
	}
	if n != 6 {
		t.Errorf("got %d large records, want 6", n)
	}
}

// Ensure that bad calls change nothing and have the errors that are documented, and that
// what must be taken is taken.
func testBounds(t *testing.T, s *suite) {
	a := s.connect(t)
	for name, want := range map[string]error{
		"": cluster.ErrUsage,
		strings.Repeat("k", cluster.MaxKeyBytes+1): cluster.ErrUsage,
		"a\x00b": cluster.ErrUsage,
		"a\x7fb": cluster.ErrUsage,
		"\xff":   cluster.ErrUsage,
	} {
		if _, err := a.Read(a.ctx, name); !errors.Is(err, want) {
			t.Errorf("Read of %.20q: got %v", name, err)
		}
		if _, err := a.Commit(a.ctx, when(name, 0), nil); !errors.Is(err, want) {
			t.Errorf("condition on %.20q: got %v", name, err)
		}
		if _, err := a.Commit(a.ctx, nil, []cluster.Change{put("fine", ""), put(name, "")}); !errors.Is(err, want) {
			t.Errorf("change of %.20q: got %v", name, err)
		}
	}
	for _, limit := range []int{0, -1, cluster.MaxPage + 1} {
		if _, err := a.Page(a.ctx, "", "", limit); !errors.Is(err, cluster.ErrUsage) {
			t.Errorf("page of %d: got %v", limit, err)
		}
	}
	if _, err := a.Commit(a.ctx, []cluster.Condition{{Key: "x"}, {Key: "x"}}, nil); !errors.Is(err, cluster.ErrUsage) {
		t.Errorf("compared twice: got %v", err)
	}
	if _, err := a.Commit(a.ctx, nil, []cluster.Change{put("x", "1"), {Key: "x", Delete: true}}); !errors.Is(err, cluster.ErrUsage) {
		t.Errorf("changed twice: got %v", err)
	}
	if _, err := a.Commit(a.ctx, nil, []cluster.Change{put("x", strings.Repeat("v", cluster.MaxValueBytes+1))}); !errors.Is(err, cluster.ErrTooLarge) {
		t.Errorf("a value that is too large: got %v", err)
	}
	if got := a.page("", "", 10); got != "" {
		t.Fatalf("refused calls have changed: %.200s", got)
	}

	var conditions []cluster.Condition
	var changes []cluster.Change
	for i := range cluster.MinTransaction {
		key := fmt.Sprintf("many/%03d/%s", i, strings.Repeat("k", 500))
		conditions = append(conditions, cluster.Condition{Key: key})
		changes = append(changes, put(key, fmt.Sprint(i)))
	}
	if !a.commit(conditions, changes...).Committed() {
		t.Error("the conditions hold")
	}
	if again := a.commit(conditions, changes...); again.Committed() || len(again.Actual) != len(conditions) || string(again.Actual[77].Value) != "77" {
		t.Error("the conditions do not hold any more")
	}
	value := bytes.Repeat([]byte{0, 0xff, '"', '\\'}, cluster.MaxValueBytes/4)
	long := strings.Repeat("k", cluster.MaxKeyBytes)
	if !a.commit(when(long, 0), cluster.Change{Key: long, Value: value}).Committed() {
		t.Error("the condition holds")
	}
	if got := a.read(long)[0].Value; !bytes.Equal(got, value) {
		t.Error("a large value has changed")
	}
}

// Ensure that of concurrent commits on the same record exactly one succeeds.
func testRace(t *testing.T, s *suite) {
	const callers, rounds = 6, 10
	setup := s.connect(t)
	var group sync.WaitGroup
	for i := range callers {
		n := s.connect(t)
		group.Go(func() {
			for range rounds {
				for {
					now, err := n.Read(n.ctx, "counter")
					if err != nil {
						t.Errorf("caller %d: %v", i, err)
						return
					}
					result, err := n.Commit(n.ctx, when("counter", now[0].Index), []cluster.Change{put("counter", string(now[0].Value)+"+")})
					if err != nil {
						t.Errorf("caller %d: %v", i, err)
						return
					}
					if result.Committed() {
						break
					}
					if result.Actual[0].Index == now[0].Index {
						t.Errorf("caller %d: refused, though the index is %d", i, now[0].Index)
						return
					}
				}
			}
		})
	}
	group.Wait()
	if got := len(setup.read("counter")[0].Value); got != callers*rounds {
		t.Errorf("%d commits have succeeded, %d are there", callers*rounds, got)
	}
}

// Ensure that a read and a page show one moment: a writer keeps two records equal.
func testMoment(t *testing.T, s *suite) {
	writer, reader := s.connect(t), s.connect(t)
	writer.commit(nil, put("m/a", "0"), put("m/b", "0"))
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for i := range 50 {
			if _, err := writer.Commit(writer.ctx, nil, []cluster.Change{put("m/a", fmt.Sprint(i)), put("m/b", fmt.Sprint(i))}); err != nil {
				t.Errorf("Commit: %v", err)
				return
			}
		}
	})
	for range 50 {
		if found := reader.read("m/b", "m/a"); string(found[0].Value) != string(found[1].Value) {
			t.Fatalf("Read shows %s and %s", found[0].Value, found[1].Value)
		}
		found, err := reader.Page(reader.ctx, "m/", "", 2)
		if err != nil || len(found) != 2 || string(found[0].Value) != string(found[1].Value) {
			t.Fatalf("Page shows %v, %v", found, err)
		}
	}
}

// Ensure that Close ends what waits, can be repeated, and that later calls say so.
func testClose(t *testing.T, s *suite) {
	c := s.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	defer cancel()
	if _, err := c.Commit(ctx, nil, []cluster.Change{put("x", "1")}); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	if s.LoseMajority != nil {
		s.LoseMajority(t)
		go func() {
			_, err := c.Read(ctx, "x")
			waiting <- err
		}()
	} else {
		waiting <- cluster.ErrClosed
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := <-waiting; !errors.Is(err, cluster.ErrClosed) && !errors.Is(err, cluster.ErrNoMajority) {
		t.Errorf("a call that waits at Close: got %v", err)
	}
	_, read := c.Read(ctx, "x")
	_, paged := c.Page(ctx, "x", "", 1)
	_, committed := c.Commit(ctx, nil, []cluster.Change{put("x", "2")})
	for _, err := range []error{read, paged, committed} {
		if !errors.Is(err, cluster.ErrClosed) || errors.Is(err, cluster.ErrUnknownOutcome) {
			t.Errorf("after Close: got %v", err)
		}
	}
}

// Ensure that calls without a majority end with their context, with the errors that are
// documented, that no call comes to hang, and that they succeed when the majority is back:
// those that wait, and later ones of the same Coordinator.
func testNoMajority(t *testing.T, s *suite) {
	if s.LoseMajority == nil {
		t.Skip("the setup cannot lose the majority")
	}
	a := s.connect(t)
	index := a.commit(nil, put("x", "before")).Index
	s.LoseMajority(t)
	var made []error
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, read := a.Read(ctx, "x")
		_, paged := a.Page(ctx, "x", "", 1)
		_, committed := a.Commit(ctx, when("x", index), []cluster.Change{put("x", "during")})
		for _, err := range []error{read, paged} {
			if !errors.Is(err, cluster.ErrNoMajority) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a read without a majority: got %v", err)
			}
		}
		if !errors.Is(committed, cluster.ErrNoMajority) && !errors.Is(committed, cluster.ErrUnknownOutcome) || !errors.Is(committed, context.DeadlineExceeded) {
			t.Errorf("a commit without a majority: got %v", committed)
		}
		made = append(made, committed)
		cancel()
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Read(cancelled, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled read: got %v", err)
	}

	type answer struct {
		found []cluster.Record
		err   error
	}
	waiting := make(chan answer, 1)
	go func() {
		found, err := a.Read(a.ctx, "x")
		waiting <- answer{found, err}
	}()
	s.RestoreMajority(t)
	if got := <-waiting; got.err != nil {
		t.Errorf("a read that waited for the majority: %v", got.err)
	}
	// A commit of unknown outcome may happen; one that is ErrNoMajority must not.
	happened := string(a.read("x")[0].Value) == "during"
	sure := !slices.ContainsFunc(made, func(err error) bool { return errors.Is(err, cluster.ErrUnknownOutcome) })
	if happened && sure {
		t.Errorf("commits with %v have happened", made)
	}
	now := a.read("x")[0].Index
	for {
		result := a.commit(when("x", now), put("x", "after"))
		if result.Committed() {
			break
		}
		if sure || result.Actual[0].Index == now {
			t.Fatalf("a commit after the majority was back: %+v", result)
		}
		now = result.Actual[0].Index
	}
	if got := string(s.connect(t).read("x")[0].Value); got != "after" {
		t.Errorf("got %q, want %q", got, "after")
	}
}
