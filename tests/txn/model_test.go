package txn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that a transaction shows its function what a plain map would, that it
// commits exactly if nothing that it read was changed, and that it then has
// the effect of its writes, one after the other, and else none.
//
//	go test -run TestTx_Model -count=1 -rapid.checks=20000 ./tests/txn
func TestTx_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, err := jaytest.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { jaytest.Verify(t, db); _ = db.Close() }()
		tagged, err := jay.CollectionOf[Tagged](db, jay.Named("Users"))
		if err != nil {
			t.Fatal(err)
		}
		m := &txModel{t: t, db: db, docs: make(map[string]modelDoc), typed: tagged}
		for range rapid.IntRange(1, 4).Draw(t, "transactions") {
			m.transaction()
			m.compare()
		}
	})
}

// modelDoc is a document of the model.
type modelDoc struct {
	body       string
	collection string
	version    string // change vector; "" of what is not committed
}

// modelOp is a write that the transaction has accepted.
type modelOp struct {
	key     string // folded; "" if the commit makes the ID
	deleted bool
	made    bool // a HiLo ID or a GUID
	doc     modelDoc
	result  *jay.Metadata
}

// txModel is the database and one transaction on it.
type txModel struct {
	t      *rapid.T
	db     *jay.DB
	docs   map[string]modelDoc // by folded ID
	serial int

	tx      *jay.Tx
	typed   *jay.Collection[Tagged]
	before  map[string]modelDoc // docs when the transaction began
	ops     []modelOp
	own     map[string]modelOp
	read    map[string]bool
	walks   []jay.Scan // folded; Collection as written
	lasts   []string   // of walks
	changed []modelChange
}

// modelChange is a write beside the transaction.
type modelChange struct{ key, collection string }

func (m *txModel) body() string { m.serial++; return fmt.Sprintf(`{"By":"%d"}`, m.serial) }

var modelKeys = []string{"users/1", "users/2", "USERS/2", "users/10", "users/1-A", "users/2-A", "x/1", "X/2", "orders/1", "orders/2"}

func (m *txModel) key() string { return rapid.SampledFrom(modelKeys).Draw(m.t, "key") }

// home is the collection that documents mostly go to.
func (m *txModel) home(key string) string {
	if rapid.IntRange(0, 15).Draw(m.t, "wrong collection") == 0 {
		return "Orders"
	}
	return collectionOfKey(ids.Fold(key))
}

// transaction runs one transaction and checks its outcome.
func (m *txModel) transaction() {
	m.before = maps.Clone(m.docs)
	m.ops, m.own, m.read = nil, make(map[string]modelOp), make(map[string]bool)
	m.walks, m.lasts, m.changed = nil, nil, nil
	giveUp := rapid.IntRange(0, 9).Draw(m.t, "give up") == 0
	err := m.db.Update(ctx, func(tx *jay.Tx) error {
		m.tx = tx
		m.t.Repeat(map[string]func(*rapid.T){
			"get":              m.get,
			"get many":         m.getMany,
			"walk":             m.walk,
			"write":            m.write,
			"write, too":       m.write,
			"make":             m.make,
			"batch":            m.batch,
			"typed":            m.readModifyWrite,
			"another writes":   m.outside,
			"typed collection": m.typedRead,
		})
		if giveUp {
			return errGivenUp
		}
		return nil
	})
	if giveUp {
		if err != errGivenUp {
			m.t.Fatalf("gave up: %v", err)
		}
		return
	}

	if len(m.ops) > 0 {
		if why := m.conflict(); why != "" {
			if !errors.Is(err, jay.ErrConflict) {
				m.t.Fatalf("%s, and Update returned %v", why, err)
			}
			return
		}
	}
	after, want := m.effect()
	if !errors.Is(err, want) || (err != nil) != (want != nil) {
		m.t.Fatalf("Update returned %v, want %v", err, want)
	}
	if err == nil {
		m.docs = after
	}
}

// conflict returns what was read and is no longer so.
func (m *txModel) conflict() string {
	for key := range m.read {
		if m.docs[key].version != m.before[key].version {
			return key + " was read and has changed"
		}
	}
	for i, s := range m.walks {
		for _, c := range m.changed {
			if inScan(s, c.key, c.collection) && (m.lasts[i] == "" || c.key <= m.lasts[i]) {
				return fmt.Sprintf("%s was changed in the range of %+v", c.key, s)
			}
		}
	}
	return ""
}

func inScan(s jay.Scan, key, collection string) bool {
	return (s.Collection == "" || s.Collection == collection) && strings.HasPrefix(key, ids.Fold(s.Prefix)) && key > ids.Fold(s.After)
}

