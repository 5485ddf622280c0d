package jsonpath_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/metadata"
)

// Ensure that strict and loose lookups, and the Extractor, find what they say.
func TestEach(t *testing.T) {
	const lines = `{"L":[{"p":1,"q":[10,11]},{"x":0},{"p":2,"q":[12]}],"n":null}`
	tests := []struct{ name, body, path, strict, loose string }{
		{"member", lines, "n", "null", "null"},
		{"missing", lines, "m", "", ""},
		{"whole array", `{"a":[1,[2]]}`, "a", "[1,[2]]", "[1,[2]]"},
		{"member of every", lines, "L[].p", "1 2", "1 2"},
		{"member of an array", lines, "L.p", "", "1 2"},
		{"arrays at the end", lines, "L.q", "", "[10,11] [12]"},
		{"every of every", lines, "L[].q[]", "10 11 12", "10 11 12"},
		{"every after a member of an array", lines, "L.q[]", "", "10 11 12"},
		{"index after a member of an array", lines, "L.q[1]", "", "11"},
		{"index", lines, "L[2].q[0]", "12", "12"},
		{"index beyond the end", lines, "L[3]", "", ""},
		{"arrays in arrays", `{"a":[[{"b":1}],[[{"b":2}]],{"b":3},4]}`, "a.b", "", "1 2 3"},
		{"every goes one array deep", `{"a":[[1,2],[3],4]}`, "a[][]", "1 2 3", "1 2 3"},
		{"index in arrays in arrays", `{"a":[[1,2],[3]]}`, "a[0][1]", "2", "2"},
		{"member of a scalar", `{"a":1}`, "a.b", "", ""},
		{"index of an object", `{"a":{"0":1}}`, "a[0]", "", ""},
		{"every of an object", `{"a":{"b":1}}`, "a[]", "", ""},
		{"escaped key", `{"\u0061":{"\"":1}}`, `a.'"'`, "1", "1"},
		{"key with an escape first", `{"\"":1,"a":2}`, "a", "2", "2"},
		{"key and value alike", `{"b":"a","a":"b"}`, "a", `"b"`, `"b"`},
		{"brackets in strings", `{"x":"}]{[\\","y":{"z":"\"}"},"a":2}`, "a", "2", "2"},
		{"backslash before a quote", `{"x":"\\","a":1}`, "a", "1", "1"},
		{"empty things", `{"x":{},"y":[],"z":"","a":{}}`, "a", "{}", "{}"},
		{"empty name", `{"a":{"":7}}`, "a.''", "7", "7"},
		{"same name deeper", `{"x":{"a":1},"a":2}`, "a", "2", "2"},
		{"long key", `{"` + strings.Repeat("k", 70) + `":1,"a":2}`, strings.Repeat("k", 70), "1", "1"},
		{"long escaped key", `{"` + strings.Repeat("k", 70) + `\u00e9":1,"a":2}`, strings.Repeat("k", 70) + "é", "1", "1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body, p := []byte(test.body), jsonpath.MustParse(test.path)
			var strict, loose, extracted []string
			jsonpath.Each(body, p, func(raw []byte) bool { strict = append(strict, string(raw)); return true })
			jsonpath.EachLoose(body, p, func(raw []byte) bool { loose = append(loose, string(raw)); return true })
			jsonpath.NewExtractor([]jsonpath.Path{p}).Extract(body, func(_ int, raw []byte, _ bool) { extracted = append(extracted, string(raw)) })
			if got := strings.Join(strict, " "); got != test.strict {
				t.Errorf("strict: got %s, want %s", got, test.strict)
			}
			if got := strings.Join(loose, " "); got != test.loose {
				t.Errorf("loose: got %s, want %s", got, test.loose)
			}
			if got := strings.Join(extracted, " "); got != test.loose {
				t.Errorf("extracted: got %s, want %s", got, test.loose)
			}
			raw, found := jsonpath.Get(body, p)
			if first, _, _ := strings.Cut(test.strict, " "); string(raw) != first || found != (first != "") {
				t.Errorf("Get: got %s, %v; want %s", raw, found, first)
			}
		})
	}
}

