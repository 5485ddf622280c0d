package query_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/query"
)

// Ensure that conditions without meaning, values that JSON does not have and
// work without bounds are refused, the same with an index and without, and
// quickly.
func TestQuery_Bad_Builder(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	deep := jay.Eq("V", 1)
	for range 10_000 {
		deep = jay.Not(jay.And(deep))
	}
	wide := make([]jay.Condition, 20_000)
	for i := range wide {
		wide[i] = jay.Eq("V", i)
	}
	long := strings.Repeat("x", 1<<20)
	refused := map[string]jay.Condition{
		"NaN":                        jay.Eq("V", math.NaN()),
		"infinity":                   jay.Lt("V", math.Inf(1)),
		"a NaN among others":         jay.In("V", 1, math.NaN()),
		"a NaN as a bound":           jay.Between("V", 1.0, math.NaN()),
		"a slice":                    jay.Eq("V", []int{1}),
		"a struct":                   jay.Gt("V", struct{}{}),
		"a function":                 jay.Eq("V", func() {}),
		"an array":                   jay.Eq("V", query.ValueOf([]byte("[1]"))),
		"an object":                  jay.In("V", query.ValueOf([]byte("{}"))),
		"nothing":                    jay.Eq("V", query.Value{}),
		"a bound that is nothing":    jay.Between("V", 1, query.Value{}),
		"no UTF-8":                   jay.Eq("V", "\xff"),
		"a prefix that is no UTF-8":  jay.StartsWith("V", "\xc4"),
		"a suffix that is no UTF-8":  jay.EndsWith("V", "\xc4"),
		"a pattern that is no UTF-8": jay.Matches("V", "\xc4"),
		"no number":                  jay.Eq("V", json.Number("01")),
		"an empty path":              jay.Eq("", 1),
		"a broken path":              jay.Eq("a..b", 1),
		"a long path":                jay.Exists(strings.Repeat("a.", 600) + "b"),
		"a broken pattern":           jay.Matches("V", "("),
		"a pattern that explodes":    jay.Matches("V", "((a{1,100}){1,100}){1,100}"),
		"a long pattern":             jay.Matches("V", strings.Repeat("a", 2000)),
		"nesting of 20,000":          deep,
		"20,000 conditions":          jay.Or(wide...),
		"a mistake inside":           jay.And(jay.Or(jay.Not(jay.Eq("V", math.NaN())))),
		"a mistake, any case":        jay.IgnoreCase(jay.Eq("V", math.NaN())),
	}
	answered := map[string]jay.Condition{
		"a megabyte":                jay.Eq("V", long),
		"a prefix of a megabyte":    jay.StartsWith("V", long),
		"a megabyte among others":   jay.In("V", long, "a"),
		"10,000 values":             jay.In("V", make([]int, 10_000)...),
		"no values":                 jay.In[int]("V"),
		"bounds of two kinds":       jay.Between("V", 1, "a"),
		"bounds the wrong way":      jay.Between("V", 5, 1),
		"a pattern that backtracks": jay.Matches("V", "(a+)+$"),
		"booleans":                  jay.Between("V", false, true),
		"below null":                jay.Lt("V", nil),
		"nothing at all":            {},
	}
	for _, indexed := range []bool{false, true} {
		db := memory(t, nil)
		put(t, db, "v/1", `{"V":"`+strings.Repeat("a", 100_000)+`!"}`, jay.InCollection("Values"))
		put(t, db, "v/2", `{"V":true}`, jay.InCollection("Values"))
		if indexed {
			must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: []string{"V"}}))
		}
		began := time.Now()
		for name, c := range refused {
			q := db.Query("Values").Where(c)
			_, err := q.All(ctx)
			_, errCount := q.Count(ctx)
			_, errPage := q.OrderBy("V").Page(ctx)
			_, errExplain := q.Explain(ctx)
			for _, err := range []error{err, errCount, errPage, errExplain} {
				if !errors.Is(err, jay.ErrQuery) {
					t.Errorf("%s, with an index %v: %.200v, want ErrQuery", name, indexed, err)
				} else if len(err.Error()) > 2000 {
					t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
				}
			}
		}
		for name, c := range answered {
			q := db.Query("Values").Where(c)
			docs, err := q.All(ctx)
			want := map[string]int{"booleans": 1, "nothing at all": 2}[name]
			if err != nil || len(docs) != want {
				t.Errorf("%s, with an index %v: %d answers, %v", name, indexed, len(docs), err)
			}
			if n, err := q.Count(ctx); err != nil || int(n) != want {
				t.Errorf("%s, with an index %v: count %d, %v", name, indexed, n, err)
			}
			if _, err := q.Explain(ctx); err != nil {
				t.Errorf("%s: explain: %v", name, err)
			}
		}
		if took := time.Since(began); took > jaytest.HangGuard {
			t.Errorf("all that took %v", took)
		}
		for name, q := range map[string]jay.Query[jay.Document]{
			"skip": db.Query("Values").Skip(-1), "limit": db.Query("Values").Limit(-1), "order": db.Query("Values").OrderBy("a..b"), "collection": db.Query("a\x00b"),
			"group": db.Query("Values").GroupBy("V"), "include": db.Query("Values").Include(".."), "cursor": db.Query("Values").After("x"),
		} {
			if _, err := q.All(ctx); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
		if n, err := db.Query("Nowhere").Where(jay.Eq("a", 1)).Count(ctx); n != 0 || err != nil {
			t.Errorf("an unknown collection: %d, %v", n, err)
		}
		if docs, err := db.Query("Values").Where(jay.Eq("no.such", 1)).All(ctx); len(docs) != 0 || err != nil {
			t.Errorf("an unknown field: %v, %v", docs, err)
		}
		if docs, err := db.Query("Values").Limit(math.MaxInt).Skip(math.MaxInt).OrderBy("V").All(ctx); len(docs) != 0 || err != nil {
			t.Errorf("the greatest limit: %v, %v", docs, err)
		}
		if docs, err := db.Query("Values").Limit(math.MaxInt).Skip(1).OrderBy("V").All(ctx); len(docs) != 1 || err != nil {
			t.Errorf("the greatest limit: %v, %v", docs, err)
		}
	}
}

