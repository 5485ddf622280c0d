package kindtest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
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

// sums is the Keeper of a toy: how many documents have a text in its first field, and the sum of
// the second one, kept by Tx.Add, and for each document what it has added.
//
//	'g' text 00 → count(8) sum(8)
//	'm' id 00 → sum(8) text
//
// A document without a text has no part in it, one without a whole number adds 0, and one with several texts is
// refused. It answers equality of the text, by walking over all documents in it.
type sums struct{ ix *catalog.Index }

// openSums is the Open of the kind.
func openSums(ix *catalog.Index) (catalog.Keeper, error) {
	if len(ix.Fields) != 2 {
		return nil, fmt.Errorf("%w: an index of sums has two fields", errs.ErrIndex)
	}
	return sums{ix}, nil
}

// Count implements catalog.Keeper.
func (s sums) Count(*catalog.Document) int { return 1 }

// Bytes implements catalog.Keeper.
func (s sums) Bytes(d *catalog.Document, count int, _ catalog.Precision) int {
	return count * (catalog.EntryBytes + 8 + len(d.Values(0)[0].Raw()))
}

// Extract implements catalog.Keeper: it adds what a document adds, the text and the number.
func (s sums) Extract(d *catalog.Document, e *catalog.Entries) error {
	text, number := d.Values(0), d.Values(1)
	if len(text) > 1 {
		return &metadata.Error{Rule: fmt.Sprintf("one text in index %q", s.ix.Info.Name)}
	}
	if text[0].Kind() != query.KindText {
		return nil
	}
	n, whole := scoreOf(number[0])
	if len(number) > 1 || !whole {
		n = 0
	}
	e.Add(d, []byte(text[0].Text()), binary.BigEndian.AppendUint64(nil, uint64(n)))
	return nil
}

func (s sums) key(kind byte, text string) []byte {
	return append(append(append(format.AppendIndexPrefix(nil, s.ix.Number), kind), text...), 0)
}

// Stage implements catalog.Stager.
func (s sums) Stage(tx storage.Tx, folded string, given []catalog.Entry) error {
	mine := s.key('m', folded)
	var value []byte
	if len(given) > 0 {
		text, number := given[0].Given()
		value = append(bytes.Clone(number), text...)
	}
	stored, closer, err := tx.Get(mine)
	switch {
	case err == storage.ErrNotFound:
	case err != nil:
		return err
	default:
		before := bytes.Clone(stored)
		if err := closer.Close(); err != nil || bytes.Equal(before, value) {
			return err
		}
		if len(before) < 8 {
			return fmt.Errorf("what %q has added: %w", folded, errs.ErrCorrupt)
		}
		s.add(tx, before, -1)
		tx.Delete(mine)
	}
	if value != nil {
		s.add(tx, value, 1)
		tx.Set(mine, value, nil)
	}
	return nil
}

// add adds to the numbers of a text what a document adds, once or minus once.
func (s sums) add(tx storage.Tx, value []byte, times int64) {
	tx.Add(s.key('g', string(value[8:])), times, times*int64(binary.BigEndian.Uint64(value)))
}

// GivenFacts implements catalog.Stager.
func (s sums) GivenFacts(folded string, e *catalog.Entry, add func(fact []byte, weight int64) error) error {
	text, number := e.Given()
	n := int64(binary.BigEndian.Uint64(number))
	return errs.First(errs.First(add([]byte("count of "+string(text)), 1), add([]byte("sum of "+string(text)), n)),
		add(fmt.Appendf(nil, "%s adds %d to %s", folded, n, text), 1))
}

// StoredFacts implements catalog.Stager.
func (s sums) StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	bad := fmt.Errorf("key %x of sums: %w", key, errs.ErrCorrupt)
	if len(key) < 7 || key[len(key)-1] != 0 || len(value) < 8 {
		return bad
	}
	name, first := string(key[6:len(key)-1]), int64(binary.BigEndian.Uint64(value))
	switch {
	case key[5] == 'm':
		return add(fmt.Appendf(nil, "%s adds %d to %s", name, first, value[8:]), 1)
	case key[5] == 'g' && len(value) == 8:
		return add([]byte("count of "+name), first)
	case key[5] == 'g' && len(value) == 16:
		return errs.First(add([]byte("count of "+name), first), add([]byte("sum of "+name), int64(binary.BigEndian.Uint64(value[8:]))))
	}
	return bad
}

// Describe implements catalog.Keeper.
func (s sums) Describe(key []byte) string {
	if len(key) < 7 {
		return "one of its keys"
	}
	return fmt.Sprintf("%c of %q", key[5], key[6:len(key)-1])
}

// Answer implements catalog.Answerer.
func (s sums) Answer(q *catalog.Question) *catalog.Answer {
	for i, e := range q.Conditions {
		c, ok := e.(query.Compare)
		if !ok || c.Op != query.Equal || c.Fold || c.Value.Kind() != query.KindText || !s.ix.Fields[0].Is(c.Field) {
			continue
		}
		lo := append(format.AppendIndexPrefix(nil, s.ix.Number), 'm')
		return &catalog.Answer{Used: []int{i}, Exact: []int{i}, Text: "those that add to one sum", Open: func(r catalog.Means) (catalog.Candidates, error) {
			it, err := r.Iterate(lo, format.PrefixEnd(lo))
			return &sumsWalk{it: it, text: c.Value.Text()}, err
		}}
	}
	return nil
}

// sumsWalk walks over the documents that add to one text.
type sumsWalk struct {
	it    storage.Iterator
	text  string
	begun bool
}

// Next implements catalog.Candidates.
func (w *sumsWalk) Next() ([]byte, error) {
	for {
		more := w.begun && w.it.Next() || !w.begun && w.it.First()
		if w.begun = true; !more {
			return nil, w.it.Error()
		}
		key, value := w.it.Key(), w.it.Value()
		if len(key) < 7 || len(value) < 8 {
			return nil, fmt.Errorf("key %x of sums: %w", key, errs.ErrCorrupt)
		}
		if string(value[8:]) == w.text {
			return key[6 : len(key)-1], nil
		}
	}
}

// Close implements catalog.Candidates.
func (w *sumsWalk) Close() error { return w.it.Close() }

// Ensure that a kind can keep sums of what documents give, by additions, and that Verify compares them.
func TestSums(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:  "sums",
		Kind:  catalog.Kind{Open: openSums},
		Index: jay.Index{Fields: []string{"Name", "Age"}},
		Body: func(r *rand.Rand) string {
			return strings.Replace(body(r), `["Ann","Bob","Ann"]`, `"Dan"`, 1)
		},
		Condition: func(r *rand.Rand) string {
			if r.IntN(2) == 0 {
				return "exact(Name = '" + []string{"Ann", "Bob", "Dan"}[r.IntN(3)] + "')"
			}
			return condition(r)
		},
		Explained: `sums index "tested", those that add to one sum`,
		Invalid:   []jay.Index{{}, {Fields: []string{"Name"}}},
		Refused:   `{"Name":["Ann","Bob"],"Age":1}`,
	})
}
