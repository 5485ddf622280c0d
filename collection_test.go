package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// User is the type most tests store.
type User struct {
	ID   string
	Name string `json:",omitempty"`
	Age  int    `json:",omitempty"`
}

// Ensure that a typed insert writes the ID back, that the ID is not part of
// the body, and that the value comes back equal.
func TestCollection_Insert(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	equal(t, users.Name(), "Users")
	for _, step := range []struct{ request, want string }{
		{"", "users/1-A"}, {"users|", "users/1"}, {"users/", "users/0000000000000000004-A"}, {"users/ann", "users/ann"},
	} {
		u := &User{ID: step.request, Name: "Ann <&>", Age: 42}
		m, err := users.Insert(ctx, u)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, u.ID, step.want)
		equal(t, m.ID, step.want)
		equal(t, m.Collection, "Users")
		equal(t, body(t, db, u.ID), `{"Name":"Ann <&>","Age":42}`)
		got, err := users.Get(ctx, u.ID)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, *got, *u)
	}
	u := &User{ID: " "}
	if _, err := users.Insert(ctx, u); err != nil || !guid.MatchString(u.ID) {
		t.Errorf("a blank id: got %q, %v; want a GUID", u.ID, err)
	}
}

// Ensure that a refused typed write leaves the value as it was.
func TestCollection_Insert_Refused(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	ann := &User{ID: "users/ann"}
	if _, err := users.Insert(ctx, ann); err != nil {
		t.Fatal(err)
	}
	before := dump(t, db)
	if _, err := users.Insert(ctx, ann); !errors.Is(err, jay.ErrExists) {
		t.Errorf("second insert: %v, want ErrExists", err)
	}
	pair := []*User{{Name: "Bob"}, {ID: "users/ann"}}
	if _, err := users.InsertMany(ctx, pair); !errors.Is(err, jay.ErrExists) {
		t.Errorf("insert of a pair: %v, want ErrExists", err)
	}
	equal(t, pair[0].ID, "")
	if _, err := users.Replace(ctx, &User{}); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("replace without id: %v, want ErrUsage", err)
	}
	if _, err := users.Replace(ctx, &User{ID: "users/bob"}); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("replace of nothing: %v, want ErrNotFound", err)
	}
	if _, err := users.Put(ctx, nil); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("put of nil: %v, want ErrUsage", err)
	}
	after := dump(t, db)
	if equalButHiLo := len(after) > len(before) && body(t, db, "users/1-A") == "absent"; !equalButHiLo {
		t.Errorf("refused inserts left something:\n%s\n%s", before, after)
	}
}