// Ensure that a false from the caller ends the walk.
func TestEach_Stops(t *testing.T) {
	calls := 0
	jsonpath.EachLoose([]byte(`{"a":[{"b":[1,2]},{"b":[3]}]}`), jsonpath.MustParse("a.b[]"), func([]byte) bool { calls++; return calls < 2 })
	if calls != 2 {
		t.Errorf("got %d calls, want 2", calls)
	}
}

// Ensure that paths that begin alike, or are alike, are all reported.
func TestExtractor_SharedBeginnings(t *testing.T) {
	body := []byte(`{"a":[{"b":1},{"b":2,"c":[{"b":3}]}],"d":{"e":4,"f":5},"g":[[{"h":1}],2],"k":[{"b":1,"c":2,"x":3}]}`)
	texts := []string{"a", "a.b", "a[].b", "a[1].b", "a.c.b", "d.e", "d.e", "d", "x", "a[]", "g.h", "g[]", "g[0]", "k.b", "k.c", "k[].x"}
	want := []string{`[{"b":1},{"b":2,"c":[{"b":3}]}]`, "1 2", "1 2", "2", "3", "4", "4", `{"e":4,"f":5}`, "", `{"b":1} {"b":2,"c":[{"b":3}]}`, "1", `[{"h":1}] 2`, `[{"h":1}]`, "1", "2", "3"}
	var paths []jsonpath.Path
	for _, text := range texts {
		paths = append(paths, jsonpath.MustParse(text))
	}
	got := make([][]string, len(paths))
	jsonpath.NewExtractor(paths).Extract(body, func(path int, raw []byte, _ bool) { got[path] = append(got[path], string(raw)) })
	for i := range texts {
		if g := strings.Join(got[i], " "); g != want[i] {
			t.Errorf("%s: got %s, want %s", texts[i], g, want[i])
		}
	}
}

// Ensure that strings come out as encoding/json reads them, and go back in.
func TestAppendUnquoted(t *testing.T) {
	for _, raw := range []string{`""`, `"a"`, `"\u0061\n\t\b\f\r\/\\\""`, `"\ud83d\ude00!"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\n"`, `"\ud83d\u0061"`, `"日本\u65e5"`, `"\u0000\u001f\u007f"`, `"\uFFFF\uAbCd"`} {
		var want string
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		if got := jsonpath.Unquoted([]byte(raw)); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
		quoted := jsonpath.AppendQuoted(nil, want)
		var again string
		if err := json.Unmarshal(quoted, &again); err != nil || again != want {
			t.Errorf("%q quoted is %s, which reads as %q, %v", want, quoted, again, err)
		}
		if !jsonpath.KeyIs([]byte(raw), want) || jsonpath.KeyIs([]byte(raw), want+"x") {
			t.Errorf("KeyIs(%s) does not distinguish %q from another", raw, want)
		}
	}
}

// Ensure that the first byte determines the kind.
func TestKindOf(t *testing.T) {
	for raw, want := range map[string]jsonpath.Kind{
		"": jsonpath.Invalid, "x": jsonpath.Invalid, "null": jsonpath.Null, "true": jsonpath.Bool, "false": jsonpath.Bool,
		"-1": jsonpath.Number, "0.5": jsonpath.Number, `"a"`: jsonpath.String, "[]": jsonpath.Array, "{}": jsonpath.Object,
	} {
		if got := jsonpath.KindOf([]byte(raw)); got != want {
			t.Errorf("%q: got %v, want %v", raw, got, want)
		}
	}
}

