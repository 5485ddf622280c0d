package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that update { } changes what the query finds, that it counts what is already so,
// and that the query of it counts beforehand.
func TestUpdateRQL(t *testing.T) {
	defer checks.SetChangeBatch(3)()
	db := memory(t, nil)
	for n := range 10 {
		put(t, db, fmt.Sprint("orders/", n), fmt.Sprintf(`{"Total":%d,"N":1.10,"Tags":["a"],"Old":{"x":1},"City":"Ulm","Address":{}}`, n), jay.InCollection("Orders"))
	}
	text := "from Orders as o where o.Total < $least update { this.Small = true; o.N += 0.1; this.Tags.push('x', $tag); this.Address.City = this.City; delete this.City; this.Was = this.Old; delete this.Old; this['a b'] = {c: [null, $list]} }"
	q, edits, err := db.UpdateRQL(text, map[string]any{"least": 7, "tag": "y", "list": []int{1, 2}})
	must(t, err)
	n, err := q.Count(ctx)
	must(t, err)
	equal(t, n, 7)
	var seen []int64
	done, err := q.Progress(func(c jay.Changed) { seen = append(seen, c.Documents) }).Patch(ctx, edits...)
	must(t, err)
	equal(t, done, jay.Changed{Documents: 7})
	equal(t, fmt.Sprint(seen), "[3 6 7]")
	doc, err := db.Get(ctx, "orders/3")
	must(t, err)
	equal(t, string(doc.Body()), `{"Total":3,"N":1.20,"Tags":["a","x","y"],"Address":{"City":"Ulm"},"Small":true,"Was":{"x":1},"a b":{"c":[null,[1,2]]}}`)
	doc, err = db.Get(ctx, "orders/7")
	must(t, err)
	equal(t, string(doc.Body()), `{"Total":7,"N":1.10,"Tags":["a"],"Old":{"x":1},"City":"Ulm","Address":{}}`)

	q, edits, err = db.UpdateRQL("from Orders update { this.Small = true }", nil)
	must(t, err)
	done, err = q.Patch(ctx, edits...)
	must(t, err)
	equal(t, done, jay.Changed{Documents: 3, Unchanged: 7})
}

