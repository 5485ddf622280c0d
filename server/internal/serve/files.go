package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// makeDir makes a directory and those above it that are not there: for the owner, and if
// that is asked for, for the group to read.
func makeDir(dir string, group bool) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeDir(parent, group); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil // made meanwhile
	}
	if err != nil || !group {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return os.Chmod(dir, info.Mode()|0o050)
}

// syncDir syncs a directory, so that its names are durable. On Windows that is neither
// needed nor possible.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// DiskBytes returns the total size of an open database's files. One that is mounted may be in memory, or on another
// engine, whose own figure it is, and so is that of a standby.
func (d *Database) DiskBytes(ctx context.Context) (int64, error) {
	if !d.fixed() {
		return diskBytes(d.DB.Dir())
	}
	now, err := d.DB.Stats(ctx)
	return int64(now.Engine.DiskBytes), err
}

// diskBytes returns the total size of the files of a directory. A file that vanishes meanwhile
// counts as empty.
func diskBytes(dir string) (sum int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum, err
}

// NewID returns a random UUID.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
