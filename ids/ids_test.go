package ids_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jaydb/jay/ids"
)

// Ensure that the last character alone decides, and that nothing is trimmed.
func TestClassify(t *testing.T) {
	tests := []struct {
		request, separator string
		want               ids.Strategy
	}{
		{"users/ann", "/", ids.Semantic},
		{"users|x", "/", ids.Semantic},
		{"users/x|y/z", "/", ids.Semantic},
		{"users| ", "/", ids.Semantic},
		{" users/1", "/", ids.Semantic},
		{"/x", "/", ids.Semantic},
		{"", "/", ids.GUID},
		{"   ", "/", ids.GUID},
		{"\t", "/", ids.GUID},
		{"users/", "/", ids.ServerSide},
		{"users//", "/", ids.ServerSide},
		{"/", "/", ids.ServerSide},
		{"users-", "-", ids.ServerSide},
		{"users/", "-", ids.Semantic},
		{"usersö", "ö", ids.ServerSide},
		{"users|", "/", ids.Identity},
		{"users/|", "/", ids.Identity},
		{"|", "/", ids.Identity},
		{"users||", "/", ids.Identity},
	}
	for _, test := range tests {
		if got := ids.Classify(test.request, test.separator); got != test.want {
			t.Errorf("Classify(%q, %q): got %v, want %v", test.request, test.separator, got, test.want)
		}
	}
}

// Ensure that folding is lower-casing character by character, within the
// Basic Multilingual Plane, without normalisation.
func TestFold(t *testing.T) {
	tests := []struct{ a, b, name string }{
		{"Users/ANN", "users/ann", "ASCII"},
		{"users/Ä", "USERS/ä", "Latin-1"},
		{"x/ẞ", "x/ß", "capital sharp s"},
		{"\u212A/1", "k/1", "Kelvin sign"},
		{"x/\u0130", "x/i", "capital i with dot"},
		{"Ω", "ω", "Greek"},
		{"\u2126", "ω", "Ohm sign"},
		{"Ⴀ", "ⴀ", "Georgian"},
		{"Ⅷ", "ⅷ", "Roman numeral"},
	}
	for _, test := range tests {
		if !ids.EqualFold(test.a, test.b) {
			t.Errorf("%s: %q and %q fold to %q and %q", test.name, test.a, test.b, ids.Fold(test.a), ids.Fold(test.b))
		}
	}

	different := []struct{ a, b, name string }{
		{"x/ß", "x/SS", "no full case folding"},
		{"x/\U00010400", "x/\U00010428", "nothing outside the BMP"},
		{"x/é", "x/e\u0301", "no normalisation"},
		{"ς", "σ", "final sigma"},
		{"x/ı", "x/i", "dotless i"},
		{"@", "`", "no arithmetic on what is not a letter"},
		{"[", "{", "no arithmetic on what is not a letter"},
	}
	for _, test := range different {
		if ids.EqualFold(test.a, test.b) {
			t.Errorf("%s: %q and %q fold alike", test.name, test.a, test.b)
		}
	}
}

// Ensure that folding an ID twice changes nothing, for every character, and
// that the pinned table says what Unicode 15 said: it must not follow newer
// tables.
func TestFold_EveryCharacter(t *testing.T) {
	mapped := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		once := ids.Fold(string(r))
		if twice := ids.Fold(once); twice != once {
			t.Errorf("%U folds to %q and then to %q", r, once, twice)
		}
		if got, want := ids.FoldGrowth(string(r)), len(once)-utf8.RuneLen(r); got != want {
			t.Errorf("FoldGrowth(%U): got %d, want %d", r, got, want)
		}
		if once != string(r) {
			mapped++
		}
	}
	if mapped != 1173 {
		t.Errorf("the table maps %d characters, want the 1173 of format 1", mapped)
	}
}

