package fulltext

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Analyzer implements catalog.Vocabulary.
func (k *keeper) Analyzer(field int) *text.Analyzer { return k.analyzers[field] }

// terms are the terms of a field: those of the blocks, and those of the documents of the tail, which have been counted.
type terms struct {
	k     *keeper
	r     storage.Reader
	o     *catalog.TermOptions
	field int
	it    storage.Iterator // over the blocks of the field
	end   []byte           // behind them
	hides []uint64         // ordinals that do not count, ascending
	tail  map[string]int64 // in how many documents of the tail
	order []string         // the terms of the tail, ascending
	last  string           // terms behind it are not in tail; "" for none

	term    []byte // the present one
	prefix  []byte // of the keys of its blocks; nil for a term of the tail only
	heads   []occurrence
	keys    int64
	scratch []byte
}

// Terms implements catalog.Vocabulary.
func (k *keeper) Terms(r storage.Reader, o *catalog.TermOptions) (catalog.Terms, error) {
	if err := k.checkState(r); err != nil {
		return nil, err
	}
	t := &terms{k: k, r: r, o: o, field: o.Field, tail: make(map[string]int64)}
	if err := t.hide(); err != nil {
		return nil, err
	}
	if err := t.count(); err != nil {
		return nil, err
	}
	t.order = slices.Sorted(maps.Keys(t.tail))
	lo := append(k.key(keyBlock), byte(t.field))
	t.end = format.PrefixEnd(lo)
	var err error
	t.it, err = r.Iterate(lo, t.end)
	return t, err
}

// hide finds the ordinals that lead nowhere, and those of documents that do not count.
func (t *terms) hide() (err error) {
	if t.hides, err = t.k.dead(t.r); err != nil {
		return err
	}
	t.keys += int64(len(t.hides))
	for folded := range t.o.Changes.Hidden {
		value, err := catalog.ValueAt(t.r, t.k.documentKey(keyOf, folded))
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		of, err := decodeOf(value)
		if err != nil {
			return err
		}
		if of.ordinal > 0 {
			t.hides = append(t.hides, of.ordinal)
		}
	}
	slices.Sort(t.hides)
	return nil
}

// count counts the terms of the documents that are in no block.
func (t *terms) count() error {
	lo := t.k.key(keyTail)
	it, err := t.r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return err
	}
	own := make(map[string]bool) // terms of one document
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		t.keys++
		folded := tailID(it.Key())
		if t.o.Changes.Hidden[string(folded)] {
			continue
		}
		err = errs.First(t.document(folded, it.Value(), own), t.add(own))
	}
	if err = errs.First(errs.First(err, it.Error()), it.Close()); err != nil {
		return err
	}
	reader := query.NewReader([]query.Field{t.k.ix.Fields[t.field].Query()})
	for _, body := range t.o.Changes.Bodies {
		reader.Reset(query.Doc{Body: body})
		reader.Each(0, func(v query.Value) bool {
			if v.Kind() == query.KindText {
				t.read(v.Text(), own)
			}
			return t.o.Spend(1)
		})
		if err := t.add(own); err != nil {
			return err
		}
	}
	return nil
}

// document adds the terms of a document of the tail that are wanted.
func (t *terms) document(folded, texts []byte, own map[string]bool) error {
	words, err := t.k.wordsIn(folded, texts)
	if err != nil {
		return err
	}
	if words == nil {
		return t.k.eachText(texts, func(field int, s string) {
			if field == t.field {
				t.read(s, own)
			}
		})
	}
	w := &words.fields[t.field]
	for i := range w.ends {
		term, _ := w.term(i)
		t.want(term, own)
	}
	t.o.Spend(len(w.names)) // t.o.Err says if it ends
	return nil
}

// read adds the terms of a text that are wanted.
func (t *terms) read(s string, own map[string]bool) {
	t.k.analyzers[t.field].Each(s, func(token text.Token) bool {
		t.want(token.Term, own)
		return t.o.Spend(1 + token.End - token.Start)
	})
}

// want adds a term if it is wanted.
func (t *terms) want(term []byte, own map[string]bool) {
	if (t.last == "" || string(term) <= t.last) && t.o.Wants(term) {
		own[string(term)] = true
	}
}

// add counts a document with some terms, and removes these. Of the terms of the tail only the first ones are kept if no more are asked for.
func (t *terms) add(own map[string]bool) error {
	for term := range own {
		if t.last == "" || term <= t.last {
			t.tail[term]++
		}
	}
	clear(own)
	if limit := t.o.First; limit > 0 && len(t.tail) > 2*limit {
		sorted := slices.Sorted(maps.Keys(t.tail))
		t.last = sorted[limit-1]
		for _, term := range sorted[limit:] {
			delete(t.tail, term)
		}
	}
	return t.o.Err()
}

// Seek implements catalog.Terms.
func (t *terms) Seek(from []byte) ([]byte, error) {
	t.keys++
	t.prefix, t.term = nil, t.term[:0]
	found := false
	if t.it.SeekGE(t.k.prefixKey(t.field, string(from))) && bytes.Compare(t.it.Key(), t.end) < 0 {
		_, term, _, valid := cutBlockKey(t.it.Key())
		if !valid {
			return nil, errs.ErrCorrupt
		}
		found, t.term = true, append(t.term, term...)
		t.prefix = append(t.scratch[:0], t.it.Key()[:len(t.it.Key())-8]...)
		t.scratch = t.prefix
	}
	if at, _ := slices.BinarySearch(t.order, string(from)); at < len(t.order) && (!found || t.order[at] < string(t.term)) {
		found, t.prefix, t.term = true, nil, append(t.term[:0], t.order[at]...)
	}
	if err := errs.First(t.it.Error(), t.o.Err()); err != nil || !found {
		return nil, err
	}
	return t.term, nil
}

// Documents implements catalog.Terms.
func (t *terms) Documents() (n int64, err error) {
	n = t.tail[string(t.term)]
	if t.prefix == nil {
		return n, nil
	}
	hides := t.hides
	for ok := t.it.Valid(); ok && bytes.HasPrefix(t.it.Key(), t.prefix); ok = t.it.Next() {
		t.keys++
		if len(t.it.Key()) != len(t.prefix)+8 {
			return 0, errs.ErrCorrupt
		}
		first := binary.BigEndian.Uint64(t.it.Key()[len(t.prefix):])
		if t.heads, _, err = decodeHeads(t.heads[:0], first, t.it.Value()); err != nil {
			return 0, err
		}
		n += int64(len(t.heads))
		for i := range t.heads {
			if len(hides) == 0 {
				break
			}
			at, is := slices.BinarySearch(hides, t.heads[i].ordinal)
			if hides = hides[at:]; is {
				n--
			}
		}
		if !t.o.Spend(len(t.it.Value())) {
			break
		}
	}
	return n, errs.First(t.it.Error(), t.o.Err())
}

// Keys implements catalog.Terms.
func (t *terms) Keys() int64 { return t.keys }

// Close implements catalog.Terms.
func (t *terms) Close() error { return t.it.Close() }
