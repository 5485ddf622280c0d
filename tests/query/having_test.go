package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// jsonRows returns the rows of a query as text.
func jsonRows(t *testing.T, q jay.Query[jay.Row]) string {
	t.Helper()
	rows, err := q.All(ctx)
	must(t, err)
	out := []string{}
	for _, row := range rows {
		out = append(out, string(row.JSON))
	}
	return fmt.Sprint(out)
}

func salesOf(t *testing.T) *jay.DB {
	t.Helper()
	db := memory(t, nil)
	for i, body := range []string{
		`{"who":"a","n":1}`, `{"who":"a","n":2}`, `{"who":"b","n":10}`, `{"who":"b","n":20}`, `{"who":"b","n":30}`, `{"who":"c","n":5,"count":9}`,
	} {
		put(t, db, fmt.Sprint("sales/", i), body, jay.InCollection("Sales"))
	}
	return db
}

// Ensure that a condition on groups chooses among them, in RQL with the function or
// with the name of its column, and in the builder, whether or not the function is
// selected.
func TestQuery_Having(t *testing.T) {
	db := salesOf(t)
	for i, body := range []string{`{"who":"a","n":1,"at":"2025-01-01T00:00:00Z"}`, `{"who":"a","n":1,"at":"2026-01-01T00:00:00Z"}`, `{"who":"b","n":0,"at":"2025-01-01T00:00:00Z"}`, `{"who":"b","n":0,"at":"2025-01-01T01:00:00+01:00"}`} {
		put(t, db, fmt.Sprint("days/", i), body, jay.InCollection("Days"))
	}
	for text, want := range map[string]string{
		"from Sales group by who where count() > 2 select who":                                                   `[{"who":"b"}]`,
		"from Sales group by who where count > $p0 select key(), count() as count":                               `[{"who":"a","count":2} {"who":"b","count":3}]`,
		"from Sales as s group by who where s.count > $p0 select key(), count() as count":                        `[{"who":"c","count":1}]`,
		"from Sales group by who where n < 30 and sum(n) > 4 and who != 'c' select who, sum(n)":                  `[{"who":"b","sum(n)":30}]`,
		"from Sales group by who where not max(n) between 2 and 5 select who, count()":                           `[{"who":"b","Count":3}]`,
		"from Sales group by who where min(who) = 'A' or avg(n) = 5 order by who desc select who, max(n) as m":   `[{"who":"c","m":5} {"who":"a","m":2}]`,
		"from Sales where count() > 5 select sum(n)":                                                             `[{"sum(n)":68}]`,
		"from Sales where count() > 6 select count()":                                                            `[]`,
		"from Sales where min(n) > 1 select min(n), max(n)":                                                      `[]`,
		"from Days group by who where count(distinct at as date) > 1 select who":                                 `[{"who":"a"}]`,
		"from Days group by who where count(distinct at as date) in (1, 3) select who":                           `[{"who":"b"}]`,
		"from Days group by who where count(distinct year(at)) between 2 and 3 select who":                       `[{"who":"a"}]`,
		"from Days group by who where sum(year(at)) = 0 and max(at as date) < '2026-01-01T00:00:00Z' select who": `[{"who":"b"}]`,
		"from Days group by who where count(distinct at as date) > avg(n) order by who select who":               `[{"who":"a"} {"who":"b"}]`,
	} {
		params := map[string]any{"p0": 1}
		if !strings.Contains(text, "$p0") {
			params = nil
		}
		q, err := db.RQL(text, params)
		must(t, err)
		equal(t, jsonRows(t, q), want)
		again, err := db.RQL(q.String(), nil)
		must(t, err)
		equal(t, again.String(), q.String())
		equal(t, jsonRows(t, again), want)
	}

	sales := db.Query("Sales").GroupBy("who").OrderBy("-who")
	for i, q := range []jay.Query[json.RawMessage]{
		jay.Select[json.RawMessage](sales.Having(jay.Gt("count()", 1)), "key() as k"),
		jay.Select[json.RawMessage](sales, "who as k", "count() as n").Having(jay.Gt("n", 1)),
		jay.Select[json.RawMessage](sales, "who as k", "count()").Having(jay.Or(jay.Eq("Count", 2), jay.Eq("sum(n)", 60))),
	} {
		n, err := q.Count(ctx)
		must(t, err)
		if n != 2 {
			t.Errorf("query %d: %d answers", i, n)
		}
		again, err := db.RQL(q.String(), nil)
		must(t, err)
		equal(t, again.String(), q.String())
	}
	for name, q := range map[string]jay.Query[json.RawMessage]{
		"Where with a function":      jay.Select[json.RawMessage](sales.Where(jay.Gt("count()", 1)), "who"),
		"Where with a column":        jay.Select[json.RawMessage](sales.Where(jay.Gt("Count", 1)), "who", "count()"),
		"Having with a field":        jay.Select[json.RawMessage](sales.Having(jay.Gt("n", 1)), "who", "count()"),
		"Where without groups":       jay.Select[json.RawMessage](db.Query("Sales").Where(jay.Gt("sum(n)", 1)), "who"),
		"an order without groups":    jay.Select[json.RawMessage](db.Query("Sales").OrderBy("sum(n)"), "who"),
		"key() without groups":       jay.Select[json.RawMessage](db.Query("Sales").OrderBy("key()"), "who"),
		"a condition on key()":       jay.Select[json.RawMessage](sales.Where(jay.Eq("key()", 1)), "who"),
		"an unknown function":        jay.Select[json.RawMessage](sales.Having(jay.Eq("median(n)", 1)), "who"),
		"groups by a function":       jay.Select[json.RawMessage](db.Query("Sales").GroupBy("count()"), "count()"),
		"a condition that is broken": jay.Select[json.RawMessage](sales.Having(jay.Eq("", 1)), "who"),
	} {
		if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", name, err)
		}
	}
}

