package lsm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sealed"
)

// sealFS is a file system whose files are encrypted on the one below it: see package sealed. What is above it
// reads and writes plaintext, with the sizes and offsets of the plaintext. Until it has a ring, it passes
// everything on; then no other than the files of isClear may have been used.
//
// Its place is right above the disk, so that the checks, repairs, checkpoints and salvages of this
// package need not know of it. Damage reaches them as it does without encryption: of a table as an
// error of a read, of a log, a manifest or the control file as zeros, as if nothing had ever been
// written there.
type sealFS struct {
	vfs.FS
	ring *sealed.Ring // set before other files than those of isClear are used

	changes atomic.Uint64 // files that were made, removed or replaced so far; it rises before and after each

	mu      sync.Mutex          // held while a file is removed, or replaced by rekey
	writing map[string]struct{} // files of pages that have no end yet, by path. Guarded by mu.
}

// isClear reports whether a file is not encrypted: the format file, which must be read before a key
// is asked for; the identity of the encrypted database, which protects itself; Pebble's lock and
// markers, which are empty.
func isClear(base string) bool {
	switch strings.TrimSuffix(base, ".tmp") {
	case formatFileName, identityFile, "LOCK":
		return true
	}
	return isMarker(base)
}

func isMarker(base string) bool { return strings.HasPrefix(base, "marker.") }

// layoutOfFile returns how a file is encrypted. A copy of a log that takes its place is one, too: see cutLog.
// Part of the on-disk format. Must not change.
func layoutOfFile(base string) sealed.Layout {
	switch kind, _ := parseName(strings.TrimSuffix(base, ".cut")); {
	case kind == walFile || kind == manifestFile:
		return sealed.Frames
	case base == controlName:
		return sealed.Slots
	}
	return sealed.Pages
}

// Unwrap implements vfs.FS, and so do those that follow.
func (s *sealFS) Unwrap() vfs.FS { return s.FS }

// changing notes that files change, until what it returns is called.
func (s *sealFS) changing() (changed func()) {
	s.changes.Add(1)
	return func() { s.changes.Add(1) }
}

func (s *sealFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	defer s.changing()()
	f, err := s.FS.Create(name, category)
	base := s.PathBase(name)
	switch {
	case err != nil || s.ring == nil:
		return f, err
	case isMarker(base):
		return emptyFile{f}, nil
	case isClear(base):
		return f, nil
	}
	f, err = s.begin(f, base)
	if pages, is := f.(*pageFile); is && err == nil {
		s.begun(name)
		pages.closed = func() { s.ended(name) }
	}
	return f, err
}

// begun notes that a file of pages has no end yet.
func (s *sealFS) begun(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing == nil {
		s.writing = make(map[string]struct{})
	}
	s.writing[name] = struct{}{}
}

func (s *sealFS) ended(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.writing, name)
}

// Remove removes a file, and never one that rekey is about to put in its place.
func (s *sealFS) Remove(name string) error {
	defer s.changing()()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.FS.Remove(name)
}

// rekey encrypts a file of pages anew, with the newest key, while it may be in use: a copy takes
// its place, and whoever has the file open reads on in the old one. It reports whether it has: a
// file that has no end yet, or that is gone, it leaves alone. temporary is the path of the copy.
func (s *sealFS) rekey(name, temporary string) (done bool, err error) {
	s.mu.Lock()
	_, unfinished := s.writing[name]
	s.mu.Unlock()
	if unfinished {
		return false, nil
	}
	defer s.changing()()
	base := s.PathBase(name)
	in, err := s.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	f, err := s.FS.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return false, err
	}
	defer func() {
		if !done {
			err = errors.Join(err, s.FS.Remove(temporary))
		}
	}()
	out, err := s.begin(f, base)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(struct{ io.Writer }{out}, in)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.FS.Stat(name); errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if err := s.FS.Rename(temporary, name); err != nil {
		return false, err
	}
	return true, syncDir(s.FS, s.PathDir(name))
}

// begin begins a new file, and closes it if that fails.
func (s *sealFS) begin(f vfs.File, base string) (vfs.File, error) {
	switch layoutOfFile(base) {
	case sealed.Slots:
		return s.slots(f, base, f), nil
	case sealed.Frames:
		w, err := s.ring.NewFrames(f, base)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &frameFile{writeOnly{f}, w}, nil
	}
	w, err := s.ring.NewPages(f, base)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &pageFile{writeOnly: writeOnly{f}, w: w}, nil
}

func (s *sealFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return s.opened(f, name, nil)
}

