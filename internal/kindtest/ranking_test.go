package kindtest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/kindtest"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// ranking is the Keeper of a toy with a tail: an index of one field that holds a score, as the toy score does, in
// blocks of many documents. A write notes in the tail which place its document has now; the worker moves it into the
// blocks. It answers comparisons with numbers, if it is strict exactly and in the order of falling scores.
//
//	'b' block(5) → (place(5) length(2) folded ID)*   the documents whose places are in a block, rising
//	'c' 00 → n(8)                                     how many documents are in the tail, by Tx.Add
//	'g' place(5) → n(8)                               how many documents are at a place, by Tx.Add
//	'm' folded ID 00 → place(5)                       where the document is in the blocks
//	't' folded ID 00 → place(5) place(5)              in the tail: where it is in the blocks, and where it is
//
// A place is 01 and a score, big-endian, 02 and zeros for a document whose score is none, or zeros only for one that is not in
// the index.
type ranking struct {
	ix     *catalog.Index
	strict bool
}

// place is where a document stands.
type place [5]byte

var oddPlace = place{oddScore}

func (p place) isNone() bool { return p == place{} }

// block returns the key of the block that a place lies in: four scores share one.
func (k ranking) block(p place) []byte {
	n := binary.BigEndian.Uint32(p[1:])
	return binary.BigEndian.AppendUint32(append(k.key('b'), p[0]), n&^3)
}

func (k ranking) key(kind byte) []byte {
	return append(format.AppendIndexPrefix(nil, k.ix.Number), kind)
}

func (k ranking) ofDocument(kind byte, folded string) []byte {
	return append(append(k.key(kind), folded...), 0)
}

// settleAtOnce is how much of the tail the worker moves in one commit.
const settleAtOnce = 5

var rankings = catalog.Kind{Open: openRanking, Options: []catalog.Option{strictness}}

func openRanking(ix *catalog.Index) (catalog.Keeper, error) {
	if err := checkScored(ix); err != nil {
		return nil, err
	}
	return ranking{ix, ix.Option("strict") == "yes"}, nil
}

// Count implements catalog.Keeper.
func (k ranking) Count(*catalog.Document) int { return 1 }

// Bytes implements catalog.Keeper.
func (k ranking) Bytes(_ *catalog.Document, count int, _ catalog.Precision) int {
	return count * scoredBytes
}

// Extract implements catalog.Keeper.
func (k ranking) Extract(d *catalog.Document, e *catalog.Entries) error {
	return extractScore(d, e, k.ix, k.strict, oddPlace[:])
}

// stored is one record of a document, of the tail or of the blocks.
func stored(tx storage.Tx, key []byte, want int) ([]byte, error) {
	value, closer, err := tx.Get(key)
	if err == storage.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value = bytes.Clone(value)
	if len(value) != want {
		return nil, errs.First(fmt.Errorf("key %x of a ranking: %w", key, errs.ErrCorrupt), closer.Close())
	}
	return value, closer.Close()
}

// Stage implements catalog.Stager: it notes in the tail what has changed, and looks at no block.
func (k ranking) Stage(tx storage.Tx, folded string, given []catalog.Entry) error {
	var settled, before, after place
	if len(given) > 0 {
		key, _ := given[0].Given()
		copy(after[:], key)
	}
	tail, err := stored(tx, k.ofDocument('t', folded), 10)
	if err != nil {
		return err
	}
	if tail != nil {
		copy(settled[:], tail)
		copy(before[:], tail[5:])
	} else {
		value, err := stored(tx, k.ofDocument('m', folded), 5)
		if err != nil {
			return err
		}
		copy(settled[:], value)
		before = settled
	}
	if before == after {
		return nil
	}
	if tail == nil {
		tx.Add(k.ofDocument('c', ""), 1)
	}
	for p, n := range map[place]int64{before: -1, after: 1} {
		if !p.isNone() {
			tx.Add(append(k.key('g'), p[:]...), n)
		}
	}
	tx.Set(k.ofDocument('t', folded), append(settled[:], after[:]...), nil)
	return nil
}

// posting is a document in a block or in the tail.
type posting struct {
	at     place
	folded string
}

func comparePostings(a, b posting) int {
	if n := bytes.Compare(a.at[:], b.at[:]); n != 0 {
		return n
	}
	return strings.Compare(a.folded, b.folded)
}

func decodeBlock(value []byte) (all []posting, err error) {
	for len(value) > 0 {
		n := 7
		if len(value) >= n {
			n += int(binary.BigEndian.Uint16(value[5:]))
		}
		if len(value) < n {
			return nil, fmt.Errorf("block of a ranking: %w", errs.ErrCorrupt)
		}
		all = append(all, posting{place(value[:5]), string(value[7:n])})
		value = value[n:]
	}
	return all, nil
}

func encodeBlock(all []posting) (value []byte) {
	for _, p := range all {
		value = append(binary.BigEndian.AppendUint16(append(value, p.at[:]...), uint16(len(p.folded))), p.folded...)
	}
	return value
}

