package query_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jaydb/jay/query"
)

var rewrite = flag.Bool("rewrite", false, "write what the dialogues in testdata/rql print into them")

// Ensure every dialogue in testdata/rql prints what it did: a query in the one
// way of writing, or its error with the caret.
func TestParse_Dialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/rql/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d dialogues and error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var now bytes.Buffer
			for _, d := range dialogues(string(was)) {
				got := d.run(t)
				if got != d.want && !*rewrite {
					t.Errorf("%s\ngot\n%s\nwant\n%s", d.query, got, d.want)
				}
				fmt.Fprintf(&now, "%s%s\n----\n%s\n\n", d.head, d.query, got)
			}
			if *rewrite {
				if err := os.WriteFile(file, append(bytes.TrimSpace(now.Bytes()), '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// dialogue is a query, with comments and parameters before it, and what it
// prints.
type dialogue struct {
	head   string
	params map[string]any
	query  string
	want   string
}

// dialogues cuts a file. Queries and what they print are parted by a line of
// hyphens, and end with an empty line.
func dialogues(text string) (list []dialogue) {
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var d dialogue
		for strings.HasPrefix(block, "#") || strings.HasPrefix(block, "params ") {
			line, rest, _ := strings.Cut(block, "\n")
			if rest == "" {
				break
			}
			d.head += line + "\n"
			if params, ok := strings.CutPrefix(line, "params "); ok {
				decoder := json.NewDecoder(strings.NewReader(params))
				decoder.UseNumber()
				if err := decoder.Decode(&d.params); err != nil {
					panic(fmt.Sprintf("%s: %v", line, err))
				}
			}
			block = rest
		}
		if query, want, found := strings.Cut(block, "\n----"); found {
			d.query, d.want = query, strings.TrimPrefix(want, "\n")
			list = append(list, d)
			continue
		}
		d.head += block + "\n\n"
		list = append(list, dialogue{head: d.head})
	}
	return joined(list)
}

// joined puts the comments of blocks without a query before the next query.
func joined(list []dialogue) (out []dialogue) {
	head := ""
	for _, d := range list {
		d.head = head + d.head
		head = ""
		if d.query == "" {
			head = d.head
			continue
		}
		out = append(out, d)
	}
	return out
}

// run returns what the query prints, after checks that are true of all.
func (d dialogue) run(t *testing.T) string {
	q, err := query.Parse(d.query, d.params)
	if err != nil {
		e := checkError(t, d.query, err)
		return "error: " + strings.TrimPrefix(e.Error(), "query: ") + "\n" + e.Caret()
	}
	again, err := query.Parse(q.String(), nil)
	if err != nil {
		t.Fatalf("%s\nprints %s\nwhich is refused: %v", d.query, q, err)
	}
	if !reflect.DeepEqual(q, again) {
		t.Fatalf("%s\nprints %s\nwhich means %s", d.query, q, again)
	}
	return q.String()
}

// checkError ensures that a refusal of text is a SyntaxError with a place in it.
func checkError(t *testing.T, text string, err error) *query.SyntaxError {
	t.Helper()
	var e *query.SyntaxError
	if !errors.As(err, &e) || !errors.Is(err, query.ErrSyntax) {
		t.Fatalf("%.200q: got error %T %v, want a SyntaxError", text, err, err)
	}
	if e.Offset < 0 || e.Offset > len(text) {
		t.Fatalf("%.200q: got offset %d, want one in the text", text, e.Offset)
	}
	lines := strings.Split(text[:e.Offset], "\n")
	if line := len(lines); e.Line != line {
		t.Fatalf("%.200q: got line %d, want %d", text, e.Line, line)
	}
	if column := utf8.RuneCountInString(lines[len(lines)-1]) + 1; e.Column != column {
		t.Fatalf("%.200q: got column %d, want %d", text, e.Column, column)
	}
	if strings.ContainsAny(e.Error(), "\n\r") || e.Message == "" {
		t.Fatalf("%.200q: got error %q, want one line", text, e)
	}
	caret := strings.Split(e.Caret(), "\n")
	if len(caret) != 2 || strings.Trim(caret[1], " \t") != "^" {
		t.Fatalf("%.200q: got caret %q, want a line and a caret", text, caret)
	}
	return e
}
