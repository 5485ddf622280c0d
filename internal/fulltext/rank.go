package fulltext

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/storage"
)

// Frequencies implements catalog.Ranker.
func (k *keeper) Frequencies(m catalog.Means, words *score.Words) (*text.Frequencies, error) {
	if k.fieldOf(words) < 0 {
		return nil, nil
	}
	s := &score.Scores{Searches: []score.Words{*words}, Frequencies: make([]*text.Frequencies, 1)}
	l, err := k.look(m, s, []*score.Part{{Kind: score.Search}})
	if err != nil {
		return nil, err
	}
	if err = l.readAll(); err == nil {
		_, err = l.weigh(nil)
	}
	l.release(l.held)
	return s.Frequencies[0], errs.First(err, l.closeBlocks())
}

// weigh sets the frequencies that are not known: of the documents in the blocks, of which those that have changed count until
// a sweep for the words that they had, and of the tail. It returns the documents of the tail for which all parts are true.
func (l *lookup) weigh(parts []*score.Part) (matching []counted, err error) {
	missing := make([]bool, len(l.searches))
	for i, s := range l.searches {
		if missing[i] = s != nil && l.scores.Frequencies[i] == nil; missing[i] {
			if l.scores.Frequencies[i], err = s.settled(l); err != nil {
				return nil, err
			}
		}
	}
	it, err := l.tail()
	if err != nil {
		return nil, err
	}
	var now counted
	for ok := it.First(); ok; ok = it.Next() {
		folded := tailID(it.Key())
		if err = l.count(folded, it.Value(), &now); err != nil {
			break
		}
		for i, s := range l.searches {
			if missing[i] {
				score.AddTo(l.scores.Frequencies[i], s.words)
			}
		}
		if len(parts) > 0 && l.allHold(parts, &now) {
			matching = append(matching, now.clone(folded))
		}
	}
	return matching, errs.First(errs.First(err, it.Error()), it.Close())
}

// settled returns how often the words of a search are in the blocks.
func (s *search) settled(l *lookup) (*text.Frequencies, error) {
	f := &text.Frequencies{Weight: l.k.weights[s.field]}
	value, err := catalog.ValueAt(l.m, l.k.lengthsKey(s.field))
	if err != nil {
		return nil, err
	}
	if value != nil {
		if len(value) != 16 {
			return nil, fmt.Errorf("lengths %x of words: %w", value, errs.ErrCorrupt)
		}
		f.Documents, f.Terms = int64(binary.BigEndian.Uint64(value)), int64(binary.BigEndian.Uint64(value[8:]))
	}
	for _, list := range s.clauses {
		f.Found = append(f.Found, int64(len(list)))
	}
	return f, nil
}

// ofTail is the bit of an ordinal that is a place in ranked.tail.
const ofTail = 1 << 63

// ranked are documents in the order of their scores.
type ranked struct {
	*lookup
	best  hits
	tail  []counted
	it    storage.Iterator // over the records of ordinals
	equal []string         // the next ones, all of one score, the first of them last
	named int              // bytes of equal
}

// rank returns the documents for which all parts are true, the best first.
func (k *keeper) rank(m catalog.Means, scores *score.Scores, parts []*score.Part) (catalog.Candidates, error) {
	l, err := k.look(m, scores, parts)
	if err != nil {
		return nil, err
	}
	c := &ranked{lookup: l}
	if err := errs.First(c.find(parts), l.closeBlocks()); err != nil {
		return nil, err
	}
	lo := k.key(keySettled)
	if c.it, err = m.Iterate(lo, format.PrefixEnd(lo)); err != nil {
		return nil, err
	}
	return c, nil
}

// find finds the documents.
func (c *ranked) find(parts []*score.Part) (err error) {
	l, scores := c.lookup, c.scores
	if err := l.readAll(); err != nil { // how often each word is there, counts
		return err
	}
	if c.tail, err = l.weigh(parts); err != nil {
		return err
	}
	for i, s := range l.searches {
		if s != nil {
			s.ranking = text.NewRanking(s.Parsed, scores.Frequencies[i])
		}
	}
	if c.best, err = l.all(parts); err != nil {
		return err
	}
	for i := range c.tail {
		sum := 0.0
		for _, p := range parts {
			one, _ := l.holds(p, &c.tail[i])
			sum += one
		}
		c.best = append(c.best, hit{ofTail | uint64(i), sum})
	}
	c.addConstants()
	heap.Init(&c.best)
	return nil
}

// addConstants adds what conditions count that are true of all answers.
func (c *ranked) addConstants() {
	for i := range c.scores.Parts {
		if p := &c.scores.Parts[i]; p.Constant > 0 {
			for j := range c.best {
				c.best[j].score += p.Constant
			}
		}
	}
}

// hits is a heap of documents, the best on top.
type hits []hit

func (h hits) Len() int           { return len(h) }
func (h hits) Less(i, j int) bool { return h[i].score > h[j].score }
func (h hits) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *hits) Push(x any)        { *h = append(*h, x.(hit)) }

func (h *hits) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	*h = (*h)[:last]
	return one
}

// Next implements catalog.Candidates.
func (c *ranked) Next() ([]byte, error) {
	for len(c.equal) == 0 {
		if len(c.best) == 0 {
			return nil, nil
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
	last := len(c.equal) - 1
	next := c.equal[last]
	c.equal = c.equal[:last]
	return []byte(next), nil
}

// besideID is how many bytes an ID in a list takes besides its own.
const besideID = 16

// fill takes the documents of the next score.
func (c *ranked) fill() error {
	best := c.best[0].score
	after := c.scores.After
	skip := after != nil && best > after.Score
	c.release(c.named)
	c.named = 0
	var ordinals []uint64
	for len(c.best) > 0 && c.best[0].score == best {
		switch h := heap.Pop(&c.best).(hit); {
		case skip:
		case h.ordinal&ofTail != 0:
			c.equal = append(c.equal, c.tail[h.ordinal&^ofTail].folded)
		default:
			ordinals = append(ordinals, h.ordinal)
		}
	}
	slices.Sort(ordinals)
	for _, ordinal := range ordinals {
		folded, err := c.id(ordinal)
		if err != nil {
			return err
		}
		if folded != "" {
			c.equal = append(c.equal, folded)
			size := len(folded) + besideID
			c.named += size
			if err := c.hold(size); err != nil {
				return err
			}
		}
	}
	if after != nil && best == after.Score {
		c.equal = slices.DeleteFunc(c.equal, func(id string) bool { return id >= after.ID })
	}
	slices.SortFunc(c.equal, strings.Compare)
	return nil
}

// id returns the folded ID of the document of an ordinal, "" if it has changed since.
func (c *ranked) id(ordinal uint64) (string, error) {
	key := c.k.ordinalKey(keySettled, ordinal)
	if !c.it.SeekGE(key) || string(c.it.Key()) != string(key) {
		return "", c.it.Error()
	}
	s, err := c.k.settledAt(c.it.Value())
	return string(s.folded), err
}

// Close implements catalog.Candidates.
func (c *ranked) Close() error { return c.close(c.it) }