// Ensure that an update in a transaction sees its writes, and is undone with it.
func TestUpdateRQL_Tx(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"N":1}`, jay.InCollection("Notes"))
	failed := errors.New("no")
	for _, want := range []error{failed, nil} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Put(ctx, "b", []byte(`{"N":2}`), jay.InCollection("Notes"))
			must(t, err)
			q, edits, err := tx.UpdateRQL("from Notes update { this.N++ }", nil)
			must(t, err)
			done, err := q.Patch(ctx, edits...)
			must(t, err)
			equal(t, done.Documents, 2)
			return want
		})
		if err != want {
			t.Errorf("got %v", err)
		}
	}
	for id, want := range map[string]string{"a": `{"N":2}`, "b": `{"N":3}`} {
		doc, err := db.Get(ctx, id)
		must(t, err)
		equal(t, string(doc.Body()), want)
	}
}

// Ensure that what a statement needs must be there, as in JavaScript, and that nothing of
// a document is changed if one of its statements cannot be run.
func TestUpdateRQL_Strict(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for _, test := range []struct{ body, statement, want string }{ // want is the body, or "" for an error
		{`{}`, "this.A = 1", `{"A":1}`},
		{`{"A":null}`, "this.A = 1", `{"A":1}`},
		{`{}`, "this.A.B = 1", ""}, {`{"A":null}`, "this.A.B = 1", ""}, {`{"A":[]}`, "this.A.B = 1", ""}, {`{"A":"x"}`, "this.A.B = 1", ""},
		{`{"A":[1,2]}`, "this.A[1] = 3", `{"A":[1,3]}`}, {`{"A":[1,2]}`, "this.A[2] = 3", ""}, {`{"A":{"1":2}}`, "this.A[1] = 3", ""},
		{`{"A":[1,2]}`, "this.A['1'] = 3", ""}, {`{}`, "this.A[0] = 3", ""},
		{`{"N":1}`, "this.N += 1", `{"N":2}`}, {`{"N":null}`, "this.N += 1", `{"N":1}`}, {`{}`, "this.N += 1", ""}, {`{"N":"1"}`, "this.N += 1", ""},
		{`{"N":9007199254740993}`, "this.N++", `{"N":9007199254740994}`}, {`{"N":0.1}`, "this.N += 0.2", `{"N":0.3}`}, {`{"N":9223372036854775807}`, "this.N++", ""},
		{`{"N":[1]}`, "this.N[0] += 1", `{"N":[2]}`}, {`{"N":[1]}`, "this.N[1] += 1", ""},
		{`{"A":[]}`, "this.A.push(1)", `{"A":[1]}`}, {`{}`, "this.A.push(1)", ""}, {`{"A":null}`, "this.A.push(1)", ""}, {`{"A":{}}`, "this.A.push(1)", ""}, {`{}`, "this.A.push()", ""},
		{`{"A":[1,2]}`, "this.A.pop()", `{"A":[1]}`}, {`{"A":[1,2]}`, "this.A.shift()", `{"A":[2]}`}, {`{"A":[]}`, "this.A.pop()", `{"A":[]}`}, {`{}`, "this.A.pop()", ""}, {`{"A":null}`, "this.A.shift()", ""},
		{`{"A":1,"B":2}`, "delete this.A", `{"B":2}`}, {`{"B":2}`, "delete this.A", `{"B":2}`}, {`{}`, "delete this.A.B", ""}, {`{"A":null}`, "delete this.A.B", ""},
		{`{"A":{"B":1}}`, "delete this.A.B", `{"A":{}}`}, {`{"A":"x"}`, "delete this.A.B", ""},
		{`{"B":[1.0]}`, "this.A = this.B", `{"B":[1.0],"A":[1.0]}`}, {`{}`, "this.A = this.B", ""}, {`{"B":1}`, "this.A.C = this.B", ""}, {`{"B":1,"A":[]}`, "this.A.C = this.B", ""},
		{`{"B":{"a/b~":1}}`, "this['c/~d'] = this.B['a/b~']", `{"B":{"a/b~":1},"c/~d":1}`}, {`{"B":[[1]]}`, "this.A = this.B[0][0]", `{"B":[[1]],"A":1}`},
		{`{"B":[1]}`, "this.A = this.B.length", ""}, {`{"B":"x"}`, "this.A = this.B.length", ""},
		{`{"N":1}`, "this.M = 1; this.N = 2; this.X.Y = 3", ""},
		{`{"N":1}`, "this.X = {}; this.X.Y = 3; this.X.Z = this.X.Y", `{"N":1,"X":{"Y":3,"Z":3}}`},
	} {
		db := memory(t, nil)
		put(t, db, "a", test.body, jay.InCollection("Notes"))
		q, edits, err := db.UpdateRQL("from Notes update {"+test.statement+"}", nil)
		must(t, err)
		_, err = q.Patch(ctx, edits...)
		doc, getErr := db.Get(ctx, "a")
		must(t, getErr)
		want := test.want
		if want == "" {
			want = test.body
			if !errors.Is(err, jay.ErrInvalidPatch) || !strings.Contains(err.Error(), `"a"`) {
				t.Errorf("%s of %s: got %v, want ErrInvalidPatch that names the document", test.statement, test.body, err)
			}
		} else if err != nil {
			t.Errorf("%s of %s: %v", test.statement, test.body, err)
		}
		if got := string(doc.Body()); got != want {
			t.Errorf("%s of %s: got %s, want %s", test.statement, test.body, got, want)
		}
		closeDB(t, db)
	}
}

// Ensure that RQL refuses a text that changes documents, and UpdateRQL one that is none
// or has edits which no document could take, and that nothing is changed.
func TestUpdateRQL_Refused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"N":1}`, jay.InCollection("Notes"))
	if _, err := db.RQL("from Notes update { this.N = 2 }", nil); !errors.Is(err, jay.ErrUpdateRQL) || !errors.Is(err, jay.ErrSyntax) {
		t.Errorf("got %v, want ErrUpdateRQL", err)
	}
	for _, text := range []string{"from Notes", "from Notes update {}", "from Notes update { this.N = x }", "from Notes where N = $p update { this.N = 2 }"} {
		q, edits, err := db.UpdateRQL(text, nil)
		if !errors.Is(err, jay.ErrSyntax) || edits != nil {
			t.Errorf("%s: got %v, %v, want ErrSyntax", text, edits, err)
		}
		if _, err := q.Patch(ctx, jay.Set("N", 2)); !errors.Is(err, jay.ErrSyntax) {
			t.Errorf("%s: its query gives %v", text, err)
		}
	}
	if _, _, err := db.UpdateRQL("from Notes update { this.N = $p }", map[string]any{"p": []byte(nil)}); err != nil {
		t.Error(err) // null
	}
	if _, _, err := db.UpdateRQL("from Notes update { this.N += 1e400 }", nil); !errors.Is(err, jay.ErrInvalidPatch) && err != nil {
		t.Error(err)
	}
	q, edits, err := db.UpdateRQL("from @all_docs update { this.N = 2 }", nil)
	must(t, err)
	if _, err := q.Patch(ctx, edits...); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("of all collections: got %v, want ErrUsage", err)
	}
	doc, err := db.Get(ctx, "a")
	must(t, err)
	equal(t, string(doc.Body()), `{"N":1}`)
}

