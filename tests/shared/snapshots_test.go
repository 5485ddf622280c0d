package shared_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that a process whose snapshots are all open, and whose readers wait for a write, follows the definitions that another process has changed: the
// write, and a patch, need no snapshot. With JAY_ENGINE=postgres there is a most of snapshots.
func TestSnapshots_AllOpen(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	written := make(chan struct{})
	var readers, reading sync.WaitGroup
	failed := make(chan error, 14)
	for range 14 {
		reading.Add(1)
		readers.Go(func() {
			failed <- a.View(ctx, func(tx *jay.Tx) error {
				_, err := tx.Get(ctx, "users/1")
				reading.Done()
				<-written
				return err
			})
		})
	}
	jaytest.Await(t, "14 readers", jaytest.Finished(&reading))
	must(t, b.EnsureIndex(ctx, "Users", jay.Index{Name: "names", Fields: []string{"Name"}}))
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := a.Put(within, "users/2", []byte(`{"Name":"Ann"}`), jay.InCollection("Users"))
	if err == nil {
		_, err = a.Patch(within, "users/2", jay.Set("/Age", 7))
	}
	close(written)
	readers.Wait()
	close(failed)
	for one := range failed {
		err = errors.Join(err, one)
	}
	must(t, err)
}

// Ensure that transactions that have read ranges commit although their snapshots are all there are: a
// commit does not need another one. With JAY_ENGINE=postgres there is a most of snapshots.
func TestSnapshots_AllCommit(t *testing.T) {
	a, _ := openTwo(t, jay.Options{})
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var writers, walking sync.WaitGroup
	failed := make(chan error, 14)
	walking.Add(14)
	for i := range 14 {
		writers.Go(func() {
			first := true
			failed <- a.Update(within, func(tx *jay.Tx) error {
				for _, err := range tx.Documents(within, jay.Scan{Collection: "Users"}) {
					if err != nil {
						return err
					}
				}
				if first {
					first = false
					walking.Done()
				}
				walking.Wait()
				_, err := tx.Put(within, fmt.Sprintf("notes/%d", i), []byte(`{}`), jay.InCollection("Notes"))
				return err
			})
		})
	}
	writers.Wait()
	close(failed)
	for one := range failed {
		must(t, one)
	}
}

// Ensure that a process whose snapshots are all open for longer than a lease keeps its node tag: who renews it needs no
// snapshot to look at the leases of others. With JAY_ENGINE=postgres there is a most of snapshots.
func TestSnapshots_KeepLease(t *testing.T) {
	const period = time.Second
	a, b := openTwo(t, jay.Options{ClusterPeriod: period})
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	before := tagOf(t, a)
	release := make(chan struct{})
	var readers, reading sync.WaitGroup
	failed := make(chan error, 14)
	for range 14 {
		reading.Add(1)
		readers.Go(func() {
			failed <- a.View(ctx, func(tx *jay.Tx) error {
				_, err := tx.Get(ctx, "users/1")
				reading.Done()
				<-release
				return err
			})
		})
	}
	jaytest.Await(t, "14 readers", jaytest.Finished(&reading))
	time.Sleep(4 * period)
	put(t, b, "users/2", `{}`, jay.InCollection("Users"))
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := a.Put(within, "users/3", []byte(`{}`), jay.InCollection("Users"))
	close(release)
	readers.Wait()
	close(failed)
	for one := range failed {
		err = errors.Join(err, one)
	}
	must(t, err)
	want(t, "node tag", tagOf(t, a), before)
}
