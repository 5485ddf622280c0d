package simulation_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// verb is a kind of step.
type verb struct {
	name        string
	weight      int
	do          func(w *world)
	waits       bool // it lets time pass
	norevisions bool // the model does not know what it does to revisions
	alone       bool // a database on a shared store refuses it
}

// verbs are all of them.
var verbs []verb

func init() {
	verbs = []verb{
		{name: "put", weight: 30, do: put},
		{name: "insert", weight: 10, do: insert},
		{name: "replace", weight: 8, do: replace},
		{name: "delete", weight: 12, do: remove},
		{name: "patch", weight: 15, do: patch},
		{name: "make an ID", weight: 20, do: makeID},
		{name: "next identity", weight: 4, do: nextIdentity},
		{name: "batch", weight: 8, do: batch},
		{name: "transaction", weight: 8, do: transaction},
		{name: "bulk insert", weight: 3, do: bulkInsert},
		{name: "session", weight: 6, do: session},
		{name: "exchange", weight: 8, do: exchangeValue},
		{name: "attach", weight: 8, do: attach},
		{name: "detach", weight: 4, do: detach},
		{name: "get", weight: 10, do: get},
		{name: "query", weight: 15, do: query},
		{name: "create index", weight: 3, do: createIndex},
		{name: "drop index", weight: 2, do: dropIndex},
		{name: "rename collection", weight: 1, do: renameCollection, norevisions: true, alone: true},
		{name: "drop collection", weight: 1, do: dropCollection},
		{name: "delete by query", weight: 1, do: deleteByQuery},
		{name: "patch by query", weight: 2, do: patchByQuery},
		{name: "follow", weight: 6, do: follow},
		{name: "time passes", weight: 6, do: timePasses, waits: true},
		{name: "clock is set", weight: 1, do: setClock},
		{name: "flush", weight: 3, do: flush},
		{name: "compact", weight: 1, do: compact},
		{name: "back up", weight: 2, do: backUp},
		{name: "restore", weight: 1, do: restore},
		{name: "checkpoint", weight: 1, do: checkpoint, alone: true},
		{name: "verify", weight: 1, do: func(w *world) { w.verify(w.db) }},
	}
}

func verbNamed(name string) int {
	for i, v := range verbs {
		if v.name == name {
			return i
		}
	}
	panic(failure{fmt.Sprintf("there is no verb %q", name)})
}

var collections = []string{"Users", "Orders", "People"}

// declarations are the indexes that there may be, by name.
var declarations = map[string]jay.Index{
	"a":  {Name: "a", Fields: []string{"a"}},
	"ta": {Name: "ta", Fields: []string{"t", "-a"}},
	"u":  {Name: "u", Fields: []string{"u"}, Unique: true},
}

var (
	texts = []string{"", "red", "Red", "green", "blue"}
	names = []string{"photo.png", "notes", "Photo-2"}
)

// someID returns the ID of a document that is there, or one that may be.
func (w *world) someID() string {
	if w.intn(3) > 0 {
		if key := w.pick(w.model.documents("")); key != "" {
			return w.model.state[key].id
		}
	}
	id := fmt.Sprintf("%s/%d", []string{"users", "orders", "x"}[w.intn(3)], w.intn(40))
	if w.intn(8) == 0 {
		id = strings.ToUpper(id)
	}
	return id
}

// fresh returns the content of a document that is about to be written, in the place of old.
func (w *world) fresh(id, collection string, old *doc) *doc {
	w.model.serial++
	d := &doc{id: id, collection: collection, n: w.model.serial, a: w.intn(8) - 1, text: texts[w.intn(len(texts))], u: -1}
	if w.intn(4) == 0 {
		d.u = w.intn(30)
	}
	return w.after(old, d)
}

// after returns d as the version behind old: with its attachments and its revisions.
func (w *world) after(old, d *doc) *doc {
	if old != nil && !old.gone {
		d.files = old.files
	}
	if w.settings.revisions {
		var before []int
		if old != nil {
			before = old.revisions
		}
		d.revisions = append([]int{d.n}, before...)
	}
	return d
}

