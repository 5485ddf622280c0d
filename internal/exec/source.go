package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/internal/tally"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// scanSource yields the documents of a scan.
type scanSource struct {
	r     *Run
	w     *docs.Cursor
	want  docs.Filter
	begun bool   // lanes were asked for: see scanRun.next
	lanes *lanes // nil for none
}

func (s *scanSource) next(ctx context.Context, want docs.Filter) (*docs.Document, error) {
	s.want = want
	return s.w.Next(ctx)
}

// filter is the docs.Filter of the scan.
func (s *scanSource) filter(folded []byte, h *metadata.Header, body []byte) bool {
	s.r.stats.documents++
	return s.want(folded, h, body)
}

func (s *scanSource) close() error { return s.w.Release(errs.ErrClosed) }

// idSource yields the documents of a list of IDs.
type idSource struct {
	r   *Run
	ids []string
}

func (s *idSource) next(ctx context.Context, want docs.Filter) (*docs.Document, error) {
	for len(s.ids) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		folded := s.ids[0]
		s.ids = s.ids[1:]
		doc, err := s.r.fetch(folded, func(id []byte, h *metadata.Header, body []byte) bool {
			return (s.r.q.From == "" || docs.SameCollection(h.Collection, format.CollectionKey(s.r.q.From))) && want(id, h, body)
		})
		if err == errs.ErrNotFound {
			continue
		}
		if doc != nil || err != nil {
			return doc, err
		}
	}
	return nil, nil
}

func (s *idSource) close() error { return nil }

// fetch returns the document with an ID if want accepts it, nil if not, and
// errs.ErrNotFound if there is none.
func (r *Run) fetch(folded string, want docs.Filter) (*docs.Document, error) {
	r.key = format.DocumentKey(r.key[:0], folded)
	return r.fetchKey(want)
}

