package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
)

type payment struct {
	ID      string
	Version string `json:"-" jay:"version"`
	Account string
	Cents   int64
}

// Ensure that every write takes a request ID: made again it returns what it returned, and changes
// nothing; and another one with the ID is refused.
func TestRequestID_Writes(t *testing.T) {
	doc := func(text string) json.RawMessage { return json.RawMessage(text) }
	type answer struct {
		m      jay.Metadata
		status jay.PatchStatus
	}
	of := func(m jay.Metadata, err error) (answer, error) { return answer{m: m}, err }
	calls := []struct {
		name  string
		write func(db *jay.DB, c *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error)
	}{
		{"Put", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return of(db.Put(ctx, "x/1", doc(fmt.Sprintf(`{"Cents":%d}`, cents)), r))
		}},
		{"Put of an identity", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return of(db.Put(ctx, "x|", doc(fmt.Sprintf(`{"Cents":%d}`, cents)), r))
		}},
		{"Put of a GUID", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return of(db.Put(ctx, "", doc(fmt.Sprintf(`{"Cents":%d}`, cents)), r))
		}},
		{"Insert", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return of(db.Insert(ctx, "x/2", doc(fmt.Sprintf(`{"Cents":%d}`, cents)), r))
		}},
		{"Store", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return of(db.Store(ctx, "Xs", doc(fmt.Sprintf(`{"Cents":%d}`, cents)), r))
		}},
		{"Replace", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return of(db.Replace(ctx, "there", doc(fmt.Sprintf(`{"Cents":%d}`, cents)), r))
		}},
		{"Patch", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			p, err := db.Patch(ctx, "there", jay.Increment("Cents", cents), r)
			return answer{p.Metadata, p.Status}, err
		}},
		{"Patch of nothing", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			p, err := db.Patch(ctx, "none", jay.Increment("Cents", cents), r)
			return answer{p.Metadata, p.Status}, err
		}},
		{"Patch that inserts", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			p, err := db.Patch(ctx, "new", jay.Increment("Cents", cents), jay.OrInsertPatched(doc(`{}`)), r)
			return answer{p.Metadata, p.Status}, err
		}},
		{"Collection.Insert", func(_ *jay.DB, c *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			v := &payment{Account: "a", Cents: cents}
			m, err := c.Insert(ctx, v, r)
			if err == nil && (v.ID != m.ID || v.Version != m.ChangeVector || v.ID == "") {
				t.Errorf("the value has %q %q, the metadata %q %q", v.ID, v.Version, m.ID, m.ChangeVector)
			}
			return answer{m: m}, err
		}},
		{"Collection.Put", func(_ *jay.DB, c *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return of(c.Put(ctx, &payment{ID: "payments/x", Cents: cents}, r))
		}},
		{"InsertMany", func(_ *jay.DB, c *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			vs := []*payment{{Account: "a", Cents: 1}, {Account: "b", Cents: cents}}
			ms, err := c.InsertMany(ctx, vs, r)
			if err != nil {
				return answer{}, err
			}
			equal(t, vs[0].ID, ms[0].ID)
			return of(ms[1], nil)
		}},
		{"Collection.Patch", func(_ *jay.DB, c *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			p, err := c.Patch(ctx, "payments/there", jay.Increment("Cents", cents), r)
			return answer{p.Metadata, p.Status}, err
		}},
		{"Delete", func(db *jay.DB, _ *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return answer{}, db.Delete(ctx, fmt.Sprintf("gone/%d", cents), r)
		}},
		{"Collection.Delete", func(_ *jay.DB, c *jay.Collection[payment], cents int64, r jay.RequestOption) (answer, error) {
			return answer{}, c.Delete(ctx, fmt.Sprintf("payments/gone%d", cents), r)
		}},
	}
	for i, call := range calls {
		t.Run(call.name, func(t *testing.T) {
			db := memory(t, nil)
			payments := collectionOf[payment](t, db)
			put(t, db, "there", `{"Cents":0}`)
			put(t, db, "gone/1", `{}`)
			must(t, second(payments.Insert(ctx, &payment{ID: "payments/there"})))
			must(t, second(payments.Insert(ctx, &payment{ID: "payments/gone1"})))

			first, err := call.write(db, payments, 1, jay.RequestID("r"))
			must(t, err)
			etag := lastEtag(t, db)
			again, err := call.write(db, payments, 1, jay.RequestID("r"))
			must(t, err)
			a, b := first.m, again.m
			if a.ID != b.ID || a.Etag != b.Etag || a.ChangeVector != b.ChangeVector || a.Collection != b.Collection || !a.LastModified.Equal(b.LastModified) || first.status != again.status {
				t.Errorf("got %+v, and again %+v", first, again)
			}
			if _, err := call.write(db, payments, 2, jay.RequestID("r")); !errors.Is(err, jay.ErrRequestID) {
				t.Errorf("another body: %v", err)
			}
			other := calls[(i+1)%len(calls)]
			if _, err := other.write(db, payments, 1, jay.RequestID("r")); !errors.Is(err, jay.ErrRequestID) {
				t.Errorf("%s with the ID: %v", other.name, err)
			}
			for _, bad := range []string{"", strings.Repeat("x", 257), "a\nb"} {
				if _, err := call.write(db, payments, 1, jay.RequestID(bad)); !errors.Is(err, jay.ErrUsage) {
					t.Errorf("%q: %v", bad, err)
				}
			}
			equal(t, lastEtag(t, db), etag)
		})
	}
}

