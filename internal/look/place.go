package look

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/jaydb/jay/storage"
)

// maxPath is the longest path of a socket, in bytes, on every system: macOS has room for 104, with a zero.
const maxPath = 103

// place is a socket that listens, and what leads to it.
type place struct {
	listener net.Listener
	files    map[string]os.FileInfo // that were made, by path
}

// newPlace makes the socket of a directory, whose lock the caller holds.
func newPlace(dir string) (*place, error) {
	dir, err := realPath(dir)
	if err != nil {
		return nil, err
	}
	p := &place{files: make(map[string]os.FileInfo)}
	name := filepath.Join(dir, Name)
	if err := removeOld(name); err != nil {
		return nil, err
	}
	inside := p.listen(name)
	if inside == nil {
		return p, nil
	}
	outside, err := runtimePath(dir)
	if err == nil {
		err = removeOld(outside)
	}
	if err == nil {
		err = p.listen(outside)
	}
	if err == nil {
		err = p.note(name, outside)
	}
	if err != nil {
		return nil, errors.Join(inside, err, p.close())
	}
	return p, nil
}

// removeOld removes what an earlier owner of the directory has left at a path: a socket, or the path of one.
func removeOld(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// listen makes a socket.
func (p *place) listen(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%s: a path of %d bytes, and a socket has %d at most", path, len(path), maxPath)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false) // by then another may have the path: see close
	p.listener = l
	err = os.Chmod(path, 0o600)
	return errors.Join(err, p.made(path))
}

// note makes the file that says where the socket is.
func (p *place) note(name, path string) error {
	if err := os.WriteFile(name, []byte(path), 0o600); err != nil {
		return err
	}
	return p.made(name)
}

func (p *place) made(path string) error {
	info, err := os.Lstat(path)
	if err == nil {
		p.files[path] = info
	}
	return err
}

// close ends the listening, and removes what was made, if it is still that: the directory may have been renamed, and
// another be in its place.
func (p *place) close() (err error) {
	if p.listener != nil {
		err = p.listener.Close()
	}
	for path, info := range p.files {
		if now, failed := os.Lstat(path); failed == nil && os.SameFile(info, now) {
			err = errors.Join(err, removeOld(path))
		}
	}
	return err
}

func realPath(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// runtimePath returns the path of the socket of a directory in the user's runtime directory. It makes the directory
// around it, in which only this user can make and replace files.
func runtimePath(dir string) (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = os.TempDir()
	}
	base = filepath.Join(base, fmt.Sprintf("jay-%d", os.Geteuid()))
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !isPrivate(info) {
		return "", fmt.Errorf("%s is not a directory of this user alone", base)
	}
	return filepath.Join(base, fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:32]), nil
}

// find returns the path of the socket of a directory. The error is an ErrUnavailable if none is there.
func find(dir string) (string, error) {
	dir, err := realPath(dir)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, Name)
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: no program listens there: none has the database open, or it lets none look", storage.ErrUnavailable)
	}
	if err != nil || !info.Mode().IsRegular() {
		return name, err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	path, err := io.ReadAll(io.LimitReader(f, maxPath+1))
	if err == nil && (len(path) > maxPath || !filepath.IsAbs(string(path))) {
		err = fmt.Errorf("%w: %s is not the path of a socket", storage.ErrUnavailable, name)
	}
	return string(path), err
}

// dial connects to the socket of a directory.
func dial(dir string, patience time.Duration) (net.Conn, error) {
	path, err := find(dir)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("unix", path, patience)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%w: the program that has the database open belongs to another user: %w", storage.ErrUnavailable, err)
	case err != nil:
		return nil, fmt.Errorf("%w: nothing answers: the program that listened has ended, or is ending: %w", storage.ErrUnavailable, err)
	}
	return conn, nil
}
