package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// longFunction is the number of lines from which on a function wants a second look.
const longFunction = 70

// report is what the house measures.
type report struct {
	Rooms []roomReport `json:"rooms"` // in the order of their names
	Whole wholeReport  `json:"whole"`
}

// roomReport is what is measured of a room.
type roomReport struct {
	Name        string   `json:"name"`
	Files       int      `json:"files"`
	Lines       int      `json:"lines"`
	BiggestFile sized    `json:"biggestFile"` // in lines
	Circles     []circle `json:"circles"`     // the longest first
	Types       []sized  `json:"types"`       // by methods and functions that take the type: the largest first

	// ExportedLines are those of exported declarations, with their comments; a method counts as exported if
	// its type is, too. UnexportedLines are those of all others.
	ExportedLines   int `json:"exportedLines"`
	UnexportedLines int `json:"unexportedLines"`

	// NoFace are the files without an exported declaration, but those whose package has none.
	NoFace []string `json:"noFace"`

	CodeLines    int `json:"codeLines"`    // that have more than a comment
	CommentLines int `json:"commentLines"` // that have only a comment

	Exports      int `json:"exports"`      // exported names, methods of exported types among them
	Undocumented int `json:"undocumented"` // those without a comment, and whose group has none

	TestFiles int `json:"testFiles"`
	TestLines int `json:"testLines"`

	functions []int // lines of each
}

// circle is a set of files each of which uses, over others perhaps, all the others: none of them can
// be read without the rest.
type circle struct {
	Files []string `json:"files"`
	Lines int      `json:"lines"`
}

// sized is a name with a size.
type sized struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// wholeReport is what is measured of all rooms together.
type wholeReport struct {
	Rooms     int     `json:"rooms"`
	Files     int     `json:"files"`
	Lines     int     `json:"lines"`
	TestLines int     `json:"testLines"`
	Functions int     `json:"functions"`
	Median    int     `json:"medianLines"` // of a function
	P90       int     `json:"p90Lines"`
	P99       int     `json:"p99Lines"`
	Long      int     `json:"longFunctions"` // more than 70 lines
	Comments  float64 `json:"comments"`      // lines of comments for a line of code
	Exports   int     `json:"exports"`
	Bare      int     `json:"undocumented"`

	// Untested are the rooms below internal without a test of their own; UntestedLines are their lines.
	Untested      []string `json:"untested"`
	UntestedLines int      `json:"untestedLines"`
}

// share is the part of the room's lines that its largest circle has, from 0 to 1.
func (r *roomReport) share() float64 {
	if len(r.Circles) == 0 || r.Lines == 0 {
		return 0
	}
	return float64(r.Circles[0].Lines) / float64(r.Lines)
}

// most is the type with the most methods, and functions that take it.
func (r *roomReport) most() sized {
	if len(r.Types) == 0 {
		return sized{}
	}
	return r.Types[0]
}

// measure measures all rooms.
func (h *house) measure() (*report, error) {
	out := &report{}
	var functions []int
	code, comments := 0, 0
	for _, r := range h.rooms {
		m, err := h.measureRoom(r)
		if err != nil {
			return nil, err
		}
		out.Rooms = append(out.Rooms, m)
		w := &out.Whole
		w.Rooms++
		w.Files += m.Files
		w.Lines += m.Lines
		w.TestLines += m.TestLines
		w.Exports += m.Exports
		w.Bare += m.Undocumented
		code, comments = code+m.CodeLines, comments+m.CommentLines
		functions = append(functions, m.functions...)
		if strings.HasPrefix(m.Name, "internal/") && m.TestFiles == 0 {
			w.Untested = append(w.Untested, m.Name)
			w.UntestedLines += m.Lines
		}
	}
	slices.Sort(functions)
	out.Whole.Functions = len(functions)
	out.Whole.Median, out.Whole.P90, out.Whole.P99 = quantile(functions, 50), quantile(functions, 90), quantile(functions, 99)
	for _, n := range functions {
		if n > longFunction {
			out.Whole.Long++
		}
	}
	if code > 0 {
		out.Whole.Comments = float64(comments) / float64(code)
	}
	slices.SortFunc(out.Rooms, func(a, b roomReport) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// quantile returns the value below which percent of the sorted values are.
func quantile(values []int, percent int) int {
	if len(values) == 0 {
		return 0
	}
	return values[min(len(values)*percent/100, len(values)-1)]
}

func (h *house) measureRoom(r *room) (m roomReport, err error) {
	m = roomReport{Name: r.name, Files: len(r.files), Circles: h.circles(r), Types: r.types()}
	for _, f := range r.files {
		m.Lines += f.lines
		if f.lines > m.BiggestFile.Size {
			m.BiggestFile = sized{f.name, f.lines}
		}
		exported := h.declarations(f, &m)
		if exported == 0 && r.pkg.Name() != "main" {
			m.NoFace = append(m.NoFace, f.name)
		}
		code, comments := h.linesOf(f)
		m.CodeLines, m.CommentLines = m.CodeLines+code, m.CommentLines+comments
	}
	if m.ExportedLines == 0 {
		m.NoFace = nil
	}
	m.TestFiles, m.TestLines, err = tests(r.dir)
	return m, err
}

// declarations adds the declarations of a file to m, and returns how many are exported.
func (h *house) declarations(f *file, m *roomReport) (exported int) {
	count := func(node ast.Node, doc *ast.CommentGroup, names int, isExported bool) {
		first := node.Pos()
		if doc != nil {
			first = doc.Pos()
		}
		lines := h.set.Position(node.End()).Line - h.set.Position(first).Line + 1
		if !isExported {
			m.UnexportedLines += lines
			return
		}
		exported++
		m.ExportedLines += lines
		m.Exports += names
	}
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			m.functions = append(m.functions, h.set.Position(d.End()).Line-h.set.Position(d.Pos()).Line+1)
			isExported := d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d)))
			count(d, d.Doc, 1, isExported)
			if isExported && d.Doc == nil {
				m.Undocumented++
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			names, bare := 0, 0
			for _, s := range d.Specs {
				n, documented := exportsOf(s)
				names += n
				if !documented && d.Doc == nil {
					bare += n
				}
			}
			count(d, d.Doc, names, names > 0)
			m.Undocumented += bare
		}
	}
	return exported
}

