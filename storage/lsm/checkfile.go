package lsm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
)

var _ storage.FileChecker = (*Engine)(nil)

// Files implements storage.FileChecker.
func (e *Engine) Files() ([]storage.File, error) {
	names, err := e.fs.List(e.path)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	tables, err := e.tables()
	if err != nil {
		return nil, err
	}
	var files []storage.File
	for _, name := range names {
		if !isLive(e.controlFS.control, name, tables) {
			continue
		}
		info, err := e.fs.Stat(e.fs.PathJoin(e.path, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, storage.File{Name: name, Bytes: info.Size()})
	}
	for _, name := range sortedKeys(tables) {
		if !slices.Contains(names, name) {
			files = append(files, storage.File{Name: name, Bytes: tables[name]})
		}
	}
	return files, nil
}

// isLive reports whether the engine needs a file, and CheckFile can say something about
// it: not of older manifests and of logs that are kept to be used again.
func isLive(c *controlFile, name string, tables map[string]int64) bool {
	known := false
	switch kind, number := parseName(name); kind {
	case tableFile:
		_, known = tables[name]
	case walFile:
		_, known = c.prefix(number, true)
	case manifestFile:
		_, known = c.prefix(number, false)
	default:
		known = name == formatFileName || name == controlName || name == identityFile
	}
	return known
}

// tables returns the names and sizes of the tables of the current version.
func (e *Engine) tables() (map[string]int64, error) {
	levels, err := e.db.SSTables()
	if err != nil {
		return nil, readError(err)
	}
	tables := make(map[string]int64)
	for _, level := range levels {
		for i := range level {
			t := &level[i]
			size := int64(t.Size)
			if t.Virtual {
				size = -1
			}
			tables[fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum))] = size
		}
	}
	return tables, nil
}

