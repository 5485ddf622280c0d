package engine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/fixture"
)

// Other ways of writing to Jay, which are compared with its batches and puts.
const (
	JayBulk    = "jay-bulk"
	JayEncode  = "jay-encode"
	JaySession = "jay-session"
	JayPut     = "jay-put"
	JayPatch   = "jay-patch"
)

// variant returns a maker of Jay that differs in one way of using it.
func variant(name, notes string, change func(e *jayEngine) (Engine, error)) Maker {
	m := jayMaker
	m.Name, m.Notes, m.VariantOf, m.Queries, m.OpenBare = name, notes, Jay, false, nil
	m.Open = func(s Settings) (Engine, error) {
		e := &jayEngine{settings: s, ctx: jayContext}
		if err := e.open(); err != nil {
			return nil, err
		}
		return change(e)
	}
	return m
}

var jayVariants = []Maker{
	variant(JayBulk, "Inserts by BulkWriter.Store, which commits in the background, and a Flush at the end.",
		func(e *jayEngine) (Engine, error) {
			w, err := e.db.BulkInsert(nil)
			return &jayBulk{e, w}, err
		}),
	variant(JayEncode, "Batches of values: json.Marshal, then DB.Apply.",
		func(e *jayEngine) (Engine, error) { return &jayEncode{e}, nil }),
	variant(JaySession, "A Session for each batch of values: Store of each, then SaveChanges.",
		func(e *jayEngine) (Engine, error) { return &jaySession{e}, nil }),
	variant(JayPut, "Updates by DB.Put.",
		func(e *jayEngine) (Engine, error) { return &jayPut{e}, nil }),
	variant(JayPatch, "Updates by DB.Patch, which increments Revision.",
		func(e *jayEngine) (Engine, error) { return &jayPatch{e}, nil }),
}

// Saver is what an engine has that writes values and not bytes.
type Saver interface {
	// Begin takes new documents, whose IDs it fills in, to be written by save in
	// one atomic batch.
	Begin(orders []*fixture.Order) (save func() error, err error)
}

// jayBulk is Jay by its bulk writer.
type jayBulk struct {
	*jayEngine
	w *jay.BulkWriter
}

// Insert implements Engine, but returns before the documents are there.
func (e *jayBulk) Insert(docs []Doc) error {
	for i := range docs {
		if _, err := e.w.Store(e.ctx, collection, docs[i].Body); err != nil {
			return err
		}
	}
	return nil
}

// Sync implements Syncer.
func (e *jayBulk) Sync() error { return e.w.Flush(e.ctx) }

// Close implements Engine.
func (e *jayBulk) Close() error { return errors.Join(e.w.Close(), e.jayEngine.Close()) }

// jayEncode is Jay by batches, with the encoding that a user's values need.
type jayEncode struct{ *jayEngine }

// Begin implements Saver.
func (e *jayEncode) Begin(orders []*fixture.Order) (save func() error, err error) {
	b := e.batch()
	for _, order := range orders {
		body, err := json.Marshal(order)
		if err != nil {
			return nil, err
		}
		b.Store(collection, body)
	}
	return func() error {
		defer e.batches.Put(b)
		_, err := e.db.Apply(e.ctx, b)
		return err
	}, nil
}

// jaySession is Jay by sessions.
type jaySession struct{ *jayEngine }

// Begin implements Saver.
func (e *jaySession) Begin(orders []*fixture.Order) (save func() error, err error) {
	s := e.db.OpenSession(jay.WithCollections(e.orders))
	for _, order := range orders {
		if err := s.Store(e.ctx, order); err != nil {
			return nil, err
		}
	}
	return func() error { return s.SaveChanges(e.ctx) }, nil
}

// jayPut is Jay with updates by Put.
type jayPut struct{ *jayEngine }

// UpdateOne implements Engine.
func (e *jayPut) UpdateOne(doc Doc) error {
	_, err := e.db.Put(e.ctx, doc.Text, doc.Body, jay.InCollection(collection))
	return err
}

// jayPatch is Jay with updates by Patch.
type jayPatch struct{ *jayEngine }

// UpdateOne implements Engine, if the document is to get its next revision and
// no other change.
func (e *jayPatch) UpdateOne(doc Doc) error {
	result, err := e.db.Patch(e.ctx, doc.Text, jay.Increment("Revision", 1))
	if err == nil && result.Status != jay.PatchPatched {
		err = fmt.Errorf("patch %q: %s", doc.Text, result.Status)
	}
	return err
}
