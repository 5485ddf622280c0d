package jay_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/lsm"
)

// recordingFS notes which files are created on the file system that it wraps.
type recordingFS struct {
	lsm.FS
	mu      sync.Mutex
	created []string // Guarded by mu.
}

func (r *recordingFS) Unwrap() lsm.FS { return r.FS }

func (r *recordingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	r.mu.Lock()
	r.created = append(r.created, name)
	r.mu.Unlock()
	return r.FS.Create(name, category)
}

// Ensure that a database uses the file system of its options, and that a wrapped
// one locks the directory of the operating system as Open without it does.
func TestOptions_FS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	recorder := &recordingFS{FS: vfs.Default}
	db := open(t, dir, &jay.Options{FS: recorder})
	equal(t, put(t, db, "users/1", `{"n":1}`).ID, "users/1")
	for name, opts := range map[string]*jay.Options{
		"the same wrapper": {FS: recorder},
		"another wrapper":  {FS: &recordingFS{FS: vfs.Default}},
		"no wrapper":       nil,
	} {
		if _, err := jay.Open(dir, opts); !errors.Is(err, jay.ErrLocked) {
			t.Errorf("open by %s: %v, want ErrLocked", name, err)
		}
	}
	closeDB(t, db)

	kinds := make(map[string]bool)
	for _, name := range recorder.created {
		base := filepath.Base(name)
		kinds[strings.TrimRight(base, "0123456789-")] = true
		kinds[filepath.Ext(base)] = true
	}
	for _, kind := range []string{"JAY.tmp", "MANIFEST", ".log"} {
		if !kinds[kind] {
			t.Errorf("no %s was created through the file system: %v", kind, recorder.created)
		}
	}
	db = open(t, dir, &jay.Options{MustExist: true})
	equal(t, body(t, db, "users/1"), `{"n":1}`)
	closeDB(t, db)
}

// Ensure that a database in memory refuses a file system.
func TestOptions_FS_Memory(t *testing.T) {
	if _, err := jay.OpenMemory(&jay.Options{FS: vfs.NewMem()}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("got %v, want ErrOption", err)
	}
}
