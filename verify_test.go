package jay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// planting is a database into which damage is planted, and what takes it out again.
type planting struct {
	t      *testing.T
	engine storage.Engine
	before map[string][]byte // by key; nil for none
}

// get returns the value at a key, which must be there.
func (p *planting) get(key []byte) []byte {
	p.t.Helper()
	value, closer, err := p.engine.Get(key)
	if err != nil {
		p.t.Fatalf("%q: %v", key, err)
	}
	defer closer.Close()
	return bytes.Clone(value)
}

// set sets a value, or removes a key if it is nil.
func (p *planting) set(key, value []byte) {
	p.t.Helper()
	if _, known := p.before[string(key)]; !known {
		old, closer, err := p.engine.Get(key)
		if err == nil {
			p.before[string(key)] = append([]byte{}, old...)
			must(p.t, closer.Close())
		} else if errors.Is(err, storage.ErrNotFound) {
			p.before[string(key)] = nil
		} else {
			p.t.Fatal(err)
		}
	}
	p.write(key, value)
}

func (p *planting) write(key, value []byte) {
	p.t.Helper()
	must(p.t, p.engine.Update(context.Background(), true, func(tx storage.Tx) error {
		if value == nil {
			tx.Delete(key)
		} else {
			tx.Set(key, value, nil)
		}
		return nil
	}))
}

func (p *planting) remove(key []byte) { p.t.Helper(); p.get(key); p.set(key, nil) }

// undo takes the damage out.
func (p *planting) undo() {
	for key, value := range p.before {
		p.write([]byte(key), value)
	}
	clear(p.before)
}

// first returns the first key with a prefix.
func (p *planting) first(prefix ...byte) []byte {
	p.t.Helper()
	it, err := p.engine.Iterate(prefix, format.PrefixEnd(prefix))
	must(p.t, err)
	defer it.Close()
	if !it.First() {
		p.t.Fatalf("no key begins with %q", prefix)
	}
	return bytes.Clone(it.Key())
}

// document changes the record of a document.
func (p *planting) document(id string, change func(h *metadata.Header, body *[]byte)) {
	p.t.Helper()
	key := format.NewDocumentKey(id)
	h, body, err := metadata.Decode(p.get(key))
	must(p.t, err)
	change(&h, &body)
	p.set(key, append(h.AppendTail(h.AppendHead(nil)), body...))
}

// header returns the header of a document.
func (p *planting) header(id string) metadata.Header {
	p.t.Helper()
	h, _, err := metadata.Decode(p.get(format.NewDocumentKey(id)))
	must(p.t, err)
	return h
}

// changeOf returns the key of a document's change.
func (p *planting) changeOf(id string) []byte {
	p.t.Helper()
	return format.ChangeKey(nil, 0, p.header(id).Etag)
}

// content changes the record of the content of an attachment.
func (p *planting) content(text string, change func(c *format.Content)) (key []byte, c format.Content) {
	p.t.Helper()
	hash := sha256.Sum256([]byte(text))
	key = format.ContentKey(&hash)
	c, err := format.DecodeContent(p.get(key))
	must(p.t, err)
	if change != nil {
		change(&c)
		p.set(key, c.Append(nil))
	}
	return key, c
}

func meta(name string) []byte { return format.AppendKey(nil, format.SpaceMeta, name) }

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// spareEtag is an etag that nothing has.
const spareEtag = 60_000

// allKinds is a database with something of everything.
func allKinds(t *testing.T) *jay.DB {
	t.Helper()
	ctx := context.Background()
	old := knobs.AttachmentChunkBytes
	knobs.AttachmentChunkBytes = 4
	t.Cleanup(func() { knobs.AttachmentChunkBytes = old })
	clock := newClock()
	db, err := jay.OpenMemory(&jay.Options{Now: clock.Now})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() }) // planted damage is not always taken out

	for _, ix := range []jay.Index{
		{Name: "city", Fields: []string{"City", "-Age"}},
		{Name: "mail", Fields: []string{"Mail"}, Unique: true},
		{Name: "tags", Fields: []string{"Tags"}},
		{Name: "at", Fields: []string{"At as date"}, Where: "Age > 20"},
	} {
		must(t, db.EnsureIndex(ctx, "Users", ix))
	}
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Notes": {}}}))
	must(t, second(db.NextIdentity(ctx, "once", jay.RequestID("once"))))
	must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Users", Deletions: true}))
	must(t, db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "kind", Name: "one", Value: json.RawMessage(`{}`)}))
	put := func(id, body string, opts ...jay.WriteOption) jay.Metadata {
		m, err := db.Put(ctx, id, json.RawMessage(body), opts...)
		must(t, err)
		return m
	}
	put("users/ann", `{"Name":"Ann","City":"bonn","Age":33,"Mail":"a@b","Tags":["x","y"],"At":"2026-01-01T00:00:00Z","@metadata":{"@collection":"Users","k":1}}`)
	put("Users/Dan", `{"City":"ulm","Age":40,"Mail":"d@b","@metadata":{"@collection":"Users"}}`)
	put("bob", `{"City":"ulm","Age":21,"Mail":"b@b"}`, jay.InCollection("Users"))
	put("Plain/One", `{"n":1}`)
	put("due", `{"n":2,"@metadata":{"k":1}}`, jay.WithTTL(1000*time.Hour))
	put("fresh", `{"n":3}`, jay.RefreshAt(clock.Now().Add(2000*time.Hour)))
	for range 3 {
		put("orders|", `{"n":4}`, jay.InCollection("Orders"))
		put("things/", `{"n":5}`, jay.InCollection("Things"))
		_, err := db.Store(ctx, "Users", json.RawMessage(`{"n":6}`))
		must(t, err)
	}
	for _, id := range []string{"notes/a", "notes/b", "notes/gone", "lost", "lost2"} {
		in := jay.InCollection("Notes")
		if strings.HasPrefix(id, "lost") {
			in = jay.InCollection("Plain")
		}
		for range 3 {
			put(id, `{"n":7}`, in)
		}
	}
	for _, id := range []string{"notes/gone", "lost", "lost2"} {
		must(t, db.Delete(ctx, id))
	}
	for _, file := range [][3]string{{"users/ann", "a", "one"}, {"users/ann", "b", "more than one chunk"}, {"bob", "a", "one"}, {"bob", "b", ""}} {
		_, err := db.Attachments(file[0]).Put(ctx, file[1], strings.NewReader(file[2]))
		must(t, err)
	}
	checks.WaitIndexTasks(db)
	return db
}