// CheckFile implements storage.FileChecker.
func (e *Engine) CheckFile(ctx context.Context, f storage.File, pace func(int) error) ([]*storage.DamageError, error) {
	d := &directory{fs: e.fs, path: e.path, record: newControlRecord()}
	var err error
	switch kind, number := parseName(f.Name); {
	case f.Name == formatFileName:
		if _, err = checkFormatFile(e.fs, e.path, e.uses.known); errors.As(err, new(*storage.DamageError)) || errors.Is(err, storage.ErrNotDatabase) {
			d.report(f.Name, 0, lossUntouched, "it does not begin with a format number")
			err = nil
		}
	case f.Name == controlName:
		if _, _, err = readControl(e.fs, e.path); errors.Is(err, errNoControl) || errors.Is(err, os.ErrNotExist) {
			d.report(f.Name, 0, lossUntouched, "no whole record is in it")
			err = nil
		}
	case f.Name == identityFile:
		err = d.checkIdentity(e.opts.EncryptionKeys)
	case kind == walFile:
		err = e.checkLiveLog(d, f.Name, number, pace)
	case kind == manifestFile:
		err = e.checkLiveManifest(d, f.Name, number, pace)
	case kind == tableFile:
		err = d.checkTable(ctx, f.Name, pace)
		if errors.Is(err, os.ErrNotExist) {
			var tables map[string]int64
			if tables, err = e.tables(); err != nil {
				return nil, err
			}
			if _, live := tables[f.Name]; live {
				d.report(f.Name, -1, lossFile, "the file is missing")
			}
		} else if len(d.damage) > 0 {
			var tables map[string]int64
			if tables, err = e.tables(); err == nil {
				if _, live := tables[f.Name]; !live {
					d.damage = nil // a compaction has replaced it, and would have met the damage
				}
			}
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return d.damage, nil
}

// checkIdentity opens the identity file of an encrypted database.
func (d *directory) checkIdentity(keys sealed.Keys) error {
	identity, err := readIdentity(d.fs, d.path)
	if err == nil {
		_, err = sealed.OpenIdentity(identity, identityFile, keys)
	}
	if damage := (*sealed.Damage)(nil); errors.As(err, &damage) {
		d.report(identityFile, damage.Offset, lossAll, "%s", damage.Problem)
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		d.report(identityFile, -1, lossAll, "the file is missing")
		return nil
	}
	return err
}

// checkLiveLog reads the part of a log that is on disk. What the log holds is in memory,
// or in tables, as long as the engine is open.
func (e *Engine) checkLiveLog(d *directory, name string, number uint64, pace func(int) error) error {
	part, known := e.controlFS.control.prefix(number, true)
	if !known || part.length == 0 {
		return nil
	}
	if err := pace(int(part.length)); err != nil {
		return err
	}
	c, err := openRecordFile(d.fs, d.join(name), number)
	if err != nil {
		return err
	}
	defer c.close()
	stop, _, _, err := c.scan(nil)
	if err != nil {
		return err
	}
	if _, still := e.controlFS.control.prefix(number, true); stop+firstLogHeader < part.length && still {
		d.report(name, stop, lossTail, "a record is damaged: %d bytes were written and synced; what it holds is still in memory or in tables: DB.Compact writes it again", part.length)
	}
	return nil
}

// checkLiveManifest compares the part of the manifest that is on disk with its checksum.
func (e *Engine) checkLiveManifest(d *directory, name string, number uint64, pace func(int) error) error {
	part, known := e.controlFS.control.prefix(number, false)
	if !known || part.length == 0 {
		return nil
	}
	if err := pace(int(part.length)); err != nil {
		return err
	}
	c, err := openRecordFile(d.fs, d.join(name), 0)
	if err != nil {
		return err
	}
	defer c.close()
	sum, err := c.checksum(part.length)
	if err != nil {
		return err
	}
	if _, still := e.controlFS.control.prefix(number, false); sum != part.crc && still {
		d.report(name, -1, lossTables, "the first %d bytes are not those that were written", part.length)
	}
	return nil
}

// blockTrailer is how many bytes follow a block of a table: its kind, and a CRC-32C of
// block and kind.
const blockTrailer = block.TrailerLen

// checkTable reads every block of a table, and compares its checksum. Blocks and footer
// must be the whole file, so that each byte of it is looked at.
func (d *directory) checkTable(ctx context.Context, name string, pace func(int) error) error {
	f, err := openRegular(d.fs, d.join(name))
	if errors.Is(err, errNotRegular) {
		d.report(name, -1, lossFile, "%v", err)
		return nil
	}
	if pebble.IsCorruptionError(err) { // of an encrypted file
		d.report(name, 0, lossFile, "%s", firstLine(err))
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	layout, err := layoutOf(context.WithoutCancel(ctx), f)
	if err != nil {
		if isSystemError(err) && !pebble.IsCorruptionError(err) {
			return err
		}
		d.report(name, -1, lossFile, "its index or its footer is damaged: %s", firstLine(err))
		return nil
	}
	blocks := blocksOf(layout)
	at := uint64(0)
	var buffer []byte
	for _, b := range blocks {
		if b.Offset != at {
			d.report(name, int64(min(at, b.Offset)), lossFile, "its blocks do not follow one another: one ends at %d, and the next begins at %d", at, b.Offset)
		}
		at = b.Offset + b.Length + blockTrailer
		if b.Length > uint64(info.Size()) || at > uint64(info.Size()) {
			d.report(name, int64(b.Offset), lossFile, "a block ends behind the file, at %d of %d", at, info.Size())
			return nil
		}
		n := int(b.Length) + blockTrailer
		if err := pace(n); err != nil {
			return err
		}
		if cap(buffer) < n {
			buffer = make([]byte, n)
		}
		buffer = buffer[:n]
		read, err := f.ReadAt(buffer, int64(b.Offset))
		if pebble.IsCorruptionError(err) {
			d.report(name, int64(b.Offset), lossBlock, "a block of %d bytes is not authentic: %s", b.Length, firstLine(err))
			continue
		}
		if err != nil && !(errors.Is(err, io.EOF) && read == n) {
			return err
		}
		sum := uint32(buffer[n-4]) | uint32(buffer[n-3])<<8 | uint32(buffer[n-2])<<16 | uint32(buffer[n-1])<<24
		if maskedCRC(buffer[:n-4]) != sum {
			d.report(name, int64(b.Offset), lossBlock, "a block of %d bytes does not have its checksum", b.Length)
		}
	}
	if at != layout.Footer.Offset || layout.Footer.Offset+layout.Footer.Length != uint64(info.Size()) {
		d.report(name, int64(at), lossFile, "its footer is not where its blocks end: %d of %d bytes", layout.Footer.Offset, info.Size())
	}
	return nil
}

// lossBlock is the loss of a damaged block.
const lossBlock = "what is in this block"

// layoutOf reads where the blocks of a table are.
func layoutOf(ctx context.Context, f vfs.File) (layout *sstable.Layout, err error) {
	readable, err := sstable.NewSimpleReadable(keepOpen{f})
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil { // Pebble panics at some damage
			layout, err = nil, fmt.Errorf("%v", r)
		}
	}()
	var o pebble.Options
	o.EnsureDefaults()
	r, err := sstable.NewReader(ctx, readable, o.MakeReaderOptions())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Layout()
}

// keepOpen is a file that a reader does not close.
type keepOpen struct{ vfs.File }

// Close does nothing.
func (keepOpen) Close() error { return nil }

// blocksOf returns all blocks of a table, in their order.
func blocksOf(l *sstable.Layout) []block.Handle {
	var all []block.Handle
	for i := range l.Data {
		all = append(all, l.Data[i].Handle)
	}
	all = append(all, l.Index...)
	for _, f := range l.Filter {
		all = append(all, f.Handle)
	}
	all = append(all, l.ValueBlock...)
	all = append(all, l.TopIndex, l.RangeDel, l.RangeKey, l.ValueIndex, l.Properties, l.MetaIndex, l.BlobReferenceIndex)
	all = slices.DeleteFunc(all, func(b block.Handle) bool { return b.Length == 0 })
	slices.SortFunc(all, func(a, b block.Handle) int { return int(int64(a.Offset) - int64(b.Offset)) })
	return slices.Compact(all)
}
