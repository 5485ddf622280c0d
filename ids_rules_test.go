package jay_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// The tables of this file are rules about IDs, A1 to A20 and the facts behind
// them (B), where other tests have no row for them. Numbers in names are rows
// of Part C.

// Ensure that a request means the same through Put, Insert and a Batch, on a
// database that has documents and counters.
func TestRules_Requests(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	tests := []struct {
		name    string
		opts    jay.Options
		given   []string // documents
		request string
		want    string
	}{
		{"A1: a separator in front is a character", jay.Options{}, nil, "/users", "/users"},
		{"A1: the last character alone decides", jay.Options{}, nil, "users|/", "users|/0000000000000000001-A"},
		{"26, 27: nothing is trimmed", jay.Options{}, []string{"users/1"}, " users/1 ", " users/1 "},
		{"18: a semantic ID", jay.Options{}, []string{"users/1"}, "users/2", "users/2"},
		{"58: two pipes", jay.Options{}, []string{"users/1"}, "users||", "users|/1"},
		{"A1: separator in the middle of a pipe's prefix", jay.Options{}, nil, "a/b|", "a/b/1"},
		{"B 1.3: the casing of the request stays", jay.Options{}, nil, "USERS/", "USERS/0000000000000000001-A"},
		{"A1: a separator of several bytes", jay.Options{Separator: "→"}, nil, "users→", "users→0000000000000000001-A"},
		{"A1: an identity with it", jay.Options{Separator: "→"}, nil, "users|", "users→1"},
		{"3: another tag", jay.Options{NodeTag: "WXYZ"}, nil, "users/", "users/0000000000000000001-WXYZ"},
		{"A6: taken in another casing", jay.Options{}, []string{"USERS/0000000000000000002-a"}, "users/", "users/0000000000000000003-A"},
		{"A6: another node's number is not this one's", jay.Options{}, []string{"users/0000000000000000002-B"}, "users/", "users/0000000000000000002-A"},
		{"A6: two in a row are taken", jay.Options{}, []string{"users/0000000000000000003-A", "users/0000000000000000004-A"}, "users/", "users/0000000000000000005-A"},
		{"61, 62: an identity that is taken", jay.Options{}, []string{"users/1"}, "users|", "users/2"},
		{"A7: taken in another casing", jay.Options{}, []string{"Users/1"}, "users|", "users/2"},
		{"A7: leading zeros are another ID", jay.Options{}, []string{"users/01"}, "users|", "users/1"},
		{"A7: a tagged number is another ID", jay.Options{}, []string{"users/1-A"}, "users|", "users/1"},
		{"A7: a hole above the first free number", jay.Options{}, []string{"users/2", "users/3"}, "users|", "users/1"},
		{"A7, A3: case-sensitive", jay.Options{CaseSensitive: true}, []string{"Users/1"}, "users|", "users/1"},
	}
	ways := map[string]func(db *jay.DB, request string) (jay.Metadata, error){
		"Put": func(db *jay.DB, request string) (jay.Metadata, error) { return db.Put(ctx, request, []byte(`{}`)) },
		"Put, if new": func(db *jay.DB, request string) (jay.Metadata, error) {
			return db.Put(ctx, request, []byte(`{}`), jay.IfMatch(""))
		},
		"Insert":    func(db *jay.DB, request string) (jay.Metadata, error) { return db.Insert(ctx, request, []byte(`{}`)) },
		"Batch.Put": func(db *jay.DB, request string) (jay.Metadata, error) { return applyOne(db, request) },
		"Put into another collection": func(db *jay.DB, request string) (jay.Metadata, error) {
			return db.Put(ctx, request, []byte(`{}`), jay.InCollection("Others"))
		},
	}
	for _, test := range tests {
		for way, write := range ways {
			db := memory(t, &test.opts)
			for _, id := range test.given {
				put(t, db, id, `{"by":"hand"}`)
			}
			m, err := write(db, test.request)
			if err != nil || m.ID != test.want {
				t.Errorf("%s, by %s: got %q, %v; want %q", test.name, way, m.ID, err, test.want)
			}
			for _, id := range test.given {
				if got := body(t, db, id); got != `{"by":"hand"}` {
					t.Errorf("%s, by %s: %q became %s", test.name, way, id, got)
				}
			}
		}
	}
}

