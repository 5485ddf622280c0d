// Package vectors is the kind of index that finds documents by what their vectors are like: codes of a byte for each number, in partitions
// of vectors that lie near one another, and a tail of those that changed since, which each query reads, too. docs/format.md describes its keys.
package vectors

import (
	"fmt"
	"strconv"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/vector"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Name is the name of the kind in declarations. Part of the on-disk format. Must not change.
const Name = "vectors"

// The options of the kind. Part of the on-disk format. Must not change.
const (
	optionDimensions = "dimensions"
	optionMetric     = "metric"
)

// Kind is the kind.
var Kind = catalog.Kind{
	Open:    open,
	Whole:   true,
	Feature: storage.FeatureVectors,
	Options: []catalog.Option{{
		Name: optionDimensions,
		Rule: fmt.Sprintf("how many numbers each vector has, from 1 to %d", vector.MaxDimensions),
		Check: func(value string) (string, bool) {
			n, err := strconv.Atoi(value)
			return strconv.Itoa(n), err == nil && n >= 1 && n <= vector.MaxDimensions
		},
	}, catalog.OneOf(optionMetric, vector.Metrics()...), catalog.OneOf(catalog.OptionStrict, "yes", "no")},
}

// MaxVectors is how many vectors a document has in an index at most.
const MaxVectors = 4096

// keeper is the Keeper of an index.
type keeper struct {
	ix         *catalog.Index
	metric     vector.Metric
	dimensions int
	strict     bool
	kept       kept
	pressure   catalog.Pressure // of the tail when the worker read it last
}

// open is catalog.Kind.Open.
func open(ix *catalog.Index) (catalog.Keeper, error) {
	if len(ix.Fields) > 1 {
		return nil, fmt.Errorf("%w: index %q: an index of vectors has one field, such as Embedding, and not %d", errs.ErrIndex, ix.Info.Name, len(ix.Fields))
	}
	for _, f := range ix.Fields {
		if f.Descending || f.Date != query.DateNone || f.Query().Expression != nil {
			return nil, fmt.Errorf("%w: index %q: %s: an index of vectors has the field of a vector, without an order and not computed", errs.ErrIndex, ix.Info.Name, f.Text)
		}
	}
	k := &keeper{ix: ix, strict: ix.Option(catalog.OptionStrict) == "yes"}
	k.dimensions, _ = strconv.Atoi(ix.Option(optionDimensions)) // the catalog has checked both
	k.metric, _ = vector.ParseMetric(ix.Option(optionMetric))
	return k, nil
}

// entryKey is the Keeper's part of the key of the only entry of a document.
var entryKey = []byte{'t'}

// Count implements catalog.Keeper: one entry, with all vectors of the document.
func (k *keeper) Count(d *catalog.Document) int { return max(1, d.Reached(0)) }

// Bytes implements catalog.Keeper. A code has a byte for a number, which takes two of JSON at least, and what is in front.
func (k *keeper) Bytes(d *catalog.Document, _ int, p catalog.Precision) int {
	switch p {
	case catalog.Roughly:
		return catalog.EntryBytes + printBytes + codeHead*len(d.Body)
	case catalog.Exactly:
		n := catalog.EntryBytes + printBytes
		_ = k.each(d, func([]float32) error {
			n += k.codeSize()
			return nil
		})
		return n
	}
	n := catalog.EntryBytes + printBytes
	for _, v := range d.Values(0) {
		n += k.codeSize() * (1 + len(v.Raw())/(2*k.dimensions))
	}
	return n
}

// Extract implements catalog.Keeper: an entry with the codes of all vectors of the document, also with none, behind their print. That is made here, as all writers can do so at
// once, and not by Stage, in whose transaction there is one.
func (k *keeper) Extract(d *catalog.Document, e *catalog.Entries) error {
	value := make([]byte, printBytes, printBytes+k.codeSize())
	n := 0
	err := k.each(d, func(v []float32) error {
		if n++; n > MaxVectors {
			return &metadata.Error{Rule: fmt.Sprintf("at most %d vectors in index %q", MaxVectors, k.ix.Info.Name), Limit: MaxVectors, Actual: n}
		}
		value = appendCode(value, v)
		return nil
	})
	if err != nil {
		return err
	}
	print := printOf(value[printBytes:])
	copy(value, print[:])
	e.Add(d, entryKey, value)
	return nil
}

// given returns what Extract has put into an entry.
func given(e *catalog.Entry) (print [printBytes]byte, codes []byte) {
	_, value := e.Given()
	return [printBytes]byte(value), value[printBytes:]
}

// each calls fn with the vectors of a document that the index has, until it returns an error. Of a strict index the error is an *index.ValueError for a
// value that is none; a value that is missing or null is not meant to be one.
func (k *keeper) each(d *catalog.Document, fn func(v []float32) error) (err error) {
	var numbers []float32
	for _, value := range d.Values(0) {
		if value.Kind() <= query.KindNull {
			continue
		}
		if numbers == nil {
			numbers = make([]float32, 0, k.dimensions)
		}
		vector.Each(value.Raw(), func(raw []byte) bool {
			numbers, err = vector.Read(numbers[:0], raw)
			if bad := k.check(numbers, err); bad != nil {
				if err = nil; k.strict {
					err = &index.ValueError{Index: k.ix.Info.Name, Collection: k.ix.Info.Collection, Field: k.ix.Fields[0].Text, Rule: bad.Rule, Value: bad.Value}
				}
				return err == nil
			}
			err = fn(numbers)
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns why the index cannot have a vector, or nil. err is why it could not be read.
func (k *keeper) check(v []float32, err error) *vector.Error {
	if bad, is := err.(*vector.Error); is {
		return bad
	}
	if len(v) != k.dimensions {
		return &vector.Error{Rule: fmt.Sprintf("a vector of this index has %d numbers", k.dimensions), Value: fmt.Sprintf("there are %d", len(v))}
	}
	if k.metric == vector.Cosine && isZero(v) {
		return &vector.Error{Rule: "a vector has a direction, if its cosine is asked for", Value: fmt.Sprintf("all of its %d numbers are 0", len(v))}
	}
	return nil
}

func isZero(v []float32) bool {
	for _, f := range v {
		if f != 0 {
			return false
		}
	}
	return true
}
