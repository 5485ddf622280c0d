package lint_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// guides returns the Markdown files that users read, with slashes.
func guides(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	must(t, filepath.WalkDir("docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			names = append(names, filepath.ToSlash(path))
		}
		return err
	}))
	return names
}

// codeBlock is a fenced block of a Markdown file.
type codeBlock struct {
	file string
	line int // of the block's first line of code, counted from 1
	text string
}

// codeBlocks returns the blocks of a language in a Markdown file.
func codeBlocks(t *testing.T, file, language string) (blocks []codeBlock) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var block *codeBlock
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case block == nil && line == "```"+language:
			block = &codeBlock{file: file, line: i + 2}
		case block == nil && strings.HasPrefix(line, "```"):
			block = &codeBlock{} // of another language
		case block != nil && line == "```":
			if block.file != "" {
				blocks = append(blocks, *block)
			}
			block = nil
		case block != nil:
			block.text += line + "\n"
		}
	}
	if block != nil {
		t.Errorf("%s: a block has no end", file)
	}
	return blocks
}

// guidePrelude declares what the code of the guides may use without declaring it; a
// block may declare one of these types anew. A block is a file of its own if it begins with "package", declarations if it
// begins with "type", "func" or "import", and else the body of a function that has
// the parameters of guideFunction.
var guidePrelude = []string{
	"type Order struct { ID, Customer, Company, Status string; Total float64 }",
	"type User struct { ID, Name, Email, City string }",
	"type Customer struct { ID, Name string }",
	"type Account struct { ID, Number, Version string; Balance int }",
	"type Invoice struct { ID, Order string; Lines []string }",
	"type Product struct { ID string; Stock int }",
	"type Squirrel struct { ID, Name string; Nuts int }",
	"type Note struct { ID, Text string }",
	"type OrderLine struct { ID string }",
	"type Human struct { ID, Name string }",
	"var errOutOfStock = errors.New(`out of stock`)",
}

const guideFunction = `func(ctx context.Context, db *jay.DB, tx *jay.Tx, t *testing.T, doc json.RawMessage, id, cursor string,
	orders *jay.Collection[Order], users *jay.Collection[User], accounts *jay.Collection[Account],
	invoices *jay.Collection[Invoice], products *jay.Collection[Product], staff *jay.Collection[User],
	order *Order, placeOrder func(context.Context, *jay.Session) error, session *jay.Session,
	w http.ResponseWriter, r *http.Request,
) error`

// guideImports are the imports of blocks that are not files of their own.
var guideImports = []string{
	"bytes", "context", "encoding/json", "errors", "fmt", "io", "log", "log/slog", "net/http", "os", "os/exec", "path/filepath", "reflect", "slices", "strings",
	"testing", "time", "unicode", module + "/index", module, module + "/backups", module + "/jaytest", module + "/keys", module + "/keys/passphrase", module + "/schema", module + "/schema/jsonschema", module + "/standby", module + "/storage/sqlkv", module + "/storage/storagetest",
}

// packageTypes imports what package jay and the imports of the guides export,
// from the build cache. It is not safe for concurrent use, so that tests with it are
// not parallel.
var packageTypes = sync.OnceValues(func() (types.Importer, error) {
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, guideImports...)
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		path, file, _ := strings.Cut(lines.Text(), " ")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("%s is not among guideImports", path)
		}
		return os.Open(files[path])
	}), nil
})

// checkGuide type-checks a block of a guide and returns its errors. An unused
// variable or import is none.
func checkGuide(block codeBlock) []error {
	imports, err := packageTypes()
	if err != nil {
		return []error{err}
	}
	line := fmt.Sprintf("//line %s:%d\n", filepath.Base(block.file), block.line)
	head := "package guide\n"
	for _, path := range guideImports {
		head += fmt.Sprintf("import %q\n", path)
	}
	for _, declaration := range guidePrelude {
		name := strings.Join(strings.Fields(declaration)[:2], " ") + " "
		if !strings.Contains("\n"+block.text, "\n"+name) {
			head += declaration + "\n"
		}
	}
	var source string
	switch first, _, _ := strings.Cut(block.text, " "); strings.TrimSpace(first) {
	case "package":
		source = line + block.text
	case "import":
		source = "package guide\n" + line + block.text
	case "type", "func":
		source = head + line + block.text
	default:
		source = head + "var _ = " + guideFunction + " {\n{\n" + line + block.text + "\n}\nreturn nil\n}\n"
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "guide.go", source, parser.SkipObjectResolution)
	if err != nil {
		return []error{err}
	}
	var found []error
	config := types.Config{Importer: imports, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) && e.Soft {
			return
		}
		found = append(found, err)
	}}
	_, _ = config.Check("guide", set, []*ast.File{file}, nil) // Error has them all
	return found
}

