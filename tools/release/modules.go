package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// unreleased are the folders whose modules are of no use outside the repository.
var unreleased = []string{"bench", "tests", "tools"}

// module is a module of the repository that is released.
type module struct {
	dir  string // with slashes, "." for the root
	file *modfile.File
	// The hashes of its files, and of its go.mod, as go.sum has them.
	sum, modSum string
}

// path is the module's import path.
func (m *module) path() string { return m.file.Module.Mod.Path }

// tag is the name of the tag of a version of the module.
func (m *module) tag(version string) string { return path.Join(m.dir, version) }

// tags are those of all modules.
func (r *release) tags() []string {
	var names []string
	for i := range r.modules {
		names = append(names, r.modules[i].tag(r.version))
	}
	return names
}

// commit clones the repository, commits a version of all modules in the clone, and tags it.
func (r *release) commit(ctx context.Context) error {
	if err := git(ctx, ".", "clone", "--quiet", "--no-hardlinks", ".", r.tree); err != nil {
		return err
	}
	var err error
	if r.modules, err = findModules(r.tree); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.tree, "LICENSE"))
	if err != nil {
		return err
	}
	for i := range r.modules {
		if err := r.require(&r.modules[i], license); err != nil {
			return fmt.Errorf("%s: %w", r.modules[i].dir, err)
		}
	}
	if err := git(ctx, r.tree, "add", "-A"); err != nil {
		return err
	}
	if err := git(ctx, r.tree, "commit", "--quiet", "--no-verify", "-m", "Jay "+r.version+"\n\nEach module requires this version of the others, and no directory replaces one."); err != nil {
		return err
	}
	for _, tag := range r.tags() {
		if err := git(ctx, r.tree, "tag", "-a", tag, "-m", "Jay "+r.version); err != nil {
			return err
		}
	}
	return nil
}

// findModules returns the modules of a tree that are released, each after those that it requires.
func findModules(tree string) ([]module, error) {
	text, err := os.ReadFile(filepath.Join(tree, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	var found []module
	for _, use := range work.Use {
		dir := path.Clean(use.Path)
		if first, _, _ := strings.Cut(dir, "/"); slices.Contains(unreleased, first) {
			continue
		}
		name := filepath.Join(tree, filepath.FromSlash(dir), "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		found = append(found, module{dir: dir, file: file})
	}
	if len(found) == 0 {
		return nil, errNoModule
	}
	return inOrder(found)
}

// inOrder returns modules, each after those that it requires.
func inOrder(modules []module) ([]module, error) {
	var sorted []module
	for len(sorted) < len(modules) {
		before := len(sorted)
		for _, m := range modules {
			if !has(sorted, m.path()) && !slices.ContainsFunc(m.file.Require, func(q *modfile.Require) bool {
				return has(modules, q.Mod.Path) && !has(sorted, q.Mod.Path)
			}) {
				sorted = append(sorted, m)
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("modules that require one another: %d of %d have an order", len(sorted), len(modules))
		}
	}
	return sorted, nil
}

// has reports whether a module with a path is among some.
func has(modules []module, path string) bool {
	return slices.ContainsFunc(modules, func(m module) bool { return m.path() == path })
}

// require writes the go.mod and go.sum of a module that requires the version of the others, and sets its hashes.
func (r *release) require(m *module, license []byte) error {
	dir := filepath.Join(r.tree, filepath.FromSlash(m.dir))
	sums := ""
	for _, q := range slices.Clone(m.file.Require) {
		i := slices.IndexFunc(r.modules, func(o module) bool { return o.path() == q.Mod.Path })
		if i < 0 {
			continue
		}
		if err := m.file.AddRequire(q.Mod.Path, r.version); err != nil {
			return err
		}
		sums += fmt.Sprintf("%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", q.Mod.Path, r.version, r.modules[i].sum, r.modules[i].modSum)
	}
	if err := r.replaceNothing(m); err != nil {
		return err
	}
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return err
	}
	if sums != "" {
		if err := addSums(filepath.Join(dir, "go.sum"), sums); err != nil {
			return err
		}
	}
	// Go adds the repository's license to a module without one, so it is among the hashed files in any case.
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), license, 0o644); err != nil {
		return err
	}
	return r.hash(m, dir, text)
}

// replaceNothing removes what go install refuses in a go.mod: a directory of a module is not needed any more, and
// another version is required in its place.
func (r *release) replaceNothing(m *module) error {
	for _, p := range slices.Clone(m.file.Replace) {
		replaced, by := p.Old, p.New
		if err := m.file.DropReplace(replaced.Path, replaced.Version); err != nil {
			return err
		}
		if by.Version == "" {
			if !has(r.modules, replaced.Path) {
				return fmt.Errorf("go.mod replaces %s by a directory, and this module is not released", replaced.Path)
			}
			continue
		}
		if by.Path != replaced.Path {
			return fmt.Errorf("go.mod replaces %s by %s: a release cannot", replaced.Path, by.Path)
		}
		m.file.AddNewRequire(by.Path, by.Version, true)
	}
	return nil
}

// addSums adds lines to a go.sum, which stays sorted.
func addSums(name, lines string) error {
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	all := strings.Split(strings.TrimRight(string(text)+lines, "\n"), "\n")
	slices.Sort(all)
	return os.WriteFile(name, []byte(strings.Join(slices.Compact(all), "\n")+"\n"), 0o644)
}

// hash sets the hashes of a module whose files are in a folder.
func (r *release) hash(m *module, dir string, gomod []byte) error {
	archive, err := os.CreateTemp("", "module*.zip")
	if err != nil {
		return err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	if err := zip.CreateFromDir(archive, xmodule.Version{Path: m.path(), Version: r.version}, dir); err != nil {
		return err
	}
	if m.sum, err = dirhash.HashZip(archive.Name(), dirhash.Hash1); err != nil {
		return err
	}
	m.modSum, err = goModSum(gomod)
	return err
}

// git runs git in a folder, with the messages of hooks and of git itself in its error.
func git(ctx context.Context, dir string, args ...string) error {
	_, err := printed(exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...))
	return err
}

// printed runs a command and returns what it prints. An error has it, too.
func printed(c *exec.Cmd) (string, error) {
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%v: %w\n%s", c, err, out)
	}
	return string(out), nil
}
