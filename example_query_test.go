package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay"
)

// Order is what the examples of queries ask for.
type Order struct {
	ID       string
	Customer string
	Status   string
	Total    float64
	Lines    []Line
}

// Line is a line of an Order.
type Line struct {
	Product  string
	Quantity int
}

// exampleOrders opens a database with four orders.
func exampleOrders() (*jay.DB, *jay.Collection[Order]) {
	db := example()
	orders, err := jay.CollectionOf[Order](db)
	check(err)
	for _, o := range []Order{
		{Customer: "customers/ann", Status: "open", Total: 12.5, Lines: []Line{{"products/nut", 3}}},
		{Customer: "customers/bob", Status: "paid", Total: 99, Lines: []Line{{"products/nut", 20}, {"products/berry", 5}}},
		{Customer: "customers/ann", Status: "Open", Total: 40, Lines: []Line{{"products/berry", 8}}},
		{Customer: "customers/cyd", Status: "open", Total: 7},
	} {
		_, err := orders.Insert(context.Background(), &o)
		check(err)
	}
	_, err = db.Put(context.Background(), "customers/ann", json.RawMessage(`{"Name":"Ann"}`))
	check(err)
	return db, orders
}

// A query is made step by step and asked when it is ranged over. Text is
// compared with regard to case unless IgnoreCase says otherwise.
func ExampleCollection_Query() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	open := orders.Query().
		Where(jay.IgnoreCase(jay.Eq("Status", "open"))).
		OrderBy("-Total").
		Limit(2)
	for order, err := range open.Iter(ctx) {
		check(err)
		fmt.Println(order.ID, order.Status, order.Total)
	}
	// Output:
	// orders/3-A Open 40
	// orders/1-A open 12.5
}

// A query is immutable: each method returns a new one.
func ExampleQuery() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	all := orders.Query()
	large := all.Where(jay.Ge("Total", 40))
	n, err := all.Count(ctx)
	check(err)
	m, err := large.Count(ctx)
	check(err)
	fmt.Println(n, "orders,", m, "of them large")

	first, err := large.OrderBy("Total").First(ctx)
	check(err)
	fmt.Println(first.ID)

	huge, err := large.Where(jay.Gt("Total", 1000)).Exists(ctx)
	check(err)
	fmt.Println("huge ones:", huge)
	fmt.Println(large.OrderBy("-Total").Limit(10))
	// Output:
	// 4 orders, 2 of them large
	// orders/3-A
	// huge ones: false
	// from Orders where Total >= 40 order by Total desc limit 10
}

// Times compare by time, whatever zone and digits the document spells; a month is a
// bucket of the calendar in UTC.
func ExampleQuery_GroupBy_dates() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	check(err)
	defer db.Close()
	type Visit struct {
		ID string
		At time.Time `jay:"index"`
	}
	visits, err := jay.CollectionOf[Visit](db)
	check(err)
	check(visits.EnsureIndexes(ctx))
	for _, at := range []string{`"2026-01-31T23:30:00-02:00"`, `"2026-02-01T12:00:00.5Z"`, `"2026-01-05T00:00:00Z"`} {
		_, err := db.Put(ctx, "visits/", []byte(`{"At":`+at+`}`), jay.InCollection("Visits"))
		check(err)
	}

	n, err := visits.Query().Where(jay.Ge("At", time.Date(2026, 2, 1, 1, 0, 0, 0, time.UTC))).Count(ctx)
	check(err)
	fmt.Println(n, "since one o'clock on the first of February")

	type month struct {
		Month string
		Count int
		Last  time.Time
	}
	months, err := jay.Select[month](visits.Query().GroupBy("month(At)").OrderBy("month(At)"), "month(At) as Month", "count()", "max(At) as Last").All(ctx)
	check(err)
	for _, m := range months {
		fmt.Println(m.Month, m.Count, m.Last)
	}
	// Output:
	// 2 since one o'clock on the first of February
	// 2026-01 1 2026-01-05 00:00:00 +0000 UTC
	// 2026-02 2 2026-02-01 12:00:00.5 +0000 UTC
}

// Documents of any collection are asked for as JSON.
func ExampleDB_Query() {
	ctx := context.Background()
	db, _ := exampleOrders()
	defer db.Close()

	docs, err := db.Query("Orders").Where(jay.Eq("Lines.Product", "products/berry")).OrderBy("id()").All(ctx)
	check(err)
	for _, doc := range docs {
		fmt.Println(doc.ID(), doc.Collection())
	}
	// Output:
	// orders/2-A Orders
	// orders/3-A Orders
}

