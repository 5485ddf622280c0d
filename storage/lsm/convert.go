package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
)

// convertTemporary is the copy of the file that is being converted.
const convertTemporary = convertFile + ".tmp"

// Convert encrypts a closed database, decrypts it, or encrypts all of its files again with the
// newest key. opts are the options with which the database is opened. opts.EncryptionKeys is nil
// for a database that is not encrypted. to are the keys with which the database is opened from then
// on. Nil means none. To encrypt the files again, both must return the older keys and the newest
// key.
//
// Convert copies each file, and replaces the file by the copy. So the disk needs room for the
// largest file, and a checkpoint that shares files with the database stays as it is. If Convert has
// failed, or its process has ended, Open refuses the database until Convert is called again with
// the same arguments. Then Convert continues where it stopped. Convert calls progress, if not nil,
// after each file.
//
// Convert does not erase the bytes of replaced files that a file system or a disk keeps.
func Convert(ctx context.Context, dir string, opts Options, to sealed.Keys, progress func(ConvertProgress)) error {
	c := &conversion{target: convertedPlain, to: to, opts: opts, progress: progress}
	if to != nil {
		c.target = convertedEncrypted
	}
	fs := opts.FS
	if fs == nil {
		fs = vfs.Default
	}
	c.fs = withModes(fs, opts.GroupReadable)
	if err := c.run(ctx, dir); err != nil {
		return fmt.Errorf("convert %q: %w", dir, openError(err))
	}
	return nil
}

// ConvertProgress is the progress of a Convert.
type ConvertProgress struct {
	Files  int   // that are as they are to be
	Copied int   // of them, by this call
	Bytes  int64 // of the files so far, as they were
	Total  int64 // bytes of all files
}

// conversion is a Convert under way.
type conversion struct {
	fs       vfs.FS
	path     string
	opts     Options
	to       sealed.Keys
	target   string
	progress func(ConvertProgress) // nil for none
	done     ConvertProgress
	format   fileFormat
	from     *sealFS // reads encrypted files
	into     *sealFS // writes them
}

func (c *conversion) run(ctx context.Context, dir string) (err error) {
	if _, err := checkFormatFile(c.fs, dir, c.opts.features()); err != nil {
		return err
	}
	if c.path, err = realPath(c.fs, dir); err != nil {
		return err
	}
	begun, err := readConversion(c.fs, c.path)
	if err != nil {
		return err
	}
	if begun == "" {
		// An Open and a Close show that the database is whole, and end it well.
		opts := c.opts
		opts.MustExist, opts.ReadOnly, opts.AcceptLoss = true, false, nil
		e, err := open(c.path, opts)
		if err != nil {
			return err
		}
		if err := e.Close(); err != nil {
			return err
		}
	}
	l, err := lock(c.fs, c.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if begun, err = readConversion(c.fs, c.path); err != nil {
		return err
	}
	if begun != "" && begun != c.target {
		return fmt.Errorf("a conversion to %s has begun: end that first", strings.TrimSpace(begun))
	}
	if c.format, err = checkFormatFile(c.fs, c.path, c.opts.features()); err != nil {
		return err
	}
	if c.format.number == 0 {
		return storage.ErrNoDatabase
	}
	return c.locked(ctx, begun != "")
}

// locked is run with the lock held.
func (c *conversion) locked(ctx context.Context, resumed bool) error {
	if err := c.openKeys(resumed); err != nil {
		return err
	}
	if !resumed {
		if err := replaceFile(c.fs, c.path, convertFile, []byte(c.target)); err != nil {
			return err
		}
	}
	if c.to != nil && c.from.ring == nil {
		if err := writeIdentity(c.fs, c.path, c.into.ring); err != nil {
			return err
		}
	}
	if err := c.files(ctx); err != nil {
		return err
	}
	if err := syncDir(c.fs, c.path); err != nil {
		return err
	}
	return c.finish()
}

// openKeys opens the identity with the keys of both sides, or makes a new one.
func (c *conversion) openKeys(resumed bool) error {
	c.from, c.into = &sealFS{FS: c.fs}, &sealFS{FS: c.fs}
	identity, err := readIdentity(c.fs, c.path)
	if errors.Is(err, os.ErrNotExist) {
		if c.opts.EncryptionKeys != nil && !resumed {
			return fmt.Errorf("%w: the database is not encrypted, and keys to decrypt it were given", storage.ErrKey)
		}
		if c.to == nil {
			return nil // all that was encrypted has been decrypted
		}
		c.into.ring, err = sealed.NewRing(sealed.NewDatabaseID(), c.to)
		return err
	}
	if err != nil {
		return err
	}
	keys := c.opts.EncryptionKeys
	if keys == nil {
		keys = c.to // it was plain, and the conversion has begun
	}
	if c.from.ring, err = sealed.OpenIdentity(identity, identityFile, keys); err != nil || c.to == nil {
		return err
	}
	c.into.ring, err = sealed.OpenIdentity(identity, identityFile, c.to)
	return err
}

// files converts the files.
func (c *conversion) files(ctx context.Context) error {
	names, err := c.fs.List(c.path)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		kind, _ := parseName(name)
		return kind == otherFile && name != controlName
	})
	slices.Sort(names)
	sizes := make([]int64, len(names))
	for i, name := range names {
		info, err := c.fs.Stat(c.fs.PathJoin(c.path, name))
		if err != nil {
			return err
		}
		sizes[i] = info.Size()
		c.done.Total += sizes[i]
	}
	for i, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		copied, err := c.file(name)
		if err != nil {
			return err
		}
		c.done.Files, c.done.Bytes = c.done.Files+1, c.done.Bytes+sizes[i]
		if copied {
			c.done.Copied++
		}
		if c.progress != nil {
			c.progress(c.done)
		}
	}
	return nil
}

