package write

import (
	"maps"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/budget"
)

// Unused counts the HiLo numbers that this process drew and did not use:
// those of writes that failed afterwards, and those whose ID was already taken by a
// document written by hand. It also knows which ranges were returned too late. A
// crash leaves more, which only a pass over the documents can count.
type Unused struct {
	mu    sync.Mutex
	byTag map[string]int64           // Guarded by mu.
	taken map[string]int64           // those of byTag whose ID a document has. Guarded by mu.
	late  map[string]map[int64]int64 // by folded tag and end, the last used number. Guarded by mu.
}

// Count adds the numbers of ops that were drawn.
func (g *Unused) Count(ops []*Op) {
	for _, o := range ops {
		if !o.Strategy.FromRange() || o.ID == "" {
			continue
		}
		g.mu.Lock()
		if g.byTag == nil {
			g.byTag = make(map[string]int64)
		}
		g.byTag[o.Tag]++
		g.mu.Unlock()
	}
}

// countTaken adds the number of an op whose ID a document has already.
func (g *Unused) countTaken(o *Op) {
	if !o.Strategy.FromRange() {
		return
	}
	g.Count([]*Op{o})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.taken == nil {
		g.taken = make(map[string]int64)
	}
	g.taken[o.Tag]++
}

// Free returns those that no document has.
func (g *Unused) Free() map[string]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	unused := maps.Clone(g.byTag)
	for tag, n := range g.taken {
		unused[tag] -= n
	}
	return unused
}

// CountLate records a refused return of the range that ended at end, if its caller
// holds the range: if it is among the open leases. A range that has left them can
// be forgotten.
func (g *Unused) CountLate(folded string, last, end int64, open []ids.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := make(map[int64]bool, len(open))
	for _, l := range open {
		held[l.End] = true
		if l.End != end || last < l.Low-1 || last >= end {
			continue
		}
		if g.late == nil {
			g.late = make(map[string]map[int64]int64)
		}
		if g.late[folded] == nil {
			g.late[folded] = make(map[int64]int64)
		}
		g.late[folded][end] = last
	}
	maps.DeleteFunc(g.late[folded], func(end, _ int64) bool { return len(open) > 0 && !held[end] })
}

// ReturnedLate returns the last used numbers of the ranges that were returned too
// late, by folded tag and end.
func (g *Unused) ReturnedLate() map[string]map[int64]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	late := make(map[string]map[int64]int64, len(g.late))
	for tag, ranges := range g.late {
		late[tag] = maps.Clone(ranges)
	}
	return late
}

// CountDrawn adds the numbers that a transaction drew and did not use.
func (g *Unused) CountDrawn(drawn map[string][]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for prefix, list := range drawn {
		if len(list) == 0 {
			continue
		}
		if g.byTag == nil {
			g.byTag = make(map[string]int64)
		}
		g.byTag[prefix] += int64(len(list))
	}
}

// Clone returns the numbers drawn and not used since Open, by tag, those that a
// document has included. payer pays for the copy.
func (g *Unused) Clone(payer *budget.Payer) (map[string]int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for tag := range g.byTag {
		if err := payer.PayNamed(tag); err != nil {
			return nil, err
		}
	}
	return maps.Clone(g.byTag), nil
}
