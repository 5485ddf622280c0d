package jsonpath_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/internal/jsonpath"
)

// order is a document of some 550 bytes.
var order = []byte(`{"Customer":"customers/0000000000000000042-A","Employee":"employees/5-A","OrderedAt":"2026-03-14T09:26:53.5897932Z","RequireAt":"2026-04-14T00:00:00.0000000Z","ShippedAt":null,"Freight":32.38,"ShipTo":{"Line1":"59 rue de l'Abbaye","Line2":null,"City":"Reims","Region":null,"PostalCode":"51100","Country":"France","Location":{"Latitude":49.25,"Longitude":4.03}},"Lines":[{"Product":"products/11-A","ProductName":"Queso Cabrales","PricePerUnit":14,"Quantity":12,"Discount":0},{"Product":"products/42-A","ProductName":"Singaporean Mee","PricePerUnit":9.8,"Quantity":10,"Discount":0}]}`)

var orderPaths = []string{"Customer", "ShipTo.City", "Freight"}

func parsed(texts []string) (paths []jsonpath.Path) {
	for _, text := range texts {
		paths = append(paths, jsonpath.MustParse(text))
	}
	return paths
}

// Ensure that looking into documents allocates nothing.
func TestExtractor_AllocatesNothing(t *testing.T) {
	x := jsonpath.NewExtractor(parsed([]string{"Customer", "ShipTo.City", "Lines.Product", "Lines[].Quantity", "Lines[1]"}))
	p, one, sum := jsonpath.MustParse("Lines.Quantity"), jsonpath.MustParse("ShipTo.City"), 0
	allocs := testing.AllocsPerRun(100, func() {
		x.Extract(order, func(path int, raw []byte, _ bool) { sum += path })
		jsonpath.EachLoose(order, p, func(raw []byte) bool { sum += len(raw); return true })
		raw, _ := jsonpath.Get(order, one)
		sum += len(raw)
	})
	if allocs != 0 || sum == 0 {
		t.Errorf("got %v allocations, want none", allocs)
	}
}

func BenchmarkExtract(b *testing.B) {
	for name, texts := range map[string][]string{
		"three":          orderPaths,
		"three, to last": {"Customer", "ShipTo.City", "Lines.Product"},
		"one missing":    {"Customer", "ShipTo.City", "Missing"},
	} {
		b.Run(name, func(b *testing.B) {
			x, found := jsonpath.NewExtractor(parsed(texts)), 0
			b.ReportAllocs()
			for b.Loop() {
				x.Extract(order, func(int, []byte, bool) { found++ })
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	p := jsonpath.MustParse("ShipTo.City")
	b.ReportAllocs()
	for b.Loop() {
		jsonpath.Get(order, p)
	}
}

func BenchmarkGJSON(b *testing.B) {
	for name, texts := range map[string][]string{
		"three":          orderPaths,
		"three, to last": {"Customer", "ShipTo.City", "Lines.#.Product"},
		"one missing":    {"Customer", "ShipTo.City", "Missing"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gjson.GetManyBytes(order, texts...)
			}
		})
	}
}
