package computed_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Ensure that a query of an index is that of its documents: with conditions and orders on what the members are, and columns of members or of
// the document.
func TestDefinition_Documents(t *testing.T) {
	t.Parallel()
	one := index.Map{Collection: "Users", Where: "Age > 3", Select: []index.Member{{Name: "Full", Expression: "concat(First, Last)"}, {Name: "Town", Expression: "Home.Town"}}}
	d, err := computed.Parse(index.Computed{Name: "Users/Full", Maps: []index.Map{one}})
	if err != nil {
		t.Fatal(err)
	}
	isFull := func(name string) bool { return name == "Full" }
	for text, want := range map[string]string{
		"from index 'users/full'": "from Users where Age > 3",
		"from index 'Users/Full' as u where u.Full = 'x' or Town.Zip > 5 order by Full desc, id() include Friend limit 3 offset 1": "from Users where Age > 3 and (concat(First, Last) = 'x' or Home.Town.Zip > 5) order by concat(First, Last) desc, id() include Friend limit 3 offset 1",
		"from index 'Users/Full' where (Full = 'x' and Town = 'y') select Full, Town, First as F":                                  "from Users where Age > 3 and concat(First, Last) = 'x' and Home.Town = 'y' select concat(First, Last) as Full, Town, First as F",
		"from index 'Users/Full' where Full > 'm' select facet(Full, sum(Town)), facet(Town) as T":                                 "from Users where Age > 3 and concat(First, Last) > 'm' select facet(concat(First, Last), sum(Home.Town) as Town) as Full, facet(Home.Town) as T",
		"from index 'Users/Full' use no index select distinct Full":                                                                "from Users use no index where Age > 3 select distinct concat(First, Last) as Full",
		"from index 'Users/Full' as u where Full = 'x' select { N: u.First }":                                                      "from Users as u where Age > 3 and concat(First, Last) = 'x' select { N: u.First }",
	} {
		q, err := query.Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := q.String()
		out, err := d.Documents(q, isFull)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := out.String(); got != want {
			t.Errorf("%s is\n%s, want\n%s", text, got, want)
		}
		if again, err := query.Parse(out.String(), nil); err != nil || again.String() != want {
			t.Errorf("%s is not read again: %v", out, err)
		}
		if q.String() != before {
			t.Errorf("%s was changed: %s", before, q)
		}
	}
	for text, reason := range map[string]string{
		"from index 'Users/Full' where Ful = 1":                         `did you mean "Full"?`,
		"from index 'Users/Full' where Full.A = 1":                      "one value",
		"from index 'Users/Full' group by Full select Full, count()":    "no groups of its own",
		"from index 'Users/Full' select facet(Town < 'm', Town >= 'm')": "stands for Home.Town",
		"from index 'Users/Full' select facet(id('f'))":                 "name fields of documents",
		"from index 'Users/Full' select facet(None)":                    "no member",
	} {
		q, err := query.Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Documents(q, isFull); !errors.Is(err, errs.ErrQuery) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Ensure that only an index of one map, without elements and a reduce, is one of documents.
func TestDefinition_Documents_Refused(t *testing.T) {
	t.Parallel()
	member := []index.Member{{Name: "A"}}
	of := index.Map{Collection: "A", Select: member}
	for text, c := range map[string]index.Computed{
		"several maps": {Maps: []index.Map{of, {Collection: "B", Select: member}}}, "elements": {Maps: []index.Map{{Collection: "A", Each: "Lines", As: "l", Select: member}}},
		"a reduce": {Maps: []index.Map{of}, Reduce: &index.Reduce{GroupBy: []string{"A"}, Select: member}},
	} {
		c.Name = "i"
		d, err := computed.Parse(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Documents(&query.Query{Index: "i"}, func(string) bool { return true }); !errors.Is(err, errs.ErrQuery) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
