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

// Ensure that a flush that has waited for longer than it has worked gives way no more until
// both are even, but for a pause.
func TestCourtesy_KeepsHalfOfTheTime(t *testing.T) {
	now := time.Unix(1, 0)
	var x turn
	for i, step := range []struct {
		waited, worked time.Duration
		over           bool
	}{
		{waited: maxPause - 1, worked: 0, over: true},
		{waited: 1, worked: 0, over: false}, // many short waits are one long one
		{waited: 0, worked: 1, over: true},
		{waited: 8 * maxPause, worked: 8*maxPause - 1, over: false},
		{waited: 0, worked: 1, over: true},
		{waited: maxPause, worked: time.Hour, over: true},
		{waited: maxPause, worked: 0, over: false}, // the hour is not saved up
	} {
		now = now.Add(step.waited)
		if step.waited > 0 {
			x.begin(now, step.waited)
		}
		now = now.Add(step.worked)
		if over := x.over(now); over != step.over {
			t.Errorf("%d: after %v of waiting and %v of work, over is %v", i, step.waited, step.worked, over)
		}
	}
}

// slowLog is a disk whose syncs of the log wait until they are released.
type slowLog struct {
	vfs.FS
	begun, release chan struct{}
}

func (s *slowLog) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, category)
	if err != nil || !isLog(name) {
		return f, err
	}
	return &slowLogFile{f, s}, nil
}

type slowLogFile struct {
	vfs.File
	disk *slowLog
}

func (f *slowLogFile) SyncData() error {
	f.disk.begun <- struct{}{}
	<-f.disk.release
	return f.File.SyncData()
}

// Ensure that a build sleeps while a log is synced, also if it is never done, and that it then has
// the next turn.
func TestCourtesy_SleepsDuringSync(t *testing.T) {
	e := new(Engine)
	c := &e.courtesy
	disk := &slowLog{vfs.NewMem(), make(chan struct{}), make(chan struct{})}
	logs := &logFS{FS: disk, fail: func(err error) { t.Error(err) }, failed: func() bool { return false }, syncing: &c.syncing}
	log, err := logs.Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		if err := log.SyncData(); err != nil {
			t.Error(err)
		}
	}()
	<-disk.begun

	c.begin()
	began := time.Now()
	e.GiveWay()
	if waited := time.Since(began); waited < maxPause {
		t.Errorf("a build gave way for %v, beside a sync", waited)
	}
	if owed := c.builds.owed; owed < maxPause {
		t.Errorf("it owes itself %v, want %v at least", owed, maxPause)
	}
	c.mu.Lock()
	c.builds.owed += time.Hour // however long the test is held up
	c.mu.Unlock()
	gave := false
	c.onGive = func() { gave = true }
	if e.GiveWay(); gave {
		t.Error("a build gave way again before it had its turn")
	}
	close(disk.release)
	<-synced
	if n := c.syncing.Load(); n != 0 {
		t.Errorf("%d syncs are under way, want none", n)
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
