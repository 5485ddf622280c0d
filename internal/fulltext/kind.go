// Package fulltext is the kind of index that finds documents by the words of their texts: settled blocks of postings, and a
// tail of documents that changed since, which each query reads, too. docs/format.md describes its keys.
package fulltext

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Name is the name of the kind in declarations. Part of the on-disk format. Must not change.
const Name = "text"

// The option of the kind. Part of the on-disk format. Must not change.
const optionAnalyzer = "analyzer"

// Kind is the kind.
var Kind = catalog.Kind{
	Open:    open,
	Feature: storage.FeatureText,
	Options: []catalog.Option{{
		Name:    optionAnalyzer,
		Default: query.DefaultAnalyzer,
		Rule:    "one of " + strings.Join(text.Names(), ", "),
		Check: func(value string) (string, bool) {
			a, found := text.Find(value)
			if !found {
				return value, false
			}
			return a.Name(), true
		},
	}},
}

// keeper is the Keeper of an index.
type keeper struct {
	ix       *catalog.Index
	analyzer *text.Analyzer
}

// open is catalog.Kind.Open.
func open(ix *catalog.Index) (catalog.Keeper, error) {
	for _, f := range ix.Fields {
		if f.Descending || f.Date != query.DateNone {
			return nil, fmt.Errorf("%w: index %q: %s: an index of words has fields of text, without an order and not as dates", errs.ErrIndex, ix.Info.Name, f.Text)
		}
	}
	a, _ := text.Find(ix.Option(optionAnalyzer)) // the catalog has checked it
	return &keeper{ix, a}, nil
}

// entryKey is the Keeper's part of the key of the only entry of a document.
var entryKey = []byte{'t'}

// Count implements catalog.Keeper: one entry, with all texts of the document.
func (k *keeper) Count(d *catalog.Document) int {
	n := 1
	for i := range k.ix.Fields {
		n = max(n, d.Reached(i))
	}
	return n
}

// Bytes implements catalog.Keeper.
func (k *keeper) Bytes(d *catalog.Document, _ int, p catalog.Precision) int {
	if p == catalog.Roughly {
		return catalog.EntryBytes + (len(k.ix.Fields)+1)*len(d.Body)
	}
	n := catalog.EntryBytes
	for i := range k.ix.Fields {
		for _, v := range d.Values(i) {
			n += len(v.Raw()) + 1 + binary.MaxVarintLen64
		}
	}
	return n
}

// Extract implements catalog.Keeper. The value of the entry has the texts: of each the field, a uvarint of its length, and the text.
func (k *keeper) Extract(d *catalog.Document, e *catalog.Entries) error {
	var value []byte
	for i := range k.ix.Fields {
		for _, v := range d.Values(i) {
			if v.Kind() == query.KindText {
				s := v.Text()
				value = append(binary.AppendUvarint(append(value, byte(i)), uint64(len(s))), s...)
			}
		}
	}
	if len(value) > 0 {
		e.Add(d, entryKey, value)
	}
	return nil
}

// eachText calls fn with the texts of a value that Extract has made.
func (k *keeper) eachText(value []byte, fn func(field int, s string)) error {
	for len(value) > 0 {
		field := int(value[0])
		n, size := binary.Uvarint(value[1:])
		if size <= 0 || n > uint64(len(value)-1-size) || field >= len(k.ix.Fields) {
			return fmt.Errorf("texts %.40x: %w", value, errs.ErrCorrupt)
		}
		value = value[1+size:]
		fn(field, string(value[:n]))
		value = value[n:]
	}
	return nil
}
