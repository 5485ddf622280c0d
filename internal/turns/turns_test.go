package turns

// In the package, as a test must know who waits, and make turns run out.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var ctx = context.Background()

// forever is a limit that no test reaches.
const forever = time.Hour

// until returns when a condition holds. A hang ends the test.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// length returns how many stand in all lines of a key.
func (l *Lines) length(key Key) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, line := range l.lines {
		if k.Key == key {
			n += len(*line)
		}
	}
	return n
}

// take waits for the turn for some keys.
func take(t *testing.T, c *Caller, keys ...Key) {
	t.Helper()
	takeBriefly(t, c, keys...)
	if !c.Held() {
		t.Fatal("it has no turn")
	}
}

// takeBriefly is take for a turn with a limit, which may have passed by the time that it returns.
func takeBriefly(t *testing.T, c *Caller, keys ...Key) {
	t.Helper()
	if err := c.Wait(ctx, keys, nil); err != nil {
		t.Fatal(err)
	}
}

// waiter is a caller that waits on a goroutine of its own.
type waiter struct {
	*Caller
	has chan error // the result of Wait
}

// wait makes c wait for keys, and returns when it does.
func wait(t *testing.T, ctx context.Context, c *Caller, keys ...Key) waiter {
	t.Helper()
	w := waiter{c, make(chan error, 1)}
	n, old := c.lines.length(keys[0]), c.place
	if c.Held() && slices.ContainsFunc(old.lines, func(k lineKey) bool { return k.Key == keys[0] }) {
		n--
	}
	go func() { w.has <- w.Wait(ctx, keys, nil) }()
	until(t, "it stands in line", func() bool { return (old == nil || old.gone.Load()) && c.lines.length(keys[0]) == n+1 })
	return w
}

// waits fails if w has its turn.
func (w waiter) waits(t *testing.T) {
	t.Helper()
	select {
	case err := <-w.has:
		t.Fatalf("it does not wait: %v", err)
	default:
	}
}

// gets returns when w has its turn.
func (w waiter) gets(t *testing.T) {
	t.Helper()
	select {
	case err := <-w.has:
		if err != nil || !w.Held() {
			t.Fatalf("turn %t, %v", w.Held(), err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits after a minute")
	}
}

// empty fails if anything is left in l.
func empty(t *testing.T, l *Lines) {
	t.Helper()
	if len(l.lines) != 0 || len(l.exclusive) != 0 || l.Len() != 0 || l.Exclusive() || l.ranges.Load() != nil {
		t.Errorf("left: %d lines, %d exclusive, %d places, ranges %v", len(l.lines), len(l.exclusive), l.Len(), l.ranges.Load())
	}
	for i := range l.byID {
		if n := l.byID[i].Load(); n != 0 {
			t.Errorf("filter %d: %d", i, n)
		}
	}
}

func callers(l *Lines, n int) []*Caller {
	all := make([]*Caller, n)
	for i := range all {
		c := l.Caller()
		all[i] = &c
	}
	return all
}

var a, b, c = Document("a"), Document("b"), Document("c")

// Ensure that turns are given in the order of the first losses, and that a caller
// whose context ends loses nothing of others.
func TestLines_Order(t *testing.T) {
	l := &Lines{Limit: forever}
	all := callers(l, 6)
	take(t, all[0], b, a, b)
	ended, cancel := context.WithCancel(ctx)
	var waiters []waiter
	for i := 1; i < 6; i++ {
		of := ctx
		if i == 3 {
			of = ended
		}
		waiters = append(waiters, wait(t, of, all[i], a))
	}
	cancel()
	if err := <-waiters[2].has; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	all[0].Leave()
	for i, w := range waiters {
		if i == 2 {
			continue
		}
		w.gets(t)
		for _, later := range waiters[i+1:] {
			later.waits(t)
		}
		w.Leave()
	}
	all[0].Leave() // again
	if err := all[0].Wait(ended, []Key{a}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	empty(t, l)
}

// Ensure that a caller that loses over another document goes before those that lost
// after its first loss, though it joins their line later.
func TestLines_Age(t *testing.T) {
	l := &Lines{Limit: forever}
	all := callers(l, 4)
	take(t, all[0], a)
	take(t, all[1], b)
	young := wait(t, ctx, all[2], b)
	all[3].ticket = 0
	old := wait(t, ctx, all[0], b) // leaves the turn for a, and wants both
	if !slices.Equal(all[0].lost, []Key{b, a}) {
		t.Errorf("it lost over %v", all[0].lost)
	}
	all[1].Leave()
	old.gets(t)
	young.waits(t)
	if l.length(a) != 1 {
		t.Error("it has no turn for the first document any more")
	}
	old.Leave()
	young.gets(t)
	young.Leave()
	empty(t, l)
}

// Ensure that callers which want several turns at once neither wait for each other
// for ever nor have one of them together.
func TestLines_NoCycles(t *testing.T) {
	l := new(Lines)
	var holders [6]atomic.Int32
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range 100 {
				var keys []Key
				var mine []int
				for _, i := range random.Perm(len(holders))[:1+random.IntN(3)] {
					keys, mine = append(keys, Document(fmt.Sprint(i))), append(mine, i)
				}
				w := l.Worker()
				if err := w.Wait(ctx, keys, nil); err != nil {
					t.Error(err)
				}
				for _, i := range mine {
					if n := holders[i].Add(1); n != 1 {
						t.Errorf("%d have the turn for %d", n, i)
					}
				}
				runtime.Gosched()
				for _, i := range mine {
					holders[i].Add(-1)
				}
				w.Leave()
			}
		})
	}
	all.Wait()
	empty(t, l)
}

