package jay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ensure that the files of the root use one another one way, as far as they do: of
// files that form a circle, none can be read without the others. And that no type
// gathers methods without end.
func TestHouse_RootStaysThin(t *testing.T) {
	t.Parallel()
	importer, err := packageTypes()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set, lines, total := token.NewFileSet(), make(map[string]int), 0
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		lines[path] = set.File(f.Pos()).LineCount()
		total += lines[path]
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: importer}
	pkg, err := config.Check(module, set, files, info)
	if err != nil {
		t.Fatal(err)
	}

	uses := make(map[string]map[string]bool) // files, by the file that uses them
	for id, o := range info.Uses {
		if o.Pkg() == pkg {
			from, to := set.Position(id.Pos()).Filename, set.Position(o.Pos()).Filename
			if uses[from] == nil {
				uses[from] = make(map[string]bool)
			}
			uses[from][to] = true
		}
	}
	reach := make(map[string]map[string]bool)
	for from := range lines {
		reach[from] = make(map[string]bool)
		for next := []string{from}; len(next) > 0; {
			at := next[0]
			next = next[1:]
			for to := range uses[at] {
				if !reach[from][to] {
					reach[from][to] = true
					next = append(next, to)
				}
			}
		}
	}
	for from := range lines {
		circle, size := []string{}, 0
		for to := range lines {
			if reach[from][to] && reach[to][from] {
				circle, size = append(circle, to), size+lines[to]
			}
		}
		if slices.Sort(circle); size*4 > total {
			t.Errorf("%v use one another, %d of %d lines: a quarter is the most; move declarations to the file of their subject", circle, size, total)
			break
		}
	}

	methods := make(map[string]int)
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*")]++
			}
		}
	}
	if methods["DB"] == 0 {
		t.Fatal("DB has no methods: the test does not see them")
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := methods[name]; n >= 80 {
			t.Errorf("%s has %d methods: 79 are the most; what is not of the face belongs to a package below", name, n)
		}
	}
}