func applyOne(db *jay.DB, request string) (jay.Metadata, error) {
	var b jay.Batch
	b.Put(request, []byte(`{}`))
	metas, err := db.Apply(ctx, &b)
	if err != nil {
		return jay.Metadata{}, err
	}
	return metas[0], nil
}

// Ensure that limits hold on the final ID, original and folded, to the byte;
// that a refusal names rule, limit, size and ID; and that it leaves no trace
// (A2; rows 37 to 46).
func TestRules_Limits(t *testing.T) {
	const limit = 512
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name    string
		request string
		rule    string // what the refusal names; "" for none
		size    int    // what it says
	}{
		{"37: 512 bytes", x(512), "", 0},
		{"38: 513 bytes", x(513), "at most 512 bytes", 513},
		{"39: 256 characters of two bytes", strings.Repeat("é", 256), "", 0},
		{"40: 257 of them", strings.Repeat("é", 257), "at most 512 bytes", 514},
		{"41: server-side, exactly", x(490) + "/", "", 0},
		{"42: server-side, one too many", x(491) + "/", "at most 512 bytes", 513},
		{"43: identity, exactly", x(510) + "|", "", 0},
		{"identity, one too many", x(511) + "|", "at most 512 bytes", 513},
		{"the folded form is longer", strings.Repeat("Ⱥ", 180), "at most 512 bytes", 540},
		{"the folded form of a prefix is longer", strings.Repeat("Ⱥ", 164) + "/", "at most 512 bytes", 514},
		{"the folded form is shorter, and does not help", strings.Repeat("\u212A", 171), "at most 512 bytes", 513},
		{"44, 45: backslash", `a\b`, `character \`, 1},
		{"backslash before the separator", `a\/`, `character \`, 1},
		{"46: control character", "a\x01b", "U+0001", 1},
		{"46: tab", "a\tb", "U+0009", 1},
		{"line feed before the pipe", "users\n|", "U+000A", 5},
		{"delete", "a\x7f", "U+007F", 1},
		{"C1 control characters are allowed", "a\u0085b", "", 0},
		{"invalid UTF-8", "ab\xff/", "UTF-8", 2},
		{"an encoded surrogate", "a\xed\xa0\x80", "UTF-8", 1},
		{"an overlong slash", "a\xc0\xaf", "UTF-8", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, &jay.Options{MaxIDBytes: limit})
			if test.rule == "" {
				put(t, db, test.request, `{}`)
				return
			}
			before := dump(t, db)
			for _, write := range []func() error{
				func() error { _, err := db.Put(ctx, test.request, []byte(`{}`)); return err },
				func() error { _, err := db.Insert(ctx, test.request, []byte(`{}`)); return err },
				func() error { _, err := applyOne(db, test.request); return err },
			} {
				err := write()
				var e *jay.IDError
				if !errors.As(err, &e) {
					t.Fatalf("got %v, want *IDError", err)
				}
				if !strings.Contains(e.Rule, test.rule) || e.Actual != test.size || e.ID == "" || e.Limit != 0 && e.Limit != limit {
					t.Errorf("got rule %q, limit %d, actual %d, id %.20q", e.Rule, e.Limit, e.Actual, e.ID)
				}
				equal(t, dump(t, db), before)
			}
		})
	}
	if got := put(t, memory(t, &jay.Options{MaxIDBytes: limit}), x(490)+"/", `{}`).ID; len(got) != limit {
		t.Errorf("41: the final id has %d bytes", len(got))
	}
	if got := put(t, memory(t, nil), x(2025), `{}`).ID; len(got) != 2025 {
		t.Errorf("the seed's limit: got %d bytes", len(got))
	}
}

// Ensure that reads, deletes and inserts find a document by the folded ID, and
// only by that (B 1.6; rows 29 to 36).
func TestRules_Lookup(t *testing.T) {
	tests := []struct {
		name, written, looked string
		found                 bool
	}{
		{"29: ASCII", "users/1", "USERS/1", true},
		{"27: a leading space counts", " users/1", "users/1", false},
		{"28: a trailing space counts", "users/1 ", "users/1", false},
		{"30: Latin-1", "users/Ä", "USERS/ä", true},
		{"31: capital sharp s", "x/\u1E9E", "x/ß", true},
		{"32: no full case folding", "x/ß", "x/SS", false},
		{"33: final sigma", "x/ς", "x/σ", false},
		{"34: outside the BMP", "x/\U00010400", "x/\U00010428", false},
		{"35: no normalisation", "x/é", "x/e\u0301", false},
		{"36: Kelvin sign", "k/1", "\u212A/1", true},
		{"capital i with dot", "x/\u0130", "x/i", true},
		{"dotless i", "x/\u0131", "x/i", false},
		{"a slip of RavenDB's: @ is not a letter", "x/@", "x/`", false},
		{"zeros count", "users/1", "users/01", false},
		{"48: a request is looked up as it is", "users/1", "users/", false},
		{"48: an identity's, too", "users/1", "users|", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			put(t, db, test.written, `{"n":1}`)
			equal(t, body(t, db, test.looked) == `{"n":1}`, test.found)
			there, err := db.Exists(ctx, test.looked)
			equal(t, fmt.Sprint(there, err), fmt.Sprint(test.found, error(nil)))
			before := dump(t, db)
			if err := db.Delete(ctx, test.looked); err != nil {
				t.Fatal(err)
			}
			equal(t, body(t, db, test.written) == "absent", test.found)
			if !test.found {
				equal(t, dump(t, db), before) // 144: nothing is written for what is not there
			}
		})
	}
}