// Ensure that a database without damage has none in the eyes of Verify.
func TestVerify_Sample(t *testing.T) {
	db := allKinds(t)
	r, err := db.Verify(context.Background(), nil)
	must(t, err)
	if r.Found > 0 || r.Warned > 0 || len(r.NotCompared) > 0 {
		t.Errorf("%+v", r)
	}
	if r.Documents < 16 || r.Revisions < 6 || r.Changes < 18 || r.IndexEntries < 10 || r.Attachments != 3 || r.Files == 0 || r.FileBytes == 0 || r.AttachmentBytes != 22 {
		t.Errorf("it looked at too little: %+v", r)
	}
}

// plants are damages, by name.
var plants = []struct {
	name  string
	plant func(p *planting)
	want  string // the kinds that are found
}{
	{"an unknown key", func(p *planting) { p.set([]byte("~oo"), []byte("1")) }, "key-unknown"},
	{"a key before all others", func(p *planting) { p.set([]byte{5}, []byte("1")) }, "key-unknown"},
	{"an unknown record of the database", func(p *planting) { p.set(meta("nonsense"), []byte("{}")) }, "key-unknown"},
	{"a record of the database without an end", func(p *planting) { p.set([]byte("metag"), number(1)) }, "key-malformed"},
	{"settings are gone", func(p *planting) { p.remove(meta("database")) }, "settings-record"},
	{"settings are no JSON", func(p *planting) { p.set(meta("database"), []byte("{")) }, "settings-record"},
	{"the node is gone", func(p *planting) { p.remove(format.NodeKey(0)) }, "node-missing"},
	{"the node is no JSON", func(p *planting) { p.set(format.NodeKey(0), []byte("x")) }, "node-missing node-record"},
	{"the key of a node is short", func(p *planting) { p.set([]byte("nx"), []byte("{}")) }, "key-malformed"},
	{"the catalog is no JSON", func(p *planting) { p.set(meta("indexes"), []byte("[]")) }, "catalog-record"},
	{"an index of the catalog has no path", func(p *planting) {
		p.set(meta("indexes"), bytes.Replace(p.get(meta("indexes")), []byte(`"City"`), []byte(`"[["`), 1))
	}, "catalog-record"},
	{"the next index has the number of one", func(p *planting) {
		p.set(meta("indexes"), bytes.Replace(p.get(meta("indexes")), []byte(`"next":5`), []byte(`"next":4`), 1))
	}, "index-number"},
	{"the rules of revisions are no JSON", func(p *planting) { p.set(meta("revisions"), []byte("x")) }, "revisions-config"},
	{"the state of the counts", func(p *planting) { p.set(meta("counts"), []byte{7}) }, "counts-state"},
	{"the state of the times", func(p *planting) { p.set(meta("times"), []byte("x")) }, "times-state"},
	{"the list of backups", func(p *planting) { p.set(meta("backups"), []byte("x")) }, "backups-record"},
	{"the record of a standby", func(p *planting) { p.set(meta("standby"), []byte("x")) }, "standby-record"},
	{"a number for backups", func(p *planting) { p.set(meta("rewritten"), []byte("x")) }, "backups-record"},
	{"a restore that did not end", func(p *planting) { p.set(meta("restoring"), []byte("{}")) }, "restore-unfinished"},
	{"the record of the cluster", func(p *planting) { p.set(meta("cluster"), []byte("{}")) }, "cluster-record"},
	{"a lease without a session", func(p *planting) { p.set(format.LeaseKey(format.LeaseNode, "B"), []byte(`{"tag":"B"}`)) }, "lease-record"},
	{"a lease of another tag", func(p *planting) { p.set(format.LeaseKey(format.LeaseNode, "B"), []byte(`{"session":"s","tag":"C"}`)) }, "lease-record"},
	{"a node tag that cannot be", func(p *planting) { p.set(format.LeaseKey(format.LeaseUsed, "b"), []byte("12345678")) }, "lease-record"},
	{"a renewal that is no number", func(p *planting) { p.set(format.LeaseKey(format.LeaseRenewal, "B"), []byte("x")) }, "lease-record"},
	{"lost numbers that cannot be decoded", func(p *planting) { p.set(format.LostKey("users|"), []byte(`{"spans":[[2,1]]}`)) }, "cluster-record"},
	{"an intent that cannot be decoded", func(p *planting) { p.set(format.IntentKey(1), []byte("{}")) }, "cluster-record"},
	{"an intent without its write", func(p *planting) {
		p.set(format.IntentKey(1), []byte(`{"slot":"s","before":1,"call":"c","writes":1}`))
	}, "cluster-record"},
	{"a write of no intent", func(p *planting) {
		p.set(format.IntentWriteKey(1, 0), format.AppendIntentWrite(nil, format.IntentDelete, "users/1"))
	}, "cluster-record"},
	{"a write of an intent that is no document", func(p *planting) {
		p.set(format.IntentKey(1), []byte(`{"slot":"s","before":1,"call":"c","writes":1}`))
		p.set(format.IntentWriteKey(1, 0), append(format.AppendIntentWrite(nil, format.IntentPut, "users/1"), 0xff))
	}, "cluster-record"},
	{"a key of a cluster that is none", func(p *planting) { p.set([]byte("ox"), []byte("{}")) }, "key-malformed"},
	{"a compare-exchange value is no record", func(p *planting) { p.set([]byte("vlock\x00"), []byte("x")) }, "exchange-record"},
	{"a compare-exchange value is no JSON", func(p *planting) {
		p.set([]byte("vlock\x00"), append((&format.Exchange{Index: 3}).AppendHead(nil), "{"...))
	}, "exchange-record"},
	{"a compare-exchange value has another key", func(p *planting) {
		p.set([]byte("vlock\x00"), append((&format.Exchange{Index: 3, Key: []byte("Door")}).AppendHead(nil), "1"...))
	}, "exchange-record"},
	{"a compare-exchange value is ahead", func(p *planting) {
		p.set([]byte("vlock\x00"), append((&format.Exchange{Index: 1 << 40}).AppendHead(nil), "1"...))
	}, "etag-behind"},
	{"the key of a compare-exchange value has no end", func(p *planting) { p.set([]byte("vlock"), []byte("x")) }, "key-malformed"},
	{"a rename", func(p *planting) { p.set(meta("rename/a"), []byte("x")) }, "rename-record"},
	{"a floor", func(p *planting) { p.set(meta("floor/backup"), []byte("x")) }, "floor-record"},
	{"the floor of a subscription is gone", func(p *planting) { p.remove(meta("floor/subscription/mail")) }, "floor-missing"},
	{"the floor of a subscription is too high", func(p *planting) { p.set(meta("floor/subscription/mail"), number(20)) }, "floor-missing"},
	{"a floor of no subscription", func(p *planting) { p.set(meta("floor/subscription/none"), number(2)) }, "floor-extra"},
	{"the etag is no number", func(p *planting) { p.set(meta("etag"), []byte("x")) }, "etag-record"},
	{"the mark of deletions is no number", func(p *planting) { p.set(meta("deletes"), []byte("x")) }, "etag-record"},
	{"the etag is behind", func(p *planting) { p.set(meta("etag"), number(5)) }, "etag-behind server-side-ahead"},
	{"the etag is gone", func(p *planting) { p.remove(meta("etag")) }, "etag-behind server-side-ahead"},

	{"a document is no record", func(p *planting) { p.set(format.NewDocumentKey("users/ann"), []byte("nonsense")) }, "document-record"},
	{"a body is no JSON", func(p *planting) {
		p.document("users/ann", func(_ *metadata.Header, body *[]byte) { (*body)[5] = 0 })
	}, "document-body"},
	{"a number that only older versions stored", func(p *planting) {
		p.document("due", func(_ *metadata.Header, body *[]byte) { *body = []byte(`{"n":1e1000000000000001}`) })
	}, "count-wrong document-number"},
	{"metadata with such a number", func(p *planting) {
		p.document("users/ann", func(h *metadata.Header, _ *[]byte) { h.Custom = []byte(`{"k":1e1000000000000001}`) })
	}, "count-wrong document-number"},
	{"a body has lost its end", func(p *planting) {
		p.document("bob", func(_ *metadata.Header, body *[]byte) { *body = (*body)[:9] })
	}, "count-wrong document-body"},
	{"metadata is no JSON", func(p *planting) {
		p.document("users/ann", func(h *metadata.Header, _ *[]byte) { h.Custom = []byte(`{"k"}`) })
	}, "count-wrong document-metadata"},
	{"the ID is another one", func(p *planting) {
		p.document("plain/one", func(h *metadata.Header, _ *[]byte) { h.ID = []byte("Plain/Two") })
	}, "document-id"},
	{"the key is no folded ID", func(p *planting) {
		record := p.get(format.NewDocumentKey("plain/one"))
		p.set(format.NewDocumentKey("plain/one"), nil)
		p.set(format.NewDocumentKey("PLAIN/one"), record)
	}, "change-wrong document-id document-lost member-extra member-missing"},
	{"the collection has a control character", func(p *planting) {
		p.document("plain/one", func(h *metadata.Header, _ *[]byte) { h.Collection = []byte("Pl\x01in") })
	}, "change-wrong count-wrong document-collection member-extra member-missing"},
	{"the collection is another one", func(p *planting) {
		p.document("bob", func(h *metadata.Header, _ *[]byte) { h.Collection = []byte("Plain") })
	}, "change-wrong count-wrong index-extra member-extra member-missing"},
	{"the key of a document has no end", func(p *planting) { p.set([]byte("dusers/zoe"), []byte("x")) }, "key-malformed"},
	{"an etag in a header is another one", func(p *planting) {
		p.document("plain/one", func(h *metadata.Header, _ *[]byte) { h.Etag = spareEtag })
	}, "change-missing change-stale count-wrong"},
	{"an etag in a header is another document's", func(p *planting) {
		etag := p.header("bob").Etag
		p.document("plain/one", func(h *metadata.Header, _ *[]byte) { h.Etag = etag })
	}, "change-stale change-wrong"},
	{"an etag that was never reserved", func(p *planting) {
		p.document("plain/one", func(h *metadata.Header, _ *[]byte) { h.Etag = 1 << 40 })
	}, "change-missing change-stale count-wrong etag-behind"},
	{"an etag of 0", func(p *planting) {
		p.document("plain/one", func(h *metadata.Header, _ *[]byte) { h.Etag = 0 })
	}, "change-missing change-stale etag-foreign"},
	{"a node that is not known", func(p *planting) {
		p.document("plain/one", func(h *metadata.Header, _ *[]byte) { h.Node = 7 })
	}, "change-missing change-stale node-missing"},
	{"a mark of an instant without one", func(p *planting) {
		p.document("users/ann", func(h *metadata.Header, _ *[]byte) { h.Timed = true })
	}, "document-times"},
	{"an instant without its mark", func(p *planting) {
		p.document("due", func(h *metadata.Header, _ *[]byte) { h.Timed = false })
	}, "document-times time-extra"},
	{"a list of attachments is cut off", func(p *planting) {
		p.document("bob", func(h *metadata.Header, _ *[]byte) { h.Attachments = h.Attachments[:10] })
	}, "count-wrong document-attachments"},
	{"a list of attachments is in another order", func(p *planting) {
		p.document("bob", func(h *metadata.Header, _ *[]byte) {
			list, err := format.DecodeAttachments(h.Attachments)
			must(p.t, err)
			slices.Reverse(list)
			h.Attachments = format.AppendAttachments(nil, list)
		})
	}, "attachment-order"},
	{"the size of an attachment is another one", func(p *planting) {
		p.document("bob", func(h *metadata.Header, _ *[]byte) {
			list, err := format.DecodeAttachments(h.Attachments)
			must(p.t, err)
			list[0].Size = 99
			h.Attachments = format.AppendAttachments(nil, list)
		})
	}, "attachment-size"},

	{"a change is missing", func(p *planting) { p.remove(p.changeOf("bob")) }, "change-missing"},
	{"a change names another document", func(p *planting) {
		p.set(p.changeOf("bob"), format.AppendChange(nil, format.ChangePut, "Users", "users/ann"))
	}, "change-stale change-wrong"},
	{"a change names another collection", func(p *planting) {
		p.set(p.changeOf("bob"), format.AppendChange(nil, format.ChangePut, "Plain", "bob"))
	}, "change-wrong"},
	{"a change is a deletion", func(p *planting) {
		p.set(p.changeOf("bob"), format.AppendChange(nil, format.ChangeDelete, "Users", "bob"))
	}, "change-wrong"},
	{"a change twice", func(p *planting) {
		p.set(format.ChangeKey(nil, 0, spareEtag), format.AppendChange(nil, format.ChangePut, "Users", "bob"))
	}, "change-stale"},
	{"a document is gone", func(p *planting) { p.remove(format.NewDocumentKey("plain/one")) }, "count-wrong document-lost member-extra"},
	{"a change is no record", func(p *planting) { p.set(format.ChangeKey(nil, 0, spareEtag), []byte("xyz")) }, "change-record"},
	{"a change of an unknown kind", func(p *planting) {
		p.set(format.ChangeKey(nil, 0, spareEtag), format.AppendChange(nil, 3, "Users", "bob"))
	}, "change-record"},
	{"a key of a change is too short", func(p *planting) { p.set([]byte("exyz"), []byte("x")) }, "key-malformed"},
	{"a change of an unknown node", func(p *planting) {
		p.set(format.ChangeKey(nil, 9, 3), format.AppendChange(nil, format.ChangeDelete, "Users", "none"))
	}, "node-missing"},
	{"a tombstone beside its document", func(p *planting) {
		p.set(format.ChangeKey(nil, 0, spareEtag), format.AppendChange(nil, format.ChangeDelete, "Users", "bob"))
	}, "tombstone-live"},
	{"a tombstone with the ID of another document", func(p *planting) {
		p.set(format.ChangeKey(nil, 0, spareEtag), format.AppendDeletion(nil, "Users", "none", "Other"))
	}, "change-record"},
	{"a tombstone with the folded ID twice", func(p *planting) {
		p.set(format.ChangeKey(nil, 0, spareEtag), append(format.AppendChange(nil, format.ChangeDelete, "Users", "none"), "\x00none"...))
	}, "change-record"},
	{"a tombstone with an empty ID", func(p *planting) {
		p.set(format.ChangeKey(nil, 0, spareEtag), append(format.AppendChange(nil, format.ChangeDelete, "Users", "none"), 0))
	}, "change-record"},
	{"a change of a document with two IDs", func(p *planting) {
		p.set(p.changeOf("bob"), append(format.AppendChange(nil, format.ChangePut, "Users", "bob"), "\x00Bob"...))
	}, "change-wrong document-lost"},
	{"a tombstone above all etags", func(p *planting) {
		p.set(format.ChangeKey(nil, 0, 1<<40), format.AppendChange(nil, format.ChangeDelete, "Users", "none"))
	}, "etag-behind"},

	{"an entry of a collection is missing", func(p *planting) { p.remove(format.MemberKey(nil, "users", "bob")) }, "member-missing"},
	{"an entry of a collection without document", func(p *planting) { p.set(format.MemberKey(nil, "users", "zoe"), []byte{}) }, "member-extra"},
	{"an entry in another collection", func(p *planting) { p.set(format.MemberKey(nil, "orders", "bob"), []byte{}) }, "member-extra"},
	{"an entry of a clustered document", func(p *planting) { p.set(format.MemberKey(nil, "users", "users/ann"), []byte{}) }, "member-extra"},
	{"an entry of a collection with a value", func(p *planting) { p.set(format.MemberKey(nil, "users", "bob"), []byte("x")) }, "member-value"},
	{"an entry of a collection without ID", func(p *planting) { p.set([]byte("cusers\x00"), []byte{}) }, "key-malformed"},
	{"a number of documents", func(p *planting) { p.set(format.CountKey(nil, "users"), number(99)) }, "count-wrong"},
	{"a number of documents is missing", func(p *planting) { p.remove(format.CountKey(nil, "users")) }, "count-wrong"},
	{"a number of documents of no collection", func(p *planting) { p.set(format.CountKey(nil, "none"), number(1)) }, "count-wrong"},
	{"a number of bytes", func(p *planting) {
		_, t, err := format.DecodeTally(format.CountKey(nil, "users"), p.get(format.CountKey(nil, "users")))
		must(p.t, err)
		p.set(format.CountKey(nil, "users"), append(number(uint64(t.Documents)), number(uint64(t.Bytes+1))...))
	}, "count-wrong"},
	{"the numbers of attachments", func(p *planting) { p.set(format.ContentTallyKey(), number(1)) }, "count-wrong"},
	{"the numbers of attachments are no numbers", func(p *planting) { p.set(format.ContentTallyKey(), bytes.Repeat(number(1), 5)) }, "count-record"},
	{"the numbers of what is due are missing", func(p *planting) { p.remove(format.AppendTimesTallyKey(nil)) }, "count-wrong"},
	{"numbers of nothing", func(p *planting) { p.set([]byte("k\x04"), number(1)) }, "key-unknown"},
	{"a state of the bytes that is none", func(p *planting) { p.set([]byte("msizes\x00"), []byte("x")) }, "counts-state"},
	{"a number of documents is no number", func(p *planting) { p.set([]byte("kx"), number(1)) }, "count-record"},
	{"a number of revisions", func(p *planting) { p.set(format.RevisionCountKey(nil, "notes"), number(1)) }, "revision-count"},
	{"a number of revisions is no number", func(p *planting) { p.set([]byte("k\x01x"), number(1)) }, "revision-count-record"},

	{"an expiry is missing", func(p *planting) { p.remove(p.first(format.SpaceTimes, format.DueExpiry)) }, "count-wrong time-missing"},
	{"an expiry without document", func(p *planting) {
		p.set(format.TimeKey(nil, time.Unix(1, 0), format.DueExpiry, "zoe"), []byte("users"))
	}, "count-wrong time-extra"},
	{"an expiry at another instant", func(p *planting) {
		p.set(format.TimeKey(nil, time.Unix(1, 0), format.DueExpiry, "due"), []byte("@empty"))
	}, "count-wrong time-extra"},
	{"an expiry in another collection", func(p *planting) { p.set(p.first(format.SpaceTimes, format.DueExpiry), []byte("users")) }, "time-wrong"},
	{"an expiry that is none", func(p *planting) { p.set([]byte("texyz"), []byte("users")) }, "time-record"},

	{"a revision is no record", func(p *planting) { p.set(format.RevisionKey(nil, "notes/a", 1), []byte("x")) }, "revision-record"},
	{"a revision has a broken body", func(p *planting) {
		value := p.get(format.RevisionKey(nil, "notes/a", 1))
		value[len(value)-2] = 0
		p.set(format.RevisionKey(nil, "notes/a", 1), value)
	}, "revision-record"},
	{"a revision is missing", func(p *planting) { p.remove(format.RevisionKey(nil, "notes/gone", 2)) }, "revision-count revision-gap"},
	{"the first revision is missing", func(p *planting) { p.remove(format.RevisionKey(nil, "notes/a", 1)) }, "history-wrong revision-count"},
	{"all revisions are missing", func(p *planting) {
		p.remove(format.RevisionKey(nil, "notes/a", 1))
		p.remove(format.RevisionKey(nil, "notes/a", 2))
	}, "history-wrong revision-count"},
	{"a revision of nothing", func(p *planting) {
		p.set(format.RevisionKey(nil, "zoe", 3), p.get(format.RevisionKey(nil, "notes/a", 1)))
	}, "history-wrong revision-count"},
	{"revisions in another order", func(p *planting) {
		one, two := format.RevisionKey(nil, "notes/a", 1), format.RevisionKey(nil, "notes/a", 2)
		a, b := p.get(one), p.get(two)
		p.set(one, b)
		p.set(two, a)
	}, "revision-order"},
	{"a key of no known form beside revisions", func(p *planting) { p.set([]byte("r\x05notes/a\x00"), []byte("x")) }, "key-unknown"},
	{"the key of a revision is too short", func(p *planting) { p.set([]byte("rnotes/a\x00xyz"), []byte("x")) }, "key-malformed"},
	{"a history is no record", func(p *planting) { p.set(format.HistoryKey(nil, "notes/gone"), []byte{}) }, "history-record"},
	{"a history is wrong", func(p *planting) {
		p.set(format.HistoryKey(nil, "notes/gone"), format.History{First: 2, Last: 4}.Append(nil))
	}, "history-wrong"},
	{"a history is missing", func(p *planting) { p.remove(format.HistoryKey(nil, "notes/gone")) }, "history-wrong"},
	{"the number of a document is wrong", func(p *planting) {
		p.document("notes/a", func(h *metadata.Header, _ *[]byte) { h.Revision = 9 })
	}, "history-wrong"},
	{"a deleted document is not listed", func(p *planting) { p.remove(format.DeletedKey(nil, "notes/gone")) }, "deleted-missing"},
	{"a listed document has no revisions", func(p *planting) { p.set(format.DeletedKey(nil, "zoe"), []byte{}) }, "deleted-extra"},

	{"a content is no record", func(p *planting) {
		key, _ := p.content("one", nil)
		p.set(key, []byte("x"))
	}, "chunk-extra content-missing content-record"},
	{"a content is missing", func(p *planting) {
		key, _ := p.content("one", nil)
		p.remove(key)
	}, "chunk-extra content-missing count-wrong"},
	{"a content has too many references", func(p *planting) { p.content("one", func(c *format.Content) { c.References++ }) }, "count-wrong references-high"},
	{"a content has too few references", func(p *planting) { p.content("one", func(c *format.Content) { c.References-- }) }, "count-wrong references-low"},
	{"a content of no document", func(p *planting) {
		hash := sha256.Sum256([]byte("abcd"))
		p.set(format.ContentKey(&hash), (&format.Content{Stream: 60, Size: 4, ChunkBytes: 4, References: 1}).Append(nil))
		p.set(format.ChunkKey(60, 0), []byte("abcd"))
		p.set(format.NextStreamKey(), number(100))
	}, "content-unused count-wrong"},
	{"a chunk is missing", func(p *planting) {
		_, c := p.content("more than one chunk", nil)
		p.remove(format.ChunkKey(c.Stream, 2))
	}, "chunk-missing"},
	{"the last chunk is missing", func(p *planting) {
		_, c := p.content("more than one chunk", nil)
		p.remove(format.ChunkKey(c.Stream, 4))
	}, "chunk-missing"},
	{"all chunks are missing", func(p *planting) {
		_, c := p.content("one", nil)
		p.remove(format.ChunkKey(c.Stream, 0))
	}, "chunk-missing"},
	{"a chunk has changed", func(p *planting) {
		_, c := p.content("more than one chunk", nil)
		p.set(format.ChunkKey(c.Stream, 1), []byte("tham"))
	}, "chunk-changed"},
	{"a chunk is too long", func(p *planting) {
		_, c := p.content("more than one chunk", nil)
		p.set(format.ChunkKey(c.Stream, 1), []byte(" thann"))
	}, "chunk-changed"},
	{"a chunk of no stream", func(p *planting) {
		p.set(format.ChunkKey(60, 0), []byte("abc"))
		p.set(format.NextStreamKey(), number(100))
	}, "chunk-extra"},
	{"more chunks than are to be removed", func(p *planting) {
		p.set(format.ChunkKey(50, 0), []byte("abc"))
		p.set(format.ChunkKey(50, 1), []byte("abc"))
		p.set(format.GarbageKey(50), format.AppendChunks(nil, 1))
		p.set(format.NextStreamKey(), number(100))
	}, "chunk-extra"},
	{"a content is to be removed", func(p *planting) {
		_, c := p.content("one", nil)
		p.set(format.GarbageKey(c.Stream), format.AppendChunks(nil, 1))
	}, "stream-shared"},
	{"a stream is no record", func(p *planting) { p.set(format.UploadKey(50), []byte{}) }, "stream-record"},
	{"the next stream is in use", func(p *planting) { p.set(format.NextStreamKey(), number(1)) }, "stream-number"},
	{"the next stream is gone", func(p *planting) { p.remove(format.NextStreamKey()) }, "stream-number"},
	{"the next stream is no number", func(p *planting) { p.set(format.NextStreamKey(), []byte("x")) }, "stream-number stream-record"},
	{"a content has chunks of twice the size", func(p *planting) {
		p.content("more than one chunk", func(c *format.Content) { c.ChunkBytes *= 2 })
	}, "content-record"},
	{"a content has chunks of half the size", func(p *planting) {
		p.content("more than one chunk", func(c *format.Content) { c.ChunkBytes /= 2 })
	}, "content-record"},
	{"a content has one long chunk", func(p *planting) {
		p.content("more than one chunk", func(c *format.Content) { c.ChunkBytes *= 1000 })
	}, "content-record"},
	{"a record of an unknown kind about contents", func(p *planting) { p.set([]byte("az"), []byte("x")) }, "key-unknown"},
	{"the key of a chunk is too short", func(p *planting) { p.set([]byte("bxyz"), []byte("x")) }, "key-malformed"},
	{"the key of a content is too short", func(p *planting) { p.set([]byte("acxyz"), []byte("x")) }, "key-malformed"},

	{"an index entry is missing", func(p *planting) { p.remove(p.first(format.AppendIndexPrefix(nil, 1)...)) }, "index-missing"},
	{"an index entry without document", func(p *planting) {
		key := p.first(format.AppendIndexPrefix(nil, 3)...)
		at := bytes.LastIndex(key, []byte("bob\x00"))
		if at < 0 {
			at = bytes.LastIndexByte(key[:len(key)-1], 'u')
		}
		p.set(append(bytes.Clone(key[:at]), "zoe\x00"...), []byte{0})
	}, "index-extra"},
	{"an index entry that the document does not give", func(p *planting) {
		key := p.first(format.AppendIndexPrefix(nil, 3)...)
		p.set(bytes.Replace(key, key[5:6], []byte{0x08}, 1), []byte{0})
	}, "index-extra"},
	{"an index entry with another value", func(p *planting) {
		p.set(p.first(format.AppendIndexPrefix(nil, 1)...), []byte{77})
	}, "index-wrong"},
	{"a unique entry of another document", func(p *planting) {
		key := append(format.AppendIndexPrefix(nil, 2), "@a@b\x00\x80"...)
		p.get(key)
		p.set(key, []byte("bob"))
	}, "index-extra index-twice"},
	{"an index entry that is no key", func(p *planting) { p.set(append(format.AppendIndexPrefix(nil, 1), 0xff, 0xff), []byte{}) }, "index-record"},
	{"a key of an index is too short", func(p *planting) { p.set([]byte("x\x00\x00"), []byte{}) }, "key-malformed"},
	{"the flags of an index are gone", func(p *planting) { p.remove(format.IndexFlagsKey(3)) }, "index-flags"},
	{"the flags of an index are none", func(p *planting) { p.set(format.IndexFlagsKey(3), []byte("xx")) }, "index-flags"},
	{"entries of an index that is gone", func(p *planting) {
		p.set(append(format.AppendIndexPrefix(nil, 77), "@a\x00\x80zoe\x00"...), []byte{})
		p.set(append(format.AppendIndexPrefix(nil, 77), "@b\x00\x80zoe\x00"...), []byte{})
	}, "index-leftover"},
	{"state of an index that is gone", func(p *planting) { p.set(format.IndexFlagsKey(77), []byte{1}) }, "index-leftover"},
	{"state of an index of an unknown kind", func(p *planting) { p.set([]byte("y\x00\x00\x00\x01z"), []byte{1}) }, "key-malformed"},

	{"an identity is no record", func(p *planting) { p.set([]byte("iorders|\x00"), []byte{}) }, "identity-record"},
	{"an identity is behind", func(p *planting) { p.set([]byte("iorders|\x00"), format.Identity{Last: 1}.Append(nil)) }, "identity-behind"},
	{"an identity of an unknown node", func(p *planting) { p.set([]byte("iorders|\x00"), format.Identity{Last: 9, Node: 7}.Append(nil)) }, "node-missing"},
	{"the key of an identity has no end", func(p *planting) { p.set([]byte("iorders|"), []byte{}) }, "key-malformed"},
	{"a HiLo tag is no record", func(p *planting) { p.set([]byte("husers\x00"), []byte{0xff}) }, "hilo-record"},
	{"a HiLo tag and its document are behind", func(p *planting) {
		p.set([]byte("husers\x00"), format.AppendMarks(nil, &format.Marks{}))
		p.document("raven/hilo/users", func(_ *metadata.Header, body *[]byte) { *body = []byte(`{"Max":1}`) })
	}, "count-wrong hilo-behind"},
	{"a HiLo tag and its document are gone", func(p *planting) {
		p.remove([]byte("husers\x00"))
		p.document("raven/hilo/users", func(_ *metadata.Header, body *[]byte) { *body = []byte(`{}`) })
	}, "count-wrong hilo-behind"},
	{"a range of a HiLo tag is above its top", func(p *planting) {
		marks, err := format.DecodeMarks(p.get([]byte("husers\x00")))
		must(p.t, err)
		marks.Top = 3
		p.set([]byte("husers\x00"), format.AppendMarks(nil, marks))
	}, "hilo-leases"},
	{"a server-side ID is ahead", func(p *planting) {
		record := p.get(format.NewDocumentKey("plain/one"))
		h, body, err := metadata.Decode(record)
		must(p.t, err)
		h.Etag, h.ID = spareEtag, nil
		id := "plain/0000000000009999999-a"
		p.set(format.NewDocumentKey(id), append(h.AppendTail(h.AppendHead(nil)), body...))
		p.set(format.ChangeKey(nil, 0, spareEtag), format.AppendChange(nil, format.ChangePut, "", id))
		p.set(format.MemberKey(nil, "@empty", id), []byte{})
		p.set(format.CountKey(nil, "@empty"), number(binary.BigEndian.Uint64(p.get(format.CountKey(nil, "@empty")))+1))
	}, "count-wrong server-side-ahead"},

	{"a subscription is no JSON", func(p *planting) { p.set(format.SubscriptionKey("mail"), []byte("x")) }, "subscription-record"},
	{"a subscription has the name of another", func(p *planting) {
		p.set(format.SubscriptionKey("mail"), bytes.Replace(p.get(format.SubscriptionKey("mail")), []byte("mail"), []byte("male"), 1))
	}, "subscription-record"},
	{"a subscription with a broken query", func(p *planting) {
		p.set(format.SubscriptionKey("mail"), bytes.Replace(p.get(format.SubscriptionKey("mail")), []byte("from "), []byte("form "), 1))
	}, "subscription-record"},
	{"a subscription without definition", func(p *planting) { p.remove(format.SubscriptionKey("mail")) }, "floor-extra subscription-half"},
	{"a subscription without position", func(p *planting) { p.remove(format.SubscriptionProgressKey("mail")) }, "subscription-half"},
	{"a failure of no subscription", func(p *planting) {
		p.set(format.SubscriptionFailureKey("none", "bob"), []byte(`{"id":"bob"}`))
	}, "subscription-extra"},
	{"a failure of another document", func(p *planting) {
		p.set(format.SubscriptionFailureKey("mail", "bob"), []byte(`{"id":"ann"}`))
	}, "subscription-extra"},
	{"a subscription is ahead", func(p *planting) {
		p.set(format.SubscriptionProgressKey("mail"), []byte(`{"position":99999999,"worker":0,"acknowledged":0}`))
		p.set(meta("floor/subscription/mail"), number(99999999))
	}, "subscription-ahead"},
	{"a definition is no JSON", func(p *planting) {
		p.set(format.DefinitionKey("kind", "one"), []byte("\x00\x00\x00\x00\x00\x00\x00\x01{]"))
	}, "definition-record"},
	{"a definition is cut off", func(p *planting) { p.set(format.DefinitionKey("kind", "one"), []byte("{}")) }, "definition-record"},
	{"a definition has another name", func(p *planting) {
		p.set(format.DefinitionKey("kind", "ONE"), p.get(format.DefinitionKey("kind", "one")))
	}, "key-malformed"},
	{"a key of no kind of a definition", func(p *planting) { p.set([]byte("gz"), []byte("x")) }, "key-malformed"},
	{"the number of the last definition is lost", func(p *planting) { p.remove(format.LastDefinitionKey()) }, "definition-record"},
	{"the number of the last definition is low", func(p *planting) { p.set(format.LastDefinitionKey(), number(0)) }, "definition-record"},
	{"the number of the last definition is cut off", func(p *planting) { p.set(format.LastDefinitionKey(), []byte{1}) }, "definition-record"},
	{"a request without its number", func(p *planting) { p.remove(format.RequestNumberKey(0)) }, "request-record"},
	{"a request without its result", func(p *planting) { p.remove(format.RequestKey("once")) }, "request-record"},
	{"a key of no kind of a request", func(p *planting) { p.set([]byte("qz"), []byte("x")) }, "key-malformed"},
	{"a record of an unknown kind of a subscription", func(p *planting) { p.set([]byte("smail\x00z"), []byte("{}")) }, "key-malformed"},
}

