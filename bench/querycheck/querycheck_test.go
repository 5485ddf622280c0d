// Package querycheck asks Jay and SQLite the same questions about the same
// documents: a second opinion from an independent engine.
//
// It has no code but its test. It is part of the benchmarks' module, so that
// SQLite stays out of the one that users import.
package querycheck

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/jaydb/jay"
)

// checker makes a question in both languages.
type checker struct {
	*rand.Rand
}

func (c *checker) chance(percent int) bool { return c.IntN(100) < percent }

func pick[T any](c *checker, of ...T) T { return of[c.IntN(len(of))] }

func (c *checker) text() string {
	return pick(c, "a", "A", "b", "B", "ab", "Ab", "aB", "abc", "", "z", "x_y", "x%y", "10", "it's")
}

func (c *checker) number() string {
	return pick(c, "0", "1", "1.0", "2", "3", "-1", "2.5", "-0.5", "10", "1e1", "9007199254740992", "9007199254740993", "100", "-7")
}

// scalar returns a value as JSON.
func (c *checker) scalar() string {
	switch c.IntN(9) {
	case 0:
		return "null"
	case 1:
		return pick(c, "true", "false")
	case 2, 3, 4, 5:
		return c.number()
	}
	return quoted(c.text())
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// document makes a document: a, b and o.c are scalars, g a number or a text,
// q a whole number, tags an array of scalars or a scalar, lines an array of
// objects.
func (c *checker) document() string {
	var members []string
	add := func(percent int, name string, value func() string) {
		if c.chance(percent) {
			members = append(members, quoted(name)+":"+value())
		}
	}
	list := func(item func() string) string {
		var items []string
		for range c.IntN(4) {
			items = append(items, item())
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	add(80, "a", c.scalar)
	add(80, "b", c.scalar)
	add(70, "o", func() string { return `{"c":` + c.scalar() + `}` })
	add(80, "g", func() string { return pick(c, "1", "1.0", "2", `"x"`, `"X"`, "null") })
	add(80, "q", func() string { return strconv.Itoa(c.IntN(2000) - 1000) })
	add(70, "tags", func() string {
		if c.chance(20) {
			return c.scalar()
		}
		return list(c.scalar)
	})
	add(60, "lines", func() string { return list(func() string { return `{"p":` + c.scalar() + `}` }) })
	return "{" + strings.Join(members, ",") + "}"
}

// literal returns a JSON scalar as SQL: the test of its class, and its value.
func literal(raw string) (class, value string) {
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal([]byte(raw), &text); err != nil {
			panic(err)
		}
		return "e.type = 'text'", "'" + strings.ReplaceAll(text, "'", "''") + "'"
	case 'n':
		return "e.type = 'null'", ""
	case 't', 'f':
		return "e.type IN ('true', 'false')", map[byte]string{'t': "1", 'f': "0"}[raw[0]]
	}
	return "e.type IN ('integer', 'real')", raw
}

// compared returns the comparison of what e is with a JSON scalar.
func compared(op, raw string, fold bool) string {
	class, value := literal(raw)
	switch {
	case raw[0] == 'n' && (op == "<" || op == ">"):
		return "0"
	case raw[0] == 'n':
		return class
	case raw[0] != '"':
		return "(" + class + " AND e.atom " + op + " " + value + ")"
	case fold:
		return "(" + class + " AND lower(e.atom) " + op + " lower(" + value + "))"
	case op == "=":
		return "(" + class + " AND e.atom = " + value + ")"
	}
	return "(" + class + " AND (lower(e.atom), e.atom) " + op + " (lower(" + value + "), " + value + "))"
}

// rqlLiteral returns a JSON scalar as RQL.
func rqlLiteral(raw string) string {
	if raw[0] != '"' {
		return raw
	}
	var text string
	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		panic(err)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// any returns SQL that is true if test is true of a value that path reaches.
func anyOf(path, test string) string {
	if path == "lines.p" {
		return "EXISTS (SELECT 1 FROM json_each(d.body, '$.lines') l, json_each(l.value, '$.p') e WHERE " + test + ")"
	}
	return "EXISTS (SELECT 1 FROM json_each(d.body, '$." + path + "') e WHERE " + test + ")"
}

// leaf makes a condition on one field, as RQL and as SQL.
func (c *checker) leaf() (rql, text string) {
	path := pick(c, "a", "b", "o.c", "g", "q", "tags", "tags", "lines.p")
	exact := c.chance(50)
	around := func(s string) string {
		if exact {
			return "exact(" + s + ")"
		}
		return s
	}
	value := c.scalar()
	if path == "q" {
		value = strconv.Itoa(c.IntN(2000) - 1000)
	}
	switch c.IntN(8) {
	case 0, 1:
		return around(path + " = " + rqlLiteral(value)), anyOf(path, compared("=", value, !exact))
	case 2, 3:
		op := pick(c, "<", "<=", ">", ">=")
		return around(path + " " + op + " " + rqlLiteral(value)), anyOf(path, compared(op, value, !exact))
	case 4:
		lo, hi := c.number(), c.number()
		if c.chance(40) {
			lo, hi = quoted(c.text()), quoted(c.text())
		}
		return around(path + " between " + rqlLiteral(lo) + " and " + rqlLiteral(hi)), anyOf(path, compared(">=", lo, !exact)+" AND "+compared("<=", hi, !exact))
	case 5:
		var values, tests, alls []string
		for range 1 + c.IntN(4) {
			v := c.scalar()
			values, tests, alls = append(values, rqlLiteral(v)), append(tests, compared("=", v, !exact)), append(alls, anyOf(path, compared("=", v, !exact)))
		}
		if c.chance(35) {
			return around(path + " all in (" + strings.Join(values, ", ") + ")"), "(" + strings.Join(alls, " AND ") + ")"
		}
		return around(path + " in (" + strings.Join(values, ", ") + ")"), anyOf(path, "("+strings.Join(tests, " OR ")+")")
	case 6:
		want := c.text()
		value, part := "e.atom", "'"+strings.ReplaceAll(want, "'", "''")+"'"
		if !exact {
			value, part = "lower(e.atom)", "lower("+part+")"
		}
		fn := pick(c, "startsWith", "endsWith", "contains")
		test := map[string]string{
			"startsWith": fmt.Sprintf("substr(%s, 1, %d) = %s", value, len(want), part),
			"endsWith":   fmt.Sprintf("(length(e.atom) >= %d AND substr(%s, length(e.atom) - %d + 1) = %s)", len(want), value, len(want), part),
			"contains":   fmt.Sprintf("instr(%s, %s) > 0", value, part),
		}[fn]
		return around(fn + "(" + path + ", " + rqlLiteral(quoted(want)) + ")"), anyOf(path, "e.type = 'text' AND "+test)
	}
	if path == "lines.p" {
		path = "lines"
	}
	return "exists(" + path + ")", "json_type(d.body, '$." + path + "') IS NOT NULL"
}

func (c *checker) condition(depth int) (rql, text string) {
	if depth == 0 || c.chance(40) {
		return c.leaf()
	}
	if c.chance(25) {
		rql, text = c.condition(depth - 1)
		return "not (" + rql + ")", "NOT (" + text + ")"
	}
	word := pick(c, " and ", " or ")
	var rqls, texts []string
	for range 2 + c.IntN(2) {
		r, s := c.condition(depth - 1)
		rqls, texts = append(rqls, r), append(texts, s)
	}
	return "(" + strings.Join(rqls, word) + ")", "(" + strings.Join(texts, strings.ToUpper(word)) + ")"
}

// order makes an order by scalar fields, in the order of all values.
func (c *checker) order() (rql, text string) {
	var rqls, texts []string
	direction := ""
	for _, path := range slices.Compact([]string{pick(c, "a", "q", "o.c"), pick(c, "a", "b", "g"), "b"})[:1+c.IntN(2)] {
		direction = pick(c, "", " desc")
		rqls = append(rqls, path+direction)
		kind, value := "json_type(d.body, '$."+path+"')", "json_extract(d.body, '$."+path+"')"
		texts = append(texts,
			"CASE "+kind+" WHEN 'null' THEN 1 WHEN 'false' THEN 2 WHEN 'true' THEN 3 WHEN 'integer' THEN 4 WHEN 'real' THEN 4 WHEN 'text' THEN 5 ELSE 0 END"+direction,
			"CASE WHEN "+kind+" IN ('integer', 'real') THEN "+value+" END"+direction,
			"CASE "+kind+" WHEN 'text' THEN lower("+value+") END"+direction,
			"CASE "+kind+" WHEN 'text' THEN "+value+" END"+direction)
	}
	return " order by " + strings.Join(rqls, ", "), " ORDER BY " + strings.Join(append(texts, "d.id"+direction), ", ")
}

// question makes a whole query in both languages. The rows of both are lists
// of columns.
func (c *checker) question() (rql, text string, ordered bool) {
	where, sqlWhere := "", ""
	if c.chance(85) {
		w, s := c.condition(2)
		where, sqlWhere = " where "+w, " WHERE "+s
	}
	switch n := c.IntN(10); {
	case n < 3:
		return "from Things" + where + " select id() as id", "SELECT d.id FROM things d" + sqlWhere, false
	case n < 7:
		order, sqlOrder := c.order()
		limit, sqlLimit := "", ""
		if c.chance(60) {
			n, skip := c.IntN(20), c.IntN(10)
			limit, sqlLimit = fmt.Sprintf(" limit %d offset %d", n, skip), fmt.Sprintf(" LIMIT %d OFFSET %d", n, skip)
		}
		return "from Things" + where + order + " select id() as id" + limit, "SELECT d.id FROM things d" + sqlWhere + sqlOrder + sqlLimit, true
	case n < 8:
		return "from Things" + where + " select count() as n, sum(q) as s, min(q) as lo, max(q) as hi",
			"SELECT count(*), coalesce(sum(json_extract(d.body, '$.q')), 0), min(json_extract(d.body, '$.q')), max(json_extract(d.body, '$.q')) FROM things d" + sqlWhere, false
	}
	return "from Things group by g" + where + " select g, count() as n, sum(q) as s, min(q) as lo, max(q) as hi",
		"SELECT json_extract(d.body, '$.g') AS g, count(*), coalesce(sum(json_extract(d.body, '$.q')), 0), min(json_extract(d.body, '$.q')), max(json_extract(d.body, '$.q')) FROM things d" + sqlWhere + " GROUP BY 1", false
}

// Ensure that Jay, with random indexes, and SQLite's JSON functions give the
// same answers to the same questions, as far as SQL can ask them.
// JAY_QUERY_SEED repeats a run, JAY_QUERY_ROUNDS makes it longer.
func TestAgainstSQLite(t *testing.T) {
	seed := rand.Uint64N(1 << 32)
	if text := os.Getenv("JAY_QUERY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	rounds := 6
	if text := os.Getenv("JAY_QUERY_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	asked, answers := 0, 0
	for round := range rounds {
		a, b := oneRound(t, seed+uint64(round), 500)
		asked, answers = asked+a, answers+b
		if t.Failed() {
			t.Fatalf("JAY_QUERY_SEED=%d JAY_QUERY_ROUNDS=1 repeats it", seed+uint64(round))
		}
	}
	t.Logf("%d questions, %d rows, first seed %d", asked, answers, seed)
}

func oneRound(t *testing.T, seed uint64, questions int) (asked, answers int) {
	ctx := context.Background()
	c := &checker{rand.New(rand.NewPCG(seed, 3))}
	other, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1) // every connection has a memory of its own
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := other.Exec("CREATE TABLE things (id TEXT PRIMARY KEY, body TEXT)"); err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		id, body := fmt.Sprintf("%s%04d", pick(c, "things/", "away/"), i), c.document()
		if _, err := db.Put(ctx, id, json.RawMessage(body), jay.InCollection("Things")); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Exec("INSERT INTO things VALUES (?, ?)", id, body); err != nil {
			t.Fatal(err)
		}
	}
	for range c.IntN(7) {
		var fields []string
		for range 1 + c.IntN(2) {
			f := pick(c, "a", "b", "o.c", "g", "q", "tags", "lines.p")
			if !slices.Contains(fields, f) && !slices.Contains(fields, "-"+f) {
				fields = append(fields, pick(c, "", "-")+f)
			}
		}
		ix := jay.Index{Fields: fields}
		if c.chance(20) {
			ix.Where = pick(c, "a > 1", "exists(b)", "g = 'x'")
		}
		if err := db.EnsureIndex(ctx, "Things", ix); err != nil {
			t.Fatal(err)
		}
	}
	for range questions {
		rql, text, ordered := c.question()
		want, err := sqlRows(other, text)
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			return asked, answers
		}
		got, plan, err := jayRows(ctx, db, rql)
		if err != nil {
			t.Errorf("%v\n%s", err, rql)
			return asked, answers
		}
		if !ordered {
			slices.Sort(want)
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n%s\nJay:    %d %.1000q\nSQLite: %d %.1000q\n%s", rql, text, len(got), got, len(want), want, plan)
			return asked, answers
		}
		asked, answers = asked+1, answers+len(got)
	}
	return asked, answers
}

func sqlRows(db *sql.DB, text string) ([]string, error) {
	rows, err := db.Query(text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	for rows.Next() {
		values, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		var row []string
		for _, v := range values {
			row = append(row, plain(v))
		}
		out = append(out, strings.Join(row, "|"))
	}
	return out, rows.Err()
}

// plain spells a value in one way.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case json.Number:
		return v.String()
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

func jayRows(ctx context.Context, db *jay.DB, rql string) (out []string, plan string, err error) {
	q, err := db.RQL(rql, nil)
	if err != nil {
		return nil, "", err
	}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return nil, "", err
		}
		d := json.NewDecoder(strings.NewReader(string(row.JSON)))
		d.UseNumber()
		var members map[string]any
		if err := d.Decode(&members); err != nil {
			return nil, "", err
		}
		var columns []string
		for _, name := range []string{"id", "g", "n", "s", "lo", "hi"} {
			if v, there := members[name]; there {
				columns = append(columns, plain(v))
			}
		}
		out = append(out, strings.Join(columns, "|"))
	}
	e, err := q.Explain(ctx)
	return out, e.String(), err
}
