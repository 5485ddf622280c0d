package lint_test

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ensure that the public packages keep what they export: internal/lint/testdata/api has each name
// with its signature. JAY_REWRITE=1 writes the files anew; a line that goes is a
// break for users, a line that comes is a promise. No public type may be an alias of
// one under internal, of which users would see nothing.
func TestAPI(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "ids", "index", "jaytest", "metadata", "patch", "query", "storage", "storage/lsm"} {
		name := strings.ReplaceAll(dir, "/", "_")
		if dir == "." {
			name = "jay"
		}
		golden := filepath.Join("internal", "lint", "testdata", "api", name+".txt")
		got := strings.Join(exported(t, dir), "\n") + "\n"
		if os.Getenv("JAY_REWRITE") != "" {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		wanted, has := strings.Split(string(want), "\n"), strings.Split(got, "\n")
		for _, line := range wanted {
			if !slices.Contains(has, line) {
				t.Errorf("%s no longer has: %s", dir, line)
			}
		}
		for _, line := range has {
			if !slices.Contains(wanted, line) {
				t.Errorf("%s has new: %s", dir, line)
			}
		}
	}
}

// exported returns a line for each exported constant, variable, function, type,
// field and method of a package, sorted.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	set := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, module+"/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	text := func(node any) string {
		var b bytes.Buffer
		if err := printer.Fprint(&b, set, node); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	var lines []string
	functions := func(list []*doc.Func) {
		for _, f := range list {
			f.Decl.Doc, f.Decl.Body = nil, nil
			if f.Decl.Recv != nil && len(f.Decl.Recv.List[0].Names) > 0 {
				f.Decl.Recv.List[0].Names[0].Name = "_"
			}
			lines = append(lines, text(f.Decl))
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					lines = append(lines, v.Decl.Tok.String()+" "+name)
				}
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, typ := range p.Types {
		values(typ.Consts)
		values(typ.Vars)
		functions(typ.Funcs)
		functions(typ.Methods)
		spec := typ.Decl.Specs[0].(*ast.TypeSpec)
		head := "type " + typ.Name
		switch s := spec.Type.(type) {
		case *ast.StructType:
			lines = append(lines, head)
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						lines = append(lines, head+"."+name.Name+" "+text(field.Type))
					}
				}
				if len(field.Names) == 0 {
					lines = append(lines, head+" embeds "+text(field.Type))
				}
			}
		case *ast.InterfaceType:
			lines = append(lines, head+" interface")
			for _, method := range s.Methods.List {
				for _, name := range method.Names {
					lines = append(lines, head+"."+name.Name+" "+text(method.Type))
				}
			}
		default:
			line := head
			if spec.Assign.IsValid() {
				line += " = " + text(spec.Type)
				for _, at := range fileOf(set, files, spec).Imports {
					x, ok := s.(*ast.SelectorExpr)
					if ok && strings.Contains(at.Path.Value, "/internal/") && strings.HasSuffix(at.Path.Value, "/"+text(x.X)+`"`) {
						t.Errorf("%s is an alias of %s, which users cannot see", typ.Name, text(s))
					}
				}
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func fileOf(set *token.FileSet, files []*ast.File, node ast.Node) *ast.File {
	at := set.File(node.Pos())
	i := slices.IndexFunc(files, func(f *ast.File) bool { return set.File(f.Pos()) == at })
	return files[i]
}
