package jay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// ticket has its expiry as a member.
type ticket struct {
	ID    string
	Owner string
	Until time.Time `json:"until" jay:"expires"`
}

// ticketPointer is a ticket whose expiry is a pointer.
type ticketPointer struct {
	ID    string
	Owner string
	Until *time.Time `json:"-" jay:"expires"`
}

// plainTicket has no member for its expiry.
type plainTicket struct {
	ID    string
	Owner string
}

const ticketUntil = `{"@expires":"2026-11-21T13:00:00.0000000Z"}`

// Ensure that a repeated call with a request ID leaves the expiry of the value as the caller has set it, and the document's as it is.
func TestExpires_Field_Repeated(t *testing.T) {
	db := memory(t, nil)
	c := collectionOf[ticket](t, db)
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, set := range []time.Time{at, at.Add(time.Hour), {}} {
		v := &ticket{Owner: "Ann", Until: set}
		m, err := c.Put(ctx, v, jay.RequestID("once"))
		if !set.Equal(at) { // another body
			if !errors.Is(err, jay.ErrRequestID) || !v.Until.Equal(set) {
				t.Errorf("another expiry: %v, the field is %v", err, v.Until)
			}
			v = &ticket{Owner: "Ann", Until: at}
			m, err = c.Put(ctx, v, jay.RequestID("once"))
		}
		must(t, err)
		equal(t, m.ID, "tickets/1-A")
		equal(t, v.ID, "tickets/1-A")
		if !v.Until.Equal(at) {
			t.Errorf("the field is %v", v.Until)
		}
	}
	got, err := c.Get(ctx, "tickets/1-A")
	must(t, err)
	equal(t, got.Until.Equal(at), true)
}

// Ensure that the field tagged as the expiry decides it in every way of writing a value, and that every
// way of reading fills it.
func TestExpires_Field(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.FixedZone("", 3600))
	ways := map[string]func(db *jay.DB, c *jay.Collection[ticket], v *ticket) error{
		"Put": func(_ *jay.DB, c *jay.Collection[ticket], v *ticket) error { _, err := c.Put(ctx, v); return err },
		"PutMany": func(_ *jay.DB, c *jay.Collection[ticket], v *ticket) error {
			_, err := c.PutMany(ctx, []*ticket{v})
			return err
		},
		"Update": func(db *jay.DB, c *jay.Collection[ticket], v *ticket) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := c.In(tx).Put(ctx, v); err != nil {
					return err
				}
				got, err := c.In(tx).Get(ctx, v.ID)
				if err == nil && !got.Until.Equal(v.Until) {
					t.Errorf("the transaction sees %v, want %v", got.Until, v.Until)
				}
				return err
			})
		},
		"session": func(db *jay.DB, _ *jay.Collection[ticket], v *ticket) error {
			s := db.OpenSession()
			loaded, err := jay.Load[ticket](ctx, s, v.ID)
			if errors.Is(err, jay.ErrNotFound) {
				if err := s.Store(ctx, v); err != nil {
					return err
				}
				return s.SaveChanges(ctx)
			}
			if err != nil {
				return err
			}
			loaded.Owner, loaded.Until = v.Owner, v.Until
			return s.SaveChanges(ctx)
		},
		"session that has not loaded it": func(db *jay.DB, _ *jay.Collection[ticket], v *ticket) error {
			s := db.OpenSession()
			if err := s.Store(ctx, v); err != nil {
				return err
			}
			return s.SaveChanges(ctx)
		},
		"BulkStore": func(db *jay.DB, c *jay.Collection[ticket], v *ticket) error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			return errors.Join(c.BulkStore(ctx, w, v), w.Close())
		},
	}
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			db, clock := expiring(t, false)
			tickets := collectionOf[ticket](t, db)
			must(t, write(db, tickets, &ticket{ID: "tickets/1", Owner: "ann", Until: at}))
			equal(t, custom(t, db, "tickets/1"), ticketUntil)
			doc, err := db.Get(ctx, "tickets/1")
			must(t, err)
			equal(t, string(doc.Body()), `{"Owner":"ann"}`)
			got, err := tickets.Get(ctx, "tickets/1")
			must(t, err)
			if !got.Until.Equal(at) || got.Until.Location() != time.UTC {
				t.Errorf("Get returns %v, want %v", got.Until, at)
			}
			found, err := tickets.Query().Where(jay.Eq("Owner", "ann")).All(ctx)
			must(t, err)
			if len(found) != 1 || !found[0].Until.Equal(at) {
				t.Errorf("a query returns %v", found)
			}

			// None again, and a later one.
			must(t, write(db, tickets, &ticket{ID: "tickets/1", Owner: "bob"}))
			equal(t, custom(t, db, "tickets/1"), "")
			must(t, write(db, tickets, &ticket{ID: "tickets/1", Owner: "cyd", Until: at}))
			equal(t, custom(t, db, "tickets/1"), ticketUntil)
			clock.Set(at)
			swept(t, db, 1, 0)
		})
	}
}

