package lsm

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"github.com/jaydb/jay/storage"
)

// directory is what checkDirectory has found in a directory. Pebble takes some
// damage for the end of a file, and deletes files that a truncated manifest does
// not name. So the check comes before Pebble, and writes nothing.
type directory struct {
	fs   vfs.FS
	path string

	names     []string
	record    controlRecord // of the control file
	hasRecord bool
	slot      int    // of the control file, which has the record
	current   uint64 // number of the manifest; 0 if there is no store yet
	manifest  *manifest
	logs      []uint64 // to be replayed, ascending

	damage []*storage.DamageError
}

// report notes damage.
func (d *directory) report(file string, offset int64, loss, problem string, args ...any) {
	d.damage = append(d.damage, &storage.DamageError{Dir: d.path, File: file, Offset: offset, Problem: fmt.Sprintf(problem, args...), Loss: loss})
}

// Values of DamageError.Loss: what is lost without a file, or without what follows
// the damage in it.
const (
	lossAll       = "everything"
	lossTables    = "what is in the tables that it names"
	lossLog       = "the commits of this log and of those after it"
	lossTail      = "the commits from there on"
	lossFile      = "what is in this table"
	lossUntouched = ""
)

// checkDirectory checks a directory whose format file says format. It returns an
// error for one of the file system; damage is in the result.
func checkDirectory(fs vfs.FS, path string, format int) (*directory, error) {
	d := &directory{fs: fs, path: path, record: newControlRecord()}
	var err error
	if d.names, err = fs.List(path); err != nil {
		return nil, err
	}
	slices.Sort(d.names)
	for _, step := range []func() error{
		func() error { return d.checkControl(format) },
		d.checkMarkers,
		d.checkManifest,
		d.checkFiles,
		d.checkLogs,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *directory) join(name string) string { return d.fs.PathJoin(d.path, name) }

// checkControl reads the control file. A database of format 1 has none that
// counts.
func (d *directory) checkControl(format int) error {
	if format == 1 {
		return nil
	}
	record, slot, err := readControl(d.fs, d.path)
	switch {
	case err == nil:
		d.record, d.slot, d.hasRecord = record, slot, true
	case errors.Is(err, os.ErrNotExist):
		d.report(controlName, -1, lossUntouched, "the file is missing")
	case errors.Is(err, errNoControl):
		d.report(controlName, 0, lossUntouched, "no whole record is in it")
	default:
		return err
	}
	return nil
}

// checkMarkers finds the current manifest by Pebble's marker.
func (d *directory) checkMarkers() error {
	name, err := atomicfs.ReadMarker(d.fs, d.path, "manifest")
	if err != nil {
		d.report("marker.manifest", -1, lossAll, "%v", err)
		return nil
	}
	if name == "" {
		// The creation of a store makes the first manifest, then the marker that
		// names it, then everything else: without a marker there is nothing to lose
		// unless other files are there.
		if d.record.current != 0 {
			d.report("marker.manifest.*", -1, lossAll, "the file is missing: no manifest is named")
			return nil
		}
		for _, name := range d.names {
			if kind, _ := parseName(name); kind == tableFile || kind == blobFile || kind == walFile {
				d.report("marker.manifest.*", -1, lossAll, "the file is missing, and %s is there", name)
				return nil
			}
		}
		return nil
	}
	kind, number := parseName(name)
	if kind != manifestFile {
		d.report("marker.manifest", -1, lossAll, "it names %q, which is no manifest", name)
		return nil
	}
	d.current = number
	if _, found := d.record.manifests[number]; !found && len(d.record.manifests) > 0 {
		d.report(d.withPrefix("marker.manifest."), -1, lossTables, "it names %s, which is not the manifest that was written last", name)
	}
	if version, err := atomicfs.ReadMarker(d.fs, d.path, "format-version"); err != nil || version == "" && (d.record.created || d.record.closed) {
		d.report("marker.format-version.*", -1, lossUntouched, "the file is missing")
	}
	return nil
}

// withPrefix returns the last name with the prefix, or else a pattern for it.
func (d *directory) withPrefix(prefix string) string {
	for _, name := range slices.Backward(d.names) {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return prefix + "*"
}

// checkManifest reads the current manifest and compares it with the record.
func (d *directory) checkManifest() error {
	if d.current == 0 {
		return nil
	}
	name := fmt.Sprintf("MANIFEST-%06d", d.current)
	c, err := openRecordFile(d.fs, d.join(name), 0)
	if errors.Is(err, os.ErrNotExist) {
		d.report(name, -1, lossAll, "the file is missing")
		return nil
	}
	if errors.Is(err, errNotRegular) {
		d.report(name, -1, lossAll, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer c.close()
	m, err := readManifest(c)
	if errors.Is(err, errEdit) {
		d.report(name, m.stop, lossTables, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	d.manifest = m

	part, known := d.record.manifests[d.current]
	switch {
	case known && m.size < part.length:
		d.report(name, m.size, lossTables, "the file ends here, %d bytes of it are missing", part.length-m.size)
	case known && m.stop < part.length:
		d.report(name, m.stop, lossTables, "a record is damaged")
	case known:
		sum, err := c.checksum(part.length)
		if err != nil {
			return err
		}
		if sum != part.crc {
			d.report(name, -1, lossTables, "the first %d bytes are not those that were written", part.length)
		} else if d.record.closed && m.stop != part.length {
			d.report(name, part.length, lossUntouched, "records follow that were not there when the database was closed")
		}
	case m.what != foundEnd:
		// Pebble syncs each record before it writes the next. A record behind the
		// damage proves that the damaged one was complete once.
		follows := false
		err := c.eachAfter(m.stop, func(k chunk) bool {
			follows = k.position == wholeRecord || k.position == firstOfRecord
			return !follows
		})
		if err != nil {
			return err
		}
		if follows || m.records == 0 {
			d.report(name, m.stop, lossTables, "a record is damaged")
		}
	case m.records == 0:
		d.report(name, -1, lossAll, "the file is empty")
	}
	return nil
}

// checkFiles checks that the tables that the manifest names are there and have
// the right sizes.
func (d *directory) checkFiles() error {
	if d.manifest == nil {
		return nil
	}
	files := d.manifest.files()
	for _, name := range sortedKeys(files) {
		info, err := d.fs.Stat(d.join(name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			d.report(name, -1, lossFile, "the file is missing")
		case err != nil:
			return err
		case info.Size() != files[name]:
			d.report(name, -1, lossFile, "the file has %d bytes, %d were written", info.Size(), files[name])
		}
	}
	return nil
}

// checkLogs reads the logs that Pebble will replay.
func (d *directory) checkLogs() error {
	if d.manifest == nil {
		return nil
	}
	for _, name := range d.names {
		if kind, number := parseName(name); kind == walFile && number >= d.manifest.minLog {
			d.logs = append(d.logs, number)
		}
	}
	slices.Sort(d.logs)
	for _, number := range sortedKeys(d.record.logs) {
		if number >= d.manifest.minLog && !slices.Contains(d.logs, number) {
			d.report(logName(number), -1, lossLog, "the file is missing")
		}
	}
	for i, number := range d.logs {
		if err := d.checkLog(number, i == len(d.logs)-1); err != nil {
			return err
		}
	}
	return nil
}

func logName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

// checkLog reads a log. Damage before the length in the control file, or a log
// that ends there, is reported: so much was synced. Behind that length, damage to
// the newest log may be a write that a crash interrupted, unless other records
// prove that it was synced.
func (d *directory) checkLog(number uint64, newest bool) error {
	name := logName(number)
	c, err := openRecordFile(d.fs, d.join(name), number)
	if errors.Is(err, errNotRegular) {
		d.report(name, -1, lossLog, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer c.close()
	stop, what, _, err := c.scan(nil)
	if err != nil {
		return err
	}
	end := stop
	if what == foundTrailer {
		end += firstLogHeader
	}
	part, listed := d.record.logs[number]
	closed := d.record.closed
	switch {
	case closed && !listed:
		d.report(name, -1, lossUntouched, "the file was not there when the database was closed")
	case end < part.length && what == foundDamage:
		d.report(name, stop, lossTail, "a record is damaged: %d bytes were written and synced", part.length)
	case end < part.length:
		d.report(name, stop, lossTail, "the log ends here: %d bytes were written and synced", part.length)
	case closed && end != part.length:
		d.report(name, part.length, lossUntouched, "records follow that were not there when the database was closed")
	case what == foundDamage && !newest:
		d.report(name, stop, lossTail, "a record is damaged, and a later log is there")
	case what == foundDamage:
		synced, err := provenSynced(c, stop)
		if err != nil {
			return err
		}
		if synced {
			d.report(name, stop, lossTail, "a record is damaged, and what follows was written after it was synced")
		}
	}
	return nil
}

// provenSynced reports whether the chunks behind a damaged one at offset prove
// that it was on disk once, and so is not an interrupted write. That they are there
// is no proof: a disk may write what is not synced in any order.
//
// The sync offset in a chunk was synced before the chunk was written. It lags
// behind, since Pebble does not count full blocks (LogWriter.flushLoop), but it
// rises with each sync. Its second rise behind the first whole chunk belongs to a
// sync that began when that chunk, and all before it, had been written; a third
// value proves that this sync has ended.
func provenSynced(c *recordFile, offset int64) (bool, error) {
	proven := false
	var last uint64
	values := 0
	err := c.eachAfter(offset, func(k chunk) bool {
		if values == 0 || k.synced > last {
			last = k.synced
			values++
		}
		proven = k.synced > uint64(offset) || values > syncsOfProof
		return !proven
	})
	return proven, err
}

// syncsOfProof is after how many syncs everything written before the first is
// on disk. One may have been under way already, and another may have begun
// while a chunk was being copied.
const syncsOfProof = 2
