package write

import (
	"context"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Move puts documents of one collection into another one in one commit, the exception
// to the rule that a document stays in its collection. To everything that follows the
// changes of a collection, a move is a delete in the one and a new document in the
// other: two etags, two records of changes, and the same ID. Body, custom metadata and
// attachments stay. A document that has changed since it was read is moved as it is now, and left
// out if it is in the collection no more. Move returns how many documents it has moved. It does not
// wait for the disk: the caller does.
func (w *Writer) Move(ctx context.Context, found []*docs.Document, to string) (moved int, err error) {
	if len(found) == 0 {
		return 0, nil
	}
	modified := metadata.Ticks(w.Env.Now())
	if err := env.CheckTicks(modified); err != nil {
		return 0, err
	}
	moves := make([]move, len(found))
	all := make([]*Op, 0, 2*len(found))
	for i, doc := range found {
		moves[i].to, moves[i].modified = to, modified
		moves[i].prepare(w, doc)
		all = append(all, &moves[i].del, &moves[i].put)
	}
	if err := w.Yield(ctx, all); err != nil {
		return 0, err
	}
	err = w.Transact(ctx, false, func(t *Txn) error {
		moved, all = 0, all[:0]
		for i := range moves {
			m := &moves[i]
			there, err := m.refresh(t)
			if err != nil {
				return err
			}
			if there {
				moved++
				all = append(all, &m.del, &m.put)
			}
		}
		return t.Run(all)
	})
	if err != nil {
		return 0, err
	}
	return moved, nil
}

// move is one document on its way into another collection.
type move struct {
	to       string
	modified uint64 // in ticks
	from     string // folded
	seen     Version
	del, put Op
}

// prepare makes the two ops for a document.
func (m *move) prepare(w *Writer, doc *docs.Document) {
	h := doc.Header()
	m.from = format.CollectionKey(string(h.Collection))
	m.seen = Version{Node: h.Node, Etag: h.Etag}
	named := Prepared{Strategy: ids.Semantic, Resolved: doc.ID(), ID: doc.ID(), FoldedID: doc.FoldedID()}
	m.del = Op{Request: Request{Verb: Delete, RequestID: doc.ID()}, Prepared: named}
	m.put = Op{Request: Request{Verb: Insert, RequestID: doc.ID(), Collection: m.to, Named: true}, Prepared: named}
	m.put.JSON = doc.JSON()
	m.put.Header = metadata.Header{Node: w.Env.Node, Modified: m.modified, Collection: []byte(m.to), Custom: h.Custom, Timed: h.Timed, Attachments: h.Attachments}
	m.del.moves, m.put.moves = true, true
	m.del.Header.Modified = m.modified // of the revision that the deletion is
	m.put.FoldedCollection = format.CollectionKey(m.to)
	m.put.extract(w.Indexes.Load().Of(m.put.FoldedCollection))
	w.EncodeTail(&m.put)
}

// refresh prepares a document again that has changed since it was read. It returns
// false if the document is in its collection no more.
func (m *move) refresh(t *Txn) (there bool, err error) {
	now, err := t.Version(m.del.FoldedID)
	if err != nil || now == m.seen {
		return err == nil, err
	}
	t.key = format.DocumentKey(t.key[:0], m.del.FoldedID)
	record, closer, err := t.Tx.Get(t.key)
	if err == storage.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	doc, err := t.Writer.Docs.CopyDocument(format.DocumentID(t.key), record)
	if err = errs.First(err, closer.Close()); err != nil || !doc.IsIn(m.from) {
		return false, err
	}
	m.prepare(t.Writer, doc)
	m.put.Late = true // there is no time before the transaction for its index entries
	return true, nil
}
