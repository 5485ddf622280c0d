package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// serve makes the folder of a module proxy with the tags of the clone, and compares their files with the hashes that
// the modules have of one another. The layout is that of GOPROXY=file://, as "go help goproxy" describes it.
func (r *release) serve() error {
	for i := range r.modules {
		if err := r.serveModule(&r.modules[i]); err != nil {
			return fmt.Errorf("%s: %w", r.modules[i].path(), err)
		}
	}
	return nil
}

// serveModule adds a module to the folder.
func (r *release) serveModule(m *module) error {
	escaped, err := xmodule.EscapePath(m.path())
	if err != nil {
		return err
	}
	dir := filepath.Join(r.proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	gomod, err := os.ReadFile(filepath.Join(r.tree, filepath.FromSlash(m.dir), "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{r.version, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	base := filepath.Join(dir, r.version)
	for name, text := range map[string][]byte{
		filepath.Join(dir, "list"): []byte(r.version + "\n"),
		base + ".info":             info,
		base + ".mod":              gomod,
	} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return r.zip(m, base+".zip")
}

// zip writes the files that the module's tag has.
func (r *release) zip(m *module, name string) error {
	archive, err := os.Create(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	dir := m.dir
	if dir == "." {
		dir = ""
	}
	version := xmodule.Version{Path: m.path(), Version: r.version}
	if err := zip.CreateFromVCS(archive, version, r.tree, m.tag(r.version), dir); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	switch sum, err := dirhash.HashZip(name, dirhash.Hash1); {
	case err != nil:
		return err
	case sum != m.sum:
		return fmt.Errorf("the tag has other files than those that go.sum of other modules has: %s, not %s", sum, m.sum)
	}
	return nil
}

// goModSum is the hash of a go.mod, as go.sum has it.
func goModSum(text []byte) (string, error) {
	return dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	})
}