// Ensure that every block of Go in README and docs compiles. The first block of
// docs/queries.md once did not.
func TestGuides_CodeCompiles(t *testing.T) {
	t.Parallel()
	blocks := 0
	for _, file := range guides(t) {
		for _, block := range codeBlocks(t, file, "go") {
			blocks++
			for _, err := range checkGuide(block) {
				t.Errorf("%s, the block of line %d: %v", file, block.line, err)
			}
		}
	}
	if blocks < 20 {
		t.Errorf("%d blocks of Go, want at least 20: are they found?", blocks)
	}
}

// Ensure that the check of the guides finds what does not compile.
func TestGuides_CodeCompiles_FindsMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"for order, err := range orders.Query().Iter(ctx) Ellipsis\n": "expected",
		"open := orders.Querry()\n":                                   "Querry",
		"type T struct{ X jay.Nothing }\n":                            "Nothing",
		"package main\n\nfunc main() { x() }\n":                       "x",
	} {
		errs := checkGuide(codeBlock{file: "docs/x.md", line: 10, text: text})
		if len(errs) == 0 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, errs, want)
		}
	}
	if errs := checkGuide(codeBlock{file: "docs/x.md", line: 10, text: "n, err := orders.Query().Count(ctx)\n"}); len(errs) > 0 {
		t.Errorf("an unused variable is refused: %v", errs)
	}
}

// Ensure that the first program of README is the one in examples/readme, which
// is run by the tests of the examples.
func TestGuides_ReadmeProgram(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("examples/readme/main.go")
	must(t, err)
	_, program, found := strings.Cut(strings.ReplaceAll(string(want), "\r\n", "\n"), "\npackage main")
	if !found {
		t.Fatal("examples/readme/main.go has no package clause")
	}
	blocks := codeBlocks(t, "README.md", "go")
	if len(blocks) == 0 || blocks[0].text != "package main"+program {
		t.Errorf("the first program of README differs from examples/readme/main.go")
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	inlineCode   = regexp.MustCompile("`[^`]*`")
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// links returns the targets of a Markdown text's links, without those in code,
// and the anchors of its headings.
func links(text string) (targets, anchors []string) {
	code := false
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code {
			continue
		}
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			anchors = append(anchors, strings.ReplaceAll(anchor, " ", "-"))
		}
		for _, m := range markdownLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, "`"), -1) {
			targets = append(targets, m[1])
		}
	}
	return targets, anchors
}

// Ensure that every relative link of the Markdown files leads to a file that is
// there, and to a heading that it has.
func TestGuides_Links(t *testing.T) {
	t.Parallel()
	count := 0
	for _, file := range guides(t) {
		text, err := os.ReadFile(file)
		must(t, err)
		targets, _ := links(string(text))
		for _, target := range targets {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			count++
			name, anchor, _ := strings.Cut(target, "#")
			path := filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
			if name == "" {
				path = file
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", file, target)
				continue
			}
			if anchor == "" || info.IsDir() {
				continue
			}
			other, err := os.ReadFile(path)
			must(t, err)
			if _, anchors := links(string(other)); !slices.Contains(anchors, anchor) {
				t.Errorf("%s: %s has no heading for #%s, only %q", file, path, anchor, anchors)
			}
		}
	}
	if count < 50 {
		t.Errorf("%d relative links, want at least 50: are they found?", count)
	}
}

