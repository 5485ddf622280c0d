package catalog_test

// This file puts declarations into the store that this version does not write.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// withUnknownKind returns a directory with a database in which an index that was declared as
// an ordered one is of a kind that is not known, and another one of the collection is ordered.
func withUnknownKind(t *testing.T) (dir string) {
	t.Helper()
	ctx := context.Background()
	dir = t.TempDir()
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndexes(ctx, "Users", []jay.Index{{Name: "sound", Fields: []string{"Name"}}, {Name: "age", Fields: []string{"Age"}}}))
	jaytest.Put(t, db, "users/1", `{"Name":"Ann","Age":40}`, jay.InCollection("Users"))
	jaytest.Put(t, db, "things/1", `{"Name":"Ann"}`, jay.InCollection("Things"))
	checks.EditIndexes(db, func(record []byte) []byte {
		return []byte(strings.Replace(string(record), `"name":"sound",`, `"name":"sound","kind":"phonetic",`, 1))
	})
	jaytest.Must(t, db.Close())
	return dir
}

// unknownKind fails the test unless err names the kind and the index.
func unknownKind(t *testing.T, what string, err error) {
	t.Helper()
	var unknown *jay.KindError
	want := jay.KindError{Index: "sound", Collection: "Users", Kind: "phonetic"}
	if what == "declare" {
		want.Known = "ends, groups, places, text, vectors"
	}
	if !errors.As(err, &unknown) || *unknown != want || !errors.Is(err, jay.ErrIndex) {
		t.Errorf("%s: got %v", what, err)
	}
}

// Ensure that a database with an index of an unknown kind can be read, verified and queried by its
// other indexes, that each write into the collection is refused with the name of the kind, and that
// other collections are not concerned.
func TestKind_Unknown(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Open(t, withUnknownKind(t), nil)
	defer jaytest.Close(t, db)

	jaytest.Equal(t, jaytest.Body(t, db, "users/1"), `{"Name":"Ann","Age":40}`)
	jaytest.Equal(t, strings.Join(jaytest.Rows(t, db, "from Users where Name = 'Ann' select Age"), " "), `{"Age":40}`)
	jaytest.Equal(t, strings.Join(jaytest.Rows(t, db, "from Users where Age = 40 select Name"), " "), `{"Name":"Ann"}`)
	x, err := db.Query("Users").Where(jay.Eq("Age", 40)).Explain(ctx)
	if err != nil || !strings.Contains(fmt.Sprint(x), `index "age"`) {
		t.Errorf("got %v, %v", x, err)
	}

	_, err = db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Bob"}`), jay.InCollection("Users"))
	unknownKind(t, "replace", err)
	_, err = db.Put(ctx, "users/2", json.RawMessage(`{"Name":"Bob"}`), jay.InCollection("Users"))
	unknownKind(t, "insert", err)
	_, err = db.Patch(ctx, "users/1", jay.Set("Name", "Bob"))
	unknownKind(t, "patch", err)
	_, err = db.Attachments("users/1").Put(ctx, "a", strings.NewReader("x"))
	unknownKind(t, "attach", err)
	unknownKind(t, "delete", db.Delete(ctx, "users/1"))
	unknownKind(t, "declare", db.EnsureIndex(ctx, "Users", jay.Index{Name: "sound", Fields: []string{"Name"}, Kind: "phonetic"}))
	jaytest.Put(t, db, "things/1", `{"Name":"Bob"}`, jay.InCollection("Things"))
	jaytest.Equal(t, jaytest.Body(t, db, "users/1"), `{"Name":"Ann","Age":40}`)

	r, err := db.Verify(ctx, nil)
	if err != nil || r.Found != 0 || len(r.NotCompared) != 1 || !strings.Contains(r.NotCompared[0], `"phonetic"`) {
		t.Errorf("got %d damages, not compared %q, %v", r.Found, r.NotCompared, err)
	}
}

