package fulltext

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Answer implements catalog.Answerer: the index answers searches by the analyzers of its fields, also where and and or join them. A search that
// only leaves out documents is not one, as documents without texts are not in the index.
func (k *keeper) Answer(q *catalog.Question) *catalog.Answer {
	scores := q.Scores
	if scores == nil {
		scores = score.Of(q.Conditions)
	}
	a := &catalog.Answer{Text: "words", Ordered: q.Scores != nil && bestFirst(q.Orders)}
	var parts []*score.Part
	for i := range scores.Parts {
		p := &scores.Parts[i]
		if p.Kind == score.Other {
			continue
		}
		if !k.decides(scores, p) {
			a.Ordered = false // it counts, too
			continue
		}
		parts = append(parts, p)
		a.Used = append(a.Used, i)
		a.Exact = append(a.Exact, i)
	}
	if len(parts) == 0 {
		return nil
	}
	a.Open = func(m catalog.Means) (catalog.Candidates, error) { return k.stream(m, scores, parts) }
	if a.Ordered {
		a.Text = "words, the best first"
		a.Open = func(m catalog.Means) (catalog.Candidates, error) { return k.rank(m, scores, parts) }
	}
	return a
}

// bestFirst reports whether answers are wanted in the order of their scores.
func bestFirst(orders []query.Order) bool {
	return len(orders) == 1 && orders[0].Field.Meta == query.MetaScore && orders[0].Column == "" && orders[0].Descending
}

// decides reports whether the index decides a part.
func (k *keeper) decides(s *score.Scores, p *score.Part) bool {
	switch p.Kind {
	case score.Search:
		return k.fieldOf(&s.Searches[p.Search]) >= 0
	case score.And, score.Or:
		return len(p.Parts) > 0 && !slices.ContainsFunc(p.Parts, func(p score.Part) bool { return !k.decides(s, &p) })
	}
	return false
}

// fieldOf returns the field in which the index has the words of a search, or -1.
func (k *keeper) fieldOf(w *score.Words) int {
	if w.Field.Meta != query.MetaNone || w.Field.Date != query.DateNone {
		return -1
	}
	path := w.Field.Path.String()
	for i, f := range k.ix.Fields {
		if k.analyzers[i] == w.Analyzer && f.Query().Path.String() == path {
			return i
		}
	}
	return -1
}

// lookup is what is looked up for a query.
type lookup struct {
	k        *keeper
	m        catalog.Means
	scores   *score.Scores
	searches []*search        // by their places in scores; nil for those that are not looked up
	blocks   storage.Iterator // until closeBlocks
	held     int              // bytes
}

// search is a search that is looked up.
type search struct {
	*score.Words
	field   int
	clauses [][]occurrence // in the blocks; nil if they are not in memory
	words   *text.Document // of the texts that are looked at
	ranking *text.Ranking  // nil for no scores
}

// look returns a lookup of the searches of some parts. The caller must call closeBlocks.
func (k *keeper) look(m catalog.Means, scores *score.Scores, parts []*score.Part) (l *lookup, err error) {
	if err := k.checkState(m); err != nil {
		return nil, err
	}
	l = &lookup{k: k, m: m, scores: scores, searches: make([]*search, len(scores.Searches))}
	for _, p := range parts {
		l.add(p)
	}
	lo := k.key(keyBlock)
	l.blocks, err = m.Iterate(lo, format.PrefixEnd(lo))
	return l, err
}

func (l *lookup) closeBlocks() error { return errs.First(l.blocks.Error(), l.blocks.Close()) }

// hold counts bytes that are in memory, or, if they are negative, no longer are.
func (l *lookup) hold(bytes int) error {
	l.held += bytes
	return l.m.Hold(bytes)
}

// release counts bytes that are not in memory any more.
func (l *lookup) release(bytes int) { _ = l.hold(-bytes) }

// close closes the last iterator of candidates, and what they have found is not in memory any more.
func (l *lookup) close(it storage.Iterator) error {
	l.release(l.held)
	return it.Close()
}

// add adds the searches of a part.
func (l *lookup) add(p *score.Part) {
	if p.Kind == score.Search {
		w := &l.scores.Searches[p.Search]
		l.searches[p.Search] = &search{Words: w, field: l.k.fieldOf(w), words: text.NewDocument(w.Analyzer, w.Parsed)}
	}
	for i := range p.Parts {
		l.add(&p.Parts[i])
	}
}

