package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// shortIDs returns the IDs of the answers of a query behind their last slash, in order.
func shortIDs(t *testing.T, q jay.Query[jay.Document]) string {
	t.Helper()
	docs, err := q.OrderBy("id()").All(ctx)
	must(t, err)
	var got []string
	for _, doc := range docs {
		got = append(got, doc.ID()[strings.LastIndexByte(doc.ID(), '/')+1:])
	}
	return strings.Join(got, " ")
}

// Ensure that two fields of a document are compared, in Go and in RQL, with an index and
// without: values of one kind, any pair of them, arrays and objects never.
func TestField_Compare(t *testing.T) {
	db := memory(t, nil)
	for i, body := range []string{
		1: `{"Paid":5,"Total":4}`, 2: `{"Paid":4,"Total":4.0}`, 3: `{"Paid":"4","Total":4}`, 4: `{"Total":4}`,
		5: `{"Paid":null,"Total":null}`, 6: `{"Paid":[1,9],"Total":[8,"x"]}`, 7: `{"Paid":"Ann","Total":"ann"}`, 8: `{"Paid":{},"Total":{}}`,
		9: `{"Paid":true,"Total":false}`, 10: `{"Paid":[],"Total":4}`, 11: `{"Paid":[[1]],"Total":[[1]],"from":[1],"at":{"x y":0}}`,
		12: `{"Paid":"BILLS/12","Total":1e0}`, 13: `{"Paid":9007199254740993,"Total":9007199254740992}`,
	} {
		if body != "" {
			put(t, db, fmt.Sprintf("bills/%02d", i), body, jay.InCollection("Bills"))
		}
	}
	total := jay.Field("Total")
	tests := []struct {
		where jay.Condition
		rql   string
		want  string
	}{
		{jay.Gt("Paid", total), "exact(Paid > Total)", "01 06 09 13"},
		{jay.Ge("Paid", total), "exact(Paid >= Total)", "01 02 05 06 09 13"},
		{jay.Lt("Paid", total), "exact(Paid < Total)", "06 07"},
		{jay.Le("Paid", total), "exact(Paid <= Total)", "02 05 06 07"},
		{jay.Eq("Paid", total), "exact(Paid = Total)", "02 05"},
		{jay.IgnoreCase(jay.Eq("Paid", total)), "Paid = Total", "02 05 07"},
		{jay.IgnoreCase(jay.Ne("Paid", total)), "Paid != Total", "01 03 04 06 08 09 10 11 12 13"},
		{jay.IgnoreCase(jay.Lt("Paid", total)), "Paid < Total", "06"},
		{jay.IgnoreCase(jay.Eq("Paid", jay.Field("Paid"))), "Paid = Paid", "01 02 03 05 06 07 09 12 13"},
		{jay.IgnoreCase(jay.Gt("Paid[1]", jay.Field("Total[0]"))), "Paid[1] > Total[0]", "06"},
		{jay.IgnoreCase(jay.Eq("id()", jay.Field("Paid"))), "id() = Paid", "12"},
		{jay.Eq("Paid", jay.Field("id()")), "exact(Paid = id())", "12"},
		{jay.IgnoreCase(jay.Eq("Paid", jay.Field("id()"))), "Paid = id()", "12"},
		{jay.IgnoreCase(jay.Lt("at.'x y'", jay.Field("'from'"))), "at.'x y' < field('from')", "11"},
		{jay.IgnoreCase(jay.Gt("'from'", jay.Field("at.'x y'"))), "'from' > at.'x y'", "11"},
		{jay.IgnoreCase(jay.Eq("@metadata.@collection", jay.Field("@metadata.@collection"))), "@metadata.@collection = @metadata.@collection", "01 02 03 04 05 06 07 08 09 10 11 12 13"},
	}
	for _, index := range []string{"", "Paid", "Total,Paid"} {
		if index != "" {
			must(t, db.EnsureIndex(ctx, "Bills", jay.Index{Fields: strings.Split(index, ",")}))
		}
		for _, test := range tests {
			q := db.Query("Bills").Where(test.where)
			text := "from Bills where " + test.rql
			equal(t, q.String(), text)
			if got := shortIDs(t, q); got != test.want {
				t.Errorf("%s with index %q: got %s, want %s", text, index, got, test.want)
			}
			asked, err := db.RQL(text, nil)
			must(t, err)
			equal(t, asked.String(), text)
			n, err := asked.Count(ctx)
			must(t, err)
			if int(n) != len(strings.Fields(test.want)) {
				t.Errorf("%s with index %q: RQL finds %d", text, index, n)
			}
		}
	}

	// No range of an index answers it: it is tested, here on entries.
	q, err := db.RQL("from Bills where Paid > Total select Paid, Total", nil)
	must(t, err)
	e, err := q.Explain(ctx)
	must(t, err)
	if plan := strings.Join(e.Plan, "\n"); !strings.Contains(plan, "filter: Paid > Total") || e.Suggestion != nil {
		t.Errorf("got plan\n%s\nand suggestion %v, want a filter and none", plan, e.Suggestion)
	}

	// As the condition of a partial index it is one like any other.
	must(t, db.EnsureIndex(ctx, "Bills", jay.Index{Fields: []string{"Total"}, Where: "Paid > Total", Name: "over"}))
	q, err = db.RQL("from Bills where Total = 4 and Paid > Total", nil)
	must(t, err)
	e, err = q.UseIndex("over").Explain(ctx)
	must(t, err)
	if e.Returned != 1 || e.Documents != 1 {
		t.Errorf("partial index: %v", e)
	}
}

