package lsm

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// acceptDamage passes a *DamageError to accept and returns nil. It returns any
// other error, or all if accept is nil, as it is.
func acceptDamage(err error, accept func(*storage.DamageError)) error {
	var damage *storage.DamageError
	if accept == nil || !errors.As(err, &damage) {
		return err
	}
	accept(damage)
	return nil
}

// repair changes a damaged directory so that Pebble opens what can still be read,
// without guessing. It cuts the log in which the damage begins there and removes
// later logs, as if the machine had crashed at that moment: the state is older, but
// consistent. Tables cannot be repaired.
func (d *directory) repair() error {
	// A pipe or a device in the place of the control file would be written to.
	if info, err := d.fs.Stat(d.join(controlName)); err == nil && !info.Mode().IsRegular() {
		if err := d.fs.Remove(d.join(controlName)); err != nil {
			return err
		}
	}
	if err := d.repairManifestMarker(); err != nil {
		return err
	}
	if err := d.repairLogs(); err != nil {
		return err
	}
	d.record, d.hasRecord = newControlRecord(), false
	return syncDir(d.fs, d.path)
}

// repairManifestMarker makes Pebble's marker name the manifest that the control
// file says, or else the newest one that can be read, and reads that manifest.
func (d *directory) repairManifestMarker() error {
	var candidates []uint64
	for _, name := range d.names {
		if kind, number := parseName(name); kind == manifestFile {
			candidates = append(candidates, number)
		}
	}
	slices.Sort(candidates)
	if slices.Contains(candidates, d.record.current) {
		candidates = append(candidates, d.record.current) // tried first
	}

	// A marker that names a readable manifest stays, unless the control file names
	// another that can be read.
	named := slices.Contains(candidates, d.current) && d.manifest != nil && d.manifest.records > 0
	for _, number := range slices.Backward(candidates) {
		m, err := d.read(number)
		if err != nil {
			return err
		}
		if m.records == 0 {
			continue
		}
		if number == d.current || named && number != d.record.current {
			break
		}
		d.current, d.manifest = number, m
		if err := d.placeMarker("manifest", fmt.Sprintf("MANIFEST-%06d", number)); err != nil {
			return err
		}
		break
	}
	if d.current == 0 || d.manifest == nil {
		return nil
	}

	// Without this marker, Pebble opens only a store that is new.
	if d.withPrefix("marker.format-version.") == "marker.format-version.*" {
		return d.placeMarker("format-version", fmt.Sprintf("%03d", pebbleFormat))
	}
	return nil
}

// read reads a manifest as far as it can be read.
func (d *directory) read(number uint64) (*manifest, error) {
	c, err := openRecordFile(d.fs, d.join(fmt.Sprintf("MANIFEST-%06d", number)), 0)
	if errors.Is(err, errNotRegular) {
		return new(manifest), nil
	}
	if err != nil {
		return nil, err
	}
	defer c.close()
	m, err := readManifest(c)
	if errors.Is(err, errEdit) {
		err = nil
	}
	return m, err
}

// placeMarker makes a marker of Pebble's package atomicfs that replaces the
// present ones.
func (d *directory) placeMarker(name, value string) error {
	for _, old := range d.names {
		if strings.HasPrefix(old, "marker."+name+".") {
			if err := d.fs.Remove(d.join(old)); err != nil {
				return err
			}
		}
	}
	f, err := d.fs.Create(d.join(fmt.Sprintf("marker.%s.%06d.%s", name, 1, value)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return f.Close()
}

// repairLogs keeps the logs up to the first damage.
func (d *directory) repairLogs() error {
	if d.manifest == nil {
		return nil
	}
	d.logs = nil
	for _, name := range d.names {
		if kind, number := parseName(name); kind == walFile && number >= d.manifest.minLog {
			d.logs = append(d.logs, number)
		}
	}
	slices.Sort(d.logs)

	first := ^uint64(0) // number of the first log that is damaged or missing
	for _, damage := range d.damage {
		if kind, number := parseName(damage.File); kind == walFile && damage.Loss != lossUntouched {
			first = min(first, number)
		}
	}
	for _, number := range d.logs {
		var err error
		switch {
		case number == first:
			err = d.cutLog(number)
		case number > first:
			err = d.fs.Remove(d.join(logName(number)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cutLog keeps the whole records of a log up to the first damage.
func (d *directory) cutLog(number uint64) error {
	path := d.join(logName(number))
	c, err := openRecordFile(d.fs, path, number)
	if errors.Is(err, errNotRegular) {
		return d.fs.Remove(path)
	}
	if err != nil {
		return err
	}
	defer c.close()
	_, _, whole, err := c.scan(nil)
	if err != nil {
		return err
	}

	// A copy that takes its place: a crash leaves the old log or the new one.
	f, err := d.fs.Create(path+".cut", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.NewSectionReader(c.f, 0, whole))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return d.fs.Rename(path+".cut", path)
}
