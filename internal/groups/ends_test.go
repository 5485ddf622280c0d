package groups_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/groups"
	private "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/kindtest"
)

// dated returns a document with lines that have one value each.
func dated(r *rand.Rand) string {
	var all []string
	for range r.IntN(5) {
		members := []string{fmt.Sprintf(`"Product":%s`, oneOf(r, `"p1"`, `"p2"`, `"P2"`, `7`, `7.0`, `null`, `true`))}
		if r.IntN(8) > 0 {
			members = append(members, fmt.Sprintf(`"At":%s`, oneOf(r, `1`, `2`, `2.0`, `3`, `"3"`, `null`)))
		}
		if r.IntN(8) > 0 {
			members = append(members, fmt.Sprintf(`"Price":%s`, oneOf(r, `1`, `-2`, `2.50`, `null`, `"a"`, `"A"`, `12345678901234567890`)))
		}
		all = append(all, "{"+strings.Join(members, ",")+"}")
	}
	array := "[" + strings.Join(all, ",") + "]"
	if r.IntN(10) == 0 {
		array = oneOf(r, `null`, `{"Product":"p1","Price":1,"At":2}`, `"one"`)
	}
	return fmt.Sprintf(`{"Total":%d,"Customer":"c%d","Lines":%s}`, r.IntN(10), r.IntN(3), array)
}

// Ensure that the ends of groups of elements are a kind of index, and say what a scan says.
func TestEnds(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.EndsName,
		Kind:  catalog.Kind{Options: groups.EndsKind.Options},
		Index: jay.Index{Fields: []string{"line.Product", "Customer"}, Where: "Total < 8", Options: map[string]string{"each": "Lines as line", "values": "line.At, line.Price"}},
		Body:  dated,
		Groups: func(r *rand.Rand) string {
			by := oneOf(r, "line.Product, Customer", "Customer, line.Product")
			where := "where Total < 8" + oneOf(r, "", " and Customer = 'c1'", " and line.Product in ('P1', 7)", " and line.Product > 'a'")
			what := oneOf(r, "min(line.At) as L, max(line.At) as M", "count(distinct line.At) as N, first(line.Price order by line.At) as F", "last(line.Price order by line.At) as Z, max(line.At) as M", "Customer as C")
			return fmt.Sprintf("each Lines as line group by %s %s select %s, %s", by, where, by, what)
		},
		Explained: "each group",
		Invalid: []jay.Index{{}, {Fields: []string{"line.P"}}, {Fields: []string{"line.P"}, Options: map[string]string{"each": "Lines as line"}}, {Fields: []string{"line.P"}, Options: map[string]string{"values": "line.N", "only": "line.N > 1"}},
			{Fields: []string{"line.P"}, Options: map[string]string{"each": "Lines as line", "values": "line.A, line.B, line.C"}}, {Fields: []string{"lower(line.P)"}, Options: map[string]string{"each": "Lines as line", "values": "line.A"}},
			{Fields: []string{"line.P"}, Options: map[string]string{"each": "Lines as line", "values": "trim(line.A)"}}, {Fields: []string{"line.P"}, Options: map[string]string{"each": "Lines as line", "function": "function('a', '1') as line", "values": "line.A"}}},
	})
}

// Ensure that the ends of groups of documents are found, too.
func TestEnds_Documents(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.EndsName,
		Kind:  catalog.Kind{Options: groups.EndsKind.Options},
		Index: jay.Index{Fields: []string{"Customer"}, Options: map[string]string{"values": "Total"}},
		Body:  dated,
		Groups: func(r *rand.Rand) string {
			return "group by Customer " + oneOf(r, "", "where Customer > 'c0' ") + "select Customer, " + oneOf(r, "min(Total) as L", "max(Total) as M, count(distinct Total) as N")
		},
		Explained: "each group",
	})
}

// Ensure that an index that has not all of an element answers nothing, and so nothing wrong.
func TestEnds_NotWhole(t *testing.T) {
	const ends = "from Orders each Lines as line group by line.P select line.P as P, max(line.N) as M"
	for _, element := range []string{`{"P":["a","b"],"N":9}`, `{"P":"a","N":[9,8]}`, `{"P":"a","N":"` + strings.Repeat("x", 700) + `"}`, `{"P":[["a"]],"N":9}`} {
		db := private.Memory(t, nil)
		private.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "Ends", Kind: "ends", Fields: []string{"line.P"}, Options: map[string]string{"each": "Lines as line", "values": "line.N"}}))
		put(t, db, "orders/1", `{"Lines":[{"P":"a","N":1},{"P":"b","N":2}]}`)
		if plan := explained(t, db, ends); !strings.Contains(plan, "the ends of each group") {
			t.Errorf("got %s", plan)
		}
		put(t, db, "orders/2", `{"Lines":[`+element+`]}`)
		if plan := explained(t, db, ends); strings.Contains(plan, "ends of each group") {
			t.Errorf("%.40s: got %s", element, plan)
		}
		private.Verify(t, db)
	}
}