func ExampleCondition() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	for _, c := range []jay.Condition{
		jay.Eq("Status", "open"),
		jay.Ne("Status", "open"),
		jay.Lt("Total", 12.5),
		jay.Le("Total", 12.5),
		jay.Gt("Total", 40),
		jay.Ge("Total", 40),
		jay.Between("Total", 10, 50),
		jay.In("Customer", "customers/bob", "customers/cyd"),
		jay.AllIn("Lines.Product", "products/nut", "products/berry"),
		jay.StartsWith("id()", "orders/"),
		jay.EndsWith("Customer", "/ann"),
		jay.Contains("Customer", "o"),
		jay.Matches("Customer", "/[bc]"),
		jay.Exists("Lines.Product"),
		jay.ElemMatch("Lines", jay.Eq("Product", "products/nut"), jay.Gt("Quantity", 5)),
		jay.Size("Lines", ">=", 2),
		jay.Type("Lines", "array"),
		jay.And(jay.Eq("Status", "open"), jay.Gt("Total", 10)),
		jay.Or(jay.Eq("Status", "paid"), jay.Lt("Total", 10)),
		jay.Not(jay.Eq("Lines.Product", "products/nut")),
		jay.IgnoreCase(jay.Eq("Status", "OPEN")),
	} {
		q := orders.Query().Where(c)
		n, err := q.Count(ctx)
		check(err)
		fmt.Println(n, q)
	}
	// Output:
	// 2 from Orders where exact(Status = 'open')
	// 2 from Orders where exact(Status != 'open')
	// 1 from Orders where Total < 12.5
	// 2 from Orders where Total <= 12.5
	// 1 from Orders where Total > 40
	// 2 from Orders where Total >= 40
	// 2 from Orders where Total between 10 and 50
	// 2 from Orders where exact(Customer in ('customers/bob', 'customers/cyd'))
	// 1 from Orders where exact(Lines.Product all in ('products/nut', 'products/berry'))
	// 4 from Orders where exact(startsWith(id(), 'orders/'))
	// 2 from Orders where exact(endsWith(Customer, '/ann'))
	// 4 from Orders where exact(contains(Customer, 'o'))
	// 2 from Orders where exact(regex(Customer, '/[bc]'))
	// 3 from Orders where exists(Lines.Product)
	// 1 from Orders where elemMatch(Lines, exact(Product = 'products/nut') and Quantity > 5)
	// 1 from Orders where size(Lines) >= 2
	// 3 from Orders where type(Lines) = 'array'
	// 1 from Orders where exact(Status = 'open') and Total > 10
	// 2 from Orders where exact(Status = 'paid') or Total < 10
	// 2 from Orders where exact(Lines.Product != 'products/nut')
	// 3 from Orders where Status = 'OPEN'
}

// A field is compared with another field of the same document. In ElemMatch both are of
// the element.
func ExampleFieldRef() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	type Line struct{ Ordered, Sent int }
	type Delivery struct {
		ID           string
		Due, Arrived time.Time
		Lines        []Line
	}
	deliveries, err := jay.CollectionOf[Delivery](db)
	check(err)
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	for _, d := range []Delivery{
		{Due: day(20), Arrived: day(22), Lines: []Line{{3, 3}}},
		{Due: day(20), Arrived: day(19), Lines: []Line{{3, 3}, {5, 4}}},
	} {
		_, err := deliveries.Insert(ctx, &d)
		check(err)
	}

	late, err := deliveries.Query().Where(jay.Gt("Arrived", jay.Field("Due"))).First(ctx)
	check(err)
	fmt.Println("late:", late.ID)
	short, err := db.RQL("from Deliveries where elemMatch(Lines, Sent < Ordered)", nil)
	check(err)
	row, err := short.First(ctx)
	check(err)
	fmt.Println("short:", row.Document.ID())
	// Output:
	// late: deliveries/1-A
	// short: deliveries/2-A
}

// An index can be named, to see whether it answers the query and how.
// Words are found in any form that an analyzer knows.
func ExampleSearchOption() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, text := range []string{"Oaks and fallen leaves", "A jay caches acorns under oak leaves", "Rotten wood"} {
		_, err := db.Insert(ctx, "notes|", []byte(fmt.Sprintf(`{"Text":%q}`, text)), jay.InCollection("Notes"))
		check(err)
	}
	show := func(search string, opts ...jay.SearchOption) {
		n, err := db.Query("Notes").Where(jay.Search("Text", search, opts...)).Count(ctx)
		check(err)
		fmt.Println(search, n)
	}
	show("acorn* -rotten")
	show(`"fallen leaves" wood`)
	show("oak leaf*")
	show("oak leaves", jay.AllWords())
	show("oak leaves", jay.AllWords(), jay.WithAnalyzer("english"))
	// Output:
	// acorn* -rotten 1
	// "fallen leaves" wood 2
	// oak leaf* 1
	// oak leaves 1
	// oak leaves 2
}

// What was typed may differ from what is there.
func ExampleFuzzy() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, note := range []string{`{"By":"Ernst","Text":"The oak leaves fall"}`, `{"By":"Ann","Text":"leaves of an old oak"}`, `{"By":"Bob","Text":"an oak"}`} {
		_, err := db.Insert(ctx, "notes|", []byte(note), jay.InCollection("Notes"))
		check(err)
	}
	for _, c := range []jay.Condition{
		jay.Fuzzy(jay.Eq("By", "Ernts"), 0.5),
		jay.Fuzzy(jay.Search("Text", "leeves"), 0.7),
		jay.Proximity(jay.Search("Text", "oak leaves"), 3),
		jay.Lucene("Text", "oak AND (old OR fall)"),
	} {
		n, err := db.Query("Notes").Where(c).Count(ctx)
		check(err)
		fmt.Println(n)
	}
	// Output:
	// 1
	// 2
	// 2
	// 2
}

