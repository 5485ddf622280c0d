package lsm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// damage is an ErrCorrupt that names the file on one line. What Pebble has to
// say about it, which may be many lines, is wrapped.
type corruption struct {
	text  string
	cause error
}

// Error names the file, what is wrong with it, and what to do.
func (d *corruption) Error() string { return storage.ErrCorrupt.Error() + ": " + d.text }

// Is makes errors.Is(err, ErrCorrupt) true.
func (d *corruption) Is(target error) bool { return target == storage.ErrCorrupt }

// Unwrap returns what Pebble said.
func (d *corruption) Unwrap() error { return d.cause }

// newDamage describes what Pebble found. The remedy ends the line.
func newCorruption(cause error, remedy string) *corruption {
	file := damagedFile(cause)
	what := "is damaged (" + firstLine(cause) + ")"
	switch {
	case errors.Is(cause, pebble.ErrDBNotPristine): // found so without its format
		file, what = formatMarker, "is missing"
	case errors.Is(cause, fs.ErrNotExist):
		what = "is missing"
	case sizeMismatch.MatchString(cause.Error()):
		sizes := sizeMismatch.FindStringSubmatch(cause.Error())
		what = fmt.Sprintf("has %s bytes instead of %s", sizes[1], sizes[2])
	}
	return &corruption{fmt.Sprintf("%s %s; %s", file, what, remedy), cause}
}

// formatMarker is the empty file whose name ends in the version of Pebble's
// files.
const formatMarker = "marker.format-version.*"

// Texts of Pebble, which has no values for these.
var (
	sizeMismatch = regexp.MustCompile(`object size mismatch \(.*\): (\d+) \(disk\) != (\d+) \(MANIFEST\)`)
	logOffset    = regexp.MustCompile(`replaying wal \d+, offset \(([^()]*\.log): (\d+)\)`)
	fileName     = regexp.MustCompile(`\b(\d{6,}\.(?:sst|log|blob)|MANIFEST-\d+|OPTIONS-\d+|marker\.[a-z-]+\.\d+\.[\w-]+)`)
	tableNumber  = regexp.MustCompile(`^L\d+: (\d{6,}):`)
)

// damagedFile returns the name of the file that an error of Pebble is about,
// without its directory, and where in it if that is known.
func damagedFile(err error) string {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil && info.Path != "" {
		return filepath.Base(info.Path)
	}
	if at := logOffset.FindStringSubmatch(fmt.Sprintf("%+v", err)); at != nil {
		return fmt.Sprintf("%s, at byte %s,", filepath.Base(at[1]), at[2])
	}
	if path, is := errors.AsType[*fs.PathError](err); is {
		return filepath.Base(path.Path)
	}
	text := err.Error()
	if strings.Contains(text, "format major version") {
		return formatMarker
	}
	if name := fileName.FindString(text); name != "" {
		return name
	}
	if number := tableNumber.FindStringSubmatch(text); number != nil {
		return number[1] + ".sst"
	}
	return "a file of the database"
}

// maxCauseBytes is how much of a cause goes into a message.
const maxCauseBytes = 200

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if len(line) > maxCauseBytes {
		line = strings.ToValidUTF8(line[:maxCauseBytes], "") + "…"
	}
	return line
}

// readError gives an error of Pebble that a read met its type: ErrCorrupt for
// a damaged or missing file, ErrUnreadable if the system refuses to read it.
func readError(err error) error {
	if err == nil || errors.Is(err, storage.ErrCorrupt) {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		return newCorruption(err, "the rest of the database can still be read: see to the disk, and restore the file from a backup")
	}
	return unreadable(err)
}

// openError gives an error of the file system its type: ErrNotWritable,
// ErrUnreadable, or none.
func openError(err error) error {
	if errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrUnreadable) {
		return err
	}
	if marked := unreadable(err); marked != err {
		return marked
	}
	if isPermission(err) {
		return fmt.Errorf("%w: %w", storage.ErrNotWritable, err)
	}
	return err
}

// recoveryError gives an error of pebble.Open its type. Pebble marks only
// some of what it finds in its files. But the options do not vary, and the
// lock was taken before: what does not come from the file system is damage.
func (e *Engine) recoveryError(err error) error {
	if failure := e.failure.Load(); failure != nil {
		return openError(*failure) // something could not be written
	}
	if !errors.Is(err, fs.ErrNotExist) && isSystemError(err) && !pebble.IsCorruptionError(err) {
		return openError(err)
	}
	return newCorruption(err, "restore the directory from a backup")
}

// unreadable marks an error of opening or reading a file that is there.
func unreadable(err error) error {
	path, is := errors.AsType[*fs.PathError](err)
	if !is || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch path.Op {
	case "read":
	case "open":
		info, statErr := os.Stat(path.Path)
		if statErr != nil || !info.Mode().IsRegular() {
			return err // it was to be created, or it is the directory
		}
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w; see to its permissions and its disk", storage.ErrUnreadable, filepath.Base(path.Path), path.Err)
}

// isSystemError reports whether err comes from the operating system.
func isSystemError(err error) bool {
	if _, is := errors.AsType[syscall.Errno](err); is {
		return true
	}
	if _, is := errors.AsType[*fs.PathError](err); is {
		return true
	}
	if _, is := errors.AsType[*os.LinkError](err); is {
		return true
	}
	_, is := errors.AsType[*os.SyscallError](err)
	return is || errors.Is(err, io.ErrShortWrite)
}

// dirError says which directory an error is about.
func dirError(dir string, err error) error {
	return fmt.Errorf("open %q: %w", dir, err)
}

// closeError is dirError for an engine that is being closed.
func closeError(dir string, err error) error {
	return fmt.Errorf("close %q: %w", dir, err)
}

// isPermission tells whether err says that nothing can be written here.
func isPermission(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrPermission) || isReadOnlyFS(err) || isDiskFull(err)
}
