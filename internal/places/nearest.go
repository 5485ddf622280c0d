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

// node is a document, a cell, or what a cell has around one of its parts, in the queue.
type node struct {
	distance float64   // of a cell at least
	cell     s2.CellID // 0 of the whole earth
	but      s2.CellID // the part that is left out; 0 for none
	id       string    // "" of a cell
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

// begin puts into the queue the largest cell around the target that has few points, and of each cell above it what is around the one below. How far that is at
// least, the edge of the one below says: mostly nothing of it is looked at.
func (n *nearest) begin() {
	target := n.asked.distance.Target.Spot.Cell()
	dense, err := n.dense(target)
	around := s2.CellID(0)
	for level := 0; level < dense && err == nil; level++ {
		n.pushAround(around, target.Parent(level))
		around = target.Parent(level)
		err = n.severalAt(around)
	}
	if err != nil {
		n.err = errs.First(err, n.Close())
		return
	}
	n.pushAround(around, target.Parent(dense))
	n.pushCell(target.Parent(dense))
}

// pushAround adds what a cell, 0 for the whole earth, has around one of its parts that has the target.
func (n *nearest) pushAround(cell, but s2.CellID) {
	d := n.asked.distance
	heap.Push(&n.queue, node{distance: d.Target.Edge(but) / geo.Units[d.Unit], cell: cell, but: but})
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
		if next.but != 0 {
			n.pushParts(next.cell, next.but)
		} else if err := n.open(next.cell); err != nil {
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
	n.pushParts(cell, 0)
	return n.severalAt(cell)
}

// pushParts adds the parts of a cell, 0 for the whole earth, but one.
func (n *nearest) pushParts(cell, but s2.CellID) {
	if cell == 0 {
		for face := range 6 {
			if part := s2.CellIDFromFace(face); part != but {
				n.pushCell(part)
			}
		}
		return
	}
	for _, part := range cell.Children() {
		if part != but {
			n.pushCell(part)
		}
	}
}

// severalAt puts the documents that have a cell itself into the queue.
func (n *nearest) severalAt(cell s2.CellID) error {
	if n.others == nil {
		return nil
	}
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
	return n.others.Error()
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