// effect returns the documents after the writes, or the error of one.
func (m *txModel) effect() (map[string]modelDoc, error) {
	after := maps.Clone(m.docs)
	for _, o := range m.ops {
		key := o.key
		if key == "" {
			if key = ids.Fold(o.result.ID); key == "" { // refused as a whole
				continue
			}
		}
		old, found := after[key]
		switch {
		case o.deleted:
			delete(after, key)
			continue
		case o.made && found:
			return nil, jay.ErrExists
		case found && old.collection != o.doc.collection:
			return nil, jay.ErrCollection
		}
		o.doc.version = o.result.ChangeVector
		after[key] = o.doc
	}
	return after, nil
}

// compare compares all documents.
func (m *txModel) compare() {
	there := make(map[string]modelDoc)
	for doc, err := range m.db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			m.t.Fatal(err)
		}
		if key := ids.Fold(doc.ID()); !strings.HasPrefix(key, "raven/") {
			there[key] = modelDoc{string(doc.Body()), doc.Collection(), doc.ChangeVector()}
		}
	}
	for key := range there {
		// A key that was written twice has the version of the second write.
		if want := m.docs[key]; there[key] != want {
			m.t.Fatalf("%s is %+v, want %+v", key, there[key], want)
		}
	}
	if len(there) != len(m.docs) {
		m.t.Fatalf("%d documents, want %v", len(there), m.docs)
	}
}

// see returns what the transaction must show of a document, which was looked
// up.
func (m *txModel) see(key string) (modelDoc, bool) {
	if o, found := m.own[key]; found {
		doc := o.doc
		doc.version = ""
		if m.read[key] {
			doc.version = m.before[key].version
		}
		return doc, !o.deleted
	}
	m.read[key] = true
	doc, found := m.before[key]
	return doc, found
}

func (m *txModel) check(doc *jay.Document, key string) {
	m.t.Helper()
	want, found := m.see(key)
	if !found {
		if doc != nil {
			m.t.Fatalf("%s: got %s, want nothing", key, doc.Body())
		}
		return
	}
	if doc == nil {
		m.t.Fatalf("%s: got nothing, want %+v", key, want)
	}
	if got := (modelDoc{string(doc.Body()), doc.Collection(), doc.ChangeVector()}); got != want {
		m.t.Fatalf("%s: got %+v, want %+v", key, got, want)
	}
}

func (m *txModel) get(t *rapid.T) {
	id := m.key()
	if rapid.Bool().Draw(t, "exists") {
		found, err := m.tx.Exists(ctx, id)
		if _, want := m.see(ids.Fold(id)); err != nil || found != want {
			t.Fatalf("exists %s: %v, %v; want %v", id, found, err, want)
		}
		return
	}
	doc, err := m.tx.Get(ctx, id)
	if err != nil && !errors.Is(err, jay.ErrNotFound) {
		t.Fatal(err)
	}
	m.check(doc, ids.Fold(id))
}

func (m *txModel) getMany(t *rapid.T) {
	keys := rapid.SliceOfN(rapid.SampledFrom(modelKeys), 0, 4).Draw(t, "keys")
	docs, err := m.tx.GetMany(ctx, keys...)
	if err != nil || len(docs) != len(keys) {
		t.Fatal(err)
	}
	for i, doc := range docs {
		m.check(doc, ids.Fold(keys[i]))
	}
}

func (m *txModel) typedRead(t *rapid.T) {
	id := m.key()
	v, err := m.typed.In(m.tx).Get(ctx, id)
	want, found := m.see(ids.Fold(id))
	switch {
	case !found:
		if !errors.Is(err, jay.ErrNotFound) {
			t.Fatalf("%s: %v", id, err)
		}
	case want.collection != "Users":
		if !errors.Is(err, jay.ErrCollection) {
			t.Fatalf("%s: %v", id, err)
		}
	case err != nil || v.Version != want.version || fmt.Sprintf(`{"By":%q}`, v.By) != want.body || ids.Fold(v.ID) != ids.Fold(id):
		t.Fatalf("%s: %+v, %v, want %+v", id, v, err, want)
	}
}