// writeOptions returns options of a write, for the document that it finds: perhaps an expiry, and the
// version that must be there. want is the error that this version means.
func (w *world) writeOptions(old, to *doc) (opts []jay.WriteOption, want error) {
	if w.intn(6) == 0 {
		to.expires = w.now().Add(time.Duration(1+w.intn(300)) * time.Minute).UTC().Truncate(time.Second)
		opts = append(opts, jay.ExpiresAt(to.expires))
	}
	if w.intn(5) == 0 {
		version, right := "", old == nil || old.gone
		if !right && old.version != "" {
			version, right = old.version, true
		}
		if w.intn(4) == 0 {
			version, right = "A:1-AAAAAAAAAAAAAAAAAAAAAA", false
		}
		opts = append(opts, jay.IfMatch(version))
		if !right {
			want = jay.ErrConflict
		}
	}
	return opts, want
}

// there returns the document with an ID, or nil.
func (w *world) there(key string) *doc {
	if d := w.model.state[key]; d != nil && !d.gone {
		return d
	}
	return nil
}

// target returns what a write of an ID finds.
func (w *world) target() (id, key string, old *doc, collection string) {
	id = w.someID()
	key = ids.Fold(id)
	old = w.model.state[key]
	collection = collections[w.intn(2)]
	if d := w.there(key); d != nil {
		collection = d.collection
	}
	return id, key, old, collection
}

func put(w *world) {
	id, key, old, collection := w.target()
	to := w.fresh(id, collection, old)
	opts, want := w.writeOptions(old, to)
	if want == nil && w.model.taken(collection, to.u, key) {
		want = jay.ErrUnique
	}
	fmt.Fprintf(w.log, "%v. ", to)
	w.write(key, to, want, func() (jay.Metadata, error) {
		return w.db.Put(ctx, id, to.body(), append(opts, jay.InCollection(collection))...)
	})
}

func insert(w *world) {
	id, key, old, collection := w.target()
	to := w.fresh(id, collection, old)
	var want error
	switch {
	case w.there(key) != nil:
		want = jay.ErrExists
	case w.model.taken(collection, to.u, key):
		want = jay.ErrUnique
	}
	fmt.Fprintf(w.log, "%v. ", to)
	w.write(key, to, want, func() (jay.Metadata, error) {
		return w.db.Insert(ctx, id, to.body(), jay.InCollection(collection))
	})
}

func replace(w *world) {
	id, key, old, collection := w.target()
	to := w.fresh(id, collection, old)
	opts, want := w.writeOptions(old, to)
	switch {
	case want != nil:
	case w.there(key) == nil:
		want = jay.ErrNotFound
	case w.model.taken(collection, to.u, key):
		want = jay.ErrUnique
	}
	if want == jay.ErrConflict && w.there(key) == nil {
		return // which of two errors comes first is not promised
	}
	fmt.Fprintf(w.log, "%v. ", to)
	w.write(key, to, want, func() (jay.Metadata, error) { return w.db.Replace(ctx, id, to.body(), opts...) })
}

func remove(w *world) {
	id, key, old, _ := w.target()
	var opts []jay.WriteOption
	if d := w.there(key); d == nil {
		old = nil
	} else if d.version != "" && w.intn(3) == 0 {
		opts = append(opts, jay.IfMatch(d.version))
	}
	fmt.Fprintf(w.log, "%s. ", id)
	e := new(entry)
	if old != nil {
		e.changes = []change{{key, w.deletion(old)}}
	}
	w.call(e, nil, func() (func(), error) {
		return nil, w.db.Delete(ctx, id, opts...)
	})
}

