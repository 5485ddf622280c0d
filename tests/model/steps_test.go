package model_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// steps are what clients and users do to one database.
var steps = map[string]step{
	"remote fetches a range":   (*world).fetch,
	"remote draws numbers":     (*world).drawNumbers,
	"remote returns a range":   (*world).giveBack,
	"remote returns wrongly":   (*world).giveBackWrongly,
	"store":                    (*world).store,
	"local client":             (*world).drawLocally,
	"identity":                 (*world).identity,
	"next identity":            (*world).nextIdentity,
	"seed identity":            (*world).seedIdentity,
	"force an identity":        (*world).forceIdentity,
	"raise counters":           (*world).raiseCounters,
	"server-side":              (*world).serverSide,
	"batch":                    (*world).batch,
	"write an ID by hand":      (*world).writeByHand,
	"delete":                   (*world).remove,
	"tamper with a HiLo count": (*world).tamper,
	"server prefix":            (*world).setServerPrefix,
	"reopen":                   (*world).reopen,
}

func nothing() {}

// names are the collections, tags and counters, in the casings that the
// clients write them in.
var names = map[string][]string{
	"users":  {"users", "Users", "USERS"},
	"orders": {"orders", "ORDERS"},
}

// drawName returns a name and one of its casings.
func drawName(t *rapid.T) (name, spelled string) {
	name = rapid.SampledFrom([]string{"users", "users", "orders"}).Draw(t, "name")
	return name, rapid.SampledFrom(names[name]).Draw(t, "spelled")
}

// near returns a number that a client is close to using: of a range that was
// granted, or a little above all that were handed out.
func (w *world) near(t *rapid.T, name string) int64 {
	top := int64(0)
	for key := range w.m.drawn {
		if key.tag == name && key.node == w.tag {
			top = max(top, key.n)
		}
	}
	if granted := w.granted[name]; len(granted) > 0 && rapid.Bool().Draw(t, "of a range") {
		g := rapid.SampledFrom(granted).Draw(t, "range")
		top = rapid.SampledFrom([]int64{g.r.Low - 1, g.next, g.claim, g.r.High}).Draw(t, "where")
	}
	return min(top, 1<<62) + rapid.Int64Range(0, 4).Draw(t, "above")
}

// client returns a client, perhaps a new one.
func (w *world) client(t *rapid.T) *remote {
	i := rapid.IntRange(0, 3).Draw(t, "client")
	if i < len(w.clients) {
		return w.clients[i]
	}
	c := &remote{name: fmt.Sprintf("client %s%d", w.tag, len(w.clients))}
	c.tag, c.last.Tag = drawName(t)
	c.last.Separator = rapid.SampledFrom([]string{"", "/", "-"}).Draw(t, "separator")
	w.clients = append(w.clients, c)
	return c
}

// holder returns a client that holds a range, if there is one.
func (w *world) holder(t *rapid.T) *remote {
	var holders []*remote
	for _, c := range w.clients {
		if len(c.open) > 0 {
			holders = append(holders, c)
		}
	}
	if len(holders) == 0 {
		return w.client(t)
	}
	return rapid.SampledFrom(holders).Draw(t, "holder")
}

// fetch is a client that asks for a range, honestly or not. If the reply is
// lost, the range has no owner.
func (w *world) fetch(t *rapid.T) func() {
	c := w.client(t)
	req := c.last
	switch rapid.SampledFrom([]string{"honest", "honest", "forgetful", "hostile"}).Draw(t, "it is") {
	case "forgetful":
		req.LastSize, req.LastRangeAt, req.LastMax = 0, time.Time{}, 0
	case "hostile":
		now := w.m.clock.Now()
		req.LastSize = rapid.SampledFrom([]int64{-5, 33, 1 << 40, math.MinInt64, math.MaxInt64}).Draw(t, "size")
		req.LastRangeAt = rapid.SampledFrom([]time.Time{{}, now, now.Add(-time.Minute), now.Add(900 * time.Hour)}).Draw(t, "at")
		req.LastMax = rapid.SampledFrom([]int64{-1, 0, 7, 1 << 39, math.MaxInt64, w.near(t, c.tag)}).Draw(t, "max")
	}
	lost := rapid.IntRange(0, 3).Draw(t, "lost") == 3

	r, err := w.db.NextRange(ctx, req)
	switch {
	case errors.Is(err, jay.ErrLeadTooLarge) && req.LastMax != c.last.LastMax:
		return nothing
	case w.cannotGrant(err):
		return nothing
	case err != nil:
		t.Fatalf("%s: %v", c.name, err)
	}
	return func() {
		clear(w.loose) // a grant is synced, and so is all before it
		if lost {
			return
		}
		g := &grant{tag: c.tag, r: r, byWhom: c.name, next: r.Low, claim: r.High}
		w.grants(t, g)
		c.open = append(c.open, g)
		c.last.LastSize, c.last.LastRangeAt, c.last.LastMax = r.Size, r.GrantedAt, max(c.last.LastMax, r.High)
	}
}