// Ensure that seeds are last used numbers, that only force goes back, and
// that it never overwrites (A7; rows 61, 64 to 69).
func TestRules_Seeds(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	type seed struct {
		value int64
		force bool
		want  int64 // what stands afterwards
	}
	tests := []struct {
		name  string
		given []int // documents users/N
		seeds []seed
		want  string // the IDs of the next three documents
	}{
		{"65: no seed", nil, nil, "users/1 users/2 users/3"},
		{"66: the seed is the last used number", nil, []seed{{1990, false, 1990}}, "users/1991 users/1992 users/1993"},
		{"67: a lower one changes nothing", nil, []seed{{1991, false, 1991}, {1975, false, 1991}}, "users/1992 users/1993 users/1994"},
		{"68: but by force", nil, []seed{{1991, false, 1991}, {1975, true, 1975}}, "users/1976 users/1977 users/1978"},
		{"force upward", nil, []seed{{3, true, 3}}, "users/4 users/5 users/6"},
		{"force to nothing", nil, []seed{{7, false, 7}, {0, true, 0}}, "users/1 users/2 users/3"},
		{"seed below documents", []int{6, 7}, []seed{{5, false, 5}}, "users/8 users/9 users/10"},
		{"force below documents", []int{1, 2, 3}, []seed{{9, false, 9}, {0, true, 0}}, "users/4 users/5 users/6"},
		{"force into documents", []int{2}, []seed{{9, false, 9}, {0, true, 0}}, "users/1 users/3 users/4"},
	}
	for _, test := range tests {
		for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
			opts := jay.Options{Durability: durability, FS: storagetest.NewDisk()}
			db := open(t, "db", &opts)
			for _, n := range test.given {
				put(t, db, fmt.Sprintf("users/%d", n), `{"by":"hand"}`)
			}
			for _, s := range test.seeds {
				last, err := db.SeedIdentity(ctx, "USERS", s.value, s.force)
				if err != nil || last != s.want {
					t.Errorf("%s: seed %d: got %d, %v; want %d", test.name, s.value, last, err, s.want)
				}
			}
			closeDB(t, db)
			db = open(t, "db", &opts)
			ids := []string{put(t, db, "users|", `{}`).ID, put(t, db, "users|", `{}`).ID, put(t, db, "users|", `{}`).ID}
			if got := strings.Join(ids, " "); got != test.want {
				t.Errorf("%s, durability %d: got %s, want %s", test.name, durability, got, test.want)
			}
			for _, n := range test.given {
				equal(t, body(t, db, fmt.Sprintf("users/%d", n)), `{"by":"hand"}`)
			}
			closeDB(t, db)
		}
	}
}

