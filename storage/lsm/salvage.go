package lsm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// Salvage reads a directory that is not in use, as far as it can be read, and changes only the lock
// in it. It is for directories that Open refuses, and for checks that must leave no trace. Its
// methods are safe for concurrent use, except Close.
//
// A Salvage reads tables in place. It copies all other files into memory, and repairs the copies as
// Open repairs a directory with Options.AcceptLoss. From logs and manifests it takes the records up
// to the first incomplete one, and from other files at most largestOther bytes. So a Salvage takes
// twice the memory of the records in the logs, however large the files are.
type Salvage struct {
	path   string
	disk   vfs.FS // the directory
	sealFS *sealFS
	lock   *dirLock
	log    *slog.Logger
	format storage.StoreFormat
	tables map[string]tableKey // those that the manifest names and that are there, by name
	sizes  map[string]int64    // of those that it names
	files  *salvageFS
	cache  *pebble.Cache

	mu     sync.Mutex
	damage []*storage.DamageError // Guarded by mu, but in open.
	stores []*pebble.DB           // open. Guarded by mu.
}

// OpenSalvage opens a directory. It returns the errors of Open, except damage: Salvage.Damage
// returns the damage. The caller must close the result.
func OpenSalvage(dir string, opts Options) (*Salvage, error) {
	s := &Salvage{disk: opts.FS, log: opts.Logger}
	if s.disk == nil {
		s.disk = vfs.Default
	}
	s.sealFS = &sealFS{FS: withModes(s.disk, opts.GroupReadable)} // of a lock file that is not there
	s.disk = s.sealFS
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.open(dir, opts); err != nil {
		return nil, errors.Join(dirError(dir, openError(err)), s.Close())
	}
	return s, nil
}

func (s *Salvage) open(dir string, opts Options) error {
	note := func(d *storage.DamageError) { d.Dir = dir; s.damage = append(s.damage, d) }
	known := opts.features()
	format, err := checkFormatFile(s.disk, dir, known)
	if err = acceptDamage(err, note); err != nil {
		return err
	}
	if format.number == 0 {
		return storage.ErrNoDatabase
	}
	contents := format
	contents.features &^= encryptedBit(known)
	if s.format = contents.of(known); format.number == damagedFormat {
		s.format = known.Format(known.All() &^ encryptedBit(known))
	}
	if s.path, err = realPath(s.disk, dir); err != nil {
		return err
	}
	if s.lock, err = lockIdentity(s.disk, s.path, false); err != nil {
		return err
	}
	s.lock.engine, err = lockEngine(s.disk, s.path)
	if err != nil && !errors.Is(err, storage.ErrNotWritable) { // nothing writes where nothing can be written
		return err
	}
	if _, err := (unlocking{s.sealFS, s.path, opts.EncryptionKeys}).existing(format, known); acceptDamage(err, note) != nil {
		return err
	}
	d, err := checkDirectory(s.disk, s.path, format.number)
	if err != nil {
		return err
	}
	for _, damage := range d.damage {
		note(damage)
	}
	name, _, wrong, err := damagedOptions(s.disk, s.path)
	if err != nil {
		return err
	}
	if wrong != nil {
		note(&storage.DamageError{File: name, Offset: -1, Problem: "the engine's options cannot be read, and the next Open writes them anew: " + firstLine(wrong), Loss: lossUntouched, Remedy: "open the database for writing once"})
	}
	if s.files, err = newSalvageFS(s.disk, s.path); err != nil {
		return err
	}
	d.fs = s.files
	if d.names, err = s.files.List(s.path); err != nil {
		return err
	}
	if len(d.damage) > 0 {
		if err := d.repair(); err != nil {
			return err
		}
	}
	s.tables, s.sizes = make(map[string]tableKey), make(map[string]int64)
	if d.manifest == nil || d.current == 0 || d.manifest.records == 0 {
		s.files.manifest = ""
		return nil
	}
	s.files.manifest = fmt.Sprintf("MANIFEST-%06d", d.current)
	s.sizes = d.manifest.files()
	var gone []tableKey
	for key := range d.manifest.tables {
		name := fmt.Sprintf("%06d.sst", key.number)
		info, err := s.disk.Stat(s.disk.PathJoin(s.path, name))
		if err == nil && info.Size() == s.sizes[name] {
			s.tables[name] = key
			continue
		}
		gone = append(gone, key)
	}
	cacheBytes := opts.CacheBytes
	if cacheBytes <= 0 {
		cacheBytes = DefaultCacheBytes
	}
	s.cache = pebble.NewCache(cacheBytes)
	return s.files.rewriteManifest(s.path, gone)
}

