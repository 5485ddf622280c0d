package groups_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/groups"
	private "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/jaytest"
)

var ctx = context.Background()

// history is a database under a random history.
type history struct {
	*jaytest.DB
	t      *testing.T
	random *rand.Rand
	in     string // the collection
	done   map[string]int
}

// The indexes of a history, and the queries that they answer.
var (
	byCustomer = jay.Index{Name: "ByCustomer", Kind: groups.Name, Fields: []string{"Customer", "year(At)"}, Options: map[string]string{"sums": "Total, Price * Quantity"}}
	byTag      = jay.Index{Name: "ByTag", Kind: groups.Name, Fields: []string{"Tags"}, Options: map[string]string{"sums": "Total"}}
)

// body returns a document with tags.
func body(r *rand.Rand) json.RawMessage {
	text := order(r)
	var tags []string
	for range r.IntN(4) {
		tags = append(tags, oneOf(r, `"a"`, `"b"`, `"a"`, `null`, `7`, `7.0`))
	}
	separator := ","
	if text == "{}" {
		separator = ""
	}
	return json.RawMessage(text[:len(text)-1] + separator + `"Tags":[` + strings.Join(tags, ",") + "]}")
}

// step does something, and returns what.
func (h *history) step() (what string, err error) {
	r := h.random
	id := func() string { return fmt.Sprint("orders/", r.IntN(60)) }
	put := []jay.WriteOption{jay.InCollection(h.in)}
	switch n := r.IntN(100); {
	case n < 30:
		_, err = h.Put(ctx, id(), body(r), put...)
		return "put", err
	case n < 40:
		return "delete", h.Delete(ctx, id())
	case n < 50:
		if _, err = h.Patch(ctx, id(), jay.Set("Total", json.RawMessage(number(r))), jay.Set("Customer", json.RawMessage(customer(r)))); errors.Is(err, jay.ErrNotFound) {
			err = nil
		}
		return "patch", err
	case n < 58:
		var b jay.Batch
		for _, i := range r.Perm(60)[:4] {
			if r.IntN(3) == 0 {
				b.Delete(fmt.Sprint("orders/", i))
			} else {
				b.Put(fmt.Sprint("orders/", i), body(r), put...)
			}
		}
		_, err = h.Apply(ctx, &b)
		return "batch", err
	case n < 66:
		err = h.Update(ctx, func(tx *jay.Tx) error {
			for range 3 {
				if _, err := tx.Put(ctx, id(), body(r), put...); err != nil {
					return err
				}
			}
			if err := tx.Delete(ctx, id()); err != nil {
				return err
			}
			h.compare(tx, "a transaction's own view")
			return nil
		})
		if errors.Is(err, jay.ErrConflict) { // with the worker that deletes what has expired
			return "conflict", nil
		}
		return "transaction", err
	case n < 72:
		_, err = h.Put(ctx, id(), body(r), jay.InCollection(h.in), jay.ExpiresAt(h.Clock.Now().Add(time.Duration(r.IntN(100))*time.Second)))
		return "put with an expiry", err
	case n < 76:
		h.Clock.Advance(30 * time.Second)
		return "time", nil
	case n < 78:
		_, err = h.Sweep(ctx)
		return "sweep", err
	case n < 82:
		_, err = h.Put(ctx, fmt.Sprint("others/", r.IntN(60)), body(r), jay.InCollection("Others"))
		return "another collection", err
	case n < 85:
		w, err := h.BulkInsert(nil)
		if err != nil {
			return "bulk", err
		}
		for _, i := range r.Perm(60)[:5] {
			if _, err := w.Put(ctx, fmt.Sprint("orders/", i), body(r), put...); err != nil {
				return "bulk", err
			}
		}
		return "bulk", w.Close()
	case n < 87:
		to := map[string]string{"Orders": "Sales", "Sales": "Orders"}[h.in]
		_, err = h.RenameCollection(ctx, h.in, to)
		h.in = to
		return "rename", err
	case n < 89:
		ix := byCustomer
		if r.IntN(2) == 0 {
			ix.Options = map[string]string{"sums": "Price * Quantity, Quantity, Total"}
		}
		err = h.EnsureIndex(ctx, h.in, ix, jay.ReplaceIndex())
		checks.WaitIndexTasks(h.DB.DB)
		return "replace", err
	case n < 90:
		if err = h.DropIndex(ctx, h.in, "ByTag"); err == nil {
			err = h.EnsureIndex(ctx, h.in, byTag)
		}
		return "drop and build", err
	case n < 93:
		h.CutPower(r.IntN(101))
		checks.WaitIndexTasks(h.DB.DB)
		return "power cut", nil
	case n < 94:
		h.Restart()
		return "restart", nil
	case n < 95:
		return "compact", h.Compact(ctx)
	case n < 96:
		return "restore", h.restored()
	}
	h.compare(h.DB, what)
	return "compare", nil
}