// Ensure that the text of a query from the builder is a query, with the order of groups
// by a function and by key().
func TestQuery_String_Groups(t *testing.T) {
	db := salesOf(t)
	for _, order := range []string{"-count()", "key()", "-key()", "sum(n)", "Count"} {
		q := jay.Select[json.RawMessage](db.Query("Sales").GroupBy("who").OrderBy(order), "who", "count()", "sum(n)")
		rows, err := q.All(ctx)
		must(t, err)
		again, err := db.RQL(q.String(), nil)
		must(t, err)
		texts := []string{}
		for _, row := range rows {
			texts = append(texts, string(*row))
		}
		equal(t, jsonRows(t, again), fmt.Sprint(texts))
	}
}

// Ensure that distinct rows are distinct by value: spellings of numbers and escapes in
// text are one, with an index and without, also inside arrays.
func TestQuery_Distinct_ByValue(t *testing.T) {
	db := memory(t, nil)
	for i, body := range []string{`{"s":"é","n":1,"l":[1,"é"]}`, `{"s":"\u00e9","n":1.0,"l":[1.0,"é"]}`, `{"s":"é","n":1e0,"l":[1,"\u00e9"]}`} {
		put(t, db, fmt.Sprint("t/", i), body, jay.InCollection("T"))
	}
	for range 2 {
		for _, text := range []string{"from T select distinct s", "from T select distinct n", "from T select distinct l", "from T order by n, s select distinct s, n"} {
			q, err := db.RQL(text, nil)
			must(t, err)
			rows, err := q.All(ctx)
			must(t, err)
			n, err := q.Count(ctx)
			must(t, err)
			if len(rows) != 1 || n != 1 {
				t.Errorf("%s: %d rows, %d counted", text, len(rows), n)
			}
		}
		must(t, db.EnsureIndex(ctx, "T", jay.Index{Fields: []string{"n", "s"}}))
	}
}

// Ensure that distinct without fields gives the documents: RavenDB's clients send it.
func TestQuery_Distinct_Documents(t *testing.T) {
	db := salesOf(t)
	q, err := db.RQL("from Sales order by n select distinct * limit 2", nil)
	must(t, err)
	rows, err := q.All(ctx)
	must(t, err)
	if len(rows) != 2 || rows[0].Document.ID() != "sales/0" {
		t.Errorf("got %d rows", len(rows))
	}
	p, err := q.Limit(4).Page(ctx)
	must(t, err)
	equal(t, len(p.Items), 4)
}

// Ensure that conditions on groups compare dates by time: as a parameter, as text of a
// function that is read as a date, in the builder, and between two functions.
func TestQuery_Having_Dates(t *testing.T) {
	db := memory(t, nil)
	for i, body := range []string{
		`{"who":"a","at":"2026-01-01T12:00:00+02:00"}`, `{"who":"a","at":"2026-01-03T00:00:00Z"}`,
		`{"who":"b","at":"2026-01-01T10:00:00.000Z"}`, `{"who":"b","at":"no date"}`, `{"who":"c","at":null}`,
	} {
		put(t, db, fmt.Sprint("visits/", i), body, jay.InCollection("Visits"))
	}
	ten := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"from Visits group by who where max(at) > $t order by who select who":                                      `[{"who":"a"}]`,
		"from Visits group by who where min(at as date) = '2026-01-01T11:00:00+01:00' order by who select who":     `[{"who":"a"} {"who":"b"}]`,
		"from Visits group by who where min(at as date) between $t and $t and count() > 1 order by who select who": `[{"who":"a"} {"who":"b"}]`,
		"from Visits group by who where min(at as date) < max(at as date) select who":                              `[{"who":"a"}]`,
		"from Visits group by who where min(at as date) = max(at) order by who select who":                         `[{"who":"b"} {"who":"c"}]`,
		"from Visits group by who where min(at as date) = null select who":                                         `[{"who":"c"}]`,
		"from Visits group by day(at) where count() > 1 select day(at) as d, count() as n":                         `[{"d":"2026-01-01","n":2} {"d":null,"n":2}]`,
	} {
		params := map[string]any{"t": ten}
		if !strings.Contains(text, "$t") {
			params = nil
		}
		q, err := db.RQL(text, params)
		must(t, err)
		if got := jsonRows(t, q); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	q := jay.Select[string](db.Query("Visits").GroupBy("who").Having(jay.Ge("max(at)", ten.Add(time.Hour))), "who")
	who, err := q.All(ctx)
	must(t, err)
	if len(who) != 1 || *who[0] != "a" {
		t.Errorf("got %d groups, want that of a", len(who))
	}
}
