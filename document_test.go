package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// withCache are the options of tests that are about the cache of documents.
var withCache = &jay.Options{DocumentCacheBytes: 16 << 20}

// Ensure that a Get of a missing document says which, even if the caller reuses the memory
// of the ID, and is ErrNotFound.
func TestDB_Get_Missing(t *testing.T) {
	db := memory(t, nil)
	users, err := jay.CollectionOf[struct {
		ID   string
		Name string
	}](db, jay.Named("Users"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the cache of documents is asked in different ways
		_, err := db.Get(ctx, "Users/Ann")
		_, typedErr := users.Get(ctx, "Users/Ann")
		for _, err := range []error{err, typedErr} {
			if !errors.Is(err, jay.ErrNotFound) || err.Error() != `get "Users/Ann": jay: document not found` {
				t.Errorf("got %v", err)
			}
		}
	}
}

// Ensure that AppendJSON keeps what is in its argument and appends what MarshalJSON returns, in the room that is there.
func TestDocument_AppendJSON(t *testing.T) {
	db := memory(t, nil)
	for i, body := range []string{`{}`, `{"Name":"Ann","@metadata":{"@collection":"Users","k":[1]}}`, `{"Name":"` + strings.Repeat("x", 5000) + `"}`} {
		id := fmt.Sprint("users/", i)
		_, err := db.Put(ctx, id, []byte(body))
		must(t, err)
		doc, err := db.Get(ctx, id)
		must(t, err)
		want, err := doc.MarshalJSON()
		must(t, err)
		room := make([]byte, 2, 20_000)
		copy(room, "[ ")
		got := doc.AppendJSON(room)
		equal(t, string(got), "[ "+string(want))
		if &got[0] != &room[0] {
			t.Errorf("%s: the room is not used", id)
		}
		equal(t, string(doc.AppendJSON(nil)), string(want))
	}
}

// Ensure that documents share no memory: not with one another, nor with what the
// database reads them from, nor with the room behind their bodies. A caller that
// breaks the rule and changes a body harms no other caller.
func TestDocument_OwnMemory(t *testing.T) {
	db := memory(t, &jay.Options{DocumentCacheBytes: -1})
	var ids []string
	for size := 10; size < 5000; size += 97 {
		id := fmt.Sprintf("users/%04d", size)
		if size%2 == 0 {
			id = fmt.Sprintf("Users/%04d-A", size)
		}
		ids = append(ids, id)
		put(t, db, id, bodyFor(id, size), jay.InCollection("Users"))
	}

	spoil := func(doc *jay.Document) {
		_ = append(doc.Body(), strings.Repeat("!", 200)...)
		clear(doc.Body())
	}
	intact := func(how, id string, doc *jay.Document) {
		t.Helper()
		var v struct{ ID string }
		if doc.ID() != id || doc.Collection() != "Users" || json.Unmarshal(doc.Body(), &v) != nil || v.ID != id {
			t.Errorf("%s: %s: got %q in %q, %.60q", how, id, doc.ID(), doc.Collection(), doc.Body())
		}
	}
	for _, collection := range []string{"", "Users"} {
		var walked []*jay.Document
		for doc, err := range db.Documents(ctx, jay.Scan{Collection: collection, Prefix: "users/"}) {
			if err != nil {
				t.Fatal(err)
			}
			walked = append(walked, doc)
		}
		if len(walked) != len(ids) {
			t.Fatalf("got %d documents, want %d", len(walked), len(ids))
		}
		for i := 0; i < len(walked); i += 2 {
			spoil(walked[i])
		}
		for i, id := range ids {
			if i%2 == 1 {
				intact("walk", id, walked[i])
			} else if walked[i].ID() != id || walked[i].Collection() != "Users" || walked[i].ChangeVector() == "" {
				t.Errorf("the head of %s went with its body: %+v", id, walked[i].Metadata())
			}
		}
	}
	for _, id := range ids {
		doc, err := db.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		intact("get", id, doc)
		spoil(doc)
		again, err := db.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		intact("get after a caller changed another copy", id, again)
	}
}

// bodyFor returns a body that names its ID, of about size bytes.
func bodyFor(id string, size int) string {
	return fmt.Sprintf(`{"ID":%q,"Note":"%s"}`, id, bytes.Repeat([]byte{'x'}, size))
}

// Ensure that a document that is kept in memory is read without an allocation.
func TestDB_Get_Cached(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	db := memory(t, withCache)
	put(t, db, "Users/Ann", `{"Name":"Ann"}`)
	get := func() {
		if _, err := db.Get(ctx, "Users/Ann"); err != nil {
			t.Fatal(err)
		}
	}
	get()
	get()
	if n := jaytest.Allocs(100, 0, get); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

// scribble changes the number 1 in a body to 7, in the body's own memory.
func scribble(t testing.TB, body []byte) {
	t.Helper()
	i := bytes.IndexByte(body, '1')
	if i < 0 {
		t.Fatalf("no 1 in %s", body)
	}
	body[i] = '7'
}

// cached returns a document that the cache holds, too.
func cached(t testing.TB, db *jay.DB, id string) *jay.Document {
	t.Helper()
	var last *jay.Document
	for range 5 {
		doc, err := db.Get(ctx, id)
		must(t, err)
		if doc == last {
			return doc
		}
		last = doc
	}
	t.Fatalf("%s is not cached", id)
	return nil
}

// Ensure that a reader who writes into the body of a cached document, though it
// must not, changes no index entry, whatever is written next.
func TestDocument_Scribbled_Indexes(t *testing.T) {
	for name, write := range map[string]func(db *jay.DB) error{
		"put": func(db *jay.DB) error {
			_, err := db.Put(ctx, "things/1", []byte(`{"a":2}`), jay.InCollection("Things"))
			return err
		},
		"replace": func(db *jay.DB) error {
			_, err := db.Replace(ctx, "things/1", []byte(`{"a":7}`), jay.InCollection("Things"))
			return err
		},
		"delete": func(db *jay.DB) error { return db.Delete(ctx, "things/1") },
		"patch": func(db *jay.DB) error {
			_, err := db.Patch(ctx, "things/1", jay.Set("a", 3))
			return err
		},
		"transaction": func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "things/1") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := memory(t, withCache)
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"a"}}))
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "u", Fields: []string{"a"}, Unique: true}))
			put(t, db, "things/1", `{"a":1}`, jay.InCollection("Things"))
			scribble(t, cached(t, db, "things/1").Body())
			must(t, write(db))
			if err := checks.Indexes(db); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ensure that a patch does not store what a reader has written into a body,
