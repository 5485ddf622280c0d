package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Ensure that lines become statements where a user ends them, with the line that each
// begins on.
func TestStatements(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       []string // line, and text
	}{
		{"a query ends with a semicolon", "from A\nwhere x = 1;\nfrom B;", []string{"1 from A\nwhere x = 1", "3 from B"}},
		{"a query ends with an empty line", "from A\nlimit 1\n \t\nfrom B\n\n", []string{"1 from A\nlimit 1", "4 from B"}},
		{"a query ends with the input", "from A", []string{"1 from A"}},
		{"a semicolon in a text", "from A where x = 'a;b' and y = \"c;\";", []string{"1 from A where x = 'a;b' and y = \"c;\""}},
		{"a doubled quote", "from A where x = 'it''s;' ;", []string{"1 from A where x = 'it''s;'"}},
		{"an escaped quote", `from A where x = 'it\'s;' ;`, []string{`1 from A where x = 'it\'s;'`}},
		{"an empty line in a text", "from A where x = 'a\n\nb';", []string{"1 from A where x = 'a\n\nb'"}},
		{"a semicolon in a comment", "from A // no; end\nlimit 1;", []string{"1 from A // no; end\nlimit 1"}},
		{"a comment over lines", "from A /* no;\n\nend */ limit 1;", []string{"1 from A /* no;\n\nend */ limit 1"}},
		{"braces of an update", "from A update {\n  this.x = 1;\n\n  delete this.y;\n};", []string{"1 from A update {\n  this.x = 1;\n\n  delete this.y;\n}"}},
		{"a command ends with its line", "get a\nget b", []string{"1 get a", "2 get b"}},
		{"several on a line", "get a; get b;from C;", []string{"1 get a", "1 get b", "1 from C"}},
		{"an apostrophe in an ID", "get o'brien\nget b", []string{"1 get o'brien", "2 get b"}},
		{"a semicolon in a quoted ID", "get 'a;b' c", []string{"1 get 'a;b' c"}},
		{"a quote without an end", "get 'a\nget b", []string{"1 get 'a", "2 get b"}},
		{"a document over lines", "put a {\n\"x\": \"}\",\n\"y\": [\n1]}\nget a", []string{"1 put a {\n\"x\": \"}\",\n\"y\": [\n1]}", "5 get a"}},
		{"an apostrophe in a document", `put a {"x":"it's"}` + "\nget a", []string{`1 put a {"x":"it's"}`, "2 get a"}},
		{"an escape in a document", `put a {"x":"\"}"}` + "\nget a", []string{`1 put a {"x":"\"}"}`, "2 get a"}},
		{"a backslash in an ID", `put 'a\' {}` + "\nget a", []string{`1 put 'a\' {}`, "2 get a"}},
		{"comments between", "// a;\n/* b;\n*/ get a\n//c", []string{"3 get a"}},
		{"an interpreter", "#!/usr/bin/jay shell\nget a", []string{"2 get a"}},
		{"nothing", "\n;;\n \t;\n", nil},
		{"an unknown command", "gett a\nget b", []string{"1 gett a", "2 get b"}},
		{"upper case", "FROM A\nlimit 1;GET a", []string{"1 FROM A\nlimit 1", "2 GET a"}},
		{"a carriage return", "from A\r\n\r\nget b\r", []string{"1 from A", "3 get b"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &statements{limit: 1000}
			var got []string
			note := func(all ...statement) {
				for _, one := range all {
					got = append(got, fmt.Sprintf("%d %s", one.line, one.text))
				}
			}
			for line := range strings.SplitSeq(row.text, "\n") {
				all, err := s.add(line)
				if err != nil {
					t.Fatal(err)
				}
				note(all...)
			}
			if last, found := s.end(); found {
				note(last)
			}
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Ensure that a statement without an end is refused at the limit, and that the next one
// runs.
func TestStatements_Limit(t *testing.T) {
	s := &statements{limit: 100}
	for i := range 20 {
		_, err := s.add("from Users where x = 1 ")
		if i == 4 {
			if err == nil || !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "more than 100 bytes") {
				t.Fatalf("got %v, want the limit", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if all, err := s.add("get a"); err != nil || len(all) != 1 || all[0].line != 6 {
		t.Errorf("got %v, %v, want the statement of line 6", all, err)
	}
}

// Ensure that arguments are split at blanks, but for those in quotes.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                  nil,
		" a  b\tc ":         {"a", "b", "c"},
		`'a b' "c'd" e'f`:   {"a b", "c'd", "e'f"},
		`'it''s' '' "a""b"`: {"it's", "", `a"b`},
	} {
		got, err := words(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := words("a 'b"); err == nil || !strings.Contains(err.Error(), "no end") {
		t.Errorf("an open quote: got %v", err)
	}
}