// drawNumbers is a client that uses numbers of its oldest range, and may
// insert a document under the last of them.
func (w *world) drawNumbers(t *rapid.T) func() {
	c := w.holder(t)
	id := ""
	for range rapid.IntRange(1, 40).Draw(t, "numbers") {
		i := slices.IndexFunc(c.open, func(g *grant) bool { return g.next <= g.claim })
		if i < 0 {
			break
		}
		g := c.open[i]
		w.draw(t, c.tag, g.next, c.name, g)
		id = fmt.Sprintf("%s%d-%s", g.r.Prefix, g.next, g.r.NodeTag)
		g.next++
	}
	if id == "" || rapid.Bool().Draw(t, "only draws") {
		return nothing
	}

	body := w.body()
	m, err := w.db.Insert(ctx, id, body, jay.InCollection("Users"))
	if err != nil && !errors.Is(err, jay.ErrExists) {
		t.Fatalf("%s: %v", c.name, err)
	}
	return func() {
		if err == nil {
			w.acknowledged(t, m)
			w.madeDocument(t, m, body)
		} else if _, found := w.docs[ids.Fold(id)]; !found {
			t.Fatalf("%s: %v, but it does not", c.name, err)
		}
	}
}

// giveBack is a client that returns its newest range, or one that it has
// returned before: it may not have heard the reply.
func (w *world) giveBack(t *rapid.T) func() {
	c := w.holder(t)
	var g *grant
	switch again := rapid.IntRange(0, 2).Draw(t, "again"); {
	case again == 2 && len(w.returned) > 0:
		g = w.returned[len(w.returned)-1-rapid.IntRange(0, len(w.returned)-1).Draw(t, "return before the last")]
	case len(c.open) > 0:
		g = c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
		w.returned = append(w.returned, g)
		g.claim = rapid.SampledFrom([]int64{g.next - 1, g.next - 1, g.r.High - (g.r.High-g.next+1)/2, g.r.High}).Draw(t, "last")
	default:
		return nothing
	}
	accepted := 0
	for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "times") {
		ok, err := w.db.ReturnRange(ctx, g.tag, g.claim, g.r.High)
		if err != nil {
			t.Fatalf("%s: %v", g.byWhom, err)
		}
		if ok {
			accepted++
		}
	}
	return func() {
		if accepted == 0 {
			return
		}
		if g.taken || accepted > 1 {
			t.Fatalf("%s: the return of %d..%d was accepted twice", g.byWhom, g.r.Low, g.r.High)
		}
		g.taken = true
		clear(w.loose)
	}
}

// giveBackWrongly is a return that must not be accepted. One that claims the
// range of another client is none: the end of a range is the proof of who
// holds it.
func (w *world) giveBackWrongly(t *rapid.T) func() {
	known := slices.Clone(w.void)
	for _, name := range []string{"orders", "users"} {
		known = append(known, w.granted[name]...)
	}
	if len(known) == 0 {
		return nothing
	}
	i := rapid.IntRange(0, len(known)-1).Draw(t, "range")
	g := known[i]
	tag, last := g.tag, g.claim
	wrong := rapid.SampledFrom([]string{"high", "low", "very low", "tag"}).Draw(t, "wrong")
	switch {
	case i < len(w.void): // the range is the original's
	case wrong == "high":
		last = g.r.High + 1
	case wrong == "low":
		last = g.r.Low - 2
	case wrong == "very low":
		last = -1
	case wrong == "tag":
		tag = "nobody"
	}
	accepted, err := w.db.ReturnRange(ctx, tag, last, g.r.High)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if accepted {
			t.Fatalf("%s: return of %s to %d was accepted, the range is %d..%d of %s", w.tag, tag, last, g.r.Low, g.r.High, g.byWhom)
		}
	}
}

