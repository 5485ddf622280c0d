package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// Ensure that a table of many rows is one table although it is printed in
// pieces, that columns grow with what they hold, and that it is the first
// piece that decides which there are.
func TestAnswerTable_Pieces(t *testing.T) {
	var out strings.Builder
	table := &answerTable{print: func(text string) error { out.WriteString(text); return nil }}
	const rows = 2*tableBatch + 1
	for i := range rows {
		json := fmt.Sprintf(`{"n":%d}`, i)
		if i == tableBatch {
			json = `{"late":1,"n":123456789}`
		}
		if err := table.add(&jay.Row{JSON: []byte(json)}); err != nil {
			t.Fatal(err)
		}
		if len(table.pending) >= tableBatch {
			t.Fatalf("row %d: %d rows are kept", i, len(table.pending))
		}
	}
	if err := table.end(); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != rows+4 || strings.Count(got, "┌") != 1 || strings.Count(got, "└") != 1 {
		t.Errorf("got %d lines, want %d and one frame:\n%s", len(lines), rows+4, got)
	}
	if lines[3] != "│  0 │" || lines[3+tableBatch] != "│ 123456789 │" {
		t.Errorf("got rows %q and %q", lines[3], lines[3+tableBatch])
	}
	if table.counted() != "201 rows" || table.notShown() != "late" {
		t.Errorf("got %q, %q", table.counted(), table.notShown())
	}
}

// Ensure that a table is no wider than the terminal, and names what it leaves
// out.
func TestAnswerTable_Terminal(t *testing.T) {
	for width := range 120 {
		var out strings.Builder
		table := &answerTable{print: func(text string) error { out.WriteString(text); return nil }, width: width}
		row := &jay.Row{JSON: []byte(`{"a":"` + strings.Repeat("a", 50) + `","b":"` + strings.Repeat("日", 20) + `","c":[1,2,3],"d":true}`)}
		if err := table.add(row); err != nil {
			t.Fatal(err)
		}
		if err := table.end(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(out.String(), "\n") {
			if got := displayWidth(line); width > 20 && got > width {
				t.Fatalf("width %d: got %d\n%s", width, got, out.String())
			}
		}
		shown := strings.Count(strings.SplitN(out.String(), "\n", 2)[0], "┬") + 1
		if shown+len(table.hidden) != 4 {
			t.Errorf("width %d: %d columns and %q", width, shown, table.notShown())
		}
	}
}

// Ensure that no text of a document breaks a line or reaches the terminal as
// a command, and that cut values fit.
func TestFit(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"ten signs.", "ten signs."},
		{"eleven sign", "eleven si…"},
		{"日本語日本", "日本語日本"},
		{"日本語日本語", "日本語日…"},
		{"a\nb\tc", `a\nb\tc`},
		{"\x1b[31m", `\u001b[31m`},
		{"123456\x1b", "123456…"},
		{"\u202eabc", `\u202eabc`},
		{"\xff", "\ufffd"},
		{"e\u0301", "e\u0301"},
	}
	for _, test := range tests {
		if got := fit(test.in, 10); got != test.want {
			t.Errorf("fit(%q): got %q, want %q", test.in, got, test.want)
		}
	}
}

