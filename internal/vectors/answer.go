package vectors

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/vector"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// ReadAll is how many partitions an index has at most of which each query reads all, so that it misses no neighbour. Of more it reads as many at first as have Candidates
// vectors, if the query does not say how many. Variables for tests.
var (
	ReadAll    = 16
	Candidates = 6144
)

// Answer implements catalog.Answerer: the index answers vector.search() without the documents that cannot be similar enough, and an order by vector.distance()
// with a limit.
func (k *keeper) Answer(q *catalog.Question) *catalog.Answer {
	if d, is := k.ordersBy(q); is {
		return k.answerNear(q, d)
	}
	for i, e := range q.Conditions {
		if s, is := e.(query.Similar); is && k.has(s.Field, s.Vector) {
			return &catalog.Answer{
				Used:  []int{i},
				Text:  "the codes of all vectors",
				Reads: true,
				Open: func(m catalog.Means) (catalog.Candidates, error) {
					target := s.Vector.Target()
					found := &similar{finder: k.newFinder(m, target.Metric, target.Vector)}
					found.limit = 1 - s.Minimum
					return found, found.openAll()
				},
			}
		}
	}
	return nil
}

// has reports whether the index has the vectors that a field has and that a vector is compared with.
func (k *keeper) has(f query.Field, v query.Vector) bool {
	return k.ix.Fields[0].Is(f) && v.Form() == vector.Singles && v.Target() != nil && len(v.Target().Vector) == k.dimensions
}

// ordersBy returns the distance by which answers are wanted in order, if the index can find the first of them.
func (k *keeper) ordersBy(q *catalog.Question) (d query.VectorDistance, is bool) {
	if q.Need <= 0 || len(q.Orders) != 1 || q.Orders[0].Column != "" || q.Orders[0].Descending || q.Orders[0].As != query.CastNone {
		return d, false
	}
	d, is = q.Orders[0].Field.VectorDistance()
	return d, is && k.has(d.Field, d.Vector) && d.Vector.Target().Metric == k.metric
}

func (k *keeper) answerNear(q *catalog.Question, d query.VectorDistance) *catalog.Answer {
	target := d.Vector.Target()
	a := &catalog.Answer{Text: "the nearest first", Likely: true, Reads: true}
	limit := math.Inf(1)
	for i, e := range q.Conditions {
		s, is := e.(query.Similar)
		if is && k.metric == vector.Cosine && k.has(s.Field, s.Vector) && slices.Equal(s.Vector.Target().Vector, target.Vector) {
			a.Used = append(a.Used, i)
			limit = min(limit, 1-s.Minimum)
		}
	}
	a.Open = func(m catalog.Means) (catalog.Candidates, error) {
		n := &near{finder: k.newFinder(m, target.Metric, target.Vector), exact: d.Exact, bound: math.Inf(1), round: cmp.Or(d.Candidates, Candidates)}
		n.limit = limit
		return n, n.open()
	}
	return a
}

// finder finds vectors that are near enough to one. It is not safe for concurrent use.
type finder struct {
	k     *keeper
	r     storage.Reader
	sight *sight
	limit float64 // of the distance of an answer

	it   storage.Iterator // over vectors in partitions
	tail storage.Iterator
	seen map[string]bool // documents with several vectors that were met
	keys int64           // examined
}

func (k *keeper) newFinder(r storage.Reader, m vector.Metric, v []float32) finder {
	return finder{k: k, r: r, sight: newSight(m, v), limit: math.Inf(1), seen: make(map[string]bool)}
}

// openAll opens the iterators.
func (f *finder) openAll() (err error) {
	lo := f.k.key(keyVector)
	if f.it, err = f.r.Iterate(lo, format.PrefixEnd(lo)); err != nil {
		return err
	}
	lo = f.k.key(keyTail)
	if f.tail, err = f.r.Iterate(lo, format.PrefixEnd(lo)); err != nil {
		return errs.First(err, f.Close())
	}
	return nil
}

// Close implements catalog.Candidates.
func (f *finder) Close() (err error) {
	for _, it := range []storage.Iterator{f.it, f.tail} {
		if it != nil {
			err = errs.First(err, errs.First(it.Error(), it.Close()))
		}
	}
	f.it, f.tail = nil, nil
	return err
}

// Examined implements catalog.Examiner.
func (f *finder) Examined() int64 { return f.keys }

// maxSeen is how many documents with several vectors are in memory at most. Tests change it.
var maxSeen = 1 << 20

// meet reports whether a document with several vectors was not met before.
func (f *finder) meet(folded []byte) (bool, error) {
	if f.seen[string(folded)] {
		return false, nil
	}
	f.seen[string(folded)] = true
	if len(f.seen) > maxSeen {
		return false, fmt.Errorf("%w: %w: ask for fewer, or for more similar ones", errs.ErrQuery, &query.LimitError{What: "documents with several vectors in memory", Limit: maxSeen, Actual: len(f.seen)})
	}
	return true, nil
}

// inTail returns the ID of the document of the tail at which the iterator is, and how far its nearest vector is at least.
func (f *finder) inTail() (folded []byte, least float64, err error) {
	if folded, err = cutID(f.tail.Key()); err != nil {
		return nil, 0, err
	}
	value, size := f.tail.Value(), f.k.codeSize()
	n, err := f.k.codesIn(value)
	least = math.Inf(1)
	for i := range n {
		c := cut(value[i*size : (i+1)*size])
		_, far := f.sight.distance(&c)
		least = min(least, far)
	}
	return folded, least, err
}

// inPartition is inTail for the vector at which the other iterator is. Of a document with several, it is one of them.
func (f *finder) inPartition() (partition uint32, folded []byte, several bool, least float64, err error) {
	partition, folded, _, several, err = cutVectorKey(f.it.Key())
	if err != nil {
		return 0, nil, false, 0, err
	}
	c, err := f.k.codeIn(f.it.Value())
	if err != nil {
		return 0, nil, false, 0, err
	}
	_, least = f.sight.distance(&c)
	return partition, folded, several, least, nil
}

// similar are the documents with a vector that may be near enough, in no order.
type similar struct {
	finder
	begun, inParts bool
}

// Next implements catalog.Candidates.
func (s *similar) Next() ([]byte, error) {
	for !s.inParts {
		if !step(s.tail, &s.begun) {
			if err := s.tail.Error(); err != nil {
				return nil, err
			}
			s.inParts, s.begun = true, false
			break
		}
		s.keys++
		folded, least, err := s.inTail()
		if err != nil {
			return nil, err
		}
		if least <= s.limit {
			return folded, nil
		}
	}
	for step(s.it, &s.begun) {
		s.keys++
		_, folded, several, least, err := s.inPartition()
		if err != nil {
			return nil, err
		}
		if least > s.limit {
			continue
		}
		if !several {
			return folded, nil
		}
		if fresh, err := s.meet(folded); fresh || err != nil {
			return folded, err
		}
	}
	return nil, s.it.Error()
}

// step moves an iterator to its first key, and then to the next one.
func step(it storage.Iterator, begun *bool) bool {
	if *begun {
		return it.Next()
	}
	*begun = true
	return it.First()
}
