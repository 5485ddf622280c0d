package language_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/jaydb/jay/query"
)

// Ensure that no release writes other bytes: these are in users' databases.
// The rows stand in the order of all values.
func TestAppendKey_Golden(t *testing.T) {
	tests := []struct{ raw, key string }{
		{``, "04"},
		{`null`, "08"},
		{`false`, "0c"},
		{`true`, "10"},
		{`-1e400`, "20fe36fd"},
		{`-100000000000000000000`, "20fef4fd"},
		{`-9007199254740993`, "234af0d846926aec45"},
		{`-9007199254740992`, "234af0d846926aec47"},
		{`-100`, "29fd"},
		{`-1.5`, "2afc9b"},
		{`-1`, "2afd"},
		{`-0.5`, "2b9b"},
		{`-0.001`, "2c0101eb"},
		{`-0.00001`, "2c0102eb"},
		{`-1e-400`, "2c01c7fd"},
		{`0`, "2d"},
		{`1e-400`, "2efe3802"},
		{`1e-399`, "2efe3814"},
		{`0.00001`, "2efefd14"},
		{`0.001`, "2efefe14"},
		{`0.5`, "2f64"},
		{`1`, "3002"},
		{`1.5`, "300364"},
		{`2`, "3004"},
		{`9.9`, "3013b4"},
		{`10`, "3014"},
		{`12.5`, "301964"},
		{`99`, "30c6"},
		{`100`, "3102"},
		{`101`, "310302"},
		{`1000`, "3114"},
		{`10001`, "32030102"},
		{`1000000`, "3302"},
		{`1234567`, "33032f5b86"},
		{`9007199254740992`, "37b50f27b96d9513b8"},
		{`9007199254740993`, "37b50f27b96d9513ba"},
		{`9007199254740993.5`, "37b50f27b96d9513bb64"},
		{`9223372036854775807`, "39132d439107896d9b750e"},
		{`18446744073709551615`, "39255987590f4b136f211e"},
		{`1e21`, "3a010b14"},
		{`1e400`, "3a01c902"},
		{`1e401`, "3a01c914"},
		{`1e999`, "3a0201f414"},
		{`1e1000000000000000`, "3a0701c6bf5263400014"},
		{`""`, "400080"},
		{`"\u0000"`, "4001010080"},
		{`"\u0001"`, "4001020080"},
		{`" "`, "40200080"},
		{`"2026-01-31T10:00:00Z"`, "40323032362d30312d33317431303a30303a30307a000b0980"},
		{`"A"`, "4061000180"},
		{`"a"`, "40610080"},
		{`"A\u0000"`, "40610101000180"},
		{`"AA"`, "40616100010180"},
		{`"Aa"`, "406161000180"},
		{`"aA"`, "406161000280"},
		{`"aa"`, "4061610080"},
		{`"Ada L"`, "40616461206c00010480"},
		{`"K"`, "406b000180"},
		{`"k"`, "406b0080"},
		{`"` + "\u212a" + `"`, "406b00bfe284aa80"},
		{`"STRASSE"`, "4073747261737365000101010101010180"},
		{`"STRAẞE"`, "4073747261c39f650001010101bfe1ba9e0180"},
		{`"Straße"`, "4073747261c39f65000180"},
		{`"Äx"`, "40c3a4780001c38480"},
		{`"äx"`, "40c3a4780080"},
		{`[1]`, "485b315d00"},
		{`[[]]`, "485b5b5d5d00"},
		{`{"a":1}`, "507b2261223a317d00"},
	}
	var previous query.Value
	var previousKey []byte
	for i, test := range tests {
		v := query.ValueOf([]byte(test.raw))
		key, truncated := query.AppendKey(nil, v, false)
		if got := hex.EncodeToString(key); got != test.key || truncated {
			t.Errorf("%s: got %s, want %s", test.raw, got, test.key)
		}
		if i > 0 && (previous.Compare(v) != -1 || bytes.Compare(previousKey, key) != -1) {
			t.Errorf("%v is not less than %v", previous, v)
		}
		previous, previousKey = v, key
	}
}

