package jay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that every row of docs/limits.md has as many cells as its head, and
// that the tests that it names are there.
func TestLimits_Document(t *testing.T) {
	sample.OneGoroutine(t)
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
	sample.OneGoroutine(t)
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
	sample.OneGoroutine(t)
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

// waysIn are the calls that store JSON or names from outside. Each is given a text: value as JSON inside a document,
// or name as an ID or another name.
var waysIn = []struct {
	name  string
	value func(db *jay.DB, value string) error // or nil
	text  func(db *jay.DB, name string) error  // or nil
}{
	{name: "put", value: func(db *jay.DB, v string) error {
		return second(db.Put(ctx, "a", json.RawMessage(`{"n":`+v+`}`)))
	}, text: func(db *jay.DB, n string) error { return second(db.Put(ctx, n, json.RawMessage(`{}`))) }},
	{name: "@metadata", value: func(db *jay.DB, v string) error {
		return second(db.Put(ctx, "a", json.RawMessage(`{"@metadata":{"k":`+v+`}}`)))
	}, text: func(db *jay.DB, n string) error {
		return second(db.Put(ctx, "a", json.RawMessage(`{"@metadata":{"@collection":`+quoted(n)+`}}`)))
	}},
	{name: "WithMetadata", value: func(db *jay.DB, v string) error {
		return second(db.Put(ctx, "a", json.RawMessage(`{}`), jay.WithMetadata([]byte(`{"k":`+v+`}`))))
	}, text: func(db *jay.DB, n string) error {
		return second(db.Put(ctx, "a", json.RawMessage(`{}`), jay.InCollection(n)))
	}},
	{name: "a typed put", value: func(db *jay.DB, v string) error {
		type raw struct {
			ID string          `jay:"id"`
			N  json.RawMessage `json:"n"`
		}
		return putTyped(db, &raw{"typed/1", json.RawMessage(v)})
	}},
	{name: "a typed number", value: func(db *jay.DB, v string) error {
		type number struct {
			ID string      `jay:"id"`
			N  json.Number `json:"n"`
		}
		return putTyped(db, &number{"typed/1", json.Number(v)})
	}},
	{name: "set", value: func(db *jay.DB, v string) error {
		return second(db.Patch(ctx, "there", jay.Set("n", json.RawMessage(v))))
	}},
	{name: "set of a path", text: func(db *jay.DB, n string) error {
		return second(db.Patch(ctx, "there", jay.Set("'"+strings.ReplaceAll(n, "'", "''")+"'", 1)))
	}},
	{name: "increment", value: func(db *jay.DB, v string) error {
		return second(db.Patch(ctx, "there", jay.Increment("m", json.Number(v))))
	}},
	{name: "append", value: func(db *jay.DB, v string) error {
		return second(db.Patch(ctx, "there", jay.Append("l", json.RawMessage(v))))
	}},
	{name: "add to set", value: func(db *jay.DB, v string) error {
		return second(db.Patch(ctx, "there", jay.AddToSet("l", json.RawMessage(v))))
	}},
	{name: "rename", text: func(db *jay.DB, n string) error { return second(db.Patch(ctx, "there", jay.Rename("b", n))) }},
	{name: "merge patch", value: func(db *jay.DB, v string) error {
		return second(db.Patch(ctx, "there", jay.MergePatch(json.RawMessage(`{"o":{"n":`+v+`}}`))))
	}},
	{name: "JSON Patch", value: func(db *jay.DB, v string) error {
		return second(db.Patch(ctx, "there", jay.JSONPatch(json.RawMessage(`[{"op":"add","path":"/x","value":`+v+`}]`))))
	}, text: func(db *jay.DB, n string) error {
		return second(db.Patch(ctx, "there", jay.JSONPatch(json.RawMessage(`[{"op":"copy","from":"/b","path":`+quoted("/"+n)+`}]`))))
	}},
	{name: "patch or insert", value: func(db *jay.DB, v string) error {
		return second(db.Patch(ctx, "none", jay.Set("n", json.RawMessage(v)), jay.OrInsert(json.RawMessage(`{"m":`+v+`}`))))
	}},
	{name: "update", value: func(db *jay.DB, v string) error {
		q, edits, err := db.UpdateRQL("from There update { this.n = "+v+" }", nil)
		if err == nil {
			err = second(q.Patch(ctx, edits...))
		}
		return err
	}},
	{name: "update with a parameter", value: func(db *jay.DB, v string) error {
		q, edits, err := db.UpdateRQL("from There update { this.n = $n }", map[string]any{"n": json.RawMessage(v)})
		if err == nil {
			err = second(q.Patch(ctx, edits...))
		}
		return err
	}},
	{name: "batch", value: func(db *jay.DB, v string) error {
		var b jay.Batch
		b.Put("batch", json.RawMessage(`{"n":`+v+`}`))
		return second(db.Apply(ctx, &b))
	}},
	{name: "bulk", value: func(db *jay.DB, v string) error {
		w, err := db.BulkInsert(nil)
		if err == nil {
			_, err = w.Put(ctx, "bulk", json.RawMessage(`{"n":`+v+`}`))
			err = errors.Join(err, w.Close())
		}
		return err
	}},
	{name: "compare exchange", value: func(db *jay.DB, v string) error {
		return second(db.CompareExchange().Put(ctx, "key", json.RawMessage(v), 0))
	}, text: func(db *jay.DB, n string) error { return second(db.CompareExchange().Put(ctx, n, 1, 0)) }},
	{name: "imported revision", value: func(db *jay.DB, v string) error {
		return second(db.Revisions().Import(ctx, []json.RawMessage{json.RawMessage(`{"n":` + v + `,"@metadata":{"@id":"imported","@collection":"There","@change-vector":"B:900000-kKRSXHCbUUOAD9V3vs1NPA","@last-modified":"2024-01-01T00:00:00Z","@flags":"Revision"}}`)}))
	}},
	{name: "HiLo document", value: func(db *jay.DB, v string) error {
		return second(db.Put(ctx, "Raven/Hilo/things", json.RawMessage(`{"Max":`+v+`}`)))
	}},
	{name: "identity", text: func(db *jay.DB, n string) error { return second(db.NextIdentity(ctx, n)) }},
	{name: "identity of a document", text: func(db *jay.DB, n string) error { return second(db.Put(ctx, n+"|", json.RawMessage(`{}`))) }},
	{name: "server-side ID", text: func(db *jay.DB, n string) error { return second(db.Put(ctx, n+"/", json.RawMessage(`{}`))) }},
	{name: "HiLo", text: func(db *jay.DB, n string) error { return second(db.Store(ctx, n, json.RawMessage(`{}`))) }},
	{name: "request ID", text: func(db *jay.DB, n string) error { return second(db.NextIdentity(ctx, "i", jay.RequestID(n))) }},
	{name: "attachment", text: func(db *jay.DB, n string) error {
		return second(db.Attachments("there").Put(ctx, n, strings.NewReader("x")))
	}},
	{name: "type of an attachment", text: func(db *jay.DB, n string) error {
		return second(db.Attachments("there").Put(ctx, "f", strings.NewReader("x"), jay.ContentType(n)))
	}},
	{name: "subscription", text: func(db *jay.DB, n string) error {
		return db.Subscriptions().Ensure(ctx, jay.Subscription{Name: n, Query: "from There"})
	}},
	{name: "index", text: func(db *jay.DB, n string) error {
		return db.EnsureIndex(ctx, "There", jay.Index{Name: n, Fields: []string{"a"}})
	}},
	{name: "index of a collection", text: func(db *jay.DB, n string) error { return db.EnsureIndex(ctx, n, jay.Index{Fields: []string{"a"}}) }},
	{name: "rename of a collection", text: func(db *jay.DB, n string) error { return second(db.RenameCollection(ctx, "There", n)) }},
	{name: "rule for revisions", text: func(db *jay.DB, n string) error {
		return db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{n: {}}})
	}},
	{name: "expiry", value: func(db *jay.DB, v string) error {
		return second(db.Put(ctx, "a", json.RawMessage(`{"@metadata":{"@expires":`+v+`}}`)))
	}},
}