// Ensure that a grant's numbers, size and document are those of the rules,
// whatever the document and the client say (A9, A11; rows 72 to 90, 106).
func TestRules_NextRange(t *testing.T) {
	day := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	grow := strings.Repeat("n", 2) // ranges 1..32 and 33..64 first
	tests := []struct {
		name     string
		before   string // n: a fresh client's range; d: delete the document; else: a document
		document string
		req      jay.RangeRequest
		age      time.Duration // of LastRangeAt; 0 for none
		want     string        // prefix, numbers, size
		after    string        // the document
	}{
		{"72: the first", "", "", jay.RangeRequest{Tag: "users"}, 0, "users/1..32 of 32", `{"Max":32}`},
		{"73: 5 s", "n", "", jay.RangeRequest{Tag: "users", LastSize: 32, LastMax: 32}, 5 * time.Second, "users/33..96 of 64", `{"Max":96}`},
		{"74: 45 s", "", `{"Max":96}`, jay.RangeRequest{Tag: "users", LastSize: 64}, 45 * time.Second, "users/97..160 of 64", `{"Max":160}`},
		{"75: 61 s", "", `{"Max":160}`, jay.RangeRequest{Tag: "users", LastSize: 64}, 61 * time.Second, "users/161..192 of 32", `{"Max":192}`},
		{"76: never below 32", "", `{"Max":192}`, jay.RangeRequest{Tag: "users", LastSize: 32}, 61 * time.Second, "users/193..224 of 32", `{"Max":224}`},
		{"77: 30 s", "", "", jay.RangeRequest{Tag: "users", LastSize: 32}, 30 * time.Second, "users/1..32 of 32", `{"Max":32}`},
		{"77: 60 s", "", "", jay.RangeRequest{Tag: "users", LastSize: 50}, 60 * time.Second, "users/1..50 of 50", `{"Max":50}`},
		{"78: doubling stops at the cap", "", "", jay.RangeRequest{Tag: "users", LastSize: 600_000}, time.Second, "users/1..1048576 of 1048576", `{"Max":1048576}`},
		{"79: the cap holds at 45 s", "", "", jay.RangeRequest{Tag: "users", LastSize: 2_097_152}, 45 * time.Second, "users/1..1048576 of 1048576", `{"Max":1048576}`},
		{"80: and without a time", "", "", jay.RangeRequest{Tag: "users", LastSize: 5_000_000}, 0, "users/1..1048576 of 1048576", `{"Max":1048576}`},
		{"and when halved", "", "", jay.RangeRequest{Tag: "users", LastSize: math.MaxInt64}, time.Hour, "users/1..1048576 of 1048576", `{"Max":1048576}`},
		{"81: a negative size", "", "", jay.RangeRequest{Tag: "users", LastSize: -5}, 0, "users/1..32 of 32", `{"Max":32}`},
		{"82: an unknown time does not double", "", "", jay.RangeRequest{Tag: "users", LastSize: 40}, 0, "users/1..40 of 40", `{"Max":40}`},
		{"83: what the client has seen", "n", "", jay.RangeRequest{Tag: "users", LastMax: 100}, 0, "users/101..132 of 32", `{"Max":132}`},
		{"a client of the future doubles", "", "", jay.RangeRequest{Tag: "users", LastSize: 32}, -time.Hour, "users/1..64 of 64", `{"Max":64}`},
		{"84: deleted, live client", grow + "d", "", jay.RangeRequest{Tag: "users", LastMax: 64}, 0, "users/65..96 of 32", `{"Max":96}`},
		{"85: deleted, fresh client", grow + "d", "", jay.RangeRequest{Tag: "users"}, 0, "users/65..96 of 32", `{"Max":96}`},
		{"86: lowered, live client", grow, `{"Max":12}`, jay.RangeRequest{Tag: "users", LastMax: 64}, 0, "users/65..96 of 32", `{"Max":96}`},
		{"86: lowered, fresh client", grow, `{"Max":12}`, jay.RangeRequest{Tag: "users"}, 0, "users/65..96 of 32", `{"Max":96}`},
		{"87: raised", grow, `{"Max":1000}`, jay.RangeRequest{Tag: "users", LastMax: 64}, 0, "users/1001..1032 of 32", `{"Max":1032}`},
		{"88: no Max", grow, `{"max":99}`, jay.RangeRequest{Tag: "users"}, 0, "users/65..96 of 32", `{"max":99,"Max":96}`},
		{"88: Max is text", "", `{"Max":"64"}`, jay.RangeRequest{Tag: "users"}, 0, "users/1..32 of 32", `{"Max":32}`},
		{"other fields stay", "", `{"a":[1],"Max":64,"b":{"Max":9}}`, jay.RangeRequest{Tag: "users"}, 0, "users/65..96 of 32", `{"a":[1],"Max":96,"b":{"Max":9}}`},
		{"89: the casing of the tag", "n", "", jay.RangeRequest{Tag: "USERS"}, 0, "USERS/33..64 of 32", `{"Max":64}`},
		{"90: the client's separator", "", "", jay.RangeRequest{Tag: "users", Separator: "-"}, 0, "users-1..32 of 32", `{"Max":32}`},
		{"numbers above 2^53 stay exact", "", `{"Max":9007199254740993}`, jay.RangeRequest{Tag: "users"}, 0, "users/9007199254740994..9007199254741025 of 32", `{"Max":9007199254741025}`},
		{"106: the last range that fits", "", `{"Max":9223372036854775775}`, jay.RangeRequest{Tag: "users"}, 0, "users/9223372036854775776..9223372036854775807 of 32", `{"Max":9223372036854775807}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, &jay.Options{Now: func() time.Time { return day }})
			for _, c := range test.before {
				if c == 'n' {
					nextRange(t, db, jay.RangeRequest{Tag: "users"})
				} else if err := db.Delete(ctx, "Raven/HiLo/users"); err != nil {
					t.Fatal(err)
				}
			}
			if test.document != "" {
				put(t, db, "Raven/HiLo/users", test.document, jay.InCollection("@hilo"))
			}
			if test.age != 0 {
				test.req.LastRangeAt = day.Add(-test.age)
			}
			r := nextRange(t, db, test.req)
			equal(t, fmt.Sprintf("%s%d..%d of %d", r.Prefix, r.Low, r.High, r.Size), test.want)
			equal(t, r.NodeTag+" "+r.GrantedAt.String(), "A "+day.String())
			equal(t, body(t, db, "raven/hilo/USERS"), test.after)
		})
	}
}

// Ensure that LastMax is believed up to 2^40 above the mark, and no more (A9).
func TestRules_Lead(t *testing.T) {
	db := memory(t, nil)
	nextRange(t, db, jay.RangeRequest{Tag: "users"})
	before := dump(t, db)
	if _, err := db.NextRange(ctx, jay.RangeRequest{Tag: "users", LastMax: 32 + 1<<40 + 1}); !errors.Is(err, jay.ErrLeadTooLarge) {
		t.Errorf("got %v, want ErrLeadTooLarge", err)
	}
	equal(t, dump(t, db), before)
	equal(t, nextRange(t, db, jay.RangeRequest{Tag: "users", LastMax: 32 + 1<<40}).Low, 32+1<<40+1)
}

// Ensure that a return does what the rules say, on documents (A10; rows 92 to
// 98).
func TestRules_Return(t *testing.T) {
	type call struct {
		last, end int64
		accepted  bool
	}
	tests := []struct {
		name   string
		ranges int
		calls  []call
		max    string // afterwards
		next   string // a fresh client's range
	}{
		{"92: one used", 1, []call{{1, 32, true}}, `{"Max":1}`, "users/2..33-A"},
		{"93: twice", 1, []call{{1, 32, true}, {1, 32, false}, {0, 1, false}}, `{"Max":1}`, "users/2..33-A"},
		{"94: above the end", 1, []call{{33, 32, false}}, `{"Max":32}`, "users/33..64-A"},
		{"95: all used", 1, []call{{32, 32, true}, {32, 32, false}}, `{"Max":32}`, "users/33..64-A"},
		{"96: none used", 2, []call{{32, 64, true}}, `{"Max":32}`, "users/33..65-A"},
		{"97: below the range", 2, []call{{0, 64, false}, {31, 64, false}}, `{"Max":64}`, "users/65..96-A"},
		{"98: negative", 1, []call{{-1, 32, false}, {math.MinInt64, 32, false}}, `{"Max":32}`, "users/33..64-A"},
		{"not the newest", 2, []call{{5, 32, false}}, `{"Max":64}`, "users/65..96-A"},
		{"none of the first", 1, []call{{0, 32, true}}, `{"Max":0}`, "users/1..33-A"},
		{"two, newest first", 2, []call{{32, 64, true}, {7, 32, true}}, `{"Max":7}`, "users/8..65-A"},
		{"three, the one in the middle was used", 3, []call{{64, 96, true}, {40, 64, true}, {5, 32, false}}, `{"Max":40}`, "users/41..97-A"},
		{"the end of another", 2, []call{{40, 63, false}, {40, 65, false}, {40, 96, false}}, `{"Max":64}`, "users/65..96-A"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			for range test.ranges {
				nextRange(t, db, jay.RangeRequest{Tag: "users"})
			}
			for _, c := range test.calls {
				before := dump(t, db)
				if got := returnRange(t, db, "users", c.last, c.end); got != c.accepted {
					t.Errorf("last %d, end %d: accepted is %v", c.last, c.end, got)
				}
				if !c.accepted {
					equal(t, dump(t, db), before)
				}
			}
			equal(t, body(t, db, "Raven/HiLo/users"), test.max)
			equal(t, span(nextRange(t, db, jay.RangeRequest{Tag: "users"})), test.next)
		})
	}
	db := memory(t, nil) // B 2.4: without a document none is made
	before := dump(t, db)
	equal(t, returnRange(t, db, "users", 0, 0), false)
	equal(t, returnRange(t, db, "users", 1, 32), false)
	equal(t, dump(t, db), before)
}

// Ensure that an ID that was shown is kept: a clash is ErrExists, and the
// number is not drawn again (A12).
func TestRules_ShownID(t *testing.T) {
	db := memory(t, nil)
	c := db.NewHiLoClient()
	id := draw(t, c, "users", 1)
	put(t, db, "USERS/1-a", `{"by":"hand"}`)
	if _, err := db.Insert(ctx, id, []byte(`{}`)); !errors.Is(err, jay.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	equal(t, body(t, db, id), `{"by":"hand"}`)
	equal(t, draw(t, c, "users", 1), "users/2-A")
}

// firstID inserts a value of T and returns its collection and ID.
func firstID[T any](t testing.TB, db *jay.DB) string {
	t.Helper()
	m, err := collectionOf[T](t, db).Insert(ctx, new(T))
	if err != nil {
		t.Fatal(err)
	}
	return m.Collection + " " + m.ID
}

// Ensure that types get the collections, prefixes and first IDs of the .NET
// client (A18, B 3.1; rows 107 to 138).
func TestRules_Names(t *testing.T) {
	type (
		Order          struct{ ID string }
		Employee       struct{ ID string }
		Company        struct{ ID string }
		Category       struct{ ID string }
		Day            struct{ ID string }
		Address        struct{ ID string }
		Bus            struct{ ID string }
		Box            struct{ ID string }
		Index          struct{ ID string }
		Person         struct{ ID string }
		Human          struct{ ID string }
		Child          struct{ ID string }
		Mouse          struct{ ID string }
		Blouse         struct{ ID string }
		House          struct{ ID string }
		Analysis       struct{ ID string }
		Wife           struct{ ID string }
		Knife          struct{ ID string }
		Safe           struct{ ID string }
		Leaf           struct{ ID string }
		Half           struct{ ID string }
		Tomato         struct{ ID string }
		Potato         struct{ ID string }
		Sheep          struct{ ID string }
		Catfish        struct{ ID string }
		Regex          struct{ ID string }
		Quiz           struct{ ID string }
		BlogPost       struct{ ID string }
		CatsAndDogs    struct{ ID string }
		OrderLine      struct{ ID string }
		user           struct{ ID string }
		UserPreference struct{ ID string }
	)
	db := memory(t, nil)
	for got, want := range map[string]string{
		firstID[Order](t, db): "Orders orders/1-A", firstID[Employee](t, db): "Employees employees/1-A",
		firstID[Company](t, db): "Companies companies/1-A", firstID[Category](t, db): "Categories categories/1-A",
		firstID[Day](t, db): "Days days/1-A", firstID[Address](t, db): "Addresses addresses/1-A",
		firstID[Bus](t, db): "Buses buses/1-A", firstID[Box](t, db): "Boxes boxes/1-A",
		firstID[Index](t, db): "Indices indices/1-A", firstID[Person](t, db): "People people/1-A",
		firstID[Human](t, db): "Humen humen/1-A", firstID[Child](t, db): "Children children/1-A",
		firstID[Mouse](t, db): "Mice mice/1-A", firstID[Blouse](t, db): "Blice blice/1-A",
		firstID[House](t, db): "Houses houses/1-A", firstID[Analysis](t, db): "Analyses analyses/1-A",
		firstID[Wife](t, db): "Wives wives/1-A", firstID[Knife](t, db): "Knives knives/1-A",
		firstID[Safe](t, db): "Saves saves/1-A", firstID[Leaf](t, db): "Leafs leafs/1-A",
		firstID[Half](t, db): "Halves halves/1-A", firstID[Tomato](t, db): "Tomatoes tomatoes/1-A",
		firstID[Potato](t, db): "Potatos potatos/1-A", firstID[Sheep](t, db): "Sheep sheep/1-A",
		firstID[Catfish](t, db): "Catfishes catfishes/1-A", firstID[Regex](t, db): "Regices regices/1-A",
		firstID[Quiz](t, db): "Quizzes quizzes/1-A", firstID[BlogPost](t, db): "BlogPosts BlogPosts/1-A",
		firstID[CatsAndDogs](t, db): "CatsAndDogs CatsAndDogs/1-A", firstID[OrderLine](t, db): "OrderLines OrderLines/1-A",
		firstID[user](t, db): "users users/1-A", firstID[UserPreference](t, db): "UserPreferences UserPreferences/1-A",
	} {
		equal(t, got, want)
	}
}

// Ensure that metadata keys are matched byte by byte: what only looks like
// Jay's own is the user's (B 5.1; row 143).
func TestRules_Metadata(t *testing.T) {
	db := memory(t, nil)
	m := put(t, db, "users/1", `{"@metadata":{"@ID":"mine","Raven-Clr-Type":"User, App","@expires":"2030-01-01T00:00:00.0000000Z","@collection":"Users"}}`)
	equal(t, string(m.Custom), `{"@ID":"mine","Raven-Clr-Type":"User, App","@expires":"2030-01-01T00:00:00.0000000Z"}`)
	equal(t, m.Collection, "Users")
	before := dump(t, db)
	for _, wrong := range []string{`{"@metadata":{"@id":7}}`, `{"@metadata":{"@flags":7}}`, `{"@metadata":{"@last-modified":7}}`} {
		if _, err := db.Put(ctx, "users/2", []byte(wrong)); !errors.Is(err, jay.ErrInvalidDocument) {
			t.Errorf("%s: got %v, want ErrInvalidDocument", wrong, err)
		}
	}
	equal(t, dump(t, db), before)
	put(t, db, "users/2", `{"@metadata":{"@change-vector":null}}`)
}

// Ensure that clients of RavenDB 2.x and 3.x and of 2010 find what they
// expect, and leave it (A19, B 6; rows 152 to 164).
func TestRules_OlderSystems(t *testing.T) {
	hilo2, hilo2010 := jay.HiLo2, jay.HiLo2010
	tests := []struct {
		name     string
		mode     jay.HiLoMode
		capacity int64
		document string
		want     string // the first two IDs of a fresh client
		after    string
	}{
		{"152: no document", hilo2, 0, "", "users/1 users/2", `{"Max":32}`},
		{"153: a document", hilo2, 0, `{"Max":32}`, "users/33 users/34", `{"Max":64}`},
		{"another capacity", hilo2, 100, `{"Max":7}`, "users/8 users/9", `{"Max":107}`},
		{"other fields stay", hilo2, 0, `{"Max":32,"Note":1}`, "users/33 users/34", `{"Max":64,"Note":1}`},
		{"no Max", hilo2, 0, `{"Note":1}`, "users/1 users/2", `{"Note":1,"Max":32}`},
		{"157: a ServerHi", hilo2, 32, `{"ServerHi":5}`, "users/129 users/130", `{"Max":160}`},
		{"158: a ServerHi below the Max", hilo2, 32, `{"ServerHi":2,"Max":500}`, "users/501 users/502", `{"Max":532}`},
		{"162, 163: no document", hilo2010, 3, "", "users/1 users/2", `{"ServerHi":2}`},
		{"164: a document", hilo2010, 32, `{"ServerHi":2}`, "users/33 users/34", `{"ServerHi":3}`},
		{"2010's default capacity", hilo2010, 1024, `{"ServerHi":3}`, "users/2049 users/2050", `{"ServerHi":4}`},
		{"capacity 1 is a counter", hilo2010, 1, `{"ServerHi":3}`, "users/3 users/4", `{"ServerHi":5}`},
		{"a Max, taken over from 3.x", hilo2010, 10, `{"Max":25}`, "users/31 users/32", `{"Max":25,"ServerHi":5}`},
		{"B 6.3: a Max, taken over from 3.x", jay.HiLo4, 0, `{"Max":64}`, "users/65-A users/66-A", `{"Max":96}`},
		{"B 6.3: a ServerHi", jay.HiLo4, 1024, `{"ServerHi":3}`, "users/2049-A users/2050-A", `{"Max":2080}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, &jay.Options{HiLoMode: test.mode, HiLoCapacity: test.capacity})
			if test.document != "" {
				put(t, db, "raven/hilo/Users", test.document, jay.InCollection("@hilo"))
			}
			equal(t, draw(t, db.NewHiLoClient(), "users", 2), test.want)
			equal(t, body(t, db, "Raven/HiLo/users"), test.after)
		})
	}
}

