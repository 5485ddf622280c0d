package exec

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

// changeSource yields documents in the order of their last changes, or in the opposite
// one. Each document has one change, which names it and its collection.
type changeSource struct {
	lookups
	keyWalk
	collection string // folded; "" for all
	name       string // the collection as written in the last change of a member
	id         []byte // what nextID returned
}

// openChanges opens the changes of the plan.
func (r *Run) openChanges() (source, error) {
	s := &changeSource{lookups: lookups{r: r}}
	if r.q.From != "" {
		s.collection = format.CollectionKey(r.q.From)
	}
	for _, kr := range r.plan.Changes.Ranges {
		s.ranges = append(s.ranges, sourceRange{KeyRange: kr})
	}
	if r.plan.Reverse {
		slices.Reverse(s.ranges)
	}
	if r.plan.Ordered && r.options.After != nil {
		return s, s.startAfter()
	}
	return s, nil
}

// startAfter leaves out the changes up to a cursor.
func (s *changeSource) startAfter() error {
	v, ok := query.DecodeKey(s.r.options.After.Key)
	if !ok {
		return fmt.Errorf("%w: not a cursor of Page", errs.ErrQuery)
	}
	if v.IsMissing() { // a document that a transaction has made: no stored one comes between
		if s.r.plan.Reverse {
			s.ranges = nil
		}
		return nil
	}
	var etag uint64
	if _, err := fmt.Sscan(string(v.Raw()), &etag); err != nil {
		return fmt.Errorf("%w: not a cursor of Page: %w", errs.ErrQuery, err)
	}
	for i := range s.ranges {
		kr := &s.ranges[i]
		node := uint64(binary.BigEndian.Uint32(kr.Lo[1:]))
		at := format.ChangeKey(nil, node, etag)
		if s.r.plan.Reverse {
			if string(at) < string(kr.Hi) {
				kr.Hi = at
			}
		} else if at = append(at, 0); string(at) > string(kr.Lo) {
			kr.Lo = at
		}
	}
	return nil
}

func (s *changeSource) next(ctx context.Context, want docs.Filter) (*docs.Document, error) {
	return s.nextOf(ctx, s, want)
}

// nextID implements candidates.
func (s *changeSource) nextID(ctx context.Context) ([]byte, error) {
	for {
		ok, err := s.advance(ctx, s.r)
		if err != nil || !ok {
			return nil, err
		}
		c, err := format.SplitChange(s.it.Value())
		if err != nil {
			return nil, err
		}
		if c.Kind == format.ChangePut && s.isMember(c.Collection) {
			s.id = append(s.id[:0], c.FoldedID...)
			return s.id, nil
		}
	}
}

// isMember reports whether a collection, as written, is the one that is asked for.
func (s *changeSource) isMember(name []byte) bool {
	if s.collection == "" || s.name != "" && string(name) == s.name {
		return true
	}
	if !docs.SameCollection(name, s.collection) {
		return false
	}
	s.name = string(name)
	return true
}

// fromEntry implements candidates: a change has nothing of the document but its ID.
func (s *changeSource) fromEntry([]byte, docs.Filter) (*docs.Document, bool) { return nil, false }

// broken implements candidates.
func (s *changeSource) broken(id string, err error) error {
	if err == errs.ErrNotFound {
		return fmt.Errorf("a change names %q, which is not there: %w", id, errs.ErrCorrupt)
	}
	return err
}

func (s *changeSource) close() error {
	err := s.stop()
	s.ranges = nil
	return errs.First(err, s.lookups.close())
}
