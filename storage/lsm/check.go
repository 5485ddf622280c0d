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

// directory is what a look at a directory has found. Pebble takes some damage
// for the end of a file, and deletes what a manifest cut short does not name, so
// the look comes before it, and writes nothing.
type directory struct {
	fs   vfs.FS
	path string

	names     []string
	record    controlRecord // of the control file
	hasRecord bool          // there is a record
	slot      int           // in which it is
	current   uint64        // number of the manifest; 0 if there is no store yet
	manifest  *manifest
	logs      []uint64 // to be replayed, ascending

	damage []*storage.DamageError
}

// report notes damage.
func (d *directory) report(file string, offset int64, loss, problem string, args ...any) {
	d.damage = append(d.damage, &storage.DamageError{Dir: d.path, File: file, Offset: offset, Problem: fmt.Sprintf(problem, args...), Loss: loss})
}

// What going on without a file, or behind damage in it, loses.
const (
	lossAll       = "everything"
	lossTables    = "what is in the tables that it names"
	lossLog       = "the commits of this log and of those after it"
	lossTail      = "the commits from there on"
	lossFile      = "what is in this table"
	lossUntouched = ""
)

// checkDirectory looks at a directory that has a marker file of this format. The error is
// one of the file system; damage is in the result.
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

// checkControl reads the control file. Databases of format 1 have none that
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

// checkMarkers finds the current manifest.
func (d *directory) checkMarkers() error {
	name, err := atomicfs.ReadMarker(d.fs, d.path, "manifest")
	if err != nil {
		d.report("marker.manifest", -1, lossAll, "%v", err)
		return nil
	}
	if name == "" {
		// A new store has its first manifest before the marker that names it, and
		// nothing else.
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

// withPrefix returns the last name with the prefix.
func (d *directory) withPrefix(prefix string) string {
	for _, name := range slices.Backward(d.names) {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return prefix + "*"
}

// checkManifest reads the current manifest.
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
		// Each record is synced before the next one is written: one behind the
		// damage proves that it is not an unfinished write.
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

// checkFiles looks whether the files are there that the manifest names.
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

// checkLog reads a log. What is damaged, or missing, before the position that the control
// file says, was synced. Behind it, damage to the newest log may be
// a write that a crash has cut short, unless proof says otherwise.
func (d *directory) checkLog(number uint64, newest bool) error {
	name := logName(number)
	c, err := openRecordFile(d.fs, d.join(name), number)
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

// provenSynced tells whether the chunks behind a damaged one at offset prove that
// it was on disk once. Only then is it not a write that was cut short: the disk may
// write what is not synced in any order.
//
// The sync offset of a chunk was synced before the chunk was written. Pebble
// counts too few bytes (LogWriter.flushLoop leaves out full blocks), so that it
// lags behind. But it rises with each sync: the second rise behind the first
// chunk that is whole belongs to a sync that began when that chunk, and
// all before it, had been handed over, if a third value follows.
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
