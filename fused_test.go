package jay_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

// fusing is a collection of notes with words and vectors, some of them without.
type fusing struct {
	db  *jay.DB
	rnd *rand.Rand
	to  []float32
}

func (f *fusing) vector() []float32 {
	v := make([]float32, 8)
	for i := range v {
		v[i] = float32(f.rnd.IntN(7) - 3)
	}
	v[0] = 1
	return v
}

func (f *fusing) note() string {
	words := []string{"oak", "elm", "ash", "birch", "fir"}
	var text []string
	for range 1 + f.rnd.IntN(6) {
		text = append(text, words[f.rnd.IntN(len(words))])
	}
	note := map[string]any{"Text": strings.Join(text, " "), "Topic": f.rnd.IntN(3), "Price": f.rnd.IntN(20)}
	if f.rnd.IntN(8) > 0 {
		note["Embedding"] = f.vector()
	}
	if f.rnd.IntN(10) == 0 {
		note["Price"] = "much"
	}
	raw, _ := json.Marshal(note)
	return string(raw)
}

// condition is of the answers: words or likeness, beside another condition.
func (f *fusing) condition() jay.Condition {
	return jay.And(jay.Ne("Topic", 2), jay.Or(jay.Search("Text", "oak elm"), jay.Similar("Embedding", f.to, 0.3)))
}

// querier is a database or a transaction.
type querier interface {
	Query(collection string) jay.Query[jay.Document]
}

// want returns the IDs of the answers in the order that they should have, with their sums: by what columns say of scores and distances, and a count of better
// answers for each.
func (f *fusing) want(t *testing.T, db querier) (ids []string) {
	type answer struct {
		ID    string   `json:"id()"`
		Score float64  `json:"S"`
		Far   *float64 `json:"D"`
		Price any
	}
	all, err := jay.Select[answer](db.Query("Notes").Where(f.condition()), "id()", "score() as S", jay.Nearest("Embedding", f.to)+" as D", "Price").All(ctx)
	jaytest.Must(t, err)
	sum := func(a *answer) (sum float64) {
		ranks := []int{}
		if a.Score > 0 {
			rank := 1
			for _, b := range all {
				if b.Score > a.Score {
					rank++
				}
			}
			ranks = append(ranks, rank)
		}
		if a.Far != nil {
			rank := 1
			for _, b := range all {
				if b.Far != nil && *b.Far < *a.Far {
					rank++
				}
			}
			ranks = append(ranks, rank)
		}
		if price, is := a.Price.(float64); is {
			rank := 1
			for _, b := range all {
				if other, is := b.Price.(float64); is && other > price {
					rank++
				}
			}
			ranks = append(ranks, rank)
		}
		slices.Sort(ranks)
		for _, rank := range ranks {
			sum += 1 / float64(60+rank)
		}
		return sum
	}
	slices.SortFunc(all, func(a, b *answer) int {
		return cmp.Or(cmp.Compare(sum(b), sum(a)), strings.Compare(a.ID, b.ID))
	})
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	return ids
}

func (f *fusing) query(db querier) jay.Query[jay.Document] {
	return db.Query("Notes").Where(f.condition()).OrderBy(jay.Fuse(jay.Score, jay.Nearest("Embedding", f.to), "-Price"))
}

func idsOf(t *testing.T, q jay.Query[jay.Document]) (ids []string) {
	for doc, err := range q.Iter(ctx) {
		jaytest.Must(t, err)
		ids = append(ids, doc.ID())
	}
	return ids
}