// Ensure that every broken rule is one *Error that names rule, limit, size
// and ID.
func TestRules_Check(t *testing.T) {
	rules := ids.DefaultRules()
	small := rules
	small.MaxBytes = 512
	sensitive := small
	sensitive.CaseSensitive = true
	grows := strings.Repeat("Ⱥ", 200) // 2 bytes each, folded 3

	tests := []struct {
		name          string
		rules         ids.Rules
		id            string
		limit, actual int // of the error; 0, 0 for a valid ID
	}{
		{"2025 bytes", rules, strings.Repeat("x", 2025), 0, 0},
		{"2026 bytes", rules, strings.Repeat("x", 2026), 2025, 2026},
		{"512 bytes", small, strings.Repeat("x", 512), 0, 0},
		{"513 bytes", small, strings.Repeat("x", 513), 512, 513},
		{"256 two-byte characters", small, strings.Repeat("é", 256), 0, 0},
		{"257 two-byte characters", small, strings.Repeat("é", 257), 512, 514},
		{"folded form is longer", small, grows, 512, 600},
		{"folded form does not matter", sensitive, grows, 0, 0},
		{"backslash", rules, `a\b`, 0, 1},
		{"control character", rules, "a\x01b", 0, 1},
		{"tab", rules, "ab\tc", 0, 2},
		{"delete character", rules, "abc\x7f", 0, 3},
		{"invalid UTF-8", rules, "ab\xffc", 0, 2},
		{"replacement character is a character", rules, "ab\uFFFDc", 0, 0},
		{"NUL", rules, "ab\x00", 0, 2},
		{"pipe inside", rules, "a|b", 0, 0},
		{"leading space", rules, " a", 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.rules.Check(test.id)
			valid := test.limit == 0 && test.actual == 0
			if valid != (err == nil) {
				t.Fatalf("got %v, want valid %v", err, valid)
			}
			if valid {
				return
			}
			var e *ids.Error
			if !errors.As(err, &e) || !errors.Is(err, ids.ErrInvalid) {
				t.Fatalf("got %T %v, want *Error", err, err)
			}
			if e.Limit != test.limit || e.Actual != test.actual || e.ID != test.id || e.Rule == "" {
				t.Errorf("got limit %d, actual %d, rule %q", e.Limit, e.Actual, e.Rule)
			}
			if len(e.Error()) > 500 {
				t.Errorf("the message has %d bytes", len(e.Error()))
			}
		})
	}
}

