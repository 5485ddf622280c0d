package vectors

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// partBytes is about how many bytes of codes are settled at once; one document may have more.
const partBytes = 512 << 10

// MinTail is how many documents the tail has before some are settled, PartDocuments of them at most at once. A partition with more than MaxPartition vectors, or fewer if
// they are long, is split, and one with less than MinPartition is joined with others. Variables for tests.
var (
	MinTail       = 64
	PartDocuments = 512
	MaxPartition  = 256
	MinPartition  = 32
)

// Quickly makes parts and partitions small, for tests, and returns what undoes it.
func Quickly() (restore func()) {
	tail, part, most, least, read := MinTail, PartDocuments, MaxPartition, MinPartition, ReadAll
	MinTail, PartDocuments, MaxPartition, MinPartition, ReadAll = 1, 5, 8, 2, 1000
	return func() { MinTail, PartDocuments, MaxPartition, MinPartition, ReadAll = tail, part, most, least, read }
}

// most returns how many vectors a partition has at most before it is split.
func (k *keeper) most() int { return min(MaxPartition, max(32, partBytes/k.codeSize())) }

// part is what a Settling stages.
type part struct {
	k        *keeper
	seen     *catalog.Seen // the state, by which the partitions have what they had, but for what writers removed
	state    state
	made     []center // new ones
	gone     uint32   // a partition that is given up, 0 for none
	moved    []document
	regroups []item // of gone, with the partitions that they get
}

// document is a document that a part moves from the tail into partitions.
type document struct {
	folded     string
	codes      []byte // as they were
	print      [printBytes]byte
	partitions []uint32
}

// item is a vector that is put into a partition.
type item struct {
	folded    string
	i         int
	several   bool
	raw       []byte // its code
	partition uint32 // that it gets
}

// Settle implements catalog.Settler: it moves documents from the tail into partitions, splits a partition that has become large, or joins one that has become
// small with others. Partitions and the state are written by nobody else, but that writers remove vectors.
func (k *keeper) Settle(ctx context.Context, r storage.Reader) (catalog.Settling, error) {
	p := part{k: k, seen: catalog.NewSeen(r)}
	value, err := p.seen.Get(k.stateKey())
	if err != nil {
		return nil, err
	}
	if p.state, err = decodeState(value); err != nil {
		return nil, err
	}
	centers, err := k.route(r, p.state)
	if err != nil {
		return nil, err
	}
	p.state.parts++
	tail, size, err := k.take(ctx, r)
	if err != nil {
		return nil, err
	}
	large, n, err := k.largest(ctx, r)
	if err != nil {
		return nil, err
	}
	switch full := len(tail) >= PartDocuments || size >= partBytes; {
	case n > k.most() && (!full || n > 4*k.most()):
		return p.split(ctx, r, large)
	case len(tail) >= MinTail || full:
		return p.move(ctx, centers, tail)
	}
	small, err := k.smallest(r, centers)
	if small == 0 || err != nil {
		return nil, err
	}
	return p.join(ctx, r, centers, small)
}

// Pressure implements catalog.Presser: each query reads the tail.
func (k *keeper) Pressure() catalog.Pressure { return k.pressure }

// take reads the beginning of the tail, and sees whether it is long.
func (k *keeper) take(ctx context.Context, r storage.Reader) (tail []document, size int, err error) {
	lo := k.key(keyTail)
	trail := catalog.Trail{Lo: lo, Hi: format.PrefixEnd(lo)}
	it, err := r.Iterate(trail.Lo, trail.Hi)
	if err != nil {
		return nil, 0, err
	}
	seen := 0
	for ok := it.First(); ok && err == nil && seen < 2*PartDocuments; ok = it.Next() {
		if seen++; len(tail) == PartDocuments || size >= partBytes {
			continue
		}
		var folded []byte
		if folded, err = cutID(it.Key()); err != nil {
			break
		}
		if _, err = k.codesIn(it.Value()); err != nil {
			break
		}
		tail = append(tail, document{folded: string(folded), codes: bytes.Clone(it.Value()), print: printOf(it.Value())})
		size += len(it.Value())
		err = ctx.Err()
	}
	trail.Pass(it)
	k.pressure = catalog.Pressure{Presses: seen >= 2*PartDocuments, Trail: trail}
	return tail, size, errs.First(errs.First(err, it.Error()), it.Close())
}

