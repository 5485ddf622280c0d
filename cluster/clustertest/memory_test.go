package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
)

// Ensure that Memory is a coordinator.
func TestMemory(t *testing.T) {
	t.Parallel()
	clustertest.Run(t, func(t *testing.T) clustertest.Setup {
		m := clustertest.NewMemory()
		return clustertest.Setup{
			Connect:         func(*testing.T) cluster.Coordinator { return m.Connect() },
			LoseMajority:    func(*testing.T) { m.LoseMajority() },
			RestoreMajority: func(*testing.T) { m.RestoreMajority() },
		}
	})
}

// Ensure that faults are what their documentation says.
func TestMemory_Faults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m := clustertest.NewMemory()
	a, b := m.Connect(), m.Connect()
	read := func() string {
		found, err := b.Read(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		return string(found[0].Value)
	}
	commit := func(value string) {
		t.Helper()
		_, err := a.Commit(ctx, nil, []cluster.Change{{Key: "x", Value: []byte(value)}})
		if !errors.Is(err, cluster.ErrUnknownOutcome) {
			t.Errorf("got %v, want ErrUnknownOutcome", err)
		}
	}
	a.Fail(clustertest.Happens, clustertest.Never, clustertest.Withhold)
	commit("happens")
	if got := read(); got != "happens" {
		t.Errorf("got %q", got)
	}
	commit("never")
	commit("later")
	if got := read(); got != "happens" {
		t.Errorf("got %q", got)
	}
	if n := a.Deliver(); n != 1 || read() != "later" {
		t.Errorf("%d commits were delivered: %q", n, read())
	}
	a.Cut()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := a.Read(cancelled, "x"); !errors.Is(err, cluster.ErrNoMajority) {
		t.Errorf("cut off: got %v, want ErrNoMajority", err)
	}
	if got := read(); got != "later" {
		t.Errorf("the others go on: got %q", got)
	}
	a.Mend()
	if _, err := a.Read(ctx, "x"); err != nil {
		t.Errorf("mended: %v", err)
	}
}

// Example commits to a coordinator whose answer is lost, and finds out what happened.
func ExampleMemory() {
	ctx := context.Background()
	node := clustertest.NewMemory().Connect()
	node.Fail(clustertest.Happens)
	_, err := node.Commit(ctx, nil, []cluster.Change{{Key: "leader", Value: []byte("A")}})
	fmt.Println(errors.Is(err, cluster.ErrUnknownOutcome))
	found, err := node.Read(ctx, "leader")
	fmt.Println(string(found[0].Value), err)
	// Output:
	// true
	// A <nil>
}