// Ensure that what is cut keeps 512 bytes, or 256 digits, and its hash.
func TestAppendKey_GoldenCut(t *testing.T) {
	tests := []struct{ name, raw, head, tail string }{
		{"text", `"` + strings.Repeat("X", 513) + `"`, "40787878", "7878010335ade0090e64e74d19fe7c2a19fb3281"},
		{"text of NUL", `"` + strings.Repeat(`\u0000`, 513) + `"`, "40010101", "010101038ae7498b01f40e9d8ae7498b01f40e9d"},
		{"number", strings.Repeat("7", 257), "3a01810f", "9b9b9b9b9b9b9b9b9b9b9b9b139f721195f3c45c"},
		{"negative number", "-" + strings.Repeat("7", 257), "20fe7ef0", "646464646464646464646464ec608dee6a0c3ba3"},
		{"array", `["` + strings.Repeat("x", 509) + `"]`, "485b2278", "787878787878787878220103a673effbf791824f"},
	}
	for _, test := range tests {
		key, truncated := query.AppendKey(nil, query.ValueOf([]byte(test.raw)), false)
		got := hex.EncodeToString(key)
		if !truncated || !strings.HasPrefix(got, test.head) || !strings.HasSuffix(got, test.tail) || test.tail == "" {
			t.Errorf("%s: got %s … %s, truncated %v", test.name, got[:8], got[len(got)-40:], truncated)
		}
	}
}

// Ensure that texts that differ in the case of one character sort as they do
// by themselves, however far into the text that character is.
func TestAppendKey_Distances(t *testing.T) {
	const n = 200
	var texts []string
	for i := range n {
		texts = append(texts, strings.Repeat("k", i)+"K"+strings.Repeat("k", n-1-i))
	}
	texts = append(texts, strings.Repeat("k", n))
	for i := n - 1; i >= 0; i-- {
		texts = append(texts, strings.Repeat("k", i)+"\u212a"+strings.Repeat("k", n-1-i))
	}
	for i, text := range texts {
		v := query.TextValue(text)
		checkPart(t, v)
		if i > 0 {
			checkPair(t, query.TextValue(texts[i-1]), v, 0)
			if query.TextValue(texts[i-1]).Compare(v) != -1 {
				t.Fatalf("%d: the texts are out of order", i)
			}
		}
	}

	key, _ := query.AppendKey(nil, query.TextValue(texts[150]), false)
	if got, want := hex.EncodeToString(key[n+2:]), "7e0096"+"80"; got != want {
		t.Errorf("K at 150: got %s, want %s", got, want)
	}
	key, _ = query.AppendKey(nil, query.TextValue(texts[2*n-150]), false)
	if got, want := hex.EncodeToString(key[n+2:]), "82ff69"+"e284aa"+"80"; got != want {
		t.Errorf("Kelvin sign at 150: got %s, want %s", got, want)
	}
}

// checkPair fails unless the keys of two values are in the order of the
// values, and the other way round when descending, whatever follows them.
func checkPair(t rapid.TB, a, b query.Value, follow byte) {
	t.Helper()
	keyA, cutA := query.AppendKey(nil, a, false)
	keyB, cutB := query.AppendKey(nil, b, false)
	want, got := a.Compare(b), bytes.Compare(keyA, keyB)
	if want != -b.Compare(a) {
		t.Fatalf("%v and %v: Compare gives %d and %d", a, b, want, b.Compare(a))
	}
	if want == 0 && got != 0 || !(cutA && cutB) && want != got {
		t.Fatalf("%v and %v: keys %x and %x compare %d, want %d", a, b, keyA, keyB, got, want)
	}

	downA, _ := query.AppendKey([]byte{9}, a, true)
	downB, _ := query.AppendKey([]byte{9}, b, true)
	if bytes.Compare(downA, downB) != -got {
		t.Fatalf("%v and %v: descending keys %x and %x", a, b, downA, downB)
	}
	if got != 0 {
		longA, longB := append(bytes.Clone(keyA), ^follow), append(bytes.Clone(keyB), follow)
		if bytes.Compare(longA, longB) != got {
			t.Fatalf("%v and %v: keys %x and %x are not complete", a, b, keyA, keyB)
		}
	}
}

