package jay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a replacement that a loss of power cuts, at any sync, ends with the new
// index and no entry of the old one once it is asked for again, and that whatever
// is there after the crash is right.
func TestReplaceIndex_Crash_AtAnySync(t *testing.T) {
	defer checks.SetBuildChunks(7, 7)()
	text, instants := jay.Index{Name: "At", Fields: []string{"At"}}, jay.Index{Name: "At", Fields: []string{"At as date"}}
	found := map[string]int{}
	for at := 0; ; at++ {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		for i := range 30 {
			put(t, db, fmt.Sprintf("events/%02d", i), fmt.Sprintf(`{"At":%q}`, time.Date(2026, 1, 1, i, 0, 0, 0, time.FixedZone("", 3600)).Format(time.RFC3339)), jay.InCollection("Events"))
		}
		must(t, db.EnsureIndex(ctx, "Events", text))

		random := rand.New(rand.NewPCG(uint64(at), 1))
		cut := disk.CutPower(at, []int{0, 50, 100}[at%3], random)
		must(t, db.EnsureIndex(ctx, "Events", instants, jay.ReplaceIndex()))
		if err := db.EnsureIndex(ctx, "Events", text); !errors.Is(err, jay.ErrIndexExists) {
			t.Errorf("the old one, without ReplaceIndex: %v", err)
		}
		disk.OnSync(func() {})
		closeDB(t, db)
		if !cut.Happened() { // there are fewer syncs
			if at < 3 {
				t.Errorf("%d syncs: the test does not test it", at)
			}
			break
		}

		db = onDisk(t, cut.Disk(), jay.Options{})
		infos, err := db.Indexes(ctx, "Events")
		must(t, err)
		for _, info := range infos {
			found[fmt.Sprint(info.Fields, info.State)]++
		}
		q := db.Query("Events").Where(jay.Ge("At", time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)))
		if n, err := q.Count(ctx); n != 17 || err != nil {
			t.Errorf("sync %d: %d answers, %v, want 17", at, n, err)
		}
		checks.WaitIndexTasks(db)
		if err := checks.Indexes(db); err != nil {
			t.Errorf("sync %d: %v", at, err)
		}
		must(t, db.EnsureIndex(ctx, "Events", instants, jay.ReplaceIndex()))
		infos, err = db.Indexes(ctx, "Events")
		if err != nil || len(infos) != 1 || infos[0].State != jay.IndexReady || infos[0].Fields[0] != "At as date" {
			t.Errorf("sync %d: %+v, %v", at, infos, err)
		}
		if err := checks.Indexes(db); err != nil {
			t.Errorf("sync %d: %v", at, err)
		}
		if n, err := q.NoScan().Count(ctx); n != 17 || err != nil {
			t.Errorf("sync %d: %d answers, %v, want 17", at, n, err)
		}
		closeDB(t, db)
	}
	t.Logf("found after crashes: %v", found) // TestReplaceIndex_Crash_InTheMiddle has the states between two syncs
}

// Ensure that a tag that changes rebuilds its index under the same name, and that an
// index of times made as text by hand becomes one of instants.
func TestCollection_EnsureIndexes_ChangedTag(t *testing.T) {
	type event struct {
		ID   string
		At   time.Time   `jay:"index"`
		Seen []time.Time `jay:"index"`
		Note string
	}
	db := memory(t, nil)
	events := collectionOf[event](t, db)
	must(t, db.EnsureIndex(ctx, events.Name(), jay.Index{Fields: []string{"At"}})) // as it was declared before there were instants
	must(t, db.EnsureIndex(ctx, events.Name(), jay.Index{Name: "Seen", Fields: []string{"-Note"}, Unique: true}))
	_, err := events.Put(ctx, &event{At: time.Now(), Note: "a"})
	must(t, err)
	for range 2 {
		must(t, events.EnsureIndexes(ctx))
		infos, err := db.Indexes(ctx, events.Name())
		must(t, err)
		got := ""
		for _, info := range infos {
			got += fmt.Sprintf("%s %v %v; ", info.Name, info.Fields, info.State)
		}
		if want := "At [At as date] ready; Seen [Seen as date] ready; "; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
	}
}

type taggedAddress struct {
	City string `json:"city" jay:"index=place"`
	Zip  string `jay:"index=place,desc"`
}

