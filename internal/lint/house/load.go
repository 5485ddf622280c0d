package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is the path of the root's module, and the beginning of all others.
const module = "github.com/jaydb/jay"

// aside are the folders whose packages are no part of the house: programs and suites that use
// the public API and that nothing imports.
var aside = []string{"bench", "examples", "tests", "tools"}

// house is the code of all rooms, parsed and with types.
type house struct {
	top   string // the folder of go.work
	set   *token.FileSet
	rooms []*room // in the order of their names
}

// room is a package without its tests.
type room struct {
	name    string // path below the module: "" for the root, "internal/write"
	dir     string
	files   []*file
	imports []string // names of the rooms that it imports
	pkg     *types.Package
	info    *types.Info
}

// file is a file of a room.
type file struct {
	name  string
	tree  *ast.File
	lines int
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	DepOnly    bool
}

// findTop returns the folder with go.work at or above the working directory.
func findTop() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("go.work is in no folder above: run it in the repository")
		}
		dir = parent
	}
}

// load reads the rooms of the repository in top.
func load(top string) (*house, error) {
	packages, err := list(top)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	h := &house{top: top, set: token.NewFileSet()}
	from := importer.ForCompiler(h.set, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("go list knows no compiled form of %s", path)
		}
		return os.Open(exports[path])
	})
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		r, err := h.read(p, from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		h.rooms = append(h.rooms, r)
	}
	if len(h.rooms) == 0 {
		return nil, errors.New("go list finds no packages")
	}
	return h, nil
}

// list asks Go for the packages of the house and all that they import, compiled.
func list(top string) ([]listed, error) {
	modules, err := command(top, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-e=false", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Imports,DepOnly"}
	for dir := range strings.Lines(string(modules)) {
		below, err := filepath.Rel(top, strings.TrimSpace(dir))
		if err != nil {
			return nil, err
		}
		if first, _, _ := strings.Cut(filepath.ToSlash(below), "/"); !slices.Contains(aside, first) {
			args = append(args, "./"+filepath.ToSlash(filepath.Join(below, "...")))
		}
	}
	out, err := command(top, "go", args...)
	if err != nil {
		return nil, err
	}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if name, ours := roomName(p.ImportPath); ours {
			first, _, _ := strings.Cut(name, "/")
			p.DepOnly = p.DepOnly || slices.Contains(aside, first) || strings.Contains(name+"/", "/examples/")
		}
		packages = append(packages, p)
	}
}

// roomName returns the name of the room with an import path; ours is false for packages of others.
func roomName(path string) (name string, ours bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// read parses a package and finds the types of its expressions.
func (h *house) read(p listed, from types.Importer) (*room, error) {
	r := &room{dir: p.Dir}
	r.name, _ = roomName(p.ImportPath)
	var trees []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		tree, err := parser.ParseFile(h.set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		r.files = append(r.files, &file{name: name, tree: tree, lines: h.set.File(tree.Pos()).LineCount()})
	}
	for _, path := range p.Imports {
		if name, ours := roomName(path); ours {
			r.imports = append(r.imports, name)
		}
	}
	r.info = &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
	var err error
	r.pkg, err = (&types.Config{Importer: from, FakeImportC: true}).Check(p.ImportPath, h.set, trees, r.info)
	return r, err
}

// command runs a program in dir and returns its output. Its error has what the program says.
func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}
