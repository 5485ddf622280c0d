package computed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/jaytest"
)

// loading are indexes that load documents, with a query of each and one of the documents that must answer the same.
var loading = []struct {
	of                jay.Computed
	kept, from, where string
}{
	{
		of: jay.Computed{Name: "ByName", Maps: []index.Map{{Collection: "Orders", Select: []index.Member{
			{Name: "Name", Expression: "load(Customer).Name"}, {Name: "City", Expression: "load(Customer).Address.City"}, {Name: "Boss", Expression: "load(load(Customer).Boss).Name"}}}}},
		kept: "from index 'ByName' where Name = 'ann' or Boss = 'ann' or City = 'Bern' order by id() select id() as id",
		from: "from Orders where load(Customer).Name = 'ann' or load(load(Customer).Boss).Name = 'ann' or load(Customer).Address.City = 'Bern' order by id() select id() as id",
	},
	{
		of: jay.Computed{Name: "ByCity", Maps: []index.Map{{Collection: "Orders", Where: "load(Customer).Blocked != true", Select: []index.Member{
			{Name: "City", Expression: "load(Customer).Address.City"}, {Name: "Total", Expression: "Total * load(Customer).Rate"}}}},
			Reduce: &index.Reduce{GroupBy: []string{"City"}, Select: []index.Member{{Name: "City"}, {Name: "Count", Expression: "count()"}, {Name: "Sum", Expression: "sum(Total)"}, {Name: "Most", Expression: "max(Total)"}}}},
		kept: "from index 'ByCity' order by City",
		from: "from Orders group by load(Customer).Address.City where load(Customer).Blocked != true order by load(Customer).Address.City select load(Customer).Address.City as City, count() as Count, sum(Total * load(Customer).Rate) as Sum, max(Total * load(Customer).Rate) as Most",
	},
	{
		of: jay.Computed{Name: "ByProduct", Maps: []index.Map{{Collection: "Orders", Each: "Lines", As: "line", Where: "load(line.Product).Gone != true", Select: []index.Member{
			{Name: "Product", Expression: "load(line.Product).Name"}, {Name: "Pieces", Expression: "line.Pieces * load(line.Product).Weight"}}}},
			Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "Sum", Expression: "sum(Pieces)"}, {Name: "Least", Expression: "min(Pieces)"}}}},
		kept: "from index 'ByProduct' order by Product",
		from: "from Orders each Lines as line group by load(line.Product).Name where load(line.Product).Gone != true order by load(line.Product).Name select load(line.Product).Name as Product, sum(line.Pieces * load(line.Product).Weight) as Sum, min(line.Pieces * load(line.Product).Weight) as Least",
	},
	{
		of: jay.Computed{Name: "ByWish", Maps: []index.Map{{Collection: "Orders", Each: "Wishes", As: "wish", Where: "load(wish).Gone != true and load(Customer).Blocked != true", Select: []index.Member{
			{Name: "Product", Expression: "load(wish).Name"}, {Name: "Weight", Expression: "load(wish).Weight"}}}},
			Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "Count", Expression: "count()"}, {Name: "Sum", Expression: "sum(Weight)"}, {Name: "Most", Expression: "max(Weight)"}}}},
		kept: "from index 'ByWish' order by Product",
		from: "from Orders each Wishes as wish group by load(wish).Name where load(wish).Gone != true and load(Customer).Blocked != true order by load(wish).Name select load(wish).Name as Product, count() as Count, sum(load(wish).Weight) as Sum, max(load(wish).Weight) as Most",
	},
	{
		of: jay.Computed{Name: "WithCustomer", Maps: []index.Map{{Collection: "Orders", Where: "type(load(Customer)) = 'object'", Select: []index.Member{
			{Name: "Total"}, {Name: "Boss", Expression: "if(type(load(load(Customer).Boss)) = 'object', 'is', 'none')"}}}}},
		kept: "from index 'WithCustomer' where Boss = 'is' order by id() select id() as id",
		from: "from Orders where type(load(Customer)) = 'object' and type(load(load(Customer).Boss)) = 'object' order by id() select id() as id",
	},
}

type asker interface {
	RQL(string, map[string]any) (jay.Query[jay.Row], error)
}

