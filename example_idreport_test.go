package jay_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay"
)

// doctored is a database with a document whose number was never granted.
func doctored() *jay.DB {
	ctx := context.Background()
	db := example()
	_, err := db.Store(ctx, "Users", json.RawMessage(`{"Name":"Ann"}`))
	check(err)
	_, err = db.Put(ctx, "users/500-A", json.RawMessage(`{"Name":"Bob"}`), jay.InCollection("Users"))
	check(err)
	_, err = db.Put(ctx, "invoices|", json.RawMessage(`{}`))
	check(err)
	return db
}

// An inspection reports how IDs were made, and what is odd about them.
func ExampleDB_InspectIDs() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	fmt.Println(report.Documents, len(report.Warnings))
	// Output: 4 1
}

// A report is plain data, for tables and for JSON.
func ExampleIDReport() {
	db := doctored()
	defer db.Close()
	var report jay.IDReport
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	text, err := json.Marshal(report.Prefixes[0])
	check(err)
	fmt.Println(string(text))
	// Output: {"prefix":"invoices/","collection":"@empty","documents":1,"hilo":0,"identity":1,"serverSide":0,"guid":0,"semantic":0,"highestHiLo":0,"highestIdentity":1}
}

// There is one entry for each prefix and collection.
func ExampleIDPrefix() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, p := range report.Prefixes {
		fmt.Println(p.Prefix, p.Collection, p.Documents)
	}
	// Output:
	// invoices/ @empty 1
	// raven/hilo/ @hilo 1
	// users/ Users 2
}

// The form of an ID shows its strategy.
func ExampleIDCounts() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	var all jay.IDCounts
	for _, p := range report.Prefixes {
		all.HiLo += p.HiLo
		all.Identity += p.Identity
		all.Semantic += p.Semantic
	}
	fmt.Println(all.HiLo, all.Identity, all.Semantic)
	// Output: 2 1 1
}

// Of 32 numbers granted one has a document; the others are still to be used.
func ExampleHiLoReport() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, h := range report.HiLo {
		fmt.Println(h.Tag, *h.Max, h.Mark, h.Highest, h.InOpenLeases)
	}
	// Output: users 32 32 500 31
}

// A forecast has no figures where there is nothing to count.
func ExampleForecast() {
	db := example()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	f := report.Etags.Forecast
	fmt.Println(f.PerDay == nil, f.YearsLeft == nil)
	// Output: true true
}

// Server-side IDs are made of etags: one for every write.
func ExampleEtagReport() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	fmt.Println(report.Etags.Last)
	// Output: 4
}

// Identities are compared with the documents that have their numbers.
func ExampleIdentityReport() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, i := range report.Identities {
		fmt.Println(i.Name, i.Last, i.Highest)
	}
	// Output: invoices| 1 1
}

// A warning says what is so, what follows, and what can be done.
func ExampleIDWarning() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, w := range report.Warnings {
		fmt.Println(w.Kind, w.Name)
		fmt.Println(w.Text)
	}
	// Output:
	// above-mark users/
	// number 500 of "users/" is in use, but HiLo has counted up to 32; it will be passed over, or put a Max of 500 in the HiLo document
}

// Programs look at the kind.
func ExampleIDWarningKind() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, w := range report.Warnings {
		fmt.Println(w.Kind == jay.WarnAboveMark)
	}
	// Output: true
}
