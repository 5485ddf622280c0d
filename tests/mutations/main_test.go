package main

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// root is the root of the repository, from here.
const root = "../.."

// Ensure that each mutation can be made: each text that it replaces is once in its file, what
// comes of it is Go, and the tests that should catch it exist. So the table goes with the code.
func TestMutations_Apply(t *testing.T) {
	names := make(map[string]bool)
	testsOf := make(map[string][]string) // by directory
	all := mutations()
	if len(all) < 60 {
		t.Errorf("there are %d mutations", len(all))
	}
	for _, m := range all {
		if names[m.name] {
			t.Errorf("%s: there are two of this name", m.name)
		}
		names[m.name] = true
		texts, err := m.mutated(root)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for file, text := range texts {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
		if len(m.edits) == 0 || len(m.tests) == 0 {
			t.Errorf("%s: it changes nothing, or no test should catch it", m.name)
		}
		for _, want := range m.tests {
			if testsOf[want.dir] == nil {
				testsOf[want.dir] = testsIn(t, filepath.Join(root, want.dir))
			}
			for _, alternative := range strings.Split(want.run, "|") {
				if name, _, of := strings.Cut(alternative, "/"); of {
					alternative = name + "$" // a script among many
				}
				if !anyMatches(t, alternative, testsOf[want.dir]) {
					t.Errorf("%s: no test of %s matches %s", m.name, want.dir, alternative)
				}
			}
		}
	}
}

// testsIn returns the names of the tests of a package.
func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names
}

func anyMatches(t *testing.T, expression string, names []string) bool {
	t.Helper()
	e, err := regexp.Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if e.MatchString(name) {
			return true
		}
	}
	return false
}

// Ensure that a text that is not in its file, or twice, is an error, and that several edits of
// one file add up.
func TestMutation_Mutated(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.go": "one two two three"})
	tests := []struct {
		name  string
		edits []edit
		want  string // "" for an error
	}{
		{"once", []edit{{"a.go", "one", "1"}}, "1 two two three"},
		{"two edits", []edit{{"a.go", "one", "1"}, {"a.go", "three", "3"}}, "1 two two 3"},
		{"missing", []edit{{"a.go", "four", "4"}}, ""},
		{"twice", []edit{{"a.go", "two", "2"}}, ""},
		{"the same", []edit{{"a.go", "one", "one"}}, ""},
		{"no such file", []edit{{"b.go", "one", "1"}}, ""},
	}
	for _, test := range tests {
		texts, err := mutation{edits: test.edits}.mutated(dir)
		if test.want == "" && err == nil {
			t.Errorf("%s: got %q, want an error", test.name, texts["a.go"])
		}
		if test.want != "" && (err != nil || texts["a.go"] != test.want) {
			t.Errorf("%s: got %q, %v; want %q", test.name, texts["a.go"], err, test.want)
		}
	}
}