// Ensure that docs/README.md, the index, names every guide and every page of a guide
// that has a folder of pages, as docs/queries.md has docs/queries, and that the guide names its pages.
func TestGuides_Index(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/README.md")
	must(t, err)
	targets, _ := links(string(text))
	names, err := filepath.Glob("docs/*.md")
	must(t, err)
	pages := 0
	for _, path := range names {
		name := filepath.Base(path)
		if name != "README.md" && !slices.Contains(targets, name) {
			t.Errorf("docs/README.md has no link to %s", name)
		}
		guide, err := os.ReadFile(path)
		must(t, err)
		fromGuide, _ := links(string(guide))
		folder := strings.TrimSuffix(name, ".md")
		if folder == "benchmarks" {
			continue // measurements, not pages of the guide
		}
		of, err := filepath.Glob("docs/" + folder + "/*.md")
		must(t, err)
		for _, page := range of {
			pages++
			page = folder + "/" + filepath.Base(page)
			if !slices.Contains(targets, page) {
				t.Errorf("docs/README.md has no link to %s", page)
			}
			if !slices.Contains(fromGuide, page) {
				t.Errorf("%s has no link to its page %s", path, page)
			}
		}
	}
	if pages < 10 {
		t.Errorf("%d pages of guides, want at least 10: are they found?", pages)
	}
}

// Ensure that docs/errors.md names every error that package jay exports.
func TestGuides_Errors(t *testing.T) {
	imports, err := packageTypes()
	must(t, err)
	jayPackage, err := imports.Import(module)
	must(t, err)
	text, err := os.ReadFile("docs/errors.md")
	must(t, err)
	count := 0
	for _, name := range jayPackage.Scope().Names() {
		cell := ""
		switch jayPackage.Scope().Lookup(name).(type) {
		case *types.Var:
			cell = "`" + name + "`"
		case *types.TypeName:
			cell = "`*" + name + "`"
		}
		if !strings.HasPrefix(name, "Err") && !strings.HasSuffix(name, "Error") || cell == "" {
			continue
		}
		count++
		if !strings.Contains(string(text), cell) {
			t.Errorf("docs/errors.md does not name %s", cell)
		}
	}
	if count < 30 {
		t.Errorf("%d errors, want at least 30: are they found?", count)
	}
}

// Ensure that the comment of every exported type that is an alias has a line for
// each field and method of the type behind it, and names its package: go doc and pkg.go.dev
// show nothing else of it.
func TestGuides_AliasesNameTheirMembers(t *testing.T) {
	imports, err := packageTypes()
	must(t, err)
	jayPackage, err := imports.Import(module)
	must(t, err)
	comments := typeComments(t)
	aliases := 0
	for _, name := range jayPackage.Scope().Names() {
		object, ok := jayPackage.Scope().Lookup(name).(*types.TypeName)
		if !ok || !object.Exported() || !object.IsAlias() {
			continue
		}
		aliases++
		target, ok := types.Unalias(object.Type()).(*types.Named)
		if !ok {
			t.Errorf("%s is an alias of %v, want a named type", name, object.Type())
			continue
		}
		if pkg := "package " + target.Obj().Pkg().Name(); !strings.Contains(strings.Join(strings.Fields(comments[name]), " "), pkg) {
			t.Errorf("the comment of %s does not say: see %s", name, pkg)
		}
		for _, member := range exportedMembers(target) {
			if !regexp.MustCompile(`(?m)^\t(\w+, )*` + member + `\b`).MatchString(comments[name]) {
				t.Errorf("the comment of %s has no line for %s", name, member)
			}
		}
	}
	if aliases < 10 {
		t.Errorf("%d aliases, want at least 10: are they found?", aliases)
	}
}

// typeComments returns the comments of the root's types by name.
func typeComments(t *testing.T) map[string]string {
	t.Helper()
	comments := make(map[string]string)
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		must(t, err)
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				spec := spec.(*ast.TypeSpec)
				comments[spec.Name.Name] = group.Doc.Text() + spec.Doc.Text()
			}
		}
	}
	return comments
}

// exportedMembers returns the exported fields and methods of a type, without
// those that every error and every type of JSON has.
func exportedMembers(target *types.Named) (members []string) {
	if s, ok := target.Underlying().(*types.Struct); ok {
		for field := range s.Fields() {
			if field.Exported() {
				members = append(members, field.Name())
			}
		}
	}
	for method := range types.NewMethodSet(types.NewPointer(target)).Methods() {
		switch name := method.Obj().Name(); name {
		case "Error", "Is", "Unwrap", "MarshalJSON", "UnmarshalJSON":
		default:
			if method.Obj().Exported() {
				members = append(members, name)
			}
		}
	}
	return members
}