// though it must not.
func TestDocument_Scribbled_Patch(t *testing.T) {
	db := memory(t, withCache)
	put(t, db, "things/1", `{"a":1}`, jay.InCollection("Things"))
	scribble(t, cached(t, db, "things/1").Body())
	_, err := db.Patch(ctx, "things/1", jay.Set("b", 2))
	must(t, err)
	equal(t, stored(t, db, "things/1"), `{"a":1,"b":2}`)
}

// Ensure that a session that writes a refreshed document again, for its
// metadata, does not store what a reader has written into the body.
func TestSession_Refresh_Scribbled(t *testing.T) {
	db := memory(t, withCache)
	put(t, db, "customers/1", `{"Name":"x","foreign":1}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	ann, err := jay.Load[customer](ctx, s, "customers/1")
	must(t, err)
	doc := cached(t, db, "customers/1")
	must(t, s.Refresh(ctx, ann))
	scribble(t, doc.Body())
	must(t, s.SetMetadata(ann, []byte(`{"k":1}`)))
	must(t, s.SaveChanges(ctx))
	equal(t, stored(t, db, "customers/1"), `{"Name":"x","foreign":1}`)
}

// stored returns the body of a document as it lies on disk.
func stored(t testing.TB, db *jay.DB, id string) string {
	t.Helper()
	var body string
	must(t, db.Read(ctx, id, func(doc *jay.RawDocument) error {
		body = string(doc.Body())
		return nil
	}))
	return body
}

// Ensure that a transaction commits what it was given, though its function has
// written into documents that the transaction gave back.
func TestTx_Scribbled(t *testing.T) {
	for name, read := range map[string]func(ctx context.Context, tx *jay.Tx) ([]byte, error){
		"Get": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			doc, err := tx.Get(ctx, "things/1")
			return doc.Body(), err
		},
		"GetMany": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			docs, err := tx.GetMany(ctx, "things/1")
			return docs[0].Body(), err
		},
		"Documents": func(ctx context.Context, tx *jay.Tx) (body []byte, err error) {
			for doc, err := range tx.Documents(ctx, jay.Scan{}) {
				return doc.Body(), err
			}
			return nil, nil
		},
		"Query": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			docs, err := tx.Query("Things").All(ctx)
			return docs[0].Body(), err
		},
		"Patch": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			result, err := tx.Patch(ctx, "things/1", jay.Set("a", 1), jay.Unset("b"))
			return result.Body, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := memory(t, withCache)
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"a"}}))
			must(t, db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Put(ctx, "things/1", []byte(`{"a":1,"b":2}`), jay.InCollection("Things")); err != nil {
					return err
				}
				body, err := read(ctx, tx)
				must(t, err)
				scribble(t, body)
				return nil
			}))
			if got := stored(t, db, "things/1"); got[:6] != `{"a":1` {
				t.Errorf("stored: %s", got)
			}
			if err := checks.Indexes(db); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ensure that Get never returns less than what was acknowledged before it was
// called, though documents are read so often that they are kept in memory: by
// puts, patches, transactions, deletes and bulk writers.
func TestDocumentCache_NothingStale(t *testing.T) {
	t.Parallel()
	const hot = 16
	db := memory(t, &jay.Options{Durability: jay.Relaxed, DocumentCacheBytes: 64 << 10})
	for i := range hot {
		put(t, db, fmt.Sprintf("hot/%d", i), `{"n":0}`)
	}
	var acknowledged [hot]atomic.Int64
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				at := i % hot
				least := acknowledged[at].Load()
				doc, err := db.Get(ctx, fmt.Sprintf("hot/%d", at))
				if errors.Is(err, jay.ErrNotFound) {
					continue // between a delete and the put that follows
				}
				var v struct{ N int64 }
				if err != nil || json.Unmarshal(doc.Body(), &v) != nil || v.N < least {
					t.Errorf("hot/%d: got %v, %v after %d was acknowledged", at, doc, err, least)
					return
				}
			}
		})
	}
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	for at := range hot {
		writers.Go(func() {
			id := fmt.Sprintf("hot/%d", at)
			for n := int64(1); n <= int64(rounds); n++ {
				if err := writeSomehow(db, id, n); err != nil {
					t.Error(err)
				}
				acknowledged[at].Store(n)
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
}

// writeSomehow sets a counter to n, each time in another way.
func writeSomehow(db *jay.DB, id string, n int64) error {
	body := fmt.Appendf(nil, `{"n":%d}`, n)
	var err error
	switch n % 5 {
	case 0:
		_, err = db.Put(ctx, id, body)
	case 1:
		_, err = db.Patch(ctx, id, jay.Set("n", n))
	case 2:
		err = db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Put(ctx, id, body)
			return err
		})
	case 3:
		var b jay.Batch
		b.Delete(id)
		b.Put(id, body)
		_, err = db.Apply(ctx, &b)
	case 4:
		if err = db.Delete(ctx, id); err == nil {
			_, err = db.Insert(ctx, id, body)
		}
	}
	return err
}

// Ensure that writes, which take what is kept for what is there, lose no update
// and leave no index entry: counters are read and written back on the condition
// that no other goroutine did, by many goroutines and in many ways.
func TestDocumentCache_NoUpdateLost(t *testing.T) {
	t.Parallel()
	const hot, goroutines = 3, 8
	db := memory(t, &jay.Options{Durability: jay.Relaxed, DocumentCacheBytes: withCache.DocumentCacheBytes})
	must(t, db.EnsureIndex(ctx, "Hot", jay.Index{Fields: []string{"n"}}))
	for i := range hot {
		put(t, db, fmt.Sprintf("hot/%d", i), `{"@metadata":{"@collection":"Hot"},"n":0}`)
	}
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	var written [hot]atomic.Int64
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range rounds {
				at := (g + i) % hot
				id := fmt.Sprintf("hot/%d", at)
				_, err := db.Get(ctx, id) // twice, so that it is kept
				if err != nil {
					t.Error(err)
					return
				}
				doc, err := db.Get(ctx, id)
				var v struct{ N int64 }
				if err != nil || json.Unmarshal(doc.Body(), &v) != nil {
					t.Errorf("got %v, %v", doc, err)
					return
				}
				body := func(n int64) []byte {
					return fmt.Appendf(nil, `{"@metadata":{"@collection":"Hot"},"n":%d}`, n)
				}
				added := int64(1)
				var b jay.Batch
				switch i % 3 {
				case 0:
					b.Put(id, body(v.N+1), jay.IfMatch(doc.ChangeVector()))
				case 1:
					b.Replace(id, body(v.N+1), jay.IfMatch(doc.ChangeVector()))
					b.Put(id, body(v.N+2)) // over the one of this batch
					added = 2
				case 2:
					b.Put(id, body(v.N+1), jay.IfMatch(doc.ChangeVector()))
					b.Delete(id)
					b.Insert(id, body(v.N+1))
				}
				_, err = db.Apply(ctx, &b)
				var conflict *jay.ConflictError
				switch {
				case err == nil:
					written[at].Add(added)
				case !errors.As(err, &conflict):
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range hot {
		if want := fmt.Sprintf(`{"n":%d}`, written[i].Load()); body(t, db, fmt.Sprintf("hot/%d", i)) != want {
			t.Errorf("hot/%d is %s, want %s", i, body(t, db, fmt.Sprintf("hot/%d", i)), want)
		}
	}
	must(t, checks.Indexes(db))
}

// Ensure that what is kept stays within its bound whatever is read, and that
// documents come and go without harm.
func TestDocumentCache_Bounded(t *testing.T) {
	db := memory(t, &jay.Options{DocumentCacheBytes: 512 << 10})
	filler := fmt.Sprintf("%0500d", 1)
	var b jay.Batch
	for i := range 2000 {
		b.Put(fmt.Sprintf("d/%d", i), fmt.Appendf(nil, `{"i":%d,"filler":%q}`, i, filler))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
	for round := range 3 {
		for i := range 2000 {
			for range 1 + i%3 { // some are read at once again, and kept
				doc, err := db.Get(ctx, fmt.Sprintf("D/%d", i))
				must(t, err)
				if want := fmt.Sprintf(`{"i":%d,`, i); string(doc.Body()[:len(want)]) != want {
					t.Fatalf("round %d: got %s, want %s…", round, doc.Body()[:20], want)
				}
			}
		}
	}
	if used := checks.CachedBytes(db); used == 0 || used > 512<<10 {
		t.Errorf("%d bytes are kept, at most %d", used, 512<<10)
	}
}

// Ensure that every walk gives what a plain filter over all documents gives,
// for many collections, prefixes, pages and limits, at home and away.
func TestDocuments_AgainstFilter(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for _, caseSensitive := range []bool{false, true} {
		for _, separator := range []string{"/", "-"} {
			t.Run(fmt.Sprintf("case-sensitive %v, separator %q", caseSensitive, separator), func(t *testing.T) {
				db := memory(t, &jay.Options{CaseSensitive: caseSensitive, Separator: separator})
				random := rand.New(rand.NewPCG(1, 2))
				type document struct{ id, collection string }
				var all []document
				collections := []string{"Users", "users/a", "Orders", "@empty", "a", "A-b"}
				prefixes := []string{"users/", "Users/", "users-", "users/a/", "orders/", "a/", "a-b/", "", "a-"}
				for i := range 300 {
					id := prefixes[random.IntN(len(prefixes))] + fmt.Sprint(random.IntN(1000)) + string(rune('a'+i%26))
					collection := collections[random.IntN(len(collections))]
					if _, err := db.Insert(ctx, id, []byte(`{}`), jay.InCollection(collection)); err != nil {
						continue // there already
					}
					all = append(all, document{id, collection})
				}
				fold := ids.Fold
				if caseSensitive {
					fold = func(id string) string { return id }
				}
				slices.SortFunc(all, func(a, b document) int { return strings.Compare(fold(a.id), fold(b.id)) })
				reversed := slices.Clone(all)
				slices.Reverse(reversed)

				for range 400 {
					s := jay.Scan{Limit: random.IntN(20)}
					if random.IntN(3) > 0 {
						s.Collection = []string{"USERS", "users/A", "orders", "@empty", "A", "a-B", "none"}[random.IntN(7)]
					}
					if random.IntN(2) > 0 {
						s.Prefix = []string{"users", "users/", "USERS/1", "u", "a", "a-b/", "zz", "users/a/"}[random.IntN(8)]
					}
					if random.IntN(2) > 0 {
						s.After = all[random.IntN(len(all))].id
					}
					var want, got []string
					in := all
					if s.Reverse = random.IntN(2) > 0; s.Reverse {
						in = reversed
					}
					for _, d := range in {
						if (s.Collection == "" || ids.EqualFold(d.collection, s.Collection)) && strings.HasPrefix(fold(d.id), fold(s.Prefix)) &&
							(s.After == "" || fold(d.id) != fold(s.After) && (fold(d.id) > fold(s.After)) != s.Reverse) && (s.Limit == 0 || len(want) < s.Limit) {
							want = append(want, d.id)
						}
					}
					for doc, err := range db.Documents(ctx, s) {
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, doc.ID())
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%+v: got %v, want %v", s, got, want)
					}
				}
			})
		}
	}
}

// Ensure that a walk sees one moment, whatever is written meanwhile.
func TestDocuments_Snapshot(t *testing.T) {
	db := memory(t, nil)
	for i := range 10 {
		put(t, db, fmt.Sprintf("users/%d", i), `{"n":1}`, jay.InCollection("Users"))
		put(t, db, fmt.Sprintf("away%d", i), `{"n":1}`, jay.InCollection("Users"))
	}
	n := 0
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			for i := range 10 {
				put(t, db, fmt.Sprintf("users/%d", i), `{"n":2}`, jay.InCollection("Users"))
				if err := db.Delete(ctx, fmt.Sprintf("away%d", i)); err != nil {
					t.Fatal(err)
				}
				put(t, db, fmt.Sprintf("users/new%d", i), `{"n":2}`, jay.InCollection("Users"))
			}
		}
		equal(t, string(doc.Body()), `{"n":1}`)
		n++
	}
	equal(t, n, 20)
}

// Ensure that a deleted document leaves no trace in its collection, at home
// or away.
func TestDocuments_AfterDelete(t *testing.T) {
	db := memory(t, nil)
	for _, id := range []string{"users/1", "away"} {
		put(t, db, id, `{}`, jay.InCollection("Users"))
		if err := db.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		t.Errorf("found %v, %v", doc, err)
	}
	put(t, db, "away", `{}`, jay.InCollection("Others"))
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		t.Errorf("found %v, %v", doc, err)
	}
}

// Ensure that a walk from the greatest ID to the least has what a transaction has
// written in its place, and that only what it has reached is in the read set.
func TestTx_Documents_Reverse(t *testing.T) {
	db := memory(t, nil)
	for i := range 5 {
		put(t, db, fmt.Sprintf("a/%d", i), `{}`)
	}
	walk := func(outside string) (got []string, err error) {
		err = db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "a/25", []byte(`{}`)); err != nil {
				return err
			}
			if err := tx.Delete(ctx, "a/3"); err != nil {
				return err
			}
			for doc, err := range tx.Documents(ctx, jay.Scan{Prefix: "a/", Reverse: true}) {
				if err != nil {
					return err
				}
				if got = append(got, doc.ID()); doc.ID() == "a/2" {
					break
				}
			}
			put(t, db, outside, `{}`)
			return nil
		})
		return got, err
	}
	got, err := walk("a/1")
	must(t, err)
	equal(t, fmt.Sprint(got), "[a/4 a/25 a/2]")
	put(t, db, "a/3", `{}`)
	if _, err := walk("a/31"); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("a document where the walk has been: got %v, want ErrConflict", err)
	}
}

// Ensure that Matches and Exclude choose what RavenDB chooses.
func TestDocuments_Globs(t *testing.T) {
	db := memory(t, nil)
	for _, id := range []string{"ayende", "ayend", "RavenDB", "raven", "customers/1/orders/123", "customers/1/orders", "customers/1/invoices", "übung/é", "a*b"} {
		put(t, db, id, `{}`)
	}
	tests := []struct{ prefix, matches, exclude, want string }{
		{"", "ay?nde", "", "ayende"},
		{"", "AY?NDE", "", "ayende"},
		{"", "rav*b", "", "RavenDB"},
		{"", "*orders*", "", "customers/1/orders customers/1/orders/123"},
		{"", "*orders", "", "customers/1/orders"},
		{"", "*orders|*invoices", "", "customers/1/invoices customers/1/orders"},
		{"", "||*invoices|", "", "customers/1/invoices"},
		{"CUSTOMERS/1/", "orders", "", "customers/1/orders"}, // behind the prefix
		{"customers/1/", "*", "orders*", "customers/1/invoices"},
		{"customers/1/", "", "orders*|x", "customers/1/invoices"},
		{"customers/", "", "*", ""},
		{"customers/1/orders", "?*", "", "customers/1/orders/123"},
		{"customers/1/orders", "", "?*", "customers/1/orders"},
		{"", "?bung/?", "", "übung/é"}, // a character, not a byte
		{"", "ÜBUNG/*", "", "übung/é"},
		{"", "a*b", "", "a*b"},
		{"", "|", "", "a*b ayend ayende customers/1/invoices customers/1/orders customers/1/orders/123 raven RavenDB übung/é"},
		{"r", "", "|", "raven RavenDB"},
		{"", "none", "", ""},
	}
	for _, test := range tests {
		s := jay.Scan{Prefix: test.prefix, Matches: test.matches, Exclude: test.exclude}
		var got []string
		for doc, err := range db.Documents(ctx, s) {
			must(t, err)
			got = append(got, doc.ID())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v: got %v", s, got)
		}
	}
	for _, s := range []jay.Scan{{Matches: strings.Repeat("x", 1025)}, {Exclude: strings.Repeat("x", 1025)}} {
		for doc, err := range db.Documents(ctx, s) {
			if doc != nil || !errors.Is(err, jay.ErrUsage) {
				t.Errorf("a long pattern: %v, %v", doc, err)
			}
		}
	}
}

// Ensure that pages of a walk with patterns, in collections at home and away,
// and in a transaction over its own writes, hold what a plain filter by a
// regular expression chooses.
func TestDocuments_Globs_AgainstRegexp(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for _, caseSensitive := range []bool{false, true} {
		db := memory(t, &jay.Options{CaseSensitive: caseSensitive})
		random := rand.New(rand.NewPCG(1, 2))
		text := func(alphabet string, n int) string {
			out := make([]rune, random.IntN(n))
			for i := range out {
				letters := []rune(alphabet)
				out[i] = letters[random.IntN(len(letters))]
			}
			return string(out)
		}
		type document struct{ id, folded, collection string }
		var all []document
		rules := ids.Rules{CaseSensitive: caseSensitive}
		insert := func(put func(id, collection string) error) {
			for range 150 {
				d := document{id: "u/" + text("aAbBé/", 7) + "x", collection: []string{"u", "V"}[random.IntN(2)]}
				d.folded = rules.Fold(d.id)
				if put(d.id, d.collection) == nil {
					all = append(all, d)
				}
			}
		}
		insert(func(id, collection string) error {
			_, err := db.Insert(ctx, id, []byte(`{}`), jay.InCollection(collection))
			return err
		})
		err := db.Update(ctx, func(tx *jay.Tx) error {
			insert(func(id, collection string) error {
				_, err := tx.Insert(ctx, id, []byte(`{}`), jay.InCollection(collection))
				return err
			})
			slices.SortFunc(all, func(a, b document) int { return strings.Compare(a.folded, b.folded) })
			for range 500 {
				s := jay.Scan{Prefix: []string{"", "u/", "U/a", "u/b"}[random.IntN(4)], Limit: random.IntN(10)}
				s.Matches, s.Exclude = text("aAbé/x*?|*", 8), text("aAbé/x*?|*", 6)
				s.Collection = []string{"", "U", "v"}[random.IntN(3)]
				if random.IntN(2) == 0 {
					s.After = all[random.IntN(len(all))].id
				}
				matches, exclude := globRegexp(rules.Fold(s.Matches)), globRegexp(rules.Fold(s.Exclude))
				var want, got []string
				for _, d := range all {
					rest, ok := strings.CutPrefix(d.folded, rules.Fold(s.Prefix))
					if ok && (s.Collection == "" || ids.EqualFold(s.Collection, d.collection)) && d.folded > rules.Fold(s.After) && (matches == nil || matches.MatchString(rest)) &&
						(exclude == nil || !exclude.MatchString(rest)) && (s.Limit == 0 || len(want) < s.Limit) {
						want = append(want, d.id)
					}
				}
				for doc, err := range tx.Documents(ctx, s) {
					if err != nil {
						return err
					}
					got = append(got, doc.ID())
				}
				if !slices.Equal(got, want) {
					return fmt.Errorf("%+v: got %v, want %v", s, got, want)
				}
			}
			return nil
		})
		must(t, err)
	}
}

// globRegexp translates a pattern, or returns nil for none.
func globRegexp(pattern string) *regexp.Regexp {
	var alternatives []string
	for a := range strings.SplitSeq(pattern, "|") {
		if a != "" {
			a = regexp.QuoteMeta(a)
			a = strings.ReplaceAll(strings.ReplaceAll(a, `\*`, `.*`), `\?`, `.`)
			alternatives = append(alternatives, a)
		}
	}
	if alternatives == nil {
		return nil
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(alternatives, "|") + `)$`)
}

// Ensure that no pattern explodes: the worst ones, over the longest ID, do not take
// for ever, as they would by trying all ways.
func TestDocuments_Globs_Time(t *testing.T) {
	db := memory(t, nil)
	put(t, db, strings.Repeat("a", 2025), `{}`)
	start := time.Now()
	for _, pattern := range []string{strings.Repeat("*a", 500) + "*b", strings.Repeat("*?a", 300) + "*b", strings.Repeat("*a*a*b|", 140), strings.Repeat("*", 1000) + "b", "*" + strings.Repeat("a?", 500) + "b"} {
		for range 20 {
			for doc, err := range db.Documents(ctx, jay.Scan{Matches: pattern}) {
				t.Errorf("%.20s: found %v, %v", pattern, doc, err)
			}
		}
	}
	if took := time.Since(start); took > jaytest.HangGuard {
		t.Errorf("100 walks took %v", took)
	}
}

// Ensure that Read gives the document as it is, that it stays as it was under
// the function, and that nothing can be reached through it afterwards.
func TestDB_Read(t *testing.T) {
	db := memory(t, nil)
	m := put(t, db, "Users/1", `{"n":1,"deep":{"x":[1,{"y":"z"}]}}`, jay.InCollection("Users"))
	var kept *jay.RawDocument
	err := db.Read(ctx, "users/1", func(doc *jay.RawDocument) error {
		kept = doc
		equal(t, doc.ID(), "Users/1")
		equal(t, doc.Collection(), "Users")
		equal(t, doc.ChangeVector(), m.ChangeVector)
		for range 3 { // the database can be used, and written to
			put(t, db, "users/1", `{"n":2}`, jay.InCollection("Users"))
			must(t, db.Delete(ctx, "users/1"))
		}
		equal(t, string(doc.Body()), `{"n":1,"deep":{"x":[1,{"y":"z"}]}}`)
		y, found, err := jay.Value[string](doc, "deep.x[1].y")
		equal(t, y, "z")
		equal(t, found, true)
		must(t, err)
		var v struct{ N int }
		must(t, doc.Decode(&v))
		equal(t, v.N, 1)
		return nil
	})
	must(t, err)
	equal(t, kept.ID()+string(kept.Body())+kept.ChangeVector(), "")
	if _, found, err := kept.Path("n"); found || err != nil {
		t.Errorf("after the end: %v, %v", found, err)
	}

	boom := errors.New("boom")
	put(t, db, "a", `{}`)
	if err := db.Read(ctx, "a", func(*jay.RawDocument) error { return boom }); err != boom {
		t.Errorf("got %v", err)
	}
	never := func(*jay.RawDocument) error { t.Error("called"); return nil }
	for _, id := range []string{"none", "", "users/", "users|"} {
		if err := db.Read(ctx, id, never); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Read(cancelled, "a", never); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	func() { // a panic gives everything back: the test would hang at Close
		defer func() { _ = recover() }()
		_ = db.Read(ctx, "a", func(*jay.RawDocument) error { panic("boom") })
	}()
}

// Ensure that Close waits for the functions of Read, that they can use the
// database until they end, and that a Read begun meanwhile, even by one of
// them, is refused and hangs nothing.
func TestDB_Read_Close(t *testing.T) {
	t.Parallel()
	db, err := jay.OpenMemory(nil)
	must(t, err)
	put(t, db, "a", `{"n":1}`)
	inside, closed := make(chan bool), make(chan error)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			err := db.Read(ctx, "a", func(doc *jay.RawDocument) error {
				inside <- true
				var nested error
				for nested == nil { // until Close has begun
					nested = db.Read(ctx, "a", func(*jay.RawDocument) error { return nil })
				}
				if !errors.Is(nested, jay.ErrClosed) {
					t.Errorf("nested: %v", nested)
				}
				select {
				case <-closed:
					t.Error("Close did not wait")
				default:
				}
				if _, err := db.Get(ctx, "a"); err != nil {
					t.Errorf("get: %v", err)
				}
				if _, err := db.Put(ctx, "b", json.RawMessage(`{}`)); err != nil {
					t.Errorf("put: %v", err)
				}
				equal(t, string(doc.Body()), `{"n":1}`)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		<-inside
	}
	go func() { closed <- db.Close() }()
	wg.Wait()
	must(t, <-closed)
	must(t, db.Close())
	if err := db.Read(ctx, "a", nil); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Ensure that readers and writers under way with Read see whole documents.
func TestDB_Read_Concurrent(t *testing.T) {
	db := memory(t, &jay.Options{MemTableBytes: 1 << 20})
	for i := range 8 {
		put(t, db, fmt.Sprint("d", i), `{"a":0,"b":0}`)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				put(t, db, fmt.Sprint("d", (g+i)%8), fmt.Sprintf(`{"a":%d,"b":%d}`, i, i))
			}
		})
		wg.Go(func() {
			for i := range 300 {
				err := db.Read(ctx, fmt.Sprint("d", i%8), func(doc *jay.RawDocument) error {
					a, _, err := jay.Value[int](doc, "a")
					if err != nil {
						return err
					}
					if b, _, err := jay.Value[int](doc, "b"); err != nil || a != b {
						return fmt.Errorf("half a document: %s, %v", doc.Body(), err)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Ensure that a path gives what is there, as it is written, and that a value
// keeps every digit.
func TestDocument_Path(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":12345678901234567890,"price":1.10,"null":null,"Lines":[{"P":"x","Q":[1,2]},{"Q":[3]},7],"a.b":{"":true},"text":"\u0041"}`)
	doc, err := db.Get(ctx, "a")
	must(t, err)
	for path, want := range map[string]string{
		"n": `12345678901234567890`, "price": `1.10`, "null": `null`, "Lines[0].P": `"x"`, "Lines[1]": `{"Q":[3]}`,
		"Lines[].P": `["x"]`, "Lines[].Q[]": `[1,2,3]`, "Lines[].Q": `[[1,2],[3]]`, "'a.b'.''": `true`, "text": `"\u0041"`,
		"none": "", "Lines[9]": "", "Lines[].None": "", "n.deeper": "", "Lines.P": "",
	} {
		raw, found, err := doc.Path(path)
		if string(raw) != want || found != (want != "") || err != nil {
			t.Errorf("%s: got %s, %v, %v, want %s", path, raw, found, err, want)
		}
	}
	for _, path := range []string{"", "a..b", "[0]", "Lines[x]"} {
		if _, _, err := doc.Path(path); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%q: %v", path, err)
		}
		if _, _, err := jay.Value[int](doc, path); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%q: %v", path, err)
		}
	}
	n, found, err := jay.Value[any](doc, "n")
	if n != json.Number("12345678901234567890") || !found || err != nil {
		t.Errorf("got %v, %v, %v", n, found, err)
	}
	if _, found, err := jay.Value[int](doc, "text"); !found || err == nil {
		t.Errorf("text as a number: %v, %v", found, err)
	}
	if p, found, err := jay.Value[*int](doc, "null"); p != nil || !found || err != nil {
		t.Errorf("null: %v, %v, %v", p, found, err)
	}
	lines, _, err := jay.Value[[]string](doc, "Lines[].P")
	if len(lines) != 1 || err != nil {
		t.Errorf("got %v, %v", lines, err)
	}
}
