package jay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// person is a document with its version.
type person struct {
	ID      string
	Version string `jay:"version"`
	Name    string
}

func load[T any](t testing.TB, s *jay.Session, id string, opts ...jay.LoadOption) *T {
	t.Helper()
	v, err := jay.Load[T](ctx, s, id, opts...)
	if err != nil {
		t.Fatalf("load %q: %v", id, err)
	}
	return v
}

// bodyAt returns the body of a document, "" if it is not there.
func bodyAt(t testing.TB, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(ctx, id)
	if errors.Is(err, jay.ErrNotFound) {
		return ""
	}
	must(t, err)
	return string(doc.Body())
}

// Ensure that an ID in any spelling is one entity, and that a second entity
// under it is refused and changes nothing.
func TestSession_IdentityMap(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "Customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	ann := load[customer](t, s, "customers/1")
	equal(t, ann.ID, "Customers/1")
	for _, id := range []string{"Customers/1", "CUSTOMERS/1", "customers/1"} {
		if load[customer](t, s, id) != ann {
			t.Errorf("%s is another entity", id)
		}
		if err := s.Store(ctx, &customer{ID: id}); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("store of another entity as %s: %v", id, err)
		}
	}
	must(t, s.Store(ctx, ann)) // held already
	changed, err := s.HasChanges()
	equal(t, changed, false)
	must(t, err)

	all, err := jay.LoadMany[customer](ctx, s, []string{"customers/1", "none", "CUSTOMERS/1", "none"})
	must(t, err)
	if len(all) != 4 || all[0] != ann || all[2] != ann || all[1] != nil || all[3] != nil {
		t.Errorf("LoadMany: %v", all)
	}
	fresh, err := jay.LoadMany[customer](ctx, db.OpenSession(), []string{"customers/1", "CUSTOMERS/1"})
	must(t, err)
	if fresh[0] != fresh[1] || fresh[0] == ann {
		t.Errorf("LoadMany of one document twice: %p, %p", fresh[0], fresh[1])
	}
	none, err := jay.LoadMany[customer](ctx, s, nil)
	must(t, err)
	equal(t, len(none), 0)
}

// Ensure that IDs that differ in case are two entities where IDs are
// case-sensitive.
func TestSession_CaseSensitive(t *testing.T) {
	db := memory(t, &jay.Options{CaseSensitive: true})
	s := db.OpenSession()
	a, b := &customer{ID: "x/1", Name: "a"}, &customer{ID: "X/1", Name: "b"}
	must(t, s.Store(ctx, a))
	must(t, s.Store(ctx, b))
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, db, "x/1"), `{"Name":"a"}`)
	equal(t, bodyAt(t, db, "X/1"), `{"Name":"b"}`)
	if load[customer](t, s, "X/1") != b {
		t.Error("another entity")
	}
}

// Ensure that Store gives the ID that each strategy and convention gives: at
// once where that can be known, and after SaveChanges otherwise.
func TestSession_Store_Strategies(t *testing.T) {
	tests := []struct {
		name   string
		id     string // in the field before Store
		option jay.CollectionOption
		prefix string
		stored func(id string) bool // after Store
		saved  func(id string) bool // after SaveChanges; nil for no change
	}{
		{name: "HiLo", stored: is("customers/1-A")},
		{name: "HiLo with a prefix", prefix: "clients", stored: is("clients/1-A")},
		{name: "semantic", id: "Customers/ann", stored: is("Customers/ann")},
		{name: "blank is a GUID", id: " ", stored: isGUID},
		{name: "request for a GUID", option: jay.WithIDRequest(""), stored: isGUID},
		{name: "generator of a semantic id", option: jay.WithIDs(makes("customers/x")), stored: is("customers/x")},
		{name: "request for an identity", option: jay.WithIDRequest("customers|"), stored: is("customers|"), saved: is("customers/1")},
		{name: "identity", id: "customers|", stored: is("customers|"), saved: is("customers/1")},
		{name: "server-side", id: "customers/", stored: is("customers/"), saved: func(id string) bool {
			return strings.HasPrefix(id, "customers/000000000000000000") && strings.HasSuffix(id, "-A")
		}},
		{name: "generator is not asked for an id that is there", id: "customers/y", option: jay.WithIDs(makes("customers/x")), stored: is("customers/y")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			var opts []jay.CollectionOption
			if test.option != nil {
				opts = append(opts, test.option)
			}
			if test.prefix != "" {
				opts = append(opts, jay.WithPrefix(test.prefix))
			}
			customers, err := jay.CollectionOf[customer](db, opts...)
			must(t, err)
			s := db.OpenSession(jay.WithCollections(customers))
			v := &customer{ID: test.id, Name: "Ann"}
			must(t, s.Store(ctx, v))
			if !test.stored(v.ID) {
				t.Fatalf("after Store: %q", v.ID)
			}
			before := v.ID
			must(t, s.SaveChanges(ctx))
			if test.saved == nil && v.ID != before || test.saved != nil && !test.saved(v.ID) {
				t.Fatalf("after SaveChanges: %q", v.ID)
			}
			equal(t, bodyAt(t, db, v.ID), `{"Name":"Ann"}`)
			held, err := s.IDOf(v)
			must(t, err)
			equal(t, held, v.ID)
			if load[customer](t, s, strings.ToUpper(v.ID)) != v {
				t.Error("the session does not find its entity again")
			}
			v.Name = "Bea" // the second save is a change, not a second document
			must(t, s.SaveChanges(ctx))
			equal(t, bodyAt(t, db, v.ID), `{"Name":"Bea"}`)
			equal(t, count(t, db, "Customers"), 1)
		})
	}
}