// unreadable is a reader that cannot read one key.
type unreadable struct {
	storage.Reader
	key []byte
}

func (r unreadable) Iterate(lo, hi []byte) (storage.Iterator, error) {
	it, err := r.Reader.Iterate(lo, hi)
	return &unreadableIterator{Iterator: it, key: r.key}, err
}

type unreadableIterator struct {
	storage.Iterator
	key []byte
	err error
}

func (it *unreadableIterator) First() bool { return it.reads(it.Iterator.First()) }
func (it *unreadableIterator) Next() bool  { return it.reads(it.Iterator.Next()) }
func (it *unreadableIterator) Error() error {
	return errors.Join(it.err, it.Iterator.Error())
}

func (it *unreadableIterator) reads(ok bool) bool {
	if ok && bytes.Equal(it.Key(), it.key) {
		it.err = storage.ErrCorrupt
	}
	return ok && it.err == nil
}

// Ensure that of the results of requests nothing is said to be missing or too much whose key cannot
// be read.
func TestVerify_UnreadableRequest(t *testing.T) {
	engine := checks.Engine(allKinds(t))
	for _, key := range [][]byte{format.RequestKey("once"), format.RequestStateKey, format.RequestNumberKey(0)} {
		r, err := verify.Run(context.Background(), verify.Config{Use: func(fn func(storage.Reader) error) error {
			return fn(unreadable{engine, key})
		}})
		must(t, err)
		if len(r.ByKind) != 1 || r.ByKind[verify.Unreadable] != 1 {
			t.Errorf("%q cannot be read: %v", key, r.Damages)
		}
	}
}

