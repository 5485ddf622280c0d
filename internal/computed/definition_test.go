package computed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/jaytest"
)

// members returns n members.
func members(n int) (all []index.Member) {
	for i := range n {
		all = append(all, index.Member{Name: fmt.Sprint("M", i)})
	}
	return all
}

// Ensure that the documented bounds of a declaration hold, and one less is valid.
func TestParse_Bounds(t *testing.T) {
	names := func(n int) (all []string) {
		for _, m := range members(n) {
			all = append(all, m.Name)
		}
		return all
	}
	of := func(change func(c *index.Computed)) index.Computed {
		c := index.Computed{Name: "i", Maps: []index.Map{{Collection: "A", Select: members(9)}}}
		change(&c)
		return c
	}
	for _, row := range []struct {
		name   string
		within func(n int) index.Computed
		most   int
	}{
		{"bytes of the name", func(n int) index.Computed { return of(func(c *index.Computed) { c.Name = strings.Repeat("n", n) }) }, computed.MaxName},
		{"members", func(n int) index.Computed { return of(func(c *index.Computed) { c.Maps[0].Select = members(n) }) }, computed.MaxMembers},
		{"groupBy", func(n int) index.Computed {
			return of(func(c *index.Computed) { c.Reduce = &index.Reduce{GroupBy: names(n), Select: members(1)} })
		}, computed.MaxGroupBy},
		{"a condition", func(n int) index.Computed {
			return of(func(c *index.Computed) { c.Maps[0].Where = "A = '" + strings.Repeat("x", n-6) + "'" })
		}, computed.MaxText},
	} {
		if _, err := computed.Parse(row.within(row.most)); err != nil {
			t.Errorf("%s: %d: %v", row.name, row.most, err)
		}
		if _, err := computed.Parse(row.within(row.most + 1)); !errors.Is(err, jay.ErrIndex) {
			t.Errorf("%s: %d: got %v", row.name, row.most+1, err)
		}
	}
	long := of(func(c *index.Computed) {
		for i := range c.Maps[0].Select {
			c.Maps[0].Select[i].Expression = "concat(A, '" + strings.Repeat("x", 7500) + "')"
		}
	})
	if _, err := computed.Parse(long); !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), "65536") {
		t.Errorf("all texts: got %v", err)
	}
}

// Ensure that a database has no more computed indexes than is documented, and a declaration no more maps.
func TestComputed_Bounds(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	maps := func(n int) (all []index.Map) {
		for i := range n {
			all = append(all, index.Map{Collection: fmt.Sprint("C", i), Select: []index.Member{{Name: "A", Expression: "1"}}})
		}
		return all
	}
	for i := range 64 {
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: fmt.Sprint(i), Maps: maps(1)}))
	}
	if err := jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "one more", Maps: maps(1)}); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("got %v", err)
	}
	jaytest.Must(t, jay.ComputedOf(db).Drop(ctx, "0"))
	if err := jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "i", Maps: maps(17)}); !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), "1 to 16") {
		t.Errorf("17 maps: got %v", err)
	}
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "i", Maps: maps(16)}))
	if err := db.EnsureIndex(ctx, "A", jay.Index{Name: "computed:x:1", Fields: []string{"A"}}); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("the name of a part: got %v", err)
	}
}