// Ensure that an index of an unknown kind is dropped with its entries, after which documents are
// written again, and that a hint for it says why it is not used.
func TestKind_UnknownDropped(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Open(t, withUnknownKind(t), nil)
	defer jaytest.Close(t, db)
	_, err := db.Query("Users").UseIndex("sound").Where(jay.Eq("Name", "Ann")).All(ctx)
	if !errors.Is(err, jay.ErrNoIndex) || !strings.Contains(err.Error(), `"phonetic"`) {
		t.Errorf("got %v", err)
	}
	before, err := checks.IndexKeys(db)
	jaytest.Must(t, err)
	jaytest.Must(t, db.DropIndex(ctx, "Users", "sound"))
	after, err := checks.IndexKeys(db)
	jaytest.Must(t, err)
	jaytest.Equal(t, before-after, 1)
	jaytest.Put(t, db, "users/1", `{"Name":"Bob","Age":41}`, jay.InCollection("Users"))
	jaytest.Must(t, checks.Indexes(db))
}

// Ensure that a repair leaves an index of an unknown kind out, and says so.
func TestKind_UnknownRepaired(t *testing.T) {
	ctx := context.Background()
	dir, to := withUnknownKind(t), t.TempDir()+"/repaired"
	r, err := jay.Repair(ctx, dir, to, nil, nil)
	jaytest.Must(t, err)
	if len(r.Lost) != 1 || !strings.Contains(r.Lost[0].Why, `"phonetic"`) {
		t.Errorf("lost %v", r.Lost)
	}
	db := jaytest.Open(t, to, nil)
	defer jaytest.Close(t, db)
	list, err := db.Indexes(ctx, "")
	if err != nil || len(list) != 1 || list[0].Name != "age" {
		t.Errorf("got %v, %v", list, err)
	}
	jaytest.Put(t, db, "users/2", `{"Name":"Bob","Age":41}`, jay.InCollection("Users"))
}

// Ensure that a stored option that the kind does not have, as a newer version may have written, leaves the
// database readable, refuses each write into the collection, is named by Verify and by a hint, and that a repair leaves
// the index out.
func TestOptions_Unknown(t *testing.T) {
	ctx := context.Background()
	dir, to := t.TempDir(), t.TempDir()+"/repaired"
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"Name"}}))
	jaytest.Put(t, db, "users/1", `{"Name":"Ann"}`, jay.InCollection("Users"))
	checks.EditIndexes(db, func(record []byte) []byte {
		return []byte(strings.Replace(string(record), `"name":"name",`, `"name":"name","options":{"collation":"sv"},`, 1))
	})
	jaytest.Must(t, db.Close())

	db = jaytest.Open(t, dir, nil)
	want := jay.OptionError{Index: "name", Collection: "Users", Option: "collation", Value: "sv", Rule: "the options of the kind are strict", Unknown: true}
	refused := func(what string, err error) {
		t.Helper()
		var option *jay.OptionError
		if !errors.As(err, &option) || *option != want || !errors.Is(err, jay.ErrIndex) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	_, err := db.Put(ctx, "users/2", json.RawMessage(`{}`), jay.InCollection("Users"))
	refused("insert", err)
	refused("delete", db.Delete(ctx, "users/1"))
	jaytest.Equal(t, strings.Join(jaytest.Rows(t, db, "from Users where Name = 'Ann' select Name"), " "), `{"Name":"Ann"}`)
	_, err = db.Query("Users").UseIndex("name").Where(jay.Eq("Name", "Ann")).All(ctx)
	if !errors.Is(err, jay.ErrNoIndex) || !strings.Contains(err.Error(), `"collation"`) {
		t.Errorf("a hint: got %v", err)
	}
	r, err := db.Verify(ctx, nil)
	if err != nil || r.Found != 0 || len(r.NotCompared) != 1 || !strings.Contains(r.NotCompared[0], `"collation"`) {
		t.Errorf("got %d damages, not compared %q, %v", r.Found, r.NotCompared, err)
	}
	jaytest.Must(t, db.Close())

	repaired, err := jay.Repair(ctx, dir, to, nil, nil)
	jaytest.Must(t, err)
	if len(repaired.Lost) != 1 || !strings.Contains(repaired.Lost[0].Why, `"collation"`) {
		t.Errorf("lost %v", repaired.Lost)
	}
}

