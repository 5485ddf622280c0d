package smuggler

// Inside the package: a splitter is not exported.

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// split cuts input apart, skipping broken values. Each value is its offset
// and text; each broken one has a "!" before it and what was skipped.
func split(t *testing.T, input string, maxBytes, maxDepth int) []string {
	t.Helper()
	var got []string
	// One byte at a time, so that every token meets the end of the buffer.
	s := newSplitter(iotest.OneByteReader(strings.NewReader(input)), limits{maxBytes: maxBytes, maxDepth: maxDepth})
	for {
		v, err := s.Next()
		if err == io.EOF {
			return got
		}
		if err == nil {
			got = append(got, strconv.FormatInt(v.Offset, 10)+" "+string(v.Text))
			continue
		}
		if !errors.Is(err, jay.ErrInvalidDocument) {
			t.Fatalf("next: %v", err)
		}
		var skipped bytes.Buffer
		if err := s.Skip(&skipped); err != nil {
			t.Fatalf("skip: %v", err)
		}
		got = append(got, strconv.FormatInt(v.Offset, 10)+" !"+strings.TrimSpace(skipped.String()))
	}
}

// Ensure that values are cut where they end, and that a broken one takes as
// little as possible with it.
func TestSplitter(t *testing.T) {
	tests := []struct {
		name, input string
		want        []string
	}{
		{"nothing", "", nil},
		{"white space", " \r\n\t", nil},
		{"lines", "{\"a\":1}\n{\"b\":2}\n", []string{`0 {"a":1}`, `8 {"b":2}`}},
		{"lines without the last break", "{}\r\n{}", []string{"0 {}", "4 {}"}},
		{"empty lines", "{}\n\n\n{}\n\n", []string{"0 {}", "5 {}"}},
		{"behind one another", `{}{"a":[{}]}[]`, []string{"0 {}", `2 {"a":[{}]}`, "12 []"}},
		{"over many lines", "{\n  \"a\": {\n  }\n}\n{\n}\n", []string{"0 {\n  \"a\": {\n  }\n}", "17 {\n}"}},
		{"brackets in strings", `{"}":"{\"]\\"}{}`, []string{`0 {"}":"{\"]\\"}`, "14 {}"}},
		{"scalars", "1 \"a b\"\nnull -1.5e3", []string{"0 1", `2 "a b"`, "8 null", "13 -1.5e3"}},
		{"byte order mark", "\xef\xbb\xbf{}", []string{"3 {}"}},
		{"part of a byte order mark", "\xef\xbb{}\n{}", []string{"0 !\xef\xbb{}", "5 {}"}},

		{"array", ` [ {"a":1} , {} ] `, []string{`3 {"a":1}`, "13 {}"}},
		{"empty array", "[]", nil},
		{"array over lines", "[\n{},\n{}\n]\n", []string{"2 {}", "6 {}"}},
		{"array, then more", "[{}]\n{}", []string{"1 {}", "5 !{}"}},
		{"array, then an end too many", "[{}]]", []string{"1 {}", "4 !]"}},
		{"array without an end", "[{}", []string{"1 {}", "3 !"}},
		{"array without its second element", "[{},]", []string{"1 {}", "4 !]"}},
		{"array without its first element", "[,{}]", []string{"1 !,{}]"}},
		{"array without a comma", "[{} {}]", []string{"1 {}", "4 !{}"}},
		{"broken element", `[{"a":1},{"b" 2},{"c":3}]`, []string{`1 {"a":1}`, `9 !{"b" 2}`, `17 {"c":3}`}},
		{"broken element on a line", "[\n{\"a\":1},\n{\"b\":{\n{\"c\":3}\n]", []string{`2 {"a":1}`, `11 !{"b":{`, `18 {"c":3}`}},
		{"broken element over lines", "[\n  {\n    \"a\" 1\n  },\n  {\n  }\n]", []string{"4 !{\n    \"a\" 1\n  },", "23 {\n  }"}},
		{"broken last element over lines", "[\n  {\n    \"a\" 1\n  }\n]", []string{"4 !{\n    \"a\" 1\n  }"}},

		{"broken line", "{\"a\":1}\nnonsense {\n{\"b\":2}", []string{`0 {"a":1}`, "8 !nonsense {", `19 {"b":2}`}},
		{"broken lines", "{a}\n{b}\n{}", []string{"0 !{a}", "4 !{b}", "8 {}"}},
		{"behind a value", "{} x\n{}", []string{"0 {}", "3 !x", "5 {}"}},
		{"string without an end", "{\"a\":\"b}\n{}", []string{`0 !{"a":"b}`, "9 {}"}},
		{"object without an end", "{\"a\":{\"b\":1}\n{}\n", []string{`0 !{"a":{"b":1}`, "13 {}"}},
		{"value that is missing", "{\"a\":\n{}\n{}\n", []string{`0 !{"a":`, "6 {}", "9 {}"}},
		{"ends that do not match", "{\"a\":[1}\n{}", []string{`0 !{"a":[1}`, "9 {}"}},
		{"end too many", "{}}\n{}", []string{"0 {}", "2 !}", "4 {}"}},
		{"over many lines, broken", "{\n  \"a\" 1,\n  \"b\": {\n    \"c\": 2\n  }\n}\n{}", []string{"0 !{\n  \"a\" 1,\n  \"b\": {\n    \"c\": 2\n  }\n}", "37 {}"}},
		{"cut off", `{"a":`, []string{`0 !{"a":`}},
		{"cut off in a string", `{"a\`, []string{`0 !{"a\`}},
		{"lone comma", ",\n{}", []string{"0 !,", "2 {}"}},

		{"too deep", "[[[[]]]]", []string{"1 [[[]]]"}},
		{"too deep by one", "{\"a\":[[{}]]}{\"b\":[]}", []string{`0 !{"a":[[{}]]}`, `12 {"b":[]}`}},
		{"too deep and broken", "{\"a\":[[{]]}\n{\"b\":[]}", []string{`0 !{"a":[[{]]}`, `12 {"b":[]}`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := split(t, test.input, 1000, 3)
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Ensure that a value far beyond the limit is refused and passed over with a
// buffer no larger than the limit asks for, and that the next one is found.
func TestSplitter_TooLarge(t *testing.T) {
	sample.OneGoroutine(t)
	const size, limit = 8 << 20, 1 << 20
	for _, test := range []struct{ name, head, fill, tail string }{
		{"string", `{"a":"`, `x`, "\"}\n"},
		{"escapes", `{"a":"`, `\"`, `"}`},
		{"array", `{"a":[1`, `,{}`, `]}`},
		{"brackets", `{"a":`, `[`, "\n"},
		{"unended", `{"a":"`, `x`, "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := test.head + strings.Repeat(test.fill, size/len(test.fill)) + test.tail
			s := newSplitter(strings.NewReader(`{"first":1}`+bad+`{"last":1}`), limits{maxBytes: limit, maxDepth: 10_000})
			if v, err := s.Next(); err != nil || string(v.Text) != `{"first":1}` {
				t.Fatalf("got %q, %v, want the first value", v.Text, err)
			}
			if _, err := s.Next(); !errors.Is(err, jay.ErrInvalidDocument) {
				t.Fatalf("got %v, want ErrInvalidDocument", err)
			}
			var skipped bytes.Buffer
			if err := s.Skip(&skipped); err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(skipped.String()) != strings.TrimSpace(bad) {
				t.Errorf("got %d bytes skipped, want %d", skipped.Len(), len(bad))
			}
			if v, err := s.Next(); err != nil || string(v.Text) != `{"last":1}` || v.Offset != int64(len(bad))+11 {
				t.Errorf("got %q at %d, %v, want the last value", v.Text, v.Offset, err)
			}
			if cap(s.buf) > limit+2*firstBuffer {
				t.Errorf("got a buffer of %d bytes, want at most %d", cap(s.buf), limit+2*firstBuffer)
			}
		})
	}
}

// Ensure that an error of the reader is not taken for one of the input.
func TestSplitter_ReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, head := range []string{"", "{}", `{"a":`, `{"a":"b`, "1", "["} {
		s := newSplitter(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), limits{maxBytes: 1000, maxDepth: 10})
		_, err := s.Next()
		if err == nil {
			_, err = s.Next()
		}
		if !errors.Is(err, broken) {
			t.Errorf("after %q: got %v, want %v", head, err, broken)
		}
	}
}

// Ensure that valid values behind one another are cut as encoding/json cuts
// them, and that whatever else is given, every byte is a value's, a broken
// one's, or white space.
func FuzzSplitter(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"a":[1,true,null,"x\"y"]}{"b":{}}`, "[1,2]\n[3]", "1 2 3", `"a""b"`, "{\n}\n{\"\\u00e9\":-1.5e+7}", "\xef\xbb\xbf{}", `{"a":1}}{`, "{\"a\":\"b\n{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		want, valid := decodeAll(input)
		s := newSplitter(iotest.HalfReader(bytes.NewReader(input)), limits{maxBytes: 1 << 20, maxDepth: 10_000})
		seen := 0
		for n := 0; ; n++ {
			v, err := s.Next()
			if err == io.EOF {
				break
			}
			var skipped bytes.Buffer
			if err != nil {
				if err := s.Skip(&skipped); err != nil {
					t.Fatalf("skip: %v", err)
				}
				v.Text = skipped.Bytes()
			}
			if int(v.Offset) < seen || !bytes.HasPrefix(input[v.Offset:], v.Text) {
				t.Fatalf("value %d %q at %d is not there, or was seen before", n, v.Text, v.Offset)
			}
			if gap := bytes.Trim(input[seen:v.Offset], " \t\r\n,[]\xef\xbb\xbf"); len(gap) > 0 {
				t.Fatalf("%q is lost before value %d", gap, n)
			}
			seen = int(v.Offset) + len(v.Text)
			if !valid {
				continue
			}
			if err != nil {
				t.Fatalf("value %d: got %v, want %q", n, err, want[n])
			}
			if n >= len(want) || !bytes.Equal(v.Text, want[n]) {
				t.Fatalf("value %d: got %q, want %q", n, v.Text, want)
			}
		}
		if rest := bytes.Trim(input[seen:], " \t\r\n,[]\xef\xbb\xbf"); len(rest) > 0 {
			t.Fatalf("%q is lost at the end", rest)
		}
	})
}

// decodeAll cuts input with encoding/json. Input of one array, and lone
// literals and numbers without white space between them, are not compared.
func decodeAll(input []byte) (values [][]byte, valid bool) {
	if bytes.HasPrefix(bytes.TrimSpace(input), []byte("[")) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(input))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if err == io.EOF {
			return values, true
		}
		if err != nil || bytes.IndexByte([]byte(`{["`), raw[0]) < 0 {
			return nil, false
		}
		values = append(values, raw)
	}
}

// Ensure that a line is read up to its bound and not beyond, also where the buffer is
