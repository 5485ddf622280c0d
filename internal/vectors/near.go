package vectors

import (
	"bytes"
	"container/heap"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// near are documents whose vectors are near to one, about the nearest first. They are read in rounds: the tail and the partitions with the nearest centers, and then as
// many again, until enough answers have been found; then, if all are read, documents without a vector. Of what is read, all documents are
// given that may be nearer than the last answer that is wanted.
type near struct {
	finder
	exact bool    // all partitions are read
	bound float64 // how far the last of the answers is that are wanted, Inf as long as there are fewer

	order  []int // of the centers that are not read yet
	router *router
	parts  int // that were read
	round  int // how many vectors are read next, at least
	queue  queue
	ids    []byte // of the queue
	count  int    // of candidates given
	record storage.Iterator
	ended  bool
}

// spot is a document in the queue.
type spot struct {
	least    float64
	from, to int // of its ID in near.ids
	several  bool
}

type queue struct {
	spots []spot
	ids   *[]byte
}

func (q *queue) Len() int      { return len(q.spots) }
func (q *queue) Swap(i, j int) { q.spots[i], q.spots[j] = q.spots[j], q.spots[i] }

// Less has equal ones by ID.
func (q *queue) Less(i, j int) bool {
	a, b := &q.spots[i], &q.spots[j]
	if a.least != b.least {
		return a.least < b.least
	}
	return bytes.Compare((*q.ids)[a.from:a.to], (*q.ids)[b.from:b.to]) < 0
}

func (q *queue) Push(x any) { q.spots = append(q.spots, x.(spot)) }

func (q *queue) Pop() any {
	last := q.spots[len(q.spots)-1]
	q.spots = q.spots[:len(q.spots)-1]
	return last
}

// maxRound is how many vectors a round has in memory: no further partition is read with as many.
const maxRound = 1 << 16

// open reads the first round.
func (n *near) open() error {
	n.queue.ids = &n.ids
	s, err := n.k.state(n.r)
	if err != nil {
		return err
	}
	if n.router, err = n.k.route(n.r, s); err != nil {
		return err
	}
	n.keys++
	n.order = n.router.ranked(n.sight)
	n.exact = n.exact || len(n.order) <= ReadAll
	if !n.exact { // a code is off in any direction, so its error counts by the root of their number
		n.sight.share = min(1, 4/math.Sqrt(float64(n.k.dimensions)))
	}
	if err := n.openAll(); err != nil {
		return err
	}
	if err := n.readTail(); err != nil {
		return errs.First(err, n.Close())
	}
	if err := n.read(); err != nil {
		return errs.First(err, n.Close())
	}
	return nil
}

// Bound implements catalog.Bounded.
func (n *near) Bound(distance float64) { n.bound = min(n.bound, distance) }

// Tell implements catalog.Telling.
func (n *near) Tell() string {
	all, missed := len(n.router.centers), "neighbours in the others may be missed"
	if n.parts == all {
		missed = "no neighbour is missed"
	}
	return fmt.Sprintf("read %d of %d partitions, and %d candidates: %s", n.parts, all, n.count, missed)
}

// add puts a document into the queue, unless it is too far away.
func (n *near) add(folded []byte, several bool, least float64) {
	if least <= n.limit && least <= n.bound {
		from := len(n.ids)
		n.ids = append(n.ids, folded...)
		n.queue.spots = append(n.queue.spots, spot{least, from, len(n.ids), several})
	}
}

func (n *near) readTail() error {
	for ok := n.tail.First(); ok; ok = n.tail.Next() {
		n.keys++
		folded, least, err := n.inTail()
		if err != nil {
			return err
		}
		n.add(folded, false, least)
	}
	return n.tail.Error()
}

// read reads the partitions of a round. The queue has nothing of the one before.
func (n *near) read() error {
	for until := n.keys + int64(n.round); n.keys < until && len(n.order) > 0 && len(n.queue.spots) < maxRound; {
		if err := n.readPartition(n.router.centers[n.order[0]].partition); err != nil {
			return err
		}
		n.order = n.order[1:]
		n.parts++
	}
	n.round = min(2*n.round, maxRound)
	heap.Init(&n.queue)
	return nil
}

func (n *near) readPartition(partition uint32) error {
	for ok := n.it.SeekGE(n.k.partitionKey(keyVector, partition)); ok; ok = n.it.Next() {
		n.keys++
		of, folded, several, least, err := n.inPartition()
		if err != nil {
			return err
		}
		if of != partition {
			return nil
		}
		n.add(folded, several, least)
	}
	return n.it.Error()
}

// Next implements catalog.Candidates.
func (n *near) Next() ([]byte, error) {
	for {
		for len(n.queue.spots) > 0 {
			next := heap.Pop(&n.queue).(spot)
			if next.least > n.bound {
				n.queue.spots = n.queue.spots[:0] // so are the others
				break
			}
			folded := n.ids[next.from:next.to]
			if next.several {
				fresh, err := n.meet(folded)
				if err != nil {
					return nil, err
				}
				if !fresh {
					continue
				}
			}
			n.count++
			return folded, nil
		}
		if !n.goesOn() {
			break
		}
		n.ids = n.ids[:0]
		if err := n.read(); err != nil {
			return nil, err
		}
	}
	return n.without()
}

// goesOn reports whether another round is to be read.
func (n *near) goesOn() bool { return len(n.order) > 0 && (n.exact || math.IsInf(n.bound, 1)) }

// without returns the next document without a vector, by ID. They are further away than all others, and at one distance.
func (n *near) without() ([]byte, error) {
	if n.ended || !math.IsInf(n.limit, 1) || len(n.order) > 0 || !math.IsInf(n.bound, 1) {
		return nil, nil
	}
	begun := n.record != nil
	if !begun {
		lo := n.k.key(keyOf)
		var err error
		if n.record, err = n.r.Iterate(lo, format.PrefixEnd(lo)); err != nil {
			return nil, err
		}
	}
	for step(n.record, &begun) {
		n.keys++
		r, err := decodeRecord(n.record.Value())
		if err != nil {
			return nil, err
		}
		if r.where == isNowhere {
			return cutID(n.record.Key())
		}
	}
	n.ended = true
	return nil, n.record.Error()
}

// Close implements catalog.Candidates.
func (n *near) Close() (err error) {
	if n.record != nil {
		err = errs.First(n.record.Error(), n.record.Close())
		n.record = nil
	}
	return errs.First(err, n.finder.Close())
}