// Ensure that fields which are compared in ElemMatch are both of one element.
func TestField_ElemMatch(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "orders/1", `{"Lines":[{"Ordered":5,"Sent":5},{"Ordered":1,"Sent":0}]}`, jay.InCollection("Orders"))
	put(t, db, "orders/2", `{"Lines":[{"Ordered":2,"Sent":3},{"Ordered":3,"Sent":5}],"Ordered":9}`, jay.InCollection("Orders"))
	equal(t, shortIDs(t, db.Query("Orders").Where(jay.Gt("Lines.Ordered", jay.Field("Lines.Sent")))), "1")
	equal(t, shortIDs(t, db.Query("Orders").Where(jay.ElemMatch("Lines", jay.Gt("Ordered", jay.Field("Sent"))))), "1")
	equal(t, shortIDs(t, db.Query("Orders").Where(jay.Eq("Lines.Ordered", jay.Field("Lines.Sent")))), "1 2")
	equal(t, shortIDs(t, db.Query("Orders").Where(jay.ElemMatch("Lines", jay.Eq("Ordered", jay.Field("Sent"))))), "1")
	q, err := db.RQL("from Orders as o where elemMatch(Lines, Ordered > Sent)", nil)
	must(t, err)
	equal(t, q.String(), "from Orders where elemMatch(Lines, Ordered > Sent)")
	for _, inner := range []jay.Condition{jay.Eq("Ordered", jay.Field("id()")), jay.Eq("id()", jay.Field("Ordered")), jay.Eq("@metadata.x", jay.Field("Ordered"))} {
		if _, err := db.Query("Orders").Where(jay.ElemMatch("Lines", inner)).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("got %v, want ErrQuery", err)
		}
	}
}

type stay struct {
	ID    string
	From  time.Time
	Until *time.Time `json:"until"`
	Note  string
	Parts []stayPart
}

type stayPart struct{ In, Out time.Time }

