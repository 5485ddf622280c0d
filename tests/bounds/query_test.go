package bounds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/query"
)

// quick runs fn, and fails if it takes longer than any machine should need, or
// more memory than 200 MB. It is a guard against what takes minutes and
// gigabytes, not a measurement.
func quick(t *testing.T, name string, fn func()) {
	t.Helper()
	const most, mostBytes = jaytest.HangGuard, 200 << 20
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak.Store(max(peak.Load(), now.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that garbage is not counted for long
	began := time.Now()
	fn()
	took := time.Since(began)
	close(stop)
	<-stopped
	if took > most {
		t.Errorf("%s took %v", name, took)
	}
	if used := int64(peak.Load()) - int64(before.HeapInuse); used > mostBytes && !jaytest.Allocates {
		t.Errorf("%s took %d MB", name, used>>20)
	}
	if testing.Verbose() {
		t.Logf("%s: %v, %d MB", name, took, (int64(peak.Load())-int64(before.HeapInuse))>>20)
	}
}

// limitOf returns what of a query is beyond a bound, "" for none.
func limitOf(err error) string {
	var limit *query.LimitError
	if !errors.As(err, &limit) {
		return ""
	}
	return limit.What
}

// Ensure that a condition of the builder is refused as soon as it is too large,
// however deep or wide it is, and that what is refused is not met again by
// IgnoreCase, String or a query.
func TestQuery_Bounds_Builder(t *testing.T) {
	sample.OneGoroutine(t)
	db := memory(t, nil)
	leaf := jay.Eq("V", 1)
	nested := func(wrap func(jay.Condition) jay.Condition, n int) jay.Condition {
		c := leaf
		for range n {
			c = wrap(c)
		}
		return c
	}
	and := func(c jay.Condition) jay.Condition { return jay.And(c) }
	today := sample.Of(t, 7)
	for i, test := range []struct {
		name  string
		make  func() jay.Condition
		limit string // "" if it is answered
	}{
		{"And of And, two million deep", func() jay.Condition { return nested(and, 2_000_000) }, "levels of conditions"},
		{"Or of Or, two million deep", func() jay.Condition {
			return nested(func(c jay.Condition) jay.Condition { return jay.Or(c) }, 2_000_000)
		}, "levels of conditions"},
		{"Not of Not, two million deep", func() jay.Condition { return nested(jay.Not, 2_000_000) }, "levels of conditions"},
		{"doubled, 40 times", func() jay.Condition { return nested(func(c jay.Condition) jay.Condition { return jay.And(c, c) }, 40) }, "conditions"},
		{"IgnoreCase of what is refused", func() jay.Condition {
			return nested(func(c jay.Condition) jay.Condition { return jay.IgnoreCase(jay.And(c)) }, 20_000)
		}, "levels of conditions"},
		{"the deepest", func() jay.Condition { return nested(and, query.MaxConditionDepth-1) }, ""},
		{"one level deeper", func() jay.Condition { return nested(and, query.MaxConditionDepth) }, "levels of conditions"},
		{"two million conditions", func() jay.Condition { return jay.Or(make([]jay.Condition, 2_000_000)...) }, "conditions"},
		{"the most conditions", func() jay.Condition { return jay.Or(make([]jay.Condition, query.MaxConditions-1)...) }, ""},
		{"the most values", func() jay.Condition { return jay.In("V", make([]int, query.MaxValues)...) }, ""},
		{"more values", func() jay.Condition { return jay.In("V", make([]int, query.MaxValues+1)...) }, "values in lists"},
		{"more values in two", func() jay.Condition {
			return jay.Or(jay.In("V", make([]int, query.MaxValues)...), jay.In("V", 1))
		}, "values in lists"},
		{"values of 40 MB", func() jay.Condition { return jay.In("V", strings.Repeat("x", 20<<20), strings.Repeat("y", 20<<20)) }, "bytes of values"},
		{"a thousand and one patterns", func() jay.Condition {
			var all []jay.Condition
			for i := range query.MaxRegexps + 1 {
				all = append(all, jay.Matches("V", fmt.Sprint(i)))
			}
			return jay.Or(all...)
		}, "regular expressions"},
	} {
		if !today.Has(i) {
			continue
		}
		quick(t, test.name, func() {
			c := test.make()
			q := db.Query("Values").Where(jay.IgnoreCase(c))
			_ = q.String()
			if _, err := q.All(ctx); limitOf(err) != test.limit || test.limit != "" && !errors.Is(err, jay.ErrQuery) || test.limit == "" && err != nil {
				t.Errorf("%s: %.200v, want %q", test.name, err, test.limit)
			}
		})
	}
	quick(t, "Where again and again", func() {
		q := db.Query("Values")
		for range 20_000 {
			q = q.Where(leaf)
		}
		if _, err := q.Count(ctx); limitOf(err) != "levels of conditions" {
			t.Errorf("Where again and again: %v", err)
		}
	})
	many := make([]string, query.MaxColumns+1)
	for i := range many {
		many[i] = fmt.Sprint("c", i)
	}
	for name, q := range map[string]jay.Query[jay.Document]{
		"orders": db.Query("Values").OrderBy(many...), "groups": db.Query("Values").GroupBy(many...), "includes": db.Query("Values").Include(many...),
		"includes one by one": db.Query("Values").Include(many[:200]...).Include(many[:100]...),
	} {
		if _, err := q.All(ctx); limitOf(err) != "fields in one list" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := jay.Select[map[string]any](db.Query("Values"), many...).All(ctx); limitOf(err) != "fields in one list" {
		t.Errorf("columns: %v", err)
	}
}

// Ensure that conditions are refused outside of the gate: Close does not wait
// for one who makes bombs.
func TestQuery_Bounds_GateIsFree(t *testing.T) {
	db := memory(t, nil)
	began, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			c := jay.Eq("V", 1)
			for range 3000 {
				c = jay.And(c)
			}
			if _, err := db.Query("Values").Where(c).All(ctx); limitOf(err) == "" {
				t.Errorf("%v, want a limit", err)
			}
			if i == 0 {
				close(began)
			}
			if _, err := db.Query("Values").Count(ctx); errors.Is(err, jay.ErrClosed) {
				return
			}
		}
	}()
	<-began
	must(t, db.Close())
	<-done
}

// Ensure that regular expressions are refused before they cost much: by their
// number, their programs, and what parsing them costs.
func TestQuery_Bounds_Regexps(t *testing.T) {
	sample.OneGoroutine(t)
	db := memory(t, nil)
	put(t, db, "v/1", `{"V":"`+strings.Repeat("a", 1000)+`"}`, jay.InCollection("Values"))
	or := func(pattern string, n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = "regex(V, '" + pattern + "')"
		}
		return strings.Join(parts, " or ")
	}
	for _, test := range []struct {
		name, where, limit string
	}{
		{"1,000 of 900 states", or("[ab]{900}x", 1000), "states of all regular expressions"},
		{"20 of 900 states", or("[ab]{900}x", 20), ""},
		{"a program of 142,000 states", or(strings.Repeat("a{1000}", 140), 60), "states of a regular expression"},
		{"the most states", or("[ab]{1000}[ab]{990}", 10), ""},
		{"ranges of all characters", or(strings.Repeat(`[B-\\x{1e942}]`, 64), 60), "characters in the ranges of regular expressions"},
		{"ranges of Cyrillic", or(strings.Repeat(`[а-я]`, 100), 20), ""},
		{"classes of letters", or(strings.Repeat(`\\pL`, 100), 150), "characters in the ranges of regular expressions"},
	} {
		quick(t, test.name, func() {
			q, err := db.RQL("from Values where "+test.where, nil)
			if err == nil {
				_, err = q.All(ctx)
			}
			if limitOf(err) != test.limit || test.limit == "" && err != nil {
				t.Errorf("%s: %.200v, want %q", test.name, err, test.limit)
			}
		})
		quick(t, test.name+", of the builder", func() {
			pattern := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(strings.Split(test.where, " or ")[0], "regex(V, '"), "')"), `\\`, `\`)
			var all []jay.Condition
			for range strings.Count(test.where, " or ") + 1 {
				all = append(all, jay.Matches("V", pattern))
			}
			_, err := db.Query("Values").Where(jay.IgnoreCase(jay.Or(all...))).All(ctx)
			if limitOf(err) != test.limit || test.limit == "" && err != nil {
				t.Errorf("%s: %.200v, want %q", test.name, err, test.limit)
			}
		})
	}
}

// looked is a context that ends when it was looked at n times: an end that
// comes in the middle of the work, whatever the machine.
type looked struct {
	context.Context
	left atomic.Int64
}

func lookedAt(n int64) *looked {
	c := &looked{Context: context.Background()}
	c.left.Store(n)
	return c
}

func (c *looked) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// bombs are queries of one collection that take minutes if nothing ends them.
func bombs() map[string]string {
	regexps := make([]string, 20)
	for i := range regexps {
		regexps[i] = "regex(Text, '([ab]{900}|x)y')"
	}
	sums := []string{"count()"}
	for i := range 20 {
		sums = append(sums, fmt.Sprintf("sum(Many) as s%d", i))
	}
	return map[string]string{
		"regular expressions":  "where " + strings.Join(regexps, " or "),
		"one long text":        "where regex(Text, '([ab]{900}|x)y')",
		"sums in many groups":  "group by Tags select Tags, " + strings.Join(sums, ", "),
		"sums of long numbers": "select sum(Long), avg(Long)",
		"an order":             "order by Many as double desc, Many as string, Many select Many[1]",
	}
}

// Ensure that a query ends with its context in the middle of a document, and at
// Close, whatever it is doing: work is counted, not documents.
func TestQuery_Bounds_EndsWithinDocument(t *testing.T) {
	db := memory(t, nil)
	tags := make([]string, 5000)
	for i := range tags {
		tags[i] = fmt.Sprint(i)
	}
	put(t, db, "v/1", `{"Text":"`+strings.Repeat("ab", 4<<20)+`","Many":`+jaytest.Array("12345", 1_000_000)+`,"Tags":[`+strings.Join(tags, ",")+`],"Long":`+jaytest.Array("1e9999", 500_000)+`,"Lines":`+jaytest.Array(`{"p":1}`, 500_000)+`}`, jay.InCollection("Values"))
	for name, rest := range bombs() {
		q, err := db.RQL("from Values "+rest, nil)
		must(t, err)
		quick(t, name, func() {
			c := lookedAt(20)
			if _, err := q.All(c); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %.200v, want %v", name, err, context.Canceled)
			}
			if over := -c.left.Load(); over > 10 {
				t.Errorf("%s: the context was looked at %d times after its end", name, over)
			}
		})
	}

	// Elements that are not there cost no look at each of the others.
	var elements []string
	for i := range 2000 {
		elements = append(elements, fmt.Sprintf("Many[%d] = 'x'", 900_000_000+i))
	}
	quick(t, "elements", func() {
		q, err := db.RQL("from Values where "+strings.Join(elements, " or "), nil)
		must(t, err)
		if found, err := q.Exists(ctx); found || err != nil {
			t.Errorf("elements: %v, %v", found, err)
		}
	})

	// Close ends those that no context ends.
	var running []chan error
	started := make(chan struct{}, len(bombs()))
	for _, name := range []string{"one long text", "sums in many groups"} {
		q, err := db.RQL("from Values "+bombs()[name], nil)
		must(t, err)
		end := make(chan error, 1)
		running = append(running, end)
		go func() {
			c := lookedAt(1 << 60)
			go func() {
				for c.left.Load() > 1<<60-20 {
					runtime.Gosched()
				}
				started <- struct{}{}
			}()
			_, err := q.All(c)
			end <- err
		}()
	}
	for range running {
		<-started
	}
	must(t, db.Close())
	for _, end := range running {
		if err := <-end; !errors.Is(err, jay.ErrClosed) {
			t.Errorf("after Close: %.200v, want %v", err, jay.ErrClosed)
		}
	}
}

// Ensure that a query of a transaction does not hold up Close while it searches,
// although it includes documents.
func TestQuery_Bounds_TransactionAndClose(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "v/1", `{"Text":"`+strings.Repeat("ab", 4<<20)+`"}`, jay.InCollection("Values"))
	started, end := make(chan struct{}), make(chan error, 1)
	go func() {
		end <- db.View(ctx, func(tx *jay.Tx) error {
			q, err := tx.RQL("from Values "+bombs()["one long text"]+" include Text", nil)
			if err != nil {
				return err
			}
			c := lookedAt(1 << 60)
			go func() {
				for c.left.Load() > 1<<60-20 {
					runtime.Gosched()
				}
				close(started)
			}()
			_, err = q.All(c)
			return err
		})
	}()
	<-started
	must(t, db.Close())
	if err := <-end; !errors.Is(err, jay.ErrClosed) {
		t.Errorf("got %v, want %v", err, jay.ErrClosed)
	}
}

// Ensure that queries of large documents take no more memory than stated, and
// are right or refused by MaxQueryBytes.
func TestQuery_Bounds_Memory(t *testing.T) {
	sample.OneGoroutine(t)
	const n = 8 << 20
	db := memory(t, nil)
	put(t, db, "v/1", `{"Many":`+jaytest.Array("1", n)+`,"Few":[1,2]}`, jay.InCollection("Values"))
	put(t, db, "w/1", `{"Text":"`+strings.Repeat("x", 20<<20)+`","Tags":`+jaytest.Array("[1]", 1<<20)+`}`, jay.InCollection("Texts"))
	_, err := db.Get(ctx, "w/1")
	must(t, err)
	var columns []string
	for i := range query.MaxColumns {
		columns = append(columns, fmt.Sprintf("Text as t%d", i))
	}
	today := sample.Of(t, 8)
	for i, test := range []struct {
		rql   string
		want  string // the answers' JSON; "" for documents
		limit string
	}{
		{"from Values where Many = 1 select Few", `{"Few":[1,2]}`, ""},
		{"from Values where Many = 2 or Many all in (1, 3) select Few", ``, ""},
		{"from Values where Many != 2 and Many all in (1) and Many > 0 select Few", `{"Few":[1,2]}`, ""},
		{"from Values order by Many, Many desc select Few", `{"Few":[1,2]}`, ""},
		{"from Values select sum(Many), max(Many), min(Few)", fmt.Sprintf(`{"sum(Many)":%d,"max(Many)":1,"min(Few)":1}`, n), ""},
		{"from Values group by Few order by sum(Many), Few select Few, sum(Many) as s", fmt.Sprintf(`{"Few":1,"s":%d} {"Few":2,"s":%d}`, n, n), ""},
		{"from Values group by Many select count()", "", "groups of one document"},
		{"from Values select Many[], Many[] as b, Many[] as c, Many[] as d, Many[] as e", "", "bytes of one row"},
		{"from Texts select " + strings.Join(columns, ", "), "", "bytes of one row"},
		{"from Texts group by Text select count()", "", ""},
		{"from Texts where Tags = 1 select id() as i", "", ""},
	} {
		if !today.Has(i) {
			continue
		}
		quick(t, test.rql[:min(len(test.rql), 80)], func() {
			q, err := db.RQL(test.rql, nil)
			must(t, err)
			rows, err := q.All(ctx)
			if limitOf(err) != test.limit || test.limit == "" && err != nil {
				t.Errorf("%.80s: %.200v, want %q", test.rql, err, test.limit)
				return
			}
			var got []string
			for _, row := range rows {
				got = append(got, string(row.JSON))
			}
			if text := strings.Join(got, " "); test.want != "" && text != test.want {
				t.Errorf("%.80s: got %.200s, want %s", test.rql, text, test.want)
			}
		})
	}
}

// Ensure that many values answer as few do: those that are not held in memory
// are found anew.
func TestQuery_Bounds_ManyValues(t *testing.T) {
	sample.OneGoroutine(t)
	db := memory(t, nil)
	today := sample.Of(t, 8)
	for _, n := range []int{10, 600_000} {
		cases := 0
		left := func() bool { cases++; return n > 10 && !today.Has(cases) } // to another day
		id := fmt.Sprint("v/", n)
		put(t, db, id, `{"A":`+jaytest.Array("3", n)+`,"B":[`+strings.Repeat(`{"C":["x","Y"]},`, n/2)+`{"C":"z"}]}`, jay.InCollection("Values"))
		wants := map[string]bool{
			"A = 3": true, "A = 4": false, "A != 3": false, "A in (1, 3)": true, "A all in (3)": true, "A all in (3, 4)": false, "A between 2 and 4": true, "exists(A)": true,
			"B.C = 'y'": true, "exact(B.C = 'y')": false, "B.C all in ('x', 'Y', 'z')": true, "endsWith(B[].C, 'Z')": true, "regex(B.C, '^[z]$')": true, "contains(B.C, 'q')": false,
			"A = 3 and B.C = 'z'": true, "not (A = 3 and B.C = 'z')": false,
		}
		for _, where := range slices.Sorted(maps.Keys(wants)) {
			if left() {
				continue
			}
			want := wants[where]
			q, err := db.RQL("from Values where id() = '"+id+"' and "+where, nil)
			must(t, err)
			if got, err := q.Exists(ctx); err != nil || got != want {
				t.Errorf("%d values: %s: %v, %v", n, where, got, err)
			}
		}
		rows := map[string]string{
			"select min(B.C), max(B.C), sum(A), count()":  fmt.Sprintf(`{"min(B.C)":"x","max(B.C)":"z","sum(A)":%d,"Count":1}`, 3*n),
			"order by A desc, B.C as string select A[0]":  `{"A[0]":3}`,
			"group by A[1] select A[1] as k, avg(A) as a": `{"k":3,"a":3}`,
		}
		for _, rql := range slices.Sorted(maps.Keys(rows)) {
			if left() {
				continue
			}
			want := rows[rql]
			q, err := db.RQL("from Values where id() = '"+id+"' "+strings.Replace(rql, "group by A[1]", "", 1), nil)
			if strings.HasPrefix(rql, "group") {
				q, err = db.RQL("from Values group by A[1] where id() = '"+id+"' select A[1] as k, avg(A) as a", nil)
			}
			must(t, err)
			rows, err := q.All(ctx)
			if err != nil || len(rows) != 1 || string(rows[0].JSON) != want {
				t.Errorf("%d values: %s: %v, %v, want %s", n, rql, rows, err, want)
			}
		}
	}
}

// Ensure that planning looks at each condition of a query, and of partial
// indexes, a few times and not once for each of the others.
func TestQuery_Bounds_Planning(t *testing.T) {
	sample.OneGoroutine(t)
	db := memory(t, nil)
	put(t, db, "v/1", `{"A":1}`, jay.InCollection("Values"))
	var filter []string
	for i := range 2000 {
		filter = append(filter, fmt.Sprintf("A!=%d", 10_000+i))
	}
	for i := range 20 {
		must(t, db.EnsureIndex(ctx, "Values", jay.Index{Name: fmt.Sprint(i), Fields: []string{"A", fmt.Sprint("B", i)}, Where: strings.Join(filter, " and ")}))
	}
	var all []jay.Condition
	for i := range 2000 {
		all = append(all, jay.Ne("A", 10_000+i), jay.Not(jay.Eq("B", 10_000+i)))
	}
	quick(t, "conditions of partial indexes", func() {
		docs, err := db.Query("Values").Where(all...).All(ctx)
		if err != nil || len(docs) != 1 {
			t.Errorf("%d documents, %v", len(docs), err)
		}
	})
	var lists []jay.Condition
	for i := range 190 {
		values := make([]int, 500)
		for j := range values {
			values[j] = j*i + 1
		}
		lists = append(lists, jay.In("A", values...), jay.Or(jay.Eq("A", 1)), jay.Or(jay.Eq("A", 1), jay.Eq("A", 2)))
	}
	quick(t, "lists and unions", func() {
		docs, err := db.Query("Values").Where(lists...).All(ctx)
		if err != nil || len(docs) != 1 {
			t.Errorf("%d documents, %v", len(docs), err)
		}
	})
}

// Ensure that a union is looked for among up to 500 branches of an or, whatever
// the order of the conditions.
func TestQuery_Bounds_Branches(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: []string{"A"}}))
	put(t, db, "v/1", `{"A":1}`, jay.InCollection("Values"))
	branches := func(n int) jay.Condition {
		all := make([]jay.Condition, n)
		for i := range all {
			all[i] = jay.Eq("A", i)
		}
		return jay.Or(all...)
	}
	all := make([]jay.Condition, 10)
	for i := range all {
		all[i] = branches(50)
	}
	for _, test := range []struct {
		conditions []jay.Condition
		union      bool
	}{
		{all, true}, {append(all, branches(2)), false}, {append([]jay.Condition{branches(2)}, all...), false}, {[]jay.Condition{branches(50)}, true}, {[]jay.Condition{branches(51)}, false},
	} {
		e, err := db.Query("Values").Where(test.conditions...).Explain(ctx)
		must(t, err)
		if union := e.Plan[0] == "union of"; union != test.union || e.Returned != 1 {
			t.Errorf("%d ors: %q, %d returned, want a union: %v", len(test.conditions), e.Plan[0], e.Returned, test.union)
		}
	}
}

// Ensure that documents as deep as they may be are matched, shown, sorted and
// grouped.
func TestQuery_Bounds_Depth(t *testing.T) {
	sample.OneGoroutine(t)
	const depth = 10_000
	db := memory(t, &jay.Options{MaxDepth: depth})
	arrays := strings.Repeat("[", depth-2) + `{"B":1}` + strings.Repeat("]", depth-2)
	put(t, db, "v/1", `{"A":`+arrays+`}`, jay.InCollection("Values"))
	put(t, db, "v/2", `{"A":`+strings.Repeat(`{"A":`, depth-2)+`{}`+strings.Repeat("}", depth-2)+`}`, jay.InCollection("Values"))
	rows := map[string]int{
		"from Values where A.B = 1": 1, "from Values where exists(A.A.A)": 1, "from Values where A[][].B = 1": 1, "from Values order by A, A.B desc": 2,
		"from Values group by A.B select A.B as b, count(), max(A)": 2, "from Values select distinct A, A[][][]": 2, "from Values where regex(A.A, 'x')": 0, "from Values include A.B": 2,
	}
	today := sample.Of(t, 8)
	for i, rql := range slices.Sorted(maps.Keys(rows)) {
		if !today.Has(i) {
			continue
		}
		want := rows[rql]
		quick(t, rql, func() {
			q, err := db.RQL(rql, nil)
			must(t, err)
			if rows, err := q.All(ctx); err != nil || len(rows) != want {
				t.Errorf("%s: %d answers, %v, want %d", rql, len(rows), err, want)
			}
		})
	}
}

// Ensure that what one answer includes is bounded in bytes, but for one document.
func TestQuery_Bounds_Includes(t *testing.T) {
	sample.OneGoroutine(t)
	db := memory(t, &jay.Options{MaxQueryBytes: 100_000})
	for i := range 3 {
		put(t, db, fmt.Sprint("c/", i), `{"T":"`+strings.Repeat("x", 60_000*(i+1))+`"}`)
	}
	put(t, db, "v/1", `{"C":["c/2"]}`, jay.InCollection("Values"))
	put(t, db, "w/1", `{"C":["c/0","c/1"]}`, jay.InCollection("Other"))
	q, err := db.RQL("from Values include C", nil)
	must(t, err)
	if rows, err := q.All(ctx); err != nil || len(rows) != 1 || len(rows[0].Included) != 1 {
		t.Errorf("one large document: %v, %v", rows, err)
	}
	q, err = db.RQL("from Other include C", nil)
	must(t, err)
	if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "MaxQueryBytes") {
		t.Errorf("two documents: %v, want ErrQuery", err)
	}

	put(t, db, "x/1", `{"C":`+jaytest.Array(`"c/0"`, 2_000_000)+`}`, jay.InCollection("Same"))
	ids := make([]string, 10_001)
	for i := range ids {
		ids[i] = fmt.Sprintf(`"none/%d"`, i)
	}
	put(t, db, "z/1", `{"C":[`+strings.Join(ids, ",")+`]}`, jay.InCollection("Many"))
	for collection, refused := range map[string]bool{"Same": false, "Many": true} {
		quick(t, "includes of "+collection, func() {
			q, err := db.RQL("from "+collection+" include C", nil)
			must(t, err)
			if _, err := q.All(ctx); refused != (err != nil) || refused && !errors.Is(err, jay.ErrQuery) {
				t.Errorf("%s: %v", collection, err)
			}
		})
	}
}

// Ensure that a panic in a program's code within a query leaves nothing held:
// the database goes on, and closes.
func TestQuery_Bounds_Panics(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "v/1", `{"A":1}`, jay.InCollection("Values"))
	caught := func(name string, fn func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s did not panic", name)
			}
		}()
		fn()
	}
	caught("a loop", func() {
		for range db.Query("Values").Iter(ctx) {
			panic("in the loop")
		}
	})
	caught("a decoder", func() { _, _ = jay.Select[explosive](db.Query("Values"), "A").All(ctx) })
	caught("a value", func() { _, _ = db.Query("Values").Where(jay.Eq("A", explosive{})).All(ctx) })
	caught("a transaction", func() {
		_ = db.View(ctx, func(tx *jay.Tx) error {
			for range tx.Query("Values").OrderBy("A").Iter(ctx) {
				panic("in the loop")
			}
			return nil
		})
	})
	caught("a context", func() { _, _ = db.Query("Values").Where(jay.Eq("A", 1)).All(panicking{ctx}) })
	if n, err := db.Query("Values").Count(ctx); n != 1 || err != nil {
		t.Errorf("afterwards: %d, %v", n, err)
	}
	must(t, db.Close())
}

// explosive panics when it is encoded or decoded.
type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("encoded") }
func (*explosive) UnmarshalJSON([]byte) error  { panic("decoded") }

// panicking is a context that panics when it is looked at.
type panicking struct{ context.Context }

func (panicking) Err() error { panic("looked at") }

// Ensure that a number whose exponent is beyond the bound is refused in
// documents, patches and conditions alike, that those within it are distinguished
// and added up, and that one of them does not end the sums of its collection.
func TestQuery_Bounds_Exponents(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: []string{"n"}}))
	put(t, db, "v/0", `{"n":1}`, jay.InCollection("Values"))
	for number, stored := range map[string]bool{
		"1e999999999999999": true, "1e1000000000000000": false, "0.01e1000000000000001": true, "0.01e1000000000000002": false,
		"-9.99e-1000000000000001": true, "1e-1000000000000001": true, "1e-1000000000000002": false, "1e99999999999999999999999999": false, "-1E+99999999999999999999999998": false,
		"0e99999999999999999999999999": true, "0.00E-99999999999999999999": true, "1e000000000000000000000000000000001": true, "123456e999999999999994": true, "123456e999999999999995": false,
	} {
		_, err := db.Put(ctx, "n/1", json.RawMessage(`{"n":`+number+`}`))
		if stored != (err == nil) || !stored && !errors.Is(err, jay.ErrInvalidDocument) {
			t.Errorf("%s: put: %v", number, err)
		}
		_, err = db.Query("Values").Where(jay.Eq("n", json.Number(number))).All(ctx)
		if stored != (err == nil) || !stored && (!errors.Is(err, jay.ErrQuery) || !errors.Is(err, query.ErrNumber)) {
			t.Errorf("%s: query: %v", number, err)
		}
		_, err = db.RQL("from Values where n < "+strings.ReplaceAll(number, "+", ""), nil)
		if stored != (err == nil) || !stored && !errors.Is(err, query.ErrNumber) {
			t.Errorf("%s: RQL: %v", number, err)
		}
	}
	put(t, db, "v/1", `{"n":1e999999999999999}`, jay.InCollection("Values"))
	put(t, db, "v/2", `{"n":1e999999999999998}`, jay.InCollection("Values"))
	put(t, db, "v/3", `{"n":1e999999999}`, jay.InCollection("Values"))
	for rql, want := range map[string]string{
		"from Values where n >= 1e999999999999999 select id() as i":           `{"i":"v/1"}`,
		"from Values select sum(n), max(n), count()":                          `{"sum(n)":1.1e+999999999999999,"max(n)":1e+999999999999999,"Count":4}`,
		"from Values where n < 1e10 or n = 1e999999999 select sum(n)":         `{"sum(n)":1e+999999999}`,
		"from Values group by n where n > 1 order by n desc select n limit 1": `{"n":1e+999999999999999}`,
	} {
		q, err := db.RQL(rql, nil)
		must(t, err)
		rows, err := q.All(ctx)
		if err != nil || len(rows) != 1 || string(rows[0].JSON) != want {
			t.Errorf("%s: %s, %v, want %s", rql, rows[0].JSON, err, want)
		}
	}
}
