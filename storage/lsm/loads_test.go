package lsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// loadFS counts the reads of large blocks that run at a time.
type loadFS struct {
	vfs.FS
	active, most, reads atomic.Int32
}

func (f *loadFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err == nil && strings.HasSuffix(name, ".sst") {
		file = loadFile{file, f}
	}
	return file, err
}

type loadFile struct {
	vfs.File
	fs *loadFS
}

func (f loadFile) ReadAt(p []byte, offset int64) (int, error) {
	if len(p) > 64<<10 {
		f.fs.reads.Add(1)
		n := f.fs.active.Add(1)
		defer f.fs.active.Add(-1)
		for most := f.fs.most.Load(); n > most && !f.fs.most.CompareAndSwap(most, n); most = f.fs.most.Load() {
		}
		for range 1000 {
			runtime.Gosched() // so that others read now, if they may
		}
	}
	return f.File.ReadAt(p, offset)
}

// Ensure that no more blocks than Loads says are read at a time: each may be as large as
// the largest document, so that readers of many of them took as much memory as they were.
func TestEngine_Loads(t *testing.T) {
	fs := &loadFS{FS: vfs.NewMem()}
	e, err := lsm.Open("db", lsm.Options{FS: fs, CacheBytes: 1, Loads: lsm.NewLoads(2)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const values = 16
	random := rand.NewChaCha8([32]byte{})
	err = e.Update(ctx, false, func(tx storage.Tx) error {
		for i := range values {
			value := make([]byte, 128<<10)
			_, _ = random.Read(value)
			tx.Set(fmt.Appendf(nil, "k%02d", i), value, nil)
		}
		return nil
	})
	if err := errors.Join(err, e.Compact(ctx, nil, nil)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range values {
		all.Go(func() {
			for range 8 {
				value, closer, err := e.Get(fmt.Appendf(nil, "k%02d", i))
				if err != nil {
					t.Error(err)
					return
				}
				if bytes.Equal(value, make([]byte, len(value))) {
					t.Error("a value is zeros")
				}
				if err := closer.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if reads, most := fs.reads.Load(), fs.most.Load(); reads < values || most != 2 {
		t.Errorf("%d large reads, up to %d at a time, want 2", reads, most)
	}
}