// The best answers come first; words in a title count more.
func ExampleBoost() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Notes", jay.Index{Kind: "text", Fields: []string{"Title", "Text"}, Options: map[string]string{"analyzer": "english"}}))
	for _, note := range []string{
		`{"Title":"Jays","Text":"A jay caches acorns under oak leaves, and the oaks grow"}`,
		`{"Title":"Oaks","Text":"Trees of many acorns"}`,
		`{"Title":"Wood","Text":"Oak is heavy"}`,
	} {
		_, err := db.Insert(ctx, "notes|", []byte(note), jay.InCollection("Notes"))
		check(err)
	}
	words := func(field string) jay.Condition { return jay.Search(field, "oak", jay.WithAnalyzer("english")) }
	best, err := jay.Select[struct {
		Title string
		Score float64
	}](db.Query("Notes").Where(jay.Or(words("Text"), jay.Boost(words("Title"), 3))).OrderBy(jay.Score), "Title", "score() as Score").All(ctx)
	check(err)
	for _, note := range best {
		fmt.Printf("%s %.2f\n", note.Title, note.Score)
	}
	// Output:
	// Oaks 2.94
	// Wood 0.59
	// Jays 0.53
}

func ExampleQuery_UseIndex() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer"}}))

	q := orders.Query().UseIndex("Customer")
	e, err := q.Where(jay.Eq("Customer", "customers/ann")).Explain(ctx)
	check(err)
	fmt.Println(e.Plan[0])
	_, err = q.Where(jay.Eq("Status", "open")).All(ctx)
	fmt.Println(errors.Is(err, jay.ErrNoIndex))
	// Output:
	// index "Customer", one range, as the query asks
	// true
}

// A query can be answered without an index, to compare the two.
func ExampleQuery_NoIndex() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer"}}))

	q := orders.Query().Where(jay.Eq("Customer", "customers/ann")).NoIndex()
	e, err := q.Explain(ctx)
	check(err)
	fmt.Println(e.Plan[0])
	_, err = q.UseIndex("Customer").All(ctx)
	fmt.Println(errors.Is(err, jay.ErrQuery))
	// Output:
	// scan Orders, as the query asks
	// true
}

// The same question as text.
func ExampleDB_RQL() {
	ctx := context.Background()
	db, _ := exampleOrders()
	defer db.Close()

	q, err := db.RQL(`
		from Orders as o
		where o.Status = 'open' and o.Total > $least
		order by o.Total
		select id(), o.Total, o.Lines[].Quantity as Quantities`, map[string]any{"least": 10})
	check(err)
	for row, err := range q.Iter(ctx) {
		check(err)
		fmt.Printf("%s\n", row.JSON)
	}
	// Output:
	// {"id()":"orders/1-A","Total":12.5,"Quantities":[3]}
	// {"id()":"orders/3-A","Total":40,"Quantities":[8]}
}

// A row is a document, or what was selected, and the documents that come
// along with it.
func ExampleRow() {
	ctx := context.Background()
	db, _ := exampleOrders()
	defer db.Close()

	q, err := db.RQL("from Orders where Total < 20 order by Total desc include Customer", nil)
	check(err)
	for row, err := range q.Iter(ctx) {
		check(err)
		fmt.Println(row.Document.ID())
		for _, doc := range row.Included {
			fmt.Printf("    with %s %s\n", doc.ID(), doc.Body())
		}
	}
	// Output:
	// orders/1-A
	//     with customers/ann {"Name":"Ann"}
	// orders/4-A
}

// A text that is no query says where it is wrong, and what could stand there.
func ExampleSyntaxError() {
	db := example()
	defer db.Close()
	_, err := db.RQL("from Orders\nwhere Total >= 'a' nad Total < 5", nil)
	var syntax *jay.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println(syntax.Line, syntax.Column)
		fmt.Println(syntax.Caret())
	}
	// Output:
	// 2 20
	// where Total >= 'a' nad Total < 5
	//                    ^
}

// Columns of documents go into another struct.
func ExampleSelect() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	type Slip struct {
		ID       string
		Products []string
	}
	q := orders.Query().Where(jay.Exists("Lines.Product")).OrderBy("id()")
	slips := jay.Select[Slip](q, "id() as ID", "Lines[].Product as Products")
	for slip, err := range slips.Iter(ctx) {
		check(err)
		fmt.Println(slip.ID, slip.Products)
	}
	// Output:
	// orders/1-A [products/nut]
	// orders/2-A [products/nut products/berry]
	// orders/3-A [products/berry]
}

// Functions make one answer of every group.
func ExampleQuery_GroupBy() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	type PerCustomer struct {
		Customer string
		Count    int
		Sum      float64
	}
	groups := jay.Select[PerCustomer](orders.Query().GroupBy("Customer"), "Customer", "count()", "sum(Total) as Sum")
	for g, err := range groups.Iter(ctx) {
		check(err)
		fmt.Println(g.Customer, g.Count, g.Sum)
	}
	// Output:
	// customers/ann 2 52.5
	// customers/bob 1 99
	// customers/cyd 1 7
}