// rowsOf are the answers of a query, without a scan if it is kept.
func rowsOf(t testing.TB, ctx context.Context, from asker, text string, kept bool) string {
	t.Helper()
	q, err := from.RQL(text, nil)
	jaytest.Must(t, err)
	if kept {
		q = q.NoScan()
	} else if !strings.HasPrefix(text, "from index") {
		q = q.NoIndex()
	}
	all, err := q.All(ctx)
	jaytest.Must(t, err)
	rows := ""
	for _, row := range all {
		rows += string(row.JSON)
	}
	return rows
}

// Ensure that an index that loads documents answers as its documents do, whatever was written to these and to those that they load, and that
// Verify finds nothing.
func TestLoads_History(t *testing.T) {
	ctx := t.Context()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 35))
	h := begin(t, loading[0].of)
	for _, l := range loading[1:] {
		jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, l.of))
	}
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	arrays := false // an index does not have the greatest of a group if a document is in several
	order := func() string {
		var lines []string
		for range r.IntN(3) {
			lines = append(lines, fmt.Sprintf(`{"Product":"products/%d","Pieces":%d}`, r.IntN(3), r.IntN(5)))
		}
		customer := pick(`"customers/1"`, `"CUSTOMERS/2"`, `"customers/3"`, `7`, `null`, `"orders/1"`, `""`)
		if arrays && r.IntN(3) == 0 {
			customer = `["customers/1","customers/2","customers/1",7]`
		}
		wishes := pick(`null`, `[]`, `["products/1"]`, `["products/0","PRODUCTS/1","products/0"]`, `[7,"products/2",null,"products/1"]`, `"products/0"`)
		return fmt.Sprintf(`{"Customer":%s,"Total":%d,"Wishes":%s,"Lines":[%s]}`, customer, r.IntN(100), wishes, strings.Join(lines, ","))
	}
	customer := func() string {
		return fmt.Sprintf(`{"Name":%s,"Address":{"City":%s},"Rate":%s,"Boss":"customers/%d","Blocked":%s}`, pick(`"ann"`, `"bob"`, `null`), pick(`"Bern"`, `"Rome"`), pick("1", "0.5", `"x"`), 1+r.IntN(3), pick("true", "false"))
	}
	product := func() string {
		return fmt.Sprintf(`{"Name":%s,"Weight":%d,"Gone":%s}`, pick(`"a"`, `"b"`), r.IntN(4), pick("true", "false", "false"))
	}
	compare := func(from asker, kept bool) {
		t.Helper()
		for _, l := range loading {
			if got, want := rowsOf(t, ctx, from, l.kept, kept), rowsOf(t, ctx, from, l.from, false); got != want {
				t.Fatalf("%s: got %s, want %s", l.of.Name, got, want)
			}
		}
	}
	at := func(kept bool) { // of one moment: what has expired is deleted at any time
		t.Helper()
		jaytest.Must(t, h.db.View(ctx, func(tx *jay.Tx) error { compare(tx, kept); return nil }))
	}
	write := func(w interface {
		Put(context.Context, string, json.RawMessage, ...jay.WriteOption) (jay.Metadata, error)
	}) {
		var err error
		switch r.IntN(3) {
		case 0:
			_, err = w.Put(ctx, fmt.Sprint("Orders/", r.IntN(6)), json.RawMessage(order()), jay.InCollection("Orders"))
		case 1:
			_, err = w.Put(ctx, fmt.Sprint("customers/", 1+r.IntN(3)), json.RawMessage(customer()), jay.InCollection("Customers"))
		default:
			_, err = w.Put(ctx, fmt.Sprint("products/", r.IntN(3)), json.RawMessage(product()), jay.InCollection("Products"))
		}
		jaytest.Must(t, err)
	}
	for i := range 180 {
		arrays = i > 120
		id := pick("orders/1", "orders/2", "customers/1", "customers/2", "customers/3", "products/0", "products/1")
		switch r.IntN(8) {
		case 0, 1:
			h.remove(id)
		case 2:
			_, err := h.db.Put(ctx, "customers/1", json.RawMessage(customer()), jay.InCollection("Customers"), jay.ExpiresAt(h.clock.Now()))
			jaytest.Must(t, err)
			h.clock.Advance(1)
			h.remove("customers/1") // it may be swept at any time
		case 3:
			err := jay.ErrConflict
			for errors.Is(err, jay.ErrConflict) { // with the worker that deletes what has expired
				err = h.db.Update(ctx, func(tx *jay.Tx) error {
					write(tx)
					write(tx)
					compare(tx, false)
					return nil
				})
			}
			jaytest.Must(t, err)
		default:
			write(h.db)
		}
		at(!arrays)
	}
	jaytest.Verify(t, h.db)
	for _, l := range loading {
		jaytest.Must(t, jay.ComputedOf(h.db).Drop(ctx, l.of.Name))
		jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, l.of))
	}
	at(false)
	jaytest.Verify(t, h.db)
}