// Format implements storage.Salvage.
func (s *Salvage) Format() storage.StoreFormat { return s.format }

// Damage returns the damage of the directory, except in the blocks of tables: see CheckFile.
func (s *Salvage) Damage() []*storage.DamageError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.damage)
}

// Files returns the tables that can be checked.
func (s *Salvage) Files() ([]storage.File, error) {
	var files []storage.File
	for _, name := range sortedKeys(s.tables) {
		files = append(files, storage.File{Name: name, Bytes: s.sizes[name]})
	}
	return files, nil
}

// CheckFile implements storage.FileChecker.
func (s *Salvage) CheckFile(ctx context.Context, f storage.File, pace func(int) error) ([]*storage.DamageError, error) {
	d := &directory{fs: s.disk, path: s.path}
	err := d.checkTable(ctx, f.Name, pace)
	return d.damage, err
}

// Reader returns a Reader of the readable data, without the named tables, or nil if nothing can be
// opened. Reads of damaged blocks fail.
func (s *Salvage) Reader(without ...string) (storage.Reader, error) {
	if s.files.manifest == "" {
		return nil, nil
	}
	files := s.files
	if len(without) > 0 {
		var gone []tableKey
		for _, name := range without {
			if key, found := s.tables[name]; found {
				gone = append(gone, key)
			}
		}
		var err error
		if files, err = s.files.clone(s.path); err != nil {
			return nil, err
		}
		if err := files.rewriteManifest(s.path, gone); err != nil {
			return nil, err
		}
	}
	db, err := s.openStore(files)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores = append(s.stores, db)
	return storeReader{db}, nil
}

// openStore opens Pebble on files, without logs if it cannot read them.
func (s *Salvage) openStore(files *salvageFS) (db *pebble.DB, err error) {
	open := func() (db *pebble.DB, err error) {
		defer func() {
			if r := recover(); r != nil {
				db, err = nil, fmt.Errorf("%w: %v", storage.ErrCorrupt, r)
			}
		}()
		fs, err := withoutDamagedOptions(files, s.path, s.log)
		if err != nil {
			return nil, err
		}
		o := &pebble.Options{
			FS: fs, Cache: s.cache, ReadOnly: true, FormatMajorVersion: pebbleFormat, MaxOpenFiles: 1000,
			DisableTableStats: true, DisableAutomaticCompactions: true, Logger: salvageLogger{s.log},
			EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}, // the read says so
		}
		return pebble.Open(s.path, o)
	}
	if db, err = open(); err == nil {
		return db, nil
	}
	s.mu.Lock()
	s.damage = append(s.damage, &storage.DamageError{Dir: s.path, File: damagedFile(err), Offset: -1, Problem: "the store cannot be opened with its logs: " + firstLine(err), Loss: "the commits in the logs"})
	s.mu.Unlock()
	names, err := files.List(s.path)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if kind, _ := parseName(name); kind == walFile {
			if err := files.Remove(files.PathJoin(s.path, name)); err != nil {
				return nil, err
			}
		}
	}
	if db, err = open(); err != nil {
		return nil, newCorruption(err, "restore the directory from a backup")
	}
	return db, nil
}

// salvageLogger passes what Pebble says on, and panics where Pebble would end the
// process.
type salvageLogger struct{ log *slog.Logger }