// Ensure that a call which may be part of the function that has the turn does not
// wait for it, that such calls go one at a time, and that a call which began before
// the function did waits.
func TestLines_Nested(t *testing.T) {
	l := &Lines{Limit: forever}
	before := callers(l, 2)
	take(t, before[0], a, b)

	during := callers(l, 2)
	if key, met := during[0].Meets(Doc{ID: "a"}); met {
		t.Errorf("it would give way to its own turn: %v", key)
	}
	if _, met := before[1].Meets(Doc{ID: "a"}); !met {
		t.Error("a call that began before would overtake the holder")
	}
	outside := wait(t, ctx, before[1], a)
	take(t, during[0], a)
	second := wait(t, ctx, during[1], b, a)
	within := callers(l, 1)
	take(t, within[0], a) // nested in the nested

	second.waits(t)
	outside.waits(t)
	within[0].Leave()
	during[0].Leave()
	second.gets(t)
	outside.waits(t)
	before[0].Leave()
	outside.gets(t)
	outside.Leave()
	second.Leave()
	empty(t, l)
}

// Ensure that a turn passes to the next caller when it has lasted for its limit, and
// that its holder then goes behind the others.
func TestLines_Limit(t *testing.T) {
	l := &Lines{Limit: forever}
	all := callers(l, 3)
	take(t, all[0], a)
	second, third := wait(t, ctx, all[1], a), wait(t, ctx, all[2], a)
	run := all[0].place.run
	l.expire(all[0].place, run-1) // of a run that is over
	second.waits(t)
	l.expire(all[0].place, run)
	second.gets(t)
	if all[0].Held() {
		t.Error("the turn has passed, and is held")
	}
	hog := wait(t, ctx, all[0], a)
	second.Leave()
	third.gets(t)
	hog.waits(t)
	third.Leave()
	hog.gets(t)
	hog.Leave()
	empty(t, l)

	l.Limit = time.Millisecond
	all = callers(l, 2)
	takeBriefly(t, all[0], a)
	takeBriefly(t, all[1], a) // once the limit has passed
	all[0].Leave()
	all[1].Leave()
	empty(t, l)
}

