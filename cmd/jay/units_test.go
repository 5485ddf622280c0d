package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/jaydb/jay"
)

// Ensure that numbers have commas, and that sizes and rates have units and few
// digits.
func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 31286267: "31,286,267", -999: "-999", -1000: "-1,000", -123456: "-123,456",
		9223372036854775807: "9,223,372,036,854,775,807",
	} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d): got %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 31286267: "31.3 MB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1 << 40: "1.1 TB", 9223372036854775807: "9.2 EB",
	} {
		if got := size(n); got != want {
			t.Errorf("size(%d): got %q, want %q", n, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 0.123456: "0.123", 1: "1", 12.34: "12.3", 99.96: "100", 2e5: "200,000", 1e18: "1,000,000,000,000,000,000", 1e30: "1e+30"} {
		if got := rate(n); got != want {
			t.Errorf("rate(%v): got %q, want %q", n, got, want)
		}
	}
	if got := count(1, "document") + ", " + count(664000, "document"); got != "1 document, 664,000 documents" {
		t.Errorf("got %q", got)
	}
}

// Ensure that a table wider than the terminal becomes several that fit, with every
// cell and with the first column in each.
func TestFigures_FitTheTerminal(t *testing.T) {
	f := newFigures("Prefix", "Documents", "Highest identity", "Years left")
	f.add("users/", 2_000_000, int64(17), "over 10^16")
	f.add("a-long-prefix/", 1, int64(123456), "-")
	f.total("all", 2_000_001)
	if got := f.render(0); strings.Count(got, "┌") != 1 {
		t.Errorf("without a terminal: got\n%s", got)
	}
	for width := 37; width < 80; width++ {
		got := f.render(width)
		tables := strings.Count(got, "┌")
		for line := range strings.SplitSeq(got, "\n") {
			if displayWidth(line) > width {
				t.Fatalf("width %d: a line takes %d\n%s", width, displayWidth(line), got)
			}
		}
		for _, cell := range []string{"Documents", "2,000,000", "2,000,001", "Highest identity", "123,456", "Years left", "over 10^16"} {
			if strings.Count(got, " "+cell+" ") != 1 {
				t.Fatalf("width %d: %q is not there once\n%s", width, cell, got)
			}
		}
		if strings.Count(got, "│ users/ ") != tables {
			t.Fatalf("width %d: %d tables, not each with its first column\n%s", width, tables, got)
		}
	}
	one := newFigures("Name")
	one.add("x")
	if got := one.render(10); !strings.Contains(got, "│ x ") {
		t.Errorf("a table of one column: got\n%s", got)
	}
}

// Ensure that a progress bar shows no rate before there is one: its first frame
// comes after a while, with all that was done until then.
func TestProgress_FirstFrame(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(progressbar.NewOptions64(200_000, progressbar.OptionSetWriter(&out), progressbar.OptionShowCount(), progressbar.OptionShowIts()))
	var elapsed time.Duration
	p.elapsed = func() time.Duration { return elapsed }
	p.add(42_000)
	p.set(42_000)
	p.done()
	if out.Len() > 0 {
		t.Errorf("after 42,000 documents in no time it shows %q", out.String())
	}
	elapsed = barDelay
	p.add(1000)
	if !strings.Contains(out.String(), "43000/200000") {
		t.Errorf("got %q, want 43000/200000", out.String())
	}
}

// Ensure that the count of an index whose build was begun by an earlier command is
// that of all documents, not of those that were read since the database was opened.
func TestIndexCreate_CountsAfterInterruption(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 5 {
		if _, err := db.Store(t.Context(), "Tickets", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	built := jay.IndexInfo{Index: jay.Index{Name: "n"}, Collection: "Tickets", State: "ready"}
	building := built
	building.State = jay.IndexBuilding
	for _, test := range []struct {
		before []jay.IndexInfo
		want   int64
	}{{nil, 2}, {[]jay.IndexInfo{built}, 2}, {[]jay.IndexInfo{building}, 5}} {
		got, err := documentsRead(t.Context(), db, test.before, built, 2)
		if err != nil || got != test.want {
			t.Errorf("before %v: got %d, %v, want %d", test.before, got, err, test.want)
		}
	}
}

// Ensure that a command that waits for input on a terminal says so, and that others
// do not.
func TestRun_PromptsForInput(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var stderr bytes.Buffer
		a := &app{stdin: strings.NewReader("{}"), stderr: &stderr, isTerminal: func(any) bool { return terminal }}
		a.options.MaxDocumentBytes = 10
		if _, err := (&putCommand{}).read(context.Background(), a); err != nil {
			t.Fatal(err)
		}
		if _, err := (&queryCommand{File: stdinName}).text(context.Background(), a); err != nil {
			t.Fatal(err)
		}
		want := ""
		if terminal {
			want = "type or paste a document, then Ctrl-D on a line of its own\ntype or paste a query, then Ctrl-D on a line of its own\n"
		}
		if stderr.String() != want {
			t.Errorf("terminal %v: got %q, want %q", terminal, stderr.String(), want)
		}
	}
}

// Ensure that the collection of a query is found in its text, quoted or not.
func TestCollectionOf(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for text, want := range map[string]string{
		`from Users`:                       "Users",
		`from Users as u where u.n > 5`:    "Users",
		`from 'it\'s' where n > 5`:         "it's",
		`from '@all_docs' limit 5`:         "@all_docs",
		`from 'where' select id() limit 1`: "where",
	} {
		q, err := db.RQL(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := collectionOf(q.String()); got != want {
			t.Errorf("%s, which is %s: got %q, want %q", text, q, got, want)
		}
	}
}

// camelCase is the one style of keys in the command's JSON (docs/cli.md).
var camelCase = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// Ensure that all keys of the command's JSON have one style: those of its own types,
// of its maps, and of what it prints of package jay. Documents keep theirs, and so
// does the line of an export that looks like one.
func TestJSON_OneStyle(t *testing.T) {
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	keys := 0
	check := func(where, key string) {
		key, _, _ = strings.Cut(key, ",")
		if key == "-" || key == "" || key == "@metadata" {
			return
		}
		keys++
		if !camelCase.MatchString(key) {
			t.Errorf("%s: the key %q is not in camelCase", where, key)
		}
	}
	inspect := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				tag, err := strconv.Unquote(n.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				check(files.Position(n.Pos()).String(), reflect.StructTag(tag).Get("json"))
			}
		case *ast.CallExpr:
			// a.printLine(map[string]T{"key": …})
			if f, is := n.Fun.(*ast.SelectorExpr); !is || f.Sel.Name != "printLine" {
				return true
			}
			if m, is := n.Args[0].(*ast.CompositeLit); is {
				for _, e := range m.Elts {
					if pair, is := e.(*ast.KeyValueExpr); is {
						if key, is := pair.Key.(*ast.BasicLit); is {
							check(files.Position(n.Pos()).String(), strings.Trim(key.Value, `"`))
						}
					}
				}
			}
		}
		return true
	}
	for _, file := range parsed {
		ast.Inspect(file, inspect)
	}
	if keys < 20 {
		t.Errorf("looked at %d keys, want at least 20", keys)
	}

	seen := make(map[reflect.Type]bool)
	var walk func(where string, of reflect.Type)
	walk = func(where string, of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			field := of.Field(i)
			name := field.Tag.Get("json")
			if name == "" && !field.Anonymous && field.IsExported() {
				t.Errorf("%s.%s has no json tag", where, field.Name)
			}
			check(fmt.Sprintf("%s.%s", where, field.Name), name)
			walk(of.Name(), field.Type)
		}
	}
	for _, printed := range []any{putResult{}, indexResult{}, statsResult{}, rangeResult{}, importSummary{}, exportSummary{}, repairResult{}, jsonError{}, diffResult{}, jay.RevisionsConfiguration{}, jay.RevisionsPurged{}, jay.IDReport{}, jay.Explanation{}} {
		walk(reflect.TypeOf(printed).Name(), reflect.TypeOf(printed))
	}
}

// Ensure that docs/cli.md describes every command.
func TestDocs_NameEveryCommand(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := reflect.TypeFor[commandLine]()
	looked := 0
	for i := range commands.NumField() {
		field := commands.Field(i)
		if _, is := field.Tag.Lookup("cmd"); !is {
			continue
		}
		if _, hidden := field.Tag.Lookup("hidden"); hidden {
			continue // for other programs
		}
		looked++
		if name := strings.ToLower(field.Name); !strings.Contains(string(text), "`jay "+name) {
			t.Errorf("docs/cli.md does not name jay %s", name)
		}
	}
	if looked < 10 {
		t.Errorf("looked at %d commands", looked)
	}
}
