package kindtest_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
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

// score is the Keeper of a toy: an index of one field that holds a score, a whole number below 2^32. It
// answers comparisons with such numbers exactly, and in the order of falling scores.
//
//	01 score(4) → empty     the document has this score
//	02 → empty              it has other numbers, or several
//
// A document without a number has no entry. One with another number, or several, is refused by a strict index. One
// that is not strict keeps it as 02, and has it among the candidates of each answer, which are then neither exact nor
// in order.
type score struct {
	ix     *catalog.Index
	strict bool
}

const (
	oneScore = 1
	oddScore = 2
)

// scores is the kind.
var scores = catalog.Kind{Open: openScore, Options: []catalog.Option{strictness}}

// strictness says whether a value that is no score refuses the document.
var strictness = catalog.OneOf("strict", "yes", "no")

func openScore(ix *catalog.Index) (catalog.Keeper, error) {
	if err := checkScored(ix); err != nil {
		return nil, err
	}
	return score{ix, ix.Option("strict") == "yes"}, nil
}

// checkScored checks the declaration of an index of one field that holds a score.
func checkScored(ix *catalog.Index) error {
	if len(ix.Fields) != 1 || ix.Fields[0].Descending || ix.Fields[0].Date != query.DateNone {
		return fmt.Errorf("%w: an index of scores has one field, which is neither descending nor a date", errs.ErrIndex)
	}
	return nil
}

// scoredBytes is what an entry takes at most.
const scoredBytes = catalog.EntryBytes + 5

// extractScore adds the entry of a document with a score, or, unless the index is strict, that of one with other numbers.
func extractScore(d *catalog.Document, e *catalog.Entries, ix *catalog.Index, strict bool, odd []byte) error {
	numbers, whole, n := 0, false, uint32(0)
	for _, v := range d.Values(0) {
		if v.Kind() == query.KindNumber {
			numbers++
			n, whole = scoreOf(v)
		}
	}
	switch {
	case numbers == 0:
	case numbers == 1 && whole && len(d.Values(0)) == 1:
		e.Add(d, binary.BigEndian.AppendUint32([]byte{oneScore}, n), nil)
	case strict:
		return &metadata.Error{Rule: fmt.Sprintf("one score in index %q, a whole number below 2^32", ix.Info.Name)}
	default:
		e.Add(d, odd, nil)
	}
	return nil
}

// scoreOf returns the score that a number is.
func scoreOf(v query.Value) (n uint32, ok bool) {
	parsed, err := strconv.ParseUint(string(v.Raw()), 10, 32)
	return uint32(parsed), err == nil && v.Kind() == query.KindNumber
}

// Count implements catalog.Keeper.
func (s score) Count(*catalog.Document) int { return 1 }

// Bytes implements catalog.Keeper.
func (s score) Bytes(_ *catalog.Document, count int, _ catalog.Precision) int {
	return count * scoredBytes
}

// Extract implements catalog.Keeper.
func (s score) Extract(d *catalog.Document, e *catalog.Entries) error {
	return extractScore(d, e, s.ix, s.strict, []byte{oddScore})
}

// scoreKey returns the Keeper's part of a key, and the folded ID.
func scoreKey(key []byte) (part, folded []byte, err error) {
	n := 1
	if len(key) > 5 && key[5] == oneScore {
		n = 5
	} else if len(key) > 5 && key[5] != oddScore {
		n = -1
	}
	return catalog.EntryKey(key, n)
}

// AppendID implements catalog.Keeper.
func (s score) AppendID(dst, key, _ []byte) ([]byte, error) {
	_, folded, err := scoreKey(key)
	return append(dst, folded...), err
}

// Describe implements catalog.Keeper.
func (s score) Describe(key []byte) string {
	part, folded, err := scoreKey(key)
	switch {
	case err != nil:
		return catalog.Hex(key)
	case len(part) == 1:
		return fmt.Sprintf("no score of document %q", folded)
	}
	return fmt.Sprintf("score %d of document %q", binary.BigEndian.Uint32(part[1:]), folded)
}