func is(want string) func(string) bool { return func(id string) bool { return id == want } }

func isGUID(id string) bool { return len(id) == 36 && strings.Count(id, "-") == 4 }

func makes(id string) func(context.Context, *customer) (string, error) {
	return func(context.Context, *customer) (string, error) { return id, nil }
}

// count returns the number of documents in a collection, "" for all but those
// of HiLo.
func count(t testing.TB, db *jay.DB, collection string) (n int) {
	t.Helper()
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: collection}) {
		must(t, err)
		if collection != "" || doc.Collection() != "@hilo" {
			n++
		}
	}
	return n
}

// Ensure that a generator that fails, or makes what is no ID, stores nothing
// and leaves the value as it was.
func TestSession_Store_Refused(t *testing.T) {
	db := memory(t, &jay.Options{MaxIDBytes: 64})
	boom := errors.New("boom")
	failing, err := jay.CollectionOf[customer](db, jay.WithIDs(func(context.Context, *customer) (string, error) { return "", boom }))
	must(t, err)
	v := &customer{Name: "Ann"}
	s := db.OpenSession(jay.WithCollections(failing))
	if err := s.Store(ctx, v); !errors.Is(err, boom) || v.ID != "" {
		t.Errorf("failing generator: %v, %q", err, v.ID)
	}
	var nobody *customer
	noID := &struct{ Name string }{}
	for _, test := range []struct {
		name string
		v    any
		want error
	}{
		{"nil", nil, jay.ErrType},
		{"typed nil", nobody, jay.ErrType},
		{"struct", customer{}, jay.ErrType},
		{"pointer to a pointer", &nobody, jay.ErrType},
		{"map", map[string]any{}, jay.ErrType},
		{"func", func() {}, jay.ErrType},
		{"no id field", noID, jay.ErrType},
		{"unexported id field", &struct{ id string }{}, jay.ErrType},
		{"too long", &customer{ID: strings.Repeat("x", 70)}, jay.ErrInvalidID},
		{"backslash", &customer{ID: `a\b`}, jay.ErrInvalidID},
		{"control character", &customer{ID: "a\x00b"}, jay.ErrInvalidID},
	} {
		if err := s.Store(ctx, test.v); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		for verb, err := range map[string]error{"delete": s.Delete(test.v), "evict": s.Evict(test.v), "refresh": s.Refresh(ctx, test.v)} {
			if !errors.Is(err, jay.ErrUsage) {
				t.Errorf("%s of %s: %v", verb, test.name, err)
			}
		}
	}
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	must(t, s.SaveChanges(ctx))
	equal(t, count(t, db, ""), 0)
}