// store stores documents by the database's own client.
func (w *world) store(t *rapid.T) func() {
	name, _ := drawName(t)
	var metas []jay.Metadata
	var bodies [][]byte
	for range rapid.SampledFrom([]int{1, 1, 3, 50}).Draw(t, "documents") {
		body := w.body()
		m, err := w.db.Store(ctx, names[name][1], body)
		if w.cannotGrant(err) || errors.Is(err, jay.ErrNeedsFloor) && w.waits(name) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		metas, bodies = append(metas, m), append(bodies, body)
	}
	return func() {
		for i, m := range metas {
			w.acknowledged(t, m)
			w.stored(t, names[name][1], m, bodies[i])
		}
	}
}

// stored notes a document of the database's own client.
func (w *world) stored(t *rapid.T, collection string, m jay.Metadata, body []byte) {
	prefix := ids.Prefix(collection)
	w.drawLocal(t, ids.Fold(prefix), w.hiloNumber(t, m.ID, prefix+"/"), w.own)
	w.madeDocument(t, m, body)
}

// drawLocally draws numbers by a client of this process, perhaps a new one,
// and may insert a document under the last of them, or close the client.
func (w *world) drawLocally(t *rapid.T) func() {
	i := rapid.IntRange(0, 2).Draw(t, "local")
	if i >= len(w.locals) {
		i = len(w.locals)
		w.m.serial++
		w.locals = append(w.locals, &local{name: fmt.Sprintf("local %s%d", w.tag, w.m.serial), client: w.db.NewHiLoClient()})
	}
	l := w.locals[i]
	name, spelled := drawName(t)
	drawn, err := l.client.NextN(ctx, spelled, rapid.SampledFrom([]int{1, 1, 3, 40}).Draw(t, "numbers"))
	if err != nil && !w.cannotGrant(err) && !(errors.Is(err, jay.ErrNeedsFloor) && w.waits(name)) {
		t.Fatalf("%s: %v", l.name, err)
	}

	var m jay.Metadata
	body, inserted := w.body(), error(nil)
	insert := len(drawn) > 0 && rapid.Bool().Draw(t, "insert")
	if insert {
		m, inserted = w.db.Insert(ctx, drawn[len(drawn)-1], body, jay.InCollection("Users"))
		if inserted != nil && !errors.Is(inserted, jay.ErrExists) {
			t.Fatalf("%s: %v", l.name, inserted)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "close") == 3 {
		w.locals = slices.Delete(w.locals, i, i+1)
		if err := l.client.Close(ctx); err != nil {
			t.Fatalf("%s: close: %v", l.name, err)
		}
	}
	return func() {
		for _, id := range drawn {
			w.drawLocal(t, name, w.hiloNumber(t, id, spelled+"/"), l)
		}
		if insert && inserted == nil {
			w.acknowledged(t, m)
			w.madeDocument(t, m, body)
		} else if insert {
			if _, found := w.docs[ids.Fold(drawn[len(drawn)-1])]; !found {
				t.Fatalf("%s: %v, but it does not", l.name, inserted)
			}
		}
	}
}

// needsFloor reports whether err says that this copy's identity has no floor,
// and ends the test if it has one.
func (w *world) needsFloor(t *rapid.T, counter string, err error) bool {
	if !errors.Is(err, jay.ErrNeedsFloor) {
		return false
	}
	if _, seeded := w.floor[counter]; seeded || !w.copied {
		t.Fatalf("%s: %v, but it was seeded", w.tag, err)
	}
	return true
}

// identityRequest returns the request for an identity, as the generation that
// is open has it.
func (w *world) identityRequest(spelled string) string {
	if w.mode == jay.HiLo2 {
		return spelled + "/"
	}
	return spelled + "|"
}

func (w *world) identity(t *rapid.T) func() {
	name, spelled := drawName(t)
	body := w.body()
	m, err := w.db.Put(ctx, w.identityRequest(spelled), body, jay.InCollection("Users"))
	if w.needsFloor(t, name, err) {
		return nothing
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		w.acknowledged(t, m)
		w.usedIdentity(t, name, numberOf(t, m.ID, spelled+"/", ""))
		w.madeDocument(t, m, body)
	}
}

func (w *world) nextIdentity(t *rapid.T) func() {
	name, spelled := drawName(t)
	n, err := w.db.NextIdentity(ctx, spelled)
	if w.needsFloor(t, name, err) {
		return nothing
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		w.usedIdentity(t, name, n)
		clear(w.loose)
	}
}

// highestIdentity returns the highest number handed out.
func (w *world) highestIdentity(name string) (highest int64) {
	for n := range w.used[name] {
		highest = max(highest, n)
	}
	return highest
}

func (w *world) seedIdentity(t *rapid.T) func() {
	name, spelled := drawName(t)
	value := max(0, w.highestIdentity(name)+rapid.Int64Range(-5, 50).Draw(t, "value"))
	w.seeded[name] = true
	last, err := w.db.SeedIdentity(ctx, spelled, value, false)
	if err != nil || last < value {
		t.Fatalf("%s: seed %s to %d: %d, %v", w.tag, name, value, last, err)
	}
	return func() { w.floor[name] = max(w.floor[name], last) }
}

// forceIdentity sets an identity to any number. Those above it may come again,
// once, and no document is overwritten by it.
func (w *world) forceIdentity(t *rapid.T) func() {
	name, spelled := drawName(t)
	highest := w.highestIdentity(name)
	value := rapid.Int64Range(max(0, highest-20), highest+5).Draw(t, "value")
	w.seeded[name] = true
	w.setBack(name, value) // whether or not the power fails now
	last, err := w.db.SeedIdentity(ctx, spelled, value, true)
	if err != nil || last != value {
		t.Fatalf("%s: force %s to %d: %d, %v", w.tag, name, value, last, err)
	}
	return func() {
		w.floor[name] = value
		clear(w.loose)
	}
}

// setBack gives the numbers of an identity above value free.
func (w *world) setBack(name string, value int64) {
	maps.DeleteFunc(w.used[name], func(n int64, _ bool) bool { return n > value })
	if floor, found := w.floor[name]; found {
		w.floor[name] = min(floor, value)
	}
}

// raiseCounters says that numbers up to some were used elsewhere: none of
// them may come here any more.
func (w *world) raiseCounters(t *rapid.T) func() {
	var c jay.Counters
	if rapid.Bool().Draw(t, "etag") {
		c.Etag = w.etag + rapid.SampledFrom([]uint64{0, 1, 100, 1 << 17}).Draw(t, "above")
	}
	if rapid.Bool().Draw(t, "identity") {
		name, spelled := drawName(t)
		c.Identities = map[string]int64{spelled + "|": max(0, w.highestIdentity(name)+rapid.Int64Range(-5, 50).Draw(t, "value"))}
		w.seeded[name] = true
	}
	if rapid.Bool().Draw(t, "HiLo") {
		name, spelled := drawName(t)
		c.HiLo = map[string]int64{spelled: min(w.near(t, name), 1<<62)}
		if _, tried := w.released[name]; !tried {
			w.released[name] = false
		}
		w.huge = w.huge || c.HiLo[spelled] > 1<<50
	}
	if err := w.db.RaiseCounters(ctx, c); err != nil {
		t.Fatalf("%s: raise counters to %v: %v", w.tag, c, err)
	}
	return func() {
		w.etag = max(w.etag, c.Etag)
		for request, n := range c.Identities {
			name := strings.TrimSuffix(ids.Fold(request), "|")
			w.floor[name] = max(w.floor[name], n)
		}
		for tag, n := range c.HiLo {
			w.raised[ids.Fold(tag)] = max(w.raised[ids.Fold(tag)], n)
			w.released[ids.Fold(tag)] = true
			clear(w.loose) // it is written, and so is all before it
		}
	}
}

func (w *world) serverSide(t *rapid.T) func() {
	if w.mode == jay.HiLo2 {
		return w.identity(t) // this generation has none
	}
	_, spelled := drawName(t)
	body := w.body()
	m, err := w.db.Put(ctx, spelled+"/", body, jay.InCollection("Users"))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		w.acknowledged(t, m)
		w.madeServerSide(t, spelled, m, body)
	}
}

