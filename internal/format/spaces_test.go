package format

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declaredSpaces returns the constants Space… of this package, by their values.
func declaredSpaces(t *testing.T) map[byte]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[byte]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Space") {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.CHAR {
				return true
			}
			first, _, _, err := strconv.UnquoteChar(strings.Trim(literal.Value, "'"), '\'')
			if err != nil {
				t.Fatal(err)
			}
			if other := names[byte(first)]; other != "" {
				t.Errorf("%s and %s are both %q", other, spec.Names[0].Name, first)
			}
			names[byte(first)] = spec.Names[0].Name
			return true
		})
	}
	return names
}

// Ensure that the table has a row for each constant of a key space, in the order of keys, and
// that each is documented.
func TestSpaces(t *testing.T) {
	declared := declaredSpaces(t)
	page, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[byte]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z])` ").FindAllSubmatch(page, -1) {
		documented[row[1][0]] = true
	}
	last := byte(0)
	for _, s := range Spaces {
		if s.First <= last {
			t.Errorf("%v does not follow the one before: keys that begin with %q are less", s, s.First)
		}
		last = s.First
		if declared[s.First] == "" {
			t.Errorf("%v has no constant", s)
		}
		if !documented[s.First] {
			t.Errorf("%v has no row in docs/format.md", s)
		}
		if info, err := os.Stat(filepath.Join("..", s.Owner)); err != nil || !info.IsDir() {
			t.Errorf("%v: there is no such package", s)
		}
		delete(declared, s.First)
		delete(documented, s.First)
	}
	for first, name := range declared {
		t.Errorf("%s, %q, has no row in Spaces", name, first)
	}
	for first := range documented {
		t.Errorf("docs/format.md has keys that begin with %q, and Spaces has not", first)
	}
}

// Ensure that what a restore makes from other spaces is marked as derived: a repair makes it, too. What it leaves out and nobody makes is transient.
func TestSpaces_Derived(t *testing.T) {
	for _, s := range Spaces {
		if made := []BackupWay{FollowsDocuments, NotCarried}; slices.Contains(made, s.Backup) && s.Origin != Derived && !(s.Origin == Transient && s.Backup == NotCarried) {
			t.Errorf("%v: a restore makes it, and it is not Derived", s)
		}
	}
}
