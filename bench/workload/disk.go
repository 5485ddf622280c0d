package workload

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// DiskBytes returns the disk space of the files of a directory, in bytes, without
// holes where the operating system reports them. Files that are removed meanwhile do not count.
func DiskBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				sum += allocatedBytes(info)
			}
		}
		if errors.Is(err, fs.ErrNotExist) && entry != nil {
			return nil
		}
		return err
	})
	return sum, err
}

// copyDir copies the files of a directory to a new one, and has them on disk. Blocks of zeros become
// holes: badger's files are mostly that.
func copyDir(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rest), 0o755)
		}
		if entry.Type()&fs.ModeSocket != 0 {
			return nil // of a process that was killed
		}
		return copyFile(filepath.Join(to, rest), path)
	})
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()

	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := out.Truncate(info.Size()); err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for offset := int64(0); offset < info.Size(); {
		n, err := in.ReadAt(block, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if zeros(block[:n]) {
			offset = max(offset+int64(n), nextData(in, offset+int64(n), info.Size()))
			continue
		}
		if _, err := out.WriteAt(block[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
	}
	return out.Sync() // or the first fsync of an engine waits for all of it
}

func zeros(block []byte) bool {
	for _, b := range block {
		if b != 0 {
			return false
		}
	}
	return true
}