// Ensure that the overflow of an older generation is an error that changes
// nothing (A9, A19).
func TestRules_OlderSystems_Exhausted(t *testing.T) {
	for _, test := range []struct {
		opts     jay.Options
		document string
	}{
		{jay.Options{HiLoMode: jay.HiLo2}, `{"Max":9223372036854775800}`},
		{jay.Options{HiLoMode: jay.HiLo2}, `{"Max":1e19}`},
		{jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: 32}, `{"Max":9223372036854775790}`},
		{jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: 32}, `{"ServerHi":9223372036854775807}`},
		{jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: 32}, `{"ServerHi":288230376151711745}`},
	} {
		db := memory(t, &test.opts)
		put(t, db, "Raven/HiLo/users", test.document, jay.InCollection("@hilo"))
		before := dump(t, db)
		if id, err := db.NewHiLoClient().Next(ctx, "users"); !errors.Is(err, jay.ErrExhausted) {
			t.Errorf("mode %d, %s: got %q, %v; want ErrExhausted", test.opts.HiLoMode, test.document, id, err)
		}
		equal(t, dump(t, db), before)
	}
}

// Ensure that a function that runs again draws no second number for what it
// already holds, and that the numbers of a transaction are those of its commit
// (A7, A16).
func TestRules_Transactions(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "watched", `{}`)
	var drawn []string
	var invoices [2]jay.Metadata
	runs := 0
	err := db.Update(ctx, func(tx *jay.Tx) error {
		runs++
		drawn = drawn[:0]
		if _, err := tx.Get(ctx, "watched"); err != nil {
			return err
		}
		for range 3 {
			m, err := tx.Store(ctx, "Users", []byte(`{}`))
			if err != nil {
				return err
			}
			drawn = append(drawn, m.ID)
		}
		for i := range invoices {
			if _, err := tx.Put(ctx, "invoices|", []byte(`{}`), jay.Returning(&invoices[i])); err != nil {
				return err
			}
		}
		if runs < 3 {
			put(t, db, "watched", fmt.Sprintf(`{"run":%d}`, runs))
			put(t, db, "invoices|", `{"by":"another"}`)
		}
		return nil
	}, jay.Retry(5))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, runs, 3)
	equal(t, strings.Join(drawn, " "), "users/1-A users/2-A users/3-A")
	equal(t, invoices[0].ID+" "+invoices[1].ID, "invoices/3 invoices/4")
	equal(t, store(t, db, "Users"), "users/4-A")

	refused := errors.New("refused")
	err = db.Update(ctx, func(tx *jay.Tx) error {
		for _, request := range []string{"invoices|", "users/"} {
			if m, err := tx.Put(ctx, request, []byte(`{}`)); err != nil || m.ID != request {
				t.Errorf("%s inside: %q, %v", request, m.ID, err)
			}
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	equal(t, put(t, db, "invoices|", `{}`).ID, "invoices/5")
}

// Ensure that a session keeps the IDs that it has shown: a clash is ErrExists
// and overwrites nothing, and a later save goes on with the same IDs (A12).
func TestRules_Sessions(t *testing.T) {
	type Nut struct{ ID string }
	for mode, want := range map[jay.HiLoMode]string{jay.HiLo4: "nuts/1-A nuts/2-A", jay.HiLo2: "nuts/1 nuts/2", jay.HiLo2010: "nuts/1 nuts/2"} {
		db := memory(t, &jay.Options{HiLoMode: mode, HiLoCapacity: 32})
		s := db.OpenSession()
		first, second := &Nut{}, &Nut{}
		must(t, errors.Join(s.Store(ctx, first), s.Store(ctx, second)))
		equal(t, first.ID+" "+second.ID, want)

		put(t, db, strings.ToUpper(second.ID), `{"by":"hand"}`, jay.InCollection("Nuts"))
		before := dump(t, db)
		if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrExists) {
			t.Errorf("mode %d: got %v, want ErrExists", mode, err)
		}
		equal(t, dump(t, db), before)
		must(t, db.Delete(ctx, second.ID))
		must(t, s.SaveChanges(ctx))
		equal(t, first.ID+" "+second.ID, want)
		equal(t, body(t, db, first.ID)+body(t, db, second.ID), "{}{}")
	}
}
