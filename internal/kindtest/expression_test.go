package kindtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/kindtest"
)

// oneOf returns one of some texts.
func oneOf(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

// sale returns a document whose Price / Quantity has a value, has none, or fails.
func sale(r *rand.Rand) string {
	var members []string
	if r.IntN(8) > 0 {
		members = append(members, `"Price":`+oneOf(r, `1`, `2.5`, `10`, `1e2`, `-3`, `null`, `"12"`, `[4]`, `[4,5]`, `{"a":1}`, strings.Repeat("9", 1200)))
	}
	if r.IntN(8) > 0 {
		members = append(members, `"Quantity":`+oneOf(r, `1`, `2`, `4`, `0`, `0.0`, `null`, `true`, `[]`, `[2,2]`))
	}
	if r.IntN(8) > 0 {
		members = append(members, `"At":`+oneOf(r, `"2025-03-01T00:00:00Z"`, `"2026-03-01T00:00:00Z"`, `"2026-12-31T23:30:00-01:00"`, `"soon"`, `null`, `["2024-01-01T00:00:00Z","2025-01-01T00:00:00Z"]`))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// ofSale returns a condition on Price / Quantity, year(At) or both.
func ofSale(r *rand.Rand) string {
	each := oneOf(r, "Price / Quantity = 2.5", "Price / Quantity > 1", "Price / Quantity between 0 and 5", "Price/Quantity in (1, 10, 0.625)", "Price / Quantity = null",
		"Price / Quantity < 0", "Price / Quantity = 'x'", "Price / Quantity != 1", "exists(Price / Quantity)")
	at := oneOf(r, "year(At) = '2026'", "year(At) > '2024'", "year(At) = null", "year(At) in ('2025', '2027')")
	switch r.IntN(4) {
	case 0:
		return each + " and " + at
	case 1:
		return at
	}
	return each
}

// Ensure that an index of expressions is one like any other, also of documents for which they fail.
func TestOrdered_Expressions(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Index:     jay.Index{Fields: []string{"Price / Quantity"}},
		Kind:      catalog.Kind{Options: []catalog.Option{catalog.Strictness()}},
		Body:      sale,
		Condition: ofSale,
		Order:     "Price / Quantity",
		Explained: "one range",
		Invalid: []jay.Index{
			{Fields: []string{"lower(Name)"}}, {Fields: []string{"trim(Name) + 'x'"}}, {Fields: []string{"if(upper(A) = 'X', B, C)"}}, {Fields: []string{"month(At, 'Europe/Berlin')"}},
			{Fields: []string{"1 + 2"}}, {Fields: []string{"Price * @metadata.@etag"}}, {Fields: []string{"Price *"}}, {Fields: []string{"Price * Quantity as date"}},
			{Fields: []string{"Price * Quantity", "Price  *  Quantity"}}, {Fields: []string{"count()  "}, Where: "x = lower(y)"}, {Fields: []string{"A"}, Where: "lower(B) = 'x'"},
			{Fields: []string{"A"}, Options: map[string]string{"strict": "yes"}}, {Fields: []string{"year(At)"}, Options: map[string]string{"strict": "yes"}},
			{Fields: []string{strings.Repeat("Price + ", 150) + "Price"}},
		},
	})
}

// Ensure that one with several fields, descending ones, parts of dates and a condition that computes is one, too.
func TestOrdered_ExpressionsPartial(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Index:     jay.Index{Fields: []string{"-year(At)", "-Price / Quantity", "Price"}, Where: "coalesce(Quantity, 3) > 1"},
		Kind:      catalog.Kind{Options: []catalog.Option{catalog.Strictness()}},
		Body:      sale,
		Condition: func(r *rand.Rand) string { return ofSale(r) + " and coalesce(Quantity,3) > 1" },
		Explained: "range",
	})
}

// Ensure that a strict one refuses documents for which an expression fails.
func TestOrdered_ExpressionsStrict(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Index: jay.Index{Fields: []string{"Total / Count", "2 * Total / Count"}, Options: map[string]string{"strict": "yes"}},
		Kind:  catalog.Kind{Options: []catalog.Option{catalog.Strictness()}},
		Body: func(r *rand.Rand) string {
			return fmt.Sprintf(`{"Total":%s,"Count":%d}`, oneOf(r, "1", "2", "null", "7.5"), 1+r.IntN(3))
		},
		Condition: func(r *rand.Rand) string {
			return oneOf(r, "Total / Count = 1", "Total / Count > 1", "Total / Count = null")
		},
		Order:     "Total / Count, 2 * Total / Count",
		Explained: "one range",
		Refused:   `{"Total":1,"Count":0}`,
	})
}
