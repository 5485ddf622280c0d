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

// identityFile is there in the directory of an encrypted database, and of no other. It says which
// database it is, and shows whether a key is the right one: see sealed.OpenIdentity. It is written
// before any other file of a new database. Part of the on-disk format. Must not change.
const identityFile = "JAY.keys"

// Part of the on-disk format. Must not change.
const formatFilePrefix = "jay database, format "

// featureFilePrefix begins the line of each feature that the database uses, ascending. The
// number and the name follow.
// Part of the on-disk format. Must not change.
const featureFilePrefix = "feature "

// fileFormat is what the format file says.
type fileFormat struct {
	number   int // 0 without a database, damagedFormat if it cannot be read
	features storage.FeatureSet
}

// formatFileText is the whole content of the format file.
// Part of the on-disk format. Must not change.
func formatFileText(f storage.StoreFormat) string {
	text := fmt.Sprintf("%s%d\n", formatFilePrefix, f.Number)
	for _, feature := range f.Features {
		text += featureLine(feature)
	}
	return text
}

func featureLine(f storage.Feature) string {
	return fmt.Sprintf("%s%d: %s\n", featureFilePrefix, f.Format, f.Name)
}

// maxFormatFile is how much of a format file is read: more than all features take.
const maxFormatFile = 8 << 10

// damagedFormat is the number in a format file that is damaged or missing.
const damagedFormat = -1

// checkFormatFile decides what dir is: a database, of this format; not there or
// empty (0); a directory of other files (ErrNotDatabase); a database of a
// format beyond known (a *FormatError); or one whose format file is damaged or missing (a
// *DamageError).
func checkFormatFile(fs vfs.FS, dir string, known storage.Features) (format fileFormat, err error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return format, nil
	}
	if err != nil {
		if info, statErr := fs.Stat(dir); statErr == nil && !info.IsDir() {
			return format, fmt.Errorf("%w: it is a file, not a directory", storage.ErrNotDatabase)
		}
		return format, err
	}

	found, others, ours := false, 0, false
	for _, name := range names {
		switch {
		case name == formatFileName:
			found = true
		case name == formatFileName+".tmp", name == controlName, name == identityFile, name == identityFile+".tmp", name == "LOCK", name == "lost+found":
			// Left by a creation that did not finish, or by the file system.
		default:
			others++
			ours = ours || strings.HasPrefix(name, "marker.manifest.")
		}
	}
	if !found {
		switch {
		case others == 0:
			return format, nil
		case ours && slices.Contains(names, controlName):
			return fileFormat{number: damagedFormat}, &storage.DamageError{Dir: dir, File: formatFileName, Offset: -1, Problem: "the file is missing"}
		}
		return format, fmt.Errorf("%w: it holds other files and no %s file; name an empty or new directory", storage.ErrNotDatabase, formatFileName)
	}

	format, err = readFormatFile(fs, fs.PathJoin(dir, formatFileName), known)
	if errors.Is(err, storage.ErrNotDatabase) && ours {
		return fileFormat{number: damagedFormat}, &storage.DamageError{Dir: dir, File: formatFileName, Offset: 0, Problem: "it does not say what format the database has"}
	}
	return format, err
}

func readFormatFile(fs vfs.FS, path string, known storage.Features) (format fileFormat, err error) {
	f, err := openRegular(fs, path)
	if errors.Is(err, errNotRegular) {
		return format, fmt.Errorf("%w: its %s is no regular file", storage.ErrNotDatabase, formatFileName)
	}
	if err != nil {
		return format, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFormatFile))
	if err != nil {
		return format, err
	}
	return parseFormatFile(string(text), known)
}

// parseFormatFile reads a format file. Of a newer one it reads the number and the names of the
// features that are not known, and any other line may be there; one that is known must have exactly
// the text that is written for it.
func parseFormatFile(text string, known storage.Features) (format fileFormat, err error) {
	rest, ok := strings.CutPrefix(text, formatFilePrefix)
	number, lines, ended := strings.Cut(rest, "\n")
	format.number, err = strconv.Atoi(number)
	if !ok || !ended || err != nil || format.number < 1 {
		return fileFormat{}, errNoNumber
	}
	if format.number > known.Newest() {
		return fileFormat{}, &storage.FormatError{What: "database", Found: format.number, Newest: known.Newest(), Features: namesBeyond(lines, known.Newest())}
	}
	for i, feature := range known {
		if strings.Contains(lines, featureLine(feature)) {
			format.features |= 1 << i
		}
	}
	if text != formatFileText(format.of(known)) {
		return fileFormat{}, errNoNumber
	}
	return format, nil
}

var errNoNumber = fmt.Errorf("%w: its %s file does not start with a format number", storage.ErrNotDatabase, formatFileName)

// of returns the format of a store whose format file has been read.
func (f fileFormat) of(known storage.Features) storage.StoreFormat {
	if f.features == 0 {
		return storage.StoreFormat{Number: min(f.number, storage.BaseFormat)}
	}
	return known.Format(f.features)
}

// namesBeyond returns the names of the features with higher numbers than newest.
func namesBeyond(lines string, newest int) (names []string) {
	for line := range strings.Lines(lines) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), featureFilePrefix)
		text, name, found := strings.Cut(rest, ": ")
		if number, err := strconv.Atoi(text); ok && found && err == nil && number > newest {
			names = append(names, name)
		}
	}
	return names
}

// writeFormatFile creates or replaces the format file, and syncs it and the directory. A crash leaves
// what was there before, or the new one.
func writeFormatFile(fs vfs.FS, dir string, format storage.StoreFormat) error {
	return replaceFile(fs, dir, formatFileName, []byte(formatFileText(format)))
}

// replaceFile creates or replaces a small file, and syncs it and the directory. A crash leaves what
// was there before, or the new one.
func replaceFile(fs vfs.FS, dir, name string, text []byte) error {
	path := fs.PathJoin(dir, name)
	temporary := path + ".tmp"
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
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