// Ensure that separators and node tags are what the rules say.
func TestRules_Validate(t *testing.T) {
	for _, separator := range []string{"/", "-", ".", ":", "ö", "→"} {
		if err := ids.CheckSeparator(separator); err != nil {
			t.Errorf("separator %q: %v", separator, err)
		}
	}
	for _, separator := range []string{"", "|", `\`, "//", " ", "\n", "\x7f", "\xff"} {
		if err := ids.CheckSeparator(separator); err == nil {
			t.Errorf("separator %q is accepted", separator)
		}
	}
	for _, tag := range []string{"A", "Z", "AB", "ABCD"} {
		if err := ids.CheckNodeTag(tag); err != nil {
			t.Errorf("node tag %q: %v", tag, err)
		}
	}
	for _, tag := range []string{"", "a", "ABCDE", "A1", "A-", "RAFT", "Ä"} {
		if err := ids.CheckNodeTag(tag); err == nil {
			t.Errorf("node tag %q is accepted", tag)
		}
	}
}

// Ensure that old requests mean what they meant in 3.x.
func TestResolver_Request_Old(t *testing.T) {
	r := ids.NewResolver(ids.DefaultRules(), false, true, nil)
	for request, want := range map[string]struct {
		request  string
		strategy ids.Strategy
	}{
		"users/":      {"users|", ids.Identity},
		"  users/1  ": {"users/1", ids.Semantic},
		"users|":      {"users|", ids.Semantic},
		"  ":          {"", ids.GUID},
		"":            {"", ids.GUID},
		" users// ":   {"users/|", ids.Identity},
	} {
		if got, strategy := r.Request(request); got != want.request || strategy != want.strategy {
			t.Errorf("%q: got %q, %v; want %q, %v", request, got, strategy, want.request, want.strategy)
		}
	}
}

// counters is an ids.Counters in memory.
type counters struct {
	sequence   uint64
	identities map[string]int64
	documents  map[string]bool
	looks      int
}

func (c *counters) Sequence() (uint64, error) { c.sequence++; return c.sequence, nil }
func (c *counters) Identity(name string) (int64, error) {
	return c.identities[name], nil
}
func (c *counters) SetIdentity(name string, n int64) error {
	if c.identities == nil {
		c.identities = make(map[string]int64)
	}
	c.identities[name] = n
	return nil
}
func (c *counters) Exists(id string) (bool, error) {
	c.looks++
	return c.documents[ids.Fold(id)], nil
}

func resolver(separator, tag string, maxBytes int) *ids.Resolver {
	return ids.NewResolver(ids.Rules{Separator: separator, NodeTag: tag, MaxBytes: maxBytes}, false, false, nil)
}

// Ensure that server-side IDs have 19 digits, keep the request, and pass over
// an ID written by hand with the next etag.
func TestResolver_ServerSide(t *testing.T) {
	tests := []struct {
		request, separator, tag string
		sequence                uint64
		taken                   string
		want                    string
	}{
		{"users/", "/", "A", 0, "", "users/0000000000000000001-A"},
		{"users/", "/", "A", 9223372036854775806, "", "users/9223372036854775807-A"},
		{"a/b/", "/", "AB", 6, "", "a/b/0000000000000000007-AB"},
		{"/", "/", "A", 0, "", "/0000000000000000001-A"},
		{"users//", "/", "A", 0, "", "users//0000000000000000001-A"},
		{"users-", "-", "A", 0, "", "users-0000000000000000001-A"},
		{"Users/", "/", "A", 0, "users/0000000000000000001-a", "Users/0000000000000000002-A"},
	}
	for _, test := range tests {
		c := &counters{sequence: test.sequence, documents: map[string]bool{test.taken: true}}
		id, etag, err := resolver(test.separator, test.tag, 2025).Make(ids.ServerSide, c, test.request)
		if err != nil || id != test.want || etag != c.sequence {
			t.Errorf("%q: got %q, etag %d, %v; want %q", test.request, id, etag, err, test.want)
		}
	}
}

// Ensure that the limit applies to the final ID, and that a request that can
// never fit is refused before a number is drawn.
func TestResolver_Check_FinalLength(t *testing.T) {
	r := resolver("/", "A", 512)
	tests := []struct {
		request string
		valid   bool
	}{
		{strings.Repeat("x", 490) + "/", true},  // 491 + 19 + 2 = 512
		{strings.Repeat("x", 491) + "/", false}, // 513
		{strings.Repeat("x", 510) + "|", true},  // 510 + separator + 1 digit = 512
		{strings.Repeat("x", 511) + "|", false},
		{strings.Repeat("x", 512), true},
		{strings.Repeat("x", 513), false},
		{`a\/`, false},
		{"a\x01|", false},
		{"\xff/", false},
	}
	for _, test := range tests {
		if err := r.Check(r.Request(test.request)); (err == nil) != test.valid {
			t.Errorf("%.20q… of %d bytes: got %v, want valid %v", test.request, len(test.request), err, test.valid)
		}
	}

	// The tenth identity needs a digit more than the first.
	c := &counters{identities: map[string]int64{strings.Repeat("x", 510) + "|": 9}}
	if _, _, err := r.Make(ids.Identity, c, strings.Repeat("x", 510)+"|"); !errors.Is(err, ids.ErrInvalid) {
		t.Errorf("identity of 513 bytes: got %v, want ErrInvalid", err)
	}
	if c.identities[strings.Repeat("x", 510)+"|"] != 9 {
		t.Error("a refused identity used a number up")
	}
}

// Ensure that identities replace the pipe by the separator, count by the
// folded request, and never land on a document.
func TestResolver_Identity(t *testing.T) {
	c := &counters{}
	r := resolver("/", "A", 2025)
	for _, step := range []struct{ request, want string }{
		{"users|", "users/1"}, {"USERS|", "USERS/2"}, {"orders|", "orders/1"}, {"users|", "users/3"},
		{"|", "/1"}, {"users/|", "users//1"}, {"users||", "users|/1"}, {"users|", "users/4"},
	} {
		if id, _, err := r.Make(ids.Identity, c, step.request); err != nil || id != step.want {
			t.Errorf("%q: got %q, %v; want %q", step.request, id, err, step.want)
		}
	}
	if id, _, err := resolver("-", "A", 2025).Make(ids.Identity, &counters{}, "users|"); err != nil || id != "users-1" {
		t.Errorf("separator -: got %q, %v", id, err)
	}
	full := &counters{identities: map[string]int64{"users|": math.MaxInt64}}
	if _, _, err := r.Make(ids.Identity, full, "users|"); !errors.Is(err, ids.ErrExhausted) {
		t.Errorf("at the last number: got %v, want ErrExhausted", err)
	}
}

// Ensure that a free number is found in few looks, at a busy-to-free edge.
func TestNextFree(t *testing.T) {
	tests := []struct {
		name  string
		last  int64
		busy  func(int64) bool
		want  int64
		looks int // at most
	}{
		{"nothing there", 0, func(int64) bool { return false }, 1, 1},
		{"1 taken", 0, func(n int64) bool { return n == 1 }, 2, 2},
		{"1..1337", 0, func(n int64) bool { return n <= 1337 }, 1338, 30},
		{"holes are left", 0, func(n int64) bool { return n == 1 || n == 2 || n == 4 || n == 8 || n == 9 }, 10, 12},
		{"a million", 0, func(n int64) bool { return n <= 1_000_000 }, 1_000_001, 45},
		{"from a counter", 100, func(n int64) bool { return n <= 150 }, 151, 12},
		{"almost full", 0, func(n int64) bool { return n < math.MaxInt64 }, math.MaxInt64, 130},
	}
	for _, test := range tests {
		looks := 0
		got, err := ids.NextFree(test.last, func(n int64) (bool, error) { looks++; return test.busy(n), nil })
		if err != nil || got != test.want || looks > test.looks {
			t.Errorf("%s: got %d in %d looks, %v; want %d in at most %d", test.name, got, looks, err, test.want, test.looks)
		}
	}
	if _, err := ids.NextFree(0, func(int64) (bool, error) { return true, nil }); !errors.Is(err, ids.ErrExhausted) {
		t.Errorf("all taken: got %v, want ErrExhausted", err)
	}
	cause := errors.New("disk")
	if _, err := ids.NextFree(0, func(int64) (bool, error) { return false, cause }); !errors.Is(err, cause) {
		t.Errorf("a failing look: got %v", err)
	}
}

// Ensure that GUIDs are 36 lower-case characters of the asked version.
func TestResolver_GUID(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		id, _, err := ids.NewResolver(ids.DefaultRules(), ordered, false, nil).Make(ids.GUID, nil, "")
		version := map[bool]byte{false: '4', true: '7'}[ordered]
		if err != nil || len(id) != 36 || id[14] != version || id != strings.ToLower(id) || strings.Count(id, "-") != 4 {
			t.Errorf("ordered %v: got %q, %v", ordered, id, err)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add("users/1")
	f.Add("users/Ä\x00")
	f.Add("\u212A|")
	f.Add("Ⱥ/")
	f.Fuzz(func(t *testing.T, id string) {
		rules := ids.DefaultRules()
		rules.MaxBytes = 64
		err := rules.Check(id)
		folded := ids.Fold(id)
		if utf8.ValidString(id) && (ids.Fold(folded) != folded || len(folded) != len(id)+ids.FoldGrowth(id)) {
			t.Errorf("folding %q is not stable", id)
		}
		if err != nil {
			if !errors.Is(err, ids.ErrInvalid) {
				t.Errorf("%q: %v is not ErrInvalid", id, err)
			}
			return
		}
		if len(id) == 0 || len(id) > 64 || len(folded) > 64 || !utf8.ValidString(id) || strings.ContainsAny(id, "\\\x00\x1f\x7f") {
			t.Errorf("%q is accepted", id)
		}
		if rules.Check(folded) != nil {
			t.Errorf("%q is valid, its folded form %q is not", id, folded)
		}
	})
}
