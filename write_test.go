package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

var guid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// Ensure that each row of the ID vectors comes out as Jay says it does. The
// numbers are those of docs/ids.md, "vectors".
func TestPut_Vectors(t *testing.T) {
	type step struct{ request, want string }
	tests := []struct {
		name  string
		opts  *jay.Options
		etag  uint64 // used already
		steps []step
	}{
		{"1, 2: etags count", nil, 0, []step{{"users/", "users/0000000000000000001-A"}, {"users/", "users/0000000000000000002-A"}}},
		{"4: the last etag has 19 digits", nil, math.MaxInt64 - 1, []step{{"users/", "users/9223372036854775807-A"}}},
		{"5: nested, two letters", &jay.Options{NodeTag: "AB"}, 6, []step{{"a/b/", "a/b/0000000000000000007-AB"}}},
		{"6: only the separator", nil, 0, []step{{"/", "/0000000000000000001-A"}}},
		{"7: two separators", nil, 0, []step{{"users//", "users//0000000000000000001-A"}}},
		{"9: other writes use etags", nil, 0, []step{{"x", "x"}, {"y", "y"}, {"users/", "users/0000000000000000003-A"}}},
		{"11: another separator", &jay.Options{Separator: "-"}, 0, []step{{"users-", "users-0000000000000000001-A"}}},
		{"12: the old separator means nothing then", &jay.Options{Separator: "-"}, 0, []step{{"users/", "users/"}}},
		{"24-27: pipes and spaces elsewhere", nil, 0, []step{{"users|x", "users|x"}, {"users/x|y/z", "users/x|y/z"}, {"users| ", "users| "}, {" users/1", " users/1"}}},
		{"50-55: identities count", nil, 0, []step{{"users|", "users/1"}, {"users|", "users/2"}, {"orders|", "orders/1"}, {"users|", "users/3"}}},
		{"52: no tag, no padding", &jay.Options{NodeTag: "B"}, 0, []step{{"users|", "users/1"}}},
		{"56: only the pipe", nil, 0, []step{{"|", "/1"}}},
		{"57: separator before the pipe", nil, 0, []step{{"users/|", "users//1"}}},
		{"59: another separator", &jay.Options{Separator: "-"}, 0, []step{{"users|", "users-1"}}},
		{"identities fold their names", nil, 0, []step{{"users|", "users/1"}, {"USERS|", "USERS/2"}}},
		{"case-sensitive identities do not", &jay.Options{CaseSensitive: true}, 0, []step{{"users|", "users/1"}, {"USERS|", "USERS/1"}}},
		{"two pipes are another counter", nil, 0, []step{{"users||", "users|/1"}, {"users|", "users/1"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, test.opts)
			checks.StartEtag(db, test.etag)
			for _, s := range test.steps {
				m := put(t, db, s.request, `{"n":1}`)
				equal(t, m.ID, s.want)
				equal(t, body(t, db, s.want), `{"n":1}`)
			}
		})
	}
}

// Ensure that vector 16 holds: an empty or blank ID makes a random GUID.
func TestPut_GUID(t *testing.T) {
	db := memory(t, nil)
	seen := make(map[string]bool)
	for _, request := range []string{"", "   ", "\t", ""} {
		id := put(t, db, request, `{}`).ID
		if !guid.MatchString(id) || seen[id] {
			t.Errorf("%q: got %q, want a new GUID", request, id)
		}
		seen[id] = true
	}
	ordered := memory(t, &jay.Options{OrderedGUIDs: true})
	if id := put(t, ordered, "", `{}`).ID; id[14] != '7' {
		t.Errorf("got %q, want a UUID of version 7", id)
	}
}

// Ensure that a GUID that is taken, which only a broken source of randomness
// can bring about, never overwrites a document.
func TestPut_GUID_Taken(t *testing.T) {
	random := &script{parts: []string{"the database's id", strings.Repeat("a", 16), strings.Repeat("a", 16), strings.Repeat("b", 16)}}
	db := memory(t, &jay.Options{Rand: random})
	first := put(t, db, "", `{"first":true}`).ID
	second := put(t, db, "", `{"second":true}`).ID
	if first == second {
		t.Errorf("both documents are %q", first)
	}
	equal(t, body(t, db, first), `{"first":true}`)
}

// script is a source of randomness that returns given bytes.
type script struct{ parts []string }

func (s *script) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, errors.New("the script is at its end")
	}
	n := copy(p, s.parts[0])
	s.parts = s.parts[1:]
	return n, nil
}

