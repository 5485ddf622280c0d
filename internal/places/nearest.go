package places

import (
	"container/heap"
	"strings"

	"github.com/golang/geo/s2"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/geo"
	"github.com/jaydb/jay/storage"
)

// nearest are the documents from the nearest to the furthest, those of one distance by ID, and last those without a place. A queue has
// documents by their distances, and cells by the least distance that one in them may have: what comes out of it is a document, or a
// cell, in whose place come its documents, or its four parts if they are many. So no more is read than what is about as near as the
// answers.
type nearest struct {
	source
	queue queue
	added []node           // documents with one point, of the cell that is read
	none  storage.Iterator // over documents without a place; nil until it is begun
	ended bool             // there is no place left
	err   error
	id    []byte
}

// node is a document or a cell in the queue.
type node struct {
	distance float64 // of a cell at least
	cell     s2.CellID
	id       string // "" of a cell
}

// queue is a heap of nodes.
type queue []node

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Less has cells before documents: they may have one with a lesser ID.
func (q queue) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	if a.distance != b.distance {
		return a.distance < b.distance
	}
	if (a.id == "") != (b.id == "") {
		return a.id == ""
	}
	return strings.Compare(a.id, b.id) < 0
}

func (q *queue) Push(x any) { *q = append(*q, x.(node)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// fewPoints is how many keys of a cell are read before its parts are looked at instead.
const fewPoints = 16

// begin puts the faces of the cube into the queue.
func (n *nearest) begin() {
	for face := range 6 {
		n.pushCell(s2.CellIDFromFace(face))
	}
	target := n.asked.distance.Target.Spot.Cell()
	dense, err := n.dense(target)
	if err != nil {
		n.err = errs.First(err, n.Close())
		return
	}
	// Cells around the target that have many points need not be read to know it.
	for level := 0; level < dense && n.err == nil; level++ {
		at := -1
		for i := range n.queue {
			if n.queue[i].id == "" && n.queue[i].cell == target.Parent(level) {
				at = i
			}
		}
		if at < 0 {
			return
		}
		heap.Remove(&n.queue, at)
		n.err = n.split(target.Parent(level))
	}
}

// dense returns the level down to which cells around a point have many points.
func (n *nearest) dense(target s2.CellID) (level int, err error) {
	ok := n.points.SeekGE(n.k.cellKey(keyPoint, target))
	for range fewPoints {
		if n.keys++; !ok {
			return 0, n.points.Error()
		}
		ok = n.points.Next()
	}
	if !ok {
		return 0, n.points.Error()
	}
	cell, _, err := cutCell(n.points.Key())
	if err != nil {
		return 0, err
	}
	level, _ = target.CommonAncestorLevel(cell)
	return max(level, 0), nil
}

// pushCell adds a cell, unless it can have no answers.
func (n *nearest) pushCell(cell s2.CellID) {
	if n.others != nil || n.asked.mayHave(cell) {
		d := n.asked.distance
		heap.Push(&n.queue, node{distance: d.Target.Reach(cell) / geo.Units[d.Unit], cell: cell})
	}
}

// Next implements catalog.Candidates.
func (n *nearest) Next() ([]byte, error) {
	if n.err != nil {
		return nil, n.err
	}
	for len(n.queue) > 0 {
		next := heap.Pop(&n.queue).(node)
		if next.id != "" {
			n.id = append(n.id[:0], next.id...)
			return n.id, nil
		}
		if err := n.open(next.cell); err != nil {
			return nil, err
		}
		if err := tooMany(len(n.queue)); err != nil {
			return nil, err
		}
	}
	return n.nextNone()
}

// nextNone returns the next document without a place. A condition is true of none.
func (n *nearest) nextNone() ([]byte, error) {
	if n.asked.conditions != nil || n.ended {
		return nil, nil
	}
	n.keys++
	ok := false
	if n.none == nil {
		lo := n.k.key(keyNone)
		var err error
		if n.none, err = n.r.Iterate(lo, format.PrefixEnd(lo)); err != nil {
			return nil, err
		}
		ok = n.none.First()
	} else {
		ok = n.none.Next()
	}
	if !ok {
		n.ended = true
		return nil, n.none.Error()
	}
	return cutID(n.none.Key())
}

// Close implements catalog.Candidates.
func (n *nearest) Close() (err error) {
	if n.none != nil {
		err = errs.First(n.none.Error(), n.none.Close())
	}
	return errs.First(err, n.source.Close())
}

// open puts the documents of a cell into the queue, or its parts if it has many. Documents with one point outside of what is asked for are not read; of one
// with several places the nearest may lie there.
func (n *nearest) open(cell s2.CellID) (err error) {
	n.added = n.added[:0]
	few := true
	if n.asked.mayHave(cell) {
		few, err = n.read(n.points, keyPoint, cell)
	}
	if err == nil && few && n.others != nil {
		few, err = n.read(n.others, keyCell, cell)
	}
	if err != nil {
		return err
	}
	if !few {
		return n.split(cell)
	}
	for _, d := range n.added {
		heap.Push(&n.queue, d)
	}
	return nil
}

// read reads the keys of a cell, and returns false if there are many.
func (n *nearest) read(it storage.Iterator, kind byte, cell s2.CellID) (few bool, err error) {
	last, count := cell.RangeMax(), 0
	for ok := it.SeekGE(n.k.cellKey(kind, cell.RangeMin())); ok; ok = it.Next() {
		n.keys++
		of, folded, err := cutCell(it.Key())
		if err != nil {
			return false, err
		}
		if of > last {
			return true, nil
		}
		if count++; count > fewPoints && !cell.IsLeaf() {
			return false, nil
		}
		if kind == keyPoint {
			err = n.addPoint(folded, it.Value())
		} else {
			err = n.addSeveral(folded)
		}
		if err != nil {
			return false, err
		}
	}
	return true, it.Error()
}

// split puts the parts of a cell into the queue, and the documents that have the cell itself.
func (n *nearest) split(cell s2.CellID) error {
	if n.others != nil {
		for ok := n.others.SeekGE(n.k.cellKey(keyCell, cell)); ok; ok = n.others.Next() {
			n.keys++
			of, folded, err := cutCell(n.others.Key())
			if err != nil {
				return err
			}
			if of != cell {
				break
			}
			if err := n.addSeveral(folded); err != nil {
				return err
			}
		}
		if err := n.others.Error(); err != nil {
			return err
		}
	}
	for _, part := range cell.Children() {
		n.pushCell(part)
	}
	return nil
}

// addPoint adds the document of a point.
func (n *nearest) addPoint(folded, value []byte) error {
	spot, err := pointAt(value)
	if err != nil {
		return err
	}
	if n.asked.holdsOf(spot) {
		n.added = append(n.added, node{distance: n.asked.distance.Of(geo.Value{Spot: spot}), id: string(folded)})
	}
	return tooMany(len(n.added))
}

// addSeveral puts a document with several places, or one that is no point, into the queue, once.
func (n *nearest) addSeveral(folded []byte) error {
	fresh, err := n.meet(folded)
	if !fresh || err != nil {
		return err
	}
	r, err := n.record(folded)
	if err != nil {
		return err
	}
	is, err := n.asked.holds(&r)
	if !is || err != nil {
		return err
	}
	d, err := n.asked.distanceOf(&r)
	if err == nil {
		heap.Push(&n.queue, node{distance: d, id: string(folded)})
	}
	return err
}