// Ensure that options are bounded, each with an error that names the option, and that one that must be given is
// asked for.
func TestOptions_Bounds(t *testing.T) {
	ctx := context.Background()
	kind := catalog.Kind{Open: func(*catalog.Index) (catalog.Keeper, error) { return nil, errors.New("not reached") }}
	long := strings.Repeat("x", catalog.MaxOption)
	for i := range catalog.MaxOptions + 1 {
		kind.Options = append(kind.Options, catalog.OneOf(fmt.Sprintf("o%02d", i), "default", long))
	}
	kind.Options = append(kind.Options, catalog.Option{Name: "size", Rule: "a size", Check: func(value string) (string, bool) { return value, value == "7" }})
	defer catalog.Register("chosen", kind)()
	db := jaytest.Memory(t, nil)

	all := make(map[string]string)
	for i := range catalog.MaxOptions + 1 {
		all[fmt.Sprintf("o%02d", i)] = long
	}
	for _, test := range []struct {
		options map[string]string
		option  string
		rule    string
	}{
		{nil, "size", "must be given"},
		{map[string]string{"size": "8"}, "size", "a size"},
		{map[string]string{"size": "7", "o00": long + "x"}, "o00", "1000 bytes"},
		{map[string]string{"size": "7", "o00": "\xff"}, "o00", "UTF-8"},
		{map[string]string{"size": "7", "O00": "default"}, "O00", "the options of the kind are o00, "},
		{all, fmt.Sprintf("o%02d", catalog.MaxOptions), "at most 16"},
	} {
		err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}, Kind: "chosen", Options: test.options})
		var option *jay.OptionError
		if !errors.As(err, &option) || option.Option != test.option || !strings.Contains(option.Rule, test.rule) {
			t.Errorf("%.100v: got %.300v", test.options, err)
		}
	}
	delete(all, "o00")
	all["size"], all["o01"] = "7", "default"
	err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}, Kind: "chosen", Options: all})
	if err == nil || !strings.Contains(err.Error(), "at most 16") {
		t.Errorf("17 options: got %.300v", err)
	}
	delete(all, "o01")
	err = db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}, Kind: "chosen", Options: all})
	if err == nil || !strings.Contains(err.Error(), "not reached") {
		t.Errorf("16 options: got %.300v", err)
	}
}

// Ensure that a declaration with a misspelled kind or option is refused with the names that there are, and with the
// one that was perhaps meant.
func TestKind_Misspelled(t *testing.T) {
	db := jaytest.Memory(t, nil)
	for _, test := range []struct {
		declared jay.Index
		want     string
	}{
		{jay.Index{Fields: []string{"A"}, Kind: "group"}, `index of Users is of kind "group", which this version does not know: the kinds are ends, groups, places, text, vectors, and "" for an ordered index: did you mean "groups"?`},
		{jay.Index{Name: "a", Fields: []string{"A"}, Kind: "phonetic"}, `index "a" of Users is of kind "phonetic", which this version does not know: the kinds are ends, groups, places, text, vectors, and "" for an ordered index`},
		{jay.Index{Fields: []string{"A"}, Kind: "groups", Options: map[string]string{"sum": "Cents"}}, `index "A" of Users, of kind "groups": there is no option "sum": the options of the kind are sums, each, function, only, strict: did you mean "sums"?`},
		{jay.Index{Fields: []string{"A"}, Options: map[string]string{"analyzer": "english"}}, `index "A" of Users: there is no option "analyzer": the options of the kind are strict`},
	} {
		err := db.EnsureIndex(context.Background(), "Users", test.declared)
		if err == nil || !strings.HasSuffix(err.Error(), "jay: "+test.want) {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
}