type taggedUser struct {
	ID    string
	Email string          `jay:"unique"`
	Born  time.Time       `json:",omitempty" jay:"index,desc,index=byNameAndBirth"`
	Name  string          `jay:"index=byNameAndBirth"`
	Tags  []string        `jay:"index"`
	Homes []taggedAddress `json:"homes.all"`
	Boss  *taggedUser
}

// Ensure that tags declare indexes, and that queries use them.
func TestCollection_EnsureIndexes(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[taggedUser](t, db)
	declared, err := users.DeclaredIndexes()
	must(t, err)
	want := `[{Email [Email] true   map[]} {-Born [-Born as date] false   map[]} {byNameAndBirth [Born as date Name] false   map[]} {Tags [Tags] false   map[]} {place ['homes.all'.city -'homes.all'.Zip] false   map[]}]`
	if got := fmt.Sprint(declared); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for range 2 {
		must(t, users.EnsureIndexes(ctx))
	}
	if list, err := db.Indexes(ctx, users.Name()); err != nil || len(list) != 5 {
		t.Errorf("got %v, %v", list, err)
	}
	_, err = users.Insert(ctx, &taggedUser{Email: "a", Tags: []string{"x", "y"}})
	must(t, err)
	if _, err := users.Insert(ctx, &taggedUser{Email: "a"}); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("second a: %v", err)
	}
	if n, err := users.Query().Where(jay.Eq("Tags", "y")).NoScan().Count(ctx); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}

	type both struct { // "index,unique" is one index
		ID   string
		Name string `jay:"index,unique"`
		Size int    `jay:"unique,desc,index"`
	}
	declared, err = collectionOf[both](t, db).DeclaredIndexes()
	must(t, err)
	if got, want := fmt.Sprint(declared), `[{Name [Name] true   map[]} {-Size [-Size] true   map[]} {Size [Size] false   map[]}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	type misspelt struct {
		ID   string
		Name string `jay:"indexed"`
	}
	if _, err := jay.CollectionOf[misspelt](db); !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), `field Name: "indexed"`) {
		t.Errorf("a tag that means nothing: %v", err)
	}
	if err := db.OpenSession().Store(ctx, new(misspelt)); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("a tag that means nothing, of an entity: %v", err)
	}
}

// Ensure that an index on a field which the body of no document has is refused: it was made, and
// stayed empty.
func TestDeclaredIndexes_NothingToIndex(t *testing.T) {
	db := memory(t, nil)
	refused := func(err error, field string) {
		t.Helper()
		if !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), "field "+field) {
			t.Errorf("got %v, want an ErrIndex of the field %s", err, field)
		}
	}
	type identified struct {
		ID string `jay:"unique"`
	}
	_, err := jay.CollectionOf[identified](db)
	refused(err, "ID")
	type renamed struct {
		ID string `json:"key" jay:"index"`
	}
	_, err = jay.CollectionOf[renamed](db)
	refused(err, "ID")
	type leftOut struct {
		ID  string
		Tag string `json:"-" jay:"index"`
	}
	_, err = jay.CollectionOf[leftOut](db)
	refused(err, "Tag")
	type hidden struct {
		ID  string
		tag string `jay:"index"`
	}
	_ = hidden{}.tag
	_, err = jay.CollectionOf[hidden](db)
	refused(err, "tag")
	type Inner struct {
		ID string `jay:"index"`
	}
	type nested struct {
		ID    string
		Inner Inner
	}
	declared, err := collectionOf[nested](t, db).DeclaredIndexes()
	must(t, err)
	var names []string
	for _, ix := range declared {
		names = append(names, ix.Fields...)
	}
	equal(t, fmt.Sprint(names), "[Inner.ID]")
}

// Ensure that a tag whose words are not separated by commas is refused: everything after the first
// "index=" became the name of one index, and nothing told of it.
func TestDeclaredIndexes_NameGoesOn(t *testing.T) {
	db := memory(t, nil)
	refused := func(err error, tag string) {
		t.Helper()
		if !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), fmt.Sprintf("%q", tag)) {
			t.Errorf("%s: got %v, want an ErrIndex that has the tag", tag, err)
		}
	}
	type semicolon struct {
		ID  string
		Tag string `jay:"index=byTag;index=byDate"`
	}
	_, err := jay.CollectionOf[semicolon](db)
	refused(err, "index=byTag;index=byDate")
	type blank struct {
		ID  string
		Tag string `jay:"index,unique=byTag desc"`
	}
	_, err = jay.CollectionOf[blank](db)
	refused(err, "unique=byTag desc")
	type twice struct {
		ID  string
		Tag string `jay:"index=byTag=byDate"`
	}
	_, err = jay.CollectionOf[twice](db)
	refused(err, "index=byTag=byDate")
	type nameless struct {
		ID  string
		Tag string `jay:"index="`
	}
	_, err = jay.CollectionOf[nameless](db)
	refused(err, "index=")
	type descending struct {
		ID  string
		Tag string `jay:"index=byTag,desc=true"`
	}
	_, err = jay.CollectionOf[descending](db)
	refused(err, "desc=true")
	type twoWords struct {
		ID string `jay:"id,index"`
	}
	_, err = jay.CollectionOf[twoWords](db)
	refused(err, "id,index")
	type sameTwice struct {
		ID  string
		Tag string `jay:"index=byTag,index=byTag"`
	}
	if _, err = jay.CollectionOf[sameTwice](db); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("one field twice in an index: %v", err)
	}

	type good struct {
		ID  string
		Tag string `jay:"index = by-Tag/2.ä , desc"`
	}
	declared, err := collectionOf[good](t, db).DeclaredIndexes()
	must(t, err)
	if got, want := fmt.Sprint(declared), `[{by-Tag/2.ä [-Tag] false   map[]}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensure that an index of a typed collection is refused if it names a member that the type lacks, and made if it is right.
func TestCollection_EnsureIndex(t *testing.T) {
	type line struct{ Product string }
	type loan struct {
		ID       string
		Copy     string `json:"copy"`
		Returned bool   `json:"returned"`
		Lines    []line
	}
	db := memory(t, nil)
	loans := collectionOf[loan](t, db)
	for _, test := range []struct {
		name  string
		index jay.Index
		want  string
	}{
		{"field", jay.Index{Fields: []string{"Copy"}}, `field "Copy": the JSON of jay_test.loan has no member "Copy": did you mean "copy"?`},
		{"descending", jay.Index{Fields: []string{"-Copy as date"}}, `no member "Copy"`},
		{"expression", jay.Index{Fields: []string{"coalesce(copy, Title)"}}, `no member "Title"`},
		{"element", jay.Index{Fields: []string{"Lines.Produkt"}}, `did you mean "Product"?`},
		{"condition", jay.Index{Name: "lent", Fields: []string{"copy"}, Unique: true, Where: "Returned = false"}, `condition "Returned = false": the JSON of jay_test.loan has no member "Returned": did you mean "returned"?`},
		{"text", jay.Index{Kind: "text", Fields: []string{"Notes"}}, `no member "Notes"`},
	} {
		err := loans.EnsureIndex(ctx, test.index)
		if !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	if list, err := db.Indexes(ctx, ""); len(list) != 0 || err != nil {
		t.Errorf("refused indexes: %v, %v", list, err)
	}
	if err := loans.EnsureIndex(ctx, jay.Index{Fields: []string{"copy["}}); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("no path: %v", err)
	}
	must(t, loans.EnsureIndex(ctx, jay.Index{Name: "lent", Fields: []string{"copy"}, Unique: true, Where: "returned = false"}))
	must(t, loans.EnsureIndex(ctx, jay.Index{Name: "products", Fields: []string{"Lines.Product"}}))
	for i, want := range []error{nil, jay.ErrUnique} {
		if _, err := loans.Insert(ctx, &loan{Copy: "c"}); !errors.Is(err, want) {
			t.Errorf("insert %d: got %v, want %v", i, err, want)
		}
	}
	anything := collectionOf[loan](t, db, jay.AnyField())
	must(t, anything.EnsureIndex(ctx, jay.Index{Fields: []string{"Title"}}))
	err := db.Update(ctx, func(tx *jay.Tx) error { return loans.In(tx).EnsureIndex(ctx, jay.Index{Fields: []string{"copy"}}) })
	if !errors.Is(err, jay.ErrUsage) {
		t.Errorf("in a transaction: %v", err)
	}
}
