package query_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// finds reports whether a condition in RQL is true of a body.
func finds(t testing.TB, condition, body string) bool {
	t.Helper()
	e, err := query.ParseCondition(condition, nil)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	again, err := query.ParseCondition(query.FormatCondition(e), nil)
	if err != nil {
		t.Fatalf("%s is written as %s: %v", condition, query.FormatCondition(e), err)
	}
	var found [3]bool
	for i, e := range []query.Expr{e, again} {
		m, err := query.Compile(e)
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		m.Match(query.Doc{Body: []byte(`{"Text":"something oak else"}`)})
		found[i] = m.Match(query.Doc{Body: []byte(body)})
		found[2] = m.Clone().Match(query.Doc{Body: []byte(body)})
		if found[i] != found[2] {
			t.Errorf("%s: a clone says %v of %s", condition, found[2], body)
		}
	}
	if found[0] != found[1] {
		t.Errorf("%s is written as %s, which says %v of %s", condition, query.FormatCondition(e), found[1], body)
	}
	return found[0]
}

// Ensure that search() finds documents by the words of all texts that a field reaches.
func TestSearch(t *testing.T) {
	t.Parallel()
	const body = `{"Text":"The oak tree's leaves have FALLEN.","Tags":["Autumn leaves","red",7,null,["deep wood"]],"N":5,"Escaped":"a\nb\u00e9","Lines":[{"Note":"ripe acorn","N":1},{"Note":"green acorn","N":2}]}`
	for condition, want := range map[string]bool{
		`search(Text, 'oak')`:                               true,
		`search(Text, 'beech OAK')`:                         true,
		`search(Text, 'beech oak', and)`:                    false,
		`search(Text, 'beech oak', or)`:                     true,
		`search(Text, '"oak tree''s"')`:                     true,
		`search(Text, 'fall*')`:                             true,
		`search(Text, 'oak -fallen')`:                       false,
		`search(Text, 'leaf')`:                              false,
		`search(Text, 'leaf', 'english')`:                   false,
		`search(Text, 'leaf falling', and, 'English')`:      false,
		`search(Text, 'trees leave', and, 'english')`:       true,
		`search(Text, 'FALLEN.', 'whitespace')`:             true,
		`search(Tags, 'red autumn', and)`:                   true,
		`search(Tags, '"leaves red"')`:                      false,
		`search(Tags, 'wood 7')`:                            false, // arrays in arrays have no values, and numbers no words
		`search(N, '5')`:                                    false,
		`search(Missing, 'a')`:                              false,
		`search(Missing, '-a')`:                             true,
		`not search(Text, 'oak')`:                           false,
		`search(Text, 'beech') or search(Tags, 'red')`:      true,
		`search(Escaped, 'bé')`:                             true,
		`search(Lines.Note, 'ripe green', and)`:             true,
		`elemMatch(Lines, search(Note, 'ripe green', and))`: false,
		`elemMatch(Lines, search(Note, 'ripe') and N = 1)`:  true,
		`elemMatch(Lines, search(Note, 'ripe') and N = 2)`:  false,
		`search(Text, '')`:                                  false,
		`search(concat(Text, ' ', N), '5')`:                 true,
	} {
		if got := finds(t, condition, body); got != want {
			t.Errorf("%s: %v", condition, got)
		}
	}
}

// Ensure that what breaks a rule of search() is refused where it stands.
func TestSearch_Refused(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]string{
		`search(Text)`:                           `","`,
		`search(Text, 5)`:                        "text",
		`search(Text, 'a', 'klingon')`:           `no analyzer "klingon"`,
		`search(Text, 'a', and, or)`:             "analyzer",
		`search(Text, '"a')`:                     "at byte 0 of the search: a phrase ends with a quotation mark",
		`search(Text, 'a~9')`:                    "at byte 2 of the search",
		`exact(search(Text, 'a'))`:               "search() has no exact form",
		`search(At as date, 'a')`:                "instant",
		`search(Text, 'a', and, 'english', 'x')`: `")"`,
	} {
		_, err := query.ParseCondition(condition, nil)
		var syntax *query.SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", condition, err, want)
		}
	}
	field := func(name string) query.Field { return query.Field{Path: jsonpath.MustParse(name)} }
	for _, e := range []query.Search{{Field: field("Text"), Text: `"a`}, {Field: field("Text"), Text: "a", Analyzer: "klingon"}, {Text: "a"}} {
		if _, err := query.Compile(e); !errors.Is(err, query.ErrCondition) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	var many query.Or
	for range query.MaxSearches + 1 {
		many = append(many, query.Search{Field: field("Text"), Text: "a"})
	}
	var limit *query.LimitError
	if _, err := query.Compile(many); !errors.As(err, &limit) || limit.Limit != query.MaxSearches {
		t.Errorf("%d searches: %v", len(many), err)
	}
	if query.Searches(query.Not{Expr: query.ElemMatch{Field: field("a"), Where: many}}) != true || query.Searches(query.And{query.Exists{Field: field("a")}}) {
		t.Error("Searches is wrong")
	}
}

// Ensure that a search in a large text ends when it is no longer wanted.
func TestSearch_Pace(t *testing.T) {
	t.Parallel()
	e, err := query.ParseCondition(`search(Text, 'a*b*c z')`, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := query.Compile(e)
	if err != nil {
		t.Fatal(err)
	}
	var pace query.Pace
	pace.Begin(t.Context())
	m.SetPace(&pace)
	stopped := errors.New("stopped")
	pace.Stop(stopped)
	begun := time.Now()
	m.Match(query.Doc{Body: []byte(`{"Text":"` + strings.Repeat("a b ", 16<<20/4) + `"}`)})
	if !errors.Is(pace.Err(), stopped) {
		t.Errorf("after %v: %v", time.Since(begun), pace.Err())
	}
}