// Ensure that a wrong query exits with 1 and shows the place.
func TestRun_QuerySyntax(t *testing.T) {
	dir := t.TempDir()
	runJay(t.Context(), strings.NewReader("{}"), "--db", dir, "put", "--id", "a")
	got := runJay(t.Context(), nil, "--db", dir, "query", "from Users\nwhere Name = = 5")
	lines := strings.Split(got.stderr, "\n")
	if got.code != 1 || got.stdout != "" || len(lines) != 4 || !strings.HasPrefix(lines[0], "jay: query: line 2, column 14: ") || lines[1] != "where Name = = 5" || lines[2] != "             ^" {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a query that was interrupted says so.
func TestRun_InterruptedQuery(t *testing.T) {
	dir := t.TempDir()
	runJay(t.Context(), strings.NewReader("{}"), "--db", dir, "put", "--id", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"query", "from '@all_docs'"}, {"index", "create", "Users", "Name"}, {"index", "list"}} {
		got := runJay(ctx, nil, append([]string{"--db", dir}, args...)...)
		if got.code != exitInterrupted || got.stdout != "" || !strings.HasPrefix(got.stderr, "jay: ") || !strings.HasSuffix(got.stderr, "interrupted\n") {
			t.Errorf("%v: got %+v", args, got)
		}
	}
}

// Ensure that an index whose build was cut short can be dropped.
func TestRun_DropUnfinishedIndex(t *testing.T) {
	dir := t.TempDir()
	var docs strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&docs, "{\"n\":%d}\n", i)
	}
	file := filepath.Join(t.TempDir(), "docs.ndjson")
	if err := os.WriteFile(file, []byte(docs.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := runJay(t.Context(), nil, "--db", dir, "import", "--collection", "A", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = db.EnsureIndex(ctx, "A", jay.Index{Fields: []string{"n"}}, jay.IndexProgress(func(int64) { cancel() }))
	cancel()
	if err := andThen(db.Close(), nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("the build: %v", err)
	if got := runJay(t.Context(), nil, "--db", dir, "index", "drop", "A", "n"); got.code != 0 {
		t.Errorf("got %+v", got)
	}
	if got := runJay(t.Context(), nil, "--db", dir, "index", "list"); got.stdout != "no indexes\n" {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a list of fields is taken apart at its commas alone.
func TestSplitFields(t *testing.T) {
	tests := []struct {
		list string
		want []string
	}{
		{"", []string{""}},
		{"a", []string{"a"}},
		{" -a, b.c ", []string{"-a", "b.c"}},
		{"'a,b',c", []string{"'a,b'", "c"}},
		{`'it\'s,',c`, []string{`'it\'s,'`, "c"}},
		{"a,,b", []string{"a", "", "b"}},
		{"'open,", []string{"'open,"}},
	}
	for _, test := range tests {
		if got := splitFields(test.list); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.list, got, test.want)
		}
	}
}

// Ensure that only what can be a descending field is kept from being a flag.
func TestDescendingFields(t *testing.T) {
	tests := []struct{ args, want string }{
		{"index create A -b", "index|create|A| -b"},
		{"--db -x index create A -b --unique", "--db|-x|index|create|A| -b|--unique"},
		{"index create A -- -b", "index|create|A|--| -b"},
		{"index create -h", "index|create|-h"},
		{"index drop A -b,-c", "index|drop|A| -b,-c"},
		{"index list", "index|list"},
		{"query -f x", "query|-f|x"},
		{"get index -x", "get|index|-x"},
		{"index", "index"},
		{"index create - -", "index|create|-|-"},
	}
	for _, test := range tests {
		if got := strings.Join(descendingFields(strings.Fields(test.args)), "|"); got != test.want {
			t.Errorf("%q: got %q, want %q", test.args, got, test.want)
		}
	}
}

// Ensure that a parameter is JSON with all its digits, or else text.
func TestParamValue(t *testing.T) {
	for text, want := range map[string]string{
		"5":                "json.Number 5",
		"9007199254740993": "json.Number 9007199254740993",
		"05":               "string 05",
		"true":             "bool true",
		"null":             "<nil> <nil>",
		`"5"`:              "string 5",
		"ann":              "string ann",
		"":                 "string ",
		"1 2":              "string 1 2",
		`["a",1]`:          "[]interface {} [a 1]",
	} {
		if got := fmt.Sprintf("%T %v", paramValue(text), paramValue(text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// Ensure that only a query that took long has the note about --explain.
func TestSlowNote(t *testing.T) {
	for took, noted := range map[time.Duration]bool{0: false, 499 * time.Millisecond: false, 500 * time.Millisecond: true, time.Hour: true} {
		if note := slowNote(took); strings.Contains(note, "--explain") != noted || (note == "") == noted {
			t.Errorf("after %v: %q", took, note)
		}
	}
}