// Ensure that the other verbs do what their names say.
func TestCollection_Verbs(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	many := []*User{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	if _, err := users.InsertMany(ctx, many); err != nil {
		t.Fatal(err)
	}
	many[0].Name = "A"
	if _, err := users.PutMany(ctx, many); err != nil {
		t.Fatal(err)
	}
	m, err := users.Replace(ctx, &User{ID: "users/2-A", Name: "B"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := users.Put(ctx, &User{ID: "users/2-A", Name: "B2"}, jay.IfMatch(m.ChangeVector)); err != nil {
		t.Error(err)
	}
	if err := users.Delete(ctx, "users/3-a"); err != nil {
		t.Error(err)
	}
	got, err := users.GetMany(ctx, "users/1-A", "users/3-A", "users/2-A")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got[0].Name, "A")
	equal(t, got[1], nil)
	equal(t, got[2].Name, "B2")
	for id, want := range map[string]bool{"users/1-A": true, "users/3-A": false} {
		found, err := users.Exists(ctx, id)
		if err != nil || found != want {
			t.Errorf("exists %s: %v, %v", id, found, err)
		}
	}
}

// Ensure that All gives the whole collection and nothing else, in ID order.
func TestCollection_All(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	for range 12 {
		if _, err := users.Insert(ctx, &User{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"ann", "users/zoe", "zed"} {
		if _, err := users.Insert(ctx, &User{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	put(t, db, "users/stranger", `{}`, jay.InCollection("Others"))
	put(t, db, "userss/1", `{}`, jay.InCollection("Userss"))
	var got []string
	for u, err := range users.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u.ID)
	}
	want := []string{"ann", "users/1-A", "users/10-A", "users/11-A", "users/12-A", "users/2-A", "users/3-A", "users/4-A", "users/5-A",
		"users/6-A", "users/7-A", "users/8-A", "users/9-A", "users/zoe", "zed"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for range users.All(ctx) {
		break // must release what it held: Close checks
	}
}

// Ensure that a document of another collection is not taken for a value.
func TestCollection_Get_OtherCollection(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	put(t, db, "users/1", `{"Name":"no user"}`, jay.InCollection("Others"))
	if _, err := users.Get(ctx, "users/1"); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("got %v, want ErrCollection", err)
	}
	if _, err := users.Get(ctx, "users/2"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if found, err := users.Exists(ctx, "users/1"); found || err != nil {
		t.Errorf("exists: %v, %v", found, err)
	}
	if _, err := users.Put(ctx, &User{ID: "users/9"}, jay.InCollection("Others")); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("InCollection of another: got %v, want ErrUsage", err)
	}
}

type (
	tagged struct {
		Key  string `jay:"id" json:"key"`
		ID   int
		Text string
	}
	hidden struct {
		ID   string `json:"-"`
		Text string
	}
	lower struct {
		Id   string
		Text string
	}
	base     struct{ ID string }
	embedded struct {
		base
		Text string
	}
	Base         struct{ ID string }
	Embedded     struct{ Base }
	byPointer    struct{ *Base }
	noID         struct{ Text string }
	numberID     struct{ ID int }
	unexportedID struct {
		id string `jay:"id"` //lint:ignore U1000 it is there to be refused
	}
	twoIDs struct {
		A string `jay:"id"`
		B string `jay:"id"`
	}
	ownString struct {
		ID   UserID
		Text string
	}
	UserID string
)

// Ensure that the ID field is found where the rules say, and that types
// without one are refused.
func TestCollectionOf_IDField(t *testing.T) {
	db := memory(t, nil)
	tag := collectionOf[tagged](t, db)
	v := &tagged{Text: "x", ID: 7}
	if _, err := tag.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	equal(t, v.Key, "taggeds/1-A")
	equal(t, body(t, db, v.Key), `{"ID":7,"Text":"x"}`)

	h := &hidden{Text: "x"}
	if _, err := collectionOf[hidden](t, db).Insert(ctx, h); err != nil {
		t.Fatal(err)
	}
	equal(t, h.ID, "hiddens/1-A")
	equal(t, body(t, db, h.ID), `{"Text":"x"}`)

	l := &lower{}
	if _, err := collectionOf[lower](t, db).Insert(ctx, l); err != nil {
		t.Fatal(err)
	}
	equal(t, l.Id, "lowers/1-A")

	e := &Embedded{}
	if _, err := collectionOf[Embedded](t, db).Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	equal(t, e.ID, "embeddeds/1-A")
	equal(t, body(t, db, e.ID), `{}`)

	o := &ownString{}
	if _, err := collectionOf[ownString](t, db).Insert(ctx, o); err != nil {
		t.Fatal(err)
	}
	equal(t, o.ID, "ownstrings/1-A")

	_, err1 := jay.CollectionOf[noID](db)
	_, err2 := jay.CollectionOf[numberID](db)
	_, err3 := jay.CollectionOf[unexportedID](db)
	_, err4 := jay.CollectionOf[twoIDs](db)
	_, err5 := jay.CollectionOf[int](db)
	_, err6 := jay.CollectionOf[struct{ ID string }](db)
	_, err7 := jay.CollectionOf[byPointer](db)
	_, err8 := jay.CollectionOf[map[string]any](db)
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8} {
		if !errors.Is(err, jay.ErrType) {
			t.Errorf("type %d: got %v, want ErrType", i+1, err)
		}
	}
	if _, err := jay.CollectionOf[embedded](db); err != nil {
		t.Errorf("an exported id of an embedded unexported struct: %v", err)
	}
}

type cyclic struct {
	ID   string
	Next *cyclic
}

type withInterface struct {
	ID   string
	Any  any
	Chan chan int `json:"-"`
}

// Ensure that values that JSON cannot say are typed errors, and that numbers
// in interfaces keep their digits.
func TestCollection_Values(t *testing.T) {
	db := memory(t, nil)
	c := &cyclic{}
	c.Next = c
	if _, err := collectionOf[cyclic](t, db).Insert(ctx, c); !errors.Is(err, jay.ErrType) {
		t.Errorf("a cycle: got %v, want ErrType", err)
	}
	values := collectionOf[withInterface](t, db)
	for _, bad := range []any{math.NaN(), make(chan int), func() {}} {
		if _, err := values.Insert(ctx, &withInterface{Any: bad}); !errors.Is(err, jay.ErrType) {
			t.Errorf("%T: got %v, want ErrType", bad, err)
		}
	}
	equal(t, body(t, db, "Raven/HiLo/cyclics"), "absent")

	v := &withInterface{Any: map[string]any{"n": json.Number("9007199254740993")}}
	if _, err := values.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	got, err := values.Get(ctx, v.ID)
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("got %+v, %v; want %+v", got, err, v)
	}
}

type blogEntry struct{ ID, Text string }

// Ensure that every convention can be replaced, for the database and for one
// collection, as 2010's blogentry/1 was named.
func TestConventions(t *testing.T) {
	db := memory(t, &jay.Options{Conventions: jay.Conventions{
		CollectionName: func(t reflect.Type) string {
			if t == reflect.TypeFor[blogEntry]() {
				return "blogentry"
			}
			return ""
		},
		Prefix:  func(collection string) string { return "my-" + collection },
		IDField: func(reflect.Type) string { return "" },
	}})
	e := &blogEntry{}
	if _, err := collectionOf[blogEntry](t, db).Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	equal(t, e.ID, "my-blogentry/1-A")
	u := &User{}
	if _, err := collectionOf[User](t, db).Insert(ctx, u); err != nil {
		t.Fatal(err)
	}
	equal(t, u.ID, "my-Users/1-A")

	text := &blogEntry{Text: ""}
	posts := collectionOf[blogEntry](t, db, jay.Named("Posts"), jay.WithPrefix("p"), jay.WithIDField("Text"))
	if _, err := posts.Insert(ctx, text); err != nil {
		t.Fatal(err)
	}
	equal(t, text.Text, "p/1-A")

	invoices := collectionOf[blogEntry](t, db, jay.Named("Invoices"),
		jay.WithIDRequest("invoices|"))
	inv := &blogEntry{}
	if _, err := invoices.Insert(ctx, inv); err != nil {
		t.Fatal(err)
	}
	equal(t, inv.ID, "invoices/1")

	none := collectionOf[blogEntry](t, db, jay.Named("Notes"),
		jay.WithIDRequest(""))
	note := &blogEntry{}
	if _, err := none.Insert(ctx, note); err != nil || !guid.MatchString(note.ID) {
		t.Errorf("no generator: got %q, %v; want a GUID", note.ID, err)
	}
	_, err := jay.CollectionOf[User](db, jay.WithIDs(func(context.Context, *blogEntry) (string, error) { return "x", nil }))
	if !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a generator of another type: got %v, want ErrUsage", err)
	}
}

// Ensure that one generator can serve the whole database, and that a
// collection can still have its own.
func TestConventions_ID(t *testing.T) {
	db := memory(t, &jay.Options{Conventions: jay.Conventions{
		ID: func(_ context.Context, collection string, v any) (string, error) {
			if u, ok := v.(*User); ok && u.Name == "refused" {
				return "", errors.New("no name for it")
			}
			return collection + "/ann", nil
		},
	}})
	users := collectionOf[User](t, db)
	u := &User{}
	if _, err := users.Insert(ctx, u); err != nil {
		t.Fatal(err)
	}
	equal(t, u.ID, "Users/ann")
	before := dump(t, db)
	if _, err := users.Insert(ctx, &User{Name: "refused"}); err == nil {
		t.Error("the generator's error is lost")
	}
	equal(t, dump(t, db), before)
	own := collectionOf[User](t, db, jay.WithIDRequest("people/"))
	v := &User{}
	if _, err := own.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	equal(t, v.ID, "people/0000000000000000002-A")
}

// unnamedWrites are the ways to write a document without naming its collection.
var unnamedWrites = map[string]func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error{
	"Put": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		_, err := db.Put(ctx, id, body, opts...)
		return err
	},
	"Replace": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		_, err := db.Replace(ctx, id, body, opts...)
		return err
	},
	"Apply": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		var b jay.Batch
		b.Put(id, []byte(`{"n":0}`), opts...)
		b.Patch(id, jay.Increment("n", 5))
		b.Replace(id, body, opts...)
		_, err := db.Apply(ctx, &b)
		return err
	},
	"a large Apply": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		var b jay.Batch
		for i := range 200 {
			b.Put(fmt.Sprint("other/", i), []byte(`{"n":1}`))
		}
		b.Put(id, body, opts...)
		_, err := db.Apply(ctx, &b)
		return err
	},
	"Update": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, id, []byte(`{"n":0}`), opts...); err != nil {
				return err
			}
			m, err := tx.Put(ctx, id, body, opts...)
			if err == nil && m.Collection != "Users" {
				err = fmt.Errorf("the transaction has %s in %s", m.ID, m.Collection)
			}
			found, other := 0, err
			for _, err := range tx.Query("Users").Where(jay.Ge("n", 2)).Iter(ctx) {
				other = err
				found++
			}
			if other == nil && found != 1 {
				other = fmt.Errorf("the transaction finds %d documents", found)
			}
			return other
		})
	},
	"BulkInsert": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		w, err := db.BulkInsert(nil)
		if err != nil {
			return err
		}
		_, err = w.Put(ctx, id, body, opts...)
		return errors.Join(err, w.Close())
	},
	"OrInsert": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		patch := []jay.PatchOption{jay.OrInsert(body), jay.MergePatch(body)}
		for _, o := range opts {
			patch = append(patch, o)
		}
		_, err := db.Patch(ctx, id, patch...)
		return err
	},
}