// Answer implements catalog.Answerer.
func (s score) Answer(q *catalog.Question) *catalog.Answer {
	field := s.ix.Fields[0]
	for i, e := range q.Conditions {
		c, ok := e.(query.Compare)
		if !ok || !field.Is(c.Field) {
			continue
		}
		n, ok := scoreOf(c.Value)
		if !ok {
			continue
		}
		lo, hi := uint64(0), uint64(math.MaxUint32)+1 // below hi
		switch c.Op {
		case query.Equal:
			lo, hi = uint64(n), uint64(n)+1
		case query.Greater:
			lo = uint64(n) + 1
		case query.GreaterOrEqual:
			lo = uint64(n)
		case query.Less:
			hi = uint64(n)
		case query.LessOrEqual:
			hi = uint64(n) + 1
		default:
			continue
		}
		ranges := [][2][]byte{{s.at(lo), s.at(hi)}}
		a := &catalog.Answer{Used: []int{i}, Text: "a range of scores"}
		if s.strict {
			a.Exact = a.Used
			a.Ordered = len(q.Orders) == 1 && field.Is(q.Orders[0].Field) && q.Orders[0].Descending && q.Orders[0].As == query.CastNone && q.Orders[0].Column == ""
		} else {
			odd := append(format.AppendIndexPrefix(nil, s.ix.Number), oddScore)
			ranges = append(ranges, [2][]byte{odd, format.PrefixEnd(odd)})
		}
		a.Open = func(r catalog.Means) (catalog.Candidates, error) { return &scoreWalk{r: r, ranges: ranges}, nil }
		return a
	}
	return nil
}

// at returns where the entries of a score begin, or where those of the greatest end.
func (s score) at(n uint64) []byte {
	prefix := append(format.AppendIndexPrefix(nil, s.ix.Number), oneScore)
	if n > math.MaxUint32 {
		return format.PrefixEnd(prefix)
	}
	return binary.BigEndian.AppendUint32(prefix, uint32(n))
}

// scoreWalk walks backwards over ranges of entries: falling scores, and the IDs of equal ones
// fall, too.
type scoreWalk struct {
	r      storage.Reader
	ranges [][2][]byte
	it     storage.Iterator // over the first of them; nil until it is open
}

// Next implements catalog.Candidates.
func (w *scoreWalk) Next() (folded []byte, err error) {
	for len(w.ranges) > 0 {
		more := false
		if w.it != nil {
			more = w.it.Prev()
		} else if string(w.ranges[0][0]) < string(w.ranges[0][1]) {
			if w.it, err = w.r.Iterate(w.ranges[0][0], w.ranges[0][1]); err != nil {
				return nil, err
			}
			more = w.it.Last()
		}
		if more {
			_, folded, err = scoreKey(w.it.Key())
			return folded, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		w.ranges = w.ranges[1:]
	}
	return nil, nil
}

// Close implements catalog.Candidates.
func (w *scoreWalk) Close() error {
	if w.it == nil {
		return nil
	}
	it := w.it
	w.it = nil
	return errs.First(it.Error(), it.Close())
}

// scored returns a document with a score, or one whose score is of one of these values.
func scored(others ...string) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		points := fmt.Sprint(r.IntN(12))
		if r.IntN(4) == 0 {
			points = others[r.IntN(len(others))]
		}
		return fmt.Sprintf(`{"Points":%s,"Age":%d}`, points, r.IntN(5))
	}
}

// ofScore returns a condition on Points, or on Points and Age.
func ofScore(r *rand.Rand) string {
	text := fmt.Sprintf("Points %s %s", []string{"=", ">", ">=", "<", "<=", "!="}[r.IntN(6)], []string{"0", "5", "7", "7.5", "11", "4294967295", "'x'"}[r.IntN(7)])
	if r.IntN(3) == 0 {
		return fmt.Sprintf("%s and Age = %d", text, r.IntN(5))
	}
	return text
}

// Ensure that a kind can decide conditions exactly, give answers in an order of its own, and refuse
// documents.
func TestScore_Strict(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:      "score",
		Kind:      scores,
		Index:     jay.Index{Fields: []string{"Points"}},
		Body:      scored(`"many"`, `null`, `true`, `{"a":1}`),
		Condition: ofScore,
		Order:     "Points desc",
		Explained: `score index "tested", a range of scores`,
		Invalid:   []jay.Index{{}, {Fields: []string{"Points", "Age"}}, {Fields: []string{"-Points"}}},
		Refused:   `{"Points":7.5}`,
	})
}

// Ensure that a kind can keep documents that it has no place for, and find them.
func TestScore_Lenient(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:      "score",
		Kind:      scores,
		Index:     jay.Index{Fields: []string{"Points"}, Where: "Age < 4", Options: map[string]string{"strict": "no"}},
		Body:      scored(`"many"`, `null`, `7.5`, `-1`, `[3,7]`, `4294967296`),
		Condition: func(r *rand.Rand) string { return ofScore(r) + " and Age < 4" },
		Explained: `score (strict=no) index "tested", a range of scores`,
	})
}
