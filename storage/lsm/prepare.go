package lsm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

func newControlFS(fs vfs.FS, fail func(error)) *controlFS {
	return &controlFS{FS: fs, control: &controlFile{fail: fail}, created: make(map[string]bool)}
}

// prepare makes a locked directory ready for Pebble. A new directory (number, which is that of the
// format file, is 0) gets its control file, then its format file. An old one is checked, and
// nothing in it changes unless it is whole or accept is not nil.
func (fs *controlFS) prepare(dir string, number int, format storage.StoreFormat, accept func(*storage.DamageError)) error {
	if number == 0 {
		if err := fs.control.start(fs.FS, dir, newControlRecord(), 0, true); err != nil {
			return err
		}
		return writeFormatFile(fs.FS, dir, format)
	}
	d, err := checkDirectory(fs.FS, dir, number)
	if err != nil {
		return err
	}
	if len(d.damage) > 0 && accept == nil {
		return d.damage[0]
	}
	if len(d.damage) > 0 || number == damagedFormat {
		for _, damage := range d.damage {
			accept(damage)
		}
		if err := d.repair(); err != nil {
			return err
		}
	}

	if d.manifest != nil {
		fs.tinyTables = d.manifest.tinyTables()
	}

	// From here on files may grow: the record is no longer exact.
	r := d.record
	r.closed = false
	switch {
	case d.current == 0:
		r.manifests, r.logs = newControlRecord().manifests, newControlRecord().logs
	case !d.hasRecord && d.manifest != nil:
		// Pebble soon makes another manifest, which the record then names. Until the
		// marker names it, too, this one must be in the record: else a power failure
		// between the two leaves a database that looks as if its marker were damaged.
		part, err := d.syncedManifest(true)
		if err != nil {
			return err
		}
		r.current = d.current
		r.manifests[d.current] = part
	}
	if err := fs.control.start(fs.FS, dir, r, d.slot, !d.hasRecord); err != nil {
		return err
	}

	// The format file comes last: once it names this format, a missing control file
	// is damage.
	if number < storage.BaseFormat { // also of a damaged one
		return writeFormatFile(fs.FS, dir, format)
	}
	return nil
}

// close records what the directory consists of after Pebble was closed.
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

	fs.control.mu.Lock()
	r := fs.control.record
	fs.control.mu.Unlock()

	// The record of a closed store has exactly what the next Open will read: the
	// manifest up to its last record, and the logs that it wants replayed.
	closed := newControlRecord()
	closed.created, closed.closed, closed.current = r.created, true, d.current
	part, err := d.syncedManifest(!fs.created[fmt.Sprintf("MANIFEST-%06d", d.current)])
	if err != nil {
		return err
	}
	closed.manifests[d.current] = part
	for _, name := range d.names {
		kind, number := parseName(name)
		if kind != walFile || number < d.manifest.minLog {
			continue
		}
		part := r.logs[number]
		if !fs.created[name] {
			if part, err = syncedLog(fs.FS, d.join(name), number); err != nil {
				return err
			}
		}
		closed.logs[number] = part
	}
	return fs.control.close(closed)
}

// syncedManifest returns what a record says of the current manifest, up to its last
// record. It syncs the file, if older is true: an earlier process may not have synced all
// of it.
func (d *directory) syncedManifest(older bool) (syncedPrefix, error) {
	path := d.join(fmt.Sprintf("MANIFEST-%06d", d.current))
	if older {
		if err := syncFile(d.fs, path); err != nil {
			return syncedPrefix{}, err
		}
	}
	c, err := openRecordFile(d.fs, path, 0)
	if err != nil {
		return syncedPrefix{}, err
	}
	defer c.close()
	part := syncedPrefix{length: d.manifest.stop}
	part.crc, err = c.checksum(part.length)
	return part, err
}

// syncedLog syncs a log that an earlier process made, and returns its length.
func syncedLog(fs vfs.FS, path string, number uint64) (syncedPrefix, error) {
	if err := syncFile(fs, path); err != nil {
		return syncedPrefix{}, err
	}
	c, err := openRecordFile(fs, path, number)
	if err != nil {
		return syncedPrefix{}, err
	}
	defer c.close()
	stop, what, _, err := c.scan(nil)
	if what == foundTrailer {
		stop += firstLogHeader
	}
	return syncedPrefix{length: stop}, err
}

// Creating implements storage.Engine.
func (e *Engine) Creating() bool { return !e.controlFS.control.created() }

// FinishCreation implements storage.Engine.
func (e *Engine) FinishCreation() error {
	if e.readOnly {
		return storage.ErrReadOnly
	}
	return e.controlFS.control.update(true, func(r *controlRecord) { r.created = true })
}