// restored compares what a restored backup says with what the database says.
func (h *history) restored() error {
	_, backup := private.BackUp(h.t, h.DB.DB)
	dir := filepath.Join(h.t.TempDir(), "restored")
	if _, err := jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(backup)); err != nil {
		return err
	}
	db := private.Open(h.t, dir, &jay.Options{ExactExpiry: true, Now: h.Clock.Now})
	defer private.Close(h.t, db)
	h.compare(db, "a restored backup")
	return nil
}

// querier is a database or a transaction.
type querier interface {
	RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
}

// rows returns what a query says.
func (h *history) rows(from querier, rql string) (rows []json.RawMessage) {
	h.t.Helper()
	q, err := from.RQL(rql, nil)
	private.Must(h.t, err)
	for row, err := range q.Iter(ctx) {
		private.Must(h.t, err)
		if row.Document != nil {
			rows = append(rows, row.Document.Body())
		} else {
			rows = append(rows, slices.Clone(row.JSON))
		}
	}
	return rows
}

// compare compares kept groups with what the documents add up to.
func (h *history) compare(from querier, when string) {
	h.t.Helper()
	var docs []map[string]any
	for _, text := range h.rows(from, "from "+h.in+" order by id()") {
		docs = append(docs, decoded(h.t, text))
	}
	for _, q := range []struct {
		name, by, product string
		groups            func(doc map[string]any) []string
	}{
		{"ByCustomer", "Customer, year(At) as Year", "sum(Price * Quantity) as P, ", func(doc map[string]any) []string { return cross(customers(doc), years(doc)) }},
		{"ByTag", "Tags", "", func(doc map[string]any) []string { return values(doc["Tags"]) }},
	} {
		rql := fmt.Sprintf("from %s group by %s select %s, %scount() as N, sum(Total) as T, avg(Total) as A", h.in, strings.TrimSuffix(q.by, " as Year"), q.by, q.product)
		query, err := from.RQL(rql, nil)
		private.Must(h.t, err)
		x, err := query.Explain(ctx)
		private.Must(h.t, err)
		if !strings.Contains(x.Plan[0], q.name) {
			h.t.Fatalf("%s: %s is answered by %v", when, rql, x.Plan)
		}
		h.done["compared"]++
		want := naive(docs, q.groups, q.product != "")
		got := make(map[string]string)
		for _, text := range h.rows(from, rql) {
			row := decoded(h.t, text)
			key := values(row["Tags"])[0]
			if q.product != "" {
				key = cross(values(row["Customer"])[:1], values(row["Year"])[:1])[0]
			}
			if _, twice := got[key]; twice {
				h.t.Fatalf("%s: %s: group %s comes twice", when, rql, key)
			}
			got[key] = shown(row, q.product != "")
		}
		if !maps.Equal(got, want) {
			for key := range want {
				if got[key] != want[key] {
					h.t.Errorf("group %s: got %s, want %s", key, got[key], want[key])
				}
			}
			h.t.Fatalf("%s: %s: got %d groups, want %d", when, rql, len(got), len(want))
		}
	}
}

// decoded decodes a document with the digits of its numbers.
func decoded(t *testing.T, text []byte) (doc map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	private.Must(t, d.Decode(&doc))
	return doc
}

// values returns what a member reaches: a text for each value, null for none.
func values(v any) []string {
	list, is := v.([]any)
	if !is {
		list = []any{v}
	}
	if len(list) == 0 {
		return []string{"null"}
	}
	var out []string
	for _, v := range list {
		switch v := v.(type) {
		case json.Number:
			out = append(out, rat(v).RatString())
		case nil:
			out = append(out, "null")
		default:
			text, _ := json.Marshal(v)
			out = append(out, string(text))
		}
	}
	return out
}

func customers(doc map[string]any) []string { return values(doc["Customer"]) }

func years(doc map[string]any) []string {
	if at, is := doc["At"].(string); is {
		return []string{fmt.Sprintf("%q", at[:4])}
	}
	return []string{"null"}
}

func cross(a, b []string) (out []string) {
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+" "+y)
		}
	}
	return out
}

func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic(fmt.Sprintf("%q is no number", n))
	}
	return r
}

