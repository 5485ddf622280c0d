package vectors

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/vector"
	"github.com/jaydb/jay/storage"
)

// center is the center of a partition.
type center struct {
	partition uint32
	raw       []byte // its code
	code      code
}

// router has the centers of all partitions. It is immutable.
type router struct {
	version uint64
	centers []center // by partition, ascending
}

// kept is the newest router that was read.
type kept struct {
	mu  sync.Mutex
	all *router // nil for none. Guarded by mu.
}

func (k *kept) get() *router {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all
}

func (k *kept) set(r *router) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || k.all.version < r.version {
		k.all = r
	}
}

// state returns the state that r shows.
func (k *keeper) state(r storage.Reader) (state, error) {
	value, err := catalog.ValueAt(r, k.stateKey())
	if err != nil {
		return state{}, err
	}
	return decodeState(value)
}

// route returns the centers that r shows. The newest are in memory.
func (k *keeper) route(r storage.Reader, s state) (*router, error) {
	known := k.kept.get()
	switch {
	case s.live == 0:
		return &router{version: s.version}, nil
	case known != nil && known.version == s.version:
		return known, nil
	}
	read := &router{version: s.version, centers: make([]center, 0, s.live)}
	lo := k.key(keyCenter)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var c center
		if c, err = k.centerAt(known, it.Key(), it.Value()); err == nil {
			read.centers = append(read.centers, c)
		}
	}
	if err := errs.First(errs.First(err, it.Error()), it.Close()); err != nil {
		return nil, err
	}
	if len(read.centers) != int(s.live) {
		return nil, fmt.Errorf("index %q has %d centers of %d partitions: %w", k.ix.Info.Name, len(read.centers), s.live, errs.ErrCorrupt)
	}
	k.kept.set(read)
	return read, nil
}

// centerAt reads a center, or takes it from those that are known.
func (k *keeper) centerAt(known *router, key, value []byte) (c center, err error) {
	if c.partition, err = cutPartition(key); err != nil {
		return c, err
	}
	if known != nil {
		at, found := slices.BinarySearchFunc(known.centers, c.partition, func(c center, n uint32) int { return cmp.Compare(c.partition, n) })
		if found && len(value) > 4 && bytes.Equal(known.centers[at].raw, value[:len(value)-4]) {
			return known.centers[at], nil
		}
	}
	if _, err = k.centerIn(value); err != nil {
		return c, err
	}
	c.raw = bytes.Clone(value[:len(value)-4])
	c.code = cut(c.raw)
	return c, nil
}

// assigning returns the metric by which vectors are put into partitions. Products are not: the vector that is nearest to all others by product is the longest.
func (k *keeper) assigning() vector.Metric {
	if k.metric == vector.Dot {
		return vector.Euclidean
	}
	return k.metric
}

// nearest returns the position of the nearest center, -1 without any. That of partition except is passed over.
func (r *router) nearest(s *sight, except uint32) int {
	best, least := -1, math.Inf(1)
	for i := range r.centers {
		if r.centers[i].partition == except {
			continue
		}
		if about, _ := s.distance(&r.centers[i].code); about < least || best < 0 {
			best, least = i, about
		}
	}
	return best
}

// ranked returns the positions of all centers, the nearest first.
func (r *router) ranked(s *sight) []int {
	type far struct {
		at    int
		about float64
	}
	all := make([]far, len(r.centers))
	for i := range r.centers {
		about, _ := s.distance(&r.centers[i].code)
		all[i] = far{i, about}
	}
	slices.SortFunc(all, func(a, b far) int { return cmp.Or(cmp.Compare(a.about, b.about), cmp.Compare(a.at, b.at)) })
	order := make([]int, len(all))
	for i := range all {
		order[i] = all[i].at
	}
	return order
}