// Settle implements catalog.Settler: it moves a few documents from the tail to the blocks.
func (k ranking) Settle(ctx context.Context, r storage.Reader) (catalog.Settling, error) {
	seen := catalog.NewSeen(r)
	lo := k.key('t')
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	blocks, moved := make(map[string][]posting), make(map[string]place) // by key; by folded ID
	edit := func(at place, change func(all []posting) []posting) error {
		if at.isNone() {
			return nil
		}
		key := string(k.block(at))
		all, known := blocks[key]
		if !known {
			value, err := seen.Get([]byte(key))
			if err == nil {
				all, err = decodeBlock(value)
			}
			if err != nil {
				return err
			}
		}
		blocks[key] = change(all)
		return nil
	}
	for ok := it.First(); ok && err == nil && len(moved) < settleAtOnce; ok = it.Next() {
		if len(it.Value()) != 10 {
			err = fmt.Errorf("key %x of a ranking: %w", it.Key(), errs.ErrCorrupt)
			break
		}
		folded, from, to := string(it.Key()[6:len(it.Key())-1]), place(it.Value()[:5]), place(it.Value()[5:])
		seen.Note(it.Key(), it.Value())
		moved[folded] = to
		err = errs.First(edit(from, func(all []posting) []posting {
			return slices.DeleteFunc(all, func(p posting) bool { return p.folded == folded })
		}), edit(to, func(all []posting) []posting {
			at, _ := slices.BinarySearchFunc(all, posting{to, folded}, comparePostings)
			return slices.Insert(all, at, posting{to, folded})
		}))
	}
	if err = errs.First(errs.First(err, it.Error()), it.Close()); err != nil || len(moved) == 0 {
		return nil, errs.First(err, ctx.Err())
	}
	return func(tx storage.Tx) (bool, error) {
		if holds, err := seen.Holds(tx); !holds || err != nil {
			return false, err
		}
		for folded, to := range moved {
			tx.Delete(k.ofDocument('t', folded))
			if to.isNone() {
				tx.Delete(k.ofDocument('m', folded))
			} else {
				tx.Set(k.ofDocument('m', folded), to[:], nil)
			}
		}
		for key, all := range blocks {
			if len(all) == 0 {
				tx.Delete([]byte(key))
			} else {
				tx.Set([]byte(key), encodeBlock(all), nil)
			}
		}
		tx.Add(k.ofDocument('c', ""), -int64(len(moved)))
		return true, nil
	}, nil
}

// What the facts say: that a document is at a place, how many are there, that the block of a document is the one that its own
// record names, and how many are in the tail.
func isAt(folded string, p place) []byte { return fmt.Appendf(nil, "%x: %s", p, folded) }
func atPlace(p []byte) []byte            { return fmt.Appendf(nil, "%x", p) }
func settledAt(folded string, p place) []byte {
	return fmt.Appendf(nil, "settled %x: %s", p, folded)
}

var inTail = []byte("tail")

// GivenFacts implements catalog.Stager.
func (k ranking) GivenFacts(folded string, e *catalog.Entry, add func(fact []byte, weight int64) error) error {
	key, _ := e.Given()
	return errs.First(add(isAt(folded, place(key)), 1), add(atPlace(key), 1))
}

// StoredFacts implements catalog.Stager. A record of the tail takes back what the block of its document says.
func (k ranking) StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	bad := fmt.Errorf("key %x of a ranking: %w", key, errs.ErrCorrupt)
	if len(key) < 6 {
		return bad
	}
	rest, err := key[6:], error(nil)
	folded := ""
	if kind := key[5]; kind == 'm' || kind == 't' {
		if len(rest) < 2 || rest[len(rest)-1] != 0 {
			return bad
		}
		folded = string(rest[:len(rest)-1])
	}
	fact := func(name []byte, weight int64) { err = errs.First(err, add(name, weight)) }
	switch kind := key[5]; {
	case kind == 'b' && len(rest) == 5:
		all, decoded := decodeBlock(value)
		if decoded != nil || len(all) == 0 {
			return bad
		}
		for _, p := range all {
			if !bytes.Equal(k.block(p.at), key) {
				return bad
			}
			fact(isAt(p.folded, p.at), 1)
			fact(settledAt(p.folded, p.at), -1)
		}
	case kind == 'c' && len(rest) == 1 && len(value) == 8:
		fact(inTail, int64(binary.BigEndian.Uint64(value)))
	case kind == 'g' && len(rest) == 5 && len(value) == 8:
		fact(atPlace(rest), int64(binary.BigEndian.Uint64(value)))
	case kind == 'm' && len(value) == 5:
		fact(settledAt(folded, place(value)), 1)
	case kind == 't' && len(value) == 10:
		fact(inTail, -1)
		if from := place(value[:5]); !from.isNone() {
			fact(isAt(folded, from), -1)
		}
		if to := place(value[5:]); !to.isNone() {
			fact(isAt(folded, to), 1)
		}
	default:
		return bad
	}
	return err
}

