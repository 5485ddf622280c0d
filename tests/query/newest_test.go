package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// manyTickets makes a database with tickets 0000 to 2999 in one collection, at home or
// away, among others, each put again in a scattered order, so that the order of
// changes is another than that of IDs.
func manyTickets(t *testing.T) *jay.DB {
	t.Helper()
	db := memory(t, nil)
	b := new(jay.Batch)
	for _, step := range []int{1, 7} {
		for i := range 3000 {
			n := i * step % 3000
			id := fmt.Sprintf("tickets/%04d", n)
			if n%10 == 0 {
				id = fmt.Sprintf("away%04d", n)
			}
			b.Put(id, json.RawMessage(fmt.Sprintf(`{"n":%d,"m":%d}`, n, n%3)), jay.InCollection("Tickets"))
			b.Put(fmt.Sprintf("others/%04d", n), json.RawMessage(`{}`), jay.InCollection("Others"))
		}
	}
	_, err := db.Apply(ctx, b)
	must(t, err)
	return db
}

// asked runs a query of documents and returns their IDs, and what Explain says of it.
func asked(t *testing.T, q jay.Query[jay.Row]) ([]string, jay.Explanation) {
	t.Helper()
	var ids []string
	for row, err := range q.Iter(ctx) {
		must(t, err)
		ids = append(ids, row.Document.ID())
	}
	e, err := q.Explain(ctx)
	must(t, err)
	return ids, e
}

// Ensure that orders and ranges by ID and by etag read what they return, and not the
// whole collection: newest first, with a collection and without.
func TestQuery_NewestFirst(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := manyTickets(t)
	for _, test := range []struct {
		text, want string
		reads      int64
		plan       string
	}{
		{"from Tickets order by id() desc limit 2", "[tickets/2999 tickets/2998]", 3, "scan Tickets, backwards"},
		{"from Tickets order by id() limit 2", "[away0000 away0010]", 3, "scan Tickets"},
		{"from @all_docs order by id() desc limit 1", "[tickets/2999]", 1, "scan all documents, backwards"},
		{"from Tickets where id() > 'TICKETS/2997'", "[tickets/2998 tickets/2999]", 2, `scan Tickets with IDs above "tickets/2997"`},
		{"from Tickets where id() >= 'tickets/2998' order by id() desc", "[tickets/2999 tickets/2998]", 2, `scan Tickets with IDs above "tickets/2998", backwards`},
		{"from Tickets where id() < 'away0020'", "[away0000 away0010]", 2, `scan Tickets with IDs below "away0020"`},
		{"from Tickets where id() between 'away2990' and 'tickets/0001'", "[away2990 tickets/0001]", 2, `scan Tickets with IDs between "away2990" and "tickets/0001"`},
		{"from Tickets where id() > 'tickets/2997' and startsWith(id(), 'tickets/299') and id() <= 'tickets/2998'", "[tickets/2998]", 1, `scan Tickets with IDs from "tickets/299" with IDs between "tickets/2997" and "tickets/2998"`},
		{"from Tickets where id() > 'tickets/3' order by id() desc", "[]", 0, `scan Tickets with IDs above "tickets/3", backwards`},
		{"from Tickets order by @metadata.@etag desc limit 2", "[tickets/2993 tickets/2986]", 2, "changes of Tickets, newest first"},
		{"from Tickets order by @metadata.@etag limit 2", "[away0000 tickets/0007]", 2, "changes of Tickets"},
		{"from @all_docs order by @metadata.@etag desc limit 2", "[others/2993 tickets/2993]", 2, "changes of all documents, newest first"},
		{"from Tickets where @metadata.@etag > 11997", "[tickets/2993]", 1, "changes with etags from 11998 of Tickets"},
		{"from Tickets where @metadata.@etag between 11990 and 11998", "[tickets/2965 tickets/2972 tickets/2979 tickets/2986]", 0, "changes with etags from 11990 to 11998 of Tickets"},
	} {
		q, err := db.RQL(test.text, nil)
		must(t, err)
		got, e := asked(t, q)
		if strings.HasPrefix(test.plan, "changes with etags from 11990") {
			slices.Sort(got)
			test.reads = int64(len(got))
			test.want = fmt.Sprint(got)
			if len(got) < 3 {
				t.Errorf("%s: got %v", test.text, got)
			}
		}
		if fmt.Sprint(got) != test.want || e.Plan[0] != test.plan || e.Documents > test.reads {
			t.Errorf("%s\ngot %v, %q and %d documents\nwant %s, %q and at most %d documents", test.text, got, e.Plan, e.Documents, test.want, test.plan, test.reads)
		}
		_, err = q.NoScan().All(ctx)
		must(t, err)
	}
}