// Ensure that vectors 10 and 72 hold: reserving a range uses an etag, and
// leaves the document of the seed.
func TestStore_HiLoDocument(t *testing.T) {
	db := memory(t, nil)
	if _, err := db.NextRange(ctx, jay.RangeRequest{Tag: "users"}); err != nil {
		t.Fatal(err)
	}
	equal(t, put(t, db, "users/", `{}`).ID, "users/0000000000000000002-A")
	doc, err := db.Get(ctx, "raven/hilo/USERS")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, doc.ID(), "Raven/HiLo/users")
	equal(t, doc.Collection(), "@hilo")
	equal(t, string(doc.Body()), `{"Max":32}`)
}

// Ensure that a server-side ID that was written by hand is never overwritten
// (A6): the next etag is drawn.
func TestPut_ServerSide_Taken(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/0000000000000000002-A", `{"by":"hand"}`)
	equal(t, put(t, db, "users/", `{}`).ID, "users/0000000000000000003-A")
	equal(t, body(t, db, "users/0000000000000000002-a"), `{"by":"hand"}`)
	doc, err := db.Get(ctx, "users/0000000000000000003-A")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, doc.Metadata().Etag, uint64(3)) // the number is that of its own write
}

// Ensure that an identity never overwrites (A7; vectors 61, 62, 147, 149), and
// leaves lower holes alone.
func TestPut_Identity_Taken(t *testing.T) {
	db := memory(t, nil)
	for _, n := range []int{1, 2, 4, 8, 9} {
		put(t, db, fmt.Sprintf("users/%d", n), `{"by":"hand"}`)
	}
	equal(t, put(t, db, "users|", `{}`).ID, "users/10")
	equal(t, put(t, db, "users|", `{}`).ID, "users/11")
	equal(t, body(t, db, "users/1"), `{"by":"hand"}`)

	var b jay.Batch
	for n := 1; n <= 1337; n++ {
		b.Put(fmt.Sprintf("orders/%d", n), []byte(`{}`))
	}
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	equal(t, put(t, db, "orders|", `{}`).ID, "orders/1338")
	equal(t, put(t, db, "orders|", `{}`).ID, "orders/1339")
}

// Ensure that identities of one batch are consecutive in its order, and that
// the numbers of a batch that fails are not used up (vectors 54, 55, 60).
func TestApply_Identities(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "taken", `{}`)
	var b jay.Batch
	for _, request := range []string{"users|", "orders|", "users|", "users|"} {
		b.Put(request, []byte(`{}`))
	}
	b.Insert("taken", []byte(`{}`))
	before := dump(t, db)
	_, err := db.Apply(ctx, &b)
	if !errors.Is(err, jay.ErrExists) || !strings.Contains(err.Error(), "write 5 of 5") {
		t.Errorf("got %v, want ErrExists of write 5 of 5", err)
	}
	equal(t, dump(t, db), before)

	b.Reset()
	for _, request := range []string{"users|", "orders|", "users|", "users|"} {
		b.Put(request, []byte(`{}`))
	}
	equal(t, b.Len(), 4)
	metas, err := db.Apply(ctx, &b)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"users/1", "orders/1", "users/2", "users/3"} {
		equal(t, metas[i].ID, want)
	}
}

// Ensure that writes of one batch see each other, in their order.
func TestApply_OwnWrites(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "old", `{}`)
	var b jay.Batch
	b.Put("a", []byte(`{"n":1}`))
	b.Replace("A", []byte(`{"n":2}`))
	b.Delete("old")
	b.Insert("old", []byte(`{"again":true}`), jay.InCollection("Others"))
	b.Put("b", []byte(`{}`))
	b.Delete("b")
	b.Store("Users", []byte(`{}`))
	metas, err := db.Apply(ctx, &b)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, body(t, db, "a"), `{"n":2}`)
	equal(t, metas[1].ID, "A")
	equal(t, body(t, db, "old"), `{"again":true}`)
	equal(t, body(t, db, "b"), "absent")
	equal(t, metas[6].ID, "users/1-A")

	b.Reset()
	b.Insert("x", []byte(`{}`))
	b.Insert("X", []byte(`{}`))
	if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrExists) {
		t.Errorf("two inserts of one id: %v, want ErrExists", err)
	}
	equal(t, body(t, db, "x"), "absent")

	var empty jay.Batch
	if metas, err := db.Apply(ctx, &empty); err != nil || len(metas) != 0 {
		t.Errorf("an empty batch: %v, %v", metas, err)
	}
}

