package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
)

// Ensure that words are found in Go and in RQL, beside other conditions, by a scan or what an index of another field leaves, in pages,
// counts, groups, changes and transactions.
func TestQuery_Search(t *testing.T) {
	db := memory(t, nil)
	for i := range 60 {
		put(t, db, fmt.Sprintf("notes/%02d", i), fmt.Sprintf(`{"Text":"%s leaves %s","Year":%d}`, []string{"Fallen", "green", "red"}[i%3], []string{"of the oak", "falling"}[i%2], 2000+i%10), jay.InCollection("Notes"))
	}
	must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"Year"}}))
	notes := db.Query("Notes")
	for _, test := range []struct {
		where     jay.Condition
		condition string
		want      int
	}{
		{jay.Search("Text", "fallen OAK"), "search(Text, 'fallen OAK')", 40},
		{jay.Search("Text", "fallen OAK", jay.AllWords()), "search(Text, 'fallen OAK', and)", 10},
		{jay.Search("Text", "the fall", jay.AllWords(), jay.WithAnalyzer("english")), "search(Text, 'the fall', and, 'english')", 30},
		{jay.And(jay.Search("Text", `"leaves falling"`), jay.Eq("Year", 2001)), `search(Text, '"leaves falling"') and Year = 2001`, 6},
		{jay.Or(jay.Not(jay.Search("Text", "leaves")), jay.Search("Text", "gre*")), "not search(Text, 'leaves') or search(Text, 'gre*')", 20},
	} {
		built := notes.Where(test.where)
		parsed, err := db.RQL("from Notes where "+test.condition, nil)
		must(t, err)
		equal(t, built.String(), parsed.String())
		n, err := built.Count(ctx)
		must(t, err)
		equal(t, n, int64(test.want))
		for _, q := range []jay.Query[jay.Row]{parsed, parsed.OrderBy("-Year", "Text"), parsed.NoIndex()} {
			rows, err := q.All(ctx)
			must(t, err)
			equal(t, len(rows), test.want)
			n, err := q.Count(ctx)
			must(t, err)
			equal(t, n, int64(test.want))
		}
		page, err := built.OrderBy("Year").Limit(4).Page(ctx)
		must(t, err)
		equal(t, len(page.Items), 4)
		must(t, db.View(ctx, func(tx *jay.Tx) error {
			n, err := tx.Query("Notes").Where(test.where).Count(ctx)
			equal(t, n, int64(test.want))
			return err
		}))
	}

	rows, err := rqlRows(db, "from Notes group by Year where search(Text, 'oak') order by Year select Year, count() as N")
	must(t, err)
	equal(t, len(rows), 5)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "notes/own", []byte(`{"Text":"my own acorn"}`), jay.InCollection("Notes")); err != nil {
			return err
		}
		n, err := tx.Query("Notes").Where(jay.Search("Text", "ACORN")).Count(ctx)
		equal(t, n, int64(1))
		return err
	}))

	// Without another condition all documents are looked at, which Explain and NoScan say.
	e, err := notes.Where(jay.Search("Text", "oak")).Explain(ctx)
	must(t, err)
	if plan := strings.Join(e.Plan, "; "); !strings.Contains(plan, "scan") {
		t.Errorf("the plan is %s", plan)
	}
	_, err = notes.Where(jay.Search("Text", "oak")).NoScan().All(ctx)
	wants(t, err, jay.ErrNoIndex)
}

// wants checks that an error is another one.
func wants(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
}

// Ensure that a search that breaks a rule is refused, and one where it would be stored.
func TestQuery_Search_Refused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "notes/1", `{"Text":"oak"}`, jay.InCollection("Notes"))
	for _, c := range []jay.Condition{jay.Search("Text", `"oak`), jay.Search("Text", "oak", jay.WithAnalyzer("klingon")), jay.Search("Text", "\xff"), jay.Search("a[", "oak"), jay.Search("Text", strings.Repeat("a", 1<<17))} {
		_, err := db.Query("Notes").Where(c).All(ctx)
		wants(t, err, jay.ErrQuery)
	}
	for _, ix := range []jay.Index{{Fields: []string{"Year"}, Where: "search(Text, 'oak')"}, {Fields: []string{"if(search(Text, 'oak'), 1, 2)"}}, {Fields: []string{"if(not search(Text, 'oak'), 1, 2)"}, Kind: "groups"}} {
		wants(t, db.EnsureIndex(ctx, "Notes", ix), jay.ErrIndex)
	}
	wants(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: "from Notes where search(Text, 'oak')"}), jay.ErrSubscription)
	if names := query.Analyzers(); len(names) < 20 {
		t.Errorf("only %q", names)
	}
	var syntax *query.SyntaxError
	if _, err := db.RQL("from Notes where search(Text, 'a~7')", nil); !errors.As(err, &syntax) {
		t.Errorf("%v", err)
	}
}
