package groups_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	private "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// byProduct is an index of the elements of an array.
var byProduct = jay.Index{Name: "ByProduct", Kind: "groups", Fields: []string{"line.Product", "Customer"},
	Options: map[string]string{"each": " Lines  as line", "only": "line.Quantity >= 0 and (Customer != 'c0')", "sums": "line.Price * line.Quantity, line.Quantity"}}

// perProduct are queries of elements.
var perProduct = []string{
	"from Orders each Lines as line group by line.Product, Customer where line.Quantity >= 0 and Customer != 'c0' select line.Product as P, Customer as C, count() as N, sum(line.Price * line.Quantity) as S, avg(line.Quantity) as Q",
	"from Orders as o each o.Lines as line group by o.Customer, line.Product where o.Customer != 'c0' and line.Quantity >= 0 select o.Customer, line.Product as P, count() as N",
}

// lines returns a document with lines.
func lines(r *rand.Rand) json.RawMessage {
	var all []string
	for range r.IntN(5) {
		all = append(all, fmt.Sprintf(`{"Product":%s,"Price":%s,"Quantity":%d}`, oneOf(r, `"p1"`, `"p2"`, `"P2"`, `["p1","p3"]`, `7`, `7.0`, `null`, `"`+strings.Repeat("x", 700)+`"`), number(r), r.IntN(6)-1))
		if r.IntN(6) == 0 {
			all = append(all, oneOf(r, `null`, `{}`, `"text"`, `{"Quantity":0,"Product":[]}`))
		}
	}
	array := "[" + strings.Join(all, ",") + "]"
	if r.IntN(10) == 0 {
		array = oneOf(r, `null`, `{"Product":"p1","Price":1,"Quantity":2}`, `"one"`)
	}
	return json.RawMessage(fmt.Sprintf(`{"Customer":"c%d","Lines":%s}`, r.IntN(3), array))
}

// Ensure that the elements of documents count in the groups of their own members, in the index as in a scan, after writes of all kinds.
func TestGroups_Elements(t *testing.T) {
	sample.OneGoroutine(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 150))
	db := private.Memory(t, nil)
	for i := range 30 {
		_, err := db.Put(ctx, fmt.Sprint("orders/", i), lines(r), jay.InCollection("Orders"))
		private.Must(t, err)
	}
	private.Must(t, db.EnsureIndex(ctx, "Orders", byProduct))
	compare := func(from querier) {
		t.Helper()
		for _, rql := range perProduct {
			q, err := from.RQL(rql, nil)
			private.Must(t, err)
			kept, err := q.NoScan().All(ctx)
			private.Must(t, err)
			scanned, err := q.NoIndex().All(ctx)
			private.Must(t, err)
			if got, want := sortedRows(kept), sortedRows(scanned); !slices.Equal(got, want) {
				t.Fatalf("%s\ngot  %v\nwant %v", rql, got, want)
			}
		}
	}
	for range 200 {
		id := fmt.Sprint("orders/", r.IntN(40))
		switch r.IntN(4) {
		case 0:
			if err := db.Delete(ctx, id); err != nil && !errors.Is(err, jay.ErrNotFound) {
				t.Fatal(err)
			}
		case 1:
			private.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Put(ctx, id, lines(r), jay.InCollection("Orders")); err != nil {
					return err
				}
				compare(tx)
				return nil
			}))
		default:
			_, err := db.Put(ctx, id, lines(r), jay.InCollection("Orders"))
			private.Must(t, err)
		}
		compare(db)
	}
	private.Verify(t, db)
}

// sortedRows returns rows as texts, sorted.
func sortedRows(rows []*jay.Row) (texts []string) {
	for _, r := range rows {
		texts = append(texts, string(r.JSON))
	}
	slices.Sort(texts)
	return texts
}

