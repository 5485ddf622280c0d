package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// plantedVariable names the change that a woven program makes.
const plantedVariable = "JAY_PLANTED"

// The package that woven code asks which change is to be made. It is only in overlays.
const (
	plantedImport = "\n\nimport \"github.com/jaydb/jay/internal/planted\"\n"
	plantedFile   = "internal/planted/planted.go"
	plantedCode   = "// Package planted has which change is to be made.\npackage planted\n\nimport \"os\"\n\n// At is its name.\nvar At = os.Getenv(\"" + plantedVariable + "\")\n"
)

// weave makes one program of many changes: beside each function that a mutation changes stands the changed one,
// and the function calls it if the variable has the name of the mutation. It returns the file for go build -overlay,
// and the names of the mutations in it. Those that change more than functions are not.
func (b *bench) weave(all []mutation) (overlay string, woven map[string]bool, err error) {
	woven = make(map[string]bool)
	files := make(map[string]*wovenFile)
	for _, m := range all {
		pieces, err := b.pieces(m, files)
		if err != nil {
			return "", nil, err
		}
		if pieces == nil {
			continue
		}
		woven[m.name] = true
		for _, p := range pieces {
			p.file.weave(p, m.name)
		}
	}
	replace := map[string]string{filepath.Join(b.root, plantedFile): filepath.Join(b.dir, "planted.go")}
	if err := os.WriteFile(filepath.Join(b.dir, "planted.go"), []byte(plantedCode), 0o600); err != nil {
		return "", nil, err
	}
	for name, f := range files {
		if len(f.calls) == 0 {
			continue
		}
		copied := filepath.Join(b.dir, "woven"+strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(copied, []byte(f.text()), 0o600); err != nil {
			return "", nil, err
		}
		replace[filepath.Join(b.root, name)] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(b.dir, "woven.json")
	return overlay, woven, os.WriteFile(overlay, text, 0o600)
}

// piece is what a mutation changes in a function.
type piece struct {
	file *wovenFile
	fn   *ast.FuncDecl
	text string // of the changed function
}

// pieces returns the functions that a mutation changes, or nil if it changes something else.
func (b *bench) pieces(m mutation, files map[string]*wovenFile) (all []*piece, err error) {
	for _, e := range m.edits {
		f := files[e.file]
		if f == nil {
			if f, err = readWoven(filepath.Join(b.root, e.file)); err != nil {
				return nil, err
			}
			files[e.file] = f
		}
		fn := f.around(e.old)
		if fn == nil {
			return nil, nil
		}
		i := slices.IndexFunc(all, func(p *piece) bool { return p.fn == fn })
		if i < 0 {
			i, all = len(all), append(all, &piece{file: f, fn: fn, text: f.source[f.at(fn.Pos()):f.at(fn.End())]})
		}
		if strings.Count(all[i].text, e.old) != 1 {
			return nil, nil
		}
		all[i].text = strings.Replace(all[i].text, e.old, e.new, 1)
	}
	return all, nil
}

// wovenFile is a file with the changed functions beside its own.
type wovenFile struct {
	source string
	set    *token.FileSet
	parsed *ast.File
	calls  map[*ast.FuncDecl]string // what a function begins with
	more   strings.Builder          // the changed functions
}

func readWoven(name string) (*wovenFile, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &wovenFile{source: string(source), set: token.NewFileSet(), calls: make(map[*ast.FuncDecl]string)}
	f.parsed, err = parser.ParseFile(f.set, name, source, parser.SkipObjectResolution)
	return f, err
}

func (f *wovenFile) at(p token.Pos) int { return f.set.Position(p).Offset }

// around returns the function in which a text is, or nil. One whose receiver or parameters have no names is none.
func (f *wovenFile) around(text string) *ast.FuncDecl {
	begin := strings.Index(f.source, text)
	if begin < 0 || strings.Count(f.source, text) != 1 {
		return nil
	}
	for _, d := range f.parsed.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is || fn.Body == nil || f.at(fn.Body.Lbrace) >= begin || f.at(fn.End()) < begin+len(text) || fn.Type.TypeParams != nil {
			continue
		}
		for _, list := range []*ast.FieldList{fn.Recv, fn.Type.Params} {
			if list == nil {
				continue
			}
			for _, field := range list.List {
				if len(field.Names) == 0 || slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == "_" }) {
					return nil
				}
			}
		}
		return fn
	}
	return nil
}

// weave puts a changed function beside its own one, and the call of it at its beginning.
func (f *wovenFile) weave(p *piece, name string) {
	changed := fmt.Sprintf("%sPlanted%d", p.fn.Name.Name, f.more.Len())
	at := f.at(p.fn.Name.Pos()) - f.at(p.fn.Pos())
	fmt.Fprintf(&f.more, "\n%s%s%s\n", p.text[:at], changed, p.text[at+len(p.fn.Name.Name):])

	var arguments []string
	for _, field := range p.fn.Type.Params.List {
		for _, n := range field.Names {
			argument := n.Name
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				argument += "..."
			}
			arguments = append(arguments, argument)
		}
	}
	call := changed + "(" + strings.Join(arguments, ", ") + ")"
	if p.fn.Recv != nil {
		call = p.fn.Recv.List[0].Names[0].Name + "." + call
	}
	if p.fn.Type.Results == nil {
		call += "; return"
	} else {
		call = "return " + call
	}
	f.calls[p.fn] += fmt.Sprintf(" if planted.At == %q { %s };", name, call)
}

// text returns the file.
func (f *wovenFile) text() string {
	var b strings.Builder
	end := f.at(f.parsed.Name.End())
	b.WriteString(f.source[:end] + plantedImport)
	for _, d := range f.parsed.Decls {
		if fn, is := d.(*ast.FuncDecl); is && f.calls[fn] != "" {
			brace := f.at(fn.Body.Lbrace) + 1
			b.WriteString(f.source[end:brace] + f.calls[fn])
			end = brace
		}
	}
	return b.String() + f.source[end:] + f.more.String()
}