func (l salvageLogger) Infof(format string, args ...any)  { l.log.Debug(fmt.Sprintf(format, args...)) }
func (l salvageLogger) Errorf(format string, args ...any) { l.log.Debug(fmt.Sprintf(format, args...)) }
func (l salvageLogger) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Close releases the directory.
func (s *Salvage) Close() error {
	var err error
	for _, db := range s.stores {
		err = errors.Join(err, db.Close())
	}
	s.stores = nil
	if s.cache != nil {
		s.cache.Unref()
		s.cache = nil
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// storeReader reads a store that nothing writes to.
type storeReader struct{ db *pebble.DB }

// Get implements storage.Reader.
func (r storeReader) Get(key []byte) ([]byte, io.Closer, error) { return get(r.db, key) }

// Iterate implements storage.Reader.
func (r storeReader) Iterate(lo, hi []byte) (storage.Iterator, error) { return iterate(r.db, lo, hi) }

// salvageFS is a directory in memory, whose tables are on a disk. What is written stays
// in memory.
type salvageFS struct {
	*vfs.MemFS
	disk     vfs.FS
	manifest string // name; "" for none
}

// newSalvageFS copies all files of a directory but its tables.
func newSalvageFS(disk vfs.FS, path string) (*salvageFS, error) {
	s := &salvageFS{MemFS: vfs.NewMem(), disk: disk}
	return s, s.copyFrom(disk, path)
}

// largestOther bounds the files that are neither tables nor logs nor manifests and that are copied. Those of
// a store have a few KB; what else lies in the directory is none of it.
const largestOther = 1 << 20

// copyFrom copies all files but tables.
func (s *salvageFS) copyFrom(from vfs.FS, path string) error {
	if err := s.MemFS.MkdirAll(path, 0o755); err != nil {
		return err
	}
	names, err := from.List(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		kind, number := parseName(name)
		if isTable(kind) || name == "LOCK" {
			continue
		}
		full := from.PathJoin(path, name)
		info, err := from.Stat(full)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		records := kind == walFile || kind == manifestFile
		if !info.Mode().IsRegular() || !records && info.Size() > largestOther {
			continue
		}
		size := info.Size()
		if records {
			if size, err = wholeBytes(from, full, kind, number); err != nil {
				return err
			}
		}
		if err := copyFirst(from, full, s.MemFS, s.MemFS.PathJoin(path, name), size); err != nil {
			return err
		}
	}
	return nil
}

// wholeBytes returns how many bytes of a log or a manifest can be read, from its beginning on.
func wholeBytes(fs vfs.FS, path string, kind fileKind, number uint64) (int64, error) {
	if kind == manifestFile {
		number = 0
	}
	c, err := openRecordFile(fs, path, number)
	if err != nil {
		return 0, err
	}
	defer c.close()
	stop, what, _, err := c.scan(nil)
	if what == foundTrailer {
		stop += firstLogHeader
	}
	return stop, err
}

// copyFirst copies the first bytes of a file.
func copyFirst(from vfs.FS, path string, to vfs.FS, into string, size int64) error {
	f, err := from.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := to.Create(into, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(f, 0, size))
	return errors.Join(err, out.Close())
}

func isTable(kind fileKind) bool { return kind == tableFile || kind == blobFile }

// clone copies what is in memory.
func (s *salvageFS) clone(path string) (*salvageFS, error) {
	c := &salvageFS{MemFS: vfs.NewMem(), disk: s.disk, manifest: s.manifest}
	return c, c.copyFrom(s.MemFS, path)
}

func (s *salvageFS) onDisk(name string) bool {
	kind, _ := parseName(s.disk.PathBase(name))
	return isTable(kind)
}

// Open implements vfs.FS.
func (s *salvageFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if s.onDisk(name) {
		return s.disk.Open(name, opts...)
	}
	return s.MemFS.Open(name, opts...)
}

// Stat implements vfs.FS.
func (s *salvageFS) Stat(name string) (vfs.FileInfo, error) {
	if s.onDisk(name) {
		return s.disk.Stat(name)
	}
	return s.MemFS.Stat(name)
}

// Remove implements vfs.FS. Tables stay.
func (s *salvageFS) Remove(name string) error {
	if s.onDisk(name) {
		return nil
	}
	return s.MemFS.Remove(name)
}

// List implements vfs.FS.
func (s *salvageFS) List(dir string) ([]string, error) {
	names, err := s.MemFS.List(dir)
	if err != nil {
		return nil, err
	}
	all, err := s.disk.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if s.onDisk(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// rewriteManifest writes the records of the manifest that can be read into a new file
// of its name, and one more, which takes tables out.
func (s *salvageFS) rewriteManifest(path string, gone []tableKey) error {
	name := s.MemFS.PathJoin(path, s.manifest)
	c, err := openRecordFile(s.MemFS, name, 0)
	if err != nil {
		return err
	}
	defer c.close()
	f, err := s.MemFS.Create(name+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := record.NewWriter(f)
	_, _, _, err = c.scan(func(_ int64, text []byte) error {
		_, err := w.WriteRecord(text)
		return err
	})
	if len(gone) > 0 && err == nil {
		var edit []byte
		for _, key := range gone {
			edit = binary.AppendUvarint(edit, 6) // a deleted table: see manifest.apply
			edit = binary.AppendUvarint(edit, key.level)
			edit = binary.AppendUvarint(edit, key.number)
		}
		_, err = w.WriteRecord(edit)
	}
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		return err
	}
	return s.MemFS.Rename(name+".new", name)
}
