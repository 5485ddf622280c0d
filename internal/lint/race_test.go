package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notRaced are the packages that start goroutines, or whose tests do, and that make race leaves
// out nevertheless, each with the reason.
var notRaced = map[string]string{
	"examples/orders/shop":  "a program, which runs in processes without the detector",
	"internal/lint/systems": "checks types",
	"patch":                 "its goroutine measures memory",
	"tests/damage":          "a campaign, of which its test runs a little",
	"server/internal/raven": "has fuzz targets only, each of one goroutine",
	"server/internal/verbs": "its tests start none",
	"tests/browser":         "needs a browser, and skips without one",
	"tests/cluster":         "needs etcd, and skips without it",
	"tests/verify":          "its goroutine waits for a hang",
}

// Ensure that what make race leaves out has no goroutines that meet, or a reason.
func TestRace_LeavesOut(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	must(t, err)
	list := regexp.MustCompile(`(?m)^ONE = ((?:.*\\\n)*.*)$`).FindSubmatch(text)
	if list == nil {
		t.Fatal("the Makefile has no list of the packages that make race leaves out")
	}
	leftOut := regexp.MustCompile(strings.NewReplacer("\\\n", "", "\t", "", "$$", "$").Replace(string(list[1])))

	seen := make(map[string]bool)
	for dir, starts := range startGoroutines(t) {
		if !leftOut.MatchString(path.Join("github.com/jaydb/jay", dir)) {
			continue
		}
		seen[dir] = starts
		if starts && notRaced[dir] == "" {
			t.Errorf("%s starts goroutines, or its tests do: make race must not leave it out, or needs a reason above", dir)
		}
	}
	if len(seen) < 30 {
		t.Errorf("make race leaves out %d packages", len(seen))
	}
	for dir := range notRaced {
		if !seen[dir] {
			t.Errorf("%s needs no reason: it has no goroutines, or is not left out", dir)
		}
	}
}

// startGoroutines returns the folders of all packages with tests, and whether code or tests of
// theirs start goroutines: by a go statement, or by a method that makes one.
func startGoroutines(t *testing.T) map[string]bool {
	starts, tested := make(map[string]bool), make(map[string]bool)
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || file == "bench" || len(file) > 1 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		tested[dir] = tested[dir] || strings.HasSuffix(file, "_test.go")
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts[dir] = true
			case *ast.SelectorExpr:
				starts[dir] = starts[dir] || slices.Contains([]string{"Go", "AfterFunc", "Concurrently"}, n.Sel.Name)
			}
			return true
		})
		return nil
	})
	must(t, err)
	found := make(map[string]bool)
	for dir := range tested {
		if tested[dir] {
			found[dir] = starts[dir]
		}
	}
	return found
}
