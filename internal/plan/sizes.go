package plan

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// Bounds of asking the engine for sizes.
const (
	maxSizedRanges = 32   // of one path, of which the engine is asked for the size
	plansUntilAsk  = 32   // that do without the size of an index which lay in memory
	fewKeys        = 64   // that are counted at least of a path which lies in few blocks
	manyKeys       = 1024 // and at most
)

// What an index must have on disk, in bytes, and its collection in documents, for the engine to be asked: it may lie in memory, or in a few
// blocks. Variables for tests, which have few documents.
var (
	LeastIndex     uint64 = 64 << 10
	LeastDocuments int64  = 4096
)

// figures returns how the entries of an index lie. They are sampled anew when the collection has grown or shrunk to the double or the half.
func (p *planner) figures(c *costs, ix *catalog.Index) (*catalog.Figures, error) {
	f := ix.Figures.Load()
	if f != nil && f.Documents <= 2*c.documents && c.documents <= 2*f.Documents && (f.Bytes > 0 || f.Plans.Add(1) < plansUntilAsk) {
		return f, nil
	}
	sampled := &catalog.Figures{Documents: c.documents, Near: -1}
	if f != nil && f.Bytes == 0 && f.Documents == c.documents {
		sampled.Near = f.Near
	}
	if p.options.Space != nil && c.documents >= LeastDocuments {
		prefix := format.AppendIndexPrefix(nil, ix.Number)
		var err error
		if sampled.Bytes, err = p.options.Space.DiskBytes(prefix, format.PrefixEnd(prefix)); err != nil {
			return nil, err
		}
		if sampled.Bytes < LeastIndex {
			sampled.Bytes = 0
		} else if sampled.Block, err = p.blockOf(prefix); err != nil {
			return nil, err
		}
	}
	ix.Figures.Store(sampled)
	return sampled, nil
}

// blockOf returns how many bytes the block with the first key of an index takes.
func (p *planner) blockOf(prefix []byte) (n uint64, err error) {
	it, err := p.snapshot.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	if it.First() {
		n, err = p.options.Space.DiskBytes(it.Key(), it.Key())
	}
	return n, errs.First(err, it.Error())
}

// size sets about how many entries a path has, by what its ranges take on disk beside the whole of its index, which has
// about as many as there are documents. It reports false for a path whose entries the engine may have in memory yet, or which has many
// ranges.
//
// The engine adds up whole blocks. A range begins and ends within one, so one block is taken off. Of a path in few blocks the
// first entries are counted, up to twice those of the smallest path; if there are more, the blocks say how many there can be at most.
func (p *planner) size(c *costs, a *Path) (bool, error) {
	if a.estimate > 0 && !a.more || len(a.Ranges) == 0 {
		return true, nil
	}
	f, err := p.figures(c, a.Index)
	if err != nil || f.Bytes == 0 || len(a.Ranges) > maxSizedRanges {
		return false, err
	}
	var few [128]byte // on the stack
	keys := appendKeys(few[:0], a.Ranges)
	r, known := f.Range(keys)
	if !known {
		if r, err = p.measure(a, f); err != nil {
			return false, err
		}
	}
	a.setGuess(r.Entries)
	p.fewest = min(p.fewest, r.Entries)
	sample := r.Uncovered < 0 && a.covers && a.flags&(catalog.FlagMultiple|catalog.FlagCut) != 0
	if sample {
		if r.Uncovered, err = p.sampleUncovered(a); err != nil {
			return false, err
		}
	}
	if !known || sample {
		f.SetRange(keys, r)
	}
	a.uncovered = int(float64(r.Entries) * max(0, r.Uncovered))
	return true, nil
}

// Walked notes how many keys a run of the plan has walked over, at its end. A range may have grown since its size was found out, though
// its collection has not: then the next plan knows.
func (pl *Plan) Walked(keys int64) {
	if len(pl.Access) != 1 || pl.Intersect != nil || !pl.Access[0].guessed || keys <= int64(2*pl.Access[0].estimate+manyKeys) {
		return
	}
	a := pl.Access[0]
	if f := a.Index.Figures.Load(); f != nil {
		f.SetRange(appendKeys(nil, a.Ranges), catalog.RangeFigure{Entries: int(keys), Uncovered: -1})
	}
}

