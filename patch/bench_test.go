package patch_test

import (
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/tidwall/sjson"

	"github.com/jaydb/jay/patch"
)

// order is a document of some 550 bytes.
var order = []byte(`{"Customer":"customers/0000000000000000042-A","Employee":"employees/5-A","OrderedAt":"2026-03-14T09:26:53.5897932Z","RequireAt":"2026-04-14T00:00:00.0000000Z","ShippedAt":null,"Freight":32.38,"Version":7,"ShipTo":{"Line1":"59 rue de l'Abbaye","Line2":null,"City":"Reims","Region":null,"PostalCode":"51100","Country":"France","Location":{"Latitude":49.25,"Longitude":4.03}},"Lines":[{"Product":"products/11-A","ProductName":"Queso Cabrales","PricePerUnit":14,"Quantity":12},{"Product":"products/42-A","ProductName":"Singaporean Mee","PricePerUnit":9.8,"Quantity":10}]}`)

func BenchmarkApply(b *testing.B) {
	for _, bench := range []struct {
		name  string
		edits []patch.Edit
	}{
		{"increment", []patch.Edit{patch.Increment("Version", 1)}},
		{"increment a decimal", []patch.Edit{patch.Increment("Freight", 0.1)}},
		{"increment the last", []patch.Edit{patch.Increment("Lines[1].Quantity", 1)}},
		{"set a new member", []patch.Edit{patch.Set("Paid", true)}},
		{"four edits", []patch.Edit{patch.Increment("Version", 1), patch.Set("ShipTo.City", "Lyon"), patch.Unset("ShippedAt"), patch.Append("Tags", "new")}},
		{"merge", []patch.Edit{patch.Merge([]byte(`{"ShipTo":{"City":"Lyon"},"Paid":true}`))}},
		{"JSON Patch", []patch.Edit{patch.JSONPatch([]byte(`[{"op":"replace","path":"/ShipTo/City","value":"Lyon"},{"op":"add","path":"/Paid","value":true}]`))}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, changed, err := patch.Apply(order, bench.edits, patch.Limits{}); err != nil || !changed {
					b.Fatal(changed, err)
				}
			}
		})
	}
}

func BenchmarkDiff(b *testing.B) {
	after, _, err := patch.Apply(order, []patch.Edit{patch.Set("ShipTo.City", "Lyon")}, patch.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(patch.Diff(order, after)) != 1 {
			b.Fatal("want one change")
		}
	}
}

func BenchmarkOthers(b *testing.B) {
	b.Run("sjson set", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := sjson.SetBytes(order, "Version", 8); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json-patch merge", func(b *testing.B) {
		doc := []byte(`{"ShipTo":{"City":"Lyon"},"Paid":true}`)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := jsonpatch.MergePatch(order, doc); err != nil {
				b.Fatal(err)
			}
		}
	})
}