// file converts a file, unless it is as it is to be. It returns whether it was not.
func (c *conversion) file(name string) (copied bool, err error) {
	path := c.fs.PathJoin(c.path, name)
	f, err := openRegular(c.fs, path)
	if err != nil {
		return false, err
	}
	header, err := sealed.ReadHeader(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	source := c.fs
	if sealed.IsHeader(header) {
		if c.from.ring == nil {
			return false, fmt.Errorf("%w: %s is encrypted, and %s is missing", storage.ErrKey, name, identityFile)
		}
		if c.to != nil {
			newest, err := c.into.ring.WrappedByNewest(header, layoutOfFile(name), name)
			if err != nil || newest {
				return false, err
			}
		}
		source = c.from
	} else if c.to == nil {
		return false, nil
	}
	in, err := source.Open(path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	out, err := c.create(name)
	if err != nil {
		return false, err
	}
	if err := errors.Join(copyText(name, in, out), out.Sync(), out.Close()); err != nil {
		return false, err
	}
	return true, c.fs.Rename(c.fs.PathJoin(c.path, convertTemporary), path)
}

// create makes the file that takes the place of another one.
func (c *conversion) create(name string) (f vfs.File, err error) {
	path := c.fs.PathJoin(c.path, convertTemporary)
	if name == controlName { // which is written at offsets
		if err := c.fs.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		f, err = c.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	} else {
		f, err = c.fs.Create(path, vfs.WriteCategoryUnspecified)
	}
	if err != nil || c.to == nil {
		return f, err
	}
	return c.into.begin(f, name)
}

// copyText copies what is in a file.
func copyText(name string, in, out vfs.File) error {
	if name != controlName {
		_, err := io.Copy(struct{ io.Writer }{out}, in)
		return err
	}
	text, err := io.ReadAll(io.LimitReader(in, controlSlots*controlSlotSize))
	if err != nil {
		return err
	}
	if _, err := out.WriteAt(make([]byte, controlSlots*controlSlotSize), 0); err != nil {
		return err
	}
	for i := range controlSlots {
		record := text[min(len(text), i*controlSlotSize):min(len(text), (i+1)*controlSlotSize)]
		if record = bytes.TrimRight(record, "\x00"); len(record) == 0 {
			continue
		}
		if _, err := out.WriteAt(record, int64(i*controlSlotSize)); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the directory one that is opened again.
func (c *conversion) finish() error {
	known := c.opts.features()
	bit := encryptedBit(known)
	c.format.features &^= bit
	if c.to != nil {
		c.format.features |= bit
		if err := writeIdentity(c.fs, c.path, c.into.ring); err != nil {
			return err
		}
	}
	if err := writeFormatFile(c.fs, c.path, c.format.of(known)); err != nil {
		return err
	}
	if c.to == nil {
		if err := c.fs.Remove(c.fs.PathJoin(c.path, identityFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := syncDir(c.fs, c.path); err != nil { // before the mark goes
			return err
		}
	}
	if err := c.fs.Remove(c.fs.PathJoin(c.path, convertFile)); err != nil {
		return err
	}
	return syncDir(c.fs, c.path)
}