// Ensure that a write that names no collection keeps the one that its document is
// in, with its index entries, whatever the size of its body.
func TestPut_KeepsCollection(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for name, write := range unnamedWrites {
		for _, size := range []int{0, 20 << 10, 2 << 20} {
			t.Run(fmt.Sprint(name, " of ", size), func(t *testing.T) {
				db := memory(t, nil)
				must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}))
				put(t, db, "Users/Ann", `{"n":1}`, jay.InCollection("Users"))
				body := fmt.Sprintf(`{"n":2,"pad":%q}`, strings.Repeat("x", size))
				must(t, write(db, "users/ann", json.RawMessage(body)))

				doc, err := db.Get(ctx, "users/ann")
				must(t, err)
				equal(t, doc.Collection(), "Users")
				equal(t, len(doc.Body()), len(body))
				for n, want := range []int{0, 0, 1} {
					got, err := db.Query("Users").Where(jay.Eq("n", n)).NoScan().Count(ctx)
					must(t, err)
					equal(t, got, int64(want))
				}
				report, err := db.InspectIDs(ctx, nil)
				must(t, err)
				equal(t, len(report.Warnings), 0)
			})
		}
	}
}

// Ensure that a unique index of the collection that is kept refuses a write that
// does not name it.
func TestPut_KeepsCollection_Unique(t *testing.T) {
	for name, write := range unnamedWrites {
		if name == "Apply" {
			continue // its first write is refused
		}
		t.Run(name, func(t *testing.T) {
			db := memory(t, nil)
			must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"mail"}, Unique: true}))
			put(t, db, "users/ann", `{"n":2,"mail":"a"}`, jay.InCollection("Users"))
			put(t, db, "users/bob", `{"n":1,"mail":"b"}`, jay.InCollection("Users"))
			if err := write(db, "users/bob", []byte(`{"n":0,"mail":"a"}`)); !errors.Is(err, jay.ErrUnique) && name != "Update" {
				t.Errorf("got %v, want ErrUnique", err)
			}
			equal(t, body(t, db, "users/bob"), `{"n":1,"mail":"b"}`)
		})
	}
}