func putTyped[T any](db *jay.DB, v *T) error {
	c, err := jay.CollectionOf[T](db)
	if err != nil {
		return err
	}
	return second(c.Put(ctx, v))
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// Ensure that what any call has stored is whole in the eyes of Verify, is restored, and can be stored
// again: the limits of the ways in and those of what may be stored are the same.
func TestStored_IsWhole(t *testing.T) {
	sample.OneGoroutine(t)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	values := []string{
		"1e999999999999999", "1e1000000000000000", "1e1000000000000001", "-1E+1000000000000001", "1e-1000000000000002", "[{\"a\":1e99999999999999999999}]", "0e99999999999999999999",
		"1" + strings.Repeat("0", 1001), "0.1e1000000000000000", "-0", "1.0e0", "9223372036854775808",
		deep(253), deep(254), deep(255), deep(256), deep(257),
		`"\ud800"`, `"\ud83d\ude00"`, `"\u0000"`, "\"\xff\"", `{"a":1,"\u0061":2}`, `{"":1}`, `{"@metadata":{}}`, `"2026-01-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.9999999Z"`,
	}
	texts := []string{
		"x", " x", "x ", "a\x00b", "a\x1fb", "a\x7fb", "\xff", "a\xed\xa0\x80b", "\u202e", "\ufeff", "ſ", "K", "İ", "ß", "@metadata", "@empty", "@all", "Raven/Hilo/x", "x/1-A", "x/99999999999999999999", "x/9223372036854775807",
		strings.Repeat("n", 126), strings.Repeat("n", 127), strings.Repeat("n", 128), strings.Repeat("n", 200), strings.Repeat("n", 512), strings.Repeat("n", 513), strings.Repeat("n", 2000), strings.Repeat("n", 2048), strings.Repeat("İ", 500), strings.Repeat("ⱥ", 680),
	}
	stored := 0
	for _, way := range waysIn {
		db, err := jay.OpenMemory(nil)
		must(t, err)
		put(t, db, "there", `{"m":1,"l":[],"b":1}`, jay.InCollection("There"))
		try := func(fn func(*jay.DB, string) error, text string) {
			if fn(db, text) != nil {
				return
			}
			stored++
			report, err := db.Verify(ctx, nil)
			must(t, err)
			for _, d := range report.Damages {
				t.Errorf("%s of %.60q: %v", way.name, text, d)
			}
			for _, d := range report.Warnings {
				if d.Kind == "document-number" || d.Kind == "key-unknown" {
					t.Errorf("%s of %.60q: %v", way.name, text, d)
				}
			}
		}
		if way.value != nil {
			for _, value := range values {
				try(way.value, value)
			}
		}
		if way.text != nil {
			for _, text := range texts {
				try(way.text, text)
			}
		}
		_, stream := backUp(t, db, jay.BackupOnce())
		if _, err := jay.Restore(ctx, "db", jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: storagetest.NewDisk()}}, bytes.NewReader(stream)); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
		for d, err := range db.Documents(ctx, jay.Scan{}) {
			must(t, err)
			if _, err := db.Put(ctx, d.ID(), d.Body()); err != nil && !errors.Is(err, jay.ErrUnique) {
				t.Errorf("%s: what was stored cannot be stored again: %v", way.name, err)
			}
		}
		must(t, db.Close())
	}
	if stored < 300 {
		t.Errorf("only %d values were stored", stored)
	}
}

