package jsonpath_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Ensure that paths are read as steps, and print in one form that parses back.
func TestParse(t *testing.T) {
	member := func(name string) jsonpath.Step { return jsonpath.Step{Kind: jsonpath.Member, Name: name} }
	index := func(i int) jsonpath.Step { return jsonpath.Step{Kind: jsonpath.Index, Index: i} }
	every := jsonpath.Step{Kind: jsonpath.Every}
	tests := []struct {
		name, text, canonical string
		steps                 []jsonpath.Step
	}{
		{"member", "a", "a", []jsonpath.Step{member("a")}},
		{"members", "a.b.c", "a.b.c", []jsonpath.Step{member("a"), member("b"), member("c")}},
		{"index", "items[0].qty", "items[0].qty", []jsonpath.Step{member("items"), index(0), member("qty")}},
		{"every", "items[].productId", "items[].productId", []jsonpath.Step{member("items"), every, member("productId")}},
		{"brackets in a row", "a[][12]", "a[][12]", []jsonpath.Step{member("a"), every, index(12)}},
		{"quoted dot", "a.'x.y'", "a.'x.y'", []jsonpath.Step{member("a"), member("x.y")}},
		{"quoted first", "'weird key'.b", "'weird key'.b", []jsonpath.Step{member("weird key"), member("b")}},
		{"quotes not needed", "'a'.'b'", "a.b", []jsonpath.Step{member("a"), member("b")}},
		{"escapes", `'it\'s\\'[1]`, `'it\'s\\'[1]`, []jsonpath.Step{member(`it's\`), index(1)}},
		{"double quote", `'"'`, `'"'`, []jsonpath.Step{member(`"`)}},
		{"brackets in a name", `'a[0]'`, `'a[0]'`, []jsonpath.Step{member(`a[0]`)}},
		{"empty name", `a.''`, `a.''`, []jsonpath.Step{member("a"), member("")}},
		{"no letters", "@metadata.$x-1/2", "@metadata.$x-1/2", []jsonpath.Step{member("@metadata"), member("$x-1/2")}},
		{"beyond ASCII", "größe.日本", "größe.日本", []jsonpath.Step{member("größe"), member("日本")}},
		{"space beyond ASCII", "'a\u00a0b'", "'a\u00a0b'", []jsonpath.Step{member("a\u00a0b")}},
		{"digits are a name", "a.0", "a.0", []jsonpath.Step{member("a"), member("0")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := jsonpath.Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if p.String() != test.canonical || p.Len() != len(test.steps) || p.Root() != test.steps[0].Name {
				t.Errorf("got %q with %d steps, root %q; want %q with %d", p, p.Len(), p.Root(), test.canonical, len(test.steps))
			}
			for i, want := range test.steps {
				if got := p.At(i); got != want {
					t.Errorf("step %d: got %v, want %v", i, got, want)
				}
			}
			if again, err := jsonpath.Parse(p.String()); err != nil || again.String() != p.String() {
				t.Errorf("canonical form parses as %q, %v", again, err)
			}
		})
	}
}

// Ensure that a text that is no path is an *Error that says where.
func TestParse_Refused(t *testing.T) {
	tests := []struct {
		name, text string
		offset     int
		expected   string
	}{
		{"empty", "", 0, "a member name"},
		{"dot first", ".a", 0, "a member name"},
		{"dot last", "a.", 2, "a member name"},
		{"two dots", "a..b", 2, "a member name"},
		{"bracket first", "[0].a", 0, "a member name"},
		{"bracket behind a dot", "a.[0]", 2, "a member name"},
		{"space", "a b", 1, "a dot"},
		{"space at the end", "a ", 1, "a dot"},
		{"quote in a name", "a'b'", 1, "a dot"},
		{"double quotes", `"a"`, 0, "a member name"},
		{"open quote", "'a", 2, "a closing quote"},
		{"open escape", `'a\`, 3, `\'`},
		{"unknown escape", `'a\n'`, 3, `\'`},
		{"name behind a quote", "'a'b", 3, "a dot"},
		{"name behind a bracket", "a[0]b", 4, "a dot"},
		{"open bracket", "a[0", 3, "a closing bracket"},
		{"negative index", "a[-1]", 2, "a closing bracket"},
		{"star", "a[*]", 2, "a closing bracket"},
		{"leading zero", "a[01]", 2, "an index"},
		{"huge index", "a[1000000000]", 2, "an index"},
		{"bad UTF-8", "a\xff", 0, "valid UTF-8"},
		{"too many steps", "a" + strings.Repeat("[]", 64), 127, "an end after 64 steps"},
		{"too long", strings.Repeat("a", 1025), 1024, "an end within 1024 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := jsonpath.Parse(test.text)
			var e *jsonpath.Error
			if !errors.As(err, &e) || !errors.Is(err, jsonpath.ErrInvalid) {
				t.Fatalf("got %q, %v; want an *Error", p, err)
			}
			if e.Offset != test.offset || !strings.Contains(e.Expected, test.expected) || e.Path != test.text || !p.IsZero() {
				t.Errorf("got %v, want %s at %d", err, test.expected, test.offset)
			}
		})
	}
	if _, err := jsonpath.Parse("a" + strings.Repeat("[]", 63)); err != nil {
		t.Errorf("64 steps: %v", err)
	}
}

// FuzzParse ensures that whatever parses prints as a path that is the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a.b[0][]", `'it\'s'.x`, "", "a..b", "a[99999999999]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := jsonpath.Parse(text)
		if err != nil {
			if !errors.Is(err, jsonpath.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := jsonpath.Parse(p.String())
		if err != nil || again.String() != p.String() || again.Len() != p.Len() || len(p.String()) > len(text) {
			t.Fatalf("%q prints as %q, which parses as %q, %v", text, p, again, err)
		}
		for i := range p.Len() {
			if p.At(i) != again.At(i) {
				t.Fatalf("%q: step %d is %v, then %v", text, i, p.At(i), again.At(i))
			}
		}
	})
}

// Ensure that a prefix is the path of the first steps, and shares nothing that
// could be changed through it.
func TestPath_Prefix(t *testing.T) {
	p := jsonpath.MustParse("a[].'b c'[3]")
	for n, want := range []string{"", "a", "a[]", "a[].'b c'", "a[].'b c'[3]"} {
		got := p.Prefix(n)
		if got.String() != want || got.Len() != n || got.IsZero() != (n == 0) || got.FansOut() != (n > 1) {
			t.Errorf("%d steps: got %q, want %q", n, got, want)
		}
	}
}