func (m *txModel) walk(t *rapid.T) {
	s := rapid.SampledFrom([]jay.Scan{
		{}, {Collection: "Users"}, {Collection: "Orders"}, {Prefix: "users/"}, {Prefix: "Users/1"}, {Prefix: "x/"},
		{Collection: "Users", Prefix: "x/"}, {Collection: "Users", Prefix: "users/"}, {Collection: "Orders", Prefix: "users/"},
	}).Draw(t, "scan")
	if rapid.Bool().Draw(t, "page") {
		s.After = m.key()
	}
	left := -1
	if s.Collection != "" || s.Prefix != "" { // HiLo documents would count
		s.Limit = rapid.IntRange(0, 3).Draw(t, "limit")
		left = rapid.SampledFrom([]int{-1, -1, 1, 2}).Draw(t, "break after")
	}

	var want []string
	for key, doc := range m.before {
		if _, mine := m.own[key]; !mine && inScan(s, key, doc.collection) {
			want = append(want, key)
		}
	}
	for key, o := range m.own {
		if !o.deleted && inScan(s, key, o.doc.collection) {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	last := ""
	if n := s.Limit; n > 0 && len(want) >= n {
		want = want[:n]
		last = want[n-1]
	}
	if left > 0 && len(want) >= left {
		want = want[:left]
		last = want[left-1]
	}

	var got []string
	for doc, err := range m.tx.Documents(ctx, s) {
		if err != nil {
			t.Fatal(err)
		}
		key := ids.Fold(doc.ID())
		if strings.HasPrefix(key, "raven/") {
			continue
		}
		got = append(got, key)
		shown := modelDoc{string(doc.Body()), doc.Collection(), doc.ChangeVector()}
		expected := m.before[key]
		if _, mine := m.own[key]; mine {
			expected, _ = m.see(key)
		}
		if shown != expected {
			t.Fatalf("walk %+v: %s is %+v, want %+v", s, key, shown, expected)
		}
		if left--; left == 0 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("walk %+v: got %v, want %v", s, got, want)
	}
	m.walks, m.lasts = append(m.walks, s), append(m.lasts, last)
}

// request is a write on an ID that the user chose.
type request struct {
	verb       string
	id         string
	collection string
	body       string
	expected   *string
}

func (m *txModel) request() request {
	id := m.key()
	r := request{
		verb: rapid.SampledFrom([]string{"put", "put", "insert", "replace", "delete"}).Draw(m.t, "verb"),
		id:   id, collection: m.home(id), body: m.body(),
	}
	switch rapid.IntRange(0, 5).Draw(m.t, "if match") {
	case 0:
		r.expected = new(string)
	case 1:
		v := m.before[ids.Fold(id)].version
		r.expected = &v
	case 2:
		v := "A:999-x"
		r.expected = &v
	}
	return r
}

func (r request) options(result *jay.Metadata) []jay.WriteOption {
	opts := []jay.WriteOption{jay.Returning(result)}
	if r.verb != "delete" {
		opts = append(opts, jay.InCollection(r.collection))
	}
	if r.expected != nil {
		opts = append(opts, jay.IfMatch(*r.expected))
	}
	return opts
}

// accept returns what the transaction must say to a write, and notes it if
// that is nil.
func (m *txModel) accept(r request, result *jay.Metadata) error {
	key := ids.Fold(r.id)
	if r.verb == "insert" || r.verb == "replace" || r.expected != nil {
		_, found := m.see(key)
		if r.verb == "insert" && found {
			return jay.ErrExists
		}
		if r.verb == "replace" && !found {
			return jay.ErrNotFound
		}
	}
	if r.expected != nil {
		actual := ""
		o, mine := m.own[key]
		if !mine || !o.deleted && (m.read[key] || *r.expected != "") {
			m.read[key] = true
			actual = m.before[key].version
		}
		if actual != *r.expected || r.verb == "delete" && actual == "" {
			return jay.ErrConflict
		}
	}
	m.note(modelOp{key: key, deleted: r.verb == "delete", doc: modelDoc{body: r.body, collection: r.collection}, result: result})
	return nil
}

func (m *txModel) note(o modelOp) {
	m.ops = append(m.ops, o)
	if o.key != "" {
		m.own[o.key] = o
	}
}

func (m *txModel) write(t *rapid.T) {
	r, result := m.request(), new(jay.Metadata)
	var meta jay.Metadata
	var err error
	switch r.verb {
	case "put":
		meta, err = m.tx.Put(ctx, r.id, json.RawMessage(r.body), r.options(result)...)
	case "insert":
		meta, err = m.tx.Insert(ctx, r.id, json.RawMessage(r.body), r.options(result)...)
	case "replace":
		meta, err = m.tx.Replace(ctx, r.id, json.RawMessage(r.body), r.options(result)...)
	case "delete":
		err = m.tx.Delete(ctx, r.id, r.options(result)...)
	}
	if want := m.accept(r, result); !errors.Is(err, want) || (err != nil) != (want != nil) {
		t.Fatalf("%+v: got %v, want %v", r, err, want)
	}
	if err == nil && r.verb != "delete" && (meta.ID != r.id || meta.Collection != r.collection || meta.ChangeVector != "") {
		t.Fatalf("%+v: got %+v", r, meta)
	}
	if result.ID != "" || result.Etag != 0 {
		t.Fatalf("%+v was returned before the commit: %+v", r, result)
	}
}

// make writes under an ID that Jay makes.
func (m *txModel) make(t *rapid.T) {
	o := modelOp{doc: modelDoc{m.body(), "Users", ""}, result: new(jay.Metadata)}
	switch request := rapid.SampledFrom([]string{"hilo", "made|", "made/", ""}).Draw(t, "request"); request {
	case "hilo":
		meta, err := m.tx.Store(ctx, "Users", json.RawMessage(o.doc.body), jay.Returning(o.result))
		m.madeAtOnce(&o, meta, err)
	default:
		meta, err := m.tx.Put(ctx, request, json.RawMessage(o.doc.body), jay.InCollection("Users"), jay.Returning(o.result))
		if request == "" {
			m.madeAtOnce(&o, meta, err)
		} else if err != nil || meta.ID != request {
			t.Fatalf("%s: %+v, %v", request, meta, err)
		}
	}
	m.note(o)
}

// madeAtOnce checks an ID that is final.
func (m *txModel) madeAtOnce(o *modelOp, meta jay.Metadata, err error) {
	o.made, o.key = true, ids.Fold(meta.ID)
	_, own := m.own[o.key]
	if _, found := m.docs[o.key]; found || own || o.key == "" || err != nil {
		m.t.Fatalf("a new document is %q (there: %v, written: %v), %v", meta.ID, found, own, err)
	}
}

// batch applies several writes; if one is refused, none was made.
func (m *txModel) batch(t *rapid.T) {
	var b jay.Batch
	ops, own := slices.Clone(m.ops), maps.Clone(m.own)
	var want error
	for range rapid.IntRange(0, 4).Draw(t, "writes") {
		r, result := m.request(), new(jay.Metadata)
		opts := r.options(result)
		switch r.verb {
		case "put":
			b.Put(r.id, json.RawMessage(r.body), opts...)
		case "insert":
			b.Insert(r.id, json.RawMessage(r.body), opts...)
		case "replace":
			b.Replace(r.id, json.RawMessage(r.body), opts...)
		case "delete":
			b.Delete(r.id, opts...)
		}
		if want == nil {
			want = m.accept(r, result)
		}
	}
	if want != nil {
		m.ops, m.own = ops, own
	}
	metas, err := m.tx.Apply(ctx, &b)
	if !errors.Is(err, want) || (err != nil) != (want != nil) || err == nil && len(metas) != b.Len() {
		t.Fatalf("batch: got %v, want %v", err, want)
	}
}

// readModifyWrite writes a value back that the transaction has read, or makes
// one.
func (m *txModel) readModifyWrite(t *rapid.T) {
	id := rapid.SampledFrom([]string{"users/1", "users/2", "x/1"}).Draw(t, "id")
	in := m.typed.In(m.tx)
	v, err := in.Get(ctx, id)
	doc, found := m.see(ids.Fold(id))
	if errors.Is(err, jay.ErrCollection) {
		return
	}
	if found != (err == nil) {
		t.Fatalf("%s: %v", id, err)
	}
	if !found {
		v = &Tagged{ID: id}
	}
	m.serial++
	v.By = fmt.Sprint(m.serial)
	result := new(jay.Metadata)
	r := request{verb: "put", id: id, collection: "Users", body: fmt.Sprintf(`{"By":%q}`, v.By), expected: &doc.version}
	if !found {
		r.expected = new(string)
	}
	_, err = in.Put(ctx, v, jay.Returning(result))
	if want := m.accept(r, result); err != nil || want != nil {
		t.Fatalf("read, modify, write of %s: %v (model: %v)", id, err, want)
	}
}

// outside is a write beside the transaction.
func (m *txModel) outside(t *rapid.T) {
	id := m.key()
	key := ids.Fold(id)
	old, found := m.docs[key]
	if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
		if err := m.db.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		if found {
			delete(m.docs, key)
			m.changed = append(m.changed, modelChange{key, old.collection})
		}
		return
	}
	doc := modelDoc{m.body(), collectionOfKey(key), ""}
	if found {
		doc.collection = old.collection
	}
	meta, err := m.db.Put(ctx, id, json.RawMessage(doc.body), jay.InCollection(doc.collection))
	if err != nil {
		t.Fatal(err)
	}
	doc.version = meta.ChangeVector
	m.docs[key] = doc
	m.changed = append(m.changed, modelChange{key, doc.collection})
}
