package lsm

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// optionsFS lets Pebble read a good text in place of one damaged OPTIONS file.
//
// Pebble writes its options into such a file at every Open, and reads the newest
// one at the next, to refuse a store that was made with another order of keys. Jay
// never changes that order, so nothing depends on the file; but Pebble would not
// open a store in which it is damaged. Pebble removes the file once the new one is
// written.
type optionsFS struct {
	vfs.FS
	name string // of the damaged file
	text string // that Pebble reads instead
}

// Unwrap returns the file system underneath.
func (o *optionsFS) Unwrap() vfs.FS { return o.FS }

// Open implements vfs.FS.
func (o *optionsFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if o.FS.PathBase(name) != o.name {
		return o.FS.Open(name, opts...)
	}
	memory := vfs.NewMem()
	f, err := memory.Create(o.name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(f, o.text); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return memory.Open(o.name)
}

// withoutDamagedOptions returns fs, or an optionsFS if the newest OPTIONS file
// in dir cannot be read or has options that Pebble would refuse.
func withoutDamagedOptions(fs vfs.FS, dir string, log *slog.Logger) (vfs.FS, error) {
	newest, text, damage, err := damagedOptions(fs, dir)
	if err != nil || damage == nil {
		return fs, err
	}
	log.Warn("jay: the file of the engine's options is damaged, and is written anew", "dir", dir, "file", newest, "err", damage)
	return &optionsFS{FS: fs, name: newest, text: text}, nil
}

// damagedOptions returns the name of the newest OPTIONS file, what is wrong with it, and the text
// that does in its place. damage is nil if nothing is wrong, or if there is no such file.
func damagedOptions(fs vfs.FS, dir string) (newest, text string, damage, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return "", "", nil, err
	}
	number := uint64(0)
	for _, name := range names {
		digits, is := strings.CutPrefix(name, "OPTIONS-")
		n, err := strconv.ParseUint(digits, 10, 64)
		if is && err == nil && n >= number {
			newest, number = name, n
		}
	}
	if newest == "" {
		return "", "", nil, nil
	}
	var ours pebble.Options
	ours.EnsureDefaults() // the order of keys is the default one
	if damage = checkOptions(fs, dir, newest, &ours); errors.Is(damage, storage.ErrKey) {
		return "", "", nil, damage
	}
	return newest, ours.String(), damage, nil
}

func checkOptions(fs vfs.FS, dir, name string, ours *pebble.Options) error {
	f, err := openRegular(fs, fs.PathJoin(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, largestOther+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > largestOther {
		return fmt.Errorf("%s has more than %d bytes", name, largestOther)
	}
	return ours.CheckCompatibility(dir, string(text))
}