// Ensure that a request ID of a part of a call, and of a call that keeps no result, is refused, and nothing is
// written.
func TestRequestID_PartOfCall(t *testing.T) {
	db := memory(t, nil)
	payments := collectionOf[payment](t, db)
	r := jay.RequestID("r")
	in := func(fn func(tx *jay.Tx) error) error { return db.Update(ctx, fn) }
	var b jay.Batch
	b.Put("x", []byte(`{}`), r)
	w, err := db.BulkInsert(nil)
	must(t, err)
	put(t, db, "there", `{}`)
	for name, err := range map[string]error{
		"batch":              second(db.Apply(ctx, &b)),
		"batch with another": second(db.Apply(ctx, &b, jay.RequestID("s"))),
		"Tx.Put":             in(func(tx *jay.Tx) error { return second(tx.Put(ctx, "x", []byte(`{}`), r)) }),
		"Tx.Patch":           in(func(tx *jay.Tx) error { return second(tx.Patch(ctx, "there", jay.Set("n", 1), r)) }),
		"Tx.Delete":          in(func(tx *jay.Tx) error { return tx.Delete(ctx, "there", r) }),
		"Collection.In":      in(func(tx *jay.Tx) error { return second(payments.In(tx).Insert(ctx, &payment{}, r)) }),
		"Collection.In many": in(func(tx *jay.Tx) error { return second(payments.In(tx).InsertMany(ctx, []*payment{{}, {}}, r)) }),
		"BulkWriter":         second(w.Put(ctx, "x", []byte(`{}`), r)),
		"BulkStore":          payments.BulkStore(ctx, w, &payment{}, r),
		"attachment":         second(db.Attachments("there").Put(ctx, "a", strings.NewReader("x"), r)),
	} {
		if !errors.Is(err, jay.ErrUsage) || errors.Is(err, jay.ErrRequestID) {
			t.Errorf("%s: got %v, want ErrUsage", name, err)
		}
	}
	must(t, w.Close())
	if found, err := db.Exists(ctx, "x"); found || err != nil {
		t.Errorf("x is there: %v %v", found, err)
	}
	must(t, second(db.Put(ctx, "r", []byte(`{}`), r))) // none of them has used the ID
}

