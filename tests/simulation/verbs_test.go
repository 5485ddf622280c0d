package simulation_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// verb is a kind of step.
type verb struct {
	name   string
	weight int
	do     func(w *world)
	waits  bool     // it lets time pass
	not    []string // worlds that do not have it
	only   string   // the one world that has it, or ""
}

// in reports whether a world has the verb.
func (v verb) in(world string) bool {
	return !slices.Contains(v.not, world) && (v.only == "" || v.only == world)
}

// Worlds that lack some verbs: a shared store refuses them, and members agree on what these are about.
var (
	notShared  = []string{shared}
	notMembers = []string{members}
)

// verbs are all of them.
var verbs []verb

func init() {
	verbs = []verb{
		{name: "put", weight: 30, do: put},
		{name: "insert", weight: 10, do: insert},
		{name: "replace", weight: 8, do: replace},
		{name: "typed", weight: 8, do: typed},
		{name: "delete", weight: 12, do: remove},
		{name: "patch", weight: 15, do: patch},
		{name: "odd number", weight: 3, do: oddNumber},
		{name: "make an ID", weight: 20, do: makeID},
		{name: "next identity", weight: 4, do: nextIdentity, not: notMembers},
		{name: "tamper with HiLo", weight: 2, do: tamper},
		{name: "raise counters", weight: 2, do: raise, not: []string{shared, members}},
		{name: "batch", weight: 8, do: batch},
		{name: "transaction", weight: 8, do: transaction},
		{name: "bulk insert", weight: 3, do: bulkInsert},
		{name: "session", weight: 6, do: session},
		{name: "exchange", weight: 8, do: exchangeValue, not: notMembers},
		{name: "attach", weight: 8, do: attach},
		{name: "detach", weight: 4, do: detach},
		{name: "get", weight: 10, do: get},
		{name: "query", weight: 15, do: query},
		{name: "rows", weight: 10, do: rows},
		{name: "groups", weight: 8, do: groups},
		{name: "search", weight: 8, do: search},
		{name: "ask for places", weight: 8, do: askPlaces},
		{name: "ask for vectors", weight: 8, do: askVectors},
		{name: "create index", weight: 4, do: createIndex},
		{name: "drop index", weight: 2, do: dropIndex},
		{name: "computed index", weight: 3, do: computedIndex},
		{name: "ask computed indexes", weight: 6, do: askComputed},
		{name: "rename collection", weight: 3, do: renameCollection, not: notShared},
		{name: "drop collection", weight: 2, do: dropCollection},
		{name: "delete by query", weight: 2, do: deleteByQuery},
		{name: "patch by query", weight: 3, do: patchByQuery},
		{name: "set a rule", weight: 3, do: setRule, waits: true},
		{name: "remove the rule", weight: 1, do: removeRule},
		{name: "write by the rule", weight: 10, do: writeForm},
		{name: "report on the rule", weight: 3, do: reportRule, waits: true},
		{name: "live query", weight: 8, do: liveQuery, waits: true, not: []string{shared, members}},
		{name: "follow", weight: 6, do: follow},
		{name: "work", weight: 6, do: work, not: notShared},
		{name: "open feed", weight: 4, do: readOn, waits: true, not: []string{shared, members}},
		{name: "drop subscription", weight: 4, do: dropSubscription, not: notShared},
		{name: "time passes", weight: 6, do: timePasses, waits: true},
		{name: "clock is set", weight: 1, do: setClock},
		{name: "flush", weight: 3, do: flush},
		{name: "compact", weight: 1, do: compact},
		{name: "back up", weight: 4, do: backUp},
		{name: "restore", weight: 2, do: restore, not: notMembers},
		{name: "checkpoint", weight: 2, do: checkpoint, not: []string{shared, members}},
		{name: "upgrade", weight: 1, do: upgrade},
		{name: "verify", weight: 1, do: func(w *world) { w.verify(w.db) }},
		{name: "look", weight: 4, do: lookInto, not: notShared},
		{name: "standby", weight: 6, do: stand, waits: true, not: []string{shared, members}},
		{name: "standby is cut off", weight: 3, do: cutOffStandby, not: []string{shared, members}},
		{name: "standby is killed", weight: 3, do: killStandby, not: []string{shared, members}},
		{name: "promote", weight: 2, do: promote, not: []string{shared, members}},
		{name: "follow in vain", weight: 1, do: standbyRefused, not: []string{machine, serving}},
	}
	for _, v := range served {
		v.only = serving
		verbs = append(verbs, v)
	}
	for _, v := range clustered {
		v.only = members
		verbs = append(verbs, v)
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
	"w":  {Name: "w", Fields: []string{"w as utc", "a"}},
	"g":  {Name: "g", Kind: "groups", Fields: []string{"a"}, Options: map[string]string{"sums": "n, n * 0.25"}},
	"x":  {Name: "x", Kind: "text", Fields: []string{"t"}},
	"p":  {Name: "p", Kind: "places", Fields: []string{spot}},
	"v":  {Name: "v", Kind: "vectors", Fields: []string{"t"}, Options: map[string]string{"dimensions": "1", "metric": "euclidean", "strict": "no"}},
	"aw": {Name: "aw", Fields: []string{"a"}, Where: "w as utc >= '" + noon + "'"},
}

// when is an instant as a text of documents has it.
type when struct {
	text string
	utc  string // of a text that counts as UTC where it names no offset; "" for none
}

// whens are texts with and without an offset, some of the same instant, and some that are no instants. The first is that of a
// document without one.
var whens = []when{
	{},
	{"2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"},
	{noon, "2026-03-01T12:00:00Z"},
	{"2026-03-01 12:00:00", "2026-03-01T12:00:00Z"},
	{"2026-03-01T14:00:00+02:00", "2026-03-01T12:00:00Z"},
	{"2026-03-01T12:00:00-01:00", "2026-03-01T13:00:00Z"},
	{"2026-03-01 11:59:59", "2026-03-01T11:59:59Z"},
	{"2026-03-01T11:59:59.999Z", "2026-03-01T11:59:59.999Z"},
	{"1999-12-31T23:59:59", "1999-12-31T23:59:59Z"},
	{text: "at noon"},
}

const noon = "2026-03-01T12:00:00"

// offset reports whether the text is an instant without a rule that says so: it names its offset.
func (one when) offset() bool {
	return len(one.text) > len(noon) && one.text[10] == 'T' && one.utc != ""
}

// instant returns the instant of a document as a text that sorts as it does, or "".
func (d *doc) instant() string { return strings.Replace(whens[d.when].utc, "Z", "", 1) }

var (
	texts = []string{"", "red", "Red", "green", "blue", "AACAPw", "AAAAwA", "AAAAQQ"}
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
	if w.intn(6) == 0 {
		id = texts[1+w.intn(len(texts)-1)] // so that a text names a document
	}
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
	if w.intn(2) == 0 {
		d.when = w.intn(len(whens))
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

func second[T any](_ T, err error) error { return err }
