package simulation_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// several returns changes of some documents, the batch that makes them, and what learns of their IDs when
// they are committed.
func (w *world) several() (*entry, *jay.Batch, func()) {
	e, b := new(entry), new(jay.Batch)
	var all []*jay.Metadata
	returning := func() jay.WriteOption {
		all = append(all, new(jay.Metadata))
		return jay.Returning(all[len(all)-1])
	}
	seen := make(map[string]bool)
	if name := w.valueName(); w.agreement == nil && w.intn(4) == 0 { // a value, together with the documents
		old := w.model.state[exchange+name]
		if old == nil || old.index != 0 {
			w.model.serial++
			index := uint64(0)
			if old != nil {
				index = old.index
			}
			e.changes = append(e.changes, change{exchange + name, &doc{id: name, n: w.model.serial}})
			b.PutCompareExchange(name, w.model.serial, index)
			all = append(all, nil)
		}
	}
	for range 1 + w.intn(6) {
		if w.intn(4) == 0 {
			to := w.fresh("", "Orders", nil)
			request := w.request([]string{"", "lots/", "lots|"}) // no other document of the batch has such an ID
			to.u, to.request = -1, request
			e.changes = append(e.changes, change{madeKey(to.n), to})
			b.Insert(request, to.body(), jay.InCollection("Orders"), returning())
			continue
		}
		id, key, old, collection := w.target()
		if seen[key] {
			continue
		}
		seen[key] = true
		if w.there(key) != nil && w.intn(3) == 0 {
			e.changes = append(e.changes, change{key, w.deletion(old)})
			b.Delete(id, returning())
			continue
		}
		to := w.fresh(id, collection, old)
		to.u = -1
		e.changes = append(e.changes, change{key, to})
		b.Put(id, to.body(), jay.InCollection(collection), returning())
	}
	for _, c := range e.changes {
		fmt.Fprintf(w.log, "%s: %v. ", c.key, c.to)
	}
	return e, b, func() {
		for i, c := range e.changes {
			if c.to != nil && !c.to.gone && all[i] != nil {
				e.changes[i] = w.learn(c, *all[i])
			}
		}
	}
}

func batch(w *world) {
	e, b, learn := w.several()
	if w.intn(4) == 0 { // one that is refused refuses all
		b.Replace("nobody/1", []byte(`{}`))
		w.call(e, jay.ErrNotFound, func() (func(), error) {
			_, err := w.db.Apply(ctx, b)
			return nil, err
		})
		return
	}
	w.call(e, nil, func() (func(), error) {
		return learn, second(w.db.Apply(ctx, b))
	})
}

// errChanged is a program's own reason to give a transaction up.
var errChanged = errors.New("it has changed its mind")

func transaction(w *world) {
	e, b, learn := w.several()
	var want error
	if w.intn(4) == 0 {
		want = errChanged
	}
	read := w.someID()
	w.call(e, want, func() (func(), error) {
		return learn, w.db.Update(ctx, func(tx *jay.Tx) error {
			d, err := tx.Get(ctx, read)
			if got := w.there(ids.Fold(read)); err == nil && (got == nil || decoded(w, "", "", d.Body()).n != got.n) || errors.Is(err, jay.ErrNotFound) && got != nil {
				w.fail("a transaction reads %s: %v, want %v", read, d, got)
			} else if err != nil && !errors.Is(err, jay.ErrNotFound) {
				return err
			}
			if _, err = tx.Apply(ctx, b); err != nil {
				return err
			}
			return want
		})
	})
}

// manyPuts draws documents to be written by one call, each by itself.
func manyPuts(w *world) *entry {
	e := &entry{each: true}
	seen := make(map[string]bool)
	for range 1 + w.intn(30) {
		id, key, old, collection := w.target()
		if seen[key] {
			continue
		}
		seen[key] = true
		to := w.fresh(id, collection, old)
		to.u = -1
		e.changes = append(e.changes, change{key, to})
	}
	fmt.Fprintf(w.log, "%d documents. ", len(e.changes))
	return e
}

func bulkInsert(w *world) {
	e := manyPuts(w)
	w.call(e, nil, func() (func(), error) {
		bulk, err := w.db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1 + w.intn(20)})
		if err != nil {
			return nil, err
		}
		for _, c := range e.changes {
			if _, err = bulk.Put(ctx, c.to.id, c.to.body(), jay.InCollection(c.to.collection)); err != nil {
				break
			}
		}
		return nil, errors.Join(err, bulk.Close())
	})
}

