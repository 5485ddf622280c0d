package serve

import (
	"context"
	"testing"
	"time"
)

// This file is internal: the bounds of what is kept are too large for requests.

// Ensure that what a sender adds drops nothing of a sender that has less.
func TestShares(t *testing.T) {
	t.Parallel()
	s := shares[int]{most: 4}
	for i := range 4 {
		if _, full := s.add("greedy", i); full {
			t.Fatalf("%d is one too many", i)
		}
	}
	for i, want := range []int{0, 1} {
		if dropped, full := s.add("other", 10+i); !full || dropped != want {
			t.Errorf("got %d, %v, want the oldest of who has most, %d", dropped, full, want)
		}
	}
	if dropped, full := s.add("greedy", 4); !full || dropped != 2 {
		t.Errorf("got %d, %v, want one of its own", dropped, full)
	}
	s.remove("other", 11)
	s.remove("other", 11)
	s.removeIf(func(v int) bool { return v == 10 })
	if s.n != 2 || len(s.bySender) != 1 {
		t.Errorf("got %+v", s)
	}
}

// Ensure that sessions of one token end none of another's.
func TestSessions_OfOneToken(t *testing.T) {
	t.Parallel()
	var ss sessions
	now := time.Now()
	id, _ := ss.begin(browserSession{token: "admin"}, now)
	for range maxSessions + 1 {
		ss.begin(browserSession{token: "reader"}, now)
	}
	if _, found := ss.find(id, now); !found {
		t.Error("the session of the other token has ended")
	}
	if len(ss.byID) != maxSessions {
		t.Errorf("%d sessions are kept", len(ss.byID))
	}
	if _, found := ss.find(id, now.Add(sessionDuration)); found || len(ss.byID) != maxSessions-1 {
		t.Errorf("found %v, %d are kept", found, len(ss.byID))
	}
}

// Ensure that the operations of one sender neither keep others from beginning theirs nor
// drop the outcomes of others, and that those of a database do not where senders have no
// names.
func TestOperations_OfOneSender(t *testing.T) {
	t.Parallel()
	os := NewOperations(time.Now)
	os.Changed = func(string, int64, OperationState) {}
	begin := func(database, by string) (*Operation, error) {
		_, o, err := os.Start(context.Background(), database, os.Next(), About{By: by})
		return o, err
	}
	run := func(database, by string) *Operation {
		t.Helper()
		o, err := begin(database, by)
		if err != nil {
			t.Fatal(err)
		}
		os.Finish(o, OperationState{Status: OperationCompleted})
		return o
	}
	var running []*Operation
	for range MaxRunningOperations / 2 {
		o, err := begin("evil", "greedy")
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, o)
	}
	if _, err := begin("other", "greedy"); err == nil || ProblemOf(err).Status != 429 {
		t.Errorf("one too many of a sender: %v", err)
	}
	named, nameless := run("acorns", "owner"), run("oaks", "")
	for _, o := range running {
		os.Finish(o, OperationState{Status: OperationCompleted})
	}
	for range maxKeptOperations {
		run("evil", "greedy")
		run("evil", "")
	}
	for _, o := range []*Operation{named, nameless} {
		if os.Find(o.Of.Database, o.Of.ID) == nil {
			t.Errorf("the outcome of %v is gone", o.Of)
		}
	}
	if len(os.byID) != maxKeptOperations || len(os.bySender) != 0 {
		t.Errorf("%d are kept, %v run", len(os.byID), os.bySender)
	}
}

// Ensure that the rejects of one sender's imports drop none of another's.
func TestRejects_OfOneSender(t *testing.T) {
	t.Parallel()
	b := newBudget(1<<20, 1<<20)
	var k RejectStore
	mine := OperationID{"acorns", 1}
	k.Open("owner", mine, 1, b.Holding("owner"))
	for i := range int64(2 * maxRejectLists) {
		k.Open("greedy", OperationID{"acorns", 10 + i}, 1, b.Holding("greedy"))
	}
	if k.find(mine) == nil || k.all.n != maxRejectLists {
		t.Errorf("%v, %d are kept", k.find(mine), k.all.n)
	}
}

// Ensure that an import whose rejects were dropped while it runs keeps no more of them, as it pays for none, and still
// ends at the number of rejects that the client allows.
func TestRejects_DroppedKeepNothing(t *testing.T) {
	t.Parallel()
	b := newBudget(1<<20, 1<<20)
	var k RejectStore
	first := k.Open("owner", OperationID{"acorns", 1}, 3, b.Holding("owner"))
	write := func() error {
		_, err := k.Write(first, []byte("{}\n"))
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	for i := range int64(maxRejectLists) {
		k.Open("owner", OperationID{"acorns", 10 + i}, 1, b.Holding("owner"))
	}
	for range 2 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if used, _ := b.Load(); used != 0 || len(first.text) != 0 {
		t.Errorf("%d bytes are kept, and %d are paid for", len(first.text), used)
	}
	if err := write(); err == nil {
		t.Error("a fourth record was rejected")
	}
}
