package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/jaydb/jay"
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
