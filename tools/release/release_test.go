package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// repository makes a small repository of modules in a folder, which becomes the working directory.
func repository(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"} {
		t.Setenv(name, "a tester")
	}
	for _, name := range []string{"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "tester@example.com")
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "-A"}, {"commit", "--quiet", "-m", "all"}} {
		if err := git(t.Context(), ".", args...); err != nil {
			t.Fatal(err)
		}
	}
}

// house are three modules of which one is not released, and the command requires the others.
func house() map[string]string {
	return map[string]string{
		"LICENSE":        "anybody may do anything",
		"README.md":      "# Jay\n\n```go\nx := 1\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n",
		"go.work":        "go 1.26.0\n\nuse (\n\t./cmd/jay\n\t./server\n\t./tests\n\t.\n)\n",
		"go.mod":         "module github.com/jaydb/jay\n\ngo 1.25.0\n",
		"jay.go":         "package jay\n",
		"server/go.mod":  "module github.com/jaydb/jay/server\n\ngo 1.26.0\n\nrequire github.com/jaydb/jay v0.0.0\n\nreplace github.com/jaydb/jay => ..\n",
		"server/s.go":    "package server\n",
		"server/go.sum":  "example.com/x v1.0.0/go.mod h1:x=\n",
		"tests/go.mod":   "module github.com/jaydb/jay/tests\n\ngo 1.26.0\n\nrequire github.com/jaydb/jay v0.0.0\n\nreplace github.com/jaydb/jay => ..\n",
		"tests/t.go":     "package tests\n",
		"cmd/jay/go.mod": "module github.com/jaydb/jay/cmd/jay\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/jaydb/jay v0.0.0\n\tgithub.com/jaydb/jay/server v0.0.0\n)\n\nreplace github.com/jaydb/jay => ../..\n\nreplace github.com/jaydb/jay/server => ../../server\n\n// Two modules have the same packages.\nreplace example.com/old => example.com/old v1.2.3\n",
		"cmd/jay/m.go":   "package main\n\nfunc main() {}\n",
	}
}

// made makes the commit, the tags and the proxy of a repository.
func made(t *testing.T) (*release, error) {
	t.Helper()
	dir := t.TempDir()
	r := &release{version: "v0.1.0", out: io.Discard, tree: filepath.Join(dir, "repository"), proxy: filepath.Join(dir, "proxy")}
	if err := r.commit(t.Context()); err != nil {
		return r, err
	}
	return r, r.serve()
}

