package lsm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// dirLock is the ownership of one directory, from Open until the last goroutine of
// the engine has ended. It consists of three locks, as each has its limits:
//
//   - the table of this process, by the identity of the directory. It needs no
//     support of the file system, and holds for every form of the path;
//   - a lock of the operating system on the open directory (lockDir). It excludes
//     other processes, and belongs to the descriptor: it is lost neither when a
//     program, this one included, opens and closes files in the directory nor when
//     a file is removed;
//   - Pebble's file LOCK, for versions of Jay that know no other lock, and for
//     hosts that share the directory over a network, since only one kernel knows of
//     a lock on a directory. On Unix it is a lock by fcntl, which a process loses
//     when it closes any descriptor of the file.
type dirLock struct {
	id     dirID
	dir    *os.File     // open and locked; nil in memory
	shared bool         // with other readers
	engine *pebble.Lock // nil if it is shared
}

// dirID identifies a directory, however its path is spelled.
type dirID struct {
	info os.FileInfo // by device and inode, or volume and file index; nil in memory

	// Of a directory in memory: the file system, and the path on it.
	fs   vfs.FS
	path string
}

func (id dirID) equal(other dirID) bool {
	if id.info != nil && other.info != nil {
		return os.SameFile(id.info, other.info)
	}
	return id.info == nil && other.info == nil && id.fs == other.fs && id.path == other.path
}

// owned are the directories that this process has open.
var owned struct {
	mu     sync.Mutex
	ids    []dirID // Guarded by mu.
	shared []dirID // to be read only, once for each reader. Guarded by mu.
}

// own notes the directory as owned by this process, or shared with its other readers.
// It returns false if it was owned before, or is not to be shared and was.
func own(id dirID, shared bool) bool {
	owned.mu.Lock()
	defer owned.mu.Unlock()
	if slices.ContainsFunc(owned.ids, id.equal) || !shared && slices.ContainsFunc(owned.shared, id.equal) {
		return false
	}
	if shared {
		owned.shared = append(owned.shared, id)
	} else {
		owned.ids = append(owned.ids, id)
	}
	return true
}

func disown(id dirID, shared bool) {
	owned.mu.Lock()
	defer owned.mu.Unlock()
	from := &owned.ids
	if shared {
		from = &owned.shared
	}
	if i := slices.IndexFunc(*from, id.equal); i >= 0 {
		*from = slices.Delete(*from, i, i+1)
	}
}

// lock makes this engine the owner of dir, which must exist, until Close. It does
// not wait. It returns ErrLocked if there is another owner in this process or, on
// the same host, in another one, and ErrNotWritable if the directory refuses its
// lock file.
func lock(fs vfs.FS, dir string) (*dirLock, error) {
	l, err := lockIdentity(fs, dir, false)
	if err != nil {
		return nil, openError(err)
	}
	if l.engine, err = lockEngine(fs, dir); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// lockShared is lock for a reader, beside which there may be others, but no writer. It
// does without the lock file, which the directory may refuse.
func lockShared(fs vfs.FS, dir string) (*dirLock, error) {
	l, err := lockIdentity(fs, dir, true)
	if err != nil {
		return nil, openError(err)
	}
	return l, nil
}

// lockIdentity takes the locks that do not depend on a file in dir.
func lockIdentity(fs vfs.FS, dir string, shared bool) (*dirLock, error) {
	if !onMachine(fs) {
		root := vfs.Root(fs)
		if !reflect.TypeOf(root).Comparable() {
			return &dirLock{}, nil // no identity to compare: only Pebble's lock is left
		}
		l := &dirLock{id: dirID{fs: root, path: filepath.Join(string(filepath.Separator), dir)}, shared: shared}
		if !own(l.id, shared) {
			return nil, storage.ErrLocked
		}
		return l, nil
	}

	// The directory may be replaced after it is opened and before it is locked.
	for range 10 {
		l, err := lockOpened(dir, shared)
		if err != nil {
			return nil, err
		}
		now, err := os.Stat(dir)
		if err == nil && os.SameFile(now, l.id.info) {
			return l, nil
		}
		if err := errors.Join(err, l.Close()); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the directory is replaced again and again while it is opened")
}

func lockOpened(dir string, shared bool) (*dirLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	id := dirID{info: info}
	if !own(id, shared) {
		return nil, errors.Join(storage.ErrLocked, f.Close())
	}
	if err := lockDir(f, shared); err != nil {
		disown(id, shared)
		return nil, errors.Join(err, f.Close())
	}
	return &dirLock{id: id, dir: f, shared: shared}, nil
}

// lockEngine takes Pebble's file LOCK.
func lockEngine(fs vfs.FS, dir string) (*pebble.Lock, error) {
	l, err := pebble.LockDirectory(dir, fs)
	switch {
	case err == nil:
		return l, nil
	case isPermission(err):
		return nil, notWritable(err)
	case isLockHeld(err):
		return nil, fmt.Errorf("%w (%w)", storage.ErrLocked, err)
	}
	return nil, err
}

// abandon is Close for a Pebble that never ends but can do nothing to the directory
// any more. Pebble's reference to its lock is given up as well.
func (l *dirLock) abandon() error {
	if l.engine != nil {
		_ = l.engine.Close() // Pebble's reference
	}
	return l.Close()
}

// Close releases the directory. No goroutine of the engine may be left: it would
// write into the files of the next owner. Later calls return nil.
func (l *dirLock) Close() error {
	var err error
	if l.engine != nil {
		err = l.engine.Close()
		l.engine = nil
	}
	if l.dir != nil {
		// To close the descriptor is not enough: a child process between fork and
		// exec has a copy of it, and with it the lock.
		err = errors.Join(err, unlockDir(l.dir), l.dir.Close())
		l.dir = nil
	}
	if l.id != (dirID{}) {
		disown(l.id, l.shared)
		l.id = dirID{}
	}
	return err
}

// onMachine reports whether files of fs, which may be wrapped, are files of
// the operating system.
func onMachine(fs vfs.FS) bool {
	return vfs.Root(fs) == vfs.Default
}

// realPath returns the path under which the engine opens its files: absolute,
// and without symbolic links. The files of an open database then stay in one
// directory when the program changes its working directory or a link changes.
func realPath(fs vfs.FS, dir string) (string, error) {
	if !onMachine(fs) {
		return dir, nil
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	return path, nil // on Windows, some volumes cannot be resolved
}