// Ensure that copies which double a value again and again end at the bounds of patches.
func TestUpdateRQL_Bomb(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	put(t, db, "a", `{}`, jay.InCollection("Notes"))
	var b strings.Builder
	b.WriteString("this.V0 = 'x';")
	for n := 1; n < 60; n++ {
		fmt.Fprintf(&b, "this.V%d = {}; this.V%[1]d.a = this.V%d; this.V%[1]d.b = this.V%[2]d;", n, n-1)
	}
	q, edits, err := db.UpdateRQL("from Notes update {"+b.String()+"}", nil)
	must(t, err)
	if _, err := q.Patch(ctx, edits...); !errors.Is(err, jay.ErrInvalidPatch) {
		t.Errorf("got %v, want ErrInvalidPatch", err)
	}
}

// Ensure that a transaction counts its own writes, and that an Update that has counted
// conflicts with the writes of others.
func TestTx_Collections(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/1", `{}`, jay.InCollection("Users"))
	put(t, db, "users/2", `{}`, jay.InCollection("Users"))
	put(t, db, "loose", `{}`)
	list := func(tx *jay.Tx) string {
		all, err := tx.Collections(ctx)
		must(t, err)
		return fmt.Sprint(all)
	}
	must(t, db.View(ctx, func(tx *jay.Tx) error {
		put(t, db, "users/3", `{}`, jay.InCollection("Users"))
		equal(t, list(tx), "[{@empty 1} {Users 2}]")
		return nil
	}))
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		must(t, tx.Delete(ctx, "loose"))
		must(t, tx.Delete(ctx, "nobody"))
		for _, id := range []string{"users/1", "users/9"} {
			_, err := tx.Put(ctx, id, []byte(`{"a":1}`), jay.InCollection("Users"))
			must(t, err)
		}
		_, err := tx.Put(ctx, "orders/1", []byte(`{}`), jay.InCollection("Orders"))
		must(t, err)
		equal(t, list(tx), "[{Orders 1} {Users 4}]")
		must(t, tx.Delete(ctx, "orders/1"))
		equal(t, list(tx), "[{Users 4}]")
		return nil
	}))
	equal(t, collectionsOf(t, db), "Users 4")
	err := db.Update(ctx, func(tx *jay.Tx) error {
		list(tx)
		put(t, db, "more", `{}`)
		_, err := tx.Put(ctx, "mark", []byte(`{}`))
		return err
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	must(t, checks.Counts(db))
}
