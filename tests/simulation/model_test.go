package simulation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// doc is a document, or a compare-exchange value, as it must be. It is immutable: a change makes another
// one.
type doc struct {
	id         string // as it was written
	collection string
	n          int            // the serial of the write: no other body has it
	a          int            // a small number, or -1 for none
	text       string         // one of a few texts, or "" for none
	u          int            // unique where the index says so, or -1 for none
	when       int            // an instant as text: a place of whens
	expires    time.Time      // or zero
	files      map[string]int // attachments: the serials of their contents
	version    string         // change vector, or "" if it is not known
	index      uint64         // of a compare-exchange value, or 0 if it is not known
	request    string         // for which Jay made its ID
	gone       bool           // it was deleted, and has revisions
	revisions  []int          // the serials of its versions, newest first; deleted for a deletion. Only if they are kept
}

// deleted stands for a deletion among revisions.
const deleted = -1

// body returns the JSON of a document.
func (d *doc) body() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"n":%d`, d.n)
	if d.a >= 0 {
		fmt.Fprintf(&b, `,"a":%d`, d.a)
	}
	if d.text != "" {
		fmt.Fprintf(&b, `,"t":%q`, d.text)
	}
	if d.u >= 0 {
		fmt.Fprintf(&b, `,"u":%d`, d.u)
	}
	if d.when > 0 {
		fmt.Fprintf(&b, `,"w":%q`, whens[d.when].text)
	}
	b.WriteString("}")
	return []byte(b.String())
}

// String is the document in words.
func (d *doc) String() string {
	if d == nil {
		return "nothing"
	}
	if d.gone {
		return fmt.Sprintf("deleted, with revisions %v", d.revisions)
	}
	text := fmt.Sprintf("%s in %s %s", d.id, d.collection, d.body())
	if !d.expires.IsZero() {
		text += " expires " + d.expires.Format(time.RFC3339)
	}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		text += fmt.Sprintf(" %s=%d", name, d.files[name])
	}
	if d.revisions != nil {
		text += fmt.Sprintf(" revisions %v", d.revisions)
	}
	return text
}

// same reports whether a document that was read is the one that must be.
func same(want, got *doc) bool {
	if want == nil || got == nil {
		return want == got
	}
	if want.gone || got.gone {
		return want.gone == got.gone && slices.Equal(want.revisions, got.revisions)
	}
	return want.id == got.id && want.collection == got.collection && want.n == got.n && want.a == got.a && want.text == got.text && want.u == got.u && want.when == got.when &&
		want.expires.Equal(got.expires) && maps.Equal(want.files, got.files) && slices.Equal(want.revisions, got.revisions) &&
		(want.version == "" || got.version == "" || want.version == got.version) && (want.index == 0 || got.index == 0 || want.index == got.index)
}

// state is all that a database must hold, by folded ID; behind exchange, compare-exchange values.
type state map[string]*doc

// exchange begins the keys of compare-exchange values. No ID begins with it.
const exchange = "cmpxchg:"

// made begins the keys of documents whose ID Jay makes, as long as it is not known. The serial follows.
const made = "made:"

func madeKey(n int) string { return fmt.Sprint(made, n) }

// change is one document that a step changes.
type change struct {
	key string
	to  *doc // nil if there is none behind it
}

// String is for the log, which is to be the same in each run of a seed: %v of the fields would show an address.
func (c change) String() string { return c.key + " to " + c.to.String() }

// entry is what one commit changes: all of it or nothing, or, with each, every change for itself.
type entry struct {
	changes []change
	each    bool
}

// model is what is known of a database.
type model struct {
	state   state   // now
	safe    state   // on disk, whatever happens
	journal []entry // between the two, in order: a loss of power may take the end of it
	indexes map[string]map[string]bool
	ever    map[string]bool // IDs that Jay has made, folded: none comes twice
	used    map[string]map[int64]bool
	floor   map[string]int64 // what a counter was raised to, by identity, "hilo" and "etag"
	seen    state            // what the reader of the feed knows
	worked  worked
	rule    ruled   // of forms
	rules   []ruled // that it may be after a loss of power
	anyRule bool    // it may be any
	serial  int
	given   map[uint64]string // indexes of compare-exchange values
}

func newModel() *model {
	return &model{
		state: make(state), safe: make(state), indexes: make(map[string]map[string]bool),
		ever: make(map[string]bool), used: make(map[string]map[int64]bool), seen: make(state), floor: make(map[string]int64),
		worked: newWorked(), given: make(map[uint64]string),
	}
}

// set puts a change into a state.
func (s state) set(c change) {
	if c.to == nil {
		delete(s, c.key)
		return
	}
	s[c.key] = c.to
}

// acknowledge notes what a call has done.
func (m *model) acknowledge(e entry, synced bool) {
	for _, c := range e.changes {
		m.state.set(c)
	}
	if !synced {
		m.journal = append(m.journal, e)
		return
	}
	m.sync()
	for _, c := range e.changes {
		m.safe.set(c)
	}
}

// sync notes that all acknowledged writes are on disk.
func (m *model) sync() {
	for _, e := range m.journal {
		for _, c := range e.changes {
			m.safe.set(c)
		}
	}
	m.journal = nil
}

// recover compares what was read after a loss of power with what may be there: the safe state, and
// a beginning of the journal, with what a step has begun at its end. It goes on with what was read.
func (m *model) recover(read state, begun *entry) error {
	entries := slices.Clone(m.journal)
	if begun != nil {
		entries = append(entries, *begun)
	}
	byN := make(map[int]string)
	for key, d := range read {
		if !strings.HasPrefix(key, exchange) && !d.gone {
			byN[d.n] = key
		}
	}
	for i := range entries { // those whose ID nobody has learned
		e := &entries[i]
		e.changes = slices.Clone(e.changes)
		for j := range e.changes {
			c := &e.changes[j]
			if key, found := byN[c.to.serial()]; strings.HasPrefix(c.key, made) && found {
				to := *c.to
				if to.id = read[key].id; m.safe[key] != nil {
					to.revisions = append(slices.Clone(to.revisions), m.safe[key].revisions...)
				}
				c.key, c.to = key, &to
			}
		}
	}
	var first string
	for k := len(entries); k >= 0; k-- {
		candidate := maps.Clone(m.safe)
		for _, e := range entries[:k] {
			for _, c := range e.changes {
				candidate.set(c)
			}
		}
		may := make(map[string][]*doc) // or one of these
		if k < len(entries) && entries[k].each {
			for _, c := range entries[k].changes {
				may[c.key] = append(may[c.key], c.to)
			}
		}
		difference := differ(candidate, read, may)
		if difference == "" {
			m.goOn(read)
			return nil
		}
		if first == "" {
			first = difference
		}
	}
	return fmt.Errorf("after the loss of power, of %d steps in doubt: %s", len(entries), first)
}

// serial returns the serial of a document, 0 for none.
func (d *doc) serial() int {
	if d == nil {
		return 0
	}
	return d.n
}

// goOn makes what was read the state: it is on disk.
func (m *model) goOn(read state) {
	m.state, m.safe, m.journal = maps.Clone(read), maps.Clone(read), nil
}

// differ says in words what is not as it must be, or "".
func differ(want, got state, may map[string][]*doc) string {
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if same(want[key], got[key]) {
			continue
		}
		if slices.ContainsFunc(may[key], func(to *doc) bool { return same(to, got[key]) }) {
			continue
		}
		return fmt.Sprintf("%s is %v, want %v", key, got[key], want[key])
	}
	return ""
}

// documents returns the keys of the documents of a collection, or of all but forms, in order.
func (m *model) documents(collection string) []string {
	var keys []string
	for key, d := range m.state {
		if !strings.HasPrefix(key, exchange) && !d.gone && (collection == "" && d.collection != forms || d.collection == collection) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// taken reports whether a unique index refuses a value.
func (m *model) taken(collection string, u int, except string) bool {
	if u < 0 || !m.indexes[collection]["u"] {
		return false
	}
	for key, d := range m.state {
		if key != except && !d.gone && !strings.HasPrefix(key, exchange) && d.collection == collection && d.u == u {
			return true
		}
	}
	return false
}