// OpenReadWrite opens the control file to be written, or makes it. Other encrypted files must be
// there, and can only be read and synced.
func (s *sealFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	base := s.PathBase(name)
	if s.ring != nil && !isClear(base) && layoutOfFile(base) != sealed.Slots {
		if _, err := s.FS.Stat(name); err != nil {
			return nil, err
		}
	}
	f, err := s.FS.OpenReadWrite(name, category, opts...)
	if err != nil {
		return nil, err
	}
	return s.opened(f, name, f)
}

// opened returns a file that is there. w is nil if it is only read.
func (s *sealFS) opened(f vfs.File, name string, w io.WriterAt) (vfs.File, error) {
	base := s.PathBase(name)
	if s.ring == nil || isClear(base) {
		return f, nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return f, nil
	}
	var text sealedText
	switch layoutOfFile(base) {
	case sealed.Slots:
		return s.slots(f, base, w), nil
	case sealed.Frames:
		text, err = s.ring.OpenFrames(f, info.Size(), base)
	default:
		text, err = s.ring.OpenPages(f, info.Size(), base)
	}
	if err != nil {
		return nil, errors.Join(damaged(err), f.Close())
	}
	return &readFile{File: f, text: text}, nil
}

func (s *sealFS) slots(f vfs.File, base string, w io.WriterAt) vfs.File {
	return &slotFile{readFile{File: f, text: physicalText{s.ring.NewSlots(f, w, base, controlSlots, controlSlotSize), f}}}
}

// ReuseForWrite makes a new file: none is ever encrypted twice with one key.
func (s *sealFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	defer s.changing()()
	if s.ring == nil {
		return s.FS.ReuseForWrite(oldname, newname, category)
	}
	if err := s.FS.Remove(oldname); err != nil {
		return nil, err
	}
	return s.Create(newname, category)
}

func (s *sealFS) Link(oldname, newname string) error {
	if err := s.rebind(oldname, newname); err != nil {
		return err
	}
	return s.FS.Link(oldname, newname)
}

func (s *sealFS) Rename(oldname, newname string) error {
	defer s.changing()()
	if err := s.rebind(oldname, newname); err != nil {
		return err
	}
	return s.FS.Rename(oldname, newname)
}

