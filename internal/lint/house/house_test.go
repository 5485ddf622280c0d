package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// limits are what the rooms have reached, and must keep. A limit may become smaller.
var limits = map[string]struct {
	circle  int // percent of the room's lines that the largest circle of files may have
	methods int // and functions that take the type, on one type
}{
	"":                      {circle: 8, methods: 79},
	"cmd/jay":               {circle: 93, methods: 71},
	"server":                {circle: 25, methods: 60},
	"server/internal/own":   {circle: 25, methods: 60},
	"server/internal/raven": {circle: 25, methods: 60},
	"server/internal/serve": {circle: 25, methods: 60},
	"server/internal/verbs": {circle: 25, methods: 60},
	"query":                 {circle: 82, methods: 79},
	"storage/lsm":           {circle: 71, methods: 79},
	"internal/builder":      {circle: 84, methods: 60},
	"transfer/smuggler":     {circle: 40, methods: 60},
	"internal/exec":         {circle: 97, methods: 60},
	"internal/verify":       {circle: 91, methods: 79},
	"internal/write":        {circle: 99, methods: 79},
	"internal/accord":       {circle: 100, methods: 79},
}

// mostMethods is the limit of the rooms that limits does not name.
const mostMethods = 79

// Ensure that no type gathers methods without end, be they written as methods or as functions that take the
// type, and that of the rooms that grew most the files use one another one way, as far as they do: of files
// that form a circle, none can be read without the others.
func TestHouse_Limits(t *testing.T) {
	t.Parallel()
	r := measured(t)
	for i := range r.Rooms {
		m := &r.Rooms[i]
		limit, watched := limits[m.Name]
		if !watched {
			limit.circle, limit.methods = 100, mostMethods
		}
		if most := m.most(); most.Size > limit.methods {
			t.Errorf("%s: %s has %d methods and functions that take it: %d are the most", title(m.Name), most.Name, most.Size, limit.methods)
		}
		if share := m.share(); share*100 > float64(limit.circle) {
			t.Errorf("%s: the files %v use one another, %.0f %% of the lines: %d %% are the most; move declarations to the file of their subject",
				title(m.Name), m.Circles[0].Files, share*100, limit.circle)
		}
	}
	for name := range limits {
		if !slices.ContainsFunc(r.Rooms, func(m roomReport) bool { return m.Name == name }) {
			t.Errorf("limits has %q, and no room has this name", name)
		}
	}
}

// Ensure that the root stays a face: a file for each noun, each with something that users see, and less
// inside than outside.
func TestHouse_Face(t *testing.T) {
	t.Parallel()
	const (
		mostFiles      = 31
		mostUnexported = 28 // percent of the lines of declarations
	)
	r := measured(t)
	at := slices.IndexFunc(r.Rooms, func(m roomReport) bool { return m.Name == "" })
	root := &r.Rooms[at]
	if root.Files > mostFiles {
		t.Errorf("the root has %d files: %d are the most; a body belongs to a package below", root.Files, mostFiles)
	}
	if share := 100 * root.UnexportedLines / (root.UnexportedLines + root.ExportedLines); share > mostUnexported {
		t.Errorf("%d %% of the root's lines are of unexported declarations: %d %% are the most; a body belongs to a package below", share, mostUnexported)
	}
	if !slices.Equal(root.NoFace, []string{"doc.go"}) {
		t.Errorf("the files %v of the root declare nothing that users see: doc.go is the one", root.NoFace)
	}
}

