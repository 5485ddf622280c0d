package query_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/native"
	"github.com/jaydb/jay/query"
)

// Ensure every query in the documentation is one: what stands between ```rql
// and ```, each after an empty line, with 5 for every parameter but $v, which is a vector.
func TestParse_Documentation(t *testing.T) {
	defer native.Register(native.ID{Name: "orders/points", Version: "1"}, func([]byte) ([][]byte, error) { return nil, nil })()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, pages...)
	fence := regexp.MustCompile("(?s)```rql\n(.*?)```")
	parameter := regexp.MustCompile(`\$(\w+)`)
	queries := 0

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
			for q := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n\n") {
				queries++
				params := map[string]any{}
				for _, name := range parameter.FindAllStringSubmatch(q, -1) {
					params[name[1]] = 5
				}
				if params["v"] != nil {
					params["v"] = []float32{1, 0.5}
				}
				if _, err := query.Parse(q, params); err != nil {
					t.Errorf("%s: %s\n%v", file, q, err)
				}
			}
		}
	}
	if queries < 40 {
		t.Errorf("%d queries, want at least 40: are they found?", queries)
	}
}