// rebind makes an encrypted file readable under a new name, too, durably.
func (s *sealFS) rebind(oldname, newname string) error {
	from, to := s.PathBase(oldname), s.PathBase(newname)
	if s.ring == nil || from == to || isClear(from) && isClear(to) {
		return nil
	}
	info, err := s.FS.Stat(oldname)
	if err != nil || info.IsDir() {
		return err
	}
	layout := layoutOfFile(from)
	if isClear(from) || isClear(to) || layout != layoutOfFile(to) || layout == sealed.Slots {
		return fmt.Errorf("an encrypted file cannot get this name: %s is to become %s", from, to)
	}
	f, err := s.FS.OpenReadWrite(oldname, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	header, err := sealed.ReadHeader(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	offset, slot, err := s.ring.Rename(header, layout, from, to)
	if err == nil {
		_, err = f.WriteAt(slot, offset)
	}
	if err == nil {
		err = f.SyncData()
	}
	return errors.Join(damaged(err), f.Close())
}

// Stat returns the size of the plaintext, but of logs and manifests the size on disk: to know the other one, the whole
// file must be read, and who needs it opens the file.
func (s *sealFS) Stat(name string) (vfs.FileInfo, error) {
	info, err := s.FS.Stat(name)
	if base := s.PathBase(name); err != nil || s.ring == nil || info.IsDir() || isClear(base) || layoutOfFile(base) != sealed.Pages {
		return info, err
	}
	return sealedInfo{info, sealed.PageSize(info.Size())}, nil
}

// sealedInfo has the size of a plaintext.
type sealedInfo struct {
	vfs.FileInfo
	size int64
}

// Size implements os.FileInfo.
func (i sealedInfo) Size() int64 { return i.size }

// pageDamage is a sealed.Damage that Pebble takes for damage, too. The reads of this package name
// the file and say what to do: see readError.
type pageDamage struct{ damage *sealed.Damage }

// Error implements error.
func (d *pageDamage) Error() string { return d.damage.Error() }

// Is makes pebble.IsCorruptionError(err) true.
func (d *pageDamage) Is(target error) bool { return target == pebble.ErrCorruption }

// damaged makes a pageDamage of a sealed.Damage, and returns other errors as they are.
func damaged(err error) error {
	var damage *sealed.Damage
	if errors.As(err, &damage) {
		return &pageDamage{damage}
	}
	return err
}

// sealedText is the plaintext of a file.
type sealedText interface {
	io.ReaderAt
	Size() int64
}

// readFile is an encrypted file that is read.
type readFile struct {
	vfs.File
	text sealedText
	at   int64 // of the next Read
}

// Read implements vfs.File, and so do those that follow.
func (f *readFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *readFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.text.ReadAt(p, offset)
	return n, damaged(err)
}

func (f *readFile) Write([]byte) (int, error) { return 0, errReadOnlyFile }

func (f *readFile) WriteAt([]byte, int64) (int, error) { return 0, errReadOnlyFile }

func (f *readFile) Preallocate(int64, int64) error { return nil }

func (f *readFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return sealedInfo{info, f.text.Size()}, nil
}

func (f *readFile) Prefetch(offset, length int64) error {
	from := sealed.PhysicalPages(offset)
	return f.File.Prefetch(from, sealed.PhysicalPages(offset+length)-from)
}

func (f *readFile) Fd() uintptr { return vfs.InvalidFd }

var errReadOnlyFile = errors.New("the encrypted file is there already, and is not written again")

// physicalText are slots, which have the size of their file.
type physicalText struct {
	*sealed.SlotFile
	f vfs.File
}

// Size implements sealedText.
func (p physicalText) Size() int64 {
	info, err := p.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// slotFile is the control file.
type slotFile struct{ readFile }

// WriteAt implements vfs.File.
func (f *slotFile) WriteAt(p []byte, offset int64) (int, error) {
	return f.text.(physicalText).SlotFile.WriteAt(p, offset)
}

// writeOnly is a file that is being written.
type writeOnly struct{ vfs.File }

var errWriteOnly = errors.New("the encrypted file is being written, and must be opened to be read")

// Read implements vfs.File, and so do those that follow.
func (f writeOnly) Read([]byte) (int, error) { return 0, errWriteOnly }

func (f writeOnly) ReadAt([]byte, int64) (int, error) { return 0, errWriteOnly }

func (f writeOnly) WriteAt([]byte, int64) (int, error) { return 0, errWriteOnly }

func (f writeOnly) Prefetch(int64, int64) error { return nil }

func (f writeOnly) stat(size int64) (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return sealedInfo{info, size}, err
}

// pageFile is a file of pages that is being written. Its Close writes the last page.
type pageFile struct {
	writeOnly
	w       *sealed.PageWriter
	durable bool   // Sync was called
	closed  func() // called by Close; nil for none
}

// Write implements vfs.File, and so do those that follow.
func (f *pageFile) Write(p []byte) (int, error) { return f.w.Write(p) }

func (f *pageFile) Stat() (vfs.FileInfo, error) { return f.stat(f.w.Size()) }

// Preallocate does nothing: the size of the file tells which page is the last.
func (f *pageFile) Preallocate(int64, int64) error { return nil }

// Sync makes Close sync the file: only then is it known which page is the last. Pebble syncs a file
// of pages before it closes it, and uses it after that; where a disk cannot sync a part of a file,
// Pebble also syncs in between, which is to spread the work and not for durability.
func (f *pageFile) Sync() error {
	f.durable = true
	return nil
}

func (f *pageFile) SyncData() error { return f.Sync() }

// SyncTo syncs pages, but never the last one.
func (f *pageFile) SyncTo(int64) (bool, error) {
	_, err := f.File.SyncTo(f.w.Physical())
	return false, err
}

func (f *pageFile) Close() error {
	err := f.w.End()
	if err == nil && f.durable {
		err = f.File.Sync()
	}
	err = errors.Join(err, f.File.Close())
	if f.closed != nil {
		f.closed()
	}
	return err
}

// frameFile is a file of frames that is being written.
type frameFile struct {
	writeOnly
	w *sealed.FrameWriter
}

// Write implements vfs.File, and so do those that follow.
func (f *frameFile) Write(p []byte) (int, error) { return f.w.Write(p) }

func (f *frameFile) Stat() (vfs.FileInfo, error) { return f.stat(f.w.Size()) }

// Preallocate allocates half as much more, for what encryption adds to short records.
func (f *frameFile) Preallocate(offset, length int64) error {
	return f.File.Preallocate(f.w.Physical()+max(0, offset-f.w.Size()), length+length/2)
}

func (f *frameFile) SyncTo(int64) (bool, error) { return f.File.SyncTo(f.w.Physical()) }

// emptyFile is a file that says something by its name only.
type emptyFile struct{ vfs.File }

// Write implements vfs.File, and so does WriteAt.
func (emptyFile) Write([]byte) (int, error) { return 0, os.ErrInvalid }

func (emptyFile) WriteAt([]byte, int64) (int, error) { return 0, os.ErrInvalid }
