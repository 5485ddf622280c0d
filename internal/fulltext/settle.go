package fulltext

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// partBytes is about how many bytes of texts are settled at once; one document may have more.
const partBytes = 1 << 20

// MinTail is how many documents the tail has before some are settled, PartDocuments of them at most at once: the more, the larger are the
// blocks, and the fewer. A tail of PressDocuments presses. One of MaxTail, or of so
// many bytes of texts, slows writers down, so that a tail of twice as many becomes shorter. Variables for tests.
var (
	MinTail        = 64
	PartDocuments  = 2048
	PressDocuments = 1024
	MaxTail        = 8192
	MaxTailBytes   = 16 << 20
)

// wholeEvery is of how many parts one takes its documents from the beginning of the tail, also if there are others behind those of the part before it.
const wholeEvery = 16

// Quickly makes parts small and sweeps frequent, for tests, and returns what undoes it.
func Quickly() (restore func()) {
	least, most, press, longest, dead, blocks := MinTail, PartDocuments, PressDocuments, MaxTail, MinDead, MinBlocks
	MinTail, PartDocuments, PressDocuments, MinDead, MinBlocks = 1, 5, 10, 3, 40
	return func() {
		MinTail, PartDocuments, PressDocuments, MaxTail, MinDead, MinBlocks = least, most, press, longest, dead, blocks
	}
}

// moved is a document that a part moves from the tail to the blocks.
type moved struct {
	folded  string
	texts   []byte // as they were
	ordinal uint64
	sum     int64 // of its postings
	lengths []int // by field
	print   [16]byte
}

// part is what a Settling stages.
type part struct {
	k     *keeper
	seen  *catalog.Seen // the state, by which the blocks are as they were
	state state
	moved []moved
	size  int     // bytes of the texts of moved
	set   []keyed // blocks
}

// idleFor is how long a tail counts as short that was found so, if this process stages little. Other processes that have the store open may stage more.
const idleFor = time.Second

// progress is what a Settler remembers from one part to the next. It changes no answer, and belongs to the worker.
type progress struct {
	parts   int
	swept   bool          // the last part was one of a sweep, so that the next looks at the tail: writers may make it long during a sweep
	resumes []byte        // where in the tail the next part begins: a folded ID and a zero, nothing for its beginning
	had     gatheredSizes // by the last part, for as many bytes of texts as size
	size    int
	staged  int64     // keeper.staged when the part before this one began
	idle    int64     // a value of keeper.staged up to which nothing is worth a part
	idleAt  time.Time // when that was seen: what other processes have staged since then is not in keeper.staged

	pressure catalog.Pressure
}

// expects returns about how much a part with so many bytes of texts has.
func (p *progress) expects(size int) gatheredSizes {
	size = min(size, 2*partBytes)
	of := func(n int) int { return int(float64(n) * min(1, float64(size)/float64(max(p.size, 1))) * 1.1) }
	return gatheredSizes{of(p.had.terms), of(p.had.postings), of(p.had.positions)}
}

// Settle implements catalog.Settler: it moves documents from the tail into blocks. The blocks and the state are written by nobody else, so
// that a part holds as long as the state is what it was. A document of it that has changed meanwhile is dead at once, so writers do not
// keep others from being settled.
func (k *keeper) Settle(ctx context.Context, r storage.Reader) (catalog.Settling, error) {
	p := part{k: k, seen: catalog.NewSeen(r)}
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
	k.progress.parts++
	staged := k.staged.Load()
	defer func() { k.progress.staged = staged }()
	k.progress.pressure.Documents, k.progress.pressure.Trail = 0, catalog.Trail{} // a sweep does not read the tail
	due, err := k.sweepDue(r, p.state)
	if err != nil {
		return nil, err
	}
	sweeps := due && !k.progress.swept
	if k.progress.swept = sweeps; sweeps {
		return k.sweepPart(ctx, r, p.seen, p.state)
	}
	if staged < k.progress.idle && time.Since(k.progress.idleAt) < idleFor {
		k.progress.pressure = catalog.Pressure{}
	} else if err := p.take(ctx, r); err != nil {
		return nil, err
	}
	if len(p.moved) == 0 {
		if !due {
			return nil, nil
		}
		return k.sweepPart(ctx, r, p.seen, p.state) // the tail is short
	}
	g := newGather(len(k.ix.Fields), k.progress.expects(p.size))
	for i := range p.moved {
		if err := p.gather(g, &p.moved[i]); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	p.set = g.blocks(k)
	p.state.blocks += uint64(len(p.set))
	k.progress.had, k.progress.size = g.sizes(), p.size
	return p.stage, nil
}

// gather gathers the postings of a document. What blocks their terms have is not looked at: a sweep joins those of few documents.
func (p *part) gather(g *gather, m *moved) error {
	m.print = printOf(m.texts)
	if words := p.k.kept.get([]byte(m.folded), m.texts); words != nil {
		m.sum, m.lengths = g.addWords(m.ordinal, words)
		return nil
	}
	err := p.k.eachText(m.texts, func(field int, s string) { g.addText(p.k.analyzers[field], field, s) })
	m.sum, m.lengths = g.endDocument(m.ordinal)
	return err
}

// take takes documents from the tail: those behind the last ones that were taken, where writers who count up put theirs, as the keys of
// documents that were settled are passed one by one until the engine has forgotten them. If there are few, it goes on at the beginning.
func (p *part) take(ctx context.Context, r storage.Reader) error {
	lo := p.k.key(keyTail)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return err
	}
	now := &p.k.progress
	resumes := slices.Concat(lo, now.resumes)
	if now.parts%wholeEvery == 0 {
		resumes = lo
	}
	t := taking{part: p, trail: catalog.Trail{Lo: lo, Hi: format.PrefixEnd(lo)}}
	t.run(ctx, it, resumes, nil)
	if t.isShort() && len(resumes) > len(lo) {
		t.run(ctx, it, lo, resumes)
	}
	t.trail.Pass(it)
	if err := errs.First(errs.First(it.Error(), it.Close()), ctx.Err()); err != nil {
		return err
	}
	now.pressure, now.resumes = t.pressure(), nil
	if t.isShort() {
		now.idle, now.idleAt = now.staged+int64(MinTail-t.seen)/2, time.Now()
		p.k.kept.retain(p.moved)
		p.state.next -= uint64(len(p.moved))
		p.moved = nil
	} else {
		now.resumes = append([]byte(p.moved[len(p.moved)-1].folded), 0)
	}
	return nil
}

