package simulation_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

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

func put(w *world) {
	id, key, old, collection := w.target()
	to := w.fresh(id, collection, old)
	opts, want := w.writeOptions(old, to)
	if want == nil && w.model.taken(collection, to.u, key) {
		want = jay.ErrUnique
	}
	fmt.Fprintf(w.log, "%v. ", to)
	r := w.requestID()
	opts = append(opts, jay.InCollection(collection))
	for _, option := range r {
		opts = append(opts, option)
	}
	w.once(r, key, to, want, func() (jay.Metadata, error) { return w.db.Put(ctx, id, to.body(), opts...) })
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
	r, opts := w.requestID(), []jay.WriteOption{jay.InCollection(collection)}
	for _, option := range r {
		opts = append(opts, option)
	}
	w.once(r, key, to, want, func() (jay.Metadata, error) { return w.db.Insert(ctx, id, to.body(), opts...) })
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
	r := w.requestID()
	for _, option := range r {
		opts = append(opts, option)
	}
	w.once(r, key, to, want, func() (jay.Metadata, error) { return w.db.Replace(ctx, id, to.body(), opts...) })
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
	switch w.intn(5) {
	case 4:
		d.when = 1 + w.intn(len(whens)-1)
		edits = append(edits, jay.Set("w", whens[d.when].text))
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
	r := w.requestID()
	for _, option := range r {
		edits = append(edits, option)
	}
	w.once(r, key, to, want, func() (jay.Metadata, error) {
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
	r, opts := w.requestID(), []jay.WriteOption{jay.InCollection("Users")}
	for _, option := range r {
		opts = append(opts, option)
	}
	w.once(r, madeKey(to.n), to, nil, func() (jay.Metadata, error) {
		if request == "hilo" {
			return w.db.Store(ctx, "Users", to.body(), opts[1:]...)
		}
		return w.db.Insert(ctx, request, to.body(), opts...)
	})
}

func nextIdentity(w *world) {
	name := []string{"users|", "orders|", "other|"}[w.intn(3)]
	w.call(&entry{}, nil, func() (func(), error) {
		n, err := w.db.NextIdentity(ctx, name)
		return func() {
			w.identity(name, n)
			fmt.Fprintf(w.log, "%s%d. ", name, n)
		}, err
	})
}

// tamper changes or deletes the document of HiLo, as a user may: no number may come again for it.
func tamper(w *world) {
	const id = "Raven/HiLo/users"
	if w.intn(2) == 0 {
		w.call(new(entry), nil, func() (func(), error) { return nil, w.db.Delete(ctx, id) })
		return
	}
	most := w.intn(100)
	fmt.Fprintf(w.log, "Max is %d. ", most)
	w.call(new(entry), nil, func() (func(), error) {
		return nil, second(w.db.Put(ctx, id, fmt.Appendf(nil, `{"Max":%d}`, most), jay.InCollection("@hilo")))
	})
}

// raise raises a counter, as an import does: etags beyond the width that they had, numbers of an identity or of HiLo.
func raise(w *world) {
	now, err := w.db.Counters(ctx)
	w.must(err)
	var c jay.Counters
	what, n := "etag", int64(0)
	switch w.intn(3) {
	case 0:
		n = max(int64(now.Etag), 1<<(8*(1+w.intn(5)))-1-int64(w.intn(3)))
		c.Etag = uint64(n)
	case 1:
		what = w.pick([]string{"users|", "orders|"})
		n = now.Identities[what] + int64(w.intn(300))
		c.Identities = map[string]int64{what: n}
	case 2:
		what = "hilo"
		n = now.HiLo["users"] + int64(w.intn(300))
		c.HiLo = map[string]int64{"users": n}
	}
	fmt.Fprintf(w.log, "%s to %d. ", what, n)
	if w.call(new(entry), nil, func() (func(), error) { return nil, w.db.RaiseCounters(ctx, c) }) {
		w.model.floor[what] = max(w.model.floor[what], n)
	}
}

// above fails if an ID that was made for a request has a number that its counter was raised beyond.
func (w *world) above(request, id string) {
	if strings.HasSuffix(request, "/") {
		request = "etag"
	}
	_, number, found := strings.Cut(id, "/")
	number, _, _ = strings.Cut(number, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if floor := w.model.floor[request]; found && floor > 0 && w.settings.mode == jay.HiLo4 && (err != nil || n <= floor) {
		w.fail("%s has the number %q, after %s was raised to %d", id, number, request, floor)
	}
}

// numbers are at the limits of what a document may hold, and those of which the exponent is beyond them.
var (
	numbers = []string{"-0", "0.10", "1E400", "1e-400", "123456789012345678901234567890", "1e999999999999999"}
	beyond  = []string{"1e1000000000000001", "-1e-1000000000000002", "12e99999999999999999999"}
)

// oddNumber puts a number into a document by a patch, or by writing it anew.
func oddNumber(w *world) {
	id, key, old, _ := w.target()
	if w.there(key) == nil {
		return
	}
	number, d := w.pick(numbers), *old
	var want [2]error // of a put and a patch
	if w.intn(3) == 0 {
		number, want = w.pick(beyond), [2]error{jay.ErrInvalidDocument, jay.ErrInvalidPatch}
	}
	w.model.serial++
	d.n, d.version = w.model.serial, ""
	to := w.after(old, &d)
	fmt.Fprintf(w.log, "%s in %v. ", number, to)
	if w.intn(2) == 0 {
		to.id, to.expires = id, time.Time{}
		body := append(append(to.body()[:len(to.body())-1], `,"x":`+number...), '}')
		w.write(key, to, want[0], func() (jay.Metadata, error) {
			return w.db.Put(ctx, id, body, jay.InCollection(to.collection))
		})
		return
	}
	w.write(key, to, want[1], func() (jay.Metadata, error) {
		result, err := w.db.Patch(ctx, id, jay.Set("n", to.n), jay.Set("x", json.RawMessage(number)))
		return result.Metadata, err
	})
}