// madeServerSide notes a server-side document.
func (w *world) madeServerSide(t *rapid.T, spelled string, m jay.Metadata, body []byte) {
	if want := fmt.Sprintf("%s/%019d-%s", spelled, m.Etag, w.tag); m.ID != want {
		t.Fatalf("server-side ID %s, want %s", m.ID, want)
	}
	if w.m.made[ids.Fold(m.ID)] {
		t.Fatalf("%s was made twice", m.ID)
	}
	w.m.made[ids.Fold(m.ID)] = true
	w.madeDocument(t, m, body)
}

// handID returns an ID of the kind that Jay makes, close to the next one.
func (w *world) handID(t *rapid.T) string {
	name, spelled := drawName(t)
	switch rapid.SampledFrom([]string{"identity", "HiLo", "HiLo2", "server-side"}).Draw(t, "like") {
	case "identity":
		return fmt.Sprintf("%s/%d", spelled, w.highestIdentity(name)+rapid.Int64Range(0, 5).Draw(t, "above"))
	case "HiLo":
		return fmt.Sprintf("%s/%d-%s", spelled, w.near(t, name), w.tag)
	case "HiLo2":
		server := rapid.SampledFrom(serverPrefixes).Draw(t, "server prefix")
		return fmt.Sprintf("%s/%s%d", spelled, server, w.near(t, name))
	default:
		return fmt.Sprintf("%s/%019d-%s", spelled, w.etag+rapid.Uint64Range(0, 4).Draw(t, "above"), w.tag)
	}
}