// Ensure that of calls of Update with one request ID one commits, also at the same time, and that the function of a repeated
// call does not run.
func TestRequestID_Update(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "account", `{"Cents":0}`)
	var runs atomic.Int64
	add := func(id string, opts ...jay.TxOption) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			runs.Add(1)
			return second(tx.Patch(ctx, "account", jay.Increment("Cents", 1)))
		}, append(opts, jay.RequestID(id))...)
	}
	const ids = 8
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			if err := add(fmt.Sprint(g%ids), jay.Retry()); err != nil {
				t.Errorf("%d: %v", g, err)
			}
		})
	}
	wg.Wait()
	equal(t, body(t, db, "account"), fmt.Sprintf(`{"Cents":%d}`, ids))
	before := runs.Load()
	for id := range ids {
		must(t, add(fmt.Sprint(id)))
	}
	equal(t, runs.Load(), before)
	equal(t, body(t, db, "account"), fmt.Sprintf(`{"Cents":%d}`, ids))

	// A call that fails, and one that writes nothing, leave no result.
	refused := errors.New("refused")
	if err := db.Update(ctx, func(tx *jay.Tx) error {
		must(t, second(tx.Put(ctx, "x", []byte(`{}`))))
		return refused
	}, jay.RequestID("fails")); err != refused {
		t.Errorf("got %v", err)
	}
	must(t, db.Update(ctx, func(*jay.Tx) error { return nil }, jay.RequestID("fails")))
	must(t, add("fails"))
	equal(t, body(t, db, "account"), fmt.Sprintf(`{"Cents":%d}`, ids+1))
	for name, err := range map[string]error{
		"another call": second(db.Put(ctx, "x", []byte(`{}`), jay.RequestID("1"))),
		"no ID":        add(""),
	} {
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Of two at a time without Retry, the one that is later returns nil, and no conflict.
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		must(t, second(tx.Patch(ctx, "account", jay.Increment("Cents", 1))))
		return add("nested")
	}, jay.RequestID("nested")))
	equal(t, body(t, db, "account"), fmt.Sprintf(`{"Cents":%d}`, ids+2))
}

// Ensure that a transaction returns nil if its function fails over what another one with its request ID has written.
func TestRequestID_UpdateMeetsItself(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	runs := 0
	var update func(nested bool) error
	update = func(nested bool) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if !nested {
				runs++
				must(t, update(true))
				if _, err := db.Get(ctx, "users/1"); err == nil {
					return errors.New("there is a user already")
				}
			}
			return second(tx.Insert(ctx, "users/1", []byte(`{}`)))
		}, jay.RequestID("once"))
	}
	if err := update(false); err != nil {
		t.Errorf("got %v, though the call was carried out", err)
	}
	equal(t, runs, 1)
}

// Ensure that writes of one request ID at the same time have one effect, and the same answer.
func TestRequestID_Writes_Concurrent(t *testing.T) {
	db := memory(t, nil)
	payments := collectionOf[payment](t, db)
	var mu sync.Mutex
	answers := make(map[string]map[string]bool)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			request := fmt.Sprint(g % 4)
			v := &payment{Account: request, Cents: 1}
			if _, err := payments.Insert(ctx, v, jay.RequestID(request)); err != nil {
				t.Errorf("%d: %v", g, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if answers[request] == nil {
				answers[request] = make(map[string]bool)
			}
			answers[request][v.ID+" "+v.Version] = true
		})
	}
	wg.Wait()
	for request, all := range answers {
		equal(t, len(all), 1)
		_ = request
	}
	n, err := payments.Query().Count(ctx)
	must(t, err)
	equal(t, n, 4)
}

type payer struct {
	ID   string
	Name string
}

