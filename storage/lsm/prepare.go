package lsm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

func newControlFS(fs vfs.FS, fail func(error)) *controlFS {
	return &controlFS{FS: fs, c: &control{fail: fail}, own: make(map[string]bool)}
}

// prepare makes the directory ready for Pebble, which writes and deletes as soon as
// it opens it. The directory is locked. A new one, which is not found, gets its control file and
// then its marker; an old one is looked at first, and nothing in it changes
// unless it is whole, or accept says that losses are accepted.
func (fs *controlFS) prepare(dir string, format int, found bool, accept func(*storage.DamageError)) error {
	if !found {
		if err := fs.c.start(fs.FS, dir, newControlRecord(), 0, true); err != nil {
			return err
		}
		return writeMarker(fs.FS, dir)
	}
	d, err := checkDirectory(fs.FS, dir, format)
	if err != nil {
		return err
	}
	if len(d.damage) > 0 && accept == nil {
		return d.damage[0]
	}
	if len(d.damage) > 0 || format == damagedMarker {
		for _, damage := range d.damage {
			accept(damage)
		}
		if err := d.salvage(); err != nil {
			return err
		}
	}

	r := d.record
	r.closed = false
	if d.current == 0 {
		r.manifests, r.logs = newControlRecord().manifests, newControlRecord().logs
	}
	if err := fs.c.start(fs.FS, dir, r, d.slot, !d.known); err != nil {
		return err
	}
	switch format {
	case damagedMarker:
		return writeMarker(fs.FS, dir)
	case 1:
		return upgradeMarker(fs.FS, dir)
	}
	return nil
}

// close writes what a directory consists of in which Pebble was closed.
func (fs *controlFS) close(dir string) error {
	d := &directory{fs: fs.FS, path: dir, record: newControlRecord()}
	var err error
	if d.names, err = fs.FS.List(dir); err != nil {
		return err
	}
	for _, step := range []func() error{d.checkMarkers, d.checkManifest} {
		if err := step(); err != nil {
			return err
		}
	}
	if len(d.damage) > 0 {
		return d.damage[0]
	}
	if d.manifest == nil {
		return errors.New("there is no manifest")
	}

	fs.c.mu.Lock()
	r := fs.c.record
	fs.c.mu.Unlock()
	closed := newControlRecord()
	closed.created, closed.closed, closed.current = r.created, true, d.current
	name := fmt.Sprintf("MANIFEST-%06d", d.current)
	if !fs.own[name] { // then not all of it may be on disk
		if err := syncFile(fs.FS, d.join(name)); err != nil {
			return err
		}
	}
	c, err := openChunks(fs.FS, d.join(name), 0)
	if err != nil {
		return err
	}
	defer c.close()
	part := filePart{length: d.manifest.stop}
	if part.crc, err = c.checksum(part.length); err != nil {
		return err
	}
	closed.manifests[d.current] = part
	for _, name := range d.names {
		kind, number := parseName(name)
		if kind != walFile || number < d.manifest.minLog {
			continue
		}
		part := r.logs[number]
		if !fs.own[name] {
			if part, err = syncedLog(fs.FS, d.join(name), number); err != nil {
				return err
			}
		}
		closed.logs[number] = part
	}
	return fs.c.close(closed)
}

// syncedLog makes a log durable that was there before, and returns how long it is.
func syncedLog(fs vfs.FS, path string, number uint64) (filePart, error) {
	if err := syncFile(fs, path); err != nil {
		return filePart{}, err
	}
	c, err := openChunks(fs, path, number)
	if err != nil {
		return filePart{}, err
	}
	defer c.close()
	stop, what, _, err := c.scan(nil)
	if what == foundTrailer {
		stop += firstLogHeader
	}
	return filePart{length: stop}, err
}

// Creating implements Engine.
func (e *Pebble) Creating() bool { return !e.control.c.created() }

// FinishCreation implements Engine.
func (e *Pebble) FinishCreation() error {
	return e.control.c.update(true, func(r *controlRecord) { r.created = true })
}