func patch(w *world) {
	id, key, old, collection := w.target()
	w.model.serial++
	n := w.model.serial
	if w.there(key) == nil {
		w.call(new(entry), nil, func() (func(), error) {
			result, err := w.db.Patch(ctx, id, jay.Set("n", n))
			if err == nil && result.Status != jay.PatchNotFound {
				w.fail("patch of %s, which is not there: %s", id, result.Status)
			}
			return nil, err
		})
		fmt.Fprintf(w.log, "%s is not there. ", id)
		return
	}
	d := *old
	d.n, d.version = n, ""
	edits := []jay.PatchOption{jay.Set("n", n)}
	switch w.intn(4) {
	case 0:
		d.a = w.intn(7)
		edits = append(edits, jay.Set("a", d.a))
	case 1:
		d.a = -1
		edits = append(edits, jay.Unset("a"))
	case 2:
		if d.a >= 0 {
			d.a++
			edits = append(edits, jay.Increment("a", 1))
		}
	case 3:
		d.u = w.intn(30)
		edits = append(edits, jay.Set("u", d.u))
	}
	to := w.after(old, &d)
	var want error
	if w.model.taken(collection, to.u, key) {
		want = jay.ErrUnique
	}
	fmt.Fprintf(w.log, "%v. ", to)
	w.write(key, to, want, func() (jay.Metadata, error) {
		result, err := w.db.Patch(ctx, id, edits...)
		return result.Metadata, err
	})
}

// requests are IDs for which Jay makes others.
var requests = []string{"", "users/", "users|", "orders|", "hilo"}

// request returns one of them, in the generation of HiLo: in the older one the pipe means nothing.
func (w *world) request(requests []string) string {
	request := w.pick(requests)
	if w.settings.mode == jay.HiLo2 {
		request = strings.Replace(request, "|", "/", 1)
	}
	return request
}

func makeID(w *world) {
	request := w.request(requests)
	to := w.fresh("", "Users", nil)
	to.u, to.request = -1, request
	fmt.Fprintf(w.log, "%q for %v. ", request, to)
	w.write(madeKey(to.n), to, nil, func() (jay.Metadata, error) {
		if request == "hilo" {
			return w.db.Store(ctx, "Users", to.body())
		}
		return w.db.Insert(ctx, request, to.body(), jay.InCollection("Users"))
	})
}

