package simulation_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

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
	switch w.intn(8) {
	case 7:
		a, since := w.intn(7), 1+w.intn(len(whens)-2)
		if !whens[since].offset() {
			since = 1
		}
		q = q.Where(jay.Eq("a", a), jay.Ge("w as date", whens[since].text))
		holds = func(d *doc) bool {
			return d.a == a && whens[d.when].offset() && d.instant() >= (&doc{when: since}).instant()
		}
	case 5:
		a, since := w.intn(7), 1+w.intn(len(whens)-2)
		q = q.Where(jay.Eq("a", a), jay.Ge("w as utc", whens[since].text))
		holds = func(d *doc) bool { return d.a == a && d.instant() >= (&doc{when: since}).instant() }
	case 6:
		at := 1 + w.intn(len(whens)-2)
		q = q.Where(jay.Eq("w as utc", whens[at].text))
		holds = func(d *doc) bool { return d.instant() == (&doc{when: at}).instant() }
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
			if before := w.model.seen[key]; found && !c.Deleted {
				w.fail("the feed shows %s, which is deleted", key)
			} else if !found && before != nil && !before.gone {
				w.fail("the feed does not show the deletion of %v", before)
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

// rows selects columns in an order, ties included, of which an index may have all.
func rows(w *world) {
	collection, least, limit := w.pick(collections), w.intn(5), 1+w.intn(20)
	direction, sign := "", 1
	if w.intn(2) == 0 {
		direction, sign = " desc", -1
	}
	keys := slices.DeleteFunc(w.model.documents(collection), func(key string) bool { return w.model.state[key].a < least })
	slices.SortFunc(keys, func(x, y string) int {
		return sign * cmp.Or(cmp.Compare(w.model.state[x].a, w.model.state[y].a), cmp.Compare(x, y))
	})
	var want, got []string
	for _, key := range keys[:min(limit, len(keys))] {
		want = append(want, fmt.Sprintf(`{"id":%q,"a":%d}`, w.model.state[key].id, w.model.state[key].a))
	}
	use := ""
	if w.model.indexes[collection]["a"] && w.intn(2) == 0 {
		use = " use index a"
	}
	text := fmt.Sprintf("from %s%s where a >= %d order by a%s select id() as id, a limit %d", collection, use, least, direction, limit)
	q, err := w.db.RQL(text, nil)
	w.must(err)
	for row, err := range q.Iter(ctx) {
		w.must(err)
		got = append(got, string(row.JSON))
	}
	fmt.Fprintf(w.log, "%s: %d. ", text, len(want))
	if !slices.Equal(got, want) {
		w.fail("%s gives %v, want %v", text, got, want)
	}
}

// groups counts and adds up documents by a member, of which an index may keep the numbers, also in a transaction that has changed some of
// them.
func groups(w *world) {
	collection, least := w.pick(collections), w.intn(5)
	use, kept := "", w.model.indexes[collection]["g"]
	if kept && w.intn(2) == 0 {
		use = " use index g"
	}
	count, sum := make(map[int]int), make(map[int]int)
	for _, key := range w.model.documents(collection) {
		if d := w.model.state[key]; d.a >= least {
			count[d.a]++
			sum[d.a] += d.n
		}
	}
	var own *doc
	if w.intn(3) == 0 { // of a transaction that is given up
		own = &doc{id: "groups/own", collection: collection, n: 1000, a: least, u: -1}
		count[own.a]++
		sum[own.a] += own.n
	}
	var want []string
	for _, a := range slices.Sorted(maps.Keys(count)) {
		want = append(want, fmt.Sprintf(`{"a":%d,"c":%d,"s":%d,"q":%s}`, a, count[a], sum[a], quarter(sum[a])))
	}
	text := fmt.Sprintf("from %s%s group by a where a >= %d order by a select a, count() as c, sum(n) as s, sum(n * 0.25) as q", collection, use, least)
	ask := func(q jay.Query[jay.Row], err error) {
		w.must(err)
		var got []string
		for row, err := range q.Iter(ctx) {
			w.must(err)
			got = append(got, string(row.JSON))
		}
		if !slices.Equal(got, want) {
			w.fail("%s gives %v, want %v", text, got, want)
		}
	}
	fmt.Fprintf(w.log, "%s: %d, kept: %v, in a transaction: %v. ", text, len(want), kept, own != nil)
	if own == nil {
		ask(w.db.RQL(text, nil))
		return
	}
	enough := errors.New("enough")
	err := w.db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, own.id, own.body(), jay.InCollection(collection)); err != nil {
			return err
		}
		ask(tx.RQL(text, nil))
		return enough
	})
	if err != enough {
		w.must(err)
		w.fail("a transaction that is given up is committed")
	}
}

// quarter returns a quarter of a number in digits.
func quarter(n int) string {
	return strings.TrimSuffix(strconv.Itoa(n/4)+[]string{"", ".25", ".5", ".75"}[n%4], ".")
}