// Ensure that every way in refuses a number whose exponent is beyond the bound, with an error that names it.
func TestPatch_ExponentBeyond(t *testing.T) {
	const beyond = "1e1000000000000001"
	for _, way := range waysIn {
		if way.value == nil || way.name == "expiry" {
			continue
		}
		db := memory(t, nil)
		put(t, db, "there", `{"m":1,"l":[]}`, jay.InCollection("There"))
		err := way.value(db, beyond)
		if err == nil || !strings.Contains(err.Error(), "10^15") && way.name != "increment" && !strings.Contains(err.Error(), "is beyond what a number can be") {
			t.Errorf("%s: %v", way.name, err)
		}
		if d, err := db.Get(ctx, "there"); err != nil || string(d.Body()) != `{"m":1,"l":[]}` {
			t.Errorf("%s: %s, %v", way.name, d.Body(), err)
		}
	}
}

// Ensure that a document with a number that only older versions could store is read and patched, and
// that a backup of it is restored, and a repair keeps it, each with a warning.
func TestRestore_NumberOfOlderVersions(t *testing.T) {
	disk := storagetest.NewDisk()
	db, err := jay.Open("old", &jay.Options{FS: disk})
	must(t, err)
	must(t, db.EnsureIndex(ctx, "A", jay.Index{Fields: []string{"n"}}))
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"A": {}}}))
	put(t, db, "a", `{"n":1,"name":"xxxxxxxxxxxxxxx"}`, jay.InCollection("A"))
	must(t, checks.Engine(db).Update(ctx, true, func(tx storage.Tx) error { // as a patch stored it
		key := format.NewDocumentKey("a")
		record, closer, err := tx.Get(key)
		if err != nil {
			return err
		}
		h, body, err := metadata.Decode(bytes.Clone(record))
		if err = errors.Join(err, closer.Close()); err != nil {
			return err
		}
		tx.Set(key, append(h.AppendTail(h.AppendHead(nil)), bytes.Replace(body, []byte(`"name":"xxxxxxxxxxxxxxx"`), []byte(`"x":-3e-1000000000000009`), 1)...), nil)
		return nil
	}))
	const text = `{"n":1,"x":-3e-1000000000000009,"y":2}`
	must(t, second(db.Patch(ctx, "a", jay.Set("y", 2)))) // the older version is a revision now
	if _, err := db.Put(ctx, "a", json.RawMessage(text)); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("a put of the number: %v", err)
	}
	_, stream := backUp(t, db)
	restored := restoreMemory(t, jay.Options{}, stream)
	left := disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
	must(t, db.Close())
	report, err := jay.Repair(ctx, "old", filepath.Join(t.TempDir(), "new"), &jay.Options{FS: left}, nil)
	if err != nil || report.Documents != 1 || len(report.Lost) > 0 || report.After.Found != 0 {
		t.Errorf("repair: %+v, %v", report, err)
	}
	verified, err := restored.Verify(ctx, nil)
	if err != nil || verified.ByKind["document-number"] != 2 || verified.Found != 0 {
		t.Errorf("%+v, %v", verified, err)
	}
	if d, err := restored.Get(ctx, "a"); err != nil || string(d.Body()) != text {
		t.Errorf("%s, %v", d.Body(), err)
	}
}
