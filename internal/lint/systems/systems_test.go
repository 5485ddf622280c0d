package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inModule makes these files the working directory.
func inModule(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOARCH", "amd64")
}

// Ensure that what a system lacks is found, in the package that lacks it and not in those that
// import it, and that nothing is found for a system that lacks nothing.
func TestSystems_FileIsMissing(t *testing.T) {
	inModule(t, map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.25.0\n",
		"main.go":       "package main\n\nimport \"example.com/m/a\"\n\nfunc main() { a.A() }\n",
		"a/a.go":        "package a\n\nimport \"os\"\n\nfunc A() { b(os.Args) }\n",
		"a/b_linux.go":  "package a\n\nfunc b([]string) {}\n",
		"a/b_darwin.go": "package a\n\nfunc b([]string) {}\n",
	})
	for system, want := range map[string]string{"linux": "", "darwin": "", "windows": "undefined: b"} {
		t.Setenv("GOOS", system)
		var out strings.Builder
		err := run([]string{"./..."}, &out)
		switch {
		case want == "" && (err != nil || !strings.HasSuffix(out.String(), " packages\n")):
			t.Errorf("%s: got %q, %v", system, out.String(), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "main.go")):
			t.Errorf("%s: got %v, want %q", system, err, want)
		}
	}
}

// Ensure that a constant that is too large for the processor's int is found, and a form of the
// language that is newer than go.mod allows.
func TestSystems_ProcessorAndLanguage(t *testing.T) {
	inModule(t, map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.21\n",
		"large/l.go":  "package large\n\nvar N int = 1 << 40\n",
		"newer/n.go":  "package newer\n\nfunc F() {\n\tfor range 3 {\n\t}\n}\n",
		"either/e.go": "package either\n\nvar N int64 = 1 << 40\n",
	})
	t.Setenv("GOOS", "linux")
	for _, test := range []struct{ arch, pattern, want string }{
		{"amd64", "./large", ""},
		{"386", "./large", "overflows"},
		{"386", "./either", ""},
		{"amd64", "./newer", "go1.22"},
	} {
		t.Setenv("GOARCH", test.arch)
		err := run([]string{test.pattern}, new(strings.Builder))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %s: got %v, want %q", test.arch, test.pattern, err, test.want)
		}
	}
}

// Ensure that packages that do not exist, or none, are errors.
func TestSystems_NoPackages(t *testing.T) {
	inModule(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.25.0\n"})
	for _, patterns := range [][]string{nil, {"./..."}, {"./missing"}} {
		if err := run(patterns, new(strings.Builder)); err == nil {
			t.Errorf("%q: no error", patterns)
		}
	}
}
