package lsm

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// Ensure that the writing of a table gives way after each write while a commit waits,
// and only then, and that other files never do.
func TestCourtesy(t *testing.T) {
	gave := 0
	c := &courtesy{onGive: func() { gave++ }}
	fs := courteousFS{vfs.NewMem(), c}
	for name, most := range map[string]int{"000001.sst": 1, "000002.log": 0, "MANIFEST-000003": 0} {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		write := func() int {
			gave = 0
			if file, ok := f.(*courteousFile); ok {
				file.turn = turn{} // whatever the machine made the write before wait
			}
			if n, err := f.Write([]byte("some bytes")); n != 10 || err != nil {
				t.Fatal(n, err)
			}
			return gave
		}
		if n := write(); n != 0 {
			t.Errorf("%s: a write gives way %d times though no commit waits", name, n)
		}
		c.begin()
		if n := write(); n != most {
			t.Errorf("%s: a write gives way %d times while a commit waits, want %d", name, n, most)
		}
		c.end()
		if n := write(); n != 0 {
			t.Errorf("%s: a write gives way %d times after the commit", name, n)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a flush that had to wait for long works as long before it gives way
// again, and that short waits have no such consequence.
func TestCourtesy_KeepsHalfOfTheTime(t *testing.T) {
	now := time.Unix(1, 0)
	var x turn
	for _, step := range []struct {
		waited, worked time.Duration
		over           bool
	}{
		{waited: maxPause, worked: 0, over: true},
		{waited: 8 * maxPause, worked: 8*maxPause - 1, over: false},
		{waited: 8 * maxPause, worked: 8 * maxPause, over: true},
		{waited: maxPause, worked: 1, over: true},
	} {
		x.ended = now
		now = now.Add(step.waited)
		x.begin(now)
		now = now.Add(step.worked)
		if over := x.over(now); over != step.over {
			t.Errorf("after %v of waiting and %v of work, over is %v", step.waited, step.worked, over)
		}
		now = now.Add(time.Minute)
	}
}

// Ensure that exactly the calls that wait for the disk count as waiting, and no longer
// than they last.
func TestCourtesy_CountsCalls(t *testing.T) {
	e, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, sync := range []bool{false, true} {
		waiting := int64(-1)
		err := e.Update(t.Context(), sync, func(tx storage.Tx) error {
			waiting = e.courtesy.waiting.Load()
			tx.Set([]byte("key"), nil, nil)
			return nil
		})
		if want := map[bool]int64{true: 1}[sync]; err != nil || waiting != want {
			t.Errorf("sync %v: %d wait (%v), want %d", sync, waiting, err, want)
		}
		if n := e.courtesy.waiting.Load(); n != 0 {
			t.Errorf("sync %v: %d wait after the call", sync, n)
		}
	}
}
