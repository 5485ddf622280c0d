// Command systems checks the types of packages, and of all that they import, for the system
// and the version of Go that the environment chooses, without cgo:
//
//	go build -o bin/systems ./internal/lint/systems
//	GOOS=windows GOARCH=amd64 bin/systems ./...
//	GOWORK=off GOTOOLCHAIN=go1.25.0 bin/systems ./...
//
// It reads sources only, so that it takes seconds where a compiler takes minutes. It finds what
// breaks a build elsewhere: a file that a build tag leaves out, a name that a system or an older
// standard library lacks, a newer form of the language. It generates no code and links nothing.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "systems:", err)
		os.Exit(1)
	}
}

func run(patterns []string, stdout io.Writer) error {
	if len(patterns) == 0 {
		return errors.New("name packages, such as ./... of the root")
	}
	sizes, err := targetSizes()
	if err != nil {
		return err
	}
	packages, err := list(patterns)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return fmt.Errorf("go list finds no packages of %q", patterns)
	}
	if err := check(packages, sizes); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d packages\n", len(packages))
	return err
}

// listed is a package as go list describes it, and then its types.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string // paths in the source that mean another package
	Module     *struct{ GoVersion string }

	done chan struct{} // closed when types and err are final
	pkg  *types.Package
	err  error
}

// list returns the packages of these patterns and all that they import, each after its imports.
func list(patterns []string) ([]*listed, error) {
	text, err := goCommand(append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var packages []*listed
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		p := &listed{done: make(chan struct{})}
		switch err := d.Decode(p); err {
		case nil:
			packages = append(packages, p)
		case io.EOF:
			return packages, nil
		default:
			return nil, fmt.Errorf("go list: %w", err)
		}
	}
}

// targetSizes returns the sizes of types on the processor that is built for.
func targetSizes() (types.Sizes, error) {
	arch, err := goCommand("env", "GOARCH")
	if err != nil {
		return nil, err
	}
	sizes := types.SizesFor("gc", string(bytes.TrimSpace(arch)))
	if sizes == nil {
		return nil, fmt.Errorf("GOARCH=%s is unknown", bytes.TrimSpace(arch))
	}
	return sizes, nil
}

// goCommand runs the go command and returns what it prints.
func goCommand(args ...string) ([]byte, error) {
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return out, nil
}

// check checks the packages, as many at once as there are processors, and returns what is wrong
// with the first ones.
func check(packages []*listed, sizes types.Sizes) error {
	c := &checker{set: token.NewFileSet(), sizes: sizes, packages: make(map[string]*listed)}
	for _, p := range packages {
		c.packages[p.ImportPath] = p
	}
	// Workers take packages in order, so that what a package waits for has been taken before it.
	work := make(chan *listed)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for p := range work {
				p.pkg, p.err = c.check(p)
				close(p.done)
			}
		})
	}
	for _, p := range packages {
		work <- p
	}
	close(work)
	workers.Wait()

	var all []error
	for _, p := range packages {
		if p.err != nil && !errors.Is(p.err, errImport) {
			all = append(all, fmt.Errorf("%s: %w", p.ImportPath, p.err))
		}
	}
	return errors.Join(all...)
}

// checker checks packages. It is safe for concurrent use.
type checker struct {
	set      *token.FileSet
	sizes    types.Sizes
	packages map[string]*listed // by import path
}

// errImport is the error of a package that imports one with an error.
var errImport = errors.New("an import has errors")

// check reads a package and returns its types.
func (c *checker) check(p *listed) (*types.Package, error) {
	if p.ImportPath == "unsafe" {
		return types.Unsafe, nil
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	imports := &importer{checker: c, mapped: p.ImportMap}
	config := types.Config{Sizes: c.sizes, Importer: imports}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	pkg, err := config.Check(p.ImportPath, c.set, files, nil)
	if imports.failed {
		return nil, errImport
	}
	return pkg, err
}

// importer finds what one package imports.
type importer struct {
	*checker
	mapped map[string]string
	failed bool // something that the package imports has an error
}

// Import returns the types of a package, when they have been checked.
func (i *importer) Import(path string) (*types.Package, error) {
	if to, found := i.mapped[path]; found {
		path = to
	}
	p, found := i.packages[path]
	if !found {
		return nil, fmt.Errorf("go list did not name %s", path)
	}
	<-p.done
	if p.err != nil {
		i.failed = true
		return nil, errImport
	}
	return p.pkg, nil
}