// Ensure that an ID field that the user has changed is refused, that nothing is
// saved, and that the session goes on when it is set right.
func TestSession_IDFieldChanged(t *testing.T) {
	for _, id := range []string{"", "customers/x", "customers|", "customers/"} {
		t.Run(fmt.Sprintf("id %q", id), func(t *testing.T) {
			db := memory(t, nil)
			s := db.OpenSession()
			v, other := &customer{ID: id, Name: "Ann"}, &customer{Name: "other"}
			must(t, s.Store(ctx, v))
			must(t, s.Store(ctx, other))
			given := v.ID
			v.ID = "customers/mine"
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUsage) {
				t.Fatalf("new: %v", err)
			}
			if _, err := s.HasChanges(); !errors.Is(err, jay.ErrUsage) {
				t.Errorf("HasChanges: %v", err)
			}
			equal(t, count(t, db, ""), 0)
			v.ID = given
			must(t, s.SaveChanges(ctx))
			saved := v.ID
			v.ID = strings.ToUpper(saved)
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUsage) {
				t.Errorf("saved: %v", err)
			}
			v.ID = saved
			must(t, s.SaveChanges(ctx))
			equal(t, count(t, db, ""), 2)
		})
	}
}

// Ensure that an identity never takes the ID that another entity of the same
// save has by name.
func TestSession_Identity_BesideItsOwnNumber(t *testing.T) {
	db := memory(t, nil)
	s := db.OpenSession()
	made, named := &customer{ID: "customers|", Name: "made"}, &customer{ID: "customers/1", Name: "named"}
	must(t, s.Store(ctx, made))
	must(t, s.Store(ctx, named))
	must(t, s.SaveChanges(ctx))
	if made.ID == named.ID {
		t.Fatalf("both are %s", made.ID)
	}
	equal(t, bodyAt(t, db, named.ID), `{"Name":"named"}`)
	equal(t, bodyAt(t, db, made.ID), `{"Name":"made"}`)
}

// Ensure that Delete, DeleteID, Evict and Clear do what they say, each on new,
// loaded and changed entities.
func TestSession_Forgetting(t *testing.T) {
	setup := func(t *testing.T) (*jay.DB, *jay.Session, *customer, *customer) {
		db := memory(t, nil)
		put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
		s := db.OpenSession()
		fresh := &customer{Name: "new"}
		must(t, s.Store(ctx, fresh))
		return db, s, load[customer](t, s, "customers/1"), fresh
	}
	t.Run("Delete", func(t *testing.T) {
		db, s, ann, fresh := setup(t)
		ann.Name = "changed"
		must(t, s.Delete(ann))
		must(t, s.Delete(fresh)) // never saved: only forgotten
		if err := s.Delete(ann); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("twice: %v", err)
		}
		equal(t, s.Holds("customers/1"), false)
		if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("load: %v", err)
		}
		equal(t, bodyAt(t, db, "customers/1"), `{"Name":"Ann"}`)
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 0)
		if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("load afterwards: %v", err)
		}
		must(t, s.SaveChanges(ctx))
	})
	t.Run("DeleteID", func(t *testing.T) {
		db, s, _, fresh := setup(t)
		must(t, s.DeleteID("CUSTOMERS/1"))
		must(t, s.DeleteID(fresh.ID))
		must(t, s.DeleteID("none"))
		must(t, s.DeleteID("none"))
		if err := s.DeleteID(""); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("empty id: %v", err)
		}
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 0)
	})
	t.Run("Evict", func(t *testing.T) {
		db, s, ann, fresh := setup(t)
		ann.Name = "changed"
		must(t, s.Evict(ann))
		must(t, s.Evict(fresh))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "customers/1"), `{"Name":"Ann"}`)
		equal(t, count(t, db, ""), 1)
		if again := load[customer](t, s, "customers/1"); again == ann || again.Name != "Ann" {
			t.Errorf("loaded again: %v", again)
		}
		must(t, s.Store(ctx, fresh)) // as a new one, under the ID that it has
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 2)
	})
	t.Run("Evict takes a Delete back", func(t *testing.T) {
		db, s, ann, _ := setup(t)
		must(t, s.Delete(ann))
		must(t, s.Evict(ann))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "customers/1"), `{"Name":"Ann"}`)
		if load[customer](t, s, "customers/1").Name != "Ann" {
			t.Error("not loaded")
		}
	})
	t.Run("Clear", func(t *testing.T) {
		db, s, ann, fresh := setup(t)
		must(t, s.Delete(ann))
		s.Clear()
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 1)
		if err := s.Evict(fresh); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("after Clear: %v", err)
		}
	})
}