// Ensure what a fan-out means: which elements there are, and that all conditions on an element are about one.
func TestGroups_Elements_Meaning(t *testing.T) {
	db := private.Memory(t, nil)
	put(t, db, "orders/1", `{"Customer":"Ann","Lines":[{"P":"a","N":1,"Tags":["x","y"]},{"P":"b","N":5},{"P":"a","N":2}],"line":{"P":"shadowed"}}`)
	put(t, db, "orders/2", `{"Customer":"Bob","Lines":[]}`)
	put(t, db, "orders/3", `{"Customer":"Bob","Lines":{"P":"b","N":7}}`)
	put(t, db, "orders/4", `{"Customer":"Cyd","Lines":null}`)
	for _, row := range []struct{ rql, want string }{
		{"from Orders each Lines as line order by id(), line.N desc select Customer, line.P as P, line.N", `[{"Customer":"Ann","P":"b","line.N":5} {"Customer":"Ann","P":"a","line.N":2} {"Customer":"Ann","P":"a","line.N":1} {"Customer":"Bob","P":"b","line.N":7}]`},
		{"from Orders each Lines as line where line.P = 'a' and line.N = 5 select line.P", `[]`},
		{"from Orders each Lines as line where line.P = 'a' select distinct line.P", `[{"line.P":"a"}]`},
		{"from Orders each Lines as line group by line.P order by line.P select line.P, count() as N, sum(line.N * 2) as S", `[{"line.P":"a","N":2,"S":6} {"line.P":"b","N":2,"S":24}]`},
		{"from Orders each Lines as line group by line.Tags order by count() desc select line.Tags, count()", `[{"line.Tags":null,"Count":3} {"line.Tags":"x","Count":1} {"line.Tags":"y","Count":1}]`},
		{"from Orders each Lines.Tags as tag order by tag desc select tag, Customer limit 1", `[{"tag":"y","Customer":"Ann"}]`},
		{"from Orders each Lines as line where if(Customer = 'Ann', line.N, 0) >= 2 order by line.N select line.N", `[{"line.N":2} {"line.N":5}]`},
		{"from Orders each Lines as line where elemMatch(line.Tags, true) select line.P", `[]`},
		{"from Orders each Lines as line select count()", `[{"Count":4}]`},
	} {
		private.Equal(t, fmt.Sprint(private.Rows(t, db, row.rql)), strings.ReplaceAll(row.want, "} {", "} {"))
	}
	for _, row := range []struct{ rql, want string }{
		{"from Orders each Lines as line", "says what it selects"},
		{"from Orders each Lines select Lines", `"as"`},
		{"from Orders each id() as line select line", "no array of the body"},
		{"from Orders as o each Lines as o select o.P", "the alias of the documents"},
		{"from Orders each Lines as line select line.P include line.P", "include is of documents"},
	} {
		if _, err := db.RQL(row.rql, nil); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v", row.rql, err)
		}
	}
	q, err := db.RQL("from Orders each Lines as line where line.N > 1 select line.P, line.N", nil)
	private.Must(t, err)
	n, err := q.Count(ctx)
	private.Must(t, err)
	private.Equal(t, fmt.Sprint(n), "3")
	var all []string
	for cursor := ""; ; {
		page, err := q.Limit(1).After(cursor).Page(ctx)
		private.Must(t, err)
		for _, row := range page.Items {
			all = append(all, string(row.JSON))
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	private.Equal(t, fmt.Sprint(all), `[{"line.P":"b","line.N":5} {"line.P":"a","line.N":2} {"line.P":"b","line.N":7}]`)
}

// Ensure that a fan-out that cannot be kept is refused.
func TestGroups_Elements_Refused(t *testing.T) {
	db := private.Memory(t, nil)
	for _, row := range []struct{ where, each, only, want string }{
		{"", "Lines", "-", "the path of an array and a name"},
		{"", "Lines as line", "lower(line.P) = 'a'", "nothing that cannot be kept"},
		{"", "-", "N > 1", "there is none"},
		{"line.P = 'a'", "Lines as line", "-", "names an element"},
	} {
		err := db.EnsureIndex(ctx, "Orders", jay.Index{Name: "x", Kind: "groups", Fields: []string{"P"}, Where: row.where, Options: map[string]string{"each": row.each, "only": row.only}})
		var option *jay.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: got %v", row, err)
		}
	}
	private.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "x", Kind: "groups", Fields: []string{"line.P"}, Options: map[string]string{"each": "Lines as line"}}))
	_, err := db.Put(ctx, "orders/1", json.RawMessage(`{"Lines":[`+strings.TrimSuffix(strings.Repeat("1,", 10_001), ",")+`]}`), jay.InCollection("Orders"))
	var invalid *jay.DocumentError
	if !errors.As(err, &invalid) || invalid.Limit != 10_000 || invalid.Actual < 10_001 {
		t.Errorf("got %v", err)
	}
}

// Ensure that a document is noted if an expression fails for one of its elements that count, and that a strict index refuses it.
func TestGroups_Elements_Failing(t *testing.T) {
	db := private.Memory(t, nil)
	declared := jay.Index{Name: "x", Kind: "groups", Fields: []string{"line.P"}, Options: map[string]string{"each": "Lines as line", "only": "line.P != 'c'", "sums": "line.A / line.B"}}
	private.Must(t, db.EnsureIndex(ctx, "Orders", declared))
	put(t, db, "orders/1", `{"Lines":[{"P":"a","A":1,"B":2},{"P":"b","A":1,"B":0},{"P":"b","A":3,"B":0}]}`)
	put(t, db, "orders/2", `{"Lines":[{"P":"a","A":1,"B":2},{"P":"c","A":1,"B":0}]}`)
	var failing []string
	failures, err := jay.IndexOf(db, "Orders", "x").Errors(ctx, "", 0)
	private.Must(t, err)
	for _, f := range failures {
		failing = append(failing, f.ID+" "+f.Field+": "+f.Reason)
	}
	private.Equal(t, fmt.Sprint(failing), "[orders/1 line.A / line.B: /: a division by zero]")
	private.Verify(t, db)

	declared.Name, declared.Options["strict"] = "y", "yes"
	private.Must(t, db.Delete(ctx, "orders/1"))
	private.Must(t, db.EnsureIndex(ctx, "Orders", declared))
	_, err = db.Put(ctx, "orders/3", json.RawMessage(`{"Lines":[{"P":"a","A":1,"B":1},{"P":"b","A":1,"B":0}]}`), jay.InCollection("Orders"))
	var failed *jay.ComputeError
	if !errors.As(err, &failed) || failed.Index != "y" || failed.ID != "orders/3" {
		t.Errorf("got %v", err)
	}
}
