package fulltext

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// partBytes is about how many bytes of texts are settled at once; one document may have more.
const partBytes = 512 << 10

// MinTail is how many documents the tail has before some are settled, PartDocuments of them at most at once. Variables for
// tests.
var (
	MinTail       = 64
	PartDocuments = 512
)

// Quickly makes parts small and sweeps frequent, for tests, and returns what undoes it.
func Quickly() (restore func()) {
	least, most, dead, blocks := MinTail, PartDocuments, MinDead, MinBlocks
	MinTail, PartDocuments, MinDead, MinBlocks = 1, 5, 3, 40
	return func() { MinTail, PartDocuments, MinDead, MinBlocks = least, most, dead, blocks }
}

// moved is a document that a part moves from the tail to the blocks.
type moved struct {
	folded  string
	texts   []byte // as they were
	ordinal uint64
	sum     int64 // of its postings
	lengths []int // by field
}

// part is what a Settling stages.
type part struct {
	k     *keeper
	seen  *catalog.Seen // the state, by which the blocks are as they were
	state state
	moved []moved
	set   map[string][]byte // blocks
}

// Settle implements catalog.Settler: it moves documents from the tail into blocks. The blocks and the state are written by nobody else, so
// that a part holds as long as the state is what it was. A document of it that has changed meanwhile is dead at once, so writers do not
// keep others from being settled.
func (k *keeper) Settle(ctx context.Context, r storage.Reader) (catalog.Settling, error) {
	p := part{k: k, seen: catalog.NewSeen(r), set: make(map[string][]byte)}
	value, err := p.seen.Get(k.stateKey())
	if err != nil {
		return nil, err
	}
	if p.state, err = decodeState(value); err != nil {
		return nil, err
	}
	if err := k.check(p.state); err != nil {
		return nil, err
	}
	p.state.version = k.version
	due, err := k.sweepDue(r, p.state)
	if err != nil {
		return nil, err
	}
	if due {
		return k.sweepPart(ctx, r, p.seen, p.state)
	}
	if err := p.take(ctx, r); err != nil || len(p.moved) == 0 {
		return nil, err
	}
	postings := make(map[termOf][]posting)
	for i := range p.moved {
		m := &p.moved[i]
		words := k.kept.get([]byte(m.folded), m.texts)
		if words == nil {
			if words, err = k.analyze(m.texts); err != nil {
				return nil, err
			}
		}
		for field := range words.fields {
			m.lengths = append(m.lengths, words.fields[field].length)
		}
		words.each(m.ordinal, func(field int, term []byte, one posting) {
			at := termOf{field, string(term)}
			postings[at] = append(postings[at], one)
			m.sum += one.weigh(field, term)
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	p.add(postings)
	return p.stage, nil
}

// take takes documents from the tail.
func (p *part) take(ctx context.Context, r storage.Reader) error {
	lo := p.k.key(keyTail)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return err
	}
	size := 0
	for ok := it.First(); ok && len(p.moved) < PartDocuments && size < partBytes && ctx.Err() == nil; ok = it.Next() {
		p.moved = append(p.moved, moved{folded: string(tailID(it.Key())), texts: bytes.Clone(it.Value()), ordinal: p.state.next})
		p.state.next++
		size += len(it.Value())
	}
	if len(p.moved) < MinTail && size < partBytes {
		p.k.kept.retain(p.moved)
		p.moved = nil
	}
	return errs.First(errs.First(it.Error(), it.Close()), ctx.Err())
}

// add makes blocks of postings. What blocks their terms have is not looked at: a sweep joins those of few documents.
func (p *part) add(postings map[termOf][]posting) {
	for at, all := range postings {
		prefix := p.k.termKey(at.field, at.term)
		for _, block := range blocks(all) {
			p.set[string(binary.BigEndian.AppendUint64(bytes.Clone(prefix), block[0].ordinal))] = appendBlock(nil, block)
		}
	}
	p.state.blocks += uint64(len(p.set))
}

// stage is the catalog.Settling.
func (p *part) stage(tx storage.Tx) (bool, error) {
	if holds, err := p.seen.Holds(tx); !holds || err != nil {
		return false, err
	}
	for i := range p.moved {
		if err := p.move(tx, &p.moved[i]); err != nil {
			return false, err
		}
	}
	for key, value := range p.set {
		tx.Set([]byte(key), value, nil)
	}
	tx.Set(p.k.stateKey(), p.state.append(), nil)
	p.k.kept.settled(p.moved)
	return true, nil
}

// move moves a document out of the tail, if it has the texts that the postings are of.
func (p *part) move(tx storage.Tx, m *moved) error {
	tail := p.k.documentKey(keyTail, m.folded)
	texts, err := catalog.ValueAt(tx, tail)
	if err != nil {
		return err
	}
	if texts == nil || !bytes.Equal(texts, m.texts) {
		p.k.markDead(tx, m.ordinal, m.sum)
		return nil
	}
	tx.Delete(tail)
	now := ofDocument{printOf(m.texts), m.ordinal}
	tx.Set(p.k.documentKey(keyOf, m.folded), now.append(nil), nil)
	s := settled{m.sum, m.lengths, []byte(m.folded)}
	tx.Set(p.k.ordinalKey(keySettled, m.ordinal), s.append(nil), nil)
	p.k.addLengths(tx, m.lengths, 1)
	return nil
}