// Ensure that a document can be deleted and stored anew, in one save, under one
// ID: with and without versions.
func TestSession_DeleteAndStore(t *testing.T) {
	for _, optimistic := range []bool{false, true} {
		db := memory(t, nil)
		put(t, db, "people/1", `{"Name":"Ann"}`, jay.InCollection("People"))
		var opts []jay.SessionOption
		if optimistic {
			opts = append(opts, jay.OptimisticConcurrency())
		}
		s := db.OpenSession(opts...)
		ann := load[person](t, s, "people/1")
		must(t, s.Delete(ann))
		bea := &person{ID: "PEOPLE/1", Name: "Bea"}
		must(t, s.Store(ctx, bea))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "people/1"), `{"Name":"Bea"}`)
		// The same value again, which still has the version of before.
		must(t, s.Delete(bea))
		bea.Name = "Cyd"
		must(t, s.Store(ctx, bea))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "people/1"), `{"Name":"Cyd"}`)
		bea.Name = "Dee"
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "people/1"), `{"Name":"Dee"}`)
	}
}

// Ensure that Refresh takes over what is there, the spelling of the ID
// included, and that the session goes on from it.
func TestSession_Refresh(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	s := db.OpenSession(jay.OptimisticConcurrency())
	ann := load[customer](t, s, "customers/1")
	ann.Name = "mine"
	put(t, db, "Customers/1", `{"Name":"theirs"}`, jay.InCollection("Customers"))
	must(t, s.Refresh(ctx, ann))
	equal(t, *ann, customer{"Customers/1", "theirs"})
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	ann.Name = "mine"
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, db, "customers/1"), `{"Name":"mine"}`)

	must(t, db.Delete(ctx, "customers/1"))
	ann.Name = "kept"
	if err := s.Refresh(ctx, ann); !errors.Is(err, jay.ErrNotFound) || ann.Name != "kept" {
		t.Errorf("refresh of what is gone: %v, %v", err, ann)
	}
	put(t, db, "customers/1", `{}`, jay.InCollection("Others"))
	if err := s.Refresh(ctx, ann); !errors.Is(err, jay.ErrCollection) || ann.Name != "kept" {
		t.Errorf("refresh from another collection: %v, %v", err, ann)
	}
	for _, v := range []*customer{{ID: "customers|"}, {}} {
		must(t, s.Store(ctx, v))
		if err := s.Refresh(ctx, v); err == nil {
			t.Errorf("refresh of a new entity %q worked", v.ID)
		}
	}
}

// Ensure that a Load names what is wrong, and that the session holds nothing
// afterwards that it did not hold before.
func TestSession_Load_Refused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	put(t, db, "customers/2", `{"Name":7}`, jay.InCollection("Customers"))
	put(t, db, "orders/1", `{"Customer":"customers/1"}`, jay.InCollection("Orders"))
	s := db.OpenSession()
	for _, test := range []struct {
		ids  []string
		want error
	}{
		{[]string{"customers/1", "orders/1"}, jay.ErrCollection},
		{[]string{"customers/1", "customers/2"}, nil},
	} {
		if _, err := jay.LoadMany[customer](ctx, s, test.ids); err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%v: %v", test.ids, err)
		}
		equal(t, s.Holds("customers/1"), false)
	}
	// The same, if one of them came along before.
	load[order](t, s, "orders/1", jay.Include("Customer"))
	if _, err := jay.LoadMany[order](ctx, s, []string{"orders/1", "customers/1"}); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("included: %v", err)
	}
	equal(t, load[customer](t, s, "customers/1").Name, "Ann")
	if _, err := jay.LoadMany[order](ctx, s, []string{"customers/1"}); !errors.Is(err, jay.ErrType) {
		t.Errorf("held as another type: %v", err)
	}
	for _, id := range []string{"", "users/", "users|", " ", strings.Repeat("x", 5000), "a\x00"} {
		if _, err := jay.Load[customer](ctx, s, id); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("load %.20q: %v", id, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, id := range []string{"customers/1", "customers/3"} {
		if _, err := jay.Load[customer](cancelled, s, id); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled load of %s: %v", id, err)
		}
	}
	if _, err := jay.Load[int](ctx, s, "customers/1"); !errors.Is(err, jay.ErrType) {
		t.Errorf("load of a number: %v", err)
	}
	if _, err := jay.Load[customer](ctx, s, "customers/1", jay.Include("a..b")); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("wrong include: %v", err)
	}
}

