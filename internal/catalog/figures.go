package catalog

import (
	"sync"
	"sync/atomic"
)

// Figures say how the entries of an index lie, as plans have sampled it. They are derived, in memory only, and safe for concurrent
// use. A plan that goes by old ones is slower, and answers the same.
type Figures struct {
	Documents int64   // that the collection had at the time
	Bytes     uint64  // of all entries in the tables of the engine; 0 if that is not known
	Block     uint64  // of one block of them
	Near      float64 // the share of documents that lie near the one before them in the order of the entries; below 0 if not sampled

	Plans atomic.Int32 // that have asked for them since

	mu     sync.Mutex
	ranges map[string]*RangeFigure // by their keys
}

// RangeFigure is about how many entries ranges have.
type RangeFigure struct {
	Entries   int
	Uncovered float64 // the share of them that are not covering; below 0 if not sampled

	uses int
}

// Bounds of the sizes of ranges that are kept.
const (
	maxRangeFigures = 256 // of one index
	maxRangeKey     = 512 // bytes of the keys
	maxRangeUses    = 256 // after which a size is found out anew
)

// Range returns about how many entries ranges have, by the keys of their bounds, if that is known.
func (f *Figures) Range(keys []byte) (r RangeFigure, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, known := f.ranges[string(keys)]
	if !known {
		return r, false
	}
	if kept.uses++; kept.uses > maxRangeUses {
		delete(f.ranges, string(keys))
		return r, false
	}
	return *kept, true
}

// SetRange keeps about how many entries ranges have.
func (f *Figures) SetRange(keys []byte, r RangeFigure) {
	if len(keys) > maxRangeKey {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ranges == nil || len(f.ranges) >= maxRangeFigures {
		f.ranges = make(map[string]*RangeFigure)
	}
	f.ranges[string(keys)] = &r
}

// WithNear returns the figures with another Near.
func (f *Figures) WithNear(share float64) *Figures {
	return &Figures{Documents: f.Documents, Bytes: f.Bytes, Block: f.Block, Near: share}
}