// User is a document of the collection Users as an entity.
type User struct {
	ID string
	N  int    `json:"n"`
	A  *int   `json:"a,omitempty"`
	T  string `json:"t,omitempty"`
	U  *int   `json:"u,omitempty"`
	W  string `json:"w,omitempty"`
}

// session changes, removes and adds entities in one unit of work.
func session(w *world) {
	users := w.model.documents("Users")
	unit := w.db.OpenSession()
	e := new(entry)
	var added *User
	for range w.intn(4) {
		key := w.pick(users)
		if key == "" || slices.ContainsFunc(e.changes, func(c change) bool { return c.key == key }) {
			continue
		}
		old := w.model.state[key]
		user, err := jay.Load[User](ctx, unit, old.id)
		if err != nil || user.N != old.n {
			w.fail("a session loads %s: %v, %v, want %v", old.id, user, err, old)
		}
		if w.intn(4) == 0 {
			w.must(unit.Delete(user))
			e.changes = append(e.changes, change{key, w.deletion(old)})
			continue
		}
		d := *old
		w.model.serial++
		d.n, d.version = w.model.serial, ""
		user.N = d.n
		if w.intn(2) == 0 {
			d.text = texts[w.intn(len(texts))]
			user.T = d.text
		}
		e.changes = append(e.changes, change{key, w.after(old, &d)})
	}
	if w.intn(2) == 0 && w.settings.mode == jay.HiLo4 { // in HiLo2 an identity may have taken the ID
		w.model.serial++
		to := &doc{collection: "Users", n: w.model.serial, a: -1, u: -1, request: "hilo"}
		added = &User{N: to.n}
		if err := unit.Store(ctx, added); err != nil {
			if !w.failed {
				w.must(err)
			}
			return // the range of HiLo numbers cannot be written
		}
		e.changes = append(e.changes, change{madeKey(to.n), w.after(nil, to)})
	}
	for _, c := range e.changes {
		fmt.Fprintf(w.log, "%s: %v. ", c.key, c.to)
	}
	save := func() bool {
		return w.call(e, nil, func() (func(), error) {
			err := unit.SaveChanges(ctx)
			return func() {
				if added != nil {
					last := &e.changes[len(e.changes)-1]
					*last = w.learn(*last, jay.Metadata{ID: added.ID})
				}
			}, err
		})
	}
	if !save() && w.failed && added == nil {
		w.retry = func() { // a session that saves again finds out whether it has
			if w.store != nil { // on which another may have changed what tells
				w.restart()
				w.must(unit.Reattach(w.db))
				if err := unit.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
					w.must(err)
					w.model.acknowledge(*e, true)
				}
				return
			}
			w.must(unit.Reattach(w.db))
			save()
		}
	}
}

// timedUser is a User with its expiry, which the type of User leaves as it is.
type timedUser struct {
	User
	Until *time.Time `json:"-" jay:"expires"`
}

// typed replaces a document of Users by a value of a Go type, with a member for the expiry or without.
func typed(w *world) {
	key := w.pick(w.model.documents("Users"))
	if key == "" {
		return
	}
	old := w.model.state[key]
	w.model.serial++
	to := *old
	to.n, to.version, to.a, to.u, to.text = w.model.serial, "", w.intn(7), -1, texts[w.intn(len(texts))]
	value := timedUser{User: User{ID: old.id, N: to.n, A: &to.a, T: to.text, W: whens[to.when].text}}
	write := func() (jay.Metadata, error) {
		all, err := jay.CollectionOf[User](w.db)
		w.must(err)
		return all.Put(ctx, &User{ID: value.ID, N: value.N, A: value.A, T: value.T, W: value.W})
	}
	if w.intn(2) == 0 {
		to.expires = time.Time{}
		if w.intn(2) == 0 {
			to.expires = w.now().Add(time.Duration(1+w.intn(300)) * time.Minute).UTC().Truncate(time.Second)
			value.Until = &to.expires
		}
		write = func() (jay.Metadata, error) {
			all, err := jay.CollectionOf[timedUser](w.db, jay.Named("Users"))
			w.must(err)
			return all.Put(ctx, &value)
		}
	}
	after := w.after(old, &to)
	fmt.Fprintf(w.log, "%v. ", after)
	w.write(key, after, nil, write)
}
