package backups_test

import (
	"bytes"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// loggerTo returns a logger that writes text.
func loggerTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// flipping is a file system that changes a bit of what is written, while on is set.
type flipping struct {
	vfs.FS
	on *atomic.Bool
}

// Create implements vfs.FS.
func (f flipping) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return flippingFile{file, f.on}, err
}

type flippingFile struct {
	vfs.File
	on *atomic.Bool
}

// Write implements io.Writer.
func (f flippingFile) Write(p []byte) (int, error) {
	if f.on.Load() && len(p) > 40 {
		p = bytes.Clone(p)
		p[len(p)-20] ^= 1
	}
	return f.File.Write(p)
}