// Ensure that Insert and Replace write the field, that an option goes before it, that the field has
// afterwards what was stored, and that a pointer does what a value does.
func TestExpires_Options(t *testing.T) {
	db, clock := expiring(t, false)
	tickets := collectionOf[ticket](t, db)
	v := &ticket{Owner: "ann", Until: clock.Now().Add(time.Hour)}
	_, err := tickets.Insert(ctx, v, jay.WithTTL(time.Minute))
	must(t, err)
	if want := clock.Now().Add(time.Minute); !v.Until.Equal(want) {
		t.Errorf("after WithTTL the field has %v, want %v", v.Until, want)
	}
	_, err = tickets.Replace(ctx, v, jay.ExpiresAt(time.Time{}))
	must(t, err)
	if !v.Until.IsZero() {
		t.Errorf("after ExpiresAt of no time the field has %v", v.Until)
	}
	equal(t, custom(t, db, v.ID), "")

	// A patch has no value: it leaves the expiry, or takes the option.
	v.Until = clock.Now().Add(time.Hour)
	_, err = tickets.Put(ctx, v)
	must(t, err)
	_, err = tickets.Patch(ctx, v.ID, jay.Set("Owner", "bob"))
	must(t, err)
	got, err := tickets.Get(ctx, v.ID)
	must(t, err)
	if !got.Until.Equal(v.Until) || got.Owner != "bob" {
		t.Errorf("after a patch: %+v", got)
	}

	pointers := collectionOf[ticketPointer](t, db, jay.Named("Tickets"))
	p, err := pointers.Get(ctx, v.ID)
	must(t, err)
	if p.Until == nil || !p.Until.Equal(v.Until) {
		t.Errorf("the pointer has %v, want %v", p.Until, v.Until)
	}
	for _, never := range []*time.Time{new(time.Time), nil} {
		p.Until = &v.Until
		_, err = pointers.Put(ctx, p)
		must(t, err)
		p.Until = never
		_, err = pointers.Put(ctx, p)
		must(t, err)
		equal(t, custom(t, db, v.ID), "")
	}
	p, err = pointers.Get(ctx, v.ID)
	must(t, err)
	if p.Until != nil {
		t.Errorf("without an expiry the pointer has %v", p.Until)
	}

	// The query asks for the metadata by its path.
	if _, err := tickets.Query().Where(jay.Eq("until", v.Until)).All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("a condition on the field: %v", err)
	}
	_, err = tickets.Put(ctx, &ticket{ID: v.ID, Until: clock.Now().Add(time.Hour)})
	must(t, err)
	n, err := tickets.Query().Where(jay.Gt("@metadata.@expires", "2026-11-21T12:00:00.0000000Z")).Count(ctx)
	must(t, err)
	equal(t, n, 1)
	if _, err := tickets.Put(ctx, &ticket{ID: v.ID, Until: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("an expiry in the year 10000 is accepted")
	}
}