// exportsOf counts the exported names of a specification, and reports whether it has a comment.
func exportsOf(s ast.Spec) (names int, documented bool) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			names++
		}
		documented = s.Doc != nil || s.Comment != nil
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() {
				names++
			}
		}
		documented = s.Doc != nil || s.Comment != nil
	}
	return names, documented
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// linesOf counts the lines of a file that have code, and those that have only a comment.
func (h *house) linesOf(f *file) (code, comments int) {
	inCode, inComment := make(map[int]bool), make(map[int]bool)
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if _, ok := n.(*ast.CommentGroup); ok {
			return false
		}
		inCode[h.set.Position(n.Pos()).Line] = true
		inCode[h.set.Position(n.End()-1).Line] = true
		if b, ok := n.(*ast.BasicLit); ok {
			for i := h.set.Position(b.Pos()).Line; i <= h.set.Position(b.End()).Line; i++ {
				inCode[i] = true
			}
		}
		return true
	})
	for _, g := range f.tree.Comments {
		for i := h.set.Position(g.Pos()).Line; i <= h.set.Position(g.End()).Line; i++ {
			if !inCode[i] {
				inComment[i] = true
			}
		}
	}
	delete(inCode, 0)
	return len(inCode), len(inComment)
}

// types counts, for each type that the room declares, its methods and the functions of the room that
// take it: a function whose parameter is the type, a pointer to it, or a slice, an array, a map or a channel
// of it is a method in disguise.
func (r *room) types() []sized {
	counts := make(map[string]int)
	for _, f := range r.files {
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			signature := r.info.Defs[fn.Name].Type().(*types.Signature)
			held := make(map[string]bool)
			if v := signature.Recv(); v != nil {
				held[r.held(v.Type())] = true
			}
			for v := range signature.Params().Variables() {
				if signature.Recv() == nil {
					held[r.held(v.Type())] = true
				}
			}
			delete(held, "")
			for name := range held {
				counts[name]++
			}
		}
	}
	out := make([]sized, 0, len(counts))
	for name, n := range counts {
		out = append(out, sized{name, n})
	}
	slices.SortFunc(out, func(a, b sized) int {
		if a.Size != b.Size {
			return b.Size - a.Size
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// held returns the name of the room's type that t is made of, "" for none.
func (r *room) held(t types.Type) string {
	for {
		switch x := t.(type) {
		case *types.Pointer:
			t = x.Elem()
		case *types.Slice:
			t = x.Elem()
		case *types.Array:
			t = x.Elem()
		case *types.Map:
			t = x.Elem()
		case *types.Chan:
			t = x.Elem()
		case *types.Alias:
			t = types.Unalias(x)
		case *types.Named:
			if x.Obj().Pkg() == r.pkg {
				return x.Obj().Name()
			}
			return ""
		default:
			return ""
		}
	}
}

// tests counts the test files of a folder and their lines.
func tests(dir string) (files, lines int, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return 0, 0, err
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return 0, 0, err
		}
		files, lines = files+1, lines+bytes.Count(source, []byte("\n"))
	}
	return files, lines, nil
}