// fetchKey is fetch for the document at r.key.
func (r *Run) fetchKey(want docs.Filter) (*docs.Document, error) {
	value, closer, err := r.snapshot.Get(r.key)
	if err == storage.ErrNotFound {
		return nil, errs.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	doc, err := r.answer(format.DocumentID(r.key), value, want)
	return doc, errs.First(err, closer.Close())
}

// answer returns a copy of the document in value if want accepts it, and nil if not. If want
// is nil, each document is accepted.
func (r *Run) answer(folded, value []byte, want docs.Filter) (*docs.Document, error) {
	if want != nil {
		body, err := r.header.Decode(value)
		if err != nil {
			return nil, fmt.Errorf("document %q: %w", folded, err)
		}
		r.stats.documents++
		if !want(folded, &r.header, body) {
			return nil, nil
		}
		return r.docs.CopyDocument(folded, value)
	}
	doc, err := r.docs.CopyDocument(folded, value)
	if err == nil {
		r.stats.documents++
		r.pace.Spend(len(value))
	}
	return doc, err
}

// indexSource yields the documents in the key ranges of one or several ordered indexes, and then
// those that indexes of other kinds answer.
type indexSource struct {
	lookups
	keyWalk
	answers   []*catalog.Answer   // to come
	offered   catalog.Candidates  // of the first of them; nil until it is open
	seen      map[string]struct{} // documents yielded, where one may come twice
	used      int                 // bytes of seen
	told      string              // what candidates have said of themselves: see catalog.Telling
	bounded   []byte              // the key that bound was called with last
	intersect map[string]struct{} // if not nil, only these can be answers
	id        []byte              // what nextID returned
}

// keyWalk walks through ranges of keys, one after the other, in the direction of the
// plan.
type keyWalk struct {
	ranges []sourceRange    // to come
	it     storage.Iterator // over the first of them; nil until it is open
	steps  int              // keys examined
}

// lookups fetches the documents of candidates, many together.
type lookups struct {
	r     *Run
	batch []candidate      // fetched together, to be yielded
	chunk int              // how many were fetched together last
	ended bool             // there are no more candidates
	docs  storage.Iterator // over documents; nil until needed

	// Memory of the batch, used again by the next one.
	candidates []candidate
	order      []int
	ids        []byte
}

// candidates yields the IDs of documents that can be answers.
type candidates interface {
	// nextID returns the folded ID of the next candidate, nil at the end. It is valid
	// until the next call.
	nextID(ctx context.Context) ([]byte, error)
	// fromEntry makes the document of the candidate of which nextID has returned the ID,
	// nil if want does not accept it. It returns false if the document must be read.
	fromEntry(id []byte, want docs.Filter) (doc *docs.Document, covered bool)
	// broken returns the error for a candidate whose document cannot be read.
	broken(id string, err error) error
}

// sourceRange is one range of one index, or of changes.
type sourceRange struct {
	ix    *catalog.Index // nil for changes
	cover *plan.Cover    // nil if documents must be read
	plan.KeyRange
}

// openIndexes opens the indexes of the plan.
func (r *Run) openIndexes(ctx context.Context) (source, error) {
	s := &indexSource{lookups: lookups{r: r}}
	for i, a := range r.plan.Access {
		var c *plan.Cover
		if r.covers != nil {
			c = r.covers[i]
		}
		s.add(a, c)
		if len(r.plan.Access) > 1 || a.MayRepeat() {
			s.seen = make(map[string]struct{})
		}
	}
	if r.plan.Ordered && r.options.After != nil {
		s.startAfter()
	}
	if r.plan.Intersect == nil {
		return s, nil
	}

	// The IDs of the smaller path, in memory: candidates of the other must be among them.
	other := &indexSource{lookups: lookups{r: r}}
	other.add(r.plan.Intersect, nil)
	var err error
	s.intersect, err = other.collect(ctx)
	return s, err
}

// add adds a path.
func (s *indexSource) add(a *plan.Path, c *plan.Cover) {
	if a.Answer != nil {
		s.answers = append(s.answers, a.Answer)
	}
	for _, kr := range a.Ranges {
		s.ranges = append(s.ranges, sourceRange{a.Index, c, kr})
	}
}

// startAfter leaves out the entries up to a cursor.
func (s *indexSource) startAfter() {
	if len(s.ranges) == 0 {
		return // the condition is never true, or another kind answers: Run.isAfter decides then
	}
	r := &s.ranges[0] // an ordered plan has no more than one
	bound := r.boundParts(s.r.plan.Access[0].Equal)
	values := append(bytes.Clone(bound), s.r.indexKey(s.r.options.After)...)
	e := catalog.Entry{Index: r.ix, Values: values[5:]}
	if e.Unique = r.ix.IsUnique(e.Values); e.Unique && s.r.q.OrderBy[0].Field.Meta == query.MetaID {
		return // its only entry has no ID in its key
	}
	key := e.AppendKey(nil, s.r.options.After.ID)
	if s.r.plan.Reverse {
		if bytes.Compare(key, r.Hi) < 0 || r.Hi == nil {
			r.Hi = key
		}
		return
	}
	if key = append(key, 0); bytes.Compare(key, r.Lo) > 0 {
		r.Lo = key
	}
}

// boundParts returns what a range's keys begin with: the index, and n parts.
func (r *sourceRange) boundParts(n int) []byte {
	rest := r.Lo[5:]
	for range n {
		rest, _ = query.SkipKey(rest)
	}
	return r.Lo[:len(r.Lo)-len(rest)]
}

// nextID moves to the next entry that leads to a candidate, and returns the
// candidate's folded ID, nil at the end. It is valid until the next call.
func (s *indexSource) nextID(ctx context.Context) ([]byte, error) {
	for {
		ok, err := s.advance(ctx, s.r)
		if err != nil {
			return nil, err
		}
		if ok {
			s.id, err = s.ranges[0].ix.AppendDecodedID(s.id[:0], s.it.Key(), s.it.Value())
		} else {
			s.id, err = s.nextOffered()
		}
		if err != nil || s.id == nil {
			return nil, err
		}
		if s.intersect != nil {
			if _, found := s.intersect[string(s.id)]; !found {
				continue
			}
		}
		if s.seen == nil || ok && s.isOnly() {
			return s.id, nil
		}
		if _, found := s.seen[string(s.id)]; found {
			continue
		}
		s.seen[string(s.id)] = struct{}{}
		if s.used += len(s.id) + 48; s.used > s.r.env.MaxQueryBytes {
			return nil, fmt.Errorf("%w: %w (Options.MaxQueryBytes): use a limit", errs.ErrQuery, &query.LimitError{What: "bytes of IDs of answers", Limit: s.r.env.MaxQueryBytes, Actual: s.used})
		}
		if err := s.r.payer.Pay(len(s.id) + 48); err != nil {
			return nil, err
		}
		return s.id, nil
	}
}

// isOnly reports whether the entry under the iterator is the only one of its document in the plan: a covering
// entry has all values of its document.
func (s *indexSource) isOnly() bool {
	return len(s.r.plan.Access) == 1 && !plan.NotCovering(s.it.Value())
}

// nextOffered returns the folded ID of the next candidate of the indexes that are not ordered, nil at
// the end.
func (s *indexSource) nextOffered() (id []byte, err error) {
	for len(s.answers) > 0 {
		if s.offered == nil {
			if err := s.offer(); err != nil {
				return nil, err
			}
		}
		x, counts := s.offered.(catalog.Examiner)
		before := int64(0)
		if counts {
			before = x.Examined()
		}
		id, err = s.offered.Next()
		if counts {
			s.r.stats.keys += x.Examined() - before
		} else if id != nil || err != nil {
			s.r.stats.keys++
		}
		if id != nil || err != nil {
			return id, err
		}
		s.answers = s.answers[1:]
		if err := s.closeOffered(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// offer opens the candidates of the next answer. An answer that fails has closed what it had opened, and there are none.
func (s *indexSource) offer() error {
	offered, err := s.answers[0].Open(&s.r.means)
	if err == nil {
		s.offered = offered
	}
	return err
}

func (s *indexSource) closeOffered() error {
	if s.offered == nil {
		return nil
	}
	offered := s.offered
	s.offered = nil
	if t, is := offered.(catalog.Telling); is {
		s.told = t.Tell()
	}
	return offered.Close()
}

// bound tells the candidates that all answers are found that are wanted, of which the last has this key, made of a distance.
func (s *indexSource) bound(key []byte) error {
	b, is := s.offered.(catalog.Bounded)
	if !is || bytes.Equal(key, s.bounded) { // most candidates come no nearer
		return nil
	}
	s.bounded = append(s.bounded[:0], key...)
	v, _ := query.DecodeKey(key)
	distance, err := strconv.ParseFloat(string(v.Raw()), 64)
	if err != nil {
		return fmt.Errorf("a distance %.60q: %w", v.Raw(), err)
	}
	b.Bound(distance)
	return nil
}

// advance moves to the next key.
func (w *keyWalk) advance(ctx context.Context, r *Run) (bool, error) {
	if w.steps++; w.steps%keysPerCheck == 0 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	for len(w.ranges) > 0 {
		ok := false
		switch kr := &w.ranges[0]; {
		case w.it != nil && r.plan.Reverse:
			ok = w.it.Prev()
		case w.it != nil:
			ok = w.it.Next()
		case kr.Hi == nil || bytes.Compare(kr.Lo, kr.Hi) < 0:
			var err error
			if w.it, err = r.snapshot.Iterate(kr.Lo, kr.Hi); err != nil {
				return false, err
			}
			if r.plan.Reverse {
				ok = w.it.Last()
			} else {
				ok = w.it.First()
			}
		}
		if ok {
			r.stats.keys++
			return true, nil
		}
		err := w.stop()
		w.ranges = w.ranges[1:]
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// stop closes the iterator.
func (w *keyWalk) stop() error {
	if w.it == nil {
		return nil
	}
	err := errs.First(w.it.Error(), w.it.Close())
	w.it = nil
	return err
}

func (s *indexSource) next(ctx context.Context, want docs.Filter) (*docs.Document, error) {
	return s.nextOf(ctx, s, want)
}

// nextOf returns the next document of candidates that want accepts, nil at the end.
func (s *lookups) nextOf(ctx context.Context, from candidates, want docs.Filter) (*docs.Document, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(s.batch) == 0 {
			if s.ended {
				return nil, nil
			}
			if err := s.fill(ctx, from, want); err != nil || len(s.batch) == 0 {
				return nil, err
			}
		}
		next := s.batch[0]
		s.batch = s.batch[1:]
		if next.later {
			var err error
			s.r.key = format.AppendDocumentKey(s.r.key[:0], next.id)
			if next.doc, err = s.r.fetchKey(want); err != nil {
				return nil, from.broken(string(next.id), err)
			}
		}
		if next.doc != nil {
			return next.doc, nil
		}
	}
}

// candidate is a document that an index entry points to.
type candidate struct {
	id    []byte         // folded
	doc   *docs.Document // nil if it is not accepted
	later bool           // it is fetched when it is its turn
}

// keysPerCheck is how many entries are examined between two checks of the context.
const keysPerCheck = 128

// Bounds of fetching together.
const (
	firstBatch = 16
	maxBatch   = 1024
	batchBytes = 4 << 20 // documents beyond are fetched one by one
	bytesOfID  = 24      // for which there is room at first
)

// fill fetches the next documents together, sorted by key: one iterator is faster
// than as many look-ups, above all for adjacent documents.
func (s *lookups) fill(ctx context.Context, from candidates, want docs.Filter) error {
	if err := s.r.weigh(); err != nil {
		return err
	}
	if err := s.r.spend(); err != nil {
		return err
	}
	s.chunk = min(max(firstBatch, 2*s.chunk), maxBatch, s.r.need())
	if cap(s.candidates) < s.chunk {
		s.candidates, s.order = make([]candidate, 0, s.chunk), make([]int, 0, s.chunk)
		s.ids = make([]byte, 0, bytesOfID*s.chunk)
	}
	clear(s.candidates[:cap(s.candidates)]) // the documents are not kept for the next batch
	s.batch, s.ids = s.candidates[:0], s.ids[:0]
	order := s.order[:0] // of the candidates whose documents must be read
	for len(s.batch) < s.chunk {
		id, err := from.nextID(ctx)
		if err != nil {
			return err
		}
		if id == nil {
			s.ended = true
			break
		}
		s.r.unweighed.meet(id)
		doc, covered := from.fromEntry(id, want)
		switch {
		case !covered:
			order = append(order, len(s.batch))
			from := len(s.ids)
			s.ids = append(s.ids, id...)
			s.batch = append(s.batch, candidate{id: s.ids[from:]})
		case doc != nil:
			s.batch = append(s.batch, candidate{doc: doc})
		}
	}
	s.r.instead.looked += int64(len(order))
	if len(order) == 1 {
		s.batch[order[0]].later = true // a look-up is faster than an iterator
		return nil
	}

	// Read in the order of keys, and yield in the order of the index.
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(s.batch[a].id, s.batch[b].id) })
	if many, is := s.r.snapshot.(storage.ManyGetter); is {
		return s.getMany(many, order, from, want)
	}
	fetched := 0
	for _, i := range order {
		c := &s.batch[i]
		if fetched > batchBytes {
			c.later = true
			continue
		}
		var err error
		if c.doc, err = s.seek(c.id, want); err != nil {
			return from.broken(string(c.id), err)
		}
		if c.doc != nil {
			fetched += len(c.doc.JSON())
		}
	}
	return nil
}

// errEnough ends a GetMany.
var errEnough = errors.New("enough")

// getMany fetches the documents of the candidates in order by one call of a snapshot that is far away, as far as batchBytes allow.
func (s *lookups) getMany(many storage.ManyGetter, order []int, from candidates, want docs.Filter) error {
	keys := make([][]byte, len(order))
	for n, i := range order {
		keys[n] = format.AppendDocumentKey(nil, s.batch[i].id)
	}
	seen, fetched := make([]bool, len(order)), 0
	err := many.GetMany(keys, func(n int, value []byte) error {
		if fetched > batchBytes {
			return errEnough
		}
		seen[n] = true
		doc, err := s.r.answer(format.DocumentID(keys[n]), value, want)
		if err != nil || doc == nil {
			return err
		}
		s.batch[order[n]].doc = doc
		fetched += len(doc.JSON())
		return nil
	})
	if err != nil && err != errEnough {
		return err
	}
	for n, i := range order {
		switch c := &s.batch[i]; {
		case seen[n]:
		case err == errEnough:
			c.later = true
		default:
			return from.broken(string(c.id), errs.ErrNotFound)
		}
	}
	return nil
}

// fromEntry implements candidates.
func (s *indexSource) fromEntry(id []byte, want docs.Filter) (doc *docs.Document, covered bool) {
	if len(s.ranges) == 0 {
		return nil, false // an index of another kind has answered
	}
	c := s.ranges[0].cover
	if c == nil {
		return nil, false
	}
	h, body, covered := c.Document(s.it.Key(), s.it.Value(), id)
	if !covered {
		s.r.stats.uncovered++
	}
	if !covered || want != nil && !want(id, h, body) {
		return nil, covered
	}
	header := metadata.Header{ID: bytes.Clone(h.ID)}
	found := docs.Make(s.r.env.Origins, string(id), header, bytes.Clone(body))
	return &found, true
}

// seek is Run.fetch with a shared iterator.
func (s *lookups) seek(folded []byte, want docs.Filter) (*docs.Document, error) {
	if s.docs == nil {
		var err error
		if s.docs, err = s.r.snapshot.Iterate([]byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1}); err != nil {
			return nil, err
		}
	}
	key := format.AppendDocumentKey(s.r.key[:0], folded)
	s.r.key = key
	if !storage.SeekExact(s.docs, key) {
		return nil, errs.First(s.docs.Error(), errs.ErrNotFound)
	}
	return s.r.answer(format.DocumentID(key), s.docs.Value(), want)
}

// broken returns the error for an entry whose document cannot be read.
func (s *indexSource) broken(id string, err error) error {
	if err == errs.ErrNotFound {
		return fmt.Errorf("an index leads to %q, which is not there: %w", id, errs.ErrCorrupt)
	}
	return err
}

// need is how many documents the remaining answers need at least, if answers are
// streamed; otherwise it is unlimited.
func (r *Run) need() int {
	streamed := r.distinct == nil && !IsGrouped(r.q) && (len(r.q.OrderBy) == 0 || r.plan.Ordered)
	if !streamed || r.left < 0 {
		return maxBatch
	}
	return max(1, r.skip+r.left)
}

// countEntries counts the documents that the entries point to.
func (s *indexSource) countEntries(ctx context.Context) (n int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s.seen == nil && s.intersect == nil && len(s.ranges) == 0 && len(s.answers) == 1 && s.offered == nil {
		if n, counted, err := s.countOffered(); counted || err != nil {
			return n, err
		}
	}
	if s.seen != nil || len(s.answers) > 0 {
		for {
			id, err := s.nextID(ctx)
			if err != nil || id == nil {
				return n, err
			}
			n++
		}
	}
	for _, kr := range s.ranges {
		keys, err := tally.Keys(ctx, s.r.snapshot, kr.Lo, kr.Hi)
		if err != nil {
			return n, err
		}
		s.r.stats.keys += keys
		n += keys
	}
	s.ranges = nil
	return n, nil
}

// countOffered counts the candidates of the only index, which is not ordered. It returns false, and has begun to read, if they are to be
// counted one by one.
func (s *indexSource) countOffered() (n int64, counted bool, err error) {
	if err := s.offer(); err != nil {
		return 0, false, err
	}
	all, is := s.offered.(catalog.Counted)
	if !is {
		return 0, false, nil
	}
	n, keys, err := all.Count()
	s.r.stats.keys += keys
	return n, true, err
}

// extreme returns the first or the last value of a field in the range of the
// source, in which the fields before it have one value each. It is Missing if no
// document has one.
func (s *indexSource) extreme(field int, first bool) (_ query.Value, err error) {
	r := s.ranges[0]
	if r.Hi != nil && bytes.Compare(r.Lo, r.Hi) >= 0 {
		return query.Value{}, nil
	}
	it, err := s.r.snapshot.Iterate(r.Lo, r.Hi)
	if err != nil {
		return query.Value{}, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	descending := r.ix.Fields[field].Descending
	missing, _ := query.AppendKey(bytes.Clone(r.boundParts(field)), query.Value{}, descending)
	var ok bool
	switch { // entries of missing values are at one end
	case first && !descending:
		if ok = it.First(); ok && bytes.HasPrefix(it.Key(), missing) {
			ok = it.SeekGE(format.PrefixEnd(missing))
			s.r.stats.keys++
		}
	case first:
		ok = it.First()
	case descending:
		if ok = it.Last(); ok && bytes.HasPrefix(it.Key(), missing) {
			ok = it.SeekLT(missing)
			s.r.stats.keys++
		}
	default:
		ok = it.Last()
	}
	if !ok {
		return query.Value{}, it.Error()
	}
	s.r.stats.keys++
	v, _ := query.DecodeKey(it.Key()[len(r.boundParts(field)):])
	return v, nil
}

// collect returns all IDs of the source.
func (s *indexSource) collect(ctx context.Context) (_ map[string]struct{}, err error) {
	defer func() { err = errs.First(err, s.close()) }()
	ids := make(map[string]struct{})
	for {
		id, err := s.nextID(ctx)
		if err != nil || id == nil {
			return ids, err
		}
		ids[string(id)] = struct{}{}
	}
}

func (s *indexSource) close() error {
	err := errs.First(s.stop(), s.closeOffered())
	s.ranges, s.answers = nil, nil
	return errs.First(err, s.lookups.close())
}

func (s *lookups) close() error {
	s.batch, s.candidates = nil, nil
	if s.docs == nil {
		return nil
	}
	err := s.docs.Close()
	s.docs = nil
	return err
}