// Ensure that a type without the field leaves the expiry and the refresh where they are, in every way
// of writing, unless an option names one; and that writes of JSON replace them, as RavenDB's do.
func TestExpires_Kept(t *testing.T) {
	const both = `{"@expires":"2026-11-21T13:00:00.0000000Z","@refresh":"2026-11-21T12:30:00.0000000Z"}`
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	const id = "plaintickets/1"
	type plain = plainTicket
	named := jay.Named("PlainTickets")
	tests := []struct {
		name, want string
		write      func(db *jay.DB, c *jay.Collection[plain]) error
	}{
		{"Put", both, func(_ *jay.DB, c *jay.Collection[plain]) error { _, err := c.Put(ctx, &plain{id, "bob"}); return err }},
		{"Replace", both, func(_ *jay.DB, c *jay.Collection[plain]) error {
			_, err := c.Replace(ctx, &plain{id, "bob"})
			return err
		}},
		{"with a TTL", `{"@expires":"2026-11-21T12:01:00.0000000Z","@refresh":"2026-11-21T12:30:00.0000000Z"}`, func(_ *jay.DB, c *jay.Collection[plain]) error {
			_, err := c.Put(ctx, &plain{id, "bob"}, jay.WithTTL(time.Minute))
			return err
		}},
		{"without an expiry", `{"@refresh":"2026-11-21T12:30:00.0000000Z"}`, func(_ *jay.DB, c *jay.Collection[plain]) error {
			_, err := c.Put(ctx, &plain{id, "bob"}, jay.ExpiresAt(time.Time{}))
			return err
		}},
		{"without a refresh", ticketUntil, func(_ *jay.DB, c *jay.Collection[plain]) error {
			_, err := c.Put(ctx, &plain{id, "bob"}, jay.RefreshAt(time.Time{}))
			return err
		}},
		{"with metadata", `{"k":1,"@expires":"2026-11-21T13:00:00.0000000Z","@refresh":"2026-11-21T12:30:00.0000000Z"}`, func(_ *jay.DB, c *jay.Collection[plain]) error {
			_, err := c.Put(ctx, &plain{id, "bob"}, jay.WithMetadata([]byte(`{"k":1}`)))
			return err
		}},
		{"twice in a transaction", both, func(db *jay.DB, c *jay.Collection[plain]) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := c.In(tx).Put(ctx, &plain{id, "ann"}); err != nil {
					return err
				}
				_, err := c.In(tx).Put(ctx, &plain{id, "bob"})
				return err
			})
		}},
		{"patched in a transaction", both, func(db *jay.DB, c *jay.Collection[plain]) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := c.In(tx).Put(ctx, &plain{id, "ann"}); err != nil {
					return err
				}
				_, err := c.In(tx).Patch(ctx, id, jay.Set("Owner", "bob"))
				return err
			})
		}},
		{"patched in a transaction without an expiry", `{"@refresh":"2026-11-21T12:30:00.0000000Z"}`, func(db *jay.DB, c *jay.Collection[plain]) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := c.In(tx).Put(ctx, &plain{id, "ann"}); err != nil {
					return err
				}
				_, err := c.In(tx).Patch(ctx, id, jay.Set("Owner", "bob"), jay.ExpiresAt(time.Time{}))
				return err
			})
		}},
		{"read in a transaction", both, func(db *jay.DB, c *jay.Collection[plain]) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := c.In(tx).Put(ctx, &plain{id, "bob"}); err != nil {
					return err
				}
				doc, err := tx.Get(ctx, id)
				must(t, err)
				equal(t, string(doc.Metadata().Custom), both)
				for doc, err := range tx.Documents(ctx, jay.Scan{Prefix: "plain"}) {
					must(t, err)
					equal(t, string(doc.Metadata().Custom), both)
				}
				n, err := c.In(tx).Query().Where(jay.Exists("@metadata.@expires")).Count(ctx)
				equal(t, n, 1)
				return err
			})
		}},
		{"deleted before in a transaction", "", func(db *jay.DB, c *jay.Collection[plain]) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if err := c.In(tx).Delete(ctx, id); err != nil {
					return err
				}
				_, err := c.In(tx).Put(ctx, &plain{id, "bob"})
				return err
			})
		}},
		{"session", both, func(db *jay.DB, _ *jay.Collection[plain]) error {
			s := db.OpenSession(jay.WithCollections(collectionOf[plain](t, db, named)))
			v, err := jay.Load[plain](ctx, s, id)
			must(t, err)
			v.Owner = "bob"
			return s.SaveChanges(ctx)
		}},
		{"session that has not loaded it", both, func(db *jay.DB, _ *jay.Collection[plain]) error {
			s := db.OpenSession(jay.WithCollections(collectionOf[plain](t, db, named)))
			must(t, s.Store(ctx, &plain{id, "bob"}))
			return s.SaveChanges(ctx)
		}},
		{"BulkStore", both, func(db *jay.DB, c *jay.Collection[plain]) error {
			w, err := db.BulkInsert(nil)
			must(t, err)
			return errors.Join(c.BulkStore(ctx, w, &plain{id, "bob"}), w.Close())
		}},
		{"JSON", "", func(db *jay.DB, _ *jay.Collection[plain]) error {
			_, err := db.Put(ctx, id, []byte(`{"Owner":"bob"}`))
			return err
		}},
		{"all custom metadata", "", func(db *jay.DB, _ *jay.Collection[plain]) error {
			type all struct {
				ID, Owner string
				Meta      map[string]any `jay:"metadata"`
			}
			_, err := collectionOf[all](t, db, named).Put(ctx, &all{ID: id, Owner: "bob"})
			return err
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db, _ := expiring(t, false)
			tickets := collectionOf[plain](t, db, named)
			_, err := tickets.Put(ctx, &plain{id, "old"}, jay.ExpiresAt(at), jay.RefreshAt(at.Add(-30*time.Minute)))
			must(t, err)
			must(t, test.write(db, tickets))
			equal(t, custom(t, db, id), test.want)
			got, err := tickets.Get(ctx, id)
			must(t, err)
			equal(t, got.Owner, "bob")
			swept(t, db, 0, 0)
		})
	}
}

