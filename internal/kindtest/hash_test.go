package kindtest_test

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/kindtest"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// hash is the Keeper of a toy: an index of one field that answers equality only. A document
// has an entry for the hash of each of its values, whose value is a sum of the hash.
//
//	hash(1) → sum(1)
//
// The hash is so short that other documents are among the candidates. Text that begins with "!" is
// refused, so that there is something that is.
type hash struct{ ix *catalog.Index }

// openHash is the Open of the kind.
func openHash(ix *catalog.Index) (catalog.Keeper, error) {
	if len(ix.Fields) != 1 || ix.Fields[0].Descending || ix.Fields[0].Date != query.DateNone {
		return nil, fmt.Errorf("%w: a hash index has one field, which is neither descending nor a date", errs.ErrIndex)
	}
	return hash{ix}, nil
}

// hashOf returns the hash of a value. Texts that are equal but for case have the same.
func hashOf(v query.Value) byte {
	h := fnv.New32a()
	_, _ = h.Write(query.EqualRange(v, true, false).Lo) // never fails
	return byte(h.Sum32())
}

// Count implements catalog.Keeper.
func (h hash) Count(d *catalog.Document) int { return max(1, d.Reached(0)) }

// Bytes implements catalog.Keeper.
func (h hash) Bytes(_ *catalog.Document, count int, _ catalog.Precision) int {
	return count * (catalog.EntryBytes + 2)
}

// Extract implements catalog.Keeper.
func (h hash) Extract(d *catalog.Document, e *catalog.Entries) error {
	for _, v := range d.Values(0) {
		if v.Kind() == query.KindText && v.Text() != "" && v.Text()[0] == '!' {
			return &metadata.Error{Rule: fmt.Sprintf("no text with ! in index %q", h.ix.Info.Name)}
		}
		sum := hashOf(v)
		e.Add(d, []byte{sum}, []byte{^sum})
	}
	return nil
}

// AppendID implements catalog.Keeper.
func (h hash) AppendID(dst, key, _ []byte) ([]byte, error) {
	_, folded, err := catalog.EntryKey(key, 1)
	return append(dst, folded...), err
}

// Describe implements catalog.Keeper.
func (h hash) Describe(key []byte) string {
	part, folded, err := catalog.EntryKey(key, 1)
	if err != nil {
		return catalog.Hex(key)
	}
	return fmt.Sprintf("hash %x of document %q", part, folded)
}

// Answer implements catalog.Answerer.
func (h hash) Answer(q *catalog.Question) *catalog.Answer {
	for i, e := range q.Conditions {
		c, ok := e.(query.Compare)
		if !ok || c.Op != query.Equal || !h.ix.Fields[0].Is(c.Field) || c.Value.Kind() <= query.KindNull {
			continue
		}
		lo := append(format.AppendIndexPrefix(nil, h.ix.Number), hashOf(c.Value))
		return &catalog.Answer{Used: []int{i}, Text: "one hash", Open: func(r catalog.Means) (catalog.Candidates, error) {
			it, err := r.Iterate(lo, format.PrefixEnd(lo))
			return &hashWalk{it: it}, err
		}}
	}
	return nil
}

// hashWalk walks over the entries of one hash.
type hashWalk struct {
	it    storage.Iterator
	begun bool
}

// Next implements catalog.Candidates.
func (w *hashWalk) Next() ([]byte, error) {
	more := w.begun && w.it.Next() || !w.begun && w.it.First()
	if w.begun = true; !more {
		return nil, w.it.Error()
	}
	_, folded, err := catalog.EntryKey(w.it.Key(), 1)
	return folded, err
}

// Close implements catalog.Candidates.
func (w *hashWalk) Close() error { return w.it.Close() }

// Ensure that a kind that nothing but this file knows is declared, kept, built, asked, explained,
// checked and repaired as the ordered index is.
func TestHash(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:      "hash",
		Kind:      catalog.Kind{Open: openHash},
		Index:     jay.Index{Fields: []string{"Name"}},
		Body:      body,
		Condition: condition,
		Explained: `hash index "tested", one hash`,
		Invalid:   []jay.Index{{}, {Fields: []string{"Name", "Age"}}, {Fields: []string{"-Name"}}, {Fields: []string{"Name as date"}}},
		Refused:   `{"Name":"!"}`,
	})
}