// Ensure that released modules require the version of one another, with the hashes that a proxy of the tags will
// have, and that nothing is replaced.
func TestRelease_Modules(t *testing.T) {
	repository(t, house())
	r, err := made(t)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.tags(), []string{"v0.1.0", "server/v0.1.0", "cmd/jay/v0.1.0"}; !slices.Equal(got, want) {
		t.Errorf("got tags %q, want %q", got, want)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(r.tree, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, line := range []string{"\tgithub.com/jaydb/jay v0.1.0\n", "\tgithub.com/jaydb/jay/server v0.1.0\n", "example.com/old v1.2.3"} {
		if gomod := read("cmd/jay/go.mod"); !strings.Contains(gomod, line) || strings.Contains(gomod, "=>") {
			t.Errorf("the command's go.mod has no %q, or replaces something:\n%s", line, gomod)
		}
	}
	if sums := read("server/go.sum"); !strings.Contains(sums, "example.com/x") || !strings.Contains(sums, "github.com/jaydb/jay v0.1.0 "+r.modules[0].sum+"\n") {
		t.Errorf("the server's go.sum lacks a line:\n%s", sums)
	}
	if text := read("tests/go.mod"); text != house()["tests/go.mod"] {
		t.Errorf("go.mod of the tests, which are not released, has changed:\n%s", text)
	}
	archive, err := zip.OpenReader(filepath.Join(r.proxy, "github.com/jaydb/jay/server/@v/v0.1.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if _, err := archive.Open("github.com/jaydb/jay/server@v0.1.0/LICENSE"); err != nil {
		t.Error("a module without a license:", err)
	}
	if text, err := os.ReadFile("server/go.mod"); err != nil || string(text) != house()["server/go.mod"] {
		t.Error("the tree that is released has changed:", err)
	}
}

// Ensure that what cannot be released is refused by name.
func TestRelease_Refused(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"a fork":                           {"server/go.mod", "module github.com/jaydb/jay/server\n\ngo 1.26.0\n\nreplace example.com/a => example.com/b v1.0.0\n", "replaces example.com/a by example.com/b"},
		"a directory of something else":    {"server/go.mod", "module github.com/jaydb/jay/server\n\ngo 1.26.0\n\nreplace example.com/a => ../a\n", "replaces example.com/a by a directory"},
		"a released module needs the rest": {"server/go.mod", "module github.com/jaydb/jay/server\n\ngo 1.26.0\n\nreplace github.com/jaydb/jay/tests => ../tests\n", "github.com/jaydb/jay/tests by a directory"},
		"a circle":                         {"go.mod", "module github.com/jaydb/jay\n\ngo 1.25.0\n\nrequire github.com/jaydb/jay/server v0.0.0\n", "require one another"},
		"no modules":                       {"go.work", "go 1.26.0\n", errNoModule.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			files := house()
			files[c.file] = c.text
			repository(t, files)
			if _, err := made(t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	for _, args := range [][]string{{}, {"0.1.0"}, {"v1"}, {"v1.0.0", "x"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("arguments %q: no error", args)
		}
	}
}

// Ensure that a tag with other files than those that were hashed is noticed.
func TestRelease_OtherFiles(t *testing.T) {
	repository(t, house())
	r, err := made(t)
	if err != nil {
		t.Fatal(err)
	}
	r.modules[1].sum = "h1:other="
	if err := r.serve(); err == nil || !strings.Contains(err.Error(), "has other files") {
		t.Errorf("got %v", err)
	}
}

// Ensure that README's first whole program is found.
func TestReadmeProgram(t *testing.T) {
	program, err := readmeProgram(house()["README.md"])
	if err != nil || program != "package main\n\nfunc main() {}\n" {
		t.Errorf("got %q, %v", program, err)
	}
	if _, err := readmeProgram("```go\nx\n```\n"); err == nil {
		t.Error("a page without a program has one")
	}
}

// Ensure that archives of both kinds have the files, that the command can be run, and that the same files make the
// same bytes.
func TestArchives(t *testing.T) {
	files := []content{{"jay", []byte("binary"), true}, {"LICENSE", []byte("text"), false}}
	var first, second, zipped bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := writeTar(b, "jay-v1", files); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	uncompressed, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(uncompressed)
	for _, want := range []struct {
		name string
		mode int64
	}{{"jay-v1/jay", 0o755}, {"jay-v1/LICENSE", 0o644}} {
		if h, err := archive.Next(); err != nil || h.Name != want.name || h.Mode != want.mode {
			t.Errorf("got %v, %v, want %v", h, err, want)
		}
	}
	if err := writeZip(&zipped, "jay-v1", files); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(zipped.Bytes()), int64(zipped.Len()))
	if err != nil || len(z.File) != 2 || z.File[0].Name != "jay-v1/jay" {
		t.Errorf("got %v, %v", z, err)
	}
}

// Ensure that checksums are those of all files, and that SHA256SUMS is none of them.
func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := checksums(dir); err != nil {
			t.Fatal(err)
		}
	}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n" // FIPS 180-2, B.1
	if text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS")); err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
}

// cached makes a module cache with a module and its files.
func cached(t *testing.T, files map[string]string) (*debug.BuildInfo, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, "example.com", "!part@v1.0.0", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Path: ours + "/cmd/jay"},
		Deps:      []*debug.Module{{Path: "example.com/Part", Version: "v1.0.0", Sum: "h1:s="}, {Path: ours, Version: "v0.1.0"}},
	}, dir
}

// Ensure that the notices have the licenses of a module and of the folders in it, but not those of its test data, and
// that the bill of materials names them.
func TestNotices(t *testing.T) {
	license, err := os.ReadFile(filepath.Join("..", "..", "LICENSE")) // the Apache license
	if err != nil {
		t.Fatal(err)
	}
	info, cache := cached(t, map[string]string{
		"LICENSE": string(license), "sub/COPYING.txt": "sub's own", "testdata/LICENSE": "of test data", "license.go": "package x",
	})
	parts, err := findParts(info, cache)
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) != 2 || !slices.Contains(parts[1].licenses, "Apache-2.0") || !slices.Contains(parts[0].licenses, "BSD-3-Clause") {
		t.Fatalf("got %d parts, the last with %q", len(parts), parts[len(parts)-1].licenses)
	}
	text := notices(parts)
	for want, found := range map[string]bool{"example.com/Part v1.0.0": true, "sub's own": true, "of test data": false, "package x": false, ours: false} {
		if strings.Contains(text, want) != found {
			t.Errorf("the notices have %q: %v, want %v", want, !found, found)
		}
	}

	var b bytes.Buffer
	if err := writeBill(&b, info, parts, "v0.1.0", "linux/amd64"); err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BomFormat  string
		Components []struct {
			Purl     string
			Licenses []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &bill); err != nil {
		t.Fatal(err)
	}
	if bill.BomFormat != "CycloneDX" || len(bill.Components) != 2 || bill.Components[1].Purl != "pkg:golang/example.com/Part@v1.0.0" ||
		bill.Components[1].Licenses[0].License.ID != "Apache-2.0" {
		t.Errorf("got %+v", bill)
	}
}

// Ensure that a module without a license that is known ends a release.
func TestNotices_Unknown(t *testing.T) {
	info, cache := cached(t, map[string]string{"LICENSE": "ask my aunt"})
	if _, err := findParts(info, cache); err == nil || !strings.Contains(err.Error(), "example.com/Part v1.0.0") {
		t.Errorf("got %v, want an error that names the module", err)
	}
}

// Ensure that a command that fails says what it printed.
func TestCommand(t *testing.T) {
	if err := git(context.Background(), t.TempDir(), "log"); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("got %v", err)
	}
}
