package lsm

import (
	"hash"
	"hash/crc32"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// controlFS is a file system that keeps the control file up to date: it sees
// which manifests and logs Pebble makes, and what it syncs. It is below logFS,
// which hides errors.
//
// A new file counts as present once its directory was synced, what was written
// to it once the file was. A log that is no longer needed stays in the record until
// its file is removed: checkDirectory asks only for logs that the manifest wants
// replayed.
type controlFS struct {
	vfs.FS
	control *controlFile

	tinyTables int // that prepare found on level 0

	mu      sync.Mutex
	created map[string]bool // manifests and logs that were made since Open. Guarded by mu.
	logs    []uint64        // made since the directory was last synced. Guarded by mu.
	current uint64          // the manifest that a new marker names; 0 for none. Guarded by mu.
}

// Unwrap implements vfs.FS.
func (fs *controlFS) Unwrap() vfs.FS { return fs.FS }

// Create implements vfs.FS.
func (fs *controlFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return fs.track(name, f), nil
}

// ReuseForWrite implements vfs.FS.
func (fs *controlFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.forget(oldname)
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return fs.track(newname, f), nil
}

// Remove implements vfs.FS.
func (fs *controlFS) Remove(name string) error {
	fs.forget(name)
	return fs.FS.Remove(name)
}

// forget takes a log out of the record. The next write of the record says so.
func (fs *controlFS) forget(name string) {
	if kind, number := parseName(fs.PathBase(name)); kind == walFile {
		fs.control.mu.Lock()
		delete(fs.control.record.logs, number)
		fs.control.stale = true
		fs.control.mu.Unlock()
	}
}

// track wraps a new file, if it is a manifest or a log, and notes the manifest
// that a new marker names.
func (fs *controlFS) track(name string, f vfs.File) vfs.File {
	base := fs.PathBase(name)
	kind, number := parseName(base)
	if kind == manifestFile || kind == walFile {
		fs.mu.Lock()
		fs.created[base] = true
		fs.mu.Unlock()
	}
	switch kind {
	case manifestFile:
		return &controlledManifest{File: f, fs: fs, dir: fs.PathDir(name), number: number, crc: crc32.New(castagnoli)}
	case walFile:
		fs.mu.Lock()
		fs.logs = append(fs.logs, number)
		fs.mu.Unlock()
		return &controlledLog{File: f, control: fs.control, number: number}
	}
	if rest, is := strings.CutPrefix(base, "marker.manifest."); is {
		_, value, _ := strings.Cut(rest, ".")
		if kind, number := parseName(value); kind == manifestFile {
			fs.mu.Lock()
			fs.current = number
			fs.mu.Unlock()
		}
	}
	return f
}

// OpenDir implements vfs.FS.
func (fs *controlFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &controlledDir{File: f, fs: fs}, nil
}

// controlledDir is the directory, opened to be synced.
type controlledDir struct {
	vfs.File
	fs *controlFS
}

// Sync implements vfs.File.
func (d *controlledDir) Sync() error {
	// Taken before the sync, which may miss what is made while it runs.
	d.fs.mu.Lock()
	logs, current := d.fs.logs, d.fs.current
	d.fs.logs, d.fs.current = nil, 0
	d.fs.mu.Unlock()
	if err := d.File.Sync(); err != nil {
		return err
	}
	if len(logs) == 0 && current == 0 {
		return nil
	}
	// A lost log is known only from the record: do not leave that to syncDelay.
	defer d.fs.control.syncNow()
	return d.fs.control.update(false, func(r *controlRecord) {
		for _, number := range logs {
			r.logs[number] = syncedPrefix{length: r.logs[number].length}
		}
		if current == 0 {
			return
		}
		r.current = current
		for number := range r.manifests {
			if number != current {
				delete(r.manifests, number)
			}
		}
	})
}

// controlledLog is a log that Pebble writes. Its methods are called one at a
// time.
type controlledLog struct {
	vfs.File
	control *controlFile
	number  uint64
	written int64
}

// Write implements vfs.File.
func (f *controlledLog) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// Sync implements vfs.File.
func (f *controlledLog) Sync() error { return f.synced(f.File.Sync()) }

// SyncData implements vfs.File.
func (f *controlledLog) SyncData() error { return f.synced(f.File.SyncData()) }

func (f *controlledLog) synced(err error) error {
	if err != nil {
		return err
	}
	return f.control.logSynced(f.number, f.written)
}

// controlledManifest is a manifest that Pebble writes. Pebble never appends to
// one that it found.
type controlledManifest struct {
	vfs.File
	fs      *controlFS
	dir     string
	number  uint64
	written int64
	crc     hash.Hash32
	known   bool // the record on disk names it
}

// Write implements vfs.File.
func (f *controlledManifest) Write(p []byte) (int, error) {
	_, _ = f.crc.Write(p) // before the write: a file may change p
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// Sync implements vfs.File. The first sync of a manifest waits for the directory
// and for the record, since the marker may name the manifest as soon as Sync
// returns: Pebble syncs the directory once for both files, afterwards.
func (f *controlledManifest) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	if !f.known {
		if err := syncDir(f.fs.FS, f.dir); err != nil {
			return err
		}
	}
	err := f.fs.control.update(!f.known, func(r *controlRecord) { r.manifests[f.number] = syncedPrefix{f.written, f.crc.Sum32()} })
	if err == nil {
		f.known = true
	}
	return err
}

// fileKind is what a file is for.
type fileKind int

const (
	otherFile fileKind = iota
	tableFile
	blobFile
	walFile
	manifestFile
	optionsFile
)

// parseName returns what a file of Pebble's is for, and its number.
func parseName(name string) (fileKind, uint64) {
	kind, digits := otherFile, ""
	if rest, is := strings.CutPrefix(name, "MANIFEST-"); is {
		kind, digits = manifestFile, rest
	} else if rest, is := strings.CutPrefix(name, "OPTIONS-"); is {
		kind, digits = optionsFile, rest
	} else if rest, is := strings.CutSuffix(name, ".sst"); is {
		kind, digits = tableFile, rest
	} else if rest, is := strings.CutSuffix(name, ".blob"); is {
		kind, digits = blobFile, rest
	} else if rest, is := strings.CutSuffix(name, ".log"); is {
		kind, digits = walFile, rest
	}
	var number uint64
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' || number > 1<<58 {
			return otherFile, 0
		}
		number = number*10 + uint64(d-'0')
	}
	if digits == "" {
		return otherFile, 0
	}
	return kind, number
}