func ExampleQuery_Distinct() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()
	rows, err := jay.Select[json.RawMessage](orders.Query().OrderBy("Customer"), "Customer").Distinct().All(ctx)
	check(err)
	for _, row := range rows {
		fmt.Printf("%s\n", *row)
	}
	// Output:
	// {"Customer":"customers/ann"}
	// {"Customer":"customers/bob"}
	// {"Customer":"customers/cyd"}
}

// Pages go on where the last one ended, after a restart as well, whatever was
// written in between.
func ExampleQuery_Page() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	q := orders.Query().OrderBy("-Total").Limit(3)
	cursor := "" // such as from the URL of a web page
	for {
		page, err := q.After(cursor).Page(ctx)
		check(err)
		fmt.Println("a page:")
		for _, order := range page.Items {
			fmt.Println("   ", order.ID, order.Total)
		}
		if page.Next == "" {
			break
		}
		cursor = page.Next
	}
	// Output:
	// a page:
	//     orders/2-A 99
	//     orders/3-A 40
	//     orders/1-A 12.5
	// a page:
	//     orders/4-A 7
}

// A page is made to be sent on.
func ExamplePage() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()
	page, err := jay.Select[json.RawMessage](orders.Query().OrderBy("Total"), "Total").Limit(10).Page(ctx)
	check(err)
	text, err := json.Marshal(page)
	check(err)
	fmt.Printf("%s\n", text)
	// Output: {"items":[{"Total":7},{"Total":12.5},{"Total":40},{"Total":99}]}
}

// Explain shows which index was used, and NoScan lets a test insist on one.
func ExampleQuery_Explain() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	q := orders.Query().Where(jay.Eq("Status", "open")).OrderBy("-Total").Limit(10)
	_, err := q.NoScan().All(ctx)
	fmt.Println(errors.Is(err, jay.ErrNoIndex))

	check(db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Status", "-Total"}}))
	e, err := q.NoScan().Explain(ctx)
	check(err)
	fmt.Println(e.Plan[0])
	// Output:
	// true
	// index "Status,-Total", one range
}

func ExampleExplanation() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	e, err := orders.Query().Where(jay.Gt("Total", 10)).OrderBy("Total").Limit(2).Explain(ctx)
	check(err)
	e.Elapsed = 0 // differs each time
	fmt.Println(e)
	// Output:
	// from Orders where Total > 10 order by Total limit 2
	//   1. scan Orders
	//   2. filter: Total > 10
	//   3. sort in memory, keeping the first 2
	// 0 index keys examined, 4 documents read, 2 returned, 0s
	// hint: jay index create Orders Total
}

// An index is declared as often as the program starts, and built once, while
// reads and writes go on.
func ExampleDB_EnsureIndex() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	for range 2 {
		err := db.EnsureIndex(ctx, orders.Name(), jay.Index{Fields: []string{"Customer", "-Total"}})
		check(err)
	}
	list, err := db.Indexes(ctx, "Orders")
	check(err)
	for _, ix := range list {
		fmt.Println(ix.Name, ix.State)
	}

	check(db.DropIndex(ctx, "Orders", "Customer,-Total"))
	// Output: Customer,-Total ready
}

// IndexProgress is how far a build is.
func ExampleIndexOption() {
	ctx := context.Background()
	db, _ := exampleOrders()
	defer db.Close()
	seen := int64(0)
	check(db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Total"}}, jay.IndexProgress(func(documents int64) { seen = documents })))
	fmt.Println(seen, "documents")
	// Output: 4 documents
}

// Indexes of every kind: of elements of arrays, descending, unique, partial.
func ExampleIndex() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	for _, ix := range []jay.Index{
		{Fields: []string{"Lines.Product"}},
		{Fields: []string{"Status", "-Total"}},
		{Fields: []string{"Customer", "Total"}, Unique: true},
		{Fields: []string{"Total"}, Where: "Status = 'open'", Name: "open"},
	} {
		check(db.EnsureIndex(ctx, "Orders", ix))
	}
	for _, c := range []jay.Condition{
		jay.Eq("Lines.Product", "products/nut"),
		jay.Eq("Status", "paid"),
		jay.And(jay.IgnoreCase(jay.Eq("Status", "open")), jay.Gt("Total", 20)),
	} {
		e, err := orders.Query().Where(c).OrderBy("Total").Explain(ctx)
		check(err)
		fmt.Println(e.Plan[0])
	}
	// Output:
	// index "Lines.Product", one range
	// index "Status,-Total", one range, backwards
	// index "open", one range
}

func ExampleIndexInfo() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}, Unique: true}))
	list, err := db.Indexes(ctx, "")
	check(err)
	text, err := json.Marshal(list[0])
	check(err)
	fmt.Printf("%s\n", text)
	// Output: {"name":"Email","fields":["Email"],"unique":true,"collection":"Users","state":"ready"}
}

// Queries use an index once it is ready.
func ExampleIndexState() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}}))
	list, err := db.Indexes(ctx, "Users")
	check(err)
	fmt.Println(list[0].State == jay.IndexReady)
	// Output: true
}

