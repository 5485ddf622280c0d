// These tests are inside the package: decoders that no request reaches by themselves.

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jaydb/jay"
)

// FuzzElements ensures that the reader of a stream returns the elements which
// encoding/json finds in it, whatever the pieces are in which it comes, if the stream is
// valid, and fails on nothing.
func FuzzElements(f *testing.F) {
	for _, seed := range []string{`[]`, `[{}]`, ` [ {"Id":"a\"]}\\","Document":{"a":[1,"]"]}} , {"Type":"HeartBeat"} ] `, `[{"a":1},]`, `[{"a"`, `{}`, `[1]`, `[{} {}]`, `[{"a":"` + strings.Repeat("x", 5000) + `"}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want []json.RawMessage
		valid := json.Unmarshal(text, &want) == nil && want != nil
		for _, one := range want {
			valid = valid && one[0] == '{'
		}
		for _, r := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text))} {
			e := newElementReader(r, 1<<20, func(int64) error { return nil })
			n := 0
			for {
				element, err := e.next()
				if err == io.EOF && (!valid || n == len(want)) {
					break
				}
				if err != nil {
					if valid || !errors.Is(err, errElement) && err != io.ErrUnexpectedEOF {
						t.Fatalf("%q: %v", text, err)
					}
					break
				}
				if valid && !bytes.Equal(element, want[n]) {
					t.Fatalf("%q: element %d is %s, want %s", text, n, element, want[n])
				}
				if valid {
					members := make(map[string]json.RawMessage)
					if err := json.Unmarshal(element, &members); err != nil {
						t.Fatal(err)
					}
					if err := eachMember(element, func(name, value []byte) error {
						if !json.Valid(value) {
							t.Fatalf("%s: the member %s is %s", element, name, value)
						}
						return nil
					}); err != nil {
						t.Fatalf("%s: %v", element, err)
					}
				}
				if _, err := parseBulkCommand(element); err != nil {
					_ = problemOf(err)
				}
				n++
			}
		}
	})
}

// FuzzDefinition ensures that what is taken for an index names fields of one collection.
func FuzzDefinition(f *testing.F) {
	for _, seed := range []string{`from doc in docs.Users select new { doc.Name, Age = doc.Age }`, `docs["A B"].Select(x => new { x.a })`, `map('Users', u => ({ a: u.a, "b": u.b }))`, `map('A', function (u) { return { a: u.a }; })`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		collection, fields, err := parseMap("X", text)
		if err != nil {
			if p := problemOf(err); p.status >= 500 && p.status != 501 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if collection == "" || len(fields) == 0 || len(fields) > maxIndexFields {
			t.Fatalf("%q: collection %q, fields %q", text, collection, fields)
		}
		for _, field := range fields {
			if field == "" || !strings.Contains(text, field) {
				t.Fatalf("%q: field %q", text, field)
			}
		}
	})
}

// FuzzSplitUpdate ensures that a query and its script are parts of the text.
func FuzzSplitUpdate(f *testing.F) {
	for _, seed := range []string{`from A update { this.x = 1 }`, "from A where x = 'update {' // update {\n update{}", `from A /* update { */ Update {a}} `, `from A update {`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, source, err := splitUpdate(text)
		if err == nil && (!strings.HasPrefix(text, query) || !strings.Contains(text, strings.TrimLeft(source, "\n"))) {
			t.Fatalf("%q: %q and %q", text, query, source)
		}
	})
}

// Ensure that durations are read and written as .NET does.
func TestTimeSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"00:00:00": 0, "14.00:00:00": 14 * 24 * time.Hour, "01:02:03": time.Hour + 2*time.Minute + 3*time.Second, "00:00:00.5000000": time.Second / 2, "1.23:59:59.0000001": 48*time.Hour - time.Second + 100,
	} {
		got, err := parseTimeSpan(text)
		if err != nil || got != want || formatTimeSpan(want) != text {
			t.Errorf("%s: got %v, %v, written as %s", text, got, err, formatTimeSpan(want))
		}
	}
	for _, text := range []string{"", "1", "1:2", "a:b:c", "00:60:00", "00:00:60", "-1.00:00:00", "99999999.00:00:00", "00:00:00.12345678", "1.2.3:00:00"} {
		if got, err := parseTimeSpan(text); err == nil {
			t.Errorf("%s: got %v, want an error", text, got)
		}
	}
}

// Ensure that the operations that run are bounded, and so are those that have ended.
func TestOperations_Most(t *testing.T) {
	t.Parallel()
	os := newOperations(time.Now)
	os.changed = func(string, int64, operationState) {}
	var running []*operation
	for range maxRunningOperations {
		_, o, err := os.start(context.Background(), "a", os.next(), about{})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, o)
	}
	if _, _, err := os.start(context.Background(), "a", os.next(), about{}); problemOf(err).status != 429 {
		t.Errorf("one too many: %v", err)
	}
	for _, o := range running {
		os.finish(o, operationState{Status: operationCompleted})
	}
	for range maxKeptOperations {
		_, o, err := os.start(context.Background(), "b", os.next(), about{})
		if err != nil {
			t.Fatal(err)
		}
		os.finish(o, operationState{Status: operationCompleted})
	}
	if len(os.byID) != maxKeptOperations || os.find("a", running[0].of.id) != nil || os.running != 0 {
		t.Errorf("%d are kept, %d run", len(os.byID), os.running)
	}
	os.forget("b")
	if len(os.byID) != 0 {
		t.Errorf("%d are left of a database that was deleted", len(os.byID))
	}
}

// Ensure that the log says where an operation has panicked, and its client does not.
func TestOperations_Panic(t *testing.T) {
	t.Parallel()
	_, err := runOperation(t.Context(), nil, func(context.Context, *operation) (any, error) { panic("on purpose") })
	const here = "level2_internal_test.go"
	if err == nil || !strings.Contains(err.Error(), here) || !strings.Contains(err.Error(), "on purpose") || strings.Contains(problemOf(err).message, "on purpose") {
		t.Errorf("got %v", err)
	}
}

// Ensure that a feed which has failed is not that of the next socket.
func TestHub_FeedFails(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := jay.Open(t.TempDir(), nil)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	k := &socket{s: s, ended: true} // nothing is sent to it
	h := s.hubs.join(newDatabase("a"), db, k)
	defer s.hubs.leave(h, k)
	if err := h.watch(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened != nil || len(h.watching) > 0 {
		t.Error("the hub has a feed, which has ended")
	}
}

// Ensure that the change vectors that are remembered are bounded, and the newest ones.
func TestVectors(t *testing.T) {
	t.Parallel()
	v := newVectors()
	for i := range 2*maxVectors + 5 {
		v.add("a", strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String(), "id")
	}
	if len(v.ids) != maxVectors || len(v.order) != maxVectors {
		t.Errorf("%d vectors are remembered", len(v.ids))
	}
}

// Ensure that a change by query leaves documents as they are that other writes have changed
// since the query found them, so that they do not satisfy its condition any more.
func TestByQuery_Overtaken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all jay.Batch
	for i := range 2 * byQueryBatch {
		all.Put(fmt.Sprintf("n/%03d", i), []byte(`{"old":true}`), jay.InCollection("Ns"))
	}
	if _, err := db.Apply(ctx, &all); err != nil {
		t.Fatal(err)
	}
	s := &Server{opts: Options{Now: time.Now}, operations: newOperations(time.Now)}
	s.operations.changed = func(string, int64, operationState) {}
	const changed, gone = "n/200", "n/201" // of the second batch
	b := &byQuery{text: "from Ns where old = true", missing: "NotFound", details: true}
	q, err := db.RQL(b.text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.matcher, err = q.Matcher(); err != nil {
		t.Fatal(err)
	}
	overtaken := false
	b.each = func(ctx context.Context, tx *jay.Tx, id string) (string, error) {
		if !overtaken {
			overtaken = true
			if _, err := db.Put(ctx, changed, []byte(`{"old":false}`), jay.InCollection("Ns")); err != nil {
				return "", err
			}
			if err := db.Delete(ctx, gone); err != nil {
				return "", err
			}
		}
		return "Deleted", tx.Delete(ctx, id)
	}
	result, err := s.changeAll(ctx, db, new(operation), b, int64(2*byQueryBatch))
	if err != nil {
		t.Fatal(err)
	}
	left, err := db.RQL("from @all_docs", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := left.Count(ctx); err != nil || n != 1 {
		t.Errorf("%d documents are left, %v, want 1", n, err)
	}
	if doc, err := db.Get(ctx, changed); err != nil || string(doc.Body()) != `{"old":false}` {
		t.Errorf("the one that another write has changed: %v", err)
	}
	details := result.(map[string]any)["Details"].([]any)
	for i, want := range map[int]string{199: "Deleted", 200: patchSkipped, 201: "NotFound"} {
		if got := details[i].(map[string]any)["Status"]; got != want {
			t.Errorf("document %d: %v, want %s", i, got, want)
		}
	}
}
