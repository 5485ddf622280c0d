package write

import (
	"bytes"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/heads"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/metadata"
)

// The heads of documents that were written lately are in memory: see package heads. A
// write of one of them need not look for the version that it replaces, if it needs
// neither its body, as an index does, nor all of it, as a revision does.

// knownHead returns what o needs to know of the document that it finds, if its head is
// known and suffices.
func (w *Writer) knownHead(o *Op, c *catalog.Catalog, rules *revisions.Rules) (OldDocument, bool) {
	if w.Heads == nil || o.Strategy.Made() || o.KeepRevision || o.KeepReplaced {
		return OldDocument{}, false
	}
	h, known := w.Heads.Find(o.FoldedID)
	if !known {
		return OldDocument{}, false
	}
	if len(c.ByCollection) > 0 || rules != nil {
		folded := format.CollectionKey(h.Collection)
		if c.Of(folded) != nil || rules.Of(folded) != nil {
			return OldDocument{}, false
		}
	}
	old := OldDocument{Node: w.Env.Node, Etag: h.Etag, Size: h.Size, Collection: h.Collection}
	if o.Verb.Deletes() {
		if old.ID, known = h.WrittenID(o.FoldedID); !known { // its change has it
			return OldDocument{}, false
		}
	}
	return old, true
}

// knownHead is Writer.knownHead inside the transaction: the document is there.
func (t *Txn) knownHead(o *Op) (OldDocument, bool) {
	old, known := t.Writer.knownHead(o, t.indexes(), t.rules())
	if known && invariants.Enabled {
		t.checkHead(o, &old)
	}
	return old, known
}

// checkHead checks a known head against the store.
func (t *Txn) checkHead(o *Op, known *OldDocument) {
	value, closer, err := t.Tx.Get(format.DocumentKey(nil, o.FoldedID))
	if err != nil {
		invariants.Broken("the head of %q is known, and the document is not there: %v", o.FoldedID, err)
	}
	h, body, err := metadata.Decode(value)
	if err != nil {
		invariants.Broken("the head of %q is known, and the record is not whole: %v", o.FoldedID, err)
	}
	if h.Node != known.Node || h.Etag != known.Etag || h.Size()+len(body) != known.Size || string(h.Collection) != known.Collection || h.Attachments != nil || h.Timed || h.Revision != 0 {
		invariants.Broken("the head of %q is known as %+v, and is %+v with a body of %d bytes", o.FoldedID, *known, h, len(body))
	}
	if id := docs.WrittenID(&h, o.FoldedID); o.Verb.Deletes() && id != known.ID {
		invariants.Broken("the ID of %q is known as %q, and was written %q", o.FoldedID, known.ID, id)
	}
	_ = closer.Close() // the value was read
}

// newHeads are the heads of what a run of a transaction has written.
type newHeads struct {
	all []newHead

	// The number of a collection in a table, which was needed last.
	table  *heads.Table
	name   []byte
	number uint16
}

type newHead struct {
	at         heads.Ref
	etag       uint64
	size       int
	collection uint16
	spelling   heads.Spelling
}

// maxNewHeads is how many heads the memory of a transaction is kept for.
const maxNewHeads = 4096

// empty returns h without heads.
func (h newHeads) empty() newHeads {
	if cap(h.all) > maxNewHeads {
		h.all = nil
	}
	h.all = h.all[:0]
	return h
}

// idle returns h for the next transaction, which may be of another database.
func (h newHeads) idle() newHeads {
	h = h.empty()
	h.table = nil
	return h
}

// enter enters the heads: the transaction is committed.
func (h *newHeads) enter(t *heads.Table) {
	for i := range h.all {
		e := &h.all[i]
		t.Set(e.at, e.etag, e.size, e.collection, e.spelling)
	}
}

// changeHead makes the head of the document that o replaces unknown, and notes the new
// one, if it is to be known.
func (t *Txn) changeHead(o *Op, etag uint64, size int) {
	if t.Writer.Heads == nil {
		return
	}
	h, n := &o.Header, &t.heads
	known := h.Attachments == nil && !h.Timed && h.Revision == 0 && h.Node == t.Writer.Env.Node
	if known && (n.table != t.Writer.Heads || !bytes.Equal(n.name, h.Collection)) {
		var number uint16
		if number, known = t.Writer.Heads.Name(string(h.Collection)); known {
			n.table, n.name, n.number = t.Writer.Heads, append(n.name[:0], h.Collection...), number
		}
	}
	if !known {
		t.Writer.Heads.Forget(o.FoldedID)
		return
	}
	if at := t.Writer.Heads.Reserve(o.FoldedID); at != (heads.Ref{}) {
		n.all = append(n.all, newHead{at, etag, size, n.number, heads.SpellingOf(o.FoldedID, h.ID)})
	}
}