// A unique index refuses a second document with the same values.
func ExampleUniqueError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}, Unique: true}))

	_, err := db.Put(ctx, "users/ann", json.RawMessage(`{"Email":"a@example.org"}`), jay.InCollection("Users"))
	check(err)
	_, err = db.Put(ctx, "users/bob", json.RawMessage(`{"Email":"a@example.org"}`), jay.InCollection("Users"))
	var unique *jay.UniqueError
	if errors.As(err, &unique) {
		fmt.Println(unique.Index, unique.Value, unique.Other)
	}
	// Output: Email ["a@example.org"] users/ann
}

// A strict index refuses a document for which its expression fails.
// A strict index of vectors refuses a document whose vector has another number of dimensions.
func ExampleValueError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"Embedding"}, Options: map[string]string{"dimensions": "3"}}))
	_, err := db.Put(ctx, "notes/1", json.RawMessage(`{"Embedding":[1,2]}`), jay.InCollection("Notes"))
	var refused *jay.ValueError
	if errors.As(err, &refused) {
		fmt.Printf("%s of %s: %s: %s", refused.Field, refused.ID, refused.Rule, refused.Value)
	}
	// Output: Embedding of notes/1: a vector of this index has 3 numbers: there are 2
}

func ExampleComputeError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Total / Count"}, Options: map[string]string{"strict": "yes"}}))
	_, err := db.Put(ctx, "orders/1", json.RawMessage(`{"Total":10,"Count":0}`), jay.InCollection("Orders"))
	var failed *jay.ComputeError
	if errors.As(err, &failed) {
		fmt.Println(failed.ID, failed.Field, failed.Reason)
	}
	// Output: orders/1 Total / Count /: a division by zero
}

// Where an expression of an index fails, the document is written, has no value in the index, and is listed.
func ExampleIndexError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Orders", jay.Index{Name: "each", Fields: []string{"Total / Count"}}))
	_, err := db.Put(ctx, "orders/1", json.RawMessage(`{"Total":10,"Count":"four"}`), jay.InCollection("Orders"))
	check(err)
	list, err := jay.IndexOf(db, "Orders", "each").Errors(ctx, "", 0)
	check(err)
	for _, e := range list {
		fmt.Printf("%s: %s: %s\n", e.ID, e.Field, e.Reason)
	}
	// Output: orders/1: Total / Count: /: a number is wanted, not the text "four"
}

// An expression that is a typing error shows in the errors of the index.
func ExampleIndexView() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Orders", jay.Index{Name: "Mean", Fields: []string{"Total / Count"}}))
	for _, body := range []string{`{"Total":10,"Count":0}`, `{"Total":10,"Count":4}`, `{"Total":10,"Count":true}`} {
		_, err := db.Insert(ctx, "orders|", json.RawMessage(body), jay.InCollection("Orders"))
		check(err)
	}
	mean := jay.IndexOf(db, "Orders", "Mean")
	for after := ""; ; { // a page of one document after the other
		page, err := mean.Errors(ctx, after, 1)
		check(err)
		if len(page) == 0 {
			break
		}
		after = page[0].ID
		fmt.Println(after, page[0].Reason)
	}
	// Output:
	// orders/1 /: a division by zero
	// orders/3 /: a number is wanted, not true
}

// An index of a kind that this version does not know is refused.
func ExampleKindError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}, Kind: "phonetic"})
	var unknown *jay.KindError
	if errors.As(err, &unknown) {
		fmt.Println(unknown.Kind, errors.Is(err, jay.ErrIndex))
	}
	// Output: phonetic true
}

// An option that the kind of an index does not have is refused.
func ExampleOptionError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}, Options: map[string]string{"analyzer": "english"}})
	var option *jay.OptionError
	if errors.As(err, &option) {
		fmt.Println(option.Option, "is", option.Value+":", option.Rule)
	}
	// Output: analyzer is english: the options of the kind are strict
}

// A query of a transaction sees what the transaction has written.
func ExampleTx_Query() {
	ctx := context.Background()
	db, _ := exampleOrders()
	defer db.Close()
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Store(ctx, "Orders", json.RawMessage(`{"Total":1000}`)); err != nil {
			return err
		}
		n, err := tx.Query("Orders").Where(jay.Gt("Total", 50)).Count(ctx)
		fmt.Println(n, "large orders")
		return err
	})
	check(err)
	// Output: 2 large orders
}

// A transaction tests what a query has found once more, when it has read it again.
func ExampleMatcher() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()

	small := orders.Query().Where(jay.Lt("Total", 10))
	found, err := small.All(ctx)
	check(err)
	matcher, err := small.Matcher()
	check(err)
	check(db.Update(ctx, func(tx *jay.Tx) error {
		for _, order := range found {
			doc, err := tx.Get(ctx, order.ID)
			if err != nil {
				return err
			}
			still, err := matcher.Match(ctx, doc)
			if err != nil {
				return err
			}
			fmt.Println(doc.ID(), still)
		}
		return nil
	}))
	// Output:
	// orders/4-A true
}

