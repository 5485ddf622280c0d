package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// content is a file in an archive.
type content struct {
	name       string
	bytes      []byte
	executable bool
}

// archive makes the archive of a system and its bill of materials in a folder.
func (r *release) archive(ctx context.Context, u *user, folder, target string) error {
	binary, err := r.install(ctx, u, target)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	parts, err := findParts(info, filepath.Join(u.dir, "mod"))
	if err != nil {
		return err
	}

	base := fmt.Sprintf("jay-%s-%s", r.version, strings.ReplaceAll(target, "/", "-"))
	bill, err := os.Create(filepath.Join(folder, base+".cdx.json"))
	if err != nil {
		return err
	}
	defer bill.Close()
	if err := errors.Join(writeBill(bill, info, parts, r.version, target), bill.Close()); err != nil {
		return err
	}

	var files []content
	for _, f := range []struct{ name, from string }{
		{filepath.Base(binary), binary},
		{"LICENSE", filepath.Join(r.tree, "LICENSE")},
		{"README.md", filepath.Join(r.tree, "README.md")},
		{"CHANGELOG.md", filepath.Join(r.tree, "CHANGELOG.md")},
	} {
		b, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		files = append(files, content{f.name, b, f.from == binary})
	}
	files = append(files, content{"THIRD-PARTY-NOTICES.txt", []byte(notices(parts)), false})
	if strings.HasPrefix(target, "windows/") {
		return writeFile(filepath.Join(folder, base+".zip"), func(w io.Writer) error { return writeZip(w, base, files) })
	}
	return writeFile(filepath.Join(folder, base+".tar.gz"), func(w io.Writer) error { return writeTar(w, base, files) })
}

// writeFile creates a file with what a function writes.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// The time of all files in archives: the same files make the same archive.
var moment = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// writeTar writes files in a folder as a compressed tar archive.
func writeTar(w io.Writer, folder string, files []content) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		mode := int64(0o644)
		if f.executable {
			mode = 0o755
		}
		header := &tar.Header{Name: folder + "/" + f.name, Mode: mode, Size: int64(len(f.bytes)), ModTime: moment, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.bytes); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// writeZip writes files in a folder as a zip archive.
func writeZip(w io.Writer, folder string, files []content) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: moment})
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.bytes); err != nil {
			return err
		}
	}
	return archive.Close()
}

// checksums writes SHA256SUMS, which sha256sum -c reads, for the files in a folder.
func checksums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	lines := ""
	for _, e := range entries {
		if e.IsDir() || e.Name() == "SHA256SUMS" {
			continue
		}
		sum, err := sumOf(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		lines += sum + "  " + e.Name() + "\n"
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(lines), 0o644)
}

// sumOf returns the SHA-256 of a file in hexadecimal.
func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