// Ensure that @empty is a name, in the document's @metadata and in InCollection: a
// document of a collection does not go there.
func TestPut_EmptyIsNamed(t *testing.T) {
	for name, write := range unnamedWrites {
		if name == "OrInsert" {
			continue // a patch leaves its document where it is, whatever is named
		}
		t.Run(name, func(t *testing.T) {
			db := memory(t, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
			put(t, db, "users/ann", `{"n":1}`, jay.InCollection("Users"))
			before := dump(t, db)
			for _, err := range []error{
				write(db, "users/ann", []byte(`{"n":2}`), jay.InCollection("@empty")),
				write(db, "users/ann", []byte(`{"n":2}`), jay.WithMetadata([]byte(`{"@collection":"@empty"}`))),
			} {
				var c *jay.CollectionError
				if name == "Update" && err != nil {
					continue // the transaction says that it has the document in @empty
				}
				if !errors.As(err, &c) || c.Given != "@empty" {
					t.Errorf("got %v, want a *CollectionError", err)
				}
			}
			equal(t, dump(t, db), before)
			equal(t, put(t, db, "users/cyd", `{}`, jay.InCollection("@empty")).Collection, "@empty")
			equal(t, put(t, db, "users/dan", `{"@metadata":{"@collection":"@empty"}}`).Collection, "@empty")
			equal(t, put(t, db, "users/eve", `{}`).Collection, "Users")
		})
	}
}

// Ensure that a batch can be applied again after its documents have been deleted:
// what was kept once is not named.
func TestApply_KeepsCollectionAnew(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/ann", `{}`, jay.InCollection("Users"))
	var b jay.Batch
	b.Put("users/ann", []byte(`{}`))
	b.Put("users/bob", []byte(`{}`), jay.InCollection("@empty"))
	for _, want := range []string{"Users", "@empty"} {
		got, err := db.Apply(ctx, &b)
		must(t, err)
		equal(t, got[0].Collection, want)
		equal(t, got[1].Collection, "@empty")
		must(t, db.Delete(ctx, "users/ann"))
	}
}

// Ensure that a transaction whose write keeps a collection is lost if the document
// is in another one when it commits, and that it is not lost by any other change.
func TestTx_KeepsCollection_Lost(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`, jay.InCollection("Users"))
	runs := 0
	update := func(meanwhile func()) error {
		runs = 0
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "a", []byte(`{"n":1}`)); err != nil {
				return err
			}
			if runs++; runs == 1 {
				meanwhile()
			}
			return nil
		}, jay.Retry(1))
	}
	must(t, update(func() { put(t, db, "a", `{"n":7}`, jay.InCollection("Users")) }))
	equal(t, runs, 1)
	must(t, update(func() {
		must(t, db.Delete(ctx, "a"))
		put(t, db, "a", `{}`, jay.InCollection("People"))
	}))
	equal(t, runs, 2)
	doc, err := db.Get(ctx, "a")
	must(t, err)
	equal(t, doc.Collection(), "People")
}

// Ensure that prefixes suggest the collections of new documents if the database has
// that stored, and only where none is named.
func TestOptions_PrefixCollections(t *testing.T) {
	db := memory(t, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
	for _, test := range []struct{ request, want string }{
		{"users/ann", "Users"}, {"users|", "Users"}, {"users/", "Users"}, {"Users/Bob", "Users"}, {"USERS/eve", "Users"},
		{"users/ann/orders/1", "Users"}, {"users", "@empty"}, {"", "@empty"}, {"ünits/1", "Ünits"},
		{"2026/x", "@empty"}, {"/x", "@empty"}, {"@x/1", "@empty"}, {"Raven/Config", "@empty"}, {"raven|", "@empty"},
		{"ORDERLINES/1", "OrderLines"}, {"a|/1", "A|"}, {"x|b|", "X|b"},
	} {
		if test.want == "OrderLines" {
			put(t, db, "OrderLines/7", `{}`, jay.InCollection("OrderLines"))
		}
		m, err := db.Put(ctx, test.request, []byte(`{}`))
		must(t, err)
		if m.Collection != test.want {
			t.Errorf("%q is in %s, want %s", test.request, m.Collection, test.want)
		}
		if got := put(t, db, m.ID, `{"n":1}`); got.Collection != test.want {
			t.Errorf("%q, written again, is in %s, want %s", test.request, got.Collection, test.want)
		}
	}
	dashed := memory(t, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn, Separator: "-"})
	equal(t, put(t, dashed, "users-1", `{}`).Collection, "Users")
	equal(t, put(t, dashed, "users/1", `{}`).Collection, "@empty")
	equal(t, put(t, memory(t, nil), "users/1", `{}`).Collection, "@empty")
}

// Ensure that PrefixCollections is kept in the database, can be changed by an Open,
// and is in Stats.
func TestOptions_PrefixCollections_Stored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, step := range []struct {
		option jay.PrefixCollections
		want   bool
	}{
		{jay.PrefixCollectionsStored, false}, {jay.PrefixCollectionsOn, true}, {jay.PrefixCollectionsIgnored, false}, {jay.PrefixCollectionsStored, true},
		{jay.PrefixCollectionsOff, false}, {jay.PrefixCollectionsStored, false},
	} {
		db, err := jay.Open(dir, &jay.Options{PrefixCollections: step.option})
		must(t, err)
		stats, err := db.Stats(ctx)
		must(t, err)
		equal(t, stats.PrefixCollections, step.want)
		equal(t, put(t, db, fmt.Sprint("users/", i), `{}`).Collection == "Users", step.want)
		must(t, db.Close())
	}
	if _, err := jay.OpenMemory(&jay.Options{PrefixCollections: 4}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("got %v, want ErrOption", err)
	}
}

func ExamplePrefixCollections() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	m, err := db.Put(ctx, "invoices|", json.RawMessage(`{"Total":12.5}`))
	fmt.Println(m.ID, m.Collection, err)
	n, err := db.Query("Invoices").Count(ctx)
	fmt.Println(n, err)
	// Output:
	// invoices/1 Invoices <nil>
	// 1 <nil>
}

// stamp has a version field.
type stamp struct {
	ID      string
	N       int
	Version string `jay:"version"`
}

// Ensure that Replace of a value without a version replaces whatever version is
// there, and nothing else, in a transaction as well.
func TestCollection_Replace_AnyVersion(t *testing.T) {
	db := memory(t, nil)
	stamps := collectionOf[stamp](t, db)
	if _, err := stamps.Replace(ctx, &stamp{ID: "stamps/1"}); !errors.Is(err, jay.ErrNotFound) || errors.Is(err, jay.ErrConflict) {
		t.Errorf("of a missing document: %v, want ErrNotFound", err)
	}
	first := &stamp{ID: "stamps/1", N: 1}
	_, err := stamps.Put(ctx, first)
	must(t, err)
	second := &stamp{ID: "stamps/1", N: 2}
	_, err = stamps.Replace(ctx, second)
	must(t, err)
	if second.Version == "" || second.Version == first.Version {
		t.Errorf("the version is %q", second.Version)
	}
	if _, err := stamps.Replace(ctx, first); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("with an old version: %v, want ErrConflict", err)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := stamps.In(tx).Replace(ctx, &stamp{ID: "stamps/1", N: 3})
		return err
	}))
	if _, err := stamps.Put(ctx, &stamp{ID: "stamps/1", N: 4}); !errors.Is(err, jay.ErrExists) {
		t.Errorf("Put without a version: %v, want ErrExists", err)
	}
	equal(t, body(t, db, "stamps/1"), `{"N":3}`)
}

// Ensure that AnyVersion makes the write of a value with a version field an upsert,
// and that the last of it and IfMatch counts.
func TestAnyVersion(t *testing.T) {
	db := memory(t, nil)
	stamps := collectionOf[stamp](t, db)
	for n := range 2 {
		_, err := stamps.Put(ctx, &stamp{ID: "stamps/1", N: n, Version: "A:99-old"}, jay.AnyVersion())
		must(t, err)
	}
	w, err := db.BulkInsert(nil)
	must(t, err)
	must(t, stamps.BulkStore(ctx, w, &stamp{ID: "stamps/1", N: 7}, jay.AnyVersion()))
	must(t, stamps.BulkStore(ctx, w, &stamp{ID: "stamps/2", N: 8}, jay.AnyVersion()))
	must(t, w.Close())
	equal(t, body(t, db, "stamps/1")+body(t, db, "stamps/2"), `{"N":7}{"N":8}`)
	if _, err := stamps.Put(ctx, &stamp{ID: "stamps/1"}, jay.AnyVersion(), jay.IfMatch("A:99-old")); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("IfMatch behind AnyVersion: %v", err)
	}
	_, err = stamps.Put(ctx, &stamp{ID: "stamps/1"}, jay.IfMatch("A:99-old"), jay.AnyVersion())
	must(t, err)
}

// Ensure that what a value holds cannot make its generator's result a request for
// another strategy, and that the value keeps its empty ID.
func TestWithIDs_SemanticOnly(t *testing.T) {
	byName := func(_ context.Context, u *User) (string, error) { return "users/" + u.Name, nil }
	whole := func(_ context.Context, u *User) (string, error) { return u.Name, nil }
	inDatabase := jay.Conventions{ID: func(ctx context.Context, _ string, v any) (string, error) { return byName(ctx, v.(*User)) }}
	for _, test := range []struct {
		name string
		opts *jay.Options
		of   []jay.CollectionOption
		user string
	}{
		{"server-side", nil, []jay.CollectionOption{jay.WithIDs(byName)}, ""},
		{"server-side by a part", nil, []jay.CollectionOption{jay.WithIDs(byName)}, "ends/"},
		{"identity", nil, []jay.CollectionOption{jay.WithIDs(byName)}, "ann|"},
		{"GUID", nil, []jay.CollectionOption{jay.WithIDs(whole)}, ""},
		{"blank", nil, []jay.CollectionOption{jay.WithIDs(whole)}, " \t"},
		{"convention", &jay.Options{Conventions: inDatabase}, nil, "ann|"},
		{"after a request", nil, []jay.CollectionOption{jay.WithIDRequest("users|"), jay.WithIDs(byName)}, "ann|"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, test.opts)
			users := collectionOf[User](t, db, test.of...)
			before := dump(t, db)
			u := &User{Name: test.user}
			_, err := users.Insert(ctx, u)
			var wrong *jay.IDError
			if !errors.As(err, &wrong) || !errors.Is(err, jay.ErrInvalidID) || u.ID != "" {
				t.Errorf("got %v and the id %q, want an *IDError", err, u.ID)
			}
			if err := db.OpenSession(jay.WithCollections(users)).Store(ctx, u); !errors.Is(err, jay.ErrInvalidID) || u.ID != "" {
				t.Errorf("in a session: got %v and the id %q, want an *IDError", err, u.ID)
			}
			equal(t, dump(t, db), before)
			good := &User{Name: "a|b/c"}
			_, err = users.Insert(ctx, good)
			must(t, err)
		})
	}
}

// Ensure that a convention can name the request for the IDs of all collections, and
// that options of a collection replace it.
func TestConventions_IDRequest(t *testing.T) {
	db := memory(t, &jay.Options{Conventions: jay.Conventions{IDRequest: func(collection string) string { return collection + "|" }}})
	for _, test := range []struct {
		opts []jay.CollectionOption
		want string
	}{
		{nil, "Users/1"},
		{[]jay.CollectionOption{jay.WithIDRequest("people|")}, "people/1"},
		{[]jay.CollectionOption{jay.WithIDs(func(context.Context, *User) (string, error) { return "users/ann", nil })}, "users/ann"},
	} {
		u := &User{}
		_, err := collectionOf[User](t, db, test.opts...).Insert(ctx, u)
		must(t, err)
		equal(t, u.ID, test.want)
	}
}

type article struct {
	ID      string
	Version string `jay:"version"`
	Title   string
	Changed time.Time      `jay:"lastModified"`
	Where   string         `jay:"collection" json:"where"`
	Meta    map[string]any `jay:"metadata"`
}

type page struct {
	ID      string
	Title   string
	Changed time.Time `json:"-" jay:"lastModified"`
	Source  string    `jay:"metadata=Source"`
	Seen    time.Time `jay:"metadata=Seen-At"`
	Tags    []string  `jay:"metadata=tags"`
}

// Ensure that fields tagged as metadata are filled by every way of reading, that custom
// metadata is written from them, and that none of it is in the body.
func TestCollection_MetadataFields(t *testing.T) {
	clock := jaytest.NewClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	articles, err := jay.CollectionOf[article](db, jay.Named("Articles"))
	must(t, err)
	a := &article{Title: "x", Changed: time.Unix(5, 0), Where: "ignored", Meta: map[string]any{"Source": "mail", "n": 1, "at": time.Unix(0, 0)}}
	meta, err := articles.Insert(ctx, a)
	must(t, err)
	equal(t, a.Changed, meta.LastModified)
	equal(t, a.Where, "Articles")
	doc, err := db.Get(ctx, a.ID)
	must(t, err)
	equal(t, string(doc.Body()), `{"Title":"x"}`)
	equal(t, string(doc.Metadata().Custom), `{"Source":"mail","at":"1970-01-01T00:00:00.0000000Z","n":1}`)
	first := a.Changed

	check := func(what string, got *article, err error) {
		t.Helper()
		must(t, err)
		if got.Title != "x" || !got.Changed.Equal(first) || got.Where != "Articles" || got.Version != a.Version || fmt.Sprint(got.Meta) != "map[Source:mail at:1970-01-01T00:00:00.0000000Z n:1]" {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	got, err := articles.Get(ctx, a.ID)
	check("Get", got, err)
	many, err := articles.GetMany(ctx, a.ID)
	check("GetMany", many[0], err)
	got, err = articles.Query().Where(jay.Eq("@metadata.Source", "mail")).First(ctx)
	check("First", got, err)
	page, err := articles.Query().Page(ctx)
	check("Page", page.Items[0], err)
	for got, err := range articles.All(ctx) {
		check("All", got, err)
	}
	got, err = jay.Load[article](ctx, db.OpenSession(jay.WithCollections(articles)), a.ID)
	check("Load", got, err)
	got, err = jay.QueryOf[article](db.OpenSession(jay.WithCollections(articles))).First(ctx)
	check("QueryOf", got, err)

	// A value without custom metadata removes it, and a write sets the time anew.
	clock.Advance(time.Minute)
	a.Meta = nil
	_, err = articles.Put(ctx, a)
	must(t, err)
	equal(t, a.Changed, first.Add(time.Minute))
	got, err = articles.Get(ctx, a.ID)
	must(t, err)
	if got.Meta != nil || !got.Changed.Equal(a.Changed) {
		t.Errorf("got %+v", got)
	}

	// In a transaction the commit sets it. An option overrides the field.
	clock.Advance(time.Minute)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		a.Meta = map[string]any{"in": "tx"}
		_, err := articles.In(tx).Put(ctx, a)
		must(t, err)
		inside, err := articles.In(tx).Get(ctx, a.ID)
		must(t, err)
		equal(t, fmt.Sprint(inside.Meta)+inside.Where, "map[in:tx]Articles")
		return nil
	}))
	equal(t, a.Changed, first.Add(2*time.Minute))
	_, err = articles.Put(ctx, a, jay.WithMetadata([]byte(`{"by":"option"}`)))
	must(t, err)
	got, err = articles.Get(ctx, a.ID)
	must(t, err)
	equal(t, fmt.Sprint(got.Meta), "map[by:option]")

	// The bulk writer writes custom metadata as well.
	w, err := db.BulkInsert(nil)
	must(t, err)
	b := &article{Title: "bulk", Meta: map[string]any{"Source": "bulk"}}
	must(t, articles.BulkStore(ctx, w, b))
	must(t, w.Close())
	got, err = articles.Get(ctx, b.ID)
	must(t, err)
	equal(t, fmt.Sprint(got.Meta), "map[Source:bulk]")
}

// Ensure that single keys have fields of their own: zero ones are no keys, and what a
// session loads keeps the keys that the type lacks.
func TestCollection_MetadataKeys(t *testing.T) {
	db := memory(t, nil)
	pages, err := jay.CollectionOf[page](db)
	must(t, err)
	p := &page{Title: "x", Source: "mail", Seen: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}
	_, err = pages.Insert(ctx, p)
	must(t, err)
	if p.Changed.IsZero() {
		t.Error("Insert leaves the time of the write zero")
	}
	custom := func() string {
		t.Helper()
		doc, err := db.Get(ctx, p.ID)
		must(t, err)
		equal(t, string(doc.Body()), `{"Title":"`+p.Title+`"}`)
		return string(doc.Metadata().Custom)
	}
	equal(t, custom(), `{"Source":"mail","Seen-At":"2026-01-02T02:04:05.0000000Z"}`)
	got, err := pages.Get(ctx, p.ID)
	must(t, err)
	if got.Source != "mail" || !got.Seen.Equal(p.Seen) || got.Tags != nil {
		t.Errorf("got %+v", got)
	}

	// Another program spells the instant otherwise, and has keys of its own.
	_, err = db.Put(ctx, p.ID, json.RawMessage(`{"Title":"x"}`), jay.InCollection("Pages"), jay.WithMetadata([]byte(`{"Seen-At":"2026-01-02T03:04:05+01:00","other":[1.50],"Source":"mail"}`)))
	must(t, err)
	s := db.OpenSession()
	e, err := jay.Load[page](ctx, s, p.ID)
	must(t, err)
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	e.Tags, e.Source = []string{"new"}, ""
	changed, err = s.HasChanges()
	must(t, err)
	equal(t, changed, true)
	m, err := s.Metadata(e)
	must(t, err)
	const want = `{"other":[1.50],"Seen-At":"2026-01-02T02:04:05.0000000Z","tags":["new"]}`
	equal(t, string(m.Custom), want)
	before := e.Changed
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), want)
	if e.Changed.Before(before) {
		t.Errorf("saved at %v, after %v", e.Changed, before)
	}
	changed, err = s.HasChanges()
	must(t, err)
	equal(t, changed, false)

	// A change of the body alone leaves the metadata as it is; SetMetadata sets the fields.
	e.Title, p.Title = "y", "y"
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), want)
	must(t, s.SetMetadata(e, []byte(`{"Source":"set","other":2}`)))
	equal(t, e.Source, "set")
	if e.Tags != nil {
		t.Errorf("got tags %v, want none", e.Tags)
	}
	e.Tags = []string{"t"}
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), `{"other":2,"Source":"set","tags":["t"]}`)
	must(t, s.SetMetadata(e, []byte(`{}`)))
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), ``)
	if err := s.SetMetadata(e, []byte(`{"Source":5}`)); err == nil || !errors.As(err, new(*jay.DecodeError)) {
		t.Errorf("got %v, want a *DecodeError", err)
	}

	// A new entity of a session.
	p = &page{Title: "z", Source: "session"}
	must(t, s.Store(ctx, p))
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), `{"Source":"session"}`)
	if p.Changed.IsZero() {
		t.Error("SaveChanges leaves the time of the write zero")
	}
}

// Ensure that custom metadata which does not fit its field is the error of one document,
// and ends nothing else.
func TestCollection_MetadataFields_Undecodable(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "pages/1", `{"Title":"x"}`, jay.InCollection("Pages"), jay.WithMetadata([]byte(`{"Source":[1]}`)))
	put(t, db, "pages/2", `{"Title":"x"}`, jay.InCollection("Pages"))
	pages, err := jay.CollectionOf[page](db)
	must(t, err)
	var decode *jay.DecodeError
	if _, err := pages.Get(ctx, "pages/1"); !errors.As(err, &decode) || decode.ID != "pages/1" || !strings.Contains(err.Error(), "@metadata.Source") {
		t.Errorf("got %v, want a *DecodeError", err)
	}
	found, err := pages.Query().All(ctx)
	if !errors.As(err, &decode) || len(found) != 1 {
		t.Errorf("got %d answers and %v, want 1 and a *DecodeError", len(found), err)
	}
}

// Ensure that a type whose tags make no sense is refused, and that a query of a member
// that holds metadata is, with the path to ask for.
func TestCollection_MetadataFields_Refused(t *testing.T) {
	db := memory(t, nil)
	for name, err := range map[string]error{
		"text for a time": kept(jay.CollectionOf[struct {
			ID string
			T  string `jay:"lastModified"`
		}](db, jay.Named("X"))),
		"two times": kept(jay.CollectionOf[struct {
			ID   string
			T, U time.Time `jay:"lastModified"`
		}](db, jay.Named("X"))),
		"number for a collection": kept(jay.CollectionOf[struct {
			ID string
			C  int `jay:"collection"`
		}](db, jay.Named("X"))),
		"list for an object": kept(jay.CollectionOf[struct {
			ID string
			M  []string `jay:"metadata"`
		}](db, jay.Named("X"))),
		"both": kept(jay.CollectionOf[struct {
			ID string
			M  map[string]string `jay:"metadata"`
			K  string            `jay:"metadata=K"`
		}](db, jay.Named("X"))),
		"the same key twice": kept(jay.CollectionOf[struct {
			ID   string
			K, L string `jay:"metadata=K"`
		}](db, jay.Named("X"))),
		"a key of Jay's": kept(jay.CollectionOf[struct {
			ID string
			K  string `jay:"metadata=@change-vector"`
		}](db, jay.Named("X"))),
		"no key": kept(jay.CollectionOf[struct {
			ID string
			K  string `jay:"metadata="`
		}](db, jay.Named("X"))),
	} {
		if !errors.Is(err, jay.ErrType) {
			t.Errorf("%s: got %v, want ErrType", name, err)
		}
	}
	articles, err := jay.CollectionOf[article](db, jay.Named("Articles"))
	must(t, err)
	for field, want := range map[string]string{"Changed": "@metadata.@last-modified", "where": "@metadata.@collection", "Meta": "@metadata.KEY", "Meta.Source": "@metadata.KEY", "Version": "@metadata.@change-vector"} {
		if _, err := articles.Query().Where(jay.Eq(field, "x")).All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrQuery with %s", field, err, want)
		}
	}
	declared, err := articles.DeclaredIndexes()
	must(t, err)
	equal(t, len(declared), 0)
}

func kept[T any](_ *jay.Collection[T], err error) error { return err }