func ExampleQuery_Patch() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := context.Background()
	for i, total := range []int{5, 50, 500} {
		body := fmt.Sprintf(`{"Total":%d}`, total)
		if _, err := db.Put(ctx, fmt.Sprint("orders/", i+1), []byte(body), jay.InCollection("Orders")); err != nil {
			panic(err)
		}
	}
	small := db.Query("Orders").Where(jay.Lt("Total", 100))
	done, err := small.Patch(ctx, jay.Set("Small", true))
	if err != nil {
		panic(err)
	}
	fmt.Println(done.Documents, "changed")
	done, err = small.Delete(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(done.Documents, "deleted")
	// Output:
	// 2 changed
	// 2 deleted
}

func ExampleChanged() {
	done := jay.Changed{Documents: 3, Unchanged: 1}
	fmt.Printf("%d changed, %d had nothing to change\n", done.Documents, done.Unchanged)
	// Output: 3 changed, 1 had nothing to change
}

func ExampleDB_UpdateRQL() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.Put(ctx, "orders/1", []byte(`{"Total":5,"Checks":0}`), jay.InCollection("Orders")); err != nil {
		panic(err)
	}
	q, edits, err := db.UpdateRQL("from Orders where Total < $least update { this.Small = true; this.Checks += 1 }", map[string]any{"least": 10})
	if err != nil {
		panic(err)
	}
	n, err := q.Count(ctx) // what would be changed
	if err != nil {
		panic(err)
	}
	done, err := q.Patch(ctx, edits...)
	if err != nil {
		panic(err)
	}
	doc, err := db.Get(ctx, "orders/1")
	if err != nil {
		panic(err)
	}
	fmt.Println(n, done.Documents, string(doc.Body()))
	// Output: 1 1 {"Total":5,"Checks":1,"Small":true}
}

// A program keeps in the database what it declares for it, and another one that opens a copy of it finds it there.
func ExampleDefinitions() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	report := jay.DefinitionChange{Kind: "report", Name: "Users/ByCity", Value: json.RawMessage(`{"query":"from Users","columns":2}`)}
	check(db.Definitions().Change(ctx, report))
	list, err := db.Definitions().List(ctx, "report")
	check(err)
	for _, d := range list {
		fmt.Println(d.Name, d.Number, string(d.Value))
	}
	// Output: users/bycity 1 {"query":"from Users","columns":2}
}

// The number of a definition says whether it was changed since it was read.
func ExampleDefinition() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "report", Name: "ages", Value: json.RawMessage(`{"columns":2}`)}))
	d, err := db.Definitions().Get(ctx, "report", "Ages")
	check(err)
	var report struct{ Columns int }
	check(d.Decode(&report))
	last, err := db.Definitions().Last(ctx)
	check(err)
	fmt.Println(report.Columns, d.Number == last)
	// Output: 2 true
}

// Changes of one call are made together. One that is IfMissing leaves a definition that is there.
func ExampleDefinitionChange() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	put := jay.DefinitionChange{Kind: "report", Name: "ages", Value: json.RawMessage(`{"columns":2}`)}
	check(db.Definitions().Change(ctx, put))
	standard := jay.DefinitionChange{Kind: "report", Name: "ages", Value: json.RawMessage(`{"columns":1}`), IfMissing: true}
	other := jay.DefinitionChange{Kind: "report", Name: "names", Value: json.RawMessage(`{}`)}
	check(db.Definitions().Change(ctx, standard, other))
	list, err := db.Definitions().List(ctx, "report")
	check(err)
	for _, d := range list {
		fmt.Println(d.Name, string(d.Value))
	}
	remove := jay.DefinitionChange{Kind: "report", Name: "ages"} // without a value
	check(db.Definitions().Change(ctx, remove))
	_, err = db.Definitions().Get(ctx, "report", "ages")
	fmt.Println(errors.Is(err, jay.ErrNotFound))
	// Output:
	// ages {"columns":2}
	// names {}
	// true
}

// A shop's dashboard: orders and their total by customer and year, kept in the commit that changes an order, and read without
// reading an order.
func ExampleIndex_groups() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Orders", jay.Index{
		Name:    "ByCustomer",
		Kind:    "groups",
		Fields:  []string{"Customer", "year(At)"},
		Options: map[string]string{"sums": "Total"},
	}))
	for id, order := range map[string]string{
		"orders/1": `{"Customer":"Ann","At":"2025-12-31T12:00:00Z","Total":20.10}`,
		"orders/2": `{"Customer":"Ann","At":"2026-01-01T12:00:00Z","Total":5}`,
		"orders/3": `{"Customer":"Bob","At":"2026-01-02T12:00:00Z","Total":0.2}`,
		"orders/4": `{"Customer":"Ann","At":"2026-02-01T12:00:00Z","Total":1.1}`,
	} {
		_, err := db.Put(ctx, id, json.RawMessage(order), jay.InCollection("Orders"))
		check(err)
	}
	check(db.Delete(ctx, "orders/2"))

	dashboard, err := db.RQL("from Orders group by Customer, year(At) order by Customer, year(At) select Customer, year(At) as Year, count() as Orders, sum(Total) as Total, avg(Total) as Average", nil)
	check(err)
	for row, err := range dashboard.NoScan().Iter(ctx) {
		check(err)
		fmt.Println(string(row.JSON))
	}
	x, err := dashboard.Explain(ctx)
	check(err)
	fmt.Println(x.Plan[0])
	// Output:
	// {"Customer":"Ann","Year":"2025","Orders":1,"Total":20.1,"Average":20.1}
	// {"Customer":"Ann","Year":"2026","Orders":1,"Total":1.1,"Average":1.1}
	// {"Customer":"Bob","Year":"2026","Orders":1,"Total":0.2,"Average":0.2}
	// groups (sums=Total) index "ByCustomer", kept counts and sums
}