// Ensure that a collection with few documents is read and sorted, instead of walking
// over the changes of all others.
func TestQuery_NewestFirst_SmallCollection(t *testing.T) {
	db := manyTickets(t)
	put(t, db, "small/1", `{}`, jay.InCollection("Small"))
	put(t, db, "small/2", `{}`, jay.InCollection("Small"))
	put(t, db, "small/1", `{}`, jay.InCollection("Small"))
	q, err := db.RQL("from Small order by @metadata.@etag desc limit 1", nil)
	must(t, err)
	got, e := asked(t, q.NoScan())
	equal(t, fmt.Sprint(got), "[small/1]")
	equal(t, e.Plan[0], "scan Small")
	if e.Documents != 2 || e.Keys > 10 {
		t.Errorf("%d documents and %d keys", e.Documents, e.Keys)
	}
}

// Ensure that an index whose fields are all bound gives the newest first, also without
// exact(), and one with several values.
func TestQuery_NewestFirst_Index(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := manyTickets(t)
	must(t, db.EnsureIndex(ctx, "Tickets", jay.Index{Fields: []string{"m"}}))
	put(t, db, "tickets/9", `{"m":[1,2]}`, jay.InCollection("Tickets"))
	for _, test := range []struct{ text, want string }{
		{"from Tickets where m = 1 order by id() desc limit 2", "[tickets/9 tickets/2998]"},
		{"from Tickets where m = 1 order by id() limit 2", "[away0010 away0040]"},
	} {
		q, err := db.RQL(test.text, nil)
		must(t, err)
		got, e := asked(t, q)
		if fmt.Sprint(got) != test.want || e.Documents > 2 {
			t.Errorf("%s: got %v, %+v", test.text, got, e)
		}
		p, err := q.Limit(1).Page(ctx)
		must(t, err)
		next, _ := asked(t, q.Limit(1).After(p.Next))
		equal(t, fmt.Sprint([]string{p.Items[0].Document.ID(), next[0]}), test.want)
	}
}

// Ensure that in a transaction what it has written stands in its place, that no more is
// read than outside, and that pages join.
func TestQuery_NewestFirst_Transaction(t *testing.T) {
	t.Parallel()
	db := manyTickets(t)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		for _, id := range []string{"tickets/29985", "tickets/5", "away0010"} {
			if _, err := tx.Put(ctx, id, json.RawMessage(`{"new":true}`), jay.InCollection("Tickets")); err != nil {
				return err
			}
		}
		if err := tx.Delete(ctx, "tickets/2998"); err != nil {
			return err
		}
		for _, test := range []struct {
			text, want string
			reads      int64
		}{
			{"from Tickets order by id() desc limit 4", "[tickets/5 tickets/2999 tickets/29985 tickets/2997]", 8},
			{"from Tickets where id() < 'away0020' order by id() desc", "[away0010 away0000]", 5},
			{"from Tickets order by @metadata.@etag desc limit 2", "[tickets/2993 tickets/2986]", 8},
			{"from Tickets order by @metadata.@etag limit 4", "[away0010 tickets/29985 tickets/5 away0000]", 8}, // no etag before the commit
		} {
			q, err := tx.RQL(test.text, nil)
			must(t, err)
			got, e := asked(t, q)
			if fmt.Sprint(got) != test.want || e.Documents > test.reads {
				t.Errorf("%s: got %v, want %v, %+v", test.text, got, test.want, e)
			}
			var joined []string
			for cursor := ""; len(joined) < len(got); {
				p, err := q.Limit(1).After(cursor).Page(ctx)
				must(t, err)
				joined, cursor = append(joined, p.Items[0].Document.ID()), p.Next
			}
			equal(t, fmt.Sprint(joined), test.want)
		}
		return errors.New("enough")
	})
	if err == nil || err.Error() != "enough" {
		t.Fatal(err)
	}
}

