package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// markerName is the file that says "this is a Jay database, of this format".
// It is there before Pebble writes a byte, so that an old binary refuses a
// newer database before it opens, and perhaps upgrades, anything in it.
// Part of the on-disk format. Must not change.
const markerName = "JAY"

// Format is the number of the newest on-disk format that this package reads
// and the one it writes. docs/format.md lists them.
// Part of the on-disk format.
const Format = 1

// markerText is the whole content of the marker file of a format.
// Part of the on-disk format. Must not change.
func markerText(format int) string {
	return fmt.Sprintf("jay database, format %d\n", format)
}

// checkMarker decides what dir is: ours (found), empty (not found), somebody
// else's (ErrNotDatabase), or of a newer format (ErrNewerFormat).
func checkMarker(fs vfs.FS, dir string) (found bool, err error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		if info, statErr := fs.Stat(dir); statErr == nil && !info.IsDir() {
			return false, fmt.Errorf("%w: it is a file, not a directory", ErrNotDatabase)
		}
		return false, err
	}

	others := 0
	for _, name := range names {
		switch name {
		case markerName:
			found = true
		case markerName + ".tmp", "LOCK", "lost+found":
			// Left by a creation that did not finish, or by the file system.
		default:
			others++
		}
	}
	if !found && others > 0 {
		return false, fmt.Errorf("%w: it holds other files and no %s file; name an empty or new directory", ErrNotDatabase, markerName)
	}
	if !found {
		return false, nil
	}

	format, err := readMarker(fs, fs.PathJoin(dir, markerName))
	if err != nil {
		return false, err
	}
	if format > Format {
		return false, fmt.Errorf("%w: it has format %d, this program reads up to %d; use a newer version of jay", ErrNewerFormat, format, Format)
	}
	return true, nil
}

func readMarker(fs vfs.FS, path string) (format int, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return 0, err
	}

	rest, ok := strings.CutPrefix(string(text), "jay database, format ")
	number, _, _ := strings.Cut(rest, "\n")
	format, convErr := strconv.Atoi(number)
	if !ok || convErr != nil || format < 1 {
		return 0, fmt.Errorf("%w: its %s file does not start with a format number", ErrNotDatabase, markerName)
	}
	return format, nil
}

// writeMarker creates the marker and syncs it and the directory.
func writeMarker(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, markerName)
	temporary := path + ".tmp"
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, markerText(Format)); err != nil {
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
