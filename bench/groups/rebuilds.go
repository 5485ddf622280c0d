package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/index"
)

// dimensions are those of the vectors, of which there are a tenth of the documents.
const dimensions = 128

// rebuiltIndex is an index whose build is measured.
type rebuiltIndex struct {
	name, in string
	of       jay.Index
	computed *jay.Computed // in place of it; nil for none
}

// rebuilt are the indexes whose builds are measured, each alone.
var rebuilt = []rebuiltIndex{
	{name: "ordered, one field", in: "Orders", of: jay.Index{Fields: []string{"Customer"}}},
	{name: "ordered, an expression", in: "Orders", of: jay.Index{Fields: []string{"Total * 2"}}},
	{name: "`groups`, a count and a sum", in: "Orders", of: jay.Index{Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}}},
	{name: "computed, three members", computed: &jay.Computed{Name: "computed", Maps: []index.Map{{Collection: "Orders", Select: []index.Member{
		{Name: "Customer"}, {Name: "Twice", Expression: "Total * 2"}, {Name: "Day", Expression: "day(At)"}}}}}},
	{name: "computed, with a reduce: count, sum, least value, list", computed: &jay.Computed{Name: "computed", Maps: []index.Map{{Collection: "Orders", Select: []index.Member{{Name: "Customer"}, {Name: "Total"}}}},
		Reduce: &index.Reduce{GroupBy: []string{"Customer"}, Select: []index.Member{{Name: "Customer"}, {Name: "N", Expression: "count()"}, {Name: "S", Expression: "sum(Total)"}, {Name: "L", Expression: "min(Total)"}, {Name: "All", Expression: "list(distinct Total)"}}}}},
	{name: "`text`, 20 words a document", in: "Orders", of: jay.Index{Kind: "text", Fields: []string{"Note"}}},
	{name: "`places`", in: "Orders", of: jay.Index{Kind: "places", Fields: []string{"spatial.point(Lat, Lng)"}}},
	{name: "that loads: `load(Of).Name`", in: "Orders", of: jay.Index{Fields: []string{"load(Of).Name"}}},
	{name: fmt.Sprintf("`vectors`, %d dimensions, a tenth of the documents", dimensions), in: "Vectors", of: jay.Index{Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": fmt.Sprint(dimensions)}}},
}

// rebuilds prints how long each kind of index takes to be built over n documents, as after a restore or a repair.
func rebuilds(ctx context.Context, db *jay.DB, dir string, n, times int) error {
	if err := fillRebuilds(ctx, db, n); err != nil {
		return err
	}
	machine, err := report.ThisMachine(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n%d documents, medians of %d builds\n\n| index | seconds | µs a document |\n|---|---:|---:|\n", machine.String(), n, times)
	for _, one := range rebuilt {
		var took []float64
		for range times {
			begun := time.Now()
			if err := one.build(ctx, db); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			took = append(took, time.Since(begun).Seconds())
			if err := one.drop(ctx, db); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			if err := db.Compact(ctx); err != nil {
				return err
			}
		}
		of := n
		if one.in == "Vectors" {
			of = n / 10
		}
		fmt.Printf("| %s | %.1f | %.1f |\n", one.name, stats.Median(took), stats.Median(took)/float64(of)*1e6)
	}
	return nil
}

// build builds the index.
func (one *rebuiltIndex) build(ctx context.Context, db *jay.DB) error {
	if one.computed != nil {
		return jay.ComputedOf(db).Ensure(ctx, *one.computed)
	}
	ix := one.of
	ix.Name = "rebuilt"
	return db.EnsureIndex(ctx, one.in, ix)
}

// drop drops the index.
func (one *rebuiltIndex) drop(ctx context.Context, db *jay.DB) error {
	if one.computed != nil {
		return jay.ComputedOf(db).Drop(ctx, one.computed.Name)
	}
	return db.DropIndex(ctx, one.in, "rebuilt")
}

// fillRebuilds stores n orders, of some 300 bytes, a hundredth as many customers, and n/10 vectors.
func fillRebuilds(ctx context.Context, db *jay.DB, n int) error {
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	put := func(id, in, body string) {
		if err == nil {
			_, err = w.Put(ctx, id, []byte(body), jay.InCollection(in))
		}
	}
	customers := max(1, n/100)
	for i := range customers {
		put(fmt.Sprintf("customers/%d", i), "Customers", fmt.Sprintf(`{"Name":"customer-%d"}`, i))
	}
	for i := range n {
		words := make([]string, 20)
		for j := range words {
			words[j] = fmt.Sprintf("w%d", int(random.ExpFloat64()*2000))
		}
		c := random.IntN(customers)
		put(fmt.Sprintf("orders/%08d", i), "Orders", fmt.Sprintf(`{"Customer":"customer-%d","Of":"customers/%d","Total":%d.%02d,"At":"2026-01-%02dT12:00:00Z","Lat":%.4f,"Lng":%.4f,"Note":%q}`,
			c, c, i%1000, i%100, 1+i%28, random.Float64()*170-85, random.Float64()*360-180, strings.Join(words, " ")))
	}
	for i := range n / 10 {
		numbers := make([]string, dimensions)
		for j := range numbers {
			numbers[j] = fmt.Sprintf("%.4f", random.NormFloat64())
		}
		put(fmt.Sprintf("vectors/%08d", i), "Vectors", `{"V":[`+strings.Join(numbers, ",")+`]}`)
	}
	return errors.Join(err, w.Close(), db.Compact(ctx))
}