// A shop shows beside its answers how many there are of each brand, and in each range of prices.
func ExampleQuery_Facets() {
	db := example()
	defer db.Close()
	ctx := context.Background()
	cameras(db)

	results, err := db.Query("Cameras").Where(jay.Gt("Price", 0)).Facets(ctx,
		jay.Facet{Field: "Brand", Functions: []string{"sum(Price)"}, Options: jay.FacetOptions{Order: jay.FacetCountDesc}},
		jay.Facet{Name: "Prices", Ranges: []string{"Price < 100", "Price >= 100"}, Functions: []string{"sum(Price)"}},
	)
	check(err)
	for _, result := range results {
		fmt.Println(result.Name)
		for _, v := range result.Values {
			fmt.Println("  ", v.Range, v.Count, v.Sum)
		}
	}
	// Output:
	// Brand
	//    Nikon 2 349.5
	//    Canon 1 90
	// Prices
	//    Price < 100 2 189.5
	//    Price >= 100 1 250
}

// A shop counts what a query finds by brand, the most frequent first.
func ExampleFacet() {
	db := example()
	defer db.Close()
	cameras(db)
	results, err := db.Query("Cameras").Facets(context.Background(), jay.Facet{Field: "Brand"})
	check(err)
	for _, v := range results[0].Values {
		fmt.Println(v.Range, v.Count)
	}
	// Output:
	// Canon 1
	// Nikon 2
}

// The greatest value alone, and how many answers the others have.
func ExampleFacetOptions() {
	db := example()
	defer db.Close()
	cameras(db)
	options := jay.FacetOptions{Order: jay.FacetCountDesc, Size: 1, HasSize: true, Remaining: true}
	results, err := db.Query("Cameras").Facets(context.Background(), jay.Facet{Field: "Brand", Options: options})
	check(err)
	fmt.Println(results[0].Values[0].Range, results[0].RemainingTerms, results[0].RemainingHits)
	// Output: Nikon [Canon] 1
}

// Values in falling order.
func ExampleFacetOrder() {
	db := example()
	defer db.Close()
	cameras(db)
	var order jay.FacetOrder = jay.FacetValueDesc
	results, err := db.Query("Cameras").Facets(context.Background(), jay.Facet{Field: "Brand", Options: jay.FacetOptions{Order: order}})
	check(err)
	fmt.Println(results[0].Values[0].Range)
	// Output: Nikon
}

// Ranges have names of their own.
func ExampleFacetResult() {
	db := example()
	defer db.Close()
	cameras(db)
	var results []jay.FacetResult
	results, err := db.Query("Cameras").Facets(context.Background(), jay.Facet{Name: "Prices", Ranges: []string{"Price < 100", "Price >= 100"}})
	check(err)
	fmt.Println(results[0].Name, len(results[0].Values))
	// Output: Prices 2
}

// Functions are computed for each value.
func ExampleFacetValue() {
	db := example()
	defer db.Close()
	cameras(db)
	results, err := db.Query("Cameras").Facets(context.Background(), jay.Facet{Field: "Brand", Functions: []string{"sum(Price)"}})
	check(err)
	var nikon jay.FacetValue = results[0].Values[1]
	fmt.Println(nikon.Range, nikon.Count, nikon.Sum)
	// Output: Nikon 2 349.5
}

// cameras stores three cameras of two brands.
func cameras(db *jay.DB) {
	for _, camera := range []string{`{"Brand":"Canon","Price":90}`, `{"Brand":"Nikon","Price":250}`, `{"Brand":"Nikon","Price":99.5}`} {
		_, err := db.Put(context.Background(), "cameras/", []byte(camera), jay.InCollection("Cameras"))
		check(err)
	}
}

// Show where the words were found, as HTML.
func ExampleHighlight() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Insert(ctx, "notes|", []byte(`{"Text":"Jays hide acorns in autumn & find most of the acorns again in winter."}`), jay.InCollection("Notes"))
	check(err)
	found := db.Query("Notes").Where(jay.Search("Text", "acorns winter"))
	row, err := found.Highlight(jay.Highlight{Field: "Text", Length: 36, Fragments: 2}).Rows().First(ctx)
	check(err)
	for _, fragment := range row.Highlights["Text"] {
		fmt.Println(fragment)
	}
	// Output:
	// Jays hide <b>acorns</b> in autumn &amp; find
	// most of the <b>acorns</b> again in <b>winter</b>.
}