// Ensure that a query for a range of IDs has this range in its read set, and no more.
func TestQuery_RangeOfIDs_ReadSet(t *testing.T) {
	db := manyTickets(t)
	check := func(outside string) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			q, err := tx.RQL("from Tickets where id() > 'tickets/1000' and id() <= 'tickets/1005' order by id() desc", nil)
			must(t, err)
			_, err = q.All(ctx)
			must(t, err)
			put(t, db, outside, `{}`, jay.InCollection("Tickets"))
			_, err = tx.Put(ctx, "done", json.RawMessage(`{}`))
			return err
		})
	}
	must(t, check("tickets/2000"))
	must(t, check("tickets/0999"))
	if err := check("tickets/1005"); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

// Ensure that the changes of a copy, which are of another node, come after those of
// the original.
func TestQuery_NewestFirst_Copy(t *testing.T) {
	dir := t.TempDir()
	db, err := jay.Open(dir, nil)
	must(t, err)
	for i := range 4 {
		put(t, db, fmt.Sprint("a/", i), `{}`)
	}
	must(t, db.Close())
	db, err = jay.Open(dir, &jay.Options{CopyTag: "B"})
	must(t, err)
	defer db.Close()
	put(t, db, "a/1", `{}`)
	put(t, db, "a/9", `{}`)
	for text, want := range map[string]string{
		"from @all_docs order by @metadata.@etag desc":                           "[a/9 a/1 a/3 a/2 a/0]",
		"from @all_docs order by @metadata.@etag":                                "[a/0 a/2 a/3 a/1 a/9]",
		"from @all_docs where @metadata.@etag > 3 order by @metadata.@etag desc": "[a/9 a/1 a/3]",
	} {
		q, err := db.RQL(text, nil)
		must(t, err)
		got, _ := asked(t, q)
		equal(t, fmt.Sprint(got), want)
		var joined []string
		for cursor := ""; len(joined) < len(got); {
			p, err := q.Limit(2).After(cursor).Page(ctx)
			must(t, err)
			for _, row := range p.Items {
				joined = append(joined, row.Document.ID())
			}
			cursor = p.Next
		}
		equal(t, fmt.Sprint(joined), want)
	}
}

// Ensure that custom metadata is asked for by its path, in RQL as RavenDB writes it and
// in the builder, in conditions, orders, columns and groups.
func TestQuery_CustomMetadata(t *testing.T) {
	db := memory(t, nil)
	for i, kind := range []string{`"b"`, `"a"`, `["a","c"]`} {
		put(t, db, fmt.Sprint("x/", i), `{"@metadata":{"@collection":"Xs","Raven-Node-Type":`+kind+`,"@nested-object-types":{"q":1}}}`)
	}
	put(t, db, "x/3", `{"@metadata":{"@collection":"Xs"}}`)
	for text, want := range map[string]string{
		"from Xs where @metadata.Raven-Node-Type = 'A' order by id() select id()":                                    `[{"id()":"x/1"} {"id()":"x/2"}]`,
		"from Xs as x order by x.@metadata.Raven-Node-Type desc, id() select id() limit 1":                           `[{"id()":"x/2"}]`,
		"from Xs order by id() select @metadata.@nested-object-types as t, @metadata.'Raven-Node-Type' as n limit 1": `[{"t":{"q":1},"n":"b"}]`,
		"from Xs group by @metadata.Raven-Node-Type order by count() desc select key() as k, count() as n limit 1":   `[{"k":"a","n":2}]`,
		"from Xs where not exists(@metadata.Raven-Node-Type) select id()":                                            `[{"id()":"x/3"}]`,
		"from Xs where @metadata.@etag = 2 select id(), @metadata.@etag as e":                                        `[{"id()":"x/1","e":2}]`,
	} {
		q, err := db.RQL(text, nil)
		must(t, err)
		rows, err := q.All(ctx)
		must(t, err)
		var got []string
		for _, row := range rows {
			got = append(got, string(row.JSON))
		}
		equal(t, fmt.Sprint(got), want)
		again, err := db.RQL(q.String(), nil)
		must(t, err)
		equal(t, again.String(), q.String())
	}
	n, err := db.Query("Xs").Where(jay.Eq("@metadata.Raven-Node-Type", "a")).Count(ctx)
	must(t, err)
	equal(t, n, 2)
}