// Ensure that a typed collection checks the names of both fields, and compares by time if
// one of them is a time.
func TestField_Typed(t *testing.T) {
	db := memory(t, nil)
	stays, err := jay.CollectionOf[stay](db)
	must(t, err)
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	east := at(10).In(time.FixedZone("", 7200))
	for i, s := range []stay{
		{From: at(10), Until: &east, Note: "2026-01-01T12:00:00+02:00"},
		{From: at(9), Until: &east, Note: "2026-01-01T08:00:00Z", Parts: []stayPart{{at(1), at(3)}, {at(7), at(6)}}},
		{From: at(11), Note: "soon"},
	} {
		s.ID = fmt.Sprint("stays/", i)
		_, err := stays.Insert(ctx, &s)
		must(t, err)
	}
	// Other programs spell times as they like.
	put(t, db, "stays/3", `{"From":"2026-01-01T12:00:00+02:00","until":"2026-01-01T10:00:00.000Z"}`, jay.InCollection("Stays"))
	for _, test := range []struct {
		where jay.Condition
		want  string
	}{
		{jay.Lt("From", jay.Field("until")), "[1]"},
		{jay.Eq("From", jay.Field("until")), "[0 3]"},
		{jay.Eq("Note", jay.Field("From")), "[0]"},
		{jay.Lt("Note", jay.Field("until")), "[1]"},
		{jay.Ne("From", jay.Field("until")), "[1 2]"},
		{jay.ElemMatch("Parts", jay.Gt("In", jay.Field("Out"))), "[1]"},
		{jay.Eq("@metadata.@last-modified", jay.Field("From")), "[]"},
		{jay.Gt("dateDiff('millisecond', field('From'), until)", 0), "[1]"},
	} {
		found, err := stays.Query().Where(test.where).OrderBy("id()").All(ctx)
		must(t, err)
		got := []string{}
		for _, s := range found {
			got = append(got, strings.TrimPrefix(s.ID, "stays/"))
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: got %v, want %s", stays.Query().Where(test.where), got, test.want)
		}
	}
	for name, where := range map[string]jay.Condition{
		`did you mean "until"?`: jay.Lt("From", jay.Field("Until")), `did you mean "From"?`: jay.Lt("from", jay.Field("until")),
		`did you mean "Out"?`: jay.ElemMatch("Parts", jay.Lt("In", jay.Field("out"))), "is no date": jay.Lt("From", jay.Field("id()")),
		`untill`: jay.Gt("dateDiff('hour', field('From'), untill)", 0),
	} {
		if _, err := stays.Query().Where(where).All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want ErrQuery with %s", err, name)
		}
	}
	rql, err := db.RQL("from Stays where 'From' < until as date", nil)
	must(t, err)
	equal(t, rql.String(), "from Stays where 'From' as date < until as date")
	n, err := rql.Count(ctx)
	must(t, err)
	equal(t, n, 1)
}