// read reads where the clauses of a search are in the blocks, unless that is in memory.
func (l *lookup) read(s *search) error {
	if s.clauses != nil {
		return nil
	}
	f := finder{lookup: l}
	for c := range s.Parsed.Clauses {
		found, err := f.clause(s.field, &s.Parsed.Clauses[c])
		if err != nil {
			return err
		}
		s.clauses = append(s.clauses, found)
	}
	return l.blocks.Error()
}

// readAll is read of all searches.
func (l *lookup) readAll() error {
	for _, s := range l.searches {
		if s != nil {
			if err := l.read(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget forgets where the clauses of a search are.
func (l *lookup) forget(s *search) {
	for _, list := range s.clauses {
		l.release(len(list) * listed)
	}
	s.clauses = nil
}

// listed is how many bytes an element of a list takes: an occurrence, or a hit.
const listed = 16

// all returns the documents in the blocks for which all parts are true.
func (l *lookup) all(parts []*score.Part) (found []hit, err error) {
	for i, p := range parts {
		hits, err := l.find(p)
		if err != nil {
			return nil, err
		}
		found = l.joined(i, found, hits, both)
	}
	return found, nil
}

// find returns the documents in the blocks for which a part is true. One search after the other is in memory, unless all are.
func (l *lookup) find(p *score.Part) (found []hit, err error) {
	if p.Kind == score.Search {
		s := l.searches[p.Search]
		if err := l.read(s); err != nil {
			return nil, err
		}
		found = s.find(p.Boost)
		err = l.hold(len(found) * listed)
		l.forget(s)
		return found, err
	}
	join := either
	if p.Kind == score.And {
		join = both
	}
	for i := range p.Parts {
		hits, err := l.find(&p.Parts[i])
		if err != nil {
			return nil, err
		}
		found = l.joined(i, found, hits, join)
	}
	return found, nil
}

// joined joins what the part with a number finds to what those before it find.
func (l *lookup) joined(number int, found, hits []hit, join func(a, b []hit) []hit) []hit {
	if number == 0 {
		return hits
	}
	before := len(found) + len(hits)
	found = join(found, hits)
	l.release((before - len(found)) * listed)
	return found
}

// find returns the documents in the blocks that a search finds.
func (s *search) find(boost float64) (found []hit) {
	required := s.required()
	if required != nil {
		found = scoring{}.hits(required)
	}
	for c, list := range s.clauses {
		switch by := (scoring{s.ranking, c}); {
		case s.Parsed.Clauses[c].Occur == text.MustNot:
		case required != nil:
			by.add(found, list)
		case found == nil:
			found = by.hits(list)
		default:
			found = by.join(found, list)
		}
	}
	for c, list := range s.clauses {
		if s.Parsed.Clauses[c].Occur == text.MustNot {
			found = drop(found, list)
		}
	}
	if s.ranking != nil && boost != 1 {
		for i := range found {
			found[i].score *= boost
		}
	}
	return found
}

// required returns the documents that have all clauses that must be there, nil if none must.
func (s *search) required() (common []occurrence) {
	var must [][]occurrence
	for c, list := range s.clauses {
		if occur := s.Parsed.Clauses[c].Occur; occur == text.Must || s.Parsed.All && occur == text.Should {
			must = append(must, list)
		}
	}
	if len(must) == 0 {
		return nil
	}
	slices.SortStableFunc(must, func(a, b []occurrence) int { return len(a) - len(b) })
	for i, list := range must {
		if i == 0 {
			common = append([]occurrence{}, list...)
		} else {
			common = shared(common, list)
		}
	}
	return common
}

// counted is a document of the tail as searches see it.
type counted struct {
	folded  string
	counts  [][]int32 // by search and clause
	lengths []int     // by search
}

// count counts the words of a document of the tail.
func (l *lookup) count(folded, texts []byte, c *counted) error {
	for _, s := range l.searches {
		if s != nil {
			s.words.Reset()
		}
	}
	words, err := l.k.wordsIn(folded, texts)
	switch {
	case err != nil:
		return err
	case words != nil:
		for _, s := range l.searches {
			if s != nil {
				w := &words.fields[s.field]
				s.words.AddTerms(w.length, len(w.ends), w.term)
			}
		}
	default:
		err = l.k.eachText(texts, func(field int, text string) {
			for _, s := range l.searches {
				if s != nil && s.field == field {
					s.words.Add(text)
				}
			}
		})
	}
	if c.counts == nil {
		c.counts, c.lengths = make([][]int32, len(l.searches)), make([]int, len(l.searches))
	}
	for i, s := range l.searches {
		if s == nil {
			continue
		}
		c.counts[i], c.lengths[i] = c.counts[i][:0], s.words.Length
		for clause := range s.Parsed.Clauses {
			c.counts[i] = append(c.counts[i], int32(s.words.Count(clause)))
		}
	}
	return err
}

// clone returns a copy with the ID of the document.
func (c *counted) clone(folded []byte) counted {
	kept := counted{folded: string(folded), counts: make([][]int32, len(c.counts)), lengths: slices.Clone(c.lengths)}
	for i := range c.counts {
		kept.counts[i] = slices.Clone(c.counts[i])
	}
	return kept
}

// holds returns whether a part is true of a document of the tail, and what it counts.
func (l *lookup) holds(p *score.Part, c *counted) (sum float64, is bool) {
	return p.Score(func(p *score.Part) (sum float64, is bool) {
		s, counts := l.searches[p.Search], c.counts[p.Search]
		if !s.Parsed.Matches(func(clause int) int { return int(counts[clause]) }) {
			return 0, false
		}
		for clause, n := range counts {
			if s.ranking != nil {
				sum += s.ranking.Score(clause, int(n), text.ClassOf(c.lengths[p.Search]))
			}
		}
		return sum * p.Boost, true
	})
}

// allHold reports whether all parts are true of a document of the tail.
func (l *lookup) allHold(parts []*score.Part, c *counted) bool {
	for _, p := range parts {
		if _, is := l.holds(p, c); !is {
			return false
		}
	}
	return true
}

// tail returns an iterator over the tail.
func (l *lookup) tail() (storage.Iterator, error) {
	lo := l.k.key(keyTail)
	return l.m.Iterate(lo, format.PrefixEnd(lo))
}

// streamed are the documents in the blocks, and then those of the tail, in no order.
type streamed struct {
	*lookup
	parts []*score.Part
	found []hit // in the blocks
	it    storage.Iterator
	begun bool // the tail
	now   counted
}

// stream returns the documents for which all parts are true.
func (k *keeper) stream(m catalog.Means, scores *score.Scores, parts []*score.Part) (catalog.Candidates, error) {
	l, err := k.look(m, scores, parts)
	if err != nil {
		return nil, err
	}
	c := &streamed{lookup: l, parts: parts}
	c.found, err = l.all(parts)
	if err := errs.First(err, l.closeBlocks()); err != nil {
		return nil, err
	}
	if c.it, err = l.tail(); err != nil {
		return nil, err
	}
	return c, nil
}

// Next implements catalog.Candidates.
func (c *streamed) Next() ([]byte, error) {
	for len(c.found) > 0 {
		ordinal := c.found[0].ordinal
		c.found = c.found[1:]
		value, err := catalog.ValueAt(c.m, c.k.ordinalKey(keySettled, ordinal))
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue // the document has changed since
		}
		s, err := c.k.settledAt(value)
		return s.folded, err
	}
	for ok := c.step(); ok; ok = c.step() {
		folded := tailID(c.it.Key())
		if err := c.count(folded, c.it.Value(), &c.now); err != nil {
			return nil, err
		}
		if c.allHold(c.parts, &c.now) {
			return folded, nil
		}
	}
	return nil, c.it.Error()
}

// Count implements catalog.Counted: a document in the blocks counts unless it is dead.
func (c *streamed) Count() (n, keys int64, err error) {
	dead, err := c.k.dead(c.m)
	if err != nil {
		return 0, 0, err
	}
	n, keys = int64(len(c.found)), int64(len(c.found)+len(dead))
	for _, h := range c.found {
		if len(dead) == 0 {
			break
		}
		at, is := slices.BinarySearch(dead, h.ordinal)
		if dead = dead[at:]; is {
			n--
		}
	}
	for ok := c.step(); ok; ok = c.step() {
		keys++
		if err := c.count(tailID(c.it.Key()), c.it.Value(), &c.now); err != nil {
			return n, keys, err
		}
		if c.allHold(c.parts, &c.now) {
			n++
		}
	}
	return n, keys, c.it.Error()
}

// dead returns the ordinals that blocks may have and that lead nowhere, ascending.
func (k *keeper) dead(r storage.Reader) (dead []uint64, err error) {
	lo := k.key(keyDead)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Key()) != len(lo)+8 {
			err = fmt.Errorf("key %x of words: %w", it.Key(), errs.ErrCorrupt)
			break
		}
		dead = append(dead, binary.BigEndian.Uint64(it.Key()[len(lo):]))
	}
	return dead, errs.First(errs.First(err, it.Error()), it.Close())
}

func (c *streamed) step() bool {
	if !c.begun {
		c.begun = true
		return c.it.First()
	}
	return c.it.Next()
}

// Close implements catalog.Candidates.
func (c *streamed) Close() error { return c.close(c.it) }
