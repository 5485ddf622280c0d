package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// entryDerivation is derive for index entries.
type entryDerivation struct {
	v  *verifier
	r  storage.Reader // that has the documents that others load
	d  *document
	fn func(key, value []byte) error
}

// all derives the entries of all indexes.
func (e entryDerivation) all() error {
	v, d := e.v, e.d
	ci := v.byCollection[d.collection]
	if !d.whole || ci == nil {
		return nil
	}
	if err := e.of(ci, d.body); err != nil {
		return err
	}
	for _, of := range ci.Loading {
		if err := e.loading(of); err != nil {
			return err
		}
	}
	return nil
}

// loading derives the entries of an index that loads documents.
func (e entryDerivation) loading(of *catalog.Collection) error {
	v, d, fn, ix := e.v, e.d, e.fn, of.Only()
	expanded, err := ix.Loads.Expand(d.body, v.rules.Fold, e.loaded)
	if large := (*query.LimitError)(nil); errors.As(err, &large) || IsDamage(err) {
		v.lacks("document %q: its entries in index %q: %v", d.folded, ix.Info.Name, err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, referenced := range expanded.References {
		if ix.Stager != nil {
			err = fn(countedFact(ix.Number, catalog.ReferenceFact(referenced, d.folded)), nil)
		} else {
			err = fn(catalog.AppendReferenceKey(nil, ix.Number, referenced, d.folded), nil)
		}
		if err != nil {
			return err
		}
	}
	return e.of(of, expanded.Body)
}

// loaded returns the body of a document that another one loads, nil for none.
func (e entryDerivation) loaded(folded string) ([]byte, error) {
	doc, known, err := e.v.documentAt(e.r, folded)
	if err == nil && !known {
		err = fmt.Errorf("document %q cannot be read: %w", folded, errs.ErrCorrupt)
	}
	if err != nil || doc == nil {
		return nil, err
	}
	return bytes.Clone(doc.body), nil
}

// of derives the entries of some indexes, which are made of body.
func (e entryDerivation) of(ci *catalog.Collection, body []byte) error {
	v, d, fn := e.v, e.d, e.fn
	id := d.id()
	err := ci.EachStored(body, func(es *catalog.Entries) error {
		for i := range es.List {
			one := &es.List[i]
			if one.Index.Stager != nil {
				err := one.Index.Stager.GivenFacts(d.folded, one, func(fact []byte, weight int64) error {
					return fn(countedFact(one.Index.Number, fact), binary.AppendUvarint(nil, uint64(weight)))
				})
				if err != nil {
					return err
				}
				continue
			}
			v.key, v.value = one.AppendKey(v.key[:0], d.folded), one.AppendValue(v.value[:0], id, d.folded)
			if err := fn(v.key, v.value); err != nil {
				return err
			}
		}
		for _, f := range es.Flags {
			v.byNumber[f.Number].flags |= f.Flags
		}
		return nil
	})
	if IsDamage(err) {
		v.lacks("document %q: its index entries: %v", d.folded, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("index entries of document %q: %w", d.folded, err)
	}
	return nil
}