// Ensure that wrong texts are refused with the place, and never hang.
func TestQuery_Bad_RQL(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "v/1", `{"V":1}`, jay.InCollection("Values"))
	for name, text := range map[string]string{
		"a megabyte":      "from Values where V = '" + strings.Repeat("x", 1<<20) + "'",
		"parentheses":     "from Values where " + strings.Repeat("(", 10_000) + "V = 1" + strings.Repeat(")", 10_000),
		"nots":            "from Values where " + strings.Repeat("not ", 10_000) + "V = 1",
		"a negative":      "from Values limit -1",
		"no parameter":    "from Values where V = $v",
		"search":          "from Values where search(V, '\"x')",
		"update":          "from Values update { this.V = 2 }",
		"NaN":             "from Values where V = NaN",
		"an exploding re": "from Values where regex(V, '((a{1,100}){1,100}){1,100}')",
		"empty":           "",
	} {
		q, err := db.RQL(text, nil)
		if err == nil {
			_, err = q.All(ctx)
		}
		if !errors.Is(err, query.ErrSyntax) && !errors.Is(err, jay.ErrQuery) || len(err.Error()) > 2000 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	for _, v := range []any{math.NaN(), []int{1}, struct{}{}, "\xff", query.ValueOf([]byte("[1]"))} {
		if _, err := db.RQL("from Values where V = $v", map[string]any{"v": v}); !errors.Is(err, query.ErrSyntax) {
			t.Errorf("parameter %v: %v", v, err)
		}
	}
}