// Ensure that the test that has failed, and its first line, are found in what test programs
// print.
func TestRead(t *testing.T) {
	tests := []struct {
		name, out string
		want      result
	}{
		{"passed", "PASS\n", result{}},
		{"failed", "--- FAIL: TestA (0.00s)\n    a_test.go:3: part 1 of 4; JAY_SEED=20261126 repeats it\n    a_test.go:9: got 1, want 2\n    a_test.go:9: got 3\nFAIL\n", result{test: "TestA", says: "got 1, want 2"}},
		{"a part failed", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:9: got 1\nFAIL\n", result{test: "TestA/b", says: "got 1"}},
		{"failed with several lines", "--- FAIL: TestA (0.00s)\n    a_test.go:9: \n        got 1\n        want 2\nFAIL\n", result{test: "TestA", says: "got 1"}},
		{"failed at random", "--- FAIL: TestA (0.00s)\n    a_test.go:9: [rapid] failed after 3 tests: got 1\n    a_test.go:9: [rapid] draw n: 3\nFAIL\n", result{test: "TestA", says: "got 1"}},
		{"panicked", "--- FAIL: TestA (0.00s)\npanic: index out of range [recovered]\n\tpanic: index out of range\n", result{test: "TestA", says: "index out of range [recovered]"}},
		{"ended by another goroutine", "panic: broken\n\ngoroutine 7 [running]:\n", result{test: "a panic", says: "broken"}},
		{"hung", "panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n\ngoroutine 7 [running]:\n", result{test: "TestA", says: "test timed out after 1s", hung: true}},
	}
	for _, test := range tests {
		if got := read(test.out); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// Ensure that a change that a test notices is caught, and that one that none notices, one that
// does not compile, one whose tests hang, fail anyway or do not exist is not.
func TestBench_Try(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a dozen programs")
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":   "module small\n\ngo 1.25\n",
		"go.work":  "go 1.25\n\nuse .\n",
		"small.go": "package small\n\nfunc Two() int { return 2 }\n\nfunc Three() int { return 3 }\n",
		"small_test.go": `package small

import "testing"

func TestTwo(t *testing.T) {
	for Two() == 4 {
	}
	if Two() != 2 {
		t.Errorf("got %d", Two())
	}
}

func TestBroken(t *testing.T) { t.Error("fails") }

func TestFull(t *testing.T) {
	if !testing.Short() && Three() != 3 {
		t.Errorf("got %d", Three())
	}
}
`,
	})
	t.Setenv("GOFLAGS", "")
	b, err := newBench(dir, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	two := func(new, run string) mutation {
		return mutation{name: new, edits: []edit{{"small.go", "return 2", new}}, tests: []tests{{".", run}}}
	}
	hangs := two("return 4", "TestTwo$")
	hangs.hangs = time.Second
	for _, test := range []struct {
		name    string
		m       mutation
		caught  bool
		problem string // part of it
	}{
		{"caught", two("return 5", "TestTwo$"), true, ""},
		{"not caught", mutation{name: "three", edits: []edit{{"small.go", "return 3", "return 4"}}, tests: []tests{{".", "TestTwo$"}}}, false, ""},
		{"caught by the second tests", mutation{name: "three", edits: []edit{{"small.go", "return 3", "return 4"}}, tests: []tests{{".", "TestTwo$"}, {".", "TestFull$"}}}, true, ""},
		{"does not compile", two("return x", "TestTwo$"), false, "it does not compile"},
		{"hangs as it should", hangs, true, ""},
		{"hangs", two("return 4 ", "TestTwo$"), false, "does not end"},
		{"fails without a change", two("return 5", "TestBroken$"), false, "without a change"},
		{"no such test", two("return 5", "TestOther$"), false, "no test"},
	} {
		b.sound = make(map[string]error)
		got := b.try(context.Background(), test.m, []form{full}, []mutation{test.m})[0]
		if got.Caught != test.caught || !strings.Contains(got.Problem, test.problem) || (test.problem == "") != (got.Problem == "") {
			t.Errorf("%s: got %s", test.name, got)
		}
	}

	// What only tests in full notice is not caught by short ones.
	b.sound = make(map[string]error)
	m := mutation{name: "three", edits: []edit{{"small.go", "return 3", "return 4"}}, tests: []tests{{".", "TestFull$"}}}
	if got := b.try(context.Background(), m, []form{full, shortened}, []mutation{m}); !got[0].Caught || got[1].Caught || got[1].Problem != "" {
		t.Errorf("got %s and %s", got[0], got[1])
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a program with several changes makes none, or the one that it is asked for, and that a change of
// something else than a function is not in it.
func TestBench_Weave(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a program")
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":  "module github.com/jaydb/jay\n\ngo 1.25\n",
		"go.work": "go 1.25\n\nuse .\n",
		"small.go": "package small\n\ntype T struct{ n int }\n\nvar four = 4\n\nfunc (t *T) Add(by ...int) {\n\tfor _, n := range by {\n\t\tt.n += n\n\t}\n}\n\n" +
			"func Two() int { return 2 }\n\nfunc Sum() int {\n\tt := T{n: four}\n\tt.Add(Two(), 1)\n\treturn t.n\n}\n",
		"small_test.go": "package small\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum() != 7 {\n\t\tt.Errorf(\"got %d\", Sum())\n\t}\n}\n",
	})
	t.Setenv("GOFLAGS", "")
	b, err := newBench(dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	sum := []tests{{".", "TestSum$"}}
	all := []mutation{
		{name: "another number", edits: []edit{{"small.go", "return 2", "return 3"}}, tests: sum},
		{name: "a method, and a function", edits: []edit{{"small.go", "t.n += n", "t.n -= n"}, {"small.go", "return 2", "return 1"}}, tests: sum},
		{name: "nothing", edits: []edit{{"small.go", "t.n += n", "t.n = t.n + n"}}, tests: sum},
		{name: "a variable", edits: []edit{{"small.go", "four = 4", "four = 5"}}, tests: sum},
	}
	check := func(all []mutation, together bool) {
		t.Helper()
		if b.wovenOverlay, b.woven, err = b.weave(all); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"got 8", "got 2", "", "got 8"} {
			if woven := i < 3; b.woven[all[i].name] != woven {
				t.Errorf("%s: woven %v, want %v", all[i].name, !woven, woven)
			}
			if got := b.try(context.Background(), all[i], []form{full}, all)[0]; got.Says != want || got.Problem != "" {
				t.Errorf("%s: got %s, want %q", all[i].name, got, want)
			}
		}
		if got := b.programs["."] != ""; got != together {
			t.Errorf("in one program: %v, want %v", got, together)
		}
	}
	check(all, true)

	// One that does not compile spoils the program, not the judgement of the others.
	clear(b.programs)
	clear(b.sound)
	check(append(all, mutation{name: "broken", edits: []edit{{"small.go", "return 2", "return x"}}, tests: sum}), false)
}
