package lsm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

var _ storage.Checkpointer = (*Engine)(nil)

// Checkpoint implements storage.Checkpointer. Pebble links its tables, which never change, and
// copies its log. Checkpoint opens the copy once, which writes the log to tables and proves that
// the copy opens. It closes the copy before it gives it its name.
func (e *Engine) Checkpoint(ctx context.Context, dir string) (err error) {
	if e.readOnly {
		return storage.ErrReadOnly
	}
	if err := e.Sync(ctx); err != nil {
		return err
	}
	if !e.checkpointFS.active.CompareAndSwap(nil, &checkpointing{ctx: ctx}) {
		return errors.New("another checkpoint is being made")
	}
	defer e.checkpointFS.active.Store(nil)
	target, err := e.prepareCheckpoint(dir)
	if err != nil {
		return err
	}
	// Pebble makes the directory, and fails if it is there already.
	if err := e.protect(func() error { return e.db.Checkpoint(target.Name()) }); err != nil {
		if errors.Is(err, os.ErrExist) {
			return err
		}
		return errors.Join(e.checkpointError(ctx, err), target.Abandon())
	}
	if err := e.completeCheckpoint(ctx, target.Name()); err != nil {
		return errors.Join(e.checkpointError(ctx, err), target.Abandon())
	}
	return target.Commit()
}

// prepareCheckpoint resolves the path of a checkpoint, and refuses one within the
// database.
func (e *Engine) prepareCheckpoint(dir string) (*NewDirectory, error) {
	raw := e.checkpointFS.raw
	if onMachine(raw) {
		var err error
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			dir = filepath.Join(parent, filepath.Base(dir))
		}
	}
	if dir == e.path || strings.HasPrefix(dir, e.path+string(filepath.Separator)) {
		return nil, fmt.Errorf("%s is in the directory of the database itself", dir)
	}
	return PrepareDirectory(raw, dir)
}

// checkpointError gives the error of a checkpoint its type.
func (e *Engine) checkpointError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
	}
	return openError(err)
}

// completeCheckpoint makes a database of Jay of Pebble's checkpoint.
func (e *Engine) completeCheckpoint(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw := e.checkpointFS.raw
	if ring := e.sealFS.ring; ring != nil {
		if err := writeIdentity(raw, path, ring); err != nil {
			return err
		}
	}
	control := &controlFile{fail: func(error) {}}
	record := newControlRecord()
	record.created = true
	err := control.start(raw, path, record, 0, true)
	control.release()
	if err != nil {
		return err
	}
	if err := writeFormatFile(raw, path, e.uses.ofFiles()); err != nil { // of what the copy has, or of more
		return err
	}
	copied, err := open(path, Options{
		MustExist:     true,
		CacheBytes:    1 << 20,
		MemTableBytes: e.opts.MemTableBytes,
		TableBounds:   e.opts.TableBounds,
		Logger:        e.opts.Logger,
		CloseTimeout:  e.closeTimeout,
		FS:            e.base,
		GroupReadable: e.opts.GroupReadable,
		Features:      e.opts.Features,

		EncryptionKeys: e.opts.EncryptionKeys,
	})
	if err != nil {
		return err
	}
	return copied.Close()
}

// checkpointFS is a file system that keeps what Pebble writes for a checkpoint from
// the file systems below it, which care for the database: its log, its control file,
// and that it fails with its disk. Files elsewhere are none of it.
type checkpointFS struct {
	vfs.FS        // of the database
	raw    vfs.FS // of everything else
	dir    string // of the database
	active atomic.Pointer[checkpointing]
}

// checkpointing is a checkpoint under way.
type checkpointing struct{ ctx context.Context }

// Unwrap implements vfs.FS.
func (c *checkpointFS) Unwrap() vfs.FS { return c.FS }

// of returns the file system of a file.
func (c *checkpointFS) of(name string) vfs.FS {
	if c.active.Load() == nil || name == c.dir || c.PathDir(name) == c.dir {
		return c.FS
	}
	return c.raw
}

// Create implements vfs.FS. A checkpoint whose context has ended writes no more.
func (c *checkpointFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs := c.of(name)
	f, err := fs.Create(name, category)
	if running := c.active.Load(); err == nil && running != nil && fs != c.FS {
		f = &checkpointFile{f, running.ctx}
	}
	return f, err
}

// Link implements vfs.FS.
func (c *checkpointFS) Link(oldname, newname string) error {
	if running := c.active.Load(); running != nil && running.ctx.Err() != nil {
		return running.ctx.Err()
	}
	return c.of(newname).Link(oldname, newname)
}

// OpenDir implements vfs.FS, and so do those that follow.
func (c *checkpointFS) OpenDir(name string) (vfs.File, error) { return c.of(name).OpenDir(name) }

func (c *checkpointFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return c.of(name).Open(name, opts...)
}

func (c *checkpointFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return c.of(name).OpenReadWrite(name, category, opts...)
}

func (c *checkpointFS) Remove(name string) error { return c.of(name).Remove(name) }

func (c *checkpointFS) RemoveAll(name string) error { return c.of(name).RemoveAll(name) }

func (c *checkpointFS) Rename(oldname, newname string) error {
	return c.of(newname).Rename(oldname, newname)
}

// MkdirAll makes directories with dirMode: Pebble would let others read a checkpoint.
func (c *checkpointFS) MkdirAll(dir string, _ os.FileMode) error {
	return c.of(dir).MkdirAll(dir, dirMode)
}

func (c *checkpointFS) Stat(name string) (vfs.FileInfo, error) { return c.of(name).Stat(name) }

func (c *checkpointFS) List(dir string) ([]string, error) { return c.of(dir).List(dir) }

// checkpointFile is a file of a checkpoint.
type checkpointFile struct {
	vfs.File
	ctx context.Context
}

// Write implements vfs.File.
func (f *checkpointFile) Write(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}