// Ensure that a cursor that was tampered with is refused or begins somewhere,
// and never panics.
func TestQuery_Bad_Cursor(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for _, fields := range [][]string{nil, {"V"}, {"-V"}, {"V", "-W"}} {
		db := memory(t, nil)
		if fields != nil {
			must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: fields}))
		}
		for i := range 30 {
			put(t, db, fmt.Sprint("v/", i), fmt.Sprintf(`{"V":%d,"W":"w%d"}`, i%7, i%3), jay.InCollection("Values"))
		}
		random := rand.New(rand.NewPCG(1, 2))
		for _, q := range []jay.Query[jay.Document]{
			db.Query("Values").OrderBy("V"), db.Query("Values").OrderBy("-V"), db.Query("Values").OrderBy("V", "-W"), db.Query("Values").OrderBy("-V", "W", "id()"), db.Query("Values"),
			db.Query("Values").Where(jay.Eq("V", 3)).OrderBy("-W"), db.Query("Values").Where(jay.Lt("V", nil)).OrderBy("V"),
		} {
			text := q.String()
			if !strings.Contains(text, "order by") {
				text += " order by id()"
			}
			sum := sha256.Sum256([]byte(text))
			forge := func(key []byte, id string) string {
				raw, err := json.Marshal(map[string]any{"k": key, "i": id, "q": sum[:8]})
				must(t, err)
				return base64.RawURLEncoding.EncodeToString(raw)
			}
			p, err := q.Limit(5).Page(ctx)
			must(t, err)
			if p.Next != "" {
				var c struct{ K []byte }
				raw, err := base64.RawURLEncoding.DecodeString(p.Next)
				must(t, err)
				must(t, json.Unmarshal(raw, &c))
				again, err := q.Limit(5).After(forge(c.K, "v/3")).Page(ctx)
				if err != nil || len(again.Items) == 0 {
					t.Fatalf("the test cannot forge cursors: %v", err)
				}
			}
			for range 100 {
				key := make([]byte, random.IntN(20))
				for i := range key {
					key[i] = byte(random.IntN(256))
				}
				if random.IntN(2) == 0 {
					key = []byte{0x08}
					for range random.IntN(3) {
						key = append(key, [][]byte{{0x08}, {0xf7}, {0x30, 0x02}, {0xcf, 0xfd}, {0x40, 0x61, 0x00, 0x80}, {0xbf, 0x9e, 0xff, 0x7f}, bytes.Repeat([]byte{0x2d}, 1)}[random.IntN(7)]...)
					}
				}
				for _, id := range []string{"v/3", "", "\x00", strings.Repeat("z", 3000)} {
					cursor := forge(key, id)
					_, err := q.After(cursor).Limit(3).Page(ctx)
					_, errAll := q.After(cursor).All(ctx)
					for _, err := range []error{err, errAll} {
						if err != nil && !errors.Is(err, jay.ErrQuery) {
							t.Errorf("%v: key %x, id %q: %v", fields, key, id, err)
						}
					}
				}
			}
			for _, bad := range []string{"x", "{}", "e30", base64.RawURLEncoding.EncodeToString([]byte(`{"k":1}`)), strings.Repeat("A", 1<<20), p.Next + "A", "\x00"} {
				if _, err := q.After(bad).Page(ctx); !errors.Is(err, jay.ErrQuery) {
					t.Errorf("cursor %.20q: %v", bad, err)
				}
			}
		}
	}
}

// Ensure that All, like Page, begins behind a cursor of a query that says no
// order.
func TestQuery_After_WithoutOrder(t *testing.T) {
	db := memory(t, nil)
	for i := range 9 {
		put(t, db, fmt.Sprint("v/", i), `{}`, jay.InCollection("Values"))
	}
	p, err := db.Query("Values").Limit(3).Page(ctx)
	must(t, err)
	if got := found(t, db.Query("Values").After(p.Next)); got != "3 4 5 6 7 8" {
		t.Errorf("behind the first page: %s", got)
	}
}

// Ensure that what a query holds in memory is bounded: sorts, distinct rows,
// groups, and the IDs that a union has met.
func TestQuery_Bad_Memory(t *testing.T) {
	db := memory(t, &jay.Options{MaxQueryBytes: 20_000})
	var b jay.Batch
	for i := range 500 {
		b.Put(fmt.Sprintf("v/%03d", i), fmt.Appendf(nil, `{"V":%d,"W":[%d,%d],"T":"%0100d"}`, i, i, i+1, i), jay.InCollection("Values"))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: []string{"V"}}))
	must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: []string{"W"}}))
	for _, rql := range []string{
		"from Values order by T", "from Values order by V desc, T", "from Values select distinct T", "from Values group by T select T, count()",
		"from Values where W > 0", "from Values where V < 400 or V > 450", "from Values where V > 5 order by T",
	} {
		q, err := db.RQL(rql, nil)
		must(t, err)
		if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) || !errors.Is(err, query.ErrLimit) || !strings.Contains(err.Error(), "MaxQueryBytes") && !strings.Contains(err.Error(), "bytes of") {
			t.Errorf("%s: %v", rql, err)
		}
	}
	for _, rql := range []string{"from Values order by T limit 10", "from Values order by V", "from Values where V < 400", "from Values where W = 3", "from Values select sum(V), max(T), count()", "from Values select T", "from Values where W > 0 limit 20"} {
		q, err := db.RQL(rql, nil)
		must(t, err)
		if _, err := q.All(ctx); err != nil {
			t.Errorf("%s: %v", rql, err)
		}
	}
}
