package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jaydb/jay/server/internal/raven"
)

// paramReaders are the methods that read a parameter.
var paramReaders = []string{"Find", "Get", "Every", "All", "Flag", "Number", "Count"}

// sources are the functions of the rooms: functions by room and name, and so methods of
// serve.Call, and other methods by their names.
type sources struct {
	functions map[string]*ast.FuncDecl
	methods   map[string][]*ast.FuncDecl
	constants map[string]string // text, by name
	room      map[*ast.FuncDecl]string
}

// readSources parses the rooms.
func readSources(t *testing.T) *sources {
	t.Helper()
	s := &sources{make(map[string]*ast.FuncDecl), make(map[string][]*ast.FuncDecl), make(map[string]string), make(map[*ast.FuncDecl]string)}
	names, err := filepath.Glob(filepath.Join("internal", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				s.room[d] = file.Name.Name
				if d.Recv == nil || isCall(d.Recv.List[0].Type) {
					s.functions[file.Name.Name+"."+d.Name.Name] = d
				} else {
					s.methods[d.Name.Name] = append(s.methods[d.Name.Name], d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, is := spec.(*ast.ValueSpec); is && d.Tok == token.CONST && len(v.Values) == 1 {
						if text, is := v.Values[0].(*ast.BasicLit); is && text.Kind == token.STRING {
							s.constants[v.Names[0].Name], _ = strconv.Unquote(text.Value)
						}
					}
				}
			}
		}
	}
	for _, other := range []string{"serve.Run", "raven.getOne", "serve.remembered"} { // those run the route
		if s.functions[other] == nil {
			t.Fatalf("there is no %s", other)
		}
		delete(s.functions, other)
	}
	return s
}

// readParams returns the parameters that each function of the rooms reads, itself or in
// what it calls, by its room and name. It reads the sources.
func readParams(t *testing.T) func(name string) []string {
	src := readSources(t)
	var walk func(f *ast.FuncDecl, seen map[*ast.FuncDecl]bool, out map[string]bool)
	walk = func(f *ast.FuncDecl, seen map[*ast.FuncDecl]bool, out map[string]bool) {
		if f == nil || f.Body == nil || seen[f] {
			return
		}
		seen[f] = true
		room := src.room[f]
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				for _, e := range append([]ast.Expr{n.Fun}, n.Args...) { // a function, called or passed on
					if plain, is := e.(*ast.Ident); is {
						walk(src.functions[room+"."+plain.Name], seen, out)
					}
				}
				s, is := n.Fun.(*ast.SelectorExpr)
				if !is {
					return true
				}
				of, is := s.X.(*ast.SelectorExpr)
				if !is || of.Sel.Name != "Params" {
					return true
				}
				if s.Sel.Name == "Page" {
					out["start"], out["pageSize"] = true, true
					return true
				}
				if slices.Contains(paramReaders, s.Sel.Name) {
					readParam(t, f, n.Args[0], src.constants, out)
				}
			case *ast.SelectorExpr: // a method or a function of another room, called or passed on
				x := nameOf(n.X)
				if x == "c" || x == "" {
					walk(src.functions["serve."+n.Sel.Name], seen, out)
				}
				walk(src.functions[x+"."+n.Sel.Name], seen, out)
				if len(x) <= 2 && x != "c" { // a receiver by the names of the rooms
					for _, f := range src.methods[n.Sel.Name] {
						walk(f, seen, out)
					}
				}
			}
			return true
		})
	}
	return func(name string) []string {
		if src.functions[name] == nil {
			t.Fatalf("there is no source of %s", name)
		}
		out := make(map[string]bool)
		walk(src.functions[name], make(map[*ast.FuncDecl]bool), out)
		return slices.Sorted(maps.Keys(out))
	}
}

// readParam adds the name of a parameter that f reads: a text, a constant, or the variable
// of a loop over a list of texts.
func readParam(t *testing.T, f *ast.FuncDecl, arg ast.Expr, constants map[string]string, out map[string]bool) {
	if lit, is := arg.(*ast.BasicLit); is {
		text, _ := strconv.Unquote(lit.Value)
		out[text] = true
		return
	}
	name := nameOf(arg)
	if text := constants[name]; text != "" {
		out[text] = true
		return
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		loop, is := n.(*ast.RangeStmt)
		if !is || loop.Value == nil || nameOf(loop.Value) != name {
			return true
		}
		if list, is := loop.X.(*ast.CompositeLit); is {
			for _, e := range list.Elts {
				text, _ := strconv.Unquote(e.(*ast.BasicLit).Value)
				out[text], found = true, true
			}
		}
		return true
	})
	if !found {
		t.Errorf("%s reads a parameter whose name the test cannot see", f.Name.Name)
	}
}

// isCall reports whether a receiver is a *Call.
func isCall(receiver ast.Expr) bool {
	star, is := receiver.(*ast.StarExpr)
	return is && nameOf(star.X) == "Call"
}

// nameOf returns the name that an expression ends with.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// Ensure that each route takes the parameters that its handler reads, and no others.
func TestParams_TakenAreRead(t *testing.T) {
	t.Parallel()
	read := readParams(t)
	for _, r := range routes() {
		if r.Run == nil {
			continue
		}
		name := runtime.FuncForPC(reflect.ValueOf(r.Run).Pointer()).Name()
		reads := read(strings.Replace(name[strings.LastIndex(name, "/")+1:], "(*Call).", "", 1))
		if r.Method != "GET" { // the body has the query
			if i := strings.LastIndex(r.Path, "/"); r.Path[i:] == "/queries" {
				reads = slices.DeleteFunc(reads, func(name string) bool { return slices.Contains([]string{"query", "start", "pageSize"}, name) })
			}
		}
		takes := strings.Fields(strings.ReplaceAll(r.Takes, "*", ""))
		if !slices.Equal(takes, reads) {
			t.Errorf("%s %s takes %v, and its handler reads %v", r.Method, r.Path, takes, reads)
		}
	}
}

// Ensure that docs/server/protocol.md lists the parameters that are accepted and not heeded, with
// the reason, as the code has them.
func TestParams_UnheededAreListed(t *testing.T) {
	t.Parallel()
	var code, listed []string
	for _, u := range raven.Unheeded {
		for _, path := range u.Paths {
			if !strings.HasSuffix(path, "*") && len(endpoints.ByPath[strings.ToLower(path)]) == 0 {
				t.Errorf("%s of %s, which is no route", u.Name, path)
			}
		}
		code = append(code, u.Name+" "+strings.Join(u.Paths, " ")+": "+u.Reason)
	}
	guide, err := os.ReadFile("../docs/server/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(guide), "\n## Parameters\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `([^|]*)` \\| ([^|]*) \\| ([^|]*) \\|").FindAllStringSubmatch(part, -1) {
		listed = append(listed, m[1]+" "+strings.ReplaceAll(strings.ReplaceAll(m[2], "`", ""), ",", "")+": "+m[3])
	}
	if !slices.Equal(code, listed) {
		t.Errorf("the code has\n%s\nthe guide lists\n%s", strings.Join(code, "\n"), strings.Join(listed, "\n"))
	}
}