// numbers returns the numbers that a member reaches.
func numbers(v any) (out []*big.Rat) {
	list, is := v.([]any)
	if !is {
		list = []any{v}
	}
	for _, v := range list {
		if n, is := v.(json.Number); is {
			out = append(out, rat(n))
		}
	}
	return out
}

// one returns the number of a member that reaches one value, a number.
func one(v any) *big.Rat {
	if list, is := v.([]any); is && len(list) != 1 {
		return nil
	}
	if found := numbers(v); len(found) == 1 {
		return found[0]
	}
	return nil
}

// naive adds up documents.
func naive(docs []map[string]any, groupsOf func(doc map[string]any) []string, products bool) map[string]string {
	type sums struct {
		documents, count int64
		total, product   big.Rat
	}
	all := make(map[string]*sums)
	for _, doc := range docs {
		seen := make(map[string]bool)
		for _, key := range groupsOf(doc) {
			if seen[key] {
				continue
			}
			seen[key] = true
			s := all[key]
			if s == nil {
				s = new(sums)
				all[key] = s
			}
			s.documents++
			for _, n := range numbers(doc["Total"]) {
				s.count++
				s.total.Add(&s.total, n)
			}
			if price, quantity := one(doc["Price"]), one(doc["Quantity"]); price != nil && quantity != nil {
				s.product.Add(&s.product, new(big.Rat).Mul(price, quantity))
			}
		}
	}
	out := make(map[string]string)
	for key, s := range all {
		text := fmt.Sprintf("N=%d T=%s A=%s", s.documents, s.total.RatString(), mean(&s.total, s.count))
		if products {
			text += " P=" + s.product.RatString()
		}
		out[key] = text
	}
	return out
}

// mean returns the mean to 17 digits, half to even.
func mean(sum *big.Rat, count int64) string {
	if count == 0 {
		return "null"
	}
	exact := new(big.Rat).Quo(sum, new(big.Rat).SetInt64(count))
	if exact.Sign() == 0 {
		return "0"
	}
	ten, scale := big.NewRat(10, 1), 0
	scaled := new(big.Rat).Abs(exact)
	low, high := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(16), nil)), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(17), nil))
	for ; scaled.Cmp(low) < 0; scale-- {
		scaled.Mul(scaled, ten)
	}
	for ; scaled.Cmp(high) >= 0; scale++ {
		scaled.Quo(scaled, ten)
	}
	digits, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	switch half := new(big.Int).Lsh(rest, 1).Cmp(scaled.Denom()); {
	case half > 0, half == 0 && digits.Bit(0) == 1:
		digits.Add(digits, big.NewInt(1))
	}
	return rat(json.Number(fmt.Sprintf("%se%d", new(big.Int).Mul(digits, big.NewInt(int64(exact.Sign()))), scale))).RatString()
}

// shown is a row as naive writes it.
func shown(row map[string]any, products bool) string {
	number := func(name string) string {
		if n, is := row[name].(json.Number); is {
			return rat(n).RatString()
		}
		return "null"
	}
	text := fmt.Sprintf("N=%s T=%s A=%s", number("N"), number("T"), number("A"))
	if products {
		text += " P=" + number("P")
	}
	return text
}

// Ensure that kept sums are what the documents add up to, to the last digit, in histories of all that changes documents and
// indexes: in the newest state, in transactions, in restored backups, and wherever the power is cut.
func TestGroups_History(t *testing.T) {
	sample.OneGoroutine(t)
	const steps = 800
	histories := 4
	if text := os.Getenv("JAY_GROUP_HISTORIES"); text != "" { // make kinds
		var err error
		if histories, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	today := sample.Of(t, histories)
	done := make(map[string]int)
	for n := range uint64(histories) {
		if !today.Has(int(n)) {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			seed := n + today.Seed()
			h := &history{DB: jaytest.Open(t, &jay.Options{ExactExpiry: true}), t: t, random: rand.New(rand.NewPCG(seed, 142)), in: "Orders", done: done}
			for _, ix := range []jay.Index{byCustomer, byTag} {
				private.Must(t, h.EnsureIndex(ctx, h.in, ix))
			}
			for range min(steps, today.Rounds(steps*4)) {
				what, err := h.step()
				if err != nil {
					t.Fatalf("seed %d: %s: %v", seed, what, err)
				}
				done[what]++
			}
			h.compare(h.DB, "the end")
			private.Verify(t, h.DB.DB)
			private.Must(t, checks.Indexes(h.DB.DB))
		})
	}
	t.Log(done)
	if len(done) == 0 {
		return // -run has left out all of them
	}
	if done["compared"] == 0 || done["power cut"] == 0 {
		t.Errorf("done: %v", done)
	}
}