// Ensure that planted damage of each kind is found and named, and that nothing is named that
// is not there, be it that it has the same sum as what is damaged.
func TestVerify_Planted(t *testing.T) {
	testPlanted(t)
	defer func(old uint64) { knobs.VerifySums = old }(knobs.VerifySums)
	knobs.VerifySums = 1
	testPlanted(t)
}

func testPlanted(t *testing.T) {
	t.Helper()
	db := allKinds(t)
	ctx := context.Background()
	p := &planting{t: t, engine: checks.Engine(db), before: make(map[string][]byte)}
	seen := make(map[string]bool)
	for _, one := range plants {
		one.plant(p)
		r, err := db.Verify(ctx, &jay.VerifyOptions{SkipFiles: true})
		if err != nil {
			t.Errorf("%s: %v", one.name, err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(r.ByKind)), " "); got != one.want {
			t.Errorf("%s: found %q, want %q", one.name, got, one.want)
			for _, d := range slices.Concat(r.Damages, r.Warnings)[:min(10, len(r.Damages)+len(r.Warnings))] {
				t.Logf("    %v", d)
			}
		}
		for _, d := range slices.Concat(r.Damages, r.Warnings) {
			seen[d.Kind] = true
			if d.Subject == "" || d.Problem == "" || d.Loss == "" || d.Remedy == "" || len(d.Key) == 0 && d.Kind != "server-side-ahead" {
				t.Errorf("%s: %+v does not say all", one.name, d)
			}
		}
		p.undo()
	}
	r, err := db.Verify(ctx, nil)
	must(t, err)
	if r.Found+r.Warned > 0 {
		t.Errorf("after all was taken out: %v", r.Damages)
	}
	for _, kind := range verify.Kinds() {
		files := kind == verify.FileMissing || kind == verify.FileDamaged || kind == verify.Unreadable // verify_files_test.go
		if !files && !seen[string(kind)] {
			t.Errorf("%s is never found", kind)
		}
	}
	t.Logf("%d damages of %d kinds", len(plants), len(seen))
}

