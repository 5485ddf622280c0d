package revisions

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Check checks every revision in a snapshot. It returns an error if one is missing, or if
// a record or a number contradicts another. For tests.
func Check(from storage.Reader) error {
	c := checker{from: from, counts: make(map[string]int64), seen: make(map[string]bool)}
	if err := c.histories(); err != nil {
		return err
	}
	if err := c.documents(); err != nil {
		return err
	}
	return c.rest()
}

type checker struct {
	from   storage.Reader
	counts map[string]int64 // by folded collection
	seen   map[string]bool  // IDs with keys under 'r'
}

func wrong(id, text string, args ...any) error {
	return fmt.Errorf("revisions of %q: %s: %w", id, fmt.Sprintf(text, args...), ErrContradiction)
}

// ErrContradiction is returned by Check for records that are well-formed but contradict
// one another.
var ErrContradiction = errors.New("revisions contradict their records")

// histories checks that the revisions of each document have numbers without gaps and
// rising etags.
func (c *checker) histories() (err error) {
	it, err := c.from.Iterate(format.HistoryBounds[0], format.HistoryBounds[1])
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; {
		key, _, err := format.SplitRevisionKey(it.Key())
		if err != nil {
			return err
		}
		id := string(key)
		c.seen[id] = true
		first, last, etag := uint64(0), uint64(0), uint64(0)
		deletion := false
		for ; ok; ok = it.Next() {
			key, number, err := format.SplitRevisionKey(it.Key())
			if err != nil {
				return err
			}
			if string(key) != id {
				break
			}
			if number == 0 {
				continue
			}
			s, err := decode(it.Value(), number)
			if err != nil {
				return err
			}
			if last > 0 && (number != last+1 || s.Header.Etag <= etag) {
				return wrong(id, "number %d with etag %d comes after number %d with etag %d", number, s.Header.Etag, last, etag)
			}
			if first == 0 {
				first = number
			}
			last, etag, deletion = number, s.Header.Etag, s.Deletion
			c.counts[format.CollectionKey(string(s.Header.Collection))]++
		}
		if err := it.Error(); err != nil { // it has shown a part of the history
			return err
		}
		if err := c.history(id, first, last, etag, deletion); err != nil {
			return err
		}
	}
	return it.Error()
}

// history compares the record of a document's history with its revisions.
func (c *checker) history(id string, first, last, etag uint64, deletion bool) error {
	s, err := stateOf(c.from, id)
	if err != nil {
		return err
	}
	if first == 0 && s.First <= s.Last || first > 0 && (s.First != first || s.Last != last) {
		return wrong(id, "there are %d to %d, and %d to %d are expected", first, last, s.First, s.Last)
	}
	if s.there && s.header.Etag <= etag {
		return wrong(id, "the newest has etag %d, and the document %d", etag, s.header.Etag)
	}
	if s.there || !deletion {
		return nil
	}
	if found, err := docs.Exists(c.from, format.DeletedKey(nil, id)); err != nil || !found {
		return errs.First(err, wrong(id, "it was deleted, and is not listed"))
	}
	return nil
}

// documents checks that documents with a number have the revisions before it.
func (c *checker) documents() (err error) {
	it, err := c.from.Iterate([]byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1})
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		id := string(format.DocumentID(it.Key()))
		h, _, err := metadata.Decode(it.Value())
		if err != nil {
			return fmt.Errorf("document %q: %w", id, err)
		}
		if h.Revision > 1 && !c.seen[id] {
			return wrong(id, "the document has number %d, and there are none", h.Revision)
		}
	}
	return it.Error()
}

// rest checks the list of deleted documents and the counts.
func (c *checker) rest() (err error) {
	it, err := c.from.Iterate(format.DeletedBounds[0], format.DeletedBounds[1])
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		id, err := format.DeletedID(it.Key())
		if err != nil {
			return err
		}
		if !c.seen[id] {
			return wrong(id, "it is listed as deleted, and has none")
		}
		if !bytes.Equal(it.Key(), format.DeletedKey(nil, id)) {
			return wrong(id, "its key is %x", it.Key())
		}
	}
	kept, err := Counts(c.from, new(budget.Payer))
	if err != nil {
		return err
	}
	for _, k := range kept {
		if c.counts[k.Collection] != k.Revisions {
			return wrong(k.Collection, "the collection has %d, and its number is %d", c.counts[k.Collection], k.Revisions)
		}
		delete(c.counts, k.Collection)
	}
	for collection, n := range c.counts {
		return wrong(collection, "the collection has %d, and no number", n)
	}
	return it.Error()
}