// measure finds out about how many entries a path has: see size.
func (p *planner) measure(a *Path, f *catalog.Figures) (r catalog.RangeFigure, err error) {
	size, most := 0.0, 0.0
	for _, r := range a.Ranges {
		if bytes.Compare(r.Lo, r.Hi) >= 0 {
			continue // no value satisfies the condition
		}
		n, err := p.options.Space.DiskBytes(r.Lo, r.Hi)
		if err != nil {
			return catalog.RangeFigure{}, err
		}
		size += max(0, float64(n)-float64(f.Block))
		most += float64(n)
	}
	each := float64(f.Bytes) / float64(f.Documents)
	r.Entries, r.Uncovered = int(size/each), -1
	if size >= float64(f.Block)*3/2 {
		return r, nil
	}
	if err := p.estimate(a, max(fewKeys, min(manyKeys, 2*p.fewest))); err != nil {
		return r, err
	}
	r.Entries = a.estimate
	switch least := float64(a.estimate); {
	case a.more && most/each > least:
		r.Entries = int((most/each - least) / math.Log(most/each/least)) // each order of magnitude between them is as likely
	case a.covers && !a.more:
		r.Uncovered = float64(a.uncovered) / max(1, least)
	}
	return r, nil
}

// appendKeys appends the bounds of ranges, by which what is found out about them is kept.
func appendKeys(keys []byte, ranges []KeyRange) []byte {
	for _, r := range ranges {
		keys = append(binary.AppendUvarint(keys, uint64(len(r.Lo))), r.Lo...)
		keys = append(binary.AppendUvarint(keys, uint64(len(r.Hi))), r.Hi...)
	}
	return keys
}

// setGuess sets how many entries the path has by figures, and that they are not to be counted.
func (a *Path) setGuess(n int) {
	a.estimate, a.more, a.guessed, a.uncounted, a.within = n, false, true, nil, 0
}

// sampleUncovered returns which share of the entries of a path are not covering, by its first ones.
func (p *planner) sampleUncovered(a *Path) (share float64, err error) {
	it, err := p.snapshot.Iterate(a.Ranges[0].Lo, a.Ranges[0].Hi)
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	sampled, uncovered := 0, 0
	for ok := it.First(); ok && sampled < nearEntries; ok = it.Next() {
		sampled++
		if NotCovering(it.Value()) {
			uncovered++
		}
	}
	p.keys += sampled
	return float64(uncovered) / float64(max(1, sampled)), it.Error()
}

// share returns which share of the documents the conditions of the query let expect. They count as
// independent of one another, but for those that one index decides together.
func (p *planner) share(c *costs) (float64, error) {
	left := make([]bool, len(p.conjuncts))
	for i := range p.own {
		left[i] = true
	}
	share := 1.0
	for {
		var best *Path
		for _, a := range p.paths {
			if len(a.used) == 0 || a.more || slices.ContainsFunc(a.used, func(i int) bool { return !left[i] }) {
				continue
			}
			if best == nil || cmp.Or(len(best.used)-len(a.used), a.estimate-best.estimate) < 0 {
				best = a
			}
		}
		if best == nil {
			break
		}
		for _, i := range best.used {
			left[i] = false
		}
		share *= best.share(c)
	}
	var unknown []string // fields
	for i, e := range p.conjuncts[:p.own] {
		if !left[i] {
			continue
		}
		of, known, err := p.shareOf(c, i)
		switch {
		case err != nil:
			return 0, err
		case known:
			share *= of
			continue
		}
		if f, ok := bindableField(e); ok { // several conditions on one field are about as narrow as one
			if slices.Contains(unknown, f.String()) {
				continue
			}
			unknown = append(unknown, f.String())
		}
		share *= unknownShare
	}
	return share, nil
}

// shareOf returns which share of the documents satisfies a condition that no path has, though it is on the first field of an index: a path
// of an index with several values of a document binds one condition only.
func (p *planner) shareOf(c *costs, conjunct int) (share float64, known bool, err error) {
	for _, a := range p.paths {
		if a.Answer != nil || a.flags&catalog.FlagMultiple == 0 {
			continue
		}
		b := p.binding(conjunct, a.Index.Fields[0])
		if b == nil {
			continue
		}
		of := &Path{Index: a.Index, Ranges: extend([]KeyRange{{Lo: format.AppendIndexPrefix(nil, a.Index.Number)}}, b.ranges)}
		of.close()
		if known, err = p.size(c, of); known || err != nil {
			return of.share(c), known, err
		}
	}
	return 0, false, nil
}

// share returns which share of the documents a path leads to.
func (a *Path) share(c *costs) float64 {
	return min(1, float64(max(1, a.estimate))/float64(c.documents))
}

// unknownShare is which share of the documents is expected to satisfy a condition of which nothing is known.
const unknownShare = 0.3
