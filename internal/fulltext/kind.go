// Package fulltext is the kind of index that finds documents by the words of their texts: settled blocks of postings, and a
// tail of documents that changed since, which each query reads, too. docs/format.md describes its keys.
package fulltext

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Name is the name of the kind in declarations. Part of the on-disk format. Must not change.
const Name = "text"

// The options of the kind: a value for all fields, or one for each. Part of the on-disk format. Must not change.
const (
	optionAnalyzer = "analyzer"
	optionWeights  = "weights"
)

// Kind is the kind.
var Kind = catalog.Kind{
	Open:    open,
	Feature: storage.FeatureText,
	Options: []catalog.Option{{
		Name:    optionAnalyzer,
		Default: query.DefaultAnalyzer,
		Rule:    "one for all fields, or one for each, with commas between them, of " + strings.Join(text.Names(), ", "),
		Check: func(value string) (string, bool) {
			return canonical(value, func(name string) (string, bool) {
				a, found := text.Find(name)
				if !found {
					return "", false
				}
				return a.Name(), true
			})
		},
	}, {
		Name:    optionWeights,
		Default: "1",
		Rule:    fmt.Sprintf("one number above 0 and up to %d for all fields, or one for each, with commas between them", query.MaxBoost),
		Check: func(value string) (string, bool) {
			return canonical(value, func(number string) (string, bool) {
				weight, err := strconv.ParseFloat(number, 64)
				return strconv.FormatFloat(weight, 'f', -1, 64), err == nil && weight > 0 && weight <= query.MaxBoost
			})
		},
	}},
}

// canonical makes each part of a list canonical, and one of several that are the same.
func canonical(list string, one func(string) (string, bool)) (string, bool) {
	parts := strings.Split(list, ",")
	for i, part := range parts {
		var ok bool
		if parts[i], ok = one(strings.TrimSpace(part)); !ok {
			return list, false
		}
	}
	return strings.Join(parts, ", "), len(parts) <= catalog.MaxFields
}

// keeper is the Keeper of an index.
type keeper struct {
	ix        *catalog.Index
	analyzers []*text.Analyzer // by field
	weights   []float64        // by field
	version   string           // of the analyzers
	kept      kept
	scans     sync.Pool    // of *[]scan, by field
	staged    atomic.Int64 // how often texts have been staged
	progress  progress
}

// open is catalog.Kind.Open.
func open(ix *catalog.Index) (catalog.Keeper, error) {
	for _, f := range ix.Fields {
		if f.Descending || f.Date != query.DateNone {
			return nil, fmt.Errorf("%w: index %q: %s: an index of words has fields of text, without an order and not as dates", errs.ErrIndex, ix.Info.Name, f.Text)
		}
	}
	k := &keeper{ix: ix}
	names, err := perField(ix, optionAnalyzer)
	if err != nil {
		return nil, err
	}
	weights, err := perField(ix, optionWeights)
	if err != nil {
		return nil, err
	}
	var versions []string
	for i := range ix.Fields {
		a, _ := text.Find(names[i]) // the catalog has checked it
		weight, _ := strconv.ParseFloat(weights[i], 64)
		k.analyzers, k.weights = append(k.analyzers, a), append(k.weights, weight)
		if !slices.Contains(versions, a.Version()) {
			versions = append(versions, a.Version())
		}
	}
	k.version = strings.Join(versions, "; ")
	return k, nil
}

// perField returns the values of an option by field.
func perField(ix *catalog.Index, option string) ([]string, error) {
	values := strings.Split(ix.Option(option), ", ")
	switch len(values) {
	case len(ix.Fields):
		return values, nil
	case 1:
		return slices.Repeat(values, len(ix.Fields)), nil
	}
	return nil, &index.OptionError{Index: ix.Info.Name, Collection: ix.Info.Collection, Kind: Name, Option: option, Value: ix.Option(option), Rule: fmt.Sprintf("one for all fields, or one for each of the %d fields", len(ix.Fields))}
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
