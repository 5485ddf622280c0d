package computed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// attributes is an index with a field for each attribute of a product.
func attributes() jay.Computed {
	return jay.Computed{Name: "Attributes", Maps: []index.Map{{Collection: "Products", Where: "not Hidden = true", Select: []index.Member{{Name: "N"}, {Name: "_", Expression: "fields(Attributes, Name, Value)"}}}}}
}

// attribute is an attribute of a product.
type attribute struct {
	Name  string
	Value int
}

// Ensure that after random histories conditions on fields with names in documents find what a look at all bodies finds: by the index and by a scan, in transactions and
// outside.
func TestCreated_History(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 198))
	h := begin(t, attributes())
	type product struct {
		N          int
		Hidden     bool
		Attributes []attribute
	}
	all := make(map[string]product)
	has := func(p product, name string, is func(v int) bool) bool {
		return slices.ContainsFunc(p.Attributes, func(a attribute) bool { return a.Name == name && is(a.Value) })
	}
	conditions := map[string]func(p product) bool{
		"Color = 2":  func(p product) bool { return has(p, "Color", func(v int) bool { return v == 2 }) },
		"Color != 2": func(p product) bool { return !has(p, "Color", func(v int) bool { return v == 2 }) },
		"Size > 1 and Color < 3": func(p product) bool {
			return has(p, "Size", func(v int) bool { return v > 1 }) && has(p, "Color", func(v int) bool { return v < 3 })
		},
		"Size between 1 and 2 or N = 3": func(p product) bool { return has(p, "Size", func(v int) bool { return v == 1 || v == 2 }) || p.N == 3 },
		"Size in (0, 3) and not exists(Color)": func(p product) bool {
			return has(p, "Size", func(v int) bool { return v == 0 || v == 3 }) && !has(p, "Color", func(int) bool { return true })
		},
		"Color all in (0, 1)": func(p product) bool {
			return has(p, "Color", func(v int) bool { return v == 0 }) && has(p, "Color", func(v int) bool { return v == 1 })
		},
		"Color * 2 = 4":               func(p product) bool { return has(p, "Color", func(v int) bool { return v == 2 }) },
		"if(Color * 2 = 4, 1, 0) = 1": func(p product) bool { return has(p, "Color", func(v int) bool { return v == 2 }) },
		"color = 2":                   func(product) bool { return false },
	}
	check := func(from interface {
		RQL(string, map[string]any) (jay.Query[jay.Row], error)
	}) {
		t.Helper()
		for where, is := range conditions {
			var want []string
			for id, p := range all {
				if !p.Hidden && is(p) {
					want = append(want, fmt.Sprintf(`{"id":%q}`, id))
				}
			}
			slices.Sort(want)
			for _, how := range []string{"", "use no index "} {
				q, err := from.RQL("from index 'Attributes' "+how+"where "+where+" select id() as id", nil)
				jaytest.Must(t, err)
				rows, err := q.All(t.Context())
				jaytest.Must(t, err)
				var got []string
				for _, row := range rows {
					got = append(got, string(row.JSON))
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s%s: got %v, want %v", how, where, got, want)
				}
			}
		}
	}
	both := product{Attributes: []attribute{{"Color", 0}, {"Color", 1}, {"Size", 3}}}
	raw, err := json.Marshal(both)
	jaytest.Must(t, err)
	all["products/both"] = both
	h.put("products/both", string(raw), jay.InCollection("Products"))
	steps := 120
	if testing.Short() {
		steps = 40
	}
	for step := range steps {
		id := fmt.Sprint("products/", r.IntN(10))
		p := product{N: r.IntN(5), Hidden: r.IntN(5) == 0}
		for range r.IntN(4) {
			p.Attributes = append(p.Attributes, attribute{[]string{"Color", "Size"}[r.IntN(2)], r.IntN(4)})
		}
		raw, err = json.Marshal(p)
		jaytest.Must(t, err)
		all[id] = p
		switch r.IntN(6) {
		case 0:
			delete(all, id)
			h.remove(id)
		case 1:
			delete(all, id)
			h.expire(id, string(raw), jay.InCollection("Products"))
		case 2:
			h.transact(id, string(raw), jay.InCollection("Products"), func(tx *jay.Tx) { check(tx) })
		default:
			h.put(id, string(raw), jay.InCollection("Products"))
		}
		if check(h.db); t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
	checks.WaitIndexTasks(h.db)
	q, err := h.db.RQL("from index 'Attributes' where Color = 2", nil)
	jaytest.Must(t, err)
	_, err = q.NoScan().All(t.Context())
	jaytest.Must(t, err)
	jaytest.Verify(t, h.db)
}