// staleRecords makes a database in which older records of documents are seen again, as
// where the table with the newest ones was lost.
func staleRecords(t *testing.T, dir string) (records map[string][]byte) {
	t.Helper()
	ctx := context.Background()
	db := open(t, dir, nil)
	defer func() { must(t, db.Close()) }() // with the damage in it
	p := &planting{t: t, engine: checks.Engine(db), before: make(map[string][]byte)}
	must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"V"}}))
	put := func(id string, v int, opts ...jay.WriteOption) {
		_, err := db.Put(ctx, id, json.RawMessage(fmt.Sprintf(`{"V":%d}`, v)), opts...)
		must(t, err)
	}
	records = make(map[string][]byte)
	keep := func(id string) { records[id] = p.get(format.NewDocumentKey(id)) }
	notes, old := jay.InCollection("Notes"), jay.InCollection("Old")

	put("early", 1, notes) // before there was a rule
	put("early", 2, notes)
	keep("early")
	put("imported", 1, old)
	keep("imported")
	must(t, db.Delete(ctx, "imported"))
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	must(t, second(db.Revisions().Import(ctx, []json.RawMessage{
		json.RawMessage(`{"V":2,"@metadata":{"@id":"imported","@collection":"Notes","@change-vector":"B:900000-kKRSXHCbUUOAD9V3vs1NPA","@last-modified":"2024-01-01T00:00:00Z","@flags":"Revision"}}`),
	})))
	put("early", 3, notes)

	for _, id := range []string{"moved", "gone", "same", "last", "broken"} {
		put(id, 1, old)
		put(id, 2, old)
		keep(id)
	}
	must(t, db.Delete(ctx, "moved"))
	put("moved", 3, notes, jay.WithTTL(1000*time.Hour))
	put("moved", 4, notes)
	must(t, db.Delete(ctx, "gone"))
	put("same", 3, old)
	put("last", 3, old)
	p.remove(format.RevisionKey(nil, "last", 1))
	for v := 3; v < 6; v++ {
		put("broken", v, old)
	}
	newest := format.RevisionKey(nil, "broken", 4)
	p.set(newest, append(p.get(newest), '}'))

	put("file", 1, notes)
	keep("file")
	must(t, second(db.Attachments("file").Put(ctx, "f", strings.NewReader("text"))))
	put("file", 3, notes)
	for id, record := range records {
		p.set(format.NewDocumentKey(id), record)
	}
	return records
}

