package groups_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/groups"
	"github.com/jaydb/jay/internal/kindtest"
)

// oneOf returns one of some texts.
func oneOf(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

// number returns a number, or something in its place.
func number(r *rand.Rand) string {
	switch r.IntN(14) {
	case 0:
		return oneOf(r, `-0`, `0`, `1.0`, `1`, `1e0`, `-1`, `0.000000001`, `-0.000000001`, `999999999999999999999999999`, `-999999999999999999999999999.999999999`)
	case 1:
		return oneOf(r, `1e300`, `-1e300`, `1e-300`, `0.0000000001`, `1e27`, `12345678901234567890123456789.5`)
	case 2:
		return strings.Repeat("9", 400)
	case 3:
		return oneOf(r, `null`, `"12"`, `true`, `{"a":1}`, `[]`)
	case 4:
		return fmt.Sprintf("[%d,%d.5,\"x\",1e40]", r.IntN(9), r.IntN(9))
	case 5:
		return fmt.Sprintf("%d.%02d", r.IntN(1000)-500, r.IntN(100))
	case 6:
		return fmt.Sprintf("%d%09d%09d.%09d", r.IntN(1e9), r.IntN(1e9), r.IntN(1e9), r.IntN(1e9))
	}
	return fmt.Sprint(r.IntN(2000) - 1000)
}

// longTexts differ behind what a key has of them.
var longTexts = []string{strings.Repeat("x", 600) + "1", strings.Repeat("x", 600) + "2"}

// customer returns a member of groups.
func customer(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return oneOf(r, `null`, `1`, `1.0`, `-0`, `0`, `true`, `{"a":1}`, `[]`, `["Ann"]`, strings.Repeat("7", 300))
	case 1:
		return `"` + longTexts[r.IntN(2)] + `"`
	case 2:
		return `"A\u006en"`
	}
	return oneOf(r, `"Ann"`, `"ann"`, `"Bob"`, `"Cyd"`)
}

// order returns a document whose members of groups have one value.
func order(r *rand.Rand) string {
	var members []string
	if r.IntN(10) > 0 {
		members = append(members, `"Customer":`+customer(r))
	}
	if r.IntN(10) > 0 {
		members = append(members, fmt.Sprintf(`"At":"202%d-0%d-01T12:00:00Z"`, r.IntN(3), 1+r.IntN(2)))
	}
	for _, name := range []string{"Total", "Price", "Quantity"} {
		if r.IntN(10) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, number(r)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Ensure that kept sums are a kind of index, and say what a scan says.
func TestGroups(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.Name,
		Kind:  catalog.Kind{Options: groups.Kind.Options},
		Index: jay.Index{Fields: []string{"Customer", "year(At)"}, Options: map[string]string{"sums": "Total, Price * Quantity"}},
		Body:  order,
		Groups: func(r *rand.Rand) string {
			by := oneOf(r, "Customer, year(At)", "year(At), Customer", "Customer", "year(At)")
			where := oneOf(r, "", "", "where Customer = 'ANN'", "where exact(Customer = 'Ann')", "where Customer = null", "where not (Customer = null)", "where Customer in ('ann', 'ANN', 'Bob')",
				"where year(At) >= '2021'", "where Customer > 'a' and year(At) = '2020'", "where (Customer = 1 or startsWith(Customer, 'x'))", "where Customer != 'Bob' and year(At) between '2020' and '2021'")
			having := oneOf(r, "", "count() > 1", "sum(Total) > 10")
			if having != "" {
				having = map[bool]string{true: "where ", false: "and "}[where == ""] + having
			}
			return fmt.Sprintf("group by %s %s %s select %s, count() as N, sum(Total) as T, avg(Total) as A, sum(Price * Quantity) as P", by, where, having, by)
		},
		Explained: `kept counts and sums`,
		Invalid: []jay.Index{{}, {Fields: []string{"-Customer"}}, {Fields: []string{"id()"}}, {Fields: []string{"@metadata.x"}}, {Fields: []string{"lower(Customer)"}}, {Fields: []string{"concat(upper(A), B)"}},
			{Fields: []string{"day(At, 'Europe/Zurich')"}}, {Fields: []string{"1 + 2"}}, {Fields: []string{"A", "A"}}, {Fields: []string{"A"}, Options: map[string]string{"sums": "B, B"}}, {Fields: []string{"A"}, Options: map[string]string{"sums": "trim(B)"}},
			{Fields: []string{"A"}, Options: map[string]string{"sums": "a,b,c,d,e,f,g,h,i"}}, {Fields: []string{"if(lower(A) = 'x', 1, 2)"}}, {Fields: []string{"A"}, Options: map[string]string{"sums": "@metadata.@etag"}}},
	})
}

// Ensure that the same holds for documents in several groups, and for an index with a condition.
func TestGroups_Several(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.Name,
		Kind:  catalog.Kind{Options: groups.Kind.Options},
		Index: jay.Index{Fields: []string{"Lines[].Product", "Lines[].Quantity", "Tags"}, Where: "Total < 500", Options: map[string]string{"sums": "Lines.Price"}},
		Body: func(r *rand.Rand) string {
			var lines, tags []string
			for range r.IntN(4) {
				line := fmt.Sprintf(`"Price":%s`, number(r))
				if r.IntN(5) > 0 {
					line += `,"Product":` + customer(r)
				}
				if r.IntN(5) > 0 {
					line += fmt.Sprintf(`,"Quantity":%d`, r.IntN(2))
				}
				lines = append(lines, "{"+line+"}")
			}
			for range r.IntN(3) {
				tags = append(tags, oneOf(r, `"a"`, `"b"`, `null`, `[1]`))
			}
			return fmt.Sprintf(`{"Total":%d,"Lines":[%s],"Tags":[%s]}`, r.IntN(600), strings.Join(lines, ","), strings.Join(tags, ","))
		},
		Groups: func(r *rand.Rand) string {
			by := oneOf(r, "Lines[].Product, Lines[].Quantity, Tags", "Tags, Lines[].Quantity, Lines[].Product", "Tags")
			where := oneOf(r, "Total < 500", "Total < 500", "Total < 400", "Total < 500 and Tags = 'a'")
			return fmt.Sprintf("group by %s where %s select %s, count() as N, sum(Lines.Price) as P, avg(Lines.Price) as A", by, where, by)
		},
		Explained: `kept counts and sums`,
	})
}
