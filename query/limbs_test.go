package query_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// limbsValue is what limbs are worth.
func limbsValue(l query.Limbs) *big.Rat {
	sum := new(big.Rat)
	for i, unit := range []string{"1", "1e-9", "1e9", "1e18"} {
		worth, _ := new(big.Rat).SetString(unit)
		sum.Add(sum, worth.Mul(worth, new(big.Rat).SetInt64(l[i])))
	}
	return sum
}

// randomNumber returns a number, of which most fit into limbs.
func randomNumber(r *rand.Rand) string {
	sign := []string{"", "-"}[r.IntN(2)]
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf("%s%d", sign, r.Int64N(1e18))
	case 1:
		return fmt.Sprintf("%s%d.%09d", sign, r.IntN(1e9), r.IntN(1e9))
	case 2:
		return fmt.Sprintf("%s%de%d", sign, r.IntN(1e9), r.IntN(60)-30)
	case 3:
		return fmt.Sprintf("%s1%s.5", sign, strings.Repeat("0", r.IntN(30)))
	case 4:
		return sign + "0"
	}
	return fmt.Sprintf("%s%d", sign, r.IntN(100))
}

// Ensure that limbs hold exactly the numbers that have their digits from 10^26 to 10^-9, and are worth the sum of them.
func TestLimbs(t *testing.T) {
	for _, row := range []struct {
		number string
		fits   bool
	}{
		{"0", true}, {"-0", true}, {"0e99", true}, {"0.000000001", true}, {"1e-9", true}, {"0.0000000001", false}, {"1e-10", false},
		{"999999999999999999999999999.999999999", true}, {"-999999999999999999999999999.999999999", true}, {"1e26", true}, {"1e27", false}, {"1000000000000000000000000000", false},
		{"1.0000000010", true}, {"1.0000000001", false}, {"1e1000000000000001", false}, {`"1"`, false}, {"null", false}, {"[1]", false},
	} {
		var l query.Limbs
		if fits := l.Add(query.ValueOf([]byte(row.number))); fits != row.fits {
			t.Errorf("%s fits: %v", row.number, fits)
		}
		if !row.fits && l != (query.Limbs{}) {
			t.Errorf("%s has added %v", row.number, l)
		}
	}

	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var l query.Limbs
	sum, fitted := new(big.Rat), 0
	for range 20_000 {
		number := randomNumber(r)
		if !l.Add(query.ValueOf([]byte(number))) {
			continue
		}
		fitted++
		n, _ := new(big.Rat).SetString(number)
		if sum.Add(sum, n); limbsValue(l).Cmp(sum) != 0 {
			t.Fatalf("seed %d: %s: got %s, want %s", seed, number, limbsValue(l), sum)
		}
	}
	if fitted < 10_000 {
		t.Errorf("%d numbers fit", fitted)
	}
}

// Ensure that groups made of shares are those of the documents, whatever their numbers are, and however the shares are cut.
func TestGroups_AddShare(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	by := []query.Field{field(t, "K")}
	columns := []query.Column{{Name: "K", Field: by[0]}, {Name: "N", Func: query.FuncCount}, {Name: "S", Func: query.FuncSum, Field: field(t, "V")}, {Name: "A", Func: query.FuncAvg, Field: field(t, "V")}}
	rows := func(g *query.Groups) (out string) {
		for row := range g.Rows() {
			out += string(query.AppendRow(nil, columns, row)) + "\n"
		}
		return out
	}
	for range 300 {
		documents, err := query.NewGroups(by, columns, 0)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := query.NewGroups(by, columns, 0)
		if err != nil {
			t.Fatal(err)
		}
		shares, err := query.NewShares(by, []query.Field{field(t, "V")})
		if err != nil {
			t.Fatal(err)
		}
		for range r.IntN(20) {
			body := []byte(fmt.Sprintf(`{"K":%d,"V":[%s,%s,"x"]}`, r.IntN(3), randomNumber(r), randomNumber(r)))
			if r.IntN(4) == 0 {
				body = []byte(`{"V":1e300}`)
			}
			if err := documents.Add(query.Doc{Body: body}); err != nil {
				t.Fatal(err)
			}
			if n, err := shares.Begin(query.Doc{Body: body}); n != 1 || err != nil {
				t.Fatalf("%s is in %d groups, %v", body, n, err)
			}
			var sum query.SumShare
			if err := shares.Numbers(0, func(number query.Value) {
				if r.IntN(3) > 0 && sum.Limbs.Add(number) {
					sum.Count++
				} else {
					sum.Others = append(sum.Others, []byte(string(number.Raw())))
				}
			}); err != nil {
				t.Fatal(err)
			}
			err := shares.Each(func(members []query.Value) error {
				return kept.AddShare(members, query.Share{Documents: 1, Sums: []query.SumShare{{}, {}, sum, sum}})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got, want := rows(kept), rows(documents); got != want {
			t.Fatalf("seed %d: got\n%swant\n%s", seed, got, want)
		}
	}

	// What cannot be kept is taken from elsewhere.
	of := func(fn query.Func) []query.Column {
		return []query.Column{{Name: "N", Func: query.FuncCount}, {Name: "M", Func: fn, Field: field(t, "T")}}
	}
	groups, err := query.NewGroups(by[:1], of(query.FuncMax), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"x", "x", "y"} {
		if err := groups.AddShare([]query.Value{query.TextValue(member)}, query.Share{Documents: 2, Sums: make([]query.SumShare, 2)}); err != nil {
			t.Fatal(err)
		}
	}
	extremes, err := query.NewGroups(by[:1], of(query.FuncMax)[1:], 0)
	if err != nil {
		t.Fatal(err)
	}
	for member, v := range map[string]string{"x": "7", "z": "9"} {
		extremes.Choose([]query.Value{query.TextValue(member)})
		if err := extremes.AddExtreme(0, query.ValueOf([]byte(v))); err != nil {
			t.Fatal(err)
		}
	}
	if groups.Join(extremes, []int{1}) {
		t.Error("a group that is not there was joined")
	}
	got := ""
	for row := range groups.Rows() {
		got += string(query.AppendRow(nil, of(query.FuncMax), row))
	}
	if want := `{"N":4,"M":7}{"N":2,"M":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func field(t *testing.T, text string) query.Field {
	t.Helper()
	f, err := query.ParseExpression(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Ensure that the functions of an expression are named, with those in its conditions.
func TestExpression_Functions(t *testing.T) {
	got, _ := json.Marshal(field(t, "if(lower(A) = 'x', B * 2, round(coalesce(C, D * 3)))").Expression.Functions())
	if want := `["if","*","round","coalesce","lower"]`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