// eachCount calls fn with how many vectors each partition has, ascending.
func (k *keeper) eachCount(r storage.Reader, fn func(partition uint32, n int)) error {
	lo := k.key(keyCount)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var partition uint32
		partition, err = cutPartition(it.Key())
		var n int64
		if err == nil {
			n, err = countIn(it.Value())
		}
		if err == nil {
			fn(partition, int(min(n, math.MaxInt32)))
		}
	}
	return errs.First(errs.First(err, it.Error()), it.Close())
}

// countIn returns how many vectors a partition has, of which and of whose center the value is the number.
func countIn(value []byte) (int64, error) {
	if len(value) != 8 || int64(binary.BigEndian.Uint64(value)) < 1 {
		return 0, errs.ErrCorrupt
	}
	return int64(binary.BigEndian.Uint64(value)) - 1, nil
}

// largest returns the partition with the most vectors.
func (k *keeper) largest(ctx context.Context, r storage.Reader) (partition uint32, most int, err error) {
	err = k.eachCount(r, func(p uint32, n int) {
		if n > most {
			partition, most = p, n
		}
	})
	return partition, most, errs.First(err, ctx.Err())
}

// smallest returns the partition with the fewest vectors, if these are too few, and there are others; otherwise 0.
func (k *keeper) smallest(r storage.Reader, centers *router) (uint32, error) {
	if len(centers.centers) < 2 {
		return 0, nil
	}
	counts := make(map[uint32]int)
	if err := k.eachCount(r, func(p uint32, n int) { counts[p] = n }); err != nil {
		return 0, err
	}
	partition, least := uint32(0), min(MinPartition, k.most()/4) // half of a partition is not too small
	for i := range centers.centers {
		if p := centers.centers[i].partition; counts[p] < least {
			partition, least = p, counts[p]
		}
	}
	return partition, nil
}

// move prepares a part that moves documents out of the tail.
func (p *part) move(ctx context.Context, centers *router, tail []document) (catalog.Settling, error) {
	k := p.k
	size := k.codeSize()
	var items []item
	for i := range tail {
		codes := tail[i].codes
		for n := 0; n*size < len(codes); n++ {
			items = append(items, item{raw: codes[n*size : (n+1)*size]})
		}
	}
	if len(centers.centers) == 0 {
		if err := p.group(ctx, items); err != nil {
			return nil, err
		}
	} else if err := p.assign(ctx, centers, items); err != nil {
		return nil, err
	}
	for i := range tail {
		for range len(tail[i].codes) / size {
			tail[i].partitions = append(tail[i].partitions, items[0].partition)
			items = items[1:]
		}
	}
	p.moved = tail
	return p.stage, nil
}

// assign gives items the partitions of the nearest centers, but for the one that is given up.
func (p *part) assign(ctx context.Context, centers *router, items []item) error {
	for i := range items {
		c := cut(items[i].raw)
		at := centers.nearest(sightOf(p.k.assigning(), &c), p.gone)
		items[i].partition = centers.centers[at].partition
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// stage is the catalog.Settling.
func (p *part) stage(tx storage.Tx) (bool, error) {
	if holds, err := p.seen.Holds(tx); !holds || err != nil {
		return false, err
	}
	k := p.k
	for i := range p.moved {
		if err := k.moveTail(tx, &p.moved[i]); err != nil {
			return false, err
		}
	}
	if err := p.regroup(tx); err != nil {
		return false, err
	}
	for i := range p.made {
		c := &p.made[i]
		tx.Set(k.partitionKey(keyCenter, c.partition), catalog.AppendSum(bytes.Clone(c.raw)), nil)
		tx.Add(k.partitionKey(keyCount, c.partition), 1)
	}
	if p.gone != 0 {
		tx.Delete(k.partitionKey(keyCenter, p.gone))
		tx.Add(k.partitionKey(keyCount, p.gone), -1)
	}
	tx.Set(k.stateKey(), p.state.append(), nil)
	return true, nil
}

// moveTail moves a document out of the tail, if it has the same vectors.
func (k *keeper) moveTail(tx storage.Tx, d *document) error {
	tail := k.documentKey(keyTail, d.folded)
	codes, err := catalog.ValueAt(tx, tail)
	if err != nil || codes == nil || !bytes.Equal(codes, d.codes) {
		return err
	}
	tx.Delete(tail)
	size := k.codeSize()
	for i, partition := range d.partitions {
		tx.Set(k.vectorKey(partition, d.folded, i, len(d.partitions)), d.codes[i*size:(i+1)*size], nil)
		tx.Add(k.partitionKey(keyCount, partition), 1)
	}
	now := record{isPartitioned, d.print, d.partitions}
	tx.Set(k.documentKey(keyOf, d.folded), now.append(nil), nil)
	return nil
}
