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

// tagsRefused checks that the tags of T are refused with an ErrIndex whose text has a part.
func tagsRefused[T any](t *testing.T, db *jay.DB, part string) {
	t.Helper()
	if _, err := jay.CollectionOf[T](db); !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), part) {
		t.Errorf("%T: got %v, want an ErrIndex with %s", *new(T), err, part)
	}
}

// Ensure that an index on a field which the body of no document has is refused: it was made, and
// stayed empty.
func TestDeclaredIndexes_NothingToIndex(t *testing.T) {
	db := memory(t, nil)
	type identified struct {
		ID string `jay:"unique"`
	}
	tagsRefused[identified](t, db, "field ID")
	type renamed struct {
		ID string `json:"key" jay:"index"`
	}
	tagsRefused[renamed](t, db, "field ID")
	type leftOut struct {
		ID  string
		Tag string `json:"-" jay:"index"`
	}
	tagsRefused[leftOut](t, db, "field Tag")
	type hidden struct {
		ID  string
		tag string `jay:"index"`
	}
	_ = hidden{}.tag
	tagsRefused[hidden](t, db, "field tag")
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
	type semicolon struct {
		ID  string
		Tag string `jay:"index=byTag;index=byDate"`
	}
	tagsRefused[semicolon](t, db, `"index=byTag;index=byDate"`)
	type blank struct {
		ID  string
		Tag string `jay:"index,unique=byTag desc"`
	}
	tagsRefused[blank](t, db, `"unique=byTag desc"`)
	type twice struct {
		ID  string
		Tag string `jay:"index=byTag=byDate"`
	}
	tagsRefused[twice](t, db, `"index=byTag=byDate"`)
	type nameless struct {
		ID  string
		Tag string `jay:"index="`
	}
	tagsRefused[nameless](t, db, `"index="`)
	type descending struct {
		ID  string
		Tag string `jay:"index=byTag,desc=true"`
	}
	tagsRefused[descending](t, db, `"desc=true"`)
	type twoWords struct {
		ID string `jay:"id,index"`
	}
	tagsRefused[twoWords](t, db, `"id,index"`)
	type sameTwice struct {
		ID  string
		Tag string `jay:"index=byTag,index=byTag"`
	}
	tagsRefused[sameTwice](t, db, "") // one field twice in an index

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

// Ensure that the tag of a field can restrict an index to documents with a condition, that queries and writes go by it,
// and that another condition in the tag replaces the index.
func TestDeclaredIndexes_Where(t *testing.T) {
	db := memory(t, nil)
	type place struct {
		City string `jay:"index=byCity"`
	}
	type account struct {
		ID     string
		Login  string `json:"login" jay:"index,unique=byLogin,where= State in ('open', 'held') "`
		State  string `jay:"index=byCity,where=exists(login)"`
		Text   string `jay:"text,analyzer=simple,where=not State = 'gone'"`
		Places []place
	}
	accounts := collectionOf[account](t, db)
	declared, err := accounts.DeclaredIndexes()
	must(t, err)
	want := `[{login [login] false   map[]} {byLogin [login] true State in ('open', 'held')  map[]} {byCity [State Places.City] false exists(login)  map[]} {text [Text] false not State = 'gone' text map[analyzer:simple]}]`
	if got := fmt.Sprint(declared); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	must(t, accounts.EnsureIndexes(ctx))
	put := func(login, state string) error {
		_, err := accounts.Insert(ctx, &account{Login: login, State: state})
		return err
	}
	must(t, put("ann", "gone"))
	must(t, put("ann", "gone"))
	must(t, put("ann", "open"))
	if err := put("ann", "held"); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("a second ann: %v", err)
	}

	type later struct {
		ID    string
		Login string `json:"login" jay:"unique=byLogin,where=State = 'held'"`
		State string
	}
	renewed := collectionOf[later](t, db, jay.Named(accounts.Name()))
	must(t, renewed.EnsureIndexes(ctx))
	must(t, put("ann", "open"))
	must(t, put("ann", "held"))
	if err := put("ann", "held"); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("a second ann that is held: %v", err)
	}

	type unknown struct {
		ID    string
		Login string `jay:"unique,where=Sate = 'open'"`
		State string
	}
	tagsRefused[unknown](t, db, "Sate")
	_, err = jay.CollectionOf[unknown](db, jay.AnyField())
	must(t, err)
	type unparsed struct {
		ID    string
		Login string `jay:"unique,where=State = "`
	}
	_, err = jay.CollectionOf[unparsed](db)
	if !errors.Is(err, jay.ErrSyntax) || !strings.Contains(err.Error(), `index "Login": where`) {
		t.Errorf("a condition that ends too early: %v", err)
	}
	type empty struct {
		ID    string
		Login string `jay:"unique,where= "`
	}
	tagsRefused[empty](t, db, "field Login")
	type first struct {
		ID    string
		Login string `jay:"where=ID = 'a',unique"`
	}
	tagsRefused[first](t, db, "where=ID = 'a',unique")
	type several struct {
		ID string
		A  string `jay:"index=both,where=A > 'a'"`
		B  string `jay:"index=both,where=A > 'b'"`
	}
	tagsRefused[several](t, db, "field B")
	type pair struct {
		ID  string
		Lat float64 `jay:"latitude,where=Lat > 1"`
		Lng float64 `jay:"longitude"`
	}
	tagsRefused[pair](t, db, "field Lat")
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
