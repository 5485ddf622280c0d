package lint_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dependencies are the modules that package jay imports itself, each with the
// reason. CONTRIBUTING.md has them too.
var dependencies = map[string]string{
	"github.com/cockroachdb/crlib":        "the semaphore that Pebble takes; Pebble compiles it",
	"github.com/cockroachdb/pebble/v2":    "the store below storage/lsm",
	"github.com/prometheus/client_golang": "tests of storage/lsm make Pebble's metrics; Pebble compiles it",
	"github.com/prometheus/client_model":  "reads one figure of Pebble's metrics; Pebble compiles it",
	"github.com/tidwall/gjson":            "single values of JSON without decoding",
	"github.com/tidwall/sjson":            "the same, written",
	"github.com/go-json-experiment/json":  "the decoder of Go 1.27",
	"github.com/evanphx/json-patch/v5":    "RFC 6902 and 7396",
	"github.com/google/uuid":              "GUIDs",
	"github.com/go-openapi/inflect":       "plurals of collection names",
	"github.com/klauspost/compress":       "zstd of backups; Pebble compiles it",
	"github.com/clipperhouse/uax29/v2":    "word boundaries of Unicode",
	"github.com/blevesearch/snowballstem": "stems of words, for searches",
	"github.com/golang/geo":               "points, lines and areas on the sphere, and cells of it",
	"golang.org/x/sys":                    "whether the processor has AVX2; Pebble compiles it",
	"golang.org/x/text":                   "normal forms of Unicode, for searches",
}

// A requirement of a go.mod: on a line of its own or in a block.
var requirement = regexp.MustCompile(`(?m)^(?:require )?\t?([a-z][^ \t\n]*\.[^ \t\n]*) v[^ \n]*( // indirect)?$`)

// requirements returns what a go.mod requires: true for what is imported directly.
func requirements(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, m := range requirement.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2] == ""
	}
	return found
}

// Ensure that a user's module graph is lean: the root's go.mod requires what
// package jay compiles and nothing else, neither for the command nor for suites
// nor for the linter, and imports no module without a reason.
func TestModules_RootIsLean(t *testing.T) {
	t.Parallel()
	required := requirements(t, "go.mod")
	for name, direct := range required {
		if _, wanted := dependencies[name]; direct && !wanted {
			t.Errorf("go.mod requires %s: give it a reason above and in CONTRIBUTING.md, or put what imports it into another module", name)
		}
	}
	for name := range dependencies {
		if direct, found := required[name]; !found || !direct {
			t.Errorf("go.mod does not require %s any more", name)
		}
	}

	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	list.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=1") // zstd is compiled only with cgo
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	compiled := strings.Fields(string(out))
	for _, name := range slices.Sorted(maps.Keys(required)) {
		if !slices.Contains(compiled, name) {
			t.Errorf("go.mod requires %s, which package jay does not compile", name)
		}
	}
}

// Ensure that every module of the repository is in go.work and in the Makefile,
// and stands on its own: it is named for its directory and finds the root beside
// it.
func TestModules_AllAreNamed(t *testing.T) {
	work, err := os.ReadFile("go.work")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(makefile), "\nMODULES = ")
	list, _, _ = strings.Cut(list, "\n")
	if !found {
		t.Error("the Makefile has no MODULES")
	}
	used := regexp.MustCompile(`(?m)^\t\.(/\S+)?$`).FindAllStringSubmatch(string(work), -1)

	var modules []string
	err = filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "go.mod" || strings.Contains(file, "testdata") {
			return err
		}
		modules = append(modules, filepath.ToSlash(filepath.Dir(file)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 5 {
		t.Fatalf("got modules %q, want at least 5", modules)
	}
	for _, dir := range modules {
		if !slices.ContainsFunc(used, func(m []string) bool { return path.Join(".", "."+m[1]) == dir }) {
			t.Errorf("go.work does not use %s", dir)
		}
		if !slices.Contains(strings.Fields(list), dir) {
			t.Errorf("MODULES of the Makefile are %q, without %s", list, dir)
		}
		if dir == "." {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "module "+module+"/"+dir+"\n") {
			t.Errorf("%s/go.mod: the module is not named for its directory", dir)
		}
		root := strings.Repeat("../", strings.Count(dir, "/")) + ".."
		_, needsRoot := requirements(t, filepath.Join(dir, "go.mod"))[module]
		if needsRoot && !regexp.MustCompile(`(?m)^replace `+regexp.QuoteMeta(module+" => "+root)+`/?$`).Match(text) {
			t.Errorf("%s/go.mod does not replace %s by %s", dir, module, root)
		}
	}
}