// Ensure that the other uses of such a field are refused with what to do, and declarations that have no meaning.
func TestCreated_Refused(t *testing.T) {
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), attributes()))
	for _, text := range []string{"order by Color", "select Color", "where Color = Size", "where Color = N", "where Color + N = 3", "where if(Color * 2 = N * 4, 1, 0) = 1", "where Color = @metadata.Other"} {
		q, err := db.RQL("from index 'Attributes' "+text, nil)
		if err == nil {
			_, err = q.All(t.Context())
		}
		if !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "the map creates") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for name, change := range map[string]func(c *jay.Computed){
		"a reduce": func(c *jay.Computed) {
			c.Reduce = &index.Reduce{GroupBy: []string{"N"}, Select: []index.Member{{Name: "N"}}}
		},
		"twice":           func(c *jay.Computed) { c.Maps[0].Select = append(c.Maps[0].Select, c.Maps[0].Select[1]) },
		"without a name":  func(c *jay.Computed) { c.Maps[0].Select[1].Name = "" },
		"without a value": func(c *jay.Computed) { c.Maps[0].Select[1].Expression = "fields(Attributes, Name)" },
		"strict and computed": func(c *jay.Computed) {
			c.Strict, c.Maps[0].Select[1].Expression = true, "fields(Attributes, Name, Value * 2)"
		},
	} {
		c := attributes()
		c.Name = "Other"
		if change(&c); !errors.Is(jay.ComputedOf(db).Ensure(t.Context(), c), jay.ErrIndex) {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Ensure that an index of such fields alone answers with IDs, is restored, repaired and renamed, and tells several maps apart.
func TestCreated_Meetings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db := jaytest.Open(t, dir, nil)
	c := jay.Computed{Name: "Both", Maps: []index.Map{
		{Collection: "Products", Select: []index.Member{{Name: "_", Expression: "fields(Attributes, concat('p_', Name), Value)"}, {Name: "_2", Expression: "fields(More, N, V.X)"}}},
		{Collection: "Shops", Select: []index.Member{{Name: "_", Expression: "fields(Attributes, Name, Value)"}}},
	}}
	jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), c))
	jaytest.Put(t, db, "products/1", `{"Attributes":[{"Name":"a","Value":1}],"More":[{"N":"p_a","V":{"X":7}}]}`, jay.InCollection("Products"))
	jaytest.Put(t, db, "shops/1", `{"Attributes":[{"Name":"a","Value":1},{"Name":"p_a","Value":1}]}`, jay.InCollection("Shops"))
	for _, copied := range copiesOf(t, db, dir) {
		db := jaytest.Open(t, copied, nil)
		for _, names := range [][2]string{{"Products", "Goods"}, {"Goods", "Wares"}} {
			for where, want := range map[string]string{"a = 1": `[{"id()":"shops/1"}]`, "p_a = 7": `[{"id()":"products/1"}]`, "p_a = 1": `[{"id()":"products/1"} {"id()":"shops/1"}]`} {
				jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from index 'Both' where "+where+" order by id()")), want)
			}
			_, err := db.RenameCollection(t.Context(), names[0], names[1])
			jaytest.Must(t, err)
			checks.WaitIndexTasks(db)
		}
		jaytest.Verify(t, db)
		jaytest.Close(t, db)
	}
}
