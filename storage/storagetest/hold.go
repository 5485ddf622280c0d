package storagetest

import (
	"path"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Files are kinds of files of an engine on a Disk.
type Files uint8

// The kinds of files. They can be combined.
const (
	Tables      Files = 1 << iota // .sst and .blob
	Logs                          // .log
	Manifests                     // MANIFEST and the marker of the current one
	Directories                   // a directory's own entries: it is only synced
	OtherFiles

	AllFiles = Tables | Logs | Manifests | Directories | OtherFiles
)

// Operations are what an engine does to files.
type Operations uint8

// The operations. They can be combined.
const (
	Creations Operations = 1 << iota // and renames, links, reuse
	Writes
	Syncs
	Removals
	Reads

	AllOperations = Creations | Writes | Syncs | Removals // without reads
)

// Hold is a fault of a Disk: a part of its operations does not return. It is
// made by Disk.Hold and ended by Release.
type Hold struct {
	files      Files
	operations Operations
	timeout    time.Duration // after which an operation is refused; 0 for never

	met      chan struct{} // closed when the first operation is held
	refused  chan struct{} // closed by Refuse
	released chan struct{} // closed by Release
	once     struct{ meet, refuse, release sync.Once }
}

// Hold makes the operations on these files wait, from now on, until the Hold
// is asked to refuse or to release them.
func (d *Disk) Hold(files Files, operations Operations) *Hold {
	return d.HoldFor(0, files, operations)
}

// HoldFor is Hold, but each operation is refused when it has waited for this
// long. 0 stands for ever.
func (d *Disk) HoldFor(timeout time.Duration, files Files, operations Operations) *Hold {
	h := &Hold{
		files: files, operations: operations, timeout: timeout,
		met: make(chan struct{}), refused: make(chan struct{}), released: make(chan struct{}),
	}
	for {
		old := d.holds.Load()
		var holds []*Hold
		if old != nil {
			holds = append(holds, *old...)
		}
		holds = append(holds, h)
		if d.holds.CompareAndSwap(old, &holds) {
			return h
		}
	}
}

// Met is closed when the first operation waits.
func (h *Hold) Met() <-chan struct{} { return h.met }

// Refuse makes those that wait, and all later ones, fail with ErrInjected.
func (h *Hold) Refuse() { h.once.refuse.Do(func() { close(h.refused) }) }

// Release lets those that wait, and all later ones, go through. It ends the
// hold.
func (h *Hold) Release() { h.once.release.Do(func() { close(h.released) }) }

// wait waits as the hold asks for, and returns the operation's error.
func (h *Hold) wait() error {
	select {
	case <-h.released:
		return nil
	default:
	}
	h.once.meet.Do(func() { close(h.met) })
	var timedOut <-chan time.Time
	if h.timeout > 0 {
		timer := time.NewTimer(h.timeout)
		defer timer.Stop()
		timedOut = timer.C
	}
	select {
	case <-h.released:
		return nil
	case <-h.refused:
	case <-timedOut:
	}
	return ErrInjected
}

// hold makes an operation wait if a Hold asks for it.
func (d *Disk) hold(op errorfs.Op) error {
	if op.Kind == errorfs.OpOpenDir {
		d.directories.Store(op.Path, true)
	}
	holds := d.holds.Load()
	if holds == nil {
		return nil
	}
	files, operation := d.filesOf(op.Path), operationOf(op.Kind)
	for _, h := range *holds {
		if h.files&files != 0 && h.operations&operation != 0 {
			if err := h.wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Disk) filesOf(name string) Files {
	base := path.Base(name)
	switch {
	case strings.HasSuffix(base, ".sst"), strings.HasSuffix(base, ".blob"):
		return Tables
	case strings.HasSuffix(base, ".log"):
		return Logs
	case strings.HasPrefix(base, "MANIFEST"), strings.HasPrefix(base, "marker.manifest"):
		return Manifests
	}
	if _, found := d.directories.Load(name); found {
		return Directories
	}
	return OtherFiles
}

func operationOf(kind errorfs.OpKind) Operations {
	switch kind {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpRename, errorfs.OpReuseForWrite, errorfs.OpMkdirAll:
		return Creations
	case errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate, errorfs.OpFileFlush:
		return Writes
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		return Syncs
	case errorfs.OpRemove, errorfs.OpRemoveAll:
		return Removals
	case errorfs.OpFileRead, errorfs.OpFileReadAt:
		return Reads
	}
	return 0
}