// Ensure that a transaction which has put a value keeps the expiry that another writer has given the document
// meanwhile, and that one which has seen the expiry conflicts.
func TestExpires_KeptMeanwhile(t *testing.T) {
	db, clock := expiring(t, false)
	tickets := collectionOf[plainTicket](t, db)
	const id = "plaintickets/1"
	_, err := tickets.Put(ctx, &plainTicket{id, "old"}, jay.WithTTL(time.Hour))
	must(t, err)
	meanwhile := func(look bool) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tickets.In(tx).Put(ctx, &plainTicket{id, "bob"}); err != nil {
				return err
			}
			if look {
				if _, err := tx.Get(ctx, id); err != nil {
					return err
				}
			}
			_, err := tickets.Patch(ctx, id, jay.ExpiresAt(clock.Now().Add(time.Minute)))
			must(t, err)
			return nil
		})
	}
	must(t, meanwhile(false))
	equal(t, custom(t, db, id), `{"@expires":"2026-11-21T12:01:00.0000000Z"}`)
	_, err = tickets.Patch(ctx, id, jay.ExpiresAt(clock.Now().Add(time.Hour)))
	must(t, err)
	if err := meanwhile(true); !errors.As(err, new(*jay.ConflictError)) {
		t.Errorf("got %v, want a conflict", err)
	}

	// A document that had no expiry is given one while a transaction patches what it has put.
	_, err = tickets.Patch(ctx, id, jay.ExpiresAt(time.Time{}))
	must(t, err)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		must(t, second(tickets.In(tx).Put(ctx, &plainTicket{id, "bob"})))
		must(t, second(tickets.In(tx).Patch(ctx, id, jay.Set("Owner", "cyd"))))
		must(t, second(tickets.Patch(ctx, id, jay.ExpiresAt(clock.Now().Add(time.Minute)))))
		return nil
	}))
	equal(t, custom(t, db, id), `{"@expires":"2026-11-21T12:01:00.0000000Z"}`)
	swept(t, db, 0, 0)
}

// Ensure that tags for an expiry which make no sense are refused.
func TestExpires_Refused(t *testing.T) {
	db := memory(t, nil)
	for name, err := range map[string]error{
		"text": kept(jay.CollectionOf[struct {
			ID string
			T  string `jay:"expires"`
		}](db, jay.Named("X"))),
		"two": kept(jay.CollectionOf[struct {
			ID   string
			T, U time.Time `jay:"expires"`
		}](db, jay.Named("X"))),
		"all custom metadata": kept(jay.CollectionOf[struct {
			ID string
			M  map[string]any `jay:"metadata"`
			T  time.Time      `jay:"expires"`
		}](db, jay.Named("X"))),
	} {
		if !errors.Is(err, jay.ErrType) {
			t.Errorf("%s: got %v, want ErrType", name, err)
		}
	}
}