// Ensure that includes reach every place that a path can name, and pass over
// what is no ID of a document.
func TestSession_Include_Paths(t *testing.T) {
	const body = `{"Customer":"c/1","Address":{"Owner":"c/2","Deep":{"x":["c/3",["c/9"],{"y":"c/9"},null,7,"","none"]}},` +
		`"Items":[{"productId":"c/4","Tags":["c/5","c/6"]},{"productId":7},{},null,{"productId":"c/\u0037"}],"dot.ted":"c/8","Same":"C/1"}`
	tests := map[string][]string{
		"Customer":                {"c/1"},
		"Address.Owner":           {"c/2"},
		"Address.Deep.x":          {"c/3"},
		"Address.Deep.x[]":        {"c/3", "c/9"},
		"Address.Deep.x[0]":       {"c/3"},
		"Items[].productId":       {"c/4", "c/7"},
		"Items.productId":         {"c/4", "c/7"},
		"Items[0].Tags":           {"c/5", "c/6"},
		"Items[].Tags[1]":         {"c/6"},
		"'dot.ted'":               {"c/8"},
		"Address":                 nil,
		"Nothing.At.All[].Is":     nil,
		"Customer.deeper":         nil,
		"Customer, Address.Owner": {"c/1", "c/2"},
	}
	for paths, want := range tests {
		db := memory(t, nil)
		for i := range 10 {
			put(t, db, fmt.Sprintf("c/%d", i), `{}`)
		}
		put(t, db, "orders/1", body, jay.InCollection("Struct3s"))
		s := db.OpenSession()
		load[struct3](t, s, "orders/1", jay.Include(strings.Split(paths, ", ")...))
		var got []string
		for i := range 10 {
			if id := fmt.Sprintf("c/%d", i); s.Holds(id) {
				got = append(got, id)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", paths, got, want)
		}
	}
}

type struct3 struct{ ID string }

// Ensure that documents that name each other, and are loaded together, stay
// one entity each.
func TestSession_Include_EachOther(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"customers/2"}`, jay.InCollection("Customers"))
	put(t, db, "customers/2", `{"Name":"customers/1"}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	both, err := jay.LoadMany[customer](ctx, s, []string{"customers/1", "customers/2"}, jay.Include("Name"))
	must(t, err)
	both[0].Name, both[1].Name = "a", "b"
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, db, "customers/1")+bodyAt(t, db, "customers/2"), `{"Name":"a"}{"Name":"b"}`)
	// An include of an entity that is held, and of one that will be deleted.
	put(t, db, "customers/3", `{"Name":"customers/1"}`, jay.InCollection("Customers"))
	put(t, db, "customers/4", `{"Name":"customers/2"}`, jay.InCollection("Customers"))
	must(t, s.Delete(both[1]))
	load[customer](t, s, "customers/3", jay.Include("Name"))
	load[customer](t, s, "customers/4", jay.Include("Name"))
	if load[customer](t, s, "customers/1") != both[0] {
		t.Error("an include replaced an entity")
	}
	equal(t, s.Holds("customers/2"), false)
	// Includes of what is held already are read, too.
	put(t, db, "customers/5", `{"Name":"customers/6"}`, jay.InCollection("Customers"))
	put(t, db, "customers/6", `{"Name":""}`, jay.InCollection("Customers"))
	load[customer](t, s, "customers/5")
	load[customer](t, s, "customers/5", jay.Include("Name"))
	equal(t, s.Holds("customers/6"), true)
}

// Ensure that one load brings at most 10,000 documents along.
func TestSession_Include_TooMany(t *testing.T) {
	db := memory(t, nil)
	list := func(n int) string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf(`"c/%d"`, i)
		}
		return `{"Lines":[` + strings.Join(ids, ",") + `]}`
	}
	put(t, db, "orders/1", list(10_001), jay.InCollection("Struct3s"))
	put(t, db, "orders/2", list(10_000), jay.InCollection("Struct3s"))
	s := db.OpenSession()
	if _, err := jay.Load[struct3](ctx, s, "orders/1", jay.Include("Lines")); !errors.Is(err, jay.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	equal(t, s.Holds("orders/1"), false)
	load[struct3](t, s, "orders/2", jay.Include("Lines"))
}