func (w *world) writeByHand(t *rapid.T) func() {
	id, body := w.handID(t), w.body()
	w.loose[ids.Fold(id)] = true
	m, err := w.db.Put(ctx, id, body, jay.InCollection("Users"))
	var wrong *jay.CollectionError
	if errors.As(err, &wrong) {
		return nothing // Store put it into Orders
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		w.acknowledged(t, m)
		w.wrote(m, body)
	}
}

// drawDocument returns the ID of a document, or "" if there is none.
func (w *world) drawDocument(t *rapid.T) string {
	if len(w.docs) == 0 {
		return ""
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(w.docs))).Draw(t, "document")
}

func (w *world) remove(t *rapid.T) func() {
	id := w.drawDocument(t)
	w.loose[id] = true
	if err := w.db.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	return func() {
		delete(w.docs, id)
		w.loose[id] = true
	}
}

// batch applies writes of all kinds at once. One of them may be impossible:
// then none of them is there, and no identity is used up.
func (w *world) batch(t *rapid.T) func() {
	var b jay.Batch
	var learn []func(jay.Metadata)
	w.needed, w.waiting = "", false
	for range rapid.IntRange(1, 6).Draw(t, "writes") {
		learn = append(learn, w.addTo(t, &b))
	}
	want := w.poison(t, &b)
	before, err := w.db.Identities(ctx)
	if err != nil {
		t.Fatal(err)
	}

	metas, err := w.db.Apply(ctx, &b)
	var wrong *jay.CollectionError
	switch {
	case err == nil && want == nil:
	case err != nil && (errors.Is(err, want) || errors.As(err, &wrong) || w.cannotGrant(err) || w.waiting && errors.Is(err, jay.ErrNeedsFloor) || w.needed != "" && w.needsFloor(t, w.needed, err)):
		after, err := w.db.Identities(ctx)
		if err != nil || !maps.Equal(before, after) {
			t.Fatalf("%s: a refused batch moved the identities from %v to %v (%v)", w.tag, before, after, err)
		}
		return nothing
	default:
		t.Fatalf("%s: batch: %v, want %v", w.tag, err, want)
	}
	return func() {
		for i, m := range metas {
			learn[i](m)
		}
	}
}

// poison may add a write that cannot be, and returns its error.
func (w *world) poison(t *rapid.T, b *jay.Batch) error {
	switch rapid.SampledFrom([]string{"", "", "", "", "missing", "not JSON", "ID"}).Draw(t, "poison") {
	case "missing":
		b.Replace("no/such", []byte(`{}`))
		return jay.ErrNotFound
	case "not JSON":
		b.Put("users|", []byte(`{`))
		return jay.ErrInvalidDocument
	case "ID":
		b.Put(`a\b`, []byte(`{}`))
		return jay.ErrInvalidID
	}
	return nil
}