// Ensure that a repair takes the newest version of a document that is left, also where its
// record is an older one, and lists the document once.
func TestRepair_NewestVersion(t *testing.T) {
	sample.OneGoroutine(t)
	if invariants.Enabled {
		t.Skip("a build with invariants stops where it meets damage")
	}
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "old")
	into := filepath.Join(t.TempDir(), "new")
	records := staleRecords(t, dir)
	r, err := jay.Repair(ctx, dir, into, nil, nil)
	must(t, err)
	if r.After.Found+r.After.Warned > 0 || r.Indexes != 1 {
		t.Errorf("after: %+v", r.After)
	}
	listed := make(map[string]string)
	for _, l := range r.Lost {
		if l.What == "document" {
			listed[l.ID] += l.Why
		}
	}
	db := open(t, into, nil)
	defer closeDB(t, db)
	for _, want := range []struct {
		id         string
		body       string // "" for none
		collection string
		revisions  string // the bodies of all, from the newest on
		why        string
	}{
		{"early", `{"V":2}`, "Notes", `{"V":2}`, "its newest versions are lost; the version of etag 2 is kept"},
		{"imported", `{"V":2}`, "Notes", `{"V":2}{"V":2}`, "its newest versions are lost; the imported version B:900000-kKRSXHCbUUOAD9V3vs1NPA is kept; its record is an older version, of etag 3, and is left out"},
		{"moved", `{"V":3}`, "Notes", `{"V":3}{}{"V":2}{"V":1}`, "its newest versions are lost; the version of etag 900013 is kept; its record is an older version, of etag 900003, and is left out"},
		{"gone", "", "", `{}{"V":2}{"V":1}`, "it was deleted with etag 900015; its record is an older version, of etag 900005, and is left out"},
		{"same", `{"V":2}`, "Old", `{"V":2}{"V":1}`, "its newest versions are lost; the version of etag 900007 is kept"},
		{"last", `{"V":2}`, "Old", `{"V":2}`, "its newest versions are lost; the version of etag 900009 is kept"},
		{"broken", `{"V":3}`, "Old", `{"V":3}{"V":2}{"V":1}`, "its newest versions are lost; the version of etag 900018 is kept; its record is an older version, of etag 900011, and is left out"},
		{"file", `{"V":1}`, "Notes", `{"V":1}{"V":1}`, "its newest versions are lost; the version of etag 900022 is kept; its record is an older version, of etag 900021, and is left out"},
	} {
		if listed[want.id] != want.why {
			t.Errorf("%s: listed with %q, want %q", want.id, listed[want.id], want.why)
		}
		delete(listed, want.id)
		doc, err := db.Get(ctx, want.id)
		if there := err == nil; there != (want.body != "") || there && (string(doc.Body()) != want.body || doc.Collection() != want.collection) {
			t.Errorf("%s: %v, %v", want.id, doc, err)
		}
		got := ""
		for rev, err := range db.Revisions().List(ctx, want.id, jay.RevisionPage{}) {
			must(t, err)
			got += string(rev.Body())
		}
		if got != want.revisions {
			t.Errorf("%s: revisions %s, want %s", want.id, got, want.revisions)
		}
	}
	if len(listed) > 0 {
		t.Errorf("listed as well: %v", listed)
	}

	due, err := db.Get(ctx, "moved")
	must(t, err)
	if text, err := due.MarshalJSON(); err != nil || !strings.Contains(string(text), `"@expires"`) {
		t.Error("the version that expires does so no longer")
	}
	if _, err := db.Revisions().Get(ctx, "imported", "B:900000-kKRSXHCbUUOAD9V3vs1NPA"); err != nil {
		t.Errorf("by the change vector that it had: %v", err)
	}
	reader, err := db.Attachments("file").Get(ctx, "f")
	must(t, err)
	text, err := io.ReadAll(reader)
	must(t, err)
	must(t, reader.Close())
	if string(text) != "text" {
		t.Errorf("the attachment is %q", text)
	}

	for id := range records {
		in := "Notes"
		if doc, err := db.Get(ctx, id); err == nil {
			in = doc.Collection()
		}
		must(t, second(db.Put(ctx, id, json.RawMessage(`{"V":9}`), jay.InCollection(in))))
	}
	after, err := db.Verify(ctx, nil)
	must(t, err)
	if after.Found > 0 {
		t.Errorf("after another write of each: %v", after.Damages)
	}
}

// Ensure that a repair under options that write nothing is refused before it makes a directory.
func TestRepair_ReadOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "old")
	into := filepath.Join(t.TempDir(), "new")
	db, err := jay.Open(dir, nil)
	must(t, err)
	must(t, db.Close())
	if _, err := jay.Repair(t.Context(), dir, into, &jay.Options{ReadOnly: true}, nil); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "ReadOnly") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(into); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}
