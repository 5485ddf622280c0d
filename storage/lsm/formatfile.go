package lsm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// formatFileName is the file that says "this is a Jay database, of this format".
// It is there before Pebble writes a byte, so that an old binary refuses a
// newer database before it opens, and perhaps upgrades, anything in it.
// Part of the on-disk format. Must not change.
const formatFileName = "JAY"

// Part of the on-disk format. Must not change.
const formatFilePrefix = "jay database, format "

// formatFileText is the whole content of the format file.
// Part of the on-disk format. Must not change.
func formatFileText(format int) string {
	return fmt.Sprintf("%s%d\n", formatFilePrefix, format)
}

// damagedFormat is the format of a database whose format file is damaged or
// missing.
const damagedFormat = -1

// checkFormatFile decides what dir is: a database, of this format; not there or
// empty (0); a directory of other files (ErrNotDatabase); a database of a newer
// format (ErrNewerFormat); or one whose format file is damaged or missing (a
// *DamageError).
func checkFormatFile(fs vfs.FS, dir string) (format int, err error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		if info, statErr := fs.Stat(dir); statErr == nil && !info.IsDir() {
			return 0, fmt.Errorf("%w: it is a file, not a directory", storage.ErrNotDatabase)
		}
		return 0, err
	}

	found, others, ours := false, 0, false
	for _, name := range names {
		switch {
		case name == formatFileName:
			found = true
		case name == formatFileName+".tmp", name == controlName, name == "LOCK", name == "lost+found":
			// Left by a creation that did not finish, or by the file system.
		default:
			others++
			ours = ours || strings.HasPrefix(name, "marker.manifest.")
		}
	}
	if !found {
		switch {
		case others == 0:
			return 0, nil
		case ours && slices.Contains(names, controlName):
			return damagedFormat, &storage.DamageError{Dir: dir, File: formatFileName, Offset: -1, Problem: "the file is missing"}
		}
		return 0, fmt.Errorf("%w: it holds other files and no %s file; name an empty or new directory", storage.ErrNotDatabase, formatFileName)
	}

	format, err = readFormatFile(fs, fs.PathJoin(dir, formatFileName))
	switch {
	case errors.Is(err, storage.ErrNotDatabase) && ours:
		return damagedFormat, &storage.DamageError{Dir: dir, File: formatFileName, Offset: 0, Problem: "it does not say what format the database has"}
	case err != nil:
		return 0, err
	case format > storage.Format:
		return 0, &storage.FormatError{What: "database", Found: format, Newest: storage.Format}
	}
	return format, nil
}

func readFormatFile(fs vfs.FS, path string) (format int, err error) {
	f, err := openRegular(fs, path)
	if errors.Is(err, errNotRegular) {
		return 0, fmt.Errorf("%w: its %s is no regular file", storage.ErrNotDatabase, formatFileName)
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return 0, err
	}

	rest, ok := strings.CutPrefix(string(text), formatFilePrefix)
	number, _, ended := strings.Cut(rest, "\n")
	format, convErr := strconv.Atoi(number)
	if !ok || !ended || convErr != nil || format < 1 || format <= storage.Format && string(text) != formatFileText(format) {
		return 0, fmt.Errorf("%w: its %s file does not start with a format number", storage.ErrNotDatabase, formatFileName)
	}
	return format, nil
}

// upgradeFormatFile turns the format file of an older format into one of Format, in
// place: the file stays the same, so that a lock on it stays valid, and the one
// byte that changes is written whole or not at all.
func upgradeFormatFile(fs vfs.FS, dir string) error {
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, formatFileName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{'0' + storage.Format}, int64(len(formatFilePrefix)))
	return errors.Join(err, f.Sync(), f.Close())
}

// writeFormatFile creates the format file and syncs it and the directory.
func writeFormatFile(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, formatFileName)
	temporary := path + ".tmp"
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, formatFileText(storage.Format)); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := fs.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
