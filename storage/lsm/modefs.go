package lsm

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// dirMode is the mode of the directories that this package makes: documents are for the
// owner of the process only, or with Options.GroupReadable for its group, too. A directory
// that is there keeps its mode.
const dirMode = 0o700

// othersMayUse are the bits of a file with which other users read or change it.
const othersMayUse = 0o006

// modeFS is the file system of the machine, where new files and directories are for their
// owner only, whatever the umask is, or for a group, too. Pebble makes files of mode 0666
// less the umask. A file has its mode from its creation on: what was opened once stays
// readable.
type modeFS struct {
	vfs.FS
	group bool // may read
}

// withModes returns fs with the modes of new files, if it is the file system of the
// machine, and that has modes.
func withModes(fs vfs.FS, group bool) vfs.FS {
	if fs != vfs.Default || runtime.GOOS == "windows" {
		return fs
	}
	return modeFS{FS: fs, group: group}
}

// OS returns the file system of the machine, as databases use it. New files and directories have
// the modes 0600 and 0700, or 0640 and 0750 if the group may read them. Existing files keep their
// modes.
func OS(groupReadable bool) FS { return withModes(vfs.Default, groupReadable) }

// Unwrap implements vfs.FS, and so do those that follow.
func (m modeFS) Unwrap() vfs.FS { return m.FS }

func (m modeFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	err := m.make(name)
	for errors.Is(err, os.ErrExist) { // removed and not truncated, as Pebble does: it may be a link
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		err = m.make(name)
	}
	if err != nil {
		return nil, err
	}
	return m.FS.OpenReadWrite(name, category)
}

func (m modeFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := m.make(name); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return m.FS.OpenReadWrite(name, category, opts...)
}

// ReuseForWrite makes a new file if the old one is of somebody else, so that its mode
// cannot be changed.
func (m modeFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	info, err := os.Lstat(oldname)
	if err == nil && info.Mode() != m.fileMode() {
		err = os.Chmod(oldname, m.fileMode())
		if errors.Is(err, os.ErrPermission) {
			if err := os.Remove(oldname); err != nil {
				return nil, err
			}
			return m.Create(newname, category)
		}
	}
	if err != nil {
		return nil, err
	}
	return m.FS.ReuseForWrite(oldname, newname, category)
}

func (m modeFS) MkdirAll(dir string, _ os.FileMode) error {
	var missing []string
	for d := dir; ; d = m.PathDir(d) {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			break
		}
		missing = append(missing, d)
	}
	if err := m.FS.MkdirAll(dir, dirMode); err != nil || !m.group {
		return err
	}
	for _, d := range missing {
		info, err := os.Stat(d)
		if err == nil {
			err = os.Chmod(d, info.Mode()|0o050) // keeps a set-group-ID bit, which names the group of the files
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m modeFS) Lock(name string) (io.Closer, error) {
	if err := m.make(name); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return m.FS.Lock(name)
}

func (m modeFS) fileMode() os.FileMode {
	if m.group {
		return 0o640
	}
	return 0o600
}

// make makes a file that is not there, and is an os.ErrExist otherwise.
func (m modeFS) make(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, m.fileMode())
	if err != nil {
		return err
	}
	if m.group {
		err = f.Chmod(m.fileMode()) // the umask may keep the group out
	}
	return errors.Join(err, f.Close())
}

// warnOfOthers logs that other users of the machine can read or change a file of the
// database: one that an older version of Jay has made, or that was copied.
func warnOfOthers(log *slog.Logger, fs vfs.FS, dir string) {
	if name, mode := openToOthers(fs, dir); name != "" {
		log.Warn("jay: other users of the machine can read files of the database", "dir", dir, "file", name, "mode", mode.String(), "do", "chmod -R o= "+dir)
	}
}

// openToOthers returns a file of a directory that other users can read or change, or "".
func openToOthers(fs vfs.FS, dir string) (string, os.FileMode) {
	if !onMachine(fs) || runtime.GOOS == "windows" {
		return "", 0
	}
	if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
		return "", 0 // none of them can enter
	}
	names, err := fs.List(dir)
	if err != nil {
		return "", 0
	}
	for _, name := range names {
		info, err := os.Lstat(fs.PathJoin(dir, name))
		if err == nil && info.Mode().IsRegular() && info.Mode()&othersMayUse != 0 {
			return name, info.Mode()
		}
	}
	return "", 0
}
