package exec

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// changeSource yields documents in the order of their last changes, or in the opposite
// one. Each document has one change, which names it and its collection.
type changeSource struct {
	lookups
	ranges     []plan.KeyRange // to come, in the direction of the walk; the first is open if it is not nil
	it         storage.Iterator
	collection string // folded; "" for all
	name       string // the collection as written in the last change of a member
	id         []byte // what nextID returned
	steps      int    // changes examined
}

// openChanges opens the changes of the plan.
func (r *Run) openChanges() (source, error) {
	s := &changeSource{lookups: lookups{r: r}}
	if r.q.From != "" {
		s.collection = format.CollectionKey(r.q.From)
	}
	for _, kr := range r.plan.Changes.Ranges {
		if r.plan.Reverse {
			s.ranges = append([]plan.KeyRange{kr}, s.ranges...)
		} else {
			s.ranges = append(s.ranges, kr)
		}
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
		if !s.r.plan.Reverse {
			return nil
		}
		s.ranges = nil
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
		if s.steps++; s.steps%keysPerLook == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		ok, err := s.advance()
		if err != nil || !ok {
			return nil, err
		}
		s.r.stats.keys++
		kind, collection, id, err := format.SplitChange(s.it.Value())
		if err != nil {
			return nil, err
		}
		if kind == format.ChangePut && s.isMember(collection) {
			s.id = append(s.id[:0], id...)
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

// advance moves to the next change.
func (s *changeSource) advance() (bool, error) {
	for len(s.ranges) > 0 {
		ok := false
		switch kr := s.ranges[0]; {
		case s.it != nil && s.r.plan.Reverse:
			ok = s.it.Prev()
		case s.it != nil:
			ok = s.it.Next()
		case string(kr.Lo) < string(kr.Hi):
			var err error
			if s.it, err = s.r.snapshot.Iterate(kr.Lo, kr.Hi); err != nil {
				return false, err
			}
			if s.r.plan.Reverse {
				ok = s.it.Last()
			} else {
				ok = s.it.First()
			}
		}
		if ok {
			return true, nil
		}
		if err := s.closeRange(); err != nil {
			return false, err
		}
		s.ranges = s.ranges[1:]
	}
	return false, nil
}

func (s *changeSource) closeRange() error {
	if s.it == nil {
		return nil
	}
	err := errs.First(s.it.Error(), s.it.Close())
	s.it = nil
	return err
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
	err := s.closeRange()
	s.ranges = nil
	return errs.First(err, s.lookups.close())
}