// checkPart fails unless the key of a value can be walked over and read.
func checkPart(t rapid.TB, v query.Value) {
	t.Helper()
	for _, descending := range []bool{false, true} {
		key, cut := query.AppendKey(nil, v, descending)
		if len(key) > query.MaxKey {
			t.Fatalf("%v: key of %d bytes", v, len(key))
		}
		for _, follow := range []string{"", "\x00", "\x80\xc3", "\xff"} {
			rest, ok := query.SkipKey(append(bytes.Clone(key), follow...))
			if !ok || string(rest) != follow {
				t.Fatalf("%v: SkipKey(%x %x) leaves %x, %v", v, key, follow, rest, ok)
			}
		}
		for i := range key {
			if _, ok := query.SkipKey(key[:i]); ok {
				t.Fatalf("%v: SkipKey(%x) goes over half a key", v, key[:i])
			}
		}

		back, exact := query.DecodeKey(key)
		if exact == cut || exact && !back.Equal(v) || back.Kind() != v.Kind() {
			t.Fatalf("%v: DecodeKey(%x) gives %v, %v", v, key, back, exact)
		}
		for _, follow := range []string{"", "\x00", "\x80\xc3", "\xff"} {
			text, rest, ok := query.AppendDecoded([]byte("x"), append(bytes.Clone(key), follow...))
			if want := back.AppendJSON([]byte("x")); !ok || string(rest) != follow || !back.IsMissing() && !bytes.Equal(text, want) || back.IsMissing() && len(text) != 1 {
				t.Fatalf("%v: AppendDecoded(%x %x) gives %s, %x, %v", v, key, follow, text, rest, ok)
			}
		}
		for i := range key {
			if text, _, ok := query.AppendDecoded(nil, key[:i]); ok || len(text) > 0 {
				t.Fatalf("%v: AppendDecoded(%x) reads half a key", v, key[:i])
			}
		}
		if cut && v.Kind() == query.KindText && (!utf8.ValidString(back.Text()) || !strings.HasPrefix(naiveFold(v.Text()), back.Text())) {
			t.Fatalf("%v: DecodeKey gives %v, which it does not begin with", v, back)
		}
		if query.Recoverable(v) != (exact && bytes.Equal(back.Raw(), v.Raw())) && !(len(v.Raw()) > 250 && !query.Recoverable(v)) {
			t.Fatalf("%v: Recoverable says %v, DecodeKey gives %v", v, query.Recoverable(v), back)
		}
	}
}

// Ensure that keys sort as values do, for values that are nearly the same.
func TestAppendKey_Order(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(genValue(), 2, 8).Draw(t, "values")
		follow := rapid.Byte().Draw(t, "follow")
		for i, a := range values {
			checkPart(t, a)
			for _, b := range values[i+1:] {
				checkPair(t, a, b, follow)
			}
		}
	})
}

// FuzzAppendKey looks for two values of JSON whose keys are out of order.
func FuzzAppendKey(f *testing.F) {
	f.Add([]byte("1"), []byte("1.0"))
	f.Add([]byte(`"K"`), []byte("\"\u212a\""))
	f.Add([]byte(`"a\u0000"`), []byte(`"A"`))
	f.Add([]byte("-1e-99999"), []byte("123456789012345678901"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if v, w, ok := validPair(a, b); ok {
			checkPart(t, v)
			checkPair(t, v, w, 0)
		}
	})
}

// FuzzDecodeKey looks for bytes that break the readers of keys.
func FuzzDecodeKey(f *testing.F) {
	for _, raw := range []string{"null", "-12.5", "1e999", `"Ada"`, "\"\u212a\"", "[1]", strings.Repeat("7", 300)} {
		key, _ := query.AppendKey(nil, query.ValueOf([]byte(raw)), false)
		f.Add(key)
		key, _ = query.AppendKey(nil, query.ValueOf([]byte(raw)), true)
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		query.DecodeKey(key)
		query.SkipKey(key)
	})
}

// Ensure that text is cut between characters when it is read back.
func TestDecodeKey_Cut(t *testing.T) {
	for i := range 4 {
		checkPart(t, query.TextValue(strings.Repeat("x", i)+strings.Repeat("😀", 200)))
		checkPart(t, query.TextValue(strings.Repeat("x", i)+strings.Repeat("Ä", 300)))
	}
}

// Ensure that SkipKey and DecodeKey walk over keys of several parts.
func TestSkipKey(t *testing.T) {
	raws := []string{`"Ada"`, "-12.5", "null", `["x"]`, "1e-9"}
	var key []byte
	for i, raw := range raws {
		key, _ = query.AppendKey(key, query.ValueOf([]byte(raw)), i%2 == 1)
	}
	for _, raw := range raws {
		v, exact := query.DecodeKey(key)
		if !exact || !v.Equal(query.ValueOf([]byte(raw))) {
			t.Errorf("got %v, want %s", v, raw)
		}
		key, _ = query.SkipKey(key)
	}
	if len(key) > 0 {
		t.Errorf("%x is left", key)
	}
}
