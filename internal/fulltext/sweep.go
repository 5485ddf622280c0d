package fulltext

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// A sweep over all blocks removes the postings of documents that have changed, which queries pass over until then, and joins blocks of
// few documents, as each part that is settled adds blocks of its own. It begins when there are MinDead such documents more than after the last
// one, and a quarter of all, or twice as many blocks as then, and MinBlocks. Variables for tests.
var (
	MinDead   = 256
	MinBlocks = 20_000
)

// smallBlock is how many postings a block has at least that is not joined with others.
const smallBlock = blockPostings / 2

// SweepBytes is about how many bytes of blocks a part of a sweep reads. A variable for tests.
var SweepBytes = 512 << 10

// sweepEvery is of how many parts one goes on with a sweep that is due while the tail is long.
const sweepEvery = 4

// sweepDue reports whether the next part is one of a sweep.
func (k *keeper) sweepDue(r storage.Reader, s state) (bool, error) {
	if len(s.sweep) == 0 {
		value, err := catalog.ValueAt(r, k.countKey())
		if err != nil {
			return false, err
		}
		dead := uint64(0)
		if len(value) == 8 {
			dead = binary.BigEndian.Uint64(value)
		}
		if dead < s.left+max(uint64(MinDead), (s.next-1-s.removed)/4) && (s.blocks < uint64(MinBlocks) || s.blocks < 2*s.swept) {
			return false, nil
		}
	}
	return k.progress.parts%sweepEvery == 0 || !k.progress.pressure.Presses, nil
}

// Pressure implements catalog.Presser: each query reads the tail.
func (k *keeper) Pressure() catalog.Pressure { return k.progress.pressure }

// sweeping is a part of a sweep.
type sweeping struct {
	k     *keeper
	seen  *catalog.Seen
	state state
	dead  map[uint64]int64 // sums that are left, by ordinal
	less  map[uint64]bool  // those of dead that have become less
	gone  [][]byte         // keys of blocks
	set   []keyed          // blocks

	// Blocks of one term, one behind the other, that may become others.
	prefix   []byte // of their keys
	some     []keyed
	postings int  // of them
	changed  bool // one has a posting of a dead document

	heads []occurrence // scratch
}

// sweepPart prepares a part of a sweep.
func (k *keeper) sweepPart(ctx context.Context, r storage.Reader, seen *catalog.Seen, s state) (catalog.Settling, error) {
	p := sweeping{k: k, seen: seen, state: s, dead: make(map[uint64]int64), less: make(map[uint64]bool)}
	if err := p.readDead(ctx, r); err != nil {
		return nil, err
	}
	lo := k.key(keyBlock)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	size, ok := 0, it.SeekGE(append(slices.Clone(lo), s.sweep...))
	for ; ok && size < SweepBytes && err == nil; ok = it.Next() {
		size += len(it.Key()) + len(it.Value())
		err = errs.First(ctx.Err(), p.block(it.Key(), it.Value()))
	}
	err = errs.First(err, p.flush())
	p.state.sweep = nil
	p.state.blocks = p.state.blocks - uint64(len(p.gone)) + uint64(len(p.set))
	if ok && err == nil {
		p.state.sweep = bytes.Clone(it.Key()[len(lo):])
	} else {
		p.state.swept, p.state.left = p.state.blocks, 0
		for _, sum := range p.dead {
			if sum != 0 {
				p.state.left++
			}
		}
	}
	return p.stage, errs.First(errs.First(err, it.Error()), it.Close())
}

// readDead reads what blocks may still have of dead documents.
func (p *sweeping) readDead(ctx context.Context, r storage.Reader) error {
	lo := p.k.key(keyDead)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if len(it.Key()) != len(lo)+8 || len(it.Value()) != 8 {
			err = errs.ErrCorrupt
			break
		}
		p.dead[binary.BigEndian.Uint64(it.Key()[len(lo):])] = int64(binary.BigEndian.Uint64(it.Value()))
		err = ctx.Err()
	}
	return errs.First(errs.First(err, it.Error()), it.Close())
}

// block looks at the next block. Only heads are read of one that stays as it is.
func (p *sweeping) block(key, value []byte) (err error) {
	if len(key) < 8 {
		return errs.ErrCorrupt
	}
	prefix, first := key[:len(key)-8], binary.BigEndian.Uint64(key[len(key)-8:])
	if p.heads, _, err = decodeHeads(p.heads[:0], first, value); err != nil {
		return err
	}
	changed := len(p.dead) > 0 && slices.ContainsFunc(p.heads, func(o occurrence) bool {
		_, dead := p.dead[o.ordinal]
		return dead
	})
	if !bytes.Equal(prefix, p.prefix) || p.postings >= blockPostings {
		if err := p.flush(); err != nil {
			return err
		}
		p.prefix = append(p.prefix[:0], prefix...)
	}
	if !changed && (len(p.heads) >= smallBlock || len(value) >= blockBytes/2) {
		return p.flush()
	}
	p.some = append(p.some, keyed{bytes.Clone(key), bytes.Clone(value)})
	p.postings, p.changed = p.postings+len(p.heads), p.changed || changed
	return nil
}

// flush joins the blocks that have been gathered, without the postings of dead documents.
func (p *sweeping) flush() error {
	defer func() { p.some, p.postings, p.changed = p.some[:0], 0, false }()
	if !p.changed && len(p.some) < 2 {
		return nil
	}
	var joined []posting
	for i := range p.some {
		field, term, first, ok := cutBlockKey(p.some[i].key)
		if !ok {
			return errs.ErrCorrupt
		}
		all, err := decodeBlock(nil, first, p.some[i].value)
		if err != nil {
			return err
		}
		for j := range all {
			sum, dead := p.dead[all[j].ordinal]
			if !dead {
				joined = append(joined, all[j])
				continue
			}
			p.dead[all[j].ordinal] = sum - weigh(&all[j], field, term)
			p.less[all[j].ordinal] = true
		}
		p.gone = append(p.gone, p.some[i].key)
	}
	for _, block := range blocks(joined) {
		p.set = append(p.set, keyed{binary.BigEndian.AppendUint64(bytes.Clone(p.prefix), block[0].ordinal), appendBlock(nil, block)})
	}
	return nil
}

// stage is the catalog.Settling.
func (p *sweeping) stage(tx storage.Tx) (bool, error) {
	if holds, err := p.seen.Holds(tx); !holds || err != nil {
		return false, err
	}
	state, removed := p.state, int64(0)
	for ordinal, sum := range p.dead {
		key := p.k.ordinalKey(keyDead, ordinal)
		switch {
		case sum == 0: // no block has a posting of it
			tx.Delete(key)
			removed++
		case p.less[ordinal]:
			tx.Set(key, binary.BigEndian.AppendUint64(nil, uint64(sum)), nil)
		}
	}
	if removed > 0 {
		tx.Add(p.k.countKey(), -removed)
		state.removed += uint64(removed)
	}
	for _, key := range p.gone {
		tx.Delete(key)
	}
	for i := range p.set {
		tx.Set(p.set[i].key, p.set[i].value, nil)
	}
	tx.Set(p.k.stateKey(), state.append(), nil)
	return true, nil
}