// taking is what take has seen of the tail.
type taking struct {
	*part
	seen, bytes int // documents, and bytes of their texts
	trail       catalog.Trail
}

// isShort reports whether the documents that were seen are not worth a part.
func (t *taking) isShort() bool { return t.seen < MinTail && t.size < partBytes }

// pressure returns how long the tail is. Writers that are slowed down at all are as fast as the worker, and half as fast if it has twice as many
// documents.
func (t *taking) pressure() catalog.Pressure {
	p := catalog.Pressure{Presses: t.seen >= PressDocuments || t.bytes >= MaxTailBytes/2, Documents: len(t.moved), Trail: t.trail}
	if slow := t.length(); slow >= 1 {
		p.Slow = min(slow, 2)
	}
	return p
}

// length returns how long the tail that was seen is, of the one that slows writers down.
func (t *taking) length() float64 {
	return max(float64(t.seen)/float64(MaxTail), float64(t.bytes)/float64(MaxTailBytes))
}

// run takes documents from one key of the tail to another, nil for its end, until there are enough, and counts those behind them, until the tail has twice what slows writers down.
func (t *taking) run(ctx context.Context, it storage.Iterator, from, end []byte) {
	for ok := it.SeekGE(from); ok && (end == nil || bytes.Compare(it.Key(), end) < 0) && ctx.Err() == nil; ok = it.Next() {
		if len(t.moved) < PartDocuments && t.size < partBytes {
			t.moved = append(t.moved, moved{folded: string(tailID(it.Key())), texts: bytes.Clone(it.Value()), ordinal: t.state.next})
			t.state.next++
			t.size += len(it.Value())
		} else if t.length() >= 2 {
			return
		}
		t.seen, t.bytes = t.seen+1, t.bytes+len(it.Value())
	}
}

// stage is the catalog.Settling. It stages in the order of keys, which spares the engine from sorting them.
func (p *part) stage(tx storage.Tx) (bool, error) {
	if holds, err := p.seen.Holds(tx); !holds || err != nil {
		return false, err
	}
	live := make([]*moved, 0, len(p.moved)) // by ordinal
	var dead []*moved
	for i := range p.moved {
		m := &p.moved[i]
		texts, err := catalog.ValueAt(tx, p.k.documentKey(keyTail, m.folded))
		if err != nil {
			return false, err
		}
		if texts == nil || !bytes.Equal(texts, m.texts) {
			dead = append(dead, m)
		} else {
			live = append(live, m)
		}
	}
	for i := range p.set {
		tx.Set(p.set[i].key, p.set[i].value, nil)
	}
	byID := slices.Clone(live)
	slices.SortFunc(byID, func(a, b *moved) int { return strings.Compare(a.folded, b.folded) })
	for _, m := range byID {
		now := ofDocument{m.print, m.ordinal}
		tx.Set(p.k.documentKey(keyOf, m.folded), now.append(nil), nil)
	}
	for _, m := range dead {
		p.k.markDead(tx, m.ordinal, m.sum)
	}
	p.addLengths(tx, live)
	for _, m := range live {
		s := settled{m.sum, m.lengths, []byte(m.folded)}
		tx.Set(p.k.ordinalKey(keySettled, m.ordinal), s.append(nil), nil)
	}
	tx.Set(p.k.stateKey(), p.state.append(), nil)
	for _, m := range byID {
		tx.Delete(p.k.documentKey(keyTail, m.folded))
	}
	p.k.kept.settled(p.moved)
	return true, nil
}

// addLengths adds the lengths of documents to those of all in the blocks.
func (p *part) addLengths(tx storage.Tx, all []*moved) {
	for field := range p.k.ix.Fields {
		documents, terms := int64(0), int64(0)
		for _, m := range all {
			if n := m.lengths[field]; n > 0 {
				documents, terms = documents+1, terms+int64(n)
			}
		}
		if documents > 0 {
			tx.Add(p.k.lengthsKey(field), documents, terms)
		}
	}
}