// Ensure that SaveChanges with a request ID is made once by whichever session, though each draws IDs of its own; that the entities
// get the IDs of the first, and that other new entities are refused.
func TestRequestID_SaveChanges(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "old", `{}`)
	must(t, second(collectionOf[payer](t, db).Insert(ctx, &payer{ID: "payers/ann", Name: "ann"})))
	save := func(cents int64, id string) (*payer, *payment, error) {
		s := db.OpenSession()
		ann, err := jay.Load[payer](ctx, s, "payers/ann")
		must(t, err)
		ann.Name += "!" // follows from what was read
		p := &payer{Name: "bob"}
		must(t, s.Store(ctx, p))
		pay := &payment{Account: p.ID, Cents: cents}
		must(t, s.Store(ctx, pay))
		must(t, s.DeleteID("old"))
		err = s.SaveChanges(ctx, jay.RequestID(id))
		if err == nil && !s.Holds(pay.ID) {
			t.Errorf("%s: the session does not hold %q", id, pay.ID)
		}
		return p, pay, err
	}
	p, pay, err := save(5, "first")
	must(t, err)
	etag := lastEtag(t, db)
	for range 2 {
		s := db.OpenSession()
		bob := &payer{Name: "bob"}
		must(t, s.Store(ctx, bob))
		drawn := bob.ID
		again := &payment{Account: bob.ID, Cents: 5}
		must(t, s.Store(ctx, again))
		must(t, s.DeleteID("old"))
		must(t, s.SaveChanges(ctx, jay.RequestID("first")))
		equal(t, bob.ID, p.ID)
		equal(t, again.ID, pay.ID)
		equal(t, again.Version, pay.Version)
		equal(t, again.Account, drawn)
		equal(t, s.Holds(again.ID), false)
		must(t, s.SaveChanges(ctx))
	}
	equal(t, lastEtag(t, db), etag)
	if _, _, err := save(6, "first"); !errors.Is(err, jay.ErrRequestID) {
		t.Errorf("another payment: %v", err)
	}
	equal(t, lastEtag(t, db), etag)
	equal(t, body(t, db, "payers/ann"), `{"Name":"ann!"}`)
	stored, err := collectionOf[payment](t, db).Get(ctx, pay.ID)
	must(t, err)
	equal(t, stored.Account, p.ID)

	// A save without changes, and one that fails, leave no result.
	must(t, db.OpenSession().SaveChanges(ctx, jay.RequestID("second")))
	s := db.OpenSession(jay.OptimisticConcurrency())
	must(t, s.Store(ctx, &payer{ID: "payers/ann"}))
	if err := s.SaveChanges(ctx, jay.RequestID("second")); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	s = db.OpenSession()
	must(t, s.Store(ctx, &payer{ID: "payers/cyd"}))
	must(t, s.SaveChanges(ctx, jay.RequestID("second")))
}

// Ensure that a session with ClusterWide is saved once, with its compare-exchange values, though a repeated one has read
// other versions, guards and indexes; that one with values only is; and that another new value is refused.
func TestRequestID_SaveChanges_ClusterWide(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	_, err := x.Put(ctx, "balance", 100, 0)
	must(t, err)
	must(t, second(collectionOf[payer](t, db).Insert(ctx, &payer{ID: "payers/ann", Name: "ann"})))
	save := func(email string) (*payer, error) {
		s := db.OpenSession(jay.ClusterWide())
		ann, err := jay.Load[payer](ctx, s, "payers/ann")
		must(t, err)
		ann.Name += "!"
		bob := &payer{Name: "bob"}
		must(t, s.Store(ctx, bob))
		must(t, s.DeleteID("payers/gone"))
		balance, err := x.Get(ctx, "balance")
		must(t, err)
		var cents int
		must(t, json.Unmarshal(balance.Value, &cents))
		must(t, s.PutCompareExchange("balance", cents-5, balance.Index))
		must(t, s.PutCompareExchange("emails/bob", email+bob.ID, 0))
		return bob, s.SaveChanges(ctx, jay.RequestID("pay"))
	}
	bob, err := save("")
	must(t, err)
	etag := lastEtag(t, db)
	for range 2 {
		again, err := save("")
		must(t, err)
		equal(t, again.ID, bob.ID)
	}
	if _, err := save("x"); !errors.Is(err, jay.ErrRequestID) {
		t.Errorf("another value: got %v, want ErrRequestID", err)
	}
	equal(t, lastEtag(t, db), etag)
	equal(t, body(t, db, "payers/ann"), `{"Name":"ann!"}`)
	balance, err := x.Get(ctx, "balance")
	must(t, err)
	equal(t, string(balance.Value), "95")
	email, err := x.Get(ctx, "emails/bob")
	must(t, err)
	equal(t, string(email.Value), fmt.Sprintf("%q", bob.ID))

	only := func(value int) error {
		s := db.OpenSession(jay.ClusterWide())
		must(t, s.PutCompareExchange("only", value, 0))
		return s.SaveChanges(ctx, jay.RequestID("only"))
	}
	must(t, only(1))
	must(t, only(1))
	if err := only(2); !errors.Is(err, jay.ErrRequestID) {
		t.Errorf("another value: got %v, want ErrRequestID", err)
	}
}
