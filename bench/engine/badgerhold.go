package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/dgraph-io/badger/v4"
	"github.com/timshannon/badgerhold/v4"

	"github.com/jaydb/jay/bench/fixture"
)

var badgerholdMaker = Maker{
	Name:     "badgerhold",
	Module:   "github.com/timshannon/badgerhold/v4",
	Synced:   "badger's SyncWrites",
	Unsynced: "SyncWrites off, the default",
	Notes: "Badger's settings. Keeps JSON instead of its default gob, and takes a body as it is, so that it never encodes: the best case for it. " +
		"TxInsert looks whether the ID is free, Update and Delete look for the old document. " +
		"Queries: its index keeps one growing list of keys for each value, so that building it document by document takes time quadratic in the documents of a value; " +
		"after a load the lists are written at once instead. Batches too large for a transaction are split.",
	Queries: true,
	Open:    openBadgerhold,
}

// holdDoc is the value that badgerhold stores: the JSON of a document, unchanged.
type holdDoc struct{ Body []byte }

// holdType is the name under which badgerhold keeps documents.
const holdType = "Orders"

// Type implements badgerhold.Storer, which spares it the reflection.
func (*holdDoc) Type() string { return holdType }

// Indexes implements badgerhold.Storer.
func (*holdDoc) Indexes() map[string]badgerhold.Index { return nil }

// holdOrder reads a document as an Order.
type holdOrder struct{ order *fixture.Order }

// Type implements badgerhold.Storer.
func (*holdOrder) Type() string { return holdType }

// Indexes implements badgerhold.Storer.
func (*holdOrder) Indexes() map[string]badgerhold.Index { return nil }

func encodeHold(value any) ([]byte, error) {
	switch v := value.(type) {
	case []byte:
		return v, nil
	case *holdDoc:
		return v.Body, nil
	case *indexedHoldDoc:
		return v.Body, nil
	case badgerhold.KeyList, int64, float64, string:
		return encodeHoldIndex(v), nil
	}
	return nil, fmt.Errorf("badgerhold encodes a %T", value)
}

func decodeHold(data []byte, value any) error {
	switch v := value.(type) {
	case *holdDoc:
		v.Body = bytes.Clone(data)
		return nil
	case *indexedHoldDoc:
		v.Body = bytes.Clone(data)
		return nil
	case *holdRow:
		v.decode(data)
		return nil
	case *badgerhold.KeyList, *int64, *float64, *string:
		return decodeHoldIndex(data, value)
	case *holdOrder:
		return json.Unmarshal(data, v.order)
	}
	return fmt.Errorf("badgerhold decodes a %T", value)
}

// badgerholdEngine is badgerhold.
type badgerholdEngine struct {
	store   *badgerhold.Store
	indexed bool // Indexes are kept
	// most is how many documents go into a transaction: fewer once one was
	// too big.
	most int
}

func openBadgerhold(s Settings) (Engine, error) {
	options := badgerhold.DefaultOptions
	options.Options = badgerOptions(s)
	options.Encoder, options.Decoder = encodeHold, decodeHold
	store, err := badgerhold.Open(options)
	return &badgerholdEngine{store: store, most: math.MaxInt}, err
}

// Insert implements Engine.
func (e *badgerholdEngine) Insert(docs []Doc) error {
	for len(docs) > 0 {
		part := docs[:min(len(docs), e.most)]
		err := e.insert(part)
		if errors.Is(err, badger.ErrTxnTooBig) && len(part) > 1 {
			e.most = len(part) / 2
			continue
		}
		if err != nil {
			return err
		}
		docs = docs[len(part):]
	}
	return nil
}

// insert inserts documents in one transaction.
func (e *badgerholdEngine) insert(docs []Doc) error {
	return e.store.Badger().Update(func(tx *badger.Txn) error {
		for i := range docs {
			var doc any = &holdDoc{docs[i].Body}
			if e.indexed {
				doc = &indexedHoldDoc{docs[i].Body}
			}
			if err := e.store.TxInsert(tx, docs[i].Bytes, doc); err != nil {
				return err
			}
		}
		return nil
	})
}

// InsertOne implements Engine.
func (e *badgerholdEngine) InsertOne(doc Doc) error {
	return e.store.Insert(doc.Bytes, &holdDoc{doc.Body})
}

// Update implements Engine.
func (e *badgerholdEngine) Update(docs []Doc) error {
	return e.store.Badger().Update(func(tx *badger.Txn) error {
		for i := range docs {
			if err := e.store.TxUpdate(tx, docs[i].Bytes, &holdDoc{docs[i].Body}); err != nil {
				return err
			}
		}
		return nil
	})
}

// UpdateOne implements Engine.
func (e *badgerholdEngine) UpdateOne(doc Doc) error {
	return e.store.Update(doc.Bytes, &holdDoc{doc.Body})
}

// Delete implements Engine.
func (e *badgerholdEngine) Delete(keys []Key) error {
	return e.store.Badger().Update(func(tx *badger.Txn) error {
		for i := range keys {
			if err := e.store.TxDelete(tx, keys[i].Bytes, &holdDoc{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteOne implements Engine.
func (e *badgerholdEngine) DeleteOne(key Key) error { return e.store.Delete(key.Bytes, &holdDoc{}) }

// Get implements Engine.
func (e *badgerholdEngine) Get(key Key) ([]byte, error) {
	var doc holdDoc
	err := e.store.Get(key.Bytes, &doc)
	if errors.Is(err, badgerhold.ErrNotFound) {
		return nil, ErrNotFound
	}
	return doc.Body, err
}

// GetTyped implements Engine.
func (e *badgerholdEngine) GetTyped(key Key, into *fixture.Order) error {
	return e.store.Get(key.Bytes, &holdOrder{into})
}

// Scan implements Engine, on the Badger below: badgerhold's own queries know
// no prefix of a key.
func (e *badgerholdEngine) Scan(prefix string, fn Visit) error {
	return scanBadger(e.store.Badger(), "bh_"+holdType+":", prefix, fn)
}

// Rest implements Engine.
func (e *badgerholdEngine) Rest() error { return e.store.Badger().Flatten(2) }

// Close implements Engine.
func (e *badgerholdEngine) Close() error { return e.store.Close() }
