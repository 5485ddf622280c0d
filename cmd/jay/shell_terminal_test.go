package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// fakeConsole is a console whose keys stand in a text.
func fakeConsole(keys string, h *history, width, height int) (*console, *bytes.Buffer) {
	var screen bytes.Buffer
	raw := func() (func() error, error) { return func() error { return nil }, nil }
	if h == nil {
		h = &history{}
	}
	return newConsoleOn(strings.NewReader(keys), &screen, h, raw, func() (int, int) { return width, height }), &screen
}

// readAll reads lines until the keys end.
func readAll(t *testing.T, c *console) (lines []string) {
	t.Helper()
	for {
		line, err := c.readLine(t.Context(), "> ")
		switch {
		case errors.Is(err, errInterrupt):
			line = "^C"
		case errors.Is(err, io.EOF):
			return lines
		case err != nil:
			line = err.Error()
		}
		lines = append(lines, line)
	}
}

// Ensure that lines are edited, pasted, abandoned and ended as the keys say.
func TestConsole_Lines(t *testing.T) {
	for _, row := range []struct {
		name, keys string
		want       []string
	}{
		{"edited", "abd\x1b[D\x1b[Dc\x01x\x05y\r", []string{"xacbdy"}},
		{"abandoned", "abc\x03def\r", []string{"^C", "def"}},
		{"abandoned behind a line", "abc\rde\x03f\r", []string{"abc", "^C", "f"}},
		{"abandoned in the middle", "abc\x1b[D\x03\r", []string{"^C", ""}},
		{"pasted", "\x1b[200~a\tb\rc\r\x1b[201~d\r", []string{"a\tb", "c", "d"}},
		{"abandoned in a paste", "\x1b[200~a\x03b\r", []string{"^C", "b"}},
		{"left", "abc\r\x04def\r", []string{"abc"}},
		{"too long", strings.Repeat("x", maxTypedLine+10) + "\rnext\r", []string{"a line of 4096 characters or more, of which the rest is lost: break it, or give it to jay shell in a file", "next"}},
		{"as long as can be", strings.Repeat("x", maxTypedLine-1) + "\r", []string{strings.Repeat("x", maxTypedLine-1)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, _ := fakeConsole(row.keys, nil, 80, 24)
			if got := readAll(t, c); !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Ensure that the arrows and Ctrl-R find what was typed before.
func TestConsole_History(t *testing.T) {
	h := &history{}
	for _, text := range []string{"get users/ann", "from Users\nlimit 1;", "get orders/1", "get orders/1"} {
		if err := h.save(text); err != nil {
			t.Fatal(err)
		}
	}
	const up = "\x1b[A"
	for keys, want := range map[string]string{
		up + "\r":                   "get orders/1",
		up + up + "\r":              "from Users limit 1;",
		up + up + up + up + "\r":    "get users/ann",
		"users\x12\r":               "get users/ann",
		"get\x12\x12\r":             "get users/ann",
		"get\x12\x12\x12\x12\x12\r": "get users/ann",
		"nothing\x12\r":             "nothing",
		"ord\x12\x05x\r":            "get orders/1x",
	} {
		c, _ := fakeConsole(keys, h, 80, 24)
		if got := readAll(t, c); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", keys, got, want)
		}
	}
}

// Ensure that the file of the history is only for its user, keeps statements, and is cut.
func TestHistory_File(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "jay", "history")
	h, err := openHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"from Users\nlimit 1;", "from A // x\nlimit 1;", "from B where x = 'a\nb';", "  ", strings.Repeat("x", historyEntryBytes+1)} {
		if err := h.save(text); err != nil {
			t.Fatal(err)
		}
	}
	want := "from Users limit 1;\nfrom A // x\nlimit 1;\nfrom B where x = 'a\nb';\n"
	text, err := os.ReadFile(file)
	if err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
	checkMode := func() {
		t.Helper()
		for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
				t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, want)
			}
		}
	}
	checkMode()

	var long strings.Builder
	for i := range 2*historyEntries + 1 {
		long.WriteString(strings.Repeat("y", i%7) + "x\n")
	}
	if err := os.WriteFile(file, []byte(long.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if h, err = openHistory(file); err != nil || h.Len() != historyEntries {
		t.Errorf("got %d entries, %v, want %d", h.Len(), err, historyEntries)
	}
	text, err = os.ReadFile(file)
	if n := strings.Count(string(text), "\n"); err != nil || n != historyEntries {
		t.Errorf("the file has %d lines, %v, want %d", n, err, historyEntries)
	}
	checkMode()
}

// Ensure that a long result waits after each page, goes on and ends as the keys say, and
// that control characters do not reach the terminal.
func TestPager(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		text.WriteString(strings.Repeat("x", 5) + string(rune('a'+i)) + "\n")
	}
	for _, row := range []struct {
		name, keys, text string
		height           int
		lines, waits     int
		err              error
	}{
		{"short", "", "a\nb\n", 5, 2, 0, nil},
		{"stopped", "q", text.String(), 5, 4, 1, errStopped},
		{"Ctrl-C", "\x03", text.String(), 5, 4, 1, errStopped},
		{"the keys end", "", text.String(), 5, 4, 1, errStopped},
		{"page by page", "    ", text.String(), 5, 20, 4, nil},
		{"line by line", "\r\rq", text.String(), 5, 6, 3, errStopped},
		{"all", " a", text.String(), 5, 20, 2, nil},
		{"a long line", "q", strings.Repeat("ab", 100), 5, 0, 1, errStopped},
	} {
		t.Run(row.name, func(t *testing.T) {
			// Each key comes alone, as it is typed.
			c, _ := fakeConsole("", nil, 10, row.height)
			c.in = &typed{r: &oneByOne{keys: row.keys}}
			var screen bytes.Buffer
			p := newPager(t.Context(), &screen, c)
			_, err := io.WriteString(p, row.text)
			if !errors.Is(err, row.err) {
				t.Errorf("got %v, want %v", err, row.err)
			}
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(screen.String(), pagerPrompt); got != row.waits {
				t.Errorf("waited %d times, want %d", got, row.waits)
			}
			shown := strings.ReplaceAll(screen.String(), pagerPrompt+pagerErase, "")
			if got := strings.Count(shown, "\n"); got != row.lines {
				t.Errorf("%d lines, want %d: %q", got, row.lines, shown)
			}
		})
	}
	c, _ := fakeConsole("", nil, 80, 24)
	var screen bytes.Buffer
	p := newPager(t.Context(), &screen, c)
	for _, part := range []string{"a\x1b[2Jb\x07\u009bc", "\xc3", "\xa9\n"} { // the last character comes in two parts
		if _, err := io.WriteString(p, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(); err != nil || screen.String() != `a\u001b[2Jb\u0007\u009bc`+"é\n" {
		t.Errorf("got %q, %v", screen.String(), err)
	}
}

// oneByOne gives one byte at a time.
type oneByOne struct{ keys string }

// Read implements io.Reader.
func (o *oneByOne) Read(p []byte) (int, error) {
	if o.keys == "" {
		return 0, io.EOF
	}
	p[0] = o.keys[0]
	o.keys = o.keys[1:]
	return 1, nil
}

// completionShell is a shell over a few documents.
func completionShell(t *testing.T) *shell {
	t.Helper()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for id, text := range map[string]string{
		"users/ann": `{"Name":"Ann","Address":{"City":"Bonn","Zip":{"a":{"deeper":1}}},"@metadata":{"@collection":"Users"}}`,
		"users/bob": `{"Name":"Bob","Lines":[{"Product":1}],"odd name":1,"@metadata":{"@collection":"Users"}}`,
		"orders/1":  `{"Total":1,"@metadata":{"@collection":"Orders"}}`,
		"o'brien":   `{"@metadata":{"@collection":"My People"}}`,
		"a b":       `{"@metadata":{"@collection":"My People"}}`,
	} {
		if _, err := db.Put(t.Context(), id, json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.EnsureIndex(t.Context(), "Users", jay.Index{Fields: []string{"Nickname", "-Age"}}); err != nil {
		t.Fatal(err)
	}
	s := newShell(&app{stdout: nil, output: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}, db, false)
	s.params["least"] = 1
	s.params["low"] = 1
	return s
}

// Ensure that Tab completes commands, collections, fields, parameters and IDs where they
// stand, and shows what it cannot decide.
func TestShell_Complete(t *testing.T) {
	s := completionShell(t)
	for _, row := range []struct{ before, after, shown string }{
		{"ge", "get ", ""},
		{"p", "p", "pager param patch put"},
		{"get a; de", "get a; delete ", ""},
		{"// x\nde", "// x\ndelete ", ""},
		{"get u", "get users/", ""},
		{"get users/", "get users/", "users/ann users/bob"},
		{"get USERS/A", "get users/ann ", ""},
		{"get users/ann users/b", "get users/ann users/bob ", ""},
		{"get o", "get o", "o'brien orders/"},
		{"get a", "get 'a b' ", ""},
		{"get 'a", "get 'a b' ", ""},
		{`get "o'`, `get "o'brien" `, ""},
		{"put users/b", "put users/bob ", ""},
		{"put users/bob us", "put users/bob us", ""},
		{"indexes Us", "indexes Users ", ""},
		{"format ", "format ", "json pretty table"},
		{"help col", "help collections ", ""},
		{"from ", "from ", "'My People' Orders Users @all_docs"},
		{"from us", "from Users ", ""},
		{"from 'M", "from 'My People' ", ""},
		{"explain from O", "explain from Orders ", ""},
		{"explain f", "explain from ", ""},
		{"from Users wh", "from Users where ", ""},
		{"from Users where N", "from Users where N", "Name Nickname not null"},
		{"from Users where Nam", "from Users where Name", ""},
		{"from Users where Ag", "from Users where Age", ""},
		{"from Users where Address.", "from Users where Address.", "Address.City Address.Zip Address.Zip.a Address.Zip.a.deeper"},
		{"from Users as u where u.Nam", "from Users as u where u.Name", ""},
		{"from Users where Lines[].", "from Users where Lines[].Product", ""},
		{"from Users\nwhere Address.C", "from Users\nwhere Address.City", ""},
		{"from Users where Total > $le", "from Users where Total > $least ", ""},
		{"from Users where Total > $", "from Users where Total > $l", ""},
		{"from Users where id() = 'users/b", "from Users where id() = 'users/bob' ", ""},
		{"from Users where id() in ('users/ann', 'users/b", "from Users where id() in ('users/ann', 'users/bob' ", ""},
		{"from Users where id() in ('users/b", "from Users where id() in ('users/bob' ", ""},
		{"from Users where Name = 'N", "from Users where Name = 'N", ""},
		{"unknown x", "unknown x", ""},
	} {
		got := s.complete(t.Context(), row.before)
		after := row.before
		if got.insert != "" {
			after = row.before[:len(row.before)-got.replace] + got.insert
		}
		if shown := strings.Join(got.candidates, " "); after != row.after || shown != row.shown {
			t.Errorf("%q: got %q and %q, want %q and %q", row.before, after, shown, row.after, row.shown)
		}
	}
}

// Ensure that a completion is bounded: many IDs are cut at their separators, and a database
// that does not answer in time completes nothing.
func TestShell_CompleteBounds(t *testing.T) {
	s := completionShell(t)
	var b jay.Batch
	for i := range 3 * completionCandidates {
		b.Put("many/"+strings.Repeat("x", i%50)+"/"+string(rune('a'+i%26))+strings.Repeat("y", i), json.RawMessage(`{}`))
	}
	if _, err := s.db.Apply(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if got := s.complete(t.Context(), "get many"); got.insert != "many/" {
		t.Errorf("got %+v, want many/", got)
	}
	if got := s.idCandidates(t.Context(), "many/x"); len(got) > completionCandidates+1 {
		t.Errorf("%d candidates", len(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.complete(ctx, "get us"); got.insert != "" || len(got.candidates) > 0 {
		t.Errorf("without time: got %+v", got)
	}
}

// Ensure that what is typed while nothing waits for it any more comes with the next read.
func TestTyped_GivenUp(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	in := &typed{r: r}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b, err := in.next(ctx); !errors.Is(err, context.Canceled) || len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
	for _, text := range []string{"list", "\r"} {
		if _, err := io.WriteString(w, text); err != nil { // a reader is there, the one that was given up first
			t.Fatal(err)
		}
		var b [2]byte
		got := ""
		for len(got) < len(text) {
			n, err := in.Read(b[:])
			if err != nil {
				t.Fatal(err)
			}
			got += string(b[:n])
		}
		if got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		if _, err := in.next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("behind %q: %v", text, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.next(t.Context()); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}