// Ensure that a field is no value: neither a member of a list, nor a parameter, nor what
// is stored; and that functions of groups are compared with one another only.
func TestField_Refused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1}`)
	f := jay.Field("n")
	for name, err := range map[string]error{
		"Between": errorOf(db.Query("").Where(jay.Between("n", f, 3))),
		"In":      errorOf(db.Query("").Where(jay.In("n", f))),
		"AllIn":   errorOf(db.Query("").Where(jay.AllIn[any]("n", 1, f))),
		"path":    errorOf(db.Query("").Where(jay.Eq("n", jay.Field("n..m")))),
		"Where":   errorOf(db.Query("").Where(jay.Eq("n", jay.Field("count()")))),
		"Having":  errorOf(jay.Select[map[string]any](db.Query("X").GroupBy("n").Having(jay.Gt("count()", jay.Field("n"))), "n")),
		"@whole":  errorOf(db.Query("").Where(jay.Eq("n", jay.Field("@metadata")))),
	} {
		if !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", name, err)
		}
	}
	if _, err := db.Patch(ctx, "a", jay.Set("m", f)); !errors.Is(err, jay.ErrInvalidPatch) {
		t.Errorf("got %v, want ErrInvalidPatch", err)
	}
	for _, text := range []string{
		"from X where n = $p", "from X where n between 1 and m", "from X where n in (m)", "from X as x where n = x", "from X where n = @metadata",
		"from X group by n where count() > n select n", "from X where n = count()", "from X where n = cmpxchg('a')", "from X where 5 < n", "from X where n = Ada Lovelace",
		"from X as x where elemMatch(l, a = x.b)", "from X where id() as date = n", "from X where At as date = id()", "from X where month(At) = n as date", "from X where n = field(5)",
	} {
		params := map[string]any{"p": f}
		if !strings.Contains(text, "$p") {
			params = nil
		}
		if _, err := db.RQL(text, params); !errors.Is(err, jay.ErrSyntax) {
			t.Errorf("%s: got %v, want ErrSyntax", text, err)
		}
	}
	_, err := db.RQL("from X where Name = Ada Lovelace", nil)
	if err == nil || !strings.Contains(err.Error(), "text stands in quotes: Ada is a field") {
		t.Errorf("got %v, want a hint that text stands in quotes", err)
	}
}

func errorOf[T any](q jay.Query[T]) error {
	_, err := q.All(ctx)
	return err
}

// Ensure that functions of groups are compared with one another.
func TestField_Having(t *testing.T) {
	db := salesOf(t)
	q, err := db.RQL("from Sales group by who where max(n) > sum(n) or min(n) = max(n) select who, sum(n) as total", nil)
	must(t, err)
	equal(t, jsonRows(t, q), `[{"who":"c","total":5}]`)
	again, err := db.RQL(q.String(), nil)
	must(t, err)
	equal(t, again.String(), q.String())
	q, err = db.RQL("from Sales group by who where count() = least select who, min(n) as least", nil)
	must(t, err)
	equal(t, jsonRows(t, q), `[]`)
	built := jay.Select[map[string]any](db.Query("Sales").GroupBy("who").Having(jay.Gt("total", jay.Field("avg(n)"))), "who", "sum(n) as total")
	rows, err := built.OrderBy("who").All(ctx)
	must(t, err)
	equal(t, fmt.Sprint(*rows[0], *rows[1], len(rows)), "map[total:3 who:a] map[total:60 who:b] 2")
}

// Ensure that the work of comparing two fields grows with their values and not with the
// pairs of them, also for more values than are held in memory.
func TestField_ManyValues(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	const n = 40_000 // more than a Reader holds of an element
	list := func(at func(i int) int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%d", at(i))
		}
		return "[" + b.String()[1:] + "]"
	}
	even, odd := list(func(i int) int { return 2 * i }), list(func(i int) int { return 2*i + 1 })
	above := list(func(i int) int { return 2*n + i })
	put(t, db, "m/1", `{"l":[{"a":`+even+`,"b":`+odd+`}]}`, jay.InCollection("M"))
	put(t, db, "m/2", `{"l":[{"a":`+even+`,"b":`+strings.TrimSuffix(odd, "]")+`,"x",0.0]}]}`, jay.InCollection("M"))
	put(t, db, "m/3", `{"l":[{"a":`+even+`,"b":`+above+`}]}`, jay.InCollection("M"))
	put(t, db, "m/4", `{"l":[{"a":`+above+`,"b":`+even+`}]}`, jay.InCollection("M"))
	put(t, db, "m/5", `{"l":[{"a":`+even+`,"b":["x",[7],null]}]}`, jay.InCollection("M"))
	for _, test := range []struct {
		op   func(string, any) jay.Condition
		want string
	}{{jay.Eq, "2"}, {jay.Lt, "1 2 3"}, {jay.Le, "1 2 3"}, {jay.Gt, "1 2 4"}, {jay.Ge, "1 2 4"}} {
		equal(t, shortIDs(t, db.Query("M").Where(jay.ElemMatch("l", test.op("a", jay.Field("b"))))), test.want)
		equal(t, shortIDs(t, db.Query("M").Where(test.op("l.a", jay.Field("l.b")))), test.want)
	}
}