// addTo adds a write to a batch and returns what it teaches.
func (w *world) addTo(t *rapid.T, b *jay.Batch) func(jay.Metadata) {
	name, spelled := drawName(t)
	body := w.body()
	noting := func(learn func(m jay.Metadata)) func(jay.Metadata) {
		return func(m jay.Metadata) { w.acknowledged(t, m); learn(m) }
	}
	kind := rapid.SampledFrom([]string{"identity", "identity", "server-side", "store", "hand", "delete"}).Draw(t, "write")
	if kind == "server-side" && w.mode == jay.HiLo2 {
		kind = "identity"
	}
	switch kind {
	case "identity":
		if _, seeded := w.floor[name]; !seeded {
			w.needed = name
		}
		b.Put(w.identityRequest(spelled), body, jay.InCollection("Users"))
		return noting(func(m jay.Metadata) {
			w.usedIdentity(t, name, numberOf(t, m.ID, spelled+"/", ""))
			w.madeDocument(t, m, body)
		})
	case "server-side":
		b.Insert(spelled+"/", body, jay.InCollection("Users"))
		return noting(func(m jay.Metadata) { w.madeServerSide(t, spelled, m, body) })
	case "store":
		collection := names[name][1]
		w.waiting = w.waiting || w.waits(name)
		b.Store(collection, body)
		return noting(func(m jay.Metadata) { w.stored(t, collection, m, body) })
	case "hand":
		id := w.handID(t)
		w.loose[ids.Fold(id)] = true
		b.Put(id, body, jay.InCollection("Users"))
		return noting(func(m jay.Metadata) { w.wrote(m, body) })
	default:
		id := w.drawDocument(t)
		w.loose[id] = true
		b.Delete(id)
		return func(jay.Metadata) { delete(w.docs, id); w.loose[id] = true }
	}
}

// maxLeavingNone is a HiLo document after which no range fits. After maxHuge
// one does, but once a block of HiLo2010 has made a ServerHi of it, that means
// too much to a larger capacity.
const (
	maxLeavingNone = `{"Max":9223372036854775800}`
	maxHuge        = `{"Max":4611686018427387904}`
)

// tamper changes or deletes the document of a HiLo tag.
func (w *world) tamper(t *rapid.T) func() {
	name, spelled := drawName(t)
	id := rapid.SampledFrom([]string{"Raven/HiLo/", "Raven/HiLo/", "Raven/HiLo/", "Replication/HiLo/"}).Draw(t, "of") + spelled
	text := rapid.SampledFrom([]string{
		"delete", "delete", `{"Max":0}`, `{"Max":12}`, `{"Max":%d}`, `{"Max":%d,"Note":"mine"}`, `{"Max":%d.5}`,
		`{"Max":-5}`, `{"Max":"2000"}`, `{"Max":{}}`, `{}`, maxHuge, maxLeavingNone,
		`{"ServerHi":1}`, `{"ServerHi":5}`, `{"Max":12,"ServerHi":2}`, `{"ServerHi":%d}`,
	}).Draw(t, "text")
	if text == "delete" {
		if err := w.db.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		return nothing
	}
	w.hi = w.hi || strings.Contains(text, "ServerHi")
	if strings.Contains(text, "ServerHi") {
		text = strings.ReplaceAll(text, "%d", fmt.Sprint(min(w.near(t, name)/32, 1<<50)))
	}
	if strings.Contains(text, "%d") {
		text = fmt.Sprintf(text, w.near(t, name))
	}
	w.full, w.huge = w.full || text == maxLeavingNone, w.huge || text == maxHuge
	m, err := w.db.Put(ctx, id, []byte(text), jay.InCollection("@hilo"))
	if err != nil {
		t.Fatal(err)
	}
	return func() { w.acknowledged(t, m) }
}

// setServerPrefix is an administrator of RavenDB 2.x or 3.x, where the numbers
// of a server stand behind its name.
func (w *world) setServerPrefix(t *rapid.T) func() {
	server := rapid.SampledFrom(serverPrefixes).Draw(t, "server prefix")
	m, err := w.db.Put(ctx, "Raven/ServerPrefixForHilo", fmt.Appendf(nil, `{"ServerPrefix":%q}`, server), jay.InCollection("@hilo"))
	if err != nil {
		t.Fatal(err)
	}
	return func() { w.acknowledged(t, m) }
}

// reopen closes the database and opens it again.
func (w *world) reopen(t *rapid.T) func() {
	w.close(t)
	w.open(t)
	return func() {
		clear(w.loose)
		w.check(t, false)
	}
}