// Ask why an answer has its score.
func ExampleScoreExplanation() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, text := range []string{"A jay in an oak", "Two oaks"} {
		_, err := db.Insert(ctx, "notes|", fmt.Appendf(nil, `{"Text":%q}`, text), jay.InCollection("Notes"))
		check(err)
	}
	row, err := db.Query("Notes").Where(jay.Search("Text", "oak^2 jay")).ExplainScores().Rows().First(ctx)
	check(err)
	fmt.Println(row.Explanation)
	// Output:
	// 1.76925 = sum of
	//   1.76925 search(Text, 'oak^2 jay'): Text has 5 words, 3.5 on the average of 2 documents
	//     1.1795 oak^2 = boost 2 × weight 1 × rarity 0.693147 (in 1 of 2 documents) × frequency 0.850829 (1 here)
	//     0.58975 jay = boost 1 × weight 1 × rarity 0.693147 (in 1 of 2 documents) × frequency 0.850829 (1 here)
}

// Join a search for words and one for vectors: what both find comes before what one of them finds.
func ExampleFuse() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, body := range []string{
		`{"Text":"Oak acorns","Embedding":[0.9,0.1]}`, `{"Text":"The fruit of a tree","Embedding":[1,0]}`, `{"Text":"An oak table","Embedding":[0,1]}`, `{"Text":"Bread","Embedding":[-1,0.2]}`,
	} {
		_, err := db.Insert(ctx, "notes|", json.RawMessage(body), jay.InCollection("Notes"))
		check(err)
	}
	meant := []float32{1, 0}
	found := db.Query("Notes").
		Where(jay.Or(jay.Search("Text", "oak"), jay.Similar("Embedding", meant, 0.6))).
		OrderBy(jay.Fuse(jay.Score, jay.Nearest("Embedding", meant)))
	for text, err := range jay.Select[string](found, "Text").Iter(ctx) {
		check(err)
		fmt.Println(*text)
	}
	// Output:
	// Oak acorns
	// An oak table
	// The fruit of a tree
}

// Keep vectors as bytes, and their signs as bits, and find them by the form.
func ExampleInt8() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, v := range [][]float32{{0.9, 0.1, -0.5}, {-0.2, 1, 0.4}} {
		body, err := json.Marshal(map[string]any{"Small": jay.Int8(v), "Signs": jay.Bits(v)})
		check(err)
		_, err = db.Insert(ctx, "notes|", body, jay.InCollection("Notes"))
		check(err)
	}
	to := []float32{1, 0, -0.5}
	for _, c := range []jay.Condition{jay.Similar("embedding.i8(Small)", to, 0.9), jay.Similar("embedding.i1(Signs)", to, 1)} {
		doc, err := db.Query("Notes").Where(c).First(ctx)
		check(err)
		fmt.Println(doc.ID())
	}
	// Output:
	// notes/1
	// notes/1
}

// Suggest another spelling where nothing is found, and words while people type.
func ExampleSuggestion() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
	for _, text := range []string{"Acorns and oaks", "A jay caches acorns", "An actor"} {
		_, err := db.Insert(ctx, "notes|", fmt.Appendf(nil, `{"Text":%q}`, text), jay.InCollection("Notes"))
		check(err)
	}
	meant, err := db.Query("Notes").Suggest(ctx, "Text", "acrons", jay.SuggestOptions{Size: 1})
	check(err)
	fmt.Println("did you mean", meant[0].Word)
	typed, err := db.Query("Notes").Complete(ctx, "Text", "ac", jay.SuggestOptions{})
	check(err)
	for _, word := range typed {
		fmt.Println(word.Word, word.Documents)
	}
	// Output:
	// did you mean acorns
	// acorns 2
	// actor 1
}

// Suggest only words that are much the same.
func ExampleSuggestOptions() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
	_, err := db.Insert(ctx, "notes|", []byte(`{"Text":"ash ashes oak"}`), jay.InCollection("Notes"))
	check(err)
	found, err := db.Query("Notes").Suggest(ctx, "Text", "asher", jay.SuggestOptions{Accuracy: 0.7})
	check(err)
	for _, word := range found {
		fmt.Println(word.Word, word.Distance)
	}
	// Output:
	// ashes 1
}

// Find what is like an article, the most similar first.
func ExampleMoreLikeThisOptions() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Notes", jay.Index{Kind: "text", Fields: []string{"Text"}, Options: map[string]string{"analyzer": "english"}}))
	for id, text := range map[string]string{
		"notes/1": "A jay hides acorns, and finds the acorns again",
		"notes/2": "Acorns of an oak",
		"notes/3": "Oaks in winter",
		"notes/4": "Finding acorns",
	} {
		_, err := db.Put(ctx, id, fmt.Appendf(nil, `{"Text":%q}`, text), jay.InCollection("Notes"))
		check(err)
	}
	options := jay.MoreLikeThisOptions{MinimumTermFrequency: 1, MinimumDocumentFrequency: 1} // there are few articles
	found, err := db.Query("Notes").Where(jay.MoreLikeThis("notes/1", options)).OrderBy(jay.Score).All(ctx)
	check(err)
	for _, doc := range found {
		fmt.Println(doc.ID())
	}
	// Output:
	// notes/4
	// notes/2
}
