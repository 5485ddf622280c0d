//go:build ignore

// Command copy writes the files beside it: the tests of JSON Schema for the draft 2020-12. README.md says where they are from.
//
//	cd schema/jsonschema/testdata/suite && go run copy.go
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is the module that has the tests, and where they are in it.
const (
	source = "cuelang.org/go@v0.17.1"
	folder = "encoding/jsonschema/testdata/external/tests/draft2020-12"
)

// group and test are the members that the suite has. The module adds one, skip, for its own use.
type group struct {
	Description   string          `json:"description"`
	Comment       string          `json:"comment,omitempty"`
	Specification json.RawMessage `json:"specification,omitempty"`
	Schema        json.RawMessage `json:"schema"`
	Tests         []test          `json:"tests"`
}

type test struct {
	Description string          `json:"description"`
	Comment     string          `json:"comment,omitempty"`
	Data        json.RawMessage `json:"data"`
	Valid       bool            `json:"valid"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := download()
	if err != nil {
		return err
	}
	root := filepath.Join(dir, filepath.FromSlash(folder))
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out, err := copied(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, out, 0o644)
	})
}

// download returns the folder of the module.
func download() (string, error) {
	get := exec.Command("go", "mod", "download", "-json", source)
	get.Env = append(os.Environ(), "GOWORK=off")
	get.Dir = os.TempDir()
	get.Stderr = os.Stderr
	text, err := get.Output()
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	return module.Dir, json.Unmarshal(text, &module)
}

// copied returns a file with a line for each group of tests.
func copied(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(strings.TrimSpace(string(text)))))
	var groups []group
	if err := decoder.Decode(&groups); err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("[\n")
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for i, g := range groups {
		if i > 0 {
			out.Truncate(out.Len() - 1)
			out.WriteString(",\n")
		}
		if err := encoder.Encode(g); err != nil {
			return nil, err
		}
	}
	out.WriteString("]\n")
	return out.Bytes(), nil
}