// Ensure that vector 29 and 30 hold: any casing finds a document, the newest
// write decides how it is shown, and a case-sensitive database keeps them
// apart.
func TestPut_Casing(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/1", `{"n":1}`)
	put(t, db, "Users/1", `{"n":2}`)
	doc, err := db.Get(ctx, "USERS/1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, doc.ID(), "Users/1")
	equal(t, string(doc.Body()), `{"n":2}`)
	put(t, db, "users/Ä", `{}`)
	equal(t, body(t, db, "USERS/ä"), `{}`)
	put(t, db, "x/ß", `{}`)
	equal(t, body(t, db, "x/ẞ"), `{}`)
	equal(t, body(t, db, "x/SS"), "absent")

	exact := memory(t, &jay.Options{CaseSensitive: true})
	put(t, exact, "users/1", `{"n":1}`)
	put(t, exact, "Users/1", `{"n":2}`)
	equal(t, body(t, exact, "users/1"), `{"n":1}`)
	equal(t, body(t, exact, "Users/1"), `{"n":2}`)
	equal(t, body(t, exact, "USERS/1"), "absent")
}

// Ensure that the three verbs and the expected change vector refuse what they
// should (vectors 14, 15, 19-22, 144, 145), and that a refused write changes
// nothing.
func TestWrite_Conditions(t *testing.T) {
	db := memory(t, nil)
	first := put(t, db, "users/1", `{"n":1}`).ChangeVector
	second := put(t, db, "users/1", `{"n":2}`).ChangeVector
	if first == second || !strings.HasPrefix(first, "A:1-") || len(first) != len("A:1-")+22 {
		t.Errorf("change vectors %q, %q", first, second)
	}
	raw := []byte(`{"n":3}`)
	type call func() error
	putIf := func(id, cv string) call {
		return func() error { _, err := db.Put(ctx, id, raw, jay.IfMatch(cv)); return err }
	}
	refused := []struct {
		name             string
		call             call
		want             error
		expected, actual string
	}{
		{"insert over a document", func() error { _, err := db.Insert(ctx, "USERS/1", raw); return err }, jay.ErrExists, "-", ""},
		{"replace of nothing", func() error { _, err := db.Replace(ctx, "users/2", raw); return err }, jay.ErrNotFound, "-", ""},
		{"put, must not exist", putIf("users/1", ""), jay.ErrExists, "", second},
		{"put, older version", putIf("users/1", first), jay.ErrConflict, first, second},
		{"put, missing document", putIf("users/2", first), jay.ErrNotFound, first, ""},
		{"server-side with a version", putIf("users/", first), jay.ErrConflict, first, ""},
		{"identity with a version", putIf("users|", first), jay.ErrUsage, "-", ""},
		{"guid with a version", putIf("", first), jay.ErrConflict, first, ""},
		{"store with a version", func() error { _, err := db.Store(ctx, "Users", raw, jay.IfMatch(first)); return err }, jay.ErrConflict, first, ""},
		{"delete, older version", func() error { return db.Delete(ctx, "users/1", jay.IfMatch(first)) }, jay.ErrConflict, first, second},
		{"delete, missing document", func() error { return db.Delete(ctx, "users/2", jay.IfMatch(first)) }, jay.ErrConflict, first, ""},
		{"delete, must not exist", func() error { return db.Delete(ctx, "users/2", jay.IfMatch("")) }, jay.ErrConflict, "", ""},
		{"replace with a made id", func() error { _, err := db.Replace(ctx, "users|", raw); return err }, jay.ErrUsage, "-", ""},
	}
	before := dump(t, db)
	for _, test := range refused {
		t.Run(test.name, func(t *testing.T) {
			err := test.call()
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if test.expected != "-" {
				var c *jay.ConflictError
				if errors.As(err, &c) && c.ID == "Users" || strings.Contains(err.Error(), `conflict on "Users"`) {
					t.Errorf("%v: a collection is no id", err)
				}
				if !errors.As(err, &c) || c.Expected != test.expected || c.Actual != test.actual {
					t.Errorf("got %+v", c)
				}
			}
			equal(t, dump(t, db), before)
		})
	}

	for name, call := range map[string]call{
		"put, right version":             putIf("users/1", second),
		"put of a new one":               putIf("users/3", ""),
		"server-side, must not exist":    putIf("users/", ""),
		"identity, must not exist":       putIf("posts|", ""),
		"replace":                        func() error { _, err := db.Replace(ctx, "users/3", raw); return err },
		"delete of nothing":              func() error { return db.Delete(ctx, "users/99") },
		"delete of a request, literally": func() error { return db.Delete(ctx, "users|") },
	} {
		if name == "replace" {
			continue // needs users/3
		}
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := db.Replace(ctx, "users/3", raw); err != nil {
		t.Error(err)
	}
}

// Ensure that a delete leaves nothing to find, and that its number does not
// come back.
func TestDelete(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users|", `{}`)
	put(t, db, "users|", `{}`)
	if err := db.Delete(ctx, "USERS/2"); err != nil {
		t.Fatal(err)
	}
	equal(t, body(t, db, "users/2"), "absent")
	equal(t, put(t, db, "users|", `{}`).ID, "users/3")
	n := 0
	for range db.Documents(ctx, jay.Scan{}) {
		n++
	}
	equal(t, n, 2)
}

// Ensure that collections are compared without regard to case, and that a
// document never moves (vectors 139-141). One that names no collection stays, too:
// see TestPut_KeepsCollection.
func TestPut_Collection(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/1", `{"@metadata":{"@collection":"Users"}}`)
	put(t, db, "users/1", `{"@metadata":{"@collection":"users"}}`)
	before := dump(t, db)
	for name, text := range map[string]string{
		"another collection": `{"@metadata":{"@collection":"People"}}`,
		"@empty":             `{"@metadata":{"@collection":"@empty"}}`,
	} {
		_, err := db.Put(ctx, "users/1", []byte(text))
		var c *jay.CollectionError
		if !errors.As(err, &c) || !errors.Is(err, jay.ErrCollection) || c.Current != "users" {
			t.Errorf("%s: got %v, want *CollectionError", name, err)
		}
	}
	if _, err := db.Put(ctx, "users/1", []byte(`{"@metadata":{"@collection":"Users"}}`), jay.InCollection("People")); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("contradicting collections: got %v, want ErrUsage", err)
	}
	equal(t, dump(t, db), before)

	if err := db.Delete(ctx, "users/1"); err != nil {
		t.Fatal(err)
	}
	equal(t, put(t, db, "users/1", `{}`, jay.InCollection("People")).Collection, "People")
	equal(t, put(t, db, "alone", `{}`).Collection, "@empty")
	equal(t, put(t, db, "alone", `{}`, jay.InCollection("@empty")).Collection, "@empty")
}

// Ensure that computed metadata is dropped and made anew, and that custom
// keys stay (vector 142).
func TestPut_Metadata(t *testing.T) {
	c := newClock()
	db := memory(t, &jay.Options{Now: c.Now})
	m := put(t, db, "users/1", `{"a":1,"@metadata":{"@id":"x","@change-vector":"y","@last-modified":"z","@flags":"f","@etag":9,"@index-score":1,"@collection":"Users","mine":[1, 2]}}`,
		jay.WithMetadata([]byte(`{ "more" : true }`)))
	equal(t, string(m.Custom), `{"mine":[1,2],"more":true}`)
	doc, err := db.Get(ctx, "users/1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, string(text), `{"a":1,"@metadata":{"mine":[1,2],"more":true,"@collection":"Users","@change-vector":"`+m.ChangeVector+`","@id":"users/1","@last-modified":"2026-11-21T12:00:00.0000000Z"}}`)

	got := doc.Metadata()
	equal(t, got.ID, m.ID)
	equal(t, got.ChangeVector, m.ChangeVector)
	equal(t, got.Etag, m.Etag)
	equal(t, got.LastModified.Equal(m.LastModified), true)

	// What was given back can be put again as it is.
	again := put(t, db, "users/1", string(text))
	equal(t, string(again.Custom), string(m.Custom))
	equal(t, body(t, db, "users/1"), `{"a":1}`)
}

// Ensure that numbers come back with every digit.
func TestGet_Numbers(t *testing.T) {
	db := memory(t, nil)
	const text = `{"big":9007199254740993,"exact":0.1000000000000000055511151231257827,"huge":123456789012345678901234567890}`
	put(t, db, "n", text)
	equal(t, body(t, db, "n"), text)
	doc, err := db.Get(ctx, "n")
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := doc.Decode(&v); err != nil {
		t.Fatal(err)
	}
	equal(t, fmt.Sprintf("%v %v", v["big"], v["huge"]), "9007199254740993 123456789012345678901234567890")
}

// Ensure that every kind of bad input is one typed error, that nothing is
// stored, and that no number is used up.
func TestPut_BadInput(t *testing.T) {
	db := memory(t, &jay.Options{MaxDocumentBytes: 1 << 20, MaxDepth: 100, MaxIDBytes: 512})
	store(t, db, "Users") // so that there is a range whose numbers could be lost
	put(t, db, "users|", `{}`)
	deep := `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`
	tests := []struct {
		name, body string
		want       error
	}{
		{"malformed", `{"a":`, jay.ErrInvalidDocument},
		{"trailing garbage", `{"a":1} x`, jay.ErrInvalidDocument},
		{"no object", `[1,2]`, jay.ErrInvalidDocument},
		{"nothing", ``, jay.ErrInvalidDocument},
		{"repeated keys", `{"a":1,"a":2}`, jay.ErrInvalidDocument},
		{"too large", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, jay.ErrInvalidDocument},
		{"too deep", deep, jay.ErrInvalidDocument},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", jay.ErrInvalidDocument},
		{"metadata is no object", `{"@metadata":7}`, jay.ErrInvalidDocument},
		{"collection is no text", `{"@metadata":{"@collection":7}}`, jay.ErrInvalidDocument},
		{"collection with a control character", `{"@metadata":{"@collection":"a\u0001"}}`, jay.ErrInvalidDocument},
	}
	before := dump(t, db)
	for _, test := range tests {
		for _, request := range []string{"users/x", "", "users/", "users|"} {
			if _, err := db.Put(ctx, request, []byte(test.body)); !errors.Is(err, test.want) {
				t.Errorf("%s under %q: got %v, want %v", test.name, request, err, test.want)
			}
		}
		if _, err := db.Store(ctx, "Users", []byte(test.body)); !errors.Is(err, test.want) {
			t.Errorf("%s in Store: got %v, want %v", test.name, err, test.want)
		}
	}
	for _, id := range []string{`a\b`, "a\x01", "a\x7f/", "\xff|", strings.Repeat("x", 513), strings.Repeat("x", 500) + "/", strings.Repeat("x", 512) + "|", strings.Repeat("é", 257)} {
		_, err := db.Put(ctx, id, []byte(`{}`))
		var e *jay.IDError
		if !errors.As(err, &e) || !errors.Is(err, jay.ErrInvalidID) {
			t.Errorf("id %.20q: got %v, want *IDError", id, err)
		}
	}
	for _, collection := range []string{"", "@empty", "a\x01", `a\b`, strings.Repeat("x", 500)} {
		if _, err := db.Store(ctx, collection, []byte(`{}`)); err == nil {
			t.Errorf("Store into %.20q is accepted", collection)
		}
	}
	equal(t, dump(t, db), before)
	equal(t, store(t, db, "Users"), "users/2-A")
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
}

// Ensure that the last etag is followed by an error, not by a second life.
func TestPut_EtagExhausted(t *testing.T) {
	db := memory(t, nil)
	checks.StartEtag(db, math.MaxInt64-1)
	put(t, db, "last", `{}`)
	before := dump(t, db)
	for _, id := range []string{"one-more", "users/", "users|"} {
		if _, err := db.Put(ctx, id, []byte(`{}`)); !errors.Is(err, jay.ErrExhausted) {
			t.Errorf("%s: got %v, want ErrExhausted", id, err)
		}
	}
	equal(t, dump(t, db), before)
}

// Ensure that the caller's body can be reused after the call, and that what
// was read does not change.
func TestPut_BodyIsCopied(t *testing.T) {
	db := memory(t, nil)
	text := []byte(`{"a":1}`)
	if _, err := db.Put(ctx, "a", text); err != nil {
		t.Fatal(err)
	}
	copy(text, `{"b":2}`)
	doc, err := db.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, "a", `{"c":3}`)
	equal(t, string(doc.Body()), `{"a":1}`)
}

// Ensure that GetMany keeps the order and shows what is missing.
func TestGetMany(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1}`)
	put(t, db, "b", `{"n":2}`)
	docs, err := db.GetMany(ctx, "B", "none", "a", "a")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, docs[0].ID(), "b")
	equal(t, docs[1], nil)
	equal(t, docs[2].ID()+docs[3].ID(), "aa")
	found, err := db.Exists(ctx, "A")
	equal(t, found && err == nil, true)
	found, err = db.Exists(ctx, "none")
	equal(t, found || err != nil, false)
}

// Ensure a batch that is applied to two databases makes the IDs of each by its own
// conventions, and that a tag which one of them refuses costs it no number.
func TestApply_BatchOfAnotherDatabase(t *testing.T) {
	conventions := func(prefix string) *jay.Options {
		return &jay.Options{MaxIDBytes: 64, Conventions: jay.Conventions{Prefix: func(string) string { return prefix }}}
	}
	first, second := memory(t, conventions("things")), memory(t, conventions("objects"))
	refusing := memory(t, conventions(strings.Repeat("x", 80)))
	var b jay.Batch
	b.Store("Things", json.RawMessage(`{}`))
	for _, c := range []struct {
		db   *jay.DB
		want string
	}{{first, "things/1-A"}, {second, "objects/1-A"}, {first, "things/2-A"}} {
		m, err := c.db.Apply(ctx, &b)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, m[0].ID, c.want)
	}
	if _, err := refusing.Apply(ctx, &b); !errors.Is(err, jay.ErrInvalidID) {
		t.Errorf("a tag of 80 bytes where 64 are allowed: %v", err)
	}
}

// Ensure that the result of a delete says whether there was a document.
func TestApply_DeleteResult(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	_, err := db.Put(ctx, "a", json.RawMessage(`{}`))
	must(t, err)
	var b jay.Batch
	b.Delete("a")
	b.Delete("missing")
	b.Put("c", json.RawMessage(`{}`))
	b.Delete("c")
	b.Delete("a")
	written, err := db.Apply(ctx, &b)
	must(t, err)
	for i, want := range []bool{true, false, true, true, false} {
		if got := written[i].Etag > 0; got != want {
			t.Errorf("write %d: etag %d", i, written[i].Etag)
		}
	}
	if m := written[0]; m.ID != "a" || m.ChangeVector+m.Collection != "" || m.Custom != nil {
		t.Errorf("a delete has more than an ID and an etag: %+v", written[0])
	}
}

// Ensure that a call with the ID of an earlier one returns what that returned, and changes
// nothing.
func TestRequestID(t *testing.T) {
	db := memory(t, nil)
	next := func(id string) int64 {
		t.Helper()
		n, err := db.NextIdentity(ctx, "users", jay.RequestID(id))
		must(t, err)
		return n
	}
	equal(t, next("a"), 1)
	equal(t, next("a"), 1)
	equal(t, next("b"), 2)
	equal(t, next("a"), 1)
	for range 2 {
		n, err := db.SeedIdentity(ctx, "users|", 100, false, jay.RequestID("seed"))
		must(t, err)
		equal(t, n, 100)
	}
	equal(t, next("c"), 101)

	var b jay.Batch
	b.Put("orders|", []byte(`{}`))
	b.Store("Users", []byte(`{}`))
	b.Put("fixed", []byte(`{"@metadata":{"@collection":"Things"}}`))
	b.PutCompareExchange("k", 1, 0)
	b.Delete("fixed")
	first, err := db.Apply(ctx, &b, jay.RequestID("batch"))
	must(t, err)
	etag := lastEtag(t, db)
	again, err := db.Apply(ctx, &b, jay.RequestID("batch"))
	must(t, err)
	equal(t, lastEtag(t, db), etag)
	for i := range first {
		a, b := first[i], again[i]
		if a.ID != b.ID || a.Etag != b.Etag || a.ChangeVector != b.ChangeVector || a.Collection != b.Collection || !a.LastModified.Equal(b.LastModified) {
			t.Errorf("write %d: got %+v, and again %+v", i, a, b)
		}
	}
	if _, err := db.Apply(ctx, &b); err == nil { // the value is there
		t.Error("without an ID the batch is not applied")
	}

	// A call that fails leaves no result.
	b.Reset()
	b.Put("x", []byte(`{}`), jay.IfMatch("A:1-none"))
	if _, err := db.Apply(ctx, &b, jay.RequestID("fails")); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v", err)
	}
	b.Reset()
	b.Put("x", []byte(`{}`))
	must(t, second(db.Apply(ctx, &b, jay.RequestID("fails"))))

	for name, err := range map[string]error{
		"another identity": second(db.NextIdentity(ctx, "orders", jay.RequestID("a"))),
		"another verb":     second(db.SeedIdentity(ctx, "users", 1, false, jay.RequestID("a"))),
		"another value":    second(db.SeedIdentity(ctx, "users", 7, false, jay.RequestID("seed"))),
		"another batch":    second(db.Apply(ctx, &b, jay.RequestID("batch"))),
	} {
		if !errors.Is(err, jay.ErrRequestID) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"no id":     second(db.NextIdentity(ctx, "users", jay.RequestID(""))),
		"a long id": second(db.NextIdentity(ctx, "users", jay.RequestID(strings.Repeat("x", 257)))),
		"a control": second(db.NextIdentity(ctx, "users", jay.RequestID("a\x00b"))),
	} {
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	equal(t, next("d"), 102)
}

// Ensure that the ID of a batch is refused for one with other writes, which was answered as if
// it had been carried out; and that the same batch, made anew or used again, is answered.
func TestRequestID_OtherWrites(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	doc := func(text string) json.RawMessage { return json.RawMessage(text) }
	patched := func(opts ...jay.PatchOption) func(b *jay.Batch) {
		return func(b *jay.Batch) { b.Patch("docs/1", opts...) }
	}
	put := func(opts ...jay.WriteOption) func(b *jay.Batch) {
		return func(b *jay.Batch) { b.Put("docs/2", doc(`{"n":1}`), opts...) }
	}
	batches := []func(b *jay.Batch){
		put(),
		func(b *jay.Batch) { b.Put("docs/2", doc(`{"n":2}`)) },
		func(b *jay.Batch) { b.Put("docs/3", doc(`{"n":1}`)) },
		func(b *jay.Batch) { b.Put("docs/", doc(`{"n":1}`)) },
		func(b *jay.Batch) { b.Put("docs|", doc(`{"n":1}`)) },
		func(b *jay.Batch) { b.Insert("docs/2", doc(`{"n":1}`)) },
		func(b *jay.Batch) { b.Store("Docs", doc(`{"n":1}`)) },
		func(b *jay.Batch) { b.Store("Cats", doc(`{"n":1}`)) },
		func(b *jay.Batch) { b.Put("docs/2", doc(`{"n":1,"@metadata":{"@collection":"Cats"}}`)) },
		func(b *jay.Batch) { b.Delete("docs/2") },
		func(b *jay.Batch) { b.Delete("docs/1") },
		put(jay.InCollection("Cats")), put(jay.InCollection("@empty")), put(jay.IfMatch("")), put(jay.WithMetadata(doc(`{"a":1}`))), put(jay.WithMetadata(doc(`{"a":2}`))),
		put(jay.WithTTL(time.Hour)), put(jay.WithTTL(2 * time.Hour)), put(jay.ExpiresAt(at)), put(jay.ExpiresAt(at.Add(1))), put(jay.RefreshAt(at)),
		put(jay.KeepReplaced()),
		patched(jay.Set("n", 1)), patched(jay.Set("n", 2)), patched(jay.Set("m", 1)), patched(jay.Unset("n")), patched(jay.Rename("n", "m")), patched(jay.Rename("n", "o")),
		patched(jay.Increment("n", 1)), patched(jay.Increment("n", 2)), patched(jay.Append("l", 1, 2)), patched(jay.Append("l", 1), jay.Append("l", 2)),
		patched(jay.AddToSet("l", 1, 2)), patched(jay.MergePatch(doc(`{"a":1}`))), patched(jay.MergePatch(doc(`{"a":2}`))),
		patched(jay.JSONPatch(doc(`[{"op":"add","path":"/a","value":1}]`))), patched(jay.JSONPatch(doc(`[{"op":"add","path":"/a","value":2}]`))),
		patched(jay.RemoveWhere("l", jay.Eq("@value", 1))), patched(jay.RemoveWhere("l", jay.Eq("@value", 2))), patched(jay.RemoveWhere("l", jay.Gt("@value", 1))),
		patched(jay.Set("n", 1), jay.OrInsert(doc(`{}`))), patched(jay.Set("n", 1), jay.OrInsertPatched(doc(`{}`))),
		func(b *jay.Batch) { b.PutCompareExchange("k", 1, 0) },
		func(b *jay.Batch) { b.PutCompareExchange("k", 2, 0) },
		func(b *jay.Batch) { b.PutCompareExchange("k", 1, 0, jay.CompareExchangeMetadata(doc(`{"a":1}`))) },
		func(b *jay.Batch) { b.PutCompareExchange("l", 1, 0) },
		func(b *jay.Batch) { b.Put("docs/2", doc(`{"n":1}`), jay.Guarded(&jay.AtomicGuard{})) },
		func(b *jay.Batch) { b.Put("docs/2", doc(`{"n":1}`), jay.Guarded(&jay.AtomicGuard{Any: true})) },
	}
	for i, first := range batches {
		db := memory(t, nil)
		must(t, second(db.Put(ctx, "docs/1", doc(`{"n":1,"l":[1,2]}`))))
		var b jay.Batch
		first(&b)
		results, err := db.Apply(ctx, &b, jay.RequestID("r"))
		if err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		etag := lastEtag(t, db)
		for j, other := range batches {
			var b jay.Batch
			other(&b)
			again, err := db.Apply(ctx, &b, jay.RequestID("r"))
			switch {
			case i != j && (!errors.Is(err, jay.ErrRequestID) || !errors.Is(err, jay.ErrUsage)):
				t.Errorf("batch %d with the id of %d: %v", j, i, err)
			case i == j && (err != nil || again[0].ID != results[0].ID):
				t.Errorf("batch %d again: %v, %v", i, again, err)
			}
		}
		equal(t, lastEtag(t, db), etag)
		closeDB(t, db)
	}
}

// Ensure that of calls with one ID at the same time one is carried out.
func TestRequestID_Concurrent(t *testing.T) {
	db := memory(t, nil)
	var mu sync.Mutex
	seen := make(map[int64]bool)
	jaytest.Concurrently(t, func(g int, _ *rand.Rand) {
		for i := range 10 {
			n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			seen[n] = true
			mu.Unlock()
			var b jay.Batch
			b.Insert(fmt.Sprint("docs/", i), []byte(`{}`))
			if _, err := db.Apply(ctx, &b, jay.RequestID(fmt.Sprint("insert ", i))); err != nil {
				t.Error(err)
			}
		}
	})
	equal(t, len(seen), 10)
}

// Ensure that the newest results are kept, and the oldest removed.
func TestRequestID_Bounded(t *testing.T) {
	knobs.KeptRequests = 3
	defer func() { knobs.KeptRequests = 0 }()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	for i := range 10 {
		n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
		must(t, err)
		equal(t, n, int64(i+1))
	}
	closeDB(t, db)
	db = onDisk(t, disk, jay.Options{})
	equal(t, jaytest.RequestKeys(t, db), 3*2+1)
	for i := 7; i < 10; i++ {
		n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
		must(t, err)
		equal(t, n, int64(i+1))
	}
	n, err := db.NextIdentity(ctx, "users", jay.RequestID("0"))
	must(t, err)
	equal(t, n, 11) // it was forgotten
	closeDB(t, db)
}

// crate is a type without code of its own, and with all that decoding copies.
type crate struct {
	ID      string
	Version string `jay:"version"`
	Name    string
	Seal    []byte
	Labels  map[string]string
	Sent    *time.Time
}

// Ensure that Collection.Get gives what a transaction gives, which takes
// another way: the value, and every error, whether or not the document is in
// the cache.
func TestCollection_Get_TwoWays(t *testing.T) {
	ctx := context.Background()
	db := memory(t, nil)
	crates, err := jay.CollectionOf[crate](db)
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for i := range 50 {
		c := &crate{ID: fmt.Sprintf("Crates/%d", i), Name: "crate", Seal: []byte{1, byte(i)}, Labels: map[string]string{"a": "b"}, Sent: &sent}
		if _, err := crates.Put(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	put(t, db, "crates/bad", `{"Name":7}`, jay.InCollection("Crates"))
	put(t, db, "boxes/1", `{}`, jay.InCollection("Boxes"))

	ids := []string{"crates/1", "CRATES/7", "crates/bad", "boxes/1", "crates/none", ""}
	for round := range 4 { // from the third on, documents are in the cache
		for _, id := range ids {
			got, gotErr := crates.Get(ctx, id)
			var want *crate
			var wantErr error
			err := db.View(ctx, func(tx *jay.Tx) error {
				want, wantErr = crates.In(tx).Get(ctx, id)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("round %d, %q: got %+v, %v, want %+v, %v", round, id, got, gotErr, want, wantErr)
			}
			if errors.Is(gotErr, jay.ErrNotFound) != errors.Is(wantErr, jay.ErrNotFound) {
				t.Errorf("round %d, %q: got %v, want %v", round, id, gotErr, wantErr)
			}
		}
	}

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := crates.Get(cancelled, "crates/1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// Ensure that a value stays as it is when its document, which was decoded where
// it lay, is written over and the memory is used again.
func TestCollection_Get_Owned(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	ctx := context.Background()
	db := open(t, t.TempDir(), &jay.Options{CacheBytes: 1 << 20, DocumentCacheBytes: -1})
	crates, err := jay.CollectionOf[crate](db)
	if err != nil {
		t.Fatal(err)
	}
	var kept []*crate
	for round := range 20 {
		for i := range 20 {
			c := &crate{ID: fmt.Sprintf("crates/%d", i), Name: fmt.Sprint("name ", round), Seal: bytes.Repeat([]byte{byte(round)}, 1000)}
			if _, err := crates.Put(ctx, c, jay.IfMatch(versionOf(t, db, c.ID))); err != nil {
				t.Fatal(err)
			}
			v, err := crates.Get(ctx, c.ID)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, v)
		}
	}
	closeDB(t, db)
	for i, v := range kept {
		round := i / 20
		if v.Name != fmt.Sprint("name ", round) || !bytes.Equal(v.Seal, bytes.Repeat([]byte{byte(round)}, 1000)) {
			t.Fatalf("value %d has changed: %+v", i, v)
		}
	}
}

func versionOf(t *testing.T, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(context.Background(), id)
	if errors.Is(err, jay.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc.ChangeVector()
}