// Ensure that docs/architecture.md shows the layers as they are.
func TestHouse_Drawing(t *testing.T) {
	t.Parallel()
	h := loaded(t)
	page, err := os.ReadFile(filepath.Join(h.top, filepath.FromSlash(pagePath)))
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _, err := drawn(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if want := h.drawing(); drawing != want {
		t.Errorf("%s has an old drawing: go run ./internal/lint/house -draw\n%s", pagePath, want)
	}
}

// Ensure that the floors put each room above what it imports, and the root in the middle.
func TestHouse_Floors(t *testing.T) {
	t.Parallel()
	h := loaded(t)
	level := make(map[string]int)
	for n, floor := range h.floors() {
		for _, name := range floor {
			level[name] = n
		}
	}
	if len(level) != len(h.rooms) {
		t.Fatalf("%d rooms lie on floors, of %d", len(level), len(h.rooms))
	}
	arrows := 0
	for _, r := range h.rooms {
		for _, below := range r.imports {
			arrows++
			if level[title(r.name)] <= level[title(below)] {
				t.Errorf("%s is not above %s", title(r.name), title(below))
			}
		}
	}
	if arrows < 100 || level["jay"] == 0 || level["server"] <= level["jay"] {
		t.Errorf("%d arrows, the root is on floor %d, the server on %d", arrows, level["jay"], level["server"])
	}
}

// invented is a room made of files with these sources.
func invented(t *testing.T, sources map[string]string) (*house, *room) {
	t.Helper()
	h := &house{set: token.NewFileSet()}
	r := &room{name: "invented", dir: t.TempDir(), info: &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}}
	var trees []*ast.File
	for name, source := range sources {
		tree, err := parser.ParseFile(h.set, name, "package invented\n"+source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
		r.files = append(r.files, &file{name: name, tree: tree, lines: h.set.File(tree.Pos()).LineCount()})
	}
	var err error
	if r.pkg, err = (&types.Config{Importer: importer.Default()}).Check("invented", h.set, trees, r.info); err != nil {
		t.Fatal(err)
	}
	h.rooms = []*room{r}
	return h, r
}

// Ensure that a circle of files is found over methods and over several files, and that one that only uses others
// is none.
func TestCircles(t *testing.T) {
	t.Parallel()
	h, r := invented(t, map[string]string{
		"a.go":   "type A struct{}\nfunc (A) Call(b B) { b.Call() }",
		"b.go":   "type B struct{}\nfunc (B) Call() { third() }",
		"c.go":   "func third() { A{}.Call(B{}) }",
		"top.go": "func top() { third() }",
	})
	got := h.circles(r)
	if len(got) != 1 || !slices.Equal(got[0].Files, []string{"a.go", "b.go", "c.go"}) || got[0].Lines != 8 {
		t.Errorf("circles: %+v", got)
	}

	h, r = invented(t, map[string]string{"a.go": "type A struct{}", "b.go": "func f(A) {}", "c.go": "func g() { f(A{}) }"})
	if got := h.circles(r); len(got) > 0 {
		t.Errorf("files that use one another one way: %+v", got)
	}
}

// Ensure that a function counts as a method of each of the room's types that it takes, in whatever wrapping, and once only.
func TestTypes(t *testing.T) {
	t.Parallel()
	_, r := invented(t, map[string]string{"a.go": `
import "strings"
type DB struct{}
func (db *DB) Method(other *DB) {}
func one(db *DB) {}
func two(n int, dbs ...*DB) {}
func three(m map[string][]DB, c chan *DB) {}
type G[T any] struct{}
func (g *G[T]) Method() {}
func four[T any](g G[T], f func(*DB)) {}
func none(s string, b *strings.Builder) (*DB, error) { return nil, nil }
`})
	got := r.types()
	if want := []sized{{"DB", 4}, {"G", 2}}; !slices.Equal(got, want) {
		t.Errorf("types: %v, want %v", got, want)
	}
}

// Ensure that lines count as exported or not by their declaration, that a method counts as its type, and that comments,
// names without one and files without a face are counted.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	h, _ := invented(t, map[string]string{
		"face.go": `
// Exported is a type.
type Exported struct {
	field int
}

// Method does nothing.
func (e *Exported) Method() {}

func (e *Exported) Bare() {}

func (e *Exported) hidden() {
}

// These are constants.
const (
	First = iota
	second
)
`,
		"inside.go": `
type inside struct{}

func (inside) Method() {}
`,
	})
	r, err := h.measure()
	if err != nil {
		t.Fatal(err)
	}
	m := r.Rooms[0]
	if m.ExportedLines != 4+2+1+5 || m.UnexportedLines != 2+1+1 {
		t.Errorf("%d exported lines, %d others", m.ExportedLines, m.UnexportedLines)
	}
	if m.Exports != 4 || m.Undocumented != 1 || !slices.Equal(m.NoFace, []string{"inside.go"}) {
		t.Errorf("%d exports, %d without a comment; no face: %v", m.Exports, m.Undocumented, m.NoFace)
	}
	if m.CommentLines != 3 || m.CodeLines != 3+1+1+2+4+1+1+2 {
		t.Errorf("%d lines of comments, %d of code", m.CommentLines, m.CodeLines)
	}
	if r.Whole.Functions != 4 || r.Whole.Median != 1 || r.Whole.P99 != 2 {
		t.Errorf("functions: %+v", r.Whole)
	}
}

// Ensure that a place for the drawing that is not there is an error, and that only the drawing is replaced.
func TestDrawn(t *testing.T) {
	t.Parallel()
	if _, _, _, err := drawn("no place\n" + drawingEnds + drawingBegins); err == nil {
		t.Error("a page without a place was accepted")
	}
	before, drawing, after, err := drawn("a\n" + drawingBegins + "old\n" + drawingEnds + "z\n")
	if err != nil || before != "a\n" || after != "z\n" || !strings.Contains(drawing, "old") {
		t.Errorf("%q %q %q, %v", before, drawing, after, err)
	}
}