// Ensure that a worker's turn has no limit, and that nothing is nested in it.
func TestLines_Worker(t *testing.T) {
	l := &Lines{Limit: 1}
	w := l.Worker()
	take(t, &w, a)
	if w.place.timer != nil {
		t.Error("its turn has a limit")
	}
	l.Limit = forever
	other := callers(l, 1)[0]
	next := wait(t, ctx, other, a)
	next.waits(t)
	w.Leave()
	next.gets(t)
	next.Leave()
	empty(t, l)
}

// docs returns a sequence of documents.
func docs(all ...Doc) func(func(Doc) bool) {
	return func(yield func(Doc) bool) {
		for _, d := range all {
			if !yield(d) {
				return
			}
		}
	}
}

// exclusiveForever gives exclusive runs more time than any test takes.
func exclusiveForever(t *testing.T) {
	least := minExclusive
	t.Cleanup(func() { minExclusive = least })
	minExclusive = forever
}

// Ensure that a turn becomes exclusive when its holder has lost two runs: that other
// writers of its documents then wait, and those of other documents do not; and that
// it passes on after a fixed number of runs, so that a function that defeats itself
// does not hold up others.
func TestLines_Exclusive(t *testing.T) {
	exclusiveForever(t)
	l := &Lines{Limit: forever}
	all := callers(l, 2)
	take(t, all[0], a, Range("users", "u"))
	for run := 1; run < MaxRuns; run++ {
		if exclusive := run > maxOvertaken; l.Exclusive() != exclusive {
			t.Errorf("run %d: exclusive %t", run, l.Exclusive())
		}
		place := all[0].place
		take(t, all[0], a) // at once
		if all[0].place != place {
			t.Error("the turn has been left")
		}
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, d := range []Doc{{ID: "a"}, {ID: "u1", Collection: "users"}, {ID: "u1"}} {
		if err := l.Yield(ended, docs(Doc{ID: "z"}, d)); !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not wait: %v", d, err)
		}
	}
	if err := l.Yield(ended, docs(Doc{ID: "b"}, Doc{ID: "u1", Collection: "orders"}, Doc{ID: "v", Collection: "users"})); err != nil {
		t.Errorf("others wait: %v", err)
	}
	nested := callers(l, 1)[0]
	if _, met := nested.Meets(Doc{ID: "a"}); !met {
		t.Error("a call that began during an exclusive run would overtake its holder")
	}

	yielded := make(chan error)
	go func() { yielded <- l.Yield(ctx, docs(Doc{ID: "a"})) }()
	next := wait(t, ctx, all[1], a)
	again := wait(t, ctx, all[0], a) // its turn has had its runs
	if err := <-yielded; err != nil {
		t.Error(err)
	}
	next.gets(t)
	again.waits(t)
	next.Leave()
	again.gets(t)
	if l.Exclusive() {
		t.Error("a new turn is exclusive")
	}
	again.Leave()
	empty(t, l)
}

// Ensure that the time of an exclusive run is a multiple of what the function took
// before, so that a call which is part of the function waits for that long at most.
func TestLines_Exclusive_Limit(t *testing.T) {
	l := &Lines{Limit: forever}
	one := callers(l, 1)[0]
	take(t, one, a)
	for range maxOvertaken {
		takeBriefly(t, one, a)
	}
	nested := callers(l, 1)[0]
	take(t, nested, a) // once the exclusive run is over: within 20 ms and a bit
	if one.Held() {
		t.Error("both have the turn")
	}
	nested.Leave()
	one.Leave()
	empty(t, l)
}

