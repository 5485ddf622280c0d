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

// corruption is an ErrCorrupt that names the file on one line. Pebble's error,
// which may have many lines, is wrapped.
type corruption struct {
	text  string
	cause error
}

// Error names the file, what is wrong with it, and what to do.
func (d *corruption) Error() string { return storage.ErrCorrupt.Error() + ": " + d.text }

// Is makes errors.Is(err, ErrCorrupt) true.
func (d *corruption) Is(target error) bool { return target == storage.ErrCorrupt }

// Unwrap returns Pebble's error.
func (d *corruption) Unwrap() error { return d.cause }

// newCorruption describes what Pebble has found. The message ends with the
// remedy.
func newCorruption(cause error, remedy string) *corruption {
	file := damagedFile(cause)
	what := "is damaged (" + firstLine(cause) + ")"
	switch {
	case errors.Is(cause, pebble.ErrDBNotPristine): // Pebble says so if the marker of its format is missing
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

// Messages of Pebble for which it has no error values.
var (
	sizeMismatch = regexp.MustCompile(`object size mismatch \(.*\): (\d+) \(disk\) != (\d+) \(MANIFEST\)`)
	logOffset    = regexp.MustCompile(`replaying wal \d+, offset \(([^()]*\.log): (\d+)\)`)
	fileName     = regexp.MustCompile(`\b(\d{6,}\.(?:sst|log|blob)|MANIFEST-\d+|OPTIONS-\d+|marker\.[a-z-]+\.\d+\.[\w-]+)`)
	tableNumber  = regexp.MustCompile(`^L\d+: (\d{6,}):`)
)

// damagedFile returns the name of the file that an error of Pebble's is about,
// without its directory, and the offset if that is known.
func damagedFile(err error) string {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil && info.Path != "" {
		return filepath.Base(info.Path)
	}
	if at := logOffset.FindStringSubmatch(fmt.Sprintf("%+v", err)); at != nil {
		return fmt.Sprintf("%s, at byte %s,", filepath.Base(at[1]), at[2])
	}
	var path *fs.PathError
	if errors.As(err, &path) {
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

// firstLine returns the first line of the message of err, cut to maxCauseBytes.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if len(line) > maxCauseBytes {
		line = strings.ToValidUTF8(line[:maxCauseBytes], "") + "…"
	}
	return line
}

// readError gives an error that a read of Pebble's met its type: ErrCorrupt for
// a damaged or missing file, ErrUnreadable if the system refuses to read it.
func readError(err error) error {
	if err == nil || errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrKey) {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		return newCorruption(err, "the rest of the database can still be read: see to the disk, and restore the file from a backup")
	}
	return unreadable(err)
}

// openError gives an error of the file system its type: see notWritable; ErrUnreadable; or
// none.
func openError(err error) error {
	if errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrUnreadable) || errors.Is(err, storage.ErrKey) {
		return err
	}
	if marked := unreadable(err); marked != err {
		return marked
	}
	if isPermission(err) {
		return notWritable(err)
	}
	return err
}

// notWritable gives an error its type: ErrNotWritable, and ErrDiskFull if that is the reason.
func notWritable(err error) error {
	if isDiskFull(err) {
		err = fullError{err}
	}
	return fmt.Errorf("%w: %w", storage.ErrNotWritable, err)
}

// recoveryError gives an error of pebble.Open its type. Pebble marks only some of
// the damage that it finds. But the options are the same at every Open, and the
// lock is held: an error that does not come from the file system is damage.
func (e *Engine) recoveryError(err error) error {
	if failure := e.failure.Load(); failure != nil {
		return openError(*failure) // something could not be written
	}
	if errors.Is(err, storage.ErrKey) {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) && isSystemError(err) && !pebble.IsCorruptionError(err) {
		return openError(err)
	}
	return newCorruption(err, "restore the directory from a backup")
}

// unreadable marks an error of opening or reading a file that is there as
// ErrUnreadable, and returns any other as it is.
func unreadable(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) || errors.Is(err, fs.ErrNotExist) {
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
	var (
		number syscall.Errno
		path   *fs.PathError
		link   *os.LinkError
		call   *os.SyscallError
	)
	return errors.As(err, &number) || errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &call) || errors.Is(err, io.ErrShortWrite)
}

// dirError names the directory that could not be opened.
func dirError(dir string, err error) error {
	return fmt.Errorf("open %q: %w", dir, err)
}

// closeError names the directory that could not be closed.
func closeError(dir string, err error) error {
	return fmt.Errorf("close %q: %w", dir, err)
}

// isPermission reports whether err means that the directory cannot be written to:
// it is read-only, not ours, or full.
func isPermission(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrPermission) || isReadOnlyFS(err) || isDiskFull(err)
}
