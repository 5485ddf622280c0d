package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

// Ensure that every row of docs/limits.md has as many cells as its head, and
// that the tests that it names are there.
func TestLimits_Document(t *testing.T) {
	t.Parallel()
	tests := make(map[string]bool)
	must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[fn.Name.Name] = true
			}
		}
		return nil
	}))
	text, err := os.ReadFile("docs/limits.md")
	must(t, err)

	named := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`)
	rows := 0
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| what ") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 5 {
			t.Errorf("%d cells, want 5: %s", len(cells), line)
			continue
		}
		last := strings.TrimSpace(cells[4])
		names := named.FindAllString(last, -1)
		if len(names) == 0 && !strings.HasPrefix(last, "none") {
			t.Errorf("neither a test nor none: %s", line)
		}
		for _, name := range names {
			if !tests[name] {
				t.Errorf("there is no %s: %s", name, line)
			}
		}
	}
	if rows < 50 {
		t.Errorf("%d rows", rows)
	}
}

// Ensure that each option with bounds takes them, and nothing beyond.
func TestLimits_Options(t *testing.T) {
	for _, test := range []struct {
		name    string
		allowed []jay.Options
		refused []jay.Options
	}{
		{"MaxIDBytes", []jay.Options{{MaxIDBytes: 64}, {MaxIDBytes: 2025}}, []jay.Options{{MaxIDBytes: 63}, {MaxIDBytes: 2026}, {MaxIDBytes: -1}}},
		{"MaxDocumentBytes", []jay.Options{{MaxDocumentBytes: 2}, {MaxDocumentBytes: 512 << 20}}, []jay.Options{{MaxDocumentBytes: 1}, {MaxDocumentBytes: 512<<20 + 1}}},
		{"MaxDepth", []jay.Options{{MaxDepth: 1}, {MaxDepth: 10_000}}, []jay.Options{{MaxDepth: -1}, {MaxDepth: 10_001}}},
		{"HiLoCapacity", []jay.Options{{HiLoCapacity: 1 << 20}}, []jay.Options{{HiLoCapacity: -1}, {HiLoCapacity: 1<<20 + 1}}},
		{"MaxQueryBytes", []jay.Options{{MaxQueryBytes: 1}}, []jay.Options{{MaxQueryBytes: -1}}},
		{"AutoIndexes", []jay.Options{{AutoIndexes: 64}}, []jay.Options{{AutoIndexes: -1}, {AutoIndexes: 65}}},
		{"MaxAttachmentBytes", []jay.Options{{MaxAttachmentBytes: 1}, {MaxAttachmentBytes: 1 << 40}}, []jay.Options{{MaxAttachmentBytes: -1}, {MaxAttachmentBytes: 1<<40 + 1}}},
		{"MaxAttachments", []jay.Options{{MaxAttachments: 1}, {MaxAttachments: 10_000}}, []jay.Options{{MaxAttachments: -1}, {MaxAttachments: 10_001}}},
		{"CacheBytes", []jay.Options{{CacheBytes: 1}}, []jay.Options{{CacheBytes: -1}}},
		{"MemTableBytes", []jay.Options{{MemTableBytes: 64 << 10}, {MemTableBytes: 1 << 30}}, []jay.Options{{MemTableBytes: 64<<10 - 1}, {MemTableBytes: 1<<30 + 1}}},
		{"Separator", []jay.Options{{Separator: "-"}}, []jay.Options{{Separator: "//"}}},
		{"NodeTag", []jay.Options{{NodeTag: "ABCD"}}, []jay.Options{{NodeTag: "ABCDE"}, {NodeTag: "RAFT"}}},
	} {
		for _, o := range test.allowed {
			if db, err := jay.OpenMemory(&o); err != nil {
				t.Errorf("%s: %+v: %v", test.name, o, err)
			} else {
				must(t, db.Close())
			}
		}
		for _, o := range test.refused {
			if db, err := jay.OpenMemory(&o); !errors.Is(err, jay.ErrOption) {
				t.Errorf("%s: %+v: %v, want ErrOption", test.name, o, err)
				if err == nil {
					must(t, db.Close())
				}
			}
		}
	}
}

// Ensure that a collection's name has up to 512 bytes.
func TestLimits_Collection(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a/1", `{}`, jay.InCollection(strings.Repeat("é", 256)))
	if _, err := db.Put(ctx, "a/2", json.RawMessage(`{}`), jay.InCollection(strings.Repeat("é", 256)+"x")); err == nil {
		t.Error("513 bytes were accepted")
	}
}

// Ensure that RaiseCounters believes numbers up to 1<<62.
func TestLimits_RaiseCounters(t *testing.T) {
	const most = 1 << 62
	for name, c := range map[string]jay.Counters{
		"identity": {Identities: map[string]int64{"a|": most + 1}}, "HiLo": {HiLo: map[string]int64{"a": most + 1}}, "etag": {Etag: most + 1},
		"below zero": {Identities: map[string]int64{"a|": -1}},
	} {
		if err := memory(t, nil).RaiseCounters(ctx, c); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: %v, want ErrUsage", name, err)
		}
	}
	must(t, memory(t, nil).RaiseCounters(ctx, jay.Counters{Identities: map[string]int64{"a|": most}, HiLo: map[string]int64{"a": most}, Etag: most}))
}

// Ensure that a JSON Patch has up to 10,000 operations.
func TestLimits_JSONPatchOperations(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	put(t, db, "a/1", `{"a":1}`)
	operations := func(n int) []byte {
		return []byte(jaytest.Array(`{"op":"test","path":"/a","value":1}`, n))
	}
	_, err := db.Patch(ctx, "a/1", jay.JSONPatch(operations(10_000)))
	must(t, err)
	if _, err := db.Patch(ctx, "a/1", jay.JSONPatch(operations(10_001))); !errors.Is(err, jay.ErrInvalidPatch) {
		t.Errorf("10,001 operations: %v", err)
	}
}

// Ensure that Increment takes numbers of up to 1,000 digits, whole ones of 64
// bits, and makes nothing beyond a float64.
func TestLimits_Increment(t *testing.T) {
	db := memory(t, nil)
	for number, refused := range map[string]bool{
		"9223372036854775806": false, "9223372036854775807": true, "92233720368547758070": true, "1e300": false, "1e308": false, "1e309": true, "1e-1000": false, "1e-1001": true, "1e1001": true,
		"0." + strings.Repeat("1", 998): false, "0." + strings.Repeat("1", 999): true,
	} {
		put(t, db, "a/1", `{"n":`+number+`}`)
		if _, err := db.Patch(ctx, "a/1", jay.Increment("n", 1)); refused != (err != nil) || refused && !errors.Is(err, jay.ErrInvalidPatch) {
			t.Errorf("%.40s: %v", number, err)
		}
	}
}

// Ensure that InspectIDs says so when it does not look at all prefixes.
func TestLimits_Inspection(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	for n, want := range map[int]bool{10_000: false, 10_001: true} {
		var b jay.Batch
		for i := range n {
			b.Put(fmt.Sprintf("p%d/1", i), []byte(`{}`))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
		if !want {
			continue // it is in the other
		}
		r, err := db.InspectIDs(ctx, nil)
		must(t, err)
		found := false
		for _, w := range r.Warnings {
			found = found || w.Kind == jay.WarnTooMany
		}
		equal(t, found, want)
	}
}

// Ensure that the bound of exponents is one for documents and for queries.
func TestLimits_ExponentOfNumbers(t *testing.T) {
	db := memory(t, nil)
	for _, exponent := range []int64{query.MaxExponent - 1, query.MaxExponent, -query.MaxExponent - 1, -query.MaxExponent - 2} {
		number := fmt.Sprintf("1e%d", exponent)
		_, errPut := db.Put(ctx, "a/1", json.RawMessage(`{"n":`+number+`}`))
		_, errValue := query.NewValue(json.Number(number))
		if (errPut == nil) != (errValue == nil) || (errPut == nil) != (exponent == query.MaxExponent-1 || exponent == -query.MaxExponent-1) {
			t.Errorf("%s: put %v, value %v", number, errPut, errValue)
		}
	}
}