// Ensure that Meets finds lines of documents and of ranges, and neither locks nor
// allocates for a document that has none.
func TestCaller_Meets(t *testing.T) {
	l := &Lines{Limit: forever}
	all := callers(l, 4)
	other := all[3]
	take(t, all[0], a)
	take(t, all[1], Range("users", ""))
	take(t, all[2], Range("", "o/"))
	for _, test := range []struct {
		d    Doc
		want Key
		met  bool
	}{
		{Doc{"a", ""}, a, true},
		{Doc{"x", "users"}, Range("users", ""), true},
		{Doc{"o/1", "orders"}, Range("", "o/"), true},
		{Doc{"o/1", ""}, Range("", "o/"), true},
		{Doc{"x", ""}, Key{}, false}, // perhaps a user: not for that
		{Doc{"x", "orders"}, Key{}, false},
	} {
		if key, met := other.Meets(test.d); met != test.met || key != test.want {
			t.Errorf("%v: got %v, %t", test.d, key, met)
		}
	}

	free := Doc{ID: "free", Collection: "things"}
	for l.filter(free.ID) == l.filter("a") {
		free.ID += "x"
	}
	l.mu.Lock() // a call that locks hangs
	allocs := testing.AllocsPerRun(100, func() {
		c := l.Caller()
		if _, met := c.Meets(free); met || c.Held() || l.Exclusive() {
			t.Error("it meets others")
		}
		c.Leave()
	})
	l.mu.Unlock()
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	for _, c := range all {
		c.Leave()
	}
	empty(t, l)
}

// Ensure that a caller stands in a bounded number of lines, those of its newest losses
// first, and a worker in all that it needs.
func TestCaller_ManyKeys(t *testing.T) {
	l := &Lines{Limit: forever}
	one, worker := l.Caller(), l.Worker()
	var keys []Key
	for i := range 3 * MaxKeys {
		keys = append(keys, Document(fmt.Sprint(i)))
		one.Leave()
		if err := one.Wait(ctx, keys[i:], keys[:i]); err != nil || len(one.place.lines) > MaxKeys || one.place.lines[0].Key != keys[i] {
			t.Fatalf("%v: in %d lines, %v first", err, len(one.place.lines), one.place.lines[0])
		}
		if len(one.lost) > MaxKeys {
			t.Fatalf("it remembers %d keys", len(one.lost))
		}
	}
	one.Leave()
	take(t, &worker, keys...)
	if len(worker.place.lines) != len(keys) {
		t.Errorf("a worker stands in %d lines", len(worker.place.lines))
	}
	worker.Leave()
	empty(t, l)
}

// Ensure that Dissolve lets all go that wait, and those that would.
func TestLines_Dissolve(t *testing.T) {
	exclusiveForever(t)
	l := &Lines{Limit: forever}
	all := callers(l, 4)
	take(t, all[0], a)
	take(t, all[1], b)
	waiters := []waiter{wait(t, ctx, all[2], a, b), wait(t, ctx, all[3], b)}
	for range maxOvertaken {
		take(t, all[0], a)
	}
	l.Dissolve()
	for _, w := range waiters {
		if err := <-w.has; err != nil || w.Held() {
			t.Errorf("turn %t, %v", w.Held(), err)
		}
	}
	if err := l.Yield(ctx, docs(Doc{ID: "a"})); err != nil {
		t.Error(err)
	}
	for _, c := range all {
		if err := c.Wait(ctx, []Key{a}, nil); err != nil || c.Held() {
			t.Errorf("after it: turn %t, %v", c.Held(), err)
		}
		c.Leave()
	}
	l.Dissolve()
	empty(t, l)
}

// Ensure that callers of all kinds that come and go, lose, run out of time and give up
// leave nothing behind, and that each has its turn in the end.
func TestLines_Stress(t *testing.T) {
	l := &Lines{Limit: 50 * time.Microsecond}
	keys := []Key{a, b, c, Range("users", ""), Range("", "a")}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 2))
			for range 200 {
				one := l.Caller()
				if random.IntN(4) == 0 {
					one = l.Worker()
				}
				for range 1 + random.IntN(6) {
					of, cancel := context.WithCancel(ctx)
					if random.IntN(8) == 0 {
						cancel()
					}
					key := keys[random.IntN(len(keys))]
					if err := one.Wait(of, []Key{key}, keys[:random.IntN(len(keys))]); err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					cancel()
					one.Meets(Doc{ID: "a", Collection: "users"})
					if one.Held() {
						continue // the holder of a turn does not yield: not to itself, either
					}
					if err := l.Yield(ctx, docs(Doc{ID: "ab"})); err != nil {
						t.Error(err)
					}
				}
				one.Leave()
			}
		})
	}
	all.Wait()
	empty(t, l)
}