func nextIdentity(w *world) {
	name := []string{"users|", "orders|", "other|"}[w.intn(3)]
	w.call(&entry{}, nil, func() (func(), error) {
		n, err := w.db.NextIdentity(ctx, name)
		return func() {
			if w.model.used[name] == nil {
				w.model.used[name] = make(map[int64]bool)
			}
			id := strings.Replace(name, "|", "/", 1) + fmt.Sprint(n)
			if w.model.used[name][n] || w.model.ever[id] {
				w.fail("identity %s gave %d twice", name, n)
			}
			w.model.used[name][n], w.model.ever[id] = true, true
			fmt.Fprintf(w.log, "%s. ", id)
		}, err
	})
}

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
			if c.to != nil && !c.to.gone {
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

func bulkInsert(w *world) {
	e := &entry{each: true}
	seen := make(map[string]bool)
	var puts []*doc
	for range 1 + w.intn(30) {
		id, key, old, collection := w.target()
		if seen[key] {
			continue
		}
		seen[key] = true
		to := w.fresh(id, collection, old)
		to.u = -1
		puts = append(puts, to)
		e.changes = append(e.changes, change{key, to})
	}
	fmt.Fprintf(w.log, "%d documents. ", len(puts))
	w.call(e, nil, func() (func(), error) {
		bulk, err := w.db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1 + w.intn(20)})
		if err != nil {
			return nil, err
		}
		for _, to := range puts {
			if _, err = bulk.Put(ctx, to.id, to.body(), jay.InCollection(to.collection)); err != nil {
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
	w.call(e, nil, func() (func(), error) {
		err := unit.SaveChanges(ctx)
		return func() {
			if added != nil {
				last := &e.changes[len(e.changes)-1]
				*last = w.learn(*last, jay.Metadata{ID: added.ID})
			}
		}, err
	})
}

func exchangeValue(w *world) {
	name := fmt.Sprintf("lock/%d", w.intn(6))
	key := exchange + name
	old := w.model.state[key]
	var index uint64
	var want error
	if old != nil {
		index = old.index
	}
	if index == 0 && old != nil { // it is not known since a crash
		x, err := w.db.CompareExchange().Get(ctx, name)
		w.must(err)
		index = x.Index
	}
	if w.intn(4) == 0 {
		index, want = index+1, jay.ErrConflict
	}
	if old != nil && w.intn(3) == 0 {
		w.call(&entry{changes: []change{{key, nil}}}, want, func() (func(), error) {
			return nil, w.db.CompareExchange().Delete(ctx, name, index)
		})
		return
	}
	w.model.serial++
	to := &doc{id: name, n: w.model.serial}
	e := &entry{changes: []change{{key, to}}}
	fmt.Fprintf(w.log, "%s = %d. ", name, to.n)
	w.call(e, want, func() (func(), error) {
		next, err := w.db.CompareExchange().Put(ctx, name, to.n, index)
		return func() {
			if next <= index {
				w.fail("%s has index %d after %d", name, next, index)
			}
			to.index = next
		}, err
	})
}

func attach(w *world) {
	key := w.pick(w.model.documents(""))
	if key == "" {
		return
	}
	old := w.model.state[key]
	w.model.serial++
	name, d := w.pick(names), *old
	d.files, d.version = maps.Clone(old.files), ""
	if d.files == nil {
		d.files = make(map[string]int)
	}
	d.files[name] = w.model.serial % 500 // some contents come twice
	to := &d
	if w.settings.revisions {
		to.revisions = append([]int{d.n}, old.revisions...)
	}
	fmt.Fprintf(w.log, "%s = %d of %s. ", name, d.files[name], old.id)
	w.call(&entry{changes: []change{{key, to}}}, nil, func() (func(), error) {
		_, err := w.db.Attachments(old.id).Put(ctx, name, strings.NewReader(content(d.files[name])))
		return nil, err
	})
}

func detach(w *world) {
	var keys []string
	for _, key := range w.model.documents("") {
		if len(w.model.state[key].files) > 0 {
			keys = append(keys, key)
		}
	}
	key := w.pick(keys)
	if key == "" {
		return
	}
	old := w.model.state[key]
	name := w.pick(slices.Sorted(maps.Keys(old.files)))
	d := *old
	d.files, d.version = maps.Clone(old.files), ""
	if delete(d.files, name); len(d.files) == 0 {
		d.files = nil
	}
	if w.settings.revisions {
		d.revisions = append([]int{d.n}, old.revisions...)
	}
	fmt.Fprintf(w.log, "%s of %s. ", name, old.id)
	w.call(&entry{changes: []change{{key, &d}}}, nil, func() (func(), error) {
		return nil, w.db.Attachments(old.id).Delete(ctx, name)
	})
}

func get(w *world) {
	id := w.someID()
	d, err := w.db.Get(ctx, id)
	want := w.there(ids.Fold(id))
	switch {
	case errors.Is(err, jay.ErrNotFound) && want == nil:
	case err != nil:
		w.fail("get %s: %v, want %v", id, err, want)
	default:
		if got := w.decode(w.db, d); !same(want, got) {
			w.fail("get %s: %v, want %v", id, got, want)
		}
	}
	fmt.Fprintf(w.log, "%v. ", want)
}

func query(w *world) {
	collection := w.pick(collections)
	q := w.db.Query(collection)
	var holds func(d *doc) bool
	switch w.intn(5) {
	case 0:
		a := w.intn(7)
		q, holds = q.Where(jay.Eq("a", a)), func(d *doc) bool { return d.a == a }
	case 1:
		lo := w.intn(7)
		hi := lo + w.intn(4)
		q, holds = q.Where(jay.Between("a", lo, hi)), func(d *doc) bool { return lo <= d.a && d.a <= hi }
	case 2:
		text := texts[1+w.intn(len(texts)-1)]
		q, holds = q.Where(jay.Eq("t", text)), func(d *doc) bool { return d.text == text }
	case 3:
		text, a := texts[1+w.intn(len(texts)-1)], w.intn(7)
		q, holds = q.Where(jay.Eq("t", text), jay.Ge("a", a)), func(d *doc) bool { return d.text == text && d.a >= a }
	case 4:
		u := w.intn(30)
		q, holds = q.Where(jay.Eq("u", u)), func(d *doc) bool { return d.u == u }
	}
	var want []string
	for _, key := range w.model.documents(collection) {
		if holds(w.model.state[key]) {
			want = append(want, key)
		}
	}
	ordered := w.intn(2) == 0
	if ordered {
		q = q.OrderBy("n")
		slices.SortFunc(want, func(x, y string) int { return w.model.state[x].n - w.model.state[y].n })
	}
	all, err := q.All(ctx)
	w.must(err)
	var got []string
	for _, d := range all {
		got = append(got, ids.Fold(d.ID()))
	}
	if !ordered {
		slices.Sort(got)
	}
	fmt.Fprintf(w.log, "%s: %d. ", q, len(want))
	if !slices.Equal(got, want) {
		w.fail("%s gives %v, want %v", q, got, want)
	}
	n, err := q.Count(ctx)
	w.must(err)
	if n != int64(len(want)) {
		w.fail("%s counts %d, want %d", q, n, len(want))
	}
}

func createIndex(w *world) {
	w.createIndex(collections[w.intn(2)], w.pick(slices.Sorted(maps.Keys(declarations))))
}

func (w *world) createIndex(collection, name string) {
	var want error
	if name == "u" && !w.model.indexes[collection]["u"] {
		seen := make(map[int]bool)
		for _, key := range w.model.documents(collection) {
			u := w.model.state[key].u
			if u >= 0 && seen[u] {
				want = jay.ErrUnique
			}
			seen[u] = true
		}
	}
	fmt.Fprintf(w.log, "%s of %s. ", name, collection)
	if w.call(new(entry), want, func() (func(), error) {
		return nil, w.db.EnsureIndex(ctx, collection, declarations[name])
	}) {
		w.index(collection, name, true)
	} else if want == nil || w.failed {
		w.unready, w.again = true, func() { w.createIndex(collection, name) }
	}
}

func dropIndex(w *world) {
	collection, name := collections[w.intn(2)], w.pick(slices.Sorted(maps.Keys(declarations)))
	var want error
	if !w.model.indexes[collection][name] {
		want = jay.ErrIndex
	}
	fmt.Fprintf(w.log, "%s of %s. ", name, collection)
	if w.call(new(entry), want, func() (func(), error) { return nil, w.db.DropIndex(ctx, collection, name) }) {
		w.index(collection, name, false)
	} else if want == nil || w.failed {
		w.unready, w.again = true, func() {
			if err := w.db.DropIndex(ctx, collection, name); err != nil && !errors.Is(err, jay.ErrIndex) {
				w.fail("drop index, again: %v", err)
			}
			w.index(collection, name, false)
		}
	}
}

func (w *world) index(collection, name string, there bool) {
	if w.model.indexes[collection] == nil {
		w.model.indexes[collection] = make(map[string]bool)
	}
	w.model.indexes[collection][name] = there
}

// hasIndexes reports whether a collection has indexes.
func (w *world) hasIndexes(collection string) bool {
	for _, there := range w.model.indexes[collection] {
		if there {
			return true
		}
	}
	return false
}

func renameCollection(w *world) {
	from, to := w.pick(collections), w.pick(collections)
	if w.renaming != nil { // it was cut off, and others are refused until it has gone on
		from, to = w.renaming[0], w.renaming[1]
		for _, key := range w.model.documents(from) {
			if w.model.taken(to, w.model.state[key].u, key) {
				return // a document that was written meanwhile is in its way
			}
		}
	} else if from == to || len(w.model.documents(from)) == 0 || len(w.model.documents(to)) > 0 || w.hasIndexes(to) {
		return
	}
	e := &entry{each: true}
	for _, key := range w.model.documents(from) {
		d := *w.model.state[key]
		d.collection, d.version = to, ""
		e.changes = append(e.changes, change{key, &d})
	}
	fmt.Fprintf(w.log, "%s is now %s. ", from, to)
	if w.call(e, nil, func() (func(), error) { return nil, second(w.db.RenameCollection(ctx, from, to)) }) {
		for name, there := range w.model.indexes[from] {
			if there {
				w.index(to, name, true)
			}
		}
		delete(w.model.indexes, from)
		w.renaming = nil
		return
	}
	w.renaming = &[2]string{from, to}
	w.unready = true
}

func second[T any](_ T, err error) error { return err }

// changeAll is a call that changes documents of a collection, each for itself.
func (w *world) changeAll(keys []string, to func(d *doc) *doc, fn func() error) bool {
	e := &entry{each: true}
	for _, key := range keys {
		e.changes = append(e.changes, change{key, to(w.model.state[key])})
	}
	fmt.Fprintf(w.log, "%d documents. ", len(keys))
	return w.call(e, nil, func() (func(), error) { return nil, fn() })
}

func dropCollection(w *world) {
	collection := w.pick(collections)
	if len(w.model.documents(collection)) == 0 && !w.hasIndexes(collection) {
		return
	}
	w.dropCollection(collection)
}

func (w *world) dropCollection(collection string) {
	fmt.Fprintf(w.log, "%s. ", collection)
	if w.changeAll(w.model.documents(collection), w.deletion, func() error { return second(w.db.DropCollection(ctx, collection)) }) {
		delete(w.model.indexes, collection)
		return
	}
	w.unready, w.again = true, func() { w.dropCollection(collection) }
}

// withA returns the documents of a collection with this a.
func (w *world) withA(collection string, a int) []string {
	keys := w.model.documents(collection)
	return slices.DeleteFunc(keys, func(key string) bool { return w.model.state[key].a != a })
}

func deleteByQuery(w *world) {
	collection, a := w.pick(collections), w.intn(7)
	w.changeAll(w.withA(collection, a), w.deletion, func() error {
		return second(w.db.Query(collection).Where(jay.Eq("a", a)).Delete(ctx))
	})
}

func patchByQuery(w *world) {
	collection, a := w.pick(collections), w.intn(7)
	text := texts[1+w.intn(len(texts)-1)]
	keys := slices.DeleteFunc(w.withA(collection, a), func(key string) bool { return w.model.state[key].text == text })
	w.changeAll(keys, func(d *doc) *doc {
		to := *d
		to.text, to.version = text, ""
		return w.after(d, &to)
	}, func() error {
		return second(w.db.Query(collection).Where(jay.Eq("a", a)).Patch(ctx, jay.Set("t", text)))
	})
}

// follow reads the change feed from where the last reader was, and compares it with what has
// changed since.
func follow(w *world) {
	if w.failed || w.cut != nil {
		return
	}
	if w.settings.relaxed { // a feed shows what is on disk
		w.must(w.db.Flush(ctx))
		w.model.sync()
	}
	last := make(map[string]jay.Change)
	var etag uint64
	for c, err := range w.db.Changes(ctx, w.feed, jay.UntilCaughtUp(), jay.WithDocuments()) {
		if errors.Is(err, jay.ErrChangesGone) && w.feed != "" {
			fmt.Fprint(w.log, "it begins again. ")
			w.feed, w.model.seen = "", make(state)
			follow(w)
			return
		}
		w.must(err)
		if c.Etag <= etag {
			w.fail("the feed goes from etag %d to %d", etag, c.Etag)
		}
		etag = c.Etag
		w.feed = c.Token()
		if c.Collection != "@hilo" {
			last[ids.Fold(c.ID)] = c
		}
	}
	keys := maps.Clone(w.model.seen)
	maps.Copy(keys, w.model.state)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		want := w.there(key)
		if strings.HasPrefix(key, exchange) || same(w.model.seen[key], w.model.state[key]) {
			continue
		}
		c, found := last[key]
		switch {
		case want == nil: // a deletion is shown, unless the reader never saw the document
			if found && !c.Deleted {
				w.fail("the feed shows %s, which is deleted", key)
			}
		case !found || c.Deleted:
			w.fail("the feed does not show %v", want)
		case decoded(w, "", "", c.Document.Body()).n != want.n:
			w.fail("the feed shows %s of %v", c.Document.Body(), want)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		if want := w.there(key); !last[key].Deleted && want == nil {
			w.fail("the feed shows %s, which is not there", key)
		}
	}
	fmt.Fprintf(w.log, "%d changes. ", len(last))
	w.model.seen = maps.Clone(w.model.state)
}

func timePasses(w *world) {
	d := []time.Duration{0, time.Minute, time.Hour, 24 * time.Hour}[w.intn(4)]
	w.offset += d
	time.Sleep(10 * time.Second) // in which all that looks at the clock does; a day has a million ticks of Pebble's
	fmt.Fprintf(w.log, "%v. ", d)
	w.due()
}

func setClock(w *world) {
	d := []time.Duration{-time.Hour, -time.Second, time.Minute, time.Hour, 1000 * time.Hour}[w.intn(5)]
	w.offset += d
	fmt.Fprintf(w.log, "by %v. ", d)
	w.due()
}

// due does what is due.
func (w *world) due() {
	e := &entry{each: true}
	for _, key := range slices.Sorted(maps.Keys(w.model.state)) {
		if to, gone := w.expired(w.model.state[key]); gone {
			e.changes = append(e.changes, change{key, to})
		}
	}
	w.call(e, nil, func() (func(), error) { return nil, second(w.db.Sweep(ctx)) })
}

func flush(w *world) {
	if w.call(new(entry), nil, func() (func(), error) { return nil, w.db.Flush(ctx) }) {
		w.model.sync()
	}
}

func compact(w *world) {
	w.call(new(entry), nil, func() (func(), error) { return nil, w.db.Compact(ctx) })
}

// kept is a chain of backups, and what must be in it.
type kept struct {
	backups []*bytes.Buffer
	last    string
	state   state
}

func backUp(w *world) {
	var opts []jay.BackupOption
	next := &kept{state: maps.Clone(w.model.state)}
	if w.backup != nil && w.intn(2) == 0 {
		opts = append(opts, jay.BackupSince(w.backup.last))
		next.backups = slices.Clone(w.backup.backups)
	}
	var b bytes.Buffer
	w.call(new(entry), nil, func() (func(), error) {
		info, err := w.db.Backup(ctx, &b, opts...)
		return func() {
			next.last = info.ID
			next.backups = append(next.backups, &b)
			w.backup = next
			w.model.sync() // a backup has what is on disk
			fmt.Fprintf(w.log, "%d documents, %d in the chain. ", info.Documents, len(next.backups))
		}, err
	})
}

func restore(w *world) {
	if w.backup == nil {
		return
	}
	w.copies++
	to := fmt.Sprint("restored", w.copies)
	options := w.copyOptions()
	options.HiLoMode = jay.HiLo4
	var streams []io.Reader
	for _, b := range w.backup.backups {
		streams = append(streams, bytes.NewReader(b.Bytes()))
	}
	w.call(new(entry), nil, func() (func(), error) {
		_, err := jay.Restore(ctx, to, jay.RestoreOptions{CopyTag: "B", Options: options}, streams...)
		if err != nil {
			return nil, err
		}
		return nil, w.compare(to, options, w.backup.state)
	})
	w.discard(to)
}

func checkpoint(w *world) {
	w.copies++
	to := fmt.Sprint("checkpoint", w.copies)
	options := w.copyOptions()
	options.ReadOnly = true
	w.call(new(entry), nil, func() (func(), error) {
		if err := w.db.Checkpoint(ctx, to); err != nil {
			return nil, err
		}
		return nil, w.compare(to, options, w.model.state)
	})
	w.discard(to)
}

// discard removes a copy, unless the disk fails.
func (w *world) discard(dir string) {
	if err := w.disk.RemoveAll(dir); !w.failed {
		w.must(err)
	}
}

// compare opens a copy of the database, and compares it with what must be in it.
func (w *world) compare(dir string, options *jay.Options, want state) error {
	db, err := jay.Open(dir, options)
	if err != nil {
		return err
	}
	want = maps.Clone(want)
	for key, d := range want { // a copy has other change vectors
		to := *d
		to.version, to.index = "", 0
		want[key] = &to
	}
	if !options.ReadOnly {
		if _, err := db.Sweep(ctx); err != nil {
			return errors.Join(err, db.Close())
		}
		w.expire(want)
	}
	difference := differ(want, w.read(db), nil)
	w.verify(db)
	if err := db.Close(); err != nil {
		return err
	}
	if difference != "" && (w.cut == nil || !w.cut.Happened()) {
		w.fail("the copy: %s", difference)
	}
	return nil
}