// Describe implements catalog.Keeper.
func (k ranking) Describe(key []byte) string {
	if len(key) < 6 {
		return "one of its keys"
	}
	return fmt.Sprintf("%c of %q", key[5], key[6:])
}

// Answer implements catalog.Answerer.
func (k ranking) Answer(q *catalog.Question) *catalog.Answer {
	a := score(k).Answer(q)
	if a == nil {
		return nil
	}
	c := q.Conditions[a.Used[0]].(query.Compare)
	n, _ := scoreOf(c.Value)
	lo, hi := uint64(0), uint64(math.MaxUint32)
	switch c.Op {
	case query.Equal:
		lo, hi = uint64(n), uint64(n)
	case query.Greater:
		lo = uint64(n) + 1
	case query.GreaterOrEqual:
		lo = uint64(n)
	case query.Less:
		hi = uint64(n) - 1
	case query.LessOrEqual:
		hi = uint64(n)
	}
	if c.Op == query.Less && n == 0 {
		lo, hi = 1, 0 // none
	}
	a.Text = "a range of ranks"
	a.Open = func(r catalog.Means) (catalog.Candidates, error) {
		return k.walk(r, func(p place) bool {
			at := uint64(binary.BigEndian.Uint32(p[1:]))
			return p[0] == oneScore && lo <= at && at <= hi || p == oddPlace && !k.strict
		})
	}
	return a
}

// rankWalk walks backwards over the documents of the blocks and of the tail.
type rankWalk struct {
	in      func(place) bool
	tail    []posting       // rising; those that are left
	noted   map[string]bool // the folded IDs in the tail, whose blocks are out of date
	it      storage.Iterator
	begun   bool
	block   []posting // what is left of the block that the iterator is at
	current []byte
}

// walk opens a rankWalk over what r shows.
func (k ranking) walk(r storage.Reader, in func(place) bool) (_ catalog.Candidates, err error) {
	w := &rankWalk{in: in, noted: make(map[string]bool)}
	lo := k.key('t')
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if len(it.Value()) != 10 {
			err = fmt.Errorf("key %x of a ranking: %w", it.Key(), errs.ErrCorrupt)
			break
		}
		folded, to := string(it.Key()[6:len(it.Key())-1]), place(it.Value()[5:])
		w.noted[folded] = true
		if in(to) {
			w.tail = append(w.tail, posting{to, folded})
		}
	}
	if err := errs.First(errs.First(err, it.Error()), it.Close()); err != nil {
		return nil, err
	}
	slices.SortFunc(w.tail, comparePostings)
	lo = k.key('b')
	w.it, err = r.Iterate(lo, format.PrefixEnd(lo))
	return w, err
}

// Next implements catalog.Candidates.
func (w *rankWalk) Next() ([]byte, error) {
	for len(w.block) == 0 {
		more := w.begun && w.it.Prev() || !w.begun && w.it.Last()
		if w.begun = true; !more {
			if err := w.it.Error(); err != nil {
				return nil, err
			}
			break
		}
		all, err := decodeBlock(w.it.Value())
		if err != nil {
			return nil, err
		}
		w.block = slices.DeleteFunc(all, func(p posting) bool { return w.noted[p.folded] || !w.in(p.at) })
	}
	from := &w.block
	if len(w.block) == 0 || len(w.tail) > 0 && comparePostings(w.tail[len(w.tail)-1], w.block[len(w.block)-1]) > 0 {
		from = &w.tail
	}
	if len(*from) == 0 {
		return nil, nil
	}
	last := len(*from) - 1
	w.current = append(w.current[:0], (*from)[last].folded...)
	*from = (*from)[:last]
	return w.current, nil
}

// Close implements catalog.Candidates.
func (w *rankWalk) Close() error { return w.it.Close() }

// Ensure that a kind can have a tail that queries read, a worker that settles it in the background, an order of its own and numbers kept
// by additions.
func TestRanking_Strict(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:      "ranking",
		Kind:      rankings,
		Index:     jay.Index{Fields: []string{"Points"}},
		Body:      scored(`"many"`, `null`, `true`, `{"a":1}`),
		Condition: ofScore,
		Order:     "Points desc",
		Explained: `ranking index "tested", a range of ranks`,
		Invalid:   []jay.Index{{}, {Fields: []string{"Points", "Age"}}, {Fields: []string{"-Points"}}},
		Refused:   `{"Points":7.5}`,
		Settles:   true,
	})
}

// Ensure that such a kind can keep documents that it has no place for.
func TestRanking_Lenient(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:      "ranking",
		Kind:      rankings,
		Index:     jay.Index{Fields: []string{"Points"}, Where: "Age < 4", Options: map[string]string{"strict": "no"}},
		Body:      scored(`"many"`, `null`, `7.5`, `-1`, `[3,7]`, `4294967296`),
		Condition: func(r *rand.Rand) string { return ofScore(r) + " and Age < 4" },
		Explained: `ranking (strict=no) index "tested", a range of ranks`,
		Settles:   true,
	})
}