// Ensure answers by reciprocal ranks are those of a computation in memory: by a scan and by indexes, after changes, page by page, as columns and
// documents, and with what a transaction has written itself.
func TestQuery_Fused(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	f := &fusing{db: jaytest.Memory(t, nil), rnd: rand.New(rand.NewPCG(seed, 37))}
	f.to = f.vector()
	for i := range 300 {
		_, err := f.db.Put(ctx, fmt.Sprintf("notes/%03d", i), json.RawMessage(f.note()), jay.InCollection("Notes"))
		jaytest.Must(t, err)
	}
	check := func(what string, db querier) []string {
		t.Helper()
		want := f.want(t, db)
		if len(want) < 50 {
			t.Fatalf("%s: %d answers", what, len(want))
		}
		if got := idsOf(t, f.query(db)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
		if got := idsOf(t, f.query(db).Skip(7).Limit(12)); !slices.Equal(got, want[7:19]) {
			t.Errorf("%s: a page: got %v, want %v", what, got, want[7:19])
		}
		return want
	}
	scanned := check("scan", f.db)
	for _, ix := range []jay.Index{
		{Name: "Words", Kind: "text", Fields: []string{"Text"}},
		{Name: "Alike", Kind: "vectors", Fields: []string{"Embedding"}, Options: map[string]string{"dimensions": "8"}},
		{Name: "Topics", Fields: []string{"Topic"}},
	} {
		jaytest.Must(t, f.db.EnsureIndex(ctx, "Notes", ix))
	}
	jaytest.Must(t, f.db.Flush(ctx))
	if got := check("indexes", f.db); !slices.Equal(got, scanned) {
		t.Errorf("with indexes %v, without %v", got, scanned)
	}
	for i := 0; i < 300; i += 5 {
		_, err := f.db.Put(ctx, fmt.Sprintf("notes/%03d", i), json.RawMessage(f.note()), jay.InCollection("Notes"))
		jaytest.Must(t, err)
	}
	jaytest.Must(t, f.db.Flush(ctx))
	check("changed", f.db)
	jaytest.Must(t, f.db.Update(ctx, func(tx *jay.Tx) error {
		for i := 0; i < 40; i++ {
			_, err := tx.Put(ctx, fmt.Sprintf("notes/%03d", 280+i), json.RawMessage(f.note()), jay.InCollection("Notes"))
			jaytest.Must(t, err)
		}
		jaytest.Must(t, tx.Delete(ctx, "notes/003"))
		check("transaction", tx)
		return nil
	}))
	jaytest.Must(t, f.db.Flush(ctx))
	want := check("committed", f.db)

	n, err := f.query(f.db).Count(ctx)
	if err != nil || n != int64(len(want)) {
		t.Errorf("count: got %d, %v, want %d", n, err, len(want))
	}
	rows, err := jay.Select[struct{ Topic int }](f.query(f.db), "Topic").Distinct().All(ctx)
	if err != nil || len(rows) != 2 {
		t.Errorf("distinct: got %v, %v", rows, err)
	}
	e, err := f.query(f.db).Limit(5).Explain(ctx)
	if err != nil || !slices.Contains(e.Plan, "fuse the ranks of all answers in 3 orders: the sum of 1 / (60 + rank)") || e.Returned != 5 {
		t.Errorf("got %v, %v", e, err)
	}
}

// Ensure a query by reciprocal ranks is refused where it has no meaning, and says why.
func TestQuery_FusedRefused(t *testing.T) {
	db := jaytest.Memory(t, nil)
	_, err := db.Put(ctx, "notes/1", json.RawMessage(`{"Text":"oak","A":1}`), jay.InCollection("Notes"))
	jaytest.Must(t, err)
	q := db.Query("Notes").Where(jay.Search("Text", "oak"))
	_, err = q.OrderBy(jay.Fuse(jay.Score, "A")).Page(ctx)
	if !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "rank.fuse() has no cursor") {
		t.Errorf("page: got %v", err)
	}
	for name, q := range map[string]jay.Query[jay.Document]{
		"two":          q.OrderBy(jay.Fuse(jay.Score, "A"), "A"),
		"descending":   q.OrderBy("-" + jay.Fuse(jay.Score, "A")),
		"none":         q.OrderBy(jay.Fuse()),
		"one":          q.OrderBy(jay.Fuse(jay.Score)),
		"no search":    db.Query("Notes").OrderBy(jay.Fuse(jay.Score, "A")),
		"a bad vector": q.OrderBy(jay.Fuse(jay.Score, jay.Nearest("A", nil))),
	} {
		if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if list, err := q.OrderBy(jay.Fuse(jay.Score, "A")).OrderBy("A").All(ctx); err != nil || len(list) != 1 {
		t.Errorf("another order: got %v, %v", list, err)
	}
}

// Ensure that more answers than ranks may take memory for are refused with the bound.
func TestQuery_FusedLimit(t *testing.T) {
	db := jaytest.Memory(t, &jay.Options{MaxQueryBytes: 20_000})
	var b jay.Batch
	for i := range 300 {
		b.Put(fmt.Sprintf("notes/%d", i), json.RawMessage(fmt.Sprintf(`{"A":%d,"B":%d}`, i, -i)), jay.InCollection("Notes"))
	}
	_, err := db.Apply(ctx, &b)
	jaytest.Must(t, err)
	var limit *query.LimitError
	ranked := db.Query("Notes").OrderBy(jay.Fuse("A", "B")).Limit(1)
	if _, err := ranked.All(ctx); !errors.Is(err, jay.ErrQuery) || !errors.As(err, &limit) || limit.What != "bytes of ranks" {
		t.Errorf("got %v", err)
	}
	if list, err := ranked.Where(jay.Lt("A", 100)).All(ctx); err != nil || len(list) != 1 {
		t.Errorf("fewer: got %v, %v", list, err)
	}
}
