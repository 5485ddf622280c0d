package vectors

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/vector"
	"github.com/jaydb/jay/storage"
)

// split prepares a part that splits a partition.
func (p *part) split(ctx context.Context, r storage.Reader, partition uint32) (catalog.Settling, error) {
	items, err := p.k.read(ctx, r, partition)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("index %q has no vector in partition %d: %w", p.k.ix.Info.Name, partition, errs.ErrCorrupt)
	}
	if err := p.group(ctx, items); err != nil {
		return nil, err
	}
	p.giveUp(partition, items)
	return p.stage, nil
}

// join prepares a part that joins a partition with others.
func (p *part) join(ctx context.Context, r storage.Reader, centers *router, partition uint32) (catalog.Settling, error) {
	items, err := p.k.read(ctx, r, partition)
	if err != nil {
		return nil, err
	}
	p.giveUp(partition, items)
	if err := p.assign(ctx, centers, items); err != nil {
		return nil, err
	}
	return p.stage, nil
}

func (p *part) giveUp(partition uint32, items []item) {
	p.gone, p.regroups = partition, items
	p.state.live--
	p.state.version++
}

// read reads the vectors of a partition.
func (k *keeper) read(ctx context.Context, r storage.Reader, partition uint32) (items []item, err error) {
	lo := k.partitionKey(keyVector, partition)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var folded []byte
		var one item
		if _, folded, one.i, one.several, err = cutVectorKey(it.Key()); err != nil {
			break
		}
		if _, err = k.codeIn(it.Value()); err != nil {
			break
		}
		one.folded, one.raw = string(folded), bytes.Clone(it.Value())
		items = append(items, one)
		err = ctx.Err()
	}
	return items, errs.First(errs.First(err, it.Error()), it.Close())
}

// regroup moves the vectors of a partition that is given up. Those of documents that have changed are not there any more.
func (p *part) regroup(tx storage.Tx) error {
	k := p.k
	records := make(map[string]*record)
	for i := range p.regroups {
		one := &p.regroups[i]
		r := records[one.folded]
		if r == nil {
			value, err := catalog.ValueAt(tx, k.documentKey(keyOf, one.folded))
			if err != nil {
				return err
			}
			r = new(record)
			if value != nil {
				if *r, err = decodeRecord(value); err != nil {
					return fmt.Errorf("document %q: %w", one.folded, err)
				}
			}
			records[one.folded] = r
		}
		if one.i >= len(r.partitions) || r.partitions[one.i] != p.gone {
			continue
		}
		of := len(r.partitions)
		tx.Delete(k.vectorKey(p.gone, one.folded, one.i, of))
		tx.Add(k.partitionKey(keyCount, p.gone), -1)
		tx.Set(k.vectorKey(one.partition, one.folded, one.i, of), one.raw, nil)
		tx.Add(k.partitionKey(keyCount, one.partition), 1)
		r.partitions[one.i] = one.partition
	}
	for folded, r := range records {
		if len(r.partitions) > 0 {
			tx.Set(k.documentKey(keyOf, folded), r.append(nil), nil)
		}
	}
	return nil
}

// group puts items into new partitions, none of which is large: all are halved until they are small enough.
func (p *part) group(ctx context.Context, items []item) error {
	all := make([]*item, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	groups := [][]*item{all}
	for len(groups) > 0 {
		last := groups[len(groups)-1]
		groups = groups[:len(groups)-1]
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(last) > p.k.most() {
			one, other := p.k.halve(last)
			groups = append(groups, other, one)
			continue
		}
		raw := p.k.mean(last)
		p.made = append(p.made, center{partition: p.state.next, raw: raw})
		for _, one := range last {
			one.partition = p.state.next
		}
		p.state.next++
		p.state.live++
	}
	p.state.version++
	return nil
}

// halvings is how often the centers of two halves are computed anew.
const halvings = 8

// halve puts items into two groups by k-means, with a fixed seed. Neither has less than a quarter of them: otherwise a few that lie apart would be split off again
// and again, and joined again.
func (k *keeper) halve(items []*item) (one, other []*item) {
	random := rand.New(rand.NewPCG(1, uint64(len(items))))
	centers := [2][]byte{items[random.IntN(len(items))].raw, nil}
	centers[1] = k.furthest(items, centers[0])
	type far struct {
		*item
		by float64 // how much further the first center is than the second
	}
	order := make([]far, len(items))
	all, at := k.sums(items), 0
	rest := make([]float64, len(all))
	for round := range halvings {
		a, b := k.sightOf(centers[0]), k.sightOf(centers[1])
		before := at
		at = 0
		for i, one := range items {
			c := cut(one.raw)
			toA, _ := a.distance(&c)
			toB, _ := b.distance(&c)
			order[i] = far{one, toA - toB}
		}
		slices.SortStableFunc(order, func(x, y far) int { return cmp.Compare(x.by, y.by) })
		at, _ = slices.BinarySearchFunc(order, 0, func(x far, _ int) int { return cmp.Compare(x.by, 0) })
		few := max(1, len(items)/4)
		at = max(few, min(len(items)-few, at))
		one, other = nil, nil
		for i := range order {
			if i < at {
				one = append(one, order[i].item)
			} else {
				other = append(other, order[i].item)
			}
		}
		if round > 2 && at == before {
			break
		}
		// The larger half has what the sums of the smaller one leave of all. Which of the two is in front does not matter.
		ones, others := one, other
		if len(one) > len(other) {
			ones, others = other, one
		}
		part := k.sums(ones)
		for i := range rest {
			rest[i] = all[i] - part[i]
		}
		centers = [2][]byte{k.middle(ones, part), k.middle(others, rest)}
	}
	return one, other
}

func (k *keeper) sightOf(raw []byte) *sight {
	c := cut(raw)
	return sightOf(k.assigning(), &c)
}

// furthest returns the code that is furthest from another one.
func (k *keeper) furthest(items []*item, from []byte) (raw []byte) {
	s, most := k.sightOf(from), -1.0
	for _, one := range items {
		c := cut(one.raw)
		if about, _ := s.distance(&c); about > most || raw == nil {
			raw, most = one.raw, about
		}
	}
	return raw
}

// mean returns the code of the middle of items; for the metric Cosine, of their directions.
func (k *keeper) mean(items []*item) []byte { return k.middle(items, k.sums(items)) }

// sums returns the sums of the numbers of items; for the metric Cosine, of vectors of their directions.
func (k *keeper) sums(items []*item) []float64 {
	sums := make([]float64, k.dimensions)
	for _, one := range items {
		c := cut(one.raw)
		weight := c.scale
		if k.metric == vector.Cosine && c.length > 0 {
			weight /= c.length
		}
		numbers := c.numbers[:len(sums)]
		for i := range sums {
			sums[i] += weight * float64(int8(numbers[i]))
		}
	}
	return sums
}

// middle returns the code of the middle of items, of which sums are the sums.
func (k *keeper) middle(items []*item, sums []float64) []byte {
	middle := make([]float32, len(sums))
	for i, sum := range sums {
		middle[i] = float32(sum / float64(len(items)))
	}
	if k.metric == vector.Cosine && isZero(middle) { // they are opposite to one another
		return bytes.Clone(items[0].raw)
	}
	return appendCode(nil, middle)
}