// Ensure that a write is refused by an error that names the index if too many documents refer to what it changes, but only if they load what it changes.
func TestLoads_Referrers(t *testing.T) {
	ctx := t.Context()
	was := catalog.MaxReferrers
	catalog.MaxReferrers = 3
	defer func() { catalog.MaxReferrers = was }()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, loading[0].of))
	for i := range 4 {
		jaytest.Put(t, db, fmt.Sprint("orders/", i), `{"Customer":"customers/1"}`, jay.InCollection("Orders"))
		if i == 2 {
			jaytest.Put(t, db, "customers/1", `{"Name":"ann"}`, jay.InCollection("Customers"))
		}
	}
	jaytest.Put(t, db, "customers/1", `{"Name":"ann","Phone":7}`, jay.InCollection("Customers"))
	_, err := db.Put(ctx, "customers/1", json.RawMessage(`{"Name":"bob"}`))
	var many *index.ReferrersError
	if !errors.As(err, &many) || !errors.Is(err, jay.ErrIndex) || many.ID != "customers/1" || many.Limit != 3 || many.Collection != "Orders" || !strings.HasPrefix(many.Index, "computed:ByName:") {
		t.Fatalf("got %v", err)
	}
	if err := db.Delete(ctx, "customers/1"); !errors.As(err, &many) {
		t.Errorf("a deletion: got %v", err)
	}
	jaytest.Equal(t, rowsOf(t, ctx, db, loading[0].kept, true), `{"id":"orders/0"}{"id":"orders/1"}{"id":"orders/2"}{"id":"orders/3"}`)
	jaytest.Must(t, db.Delete(ctx, "orders/0"))
	jaytest.Put(t, db, "customers/1", `{"Name":"bob"}`)
	jaytest.Equal(t, rowsOf(t, ctx, db, loading[0].kept, true), "")
	jaytest.Verify(t, db)
}

// Ensure that the writers of a document and of those that load it do not miss each other, also while the index is built.
func TestLoads_Race(t *testing.T) {
	ctx := t.Context()
	db := jaytest.Open(t, t.TempDir(), nil) // on a disk several transactions share a commit
	defer jaytest.Close(t, db)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 100 {
				id, body, in := fmt.Sprint("orders/", i%7), fmt.Sprintf(`{"Customer":"customers/%d"}`, (i+w)%3), "Orders"
				if w%2 == 0 {
					id, body, in = fmt.Sprint("customers/", i%3), fmt.Sprintf(`{"Name":"%d-%d"}`, w, i), "Customers" // another name each time, so that no entry is mended by the next write
				}
				if _, err := db.Put(ctx, id, json.RawMessage(body), jay.InCollection(in)); err != nil {
					t.Error(err)
				}
				if w == 0 && i == 10 {
					if err := jay.ComputedOf(db).Ensure(ctx, loading[0].of); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	jaytest.Verify(t, db)
}

// Ensure that a document and one that refers to it may be written by one commit, in either order.
func TestLoads_OneCommit(t *testing.T) {
	ctx := t.Context()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, loading[0].of))
	var batch jay.Batch
	batch.Put("orders/1", []byte(`{"Customer":"customers/1"}`), jay.InCollection("Orders"))
	batch.Put("customers/1", []byte(`{"Name":"ann"}`), jay.InCollection("Customers"))
	batch.Put("orders/2", []byte(`{"Customer":"customers/1"}`), jay.InCollection("Orders"))
	_, err := db.Apply(ctx, &batch)
	jaytest.Must(t, err)
	jaytest.Equal(t, rowsOf(t, ctx, db, loading[0].kept, true), `{"id":"orders/1"}{"id":"orders/2"}`)
	jaytest.Verify(t, db)
}