type (
	taggedBase struct{ Until, Sold time.Time }
	taggedID   struct {
		Key string `jay:"id"`
	}
	taggedUntil struct {
		Until time.Time `jay:"expires"`
	}
	taggedMore struct {
		Version string `jay:"version"`
	}
	taggedMeta struct {
		Source string `jay:"metadata=Source"`
	}
	taggedTree struct {
		ID    string    `jay:"id"`
		Until time.Time `jay:"expires"`
		Next  []*taggedTree
	}
	taggedOwn struct {
		taggedUntil
		ID     string
		Before taggedUntil
	}
)

// Ensure that a tag for the ID, the version or metadata is refused on a field that does not hold it.
func TestCollectionOf_TagsOfOtherFields(t *testing.T) {
	db := memory(t, nil)
	for name, err := range map[string]error{
		"Until of a nested struct": kept(jay.CollectionOf[struct {
			ID     string
			Nested taggedUntil
		}](db, jay.Named("X"))),
		"Until of a pointer": kept(jay.CollectionOf[struct {
			ID     string
			Nested *taggedUntil
		}](db, jay.Named("X"))),
		"Key of a list": kept(jay.CollectionOf[struct {
			ID     string
			Nested []taggedID
		}](db, jay.Named("X"))),
		"Source of a map": kept(jay.CollectionOf[struct {
			ID     string
			Nested map[string][]*taggedMeta
		}](db, jay.Named("X"))),
		"Version two levels down": kept(jay.CollectionOf[struct {
			ID     string
			Nested struct{ More taggedMore }
		}](db, jay.Named("X"))),
		"Key behind an embedded pointer": kept(jay.CollectionOf[struct {
			ID string
			*taggedID
		}](db, jay.Named("X"))),
		"Key of an embedded struct with a name": kept(jay.CollectionOf[struct {
			ID       string
			taggedID `json:"inner"`
		}](db, jay.Named("X"))),
		"Until that is hidden": kept(jay.CollectionOf[struct {
			ID    string
			Until string
			taggedUntil
		}](db, jay.Named("X"))),
		"Key beside another": kept(jay.CollectionOf[struct {
			Other string `jay:"id"`
			taggedID
		}](db, jay.Named("X"))),
	} {
		field, _, _ := strings.Cut(name, " ")
		if !errors.Is(err, jay.ErrType) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v, want ErrType that names the field", name, err)
		}
	}

	// An embedded struct has fields of the struct itself, and a type that holds values of its own type says it for
	// these, too.
	for name, err := range map[string]error{
		"embedded": kept(jay.CollectionOf[struct {
			taggedID
			taggedUntil
			taggedMore
			Nested taggedBase
		}](db, jay.Named("X"))),
		"a tree":              kept(jay.CollectionOf[taggedTree](db)),
		"embedded and nested": kept(jay.CollectionOf[taggedOwn](db)),
		"an option": kept(jay.CollectionOf[struct {
			Key   string `jay:"id"`
			Other string
		}](db, jay.Named("X"), jay.WithIDField("Other"))),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that what a revision reverts to has the expiry that the revision had, and that a value put over it
// keeps that one.
func TestExpires_Reverted(t *testing.T) {
	db, clock := expiring(t, false)
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	tickets := collectionOf[ticket](t, db)
	v := &ticket{ID: "tickets/1", Until: clock.Now().Add(time.Hour)}
	first, err := tickets.Put(ctx, v)
	must(t, err)
	v.Until = time.Time{}
	_, err = tickets.Put(ctx, v)
	must(t, err)
	_, err = db.Revisions().Revert(ctx, v.ID, first.ChangeVector)
	must(t, err)
	equal(t, custom(t, db, v.ID), ticketUntil)
	_, err = collectionOf[plainTicket](t, db, jay.Named("Tickets")).Put(ctx, &plainTicket{v.ID, "bob"})
	must(t, err)
	equal(t, custom(t, db, v.ID), ticketUntil)
	swept(t, db, 0, 0)
}

// Ensure that a batch takes values of several collections among JSON, that each value has afterwards what its write
// made, and that a batch which fails changes nothing.
func TestBatchOf(t *testing.T) {
	db := memory(t, nil)
	payments, tickets := collectionOf[payment](t, db), collectionOf[ticket](t, db)
	must(t, second(tickets.Insert(ctx, &ticket{ID: "tickets/old"})))
	must(t, second(payments.Insert(ctx, &payment{ID: "payments/there", Cents: 1})))
	pay, there := &payment{Cents: 5}, &payment{ID: "payments/there", Cents: 7}
	one, many := &ticket{Owner: "ann"}, make([]*payment, 40)
	for i := range many {
		many[i] = &payment{Cents: int64(i)}
	}
	var patched jay.PatchResult
	fill := func(b *jay.Batch) {
		t.Helper()
		must(t, payments.InBatch(b).Insert(ctx, pay))
		b.Put("raw", []byte(`{}`))
		must(t, payments.InBatch(b).Replace(ctx, there))
		must(t, tickets.InBatch(b).Put(ctx, one, jay.ExpiresAt(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))))
		must(t, tickets.InBatch(b).Delete("tickets/old"))
		must(t, payments.InBatch(b).Patch("payments/there", jay.Increment("Cents", 1), jay.ReturningPatch(&patched)))
		for _, v := range many {
			must(t, payments.InBatch(b).Insert(ctx, v))
		}
	}
	var b jay.Batch
	fill(&b)
	pay.Cents = 500 // the batch has encoded it
	b.Insert("raw", []byte(`{}`))
	if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrExists) {
		t.Fatalf("got %v, want ErrExists", err)
	}
	if pay.ID+pay.Version+one.ID != "" || !one.Until.IsZero() {
		t.Errorf("after a failure the values have %+v %+v", pay, one)
	}
	pay.Cents = 5
	b.Reset()
	fill(&b)
	results, err := db.Apply(ctx, &b, jay.RequestID("r"))
	must(t, err)
	equal(t, len(results), b.Len())
	check := func(pay, there *payment, one *ticket) {
		t.Helper()
		equal(t, pay.ID, results[0].ID)
		equal(t, pay.Version, results[0].ChangeVector)
		equal(t, there.Version, results[2].ChangeVector)
		equal(t, one.ID, results[3].ID)
	}
	check(pay, there, one)
	equal(t, one.Until.Year(), 2030)
	equal(t, patched.Status, jay.PatchPatched)
	equal(t, body(t, db, pay.ID), `{"Account":"","Cents":5}`)
	equal(t, body(t, db, "payments/there"), `{"Account":"","Cents":8}`)
	for i, v := range many {
		equal(t, body(t, db, v.ID), string(jsonOf(t, map[string]any{"Account": "", "Cents": i})))
	}
	if found, err := db.Exists(ctx, "tickets/old"); found || err != nil {
		t.Errorf("the deleted ticket: %v %v", found, err)
	}

	// The same again, in values of another process.
	count := func() int64 {
		t.Helper()
		n, err := payments.Query().Count(ctx) // etags of ranges may come at any time
		must(t, err)
		return n
	}
	before := count()
	pay, there, one = &payment{Cents: 5}, &payment{ID: "payments/there", Cents: 7}, &ticket{Owner: "ann"}
	for i := range many {
		many[i] = &payment{Cents: int64(i)}
	}
	b.Reset()
	fill(&b)
	must(t, second(db.Apply(ctx, &b, jay.RequestID("r"))))
	check(pay, there, one)
	equal(t, many[39].ID, results[len(results)-1].ID)
	equal(t, count(), before)

	// In a transaction the commit sets the values.
	b.Reset()
	late := &payment{Cents: 9}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		must(t, payments.In(tx).InBatch(&b).Insert(ctx, late))
		_, err := tx.Apply(ctx, &b)
		equal(t, late.ID, "")
		return err
	}))
	got, err := payments.Get(ctx, late.ID)
	must(t, err)
	equal(t, got.Version, late.Version)

	// What is refused is not added.
	b.Reset()
	for name, err := range map[string]error{
		"nil":              payments.InBatch(&b).Insert(ctx, nil),
		"no batch":         payments.InBatch(nil).Put(ctx, late),
		"Replace without":  payments.InBatch(&b).Replace(ctx, &payment{}),
		"delete, no batch": payments.InBatch(nil).Delete("x"),
	} {
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: got %v, want ErrUsage", name, err)
		}
	}
	equal(t, b.Len(), 0)
	must(t, payments.InBatch(&b).Delete(one.ID)) // of another collection
	if _, err := db.Apply(ctx, &b); !errors.As(err, new(*jay.CollectionError)) {
		t.Errorf("got %v, want a *CollectionError", err)
	}
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return text
}
