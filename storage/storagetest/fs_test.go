package storagetest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a disk can lose its power while files are linked.
func TestDisk_CrashBesideLinks(t *testing.T) {
	d := storagetest.NewDisk()
	f, err := d.Create("a", vfs.WriteCategoryUnspecified)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var links sync.WaitGroup
	for range 2 {
		links.Go(func() {
			for i := range 2000 {
				name := fmt.Sprint("b", i)
				_ = d.Link("a", name) // the other one has it
				_ = d.Remove(name)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		links.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return
		default:
			d.Crash(50, rand.New(rand.NewPCG(1, 2)))
		}
	}
}