// naive looks a path up the slow way: level by level, on decoded JSON that
// keeps the bytes of values.
func naive(raw []byte, p jsonpath.Path, step int, loose bool) []string {
	if step == p.Len() {
		return []string{string(raw)}
	}
	var out []string
	var array []json.RawMessage
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &array); err != nil {
			panic(err)
		}
	}
	switch s := p.At(step); s.Kind {
	case jsonpath.Every:
		for _, e := range array {
			out = append(out, naive(e, p, step+1, loose)...)
		}
	case jsonpath.Index:
		if s.Index < len(array) {
			return naive(array[s.Index], p, step+1, loose)
		}
	case jsonpath.Member:
		if raw[0] == '{' {
			var object map[string]json.RawMessage
			if err := json.Unmarshal(raw, &object); err != nil {
				panic(err)
			}
			if value, found := object[s.Name]; found {
				return naive(value, p, step+1, loose)
			}
		}
		if loose {
			for _, e := range array {
				out = append(out, naive(e, p, step, loose)...)
			}
		}
	}
	return out
}

// FuzzExtract ensures that all lookups agree with a naive one on encoding/json,
// and that nothing panics on bodies that are no JSON.
func FuzzExtract(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1},{"b":[2,{"c":3}]}],"c":{"a":"\"}"}}`), "a.b", "a[].b[1].c", "c")
	f.Add([]byte(`{"\u0061":{"b":[[1],[2,3]]}}`), "a.b[]", "a.b[1][0]", "a")
	f.Add([]byte(`{"a":"`), "a", "b", "c")
	f.Add([]byte(`{"a":{"b":[`), "a.b[]", "a.b", "a.b.c")
	f.Fuzz(func(t *testing.T, body []byte, t0, t1, t2 string) {
		var paths []jsonpath.Path
		for _, text := range []string{t0, t1, t2} {
			if p, err := jsonpath.Parse(text); err == nil {
				paths = append(paths, p)
			}
		}
		scanned, err := metadata.Scan(body, metadata.Limits{MaxBytes: 1 << 16, MaxDepth: 100})
		valid := err == nil
		if valid {
			body = scanned.Body
		}
		body = slices.Clip(bytes.Clone(body))

		got := make([][]string, len(paths))
		array := make([]bool, len(paths))
		jsonpath.NewExtractor(paths).Extract(body, func(path int, raw []byte, through bool) {
			got[path], array[path] = append(got[path], string(raw)), through
		})
		for i, p := range paths {
			var strict, loose []string
			jsonpath.Each(body, p, func(raw []byte) bool { strict = append(strict, string(raw)); return true })
			jsonpath.EachLoose(body, p, func(raw []byte) bool { loose = append(loose, string(raw)); return true })
			raw, found := jsonpath.Get(body, p)
			if !valid {
				continue
			}
			if want := naive(body, p, 0, false); !slices.Equal(strict, want) || found != (len(want) > 0) || found && string(raw) != want[0] {
				t.Errorf("%s of %s: got %v, Get %s; want %v", p, body, strict, raw, want)
			}
			if want := naive(body, p, 0, true); !slices.Equal(loose, want) || !slices.Equal(got[i], want) {
				t.Errorf("%s of %s: got %v, extracted %v; want %v", p, body, loose, got[i], want)
			}
			if want := len(got[i]) > 0 && (p.FansOut() || !found); array[i] != want {
				t.Errorf("%s of %s: through an array %v, want %v", p, body, array[i], want)
			}
		}
	})
}

func ExampleExtractor() {
	paths := []jsonpath.Path{jsonpath.MustParse("Customer"), jsonpath.MustParse("Lines.Product")}
	x := jsonpath.NewExtractor(paths)
	x.Extract([]byte(`{"Customer":"customers/1","Lines":[{"Product":"products/7"},{"Product":"products/9"}]}`), func(path int, raw []byte, _ bool) {
		fmt.Println(paths[path], jsonpath.Unquoted(raw))
	})
	// Output:
	// Customer customers/1
	// Lines.Product products/7
	// Lines.Product products/9
}
