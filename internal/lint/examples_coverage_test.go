package lint_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutExample are the exported types that need no example of their own,
// each with the reason.
var withoutExample = map[string]string{}

// Ensure that every exported type has an example that runs: ExampleT or
// ExampleT_Method, with its output.
func TestExamples_Coverage(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	var tests []*ast.File
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, file)
		} else {
			types = append(types, exportedTypes(file)...)
		}
	}
	if len(types) < 50 || len(tests) < 5 {
		t.Fatalf("got %d types and %d files of tests: is this the root of the module?", len(types), len(tests))
	}

	shown := map[string]bool{}
	for _, example := range doc.Examples(tests...) {
		if example.Output == "" && !example.EmptyOutput {
			t.Errorf("Example%s has no output: it is not run", example.Name)
			continue
		}
		name, _, _ := strings.Cut(example.Name, "_")
		shown[name] = true
	}
	for _, name := range types {
		switch reason, listed := withoutExample[name]; {
		case !shown[name] && reason == "":
			t.Errorf("type %s has no example: write an Example%s", name, name)
		case shown[name] && listed:
			t.Errorf("type %s has an example: take it off the list", name)
		}
	}
	for name := range withoutExample {
		if !slices.Contains(types, name) {
			t.Errorf("there is no type %s: take it off the list", name)
		}
	}
}

// exportedTypes returns the names of the types that a file exports.
func exportedTypes(file *ast.File) []string {
	var names []string
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			if name := spec.(*ast.TypeSpec).Name; name.IsExported() {
				names = append(names, name.Name)
			}
		}
	}
	return names
}
