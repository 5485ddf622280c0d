package query_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// Ensure an order by reciprocal ranks is parsed, and printed as it is parsed.
func TestParse_Fused(t *testing.T) {
	for _, text := range []string{
		`from Notes order by rank.fuse(score(), vector.distance(Embedding, [0.5, 1]))`,
		`from Notes where search(Text, 'oak') order by rank.fuse(score() desc, Price desc, At as date, Size as long) select Text limit 3 offset 2`,
		`from Notes order by rank.fuse(a, b, c, d, e, f, g, h)`,
	} {
		q, err := query.Parse(text, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !q.Fused || len(q.OrderBy) < 2 || q.String() != text {
			t.Errorf("got %s, want %s", q, text)
		}
	}
	q, err := query.Parse(`from Notes order by RANK.Fuse(score() asc, Price desc)`, nil)
	if want := `from Notes order by rank.fuse(score(), Price desc)`; err != nil || q.String() != want || !q.OrderBy[0].Descending {
		t.Errorf("got %v, %v", q, err)
	}
	if q, err := query.Parse(`from Notes order by rank.fuse`, nil); err != nil || q.Fused {
		t.Errorf("a member: got %v, %v", q, err)
	}
}

// Ensure an order by reciprocal ranks that has no meaning is refused, with what is wrong.
func TestParse_FusedRefused(t *testing.T) {
	for text, want := range map[string]string{
		`from N order by rank.fuse(score())`:                                     "joins 1 orders",
		`from N order by rank.fuse(a, b, c, d, e, f, g, h, i)`:                   "joins 9 orders",
		`from N order by rank.fuse()`:                                            "a field to order by",
		`from N order by rank.fuse(a, b), c`:                                     "the whole order",
		`from N order by a, rank.fuse(a, b)`:                                     "rank",
		`from N order by rank.fuse(a, b) desc`:                                   "no direction",
		`from N order by rank.fuse(a, b) asc`:                                    "no direction",
		`from N order by rank.fuse(a, b`:                                         "behind the orders",
		`from N order by rank.fuse(rank.fuse(a, b), c)`:                          "rank",
		`from N order by rank.fuse(a, count())`:                                  "groups",
		`from N group by a order by rank.fuse(a, count()) select key(), count()`: "documents",
		`from N each Lines as l order by rank.fuse(l.A, l.B) select l.A`:         "elements",
		`from N order by rank.fuse(a, b) select sum(c)`:                          "groups",
		`from N order by rank.fuse(a, b) select facet(c)`:                        "order",
		`from N order by rank.merge(a, b)`:                                       "rank",
	} {
		if _, err := query.Parse(text, nil); !errors.Is(err, query.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"rank.fuse(a)", "rank.fuse(a, b) c", "rank.fuse(a, sum(b))"} {
		if _, is, err := query.ParseFused(text); !is || err == nil {
			t.Errorf("%s: got %v, %v", text, is, err)
		}
	}
	if _, is, err := query.ParseFused("Price * 2"); is || err != nil {
		t.Errorf("got %v, %v", is, err)
	}
	for _, q := range []query.Query{
		{Fused: true},
		{Fused: true, OrderBy: make([]query.Order, 9)},
		{Fused: true, OrderBy: make([]query.Order, 2), GroupBy: make([]query.Field, 1)},
	} {
		if err := q.CheckFused(); !errors.Is(err, query.ErrCondition) {
			t.Errorf("%+v: got %v", q, err)
		}
	}
}

// Ensure the sums of reciprocal ranks are those of a count of better answers, whatever the order of the orders, with equal numbers and
// answers without.
func TestFuseRanks(t *testing.T) {
	share := func(ranks ...int) (sum float64) { // as float64 has it, and no constant
		for _, rank := range ranks {
			sum += 1 / float64(60+rank)
		}
		return sum
	}
	rows := []struct {
		name    string
		orders  []query.Order
		numbers []float64
		want    []float64
	}{
		{"none", make([]query.Order, 2), nil, nil},
		{"one answer", make([]query.Order, 2), []float64{5, math.NaN()}, []float64{share(1)}},
		{"equal ones share a rank", make([]query.Order, 2), []float64{5, 1, 5, 1, 6, 1}, []float64{share(1, 1), share(1, 1), share(1, 3)}},
		{"descending", []query.Order{{Descending: true}, {}}, []float64{1, 1, 2, 2}, []float64{share(1, 2), share(1, 2)}},
	}
	for _, row := range rows {
		if got := query.FuseRanks(row.orders, row.numbers); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		orders := make([]query.Order, 2+r.IntN(query.MaxFused-1))
		for i := range orders {
			orders[i].Descending = r.IntN(2) == 0
		}
		numbers := make([]float64, len(orders)*r.IntN(40))
		for i := range numbers {
			if numbers[i] = float64(r.IntN(10)); r.IntN(5) == 0 {
				numbers[i] = math.NaN()
			}
		}
		got := query.FuseRanks(orders, numbers)
		for i := range got {
			if want := fusedOf(orders, numbers, i); got[i] != want {
				t.Fatalf("seed %d: answer %d: got %v, want %v", seed, i, got[i], want)
			}
		}
	}
}

// fusedOf counts for one answer how many others are better.
func fusedOf(orders []query.Order, numbers []float64, answer int) (sum float64) {
	var ranks []int
	for part, o := range orders {
		own, rank := numbers[answer*len(orders)+part], 1
		if math.IsNaN(own) {
			continue
		}
		for at := part; at < len(numbers); at += len(orders) {
			if numbers[at] < own && !o.Descending || numbers[at] > own && o.Descending {
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

func ExampleFusedText() {
	fmt.Println(query.FusedText([]string{"score()", "-Price"}))
	// Output: rank.fuse(score(), Price desc)
}
