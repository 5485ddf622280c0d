package groups

import (
	"bytes"
	"errors"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/query"
)

// maxShares bounds in how many groups the elements of one document are together, each counted as often as an element is
// in it.
const maxShares = 10_000

// countElements is Count of a fan-out.
func (k keeper) countElements(body []byte) (n int) {
	r := k.readers.Get().(*reader)
	defer k.readers.Put(r)
	err := r.elements.Each(query.Doc{Body: body}, func(doc query.Doc) error {
		combinations, err := r.shares.Begin(doc)
		n += max(combinations, 1)
		return err
	})
	if large := (*query.LimitError)(nil); errors.As(err, &large) && large.Limit > 1 {
		return max(large.Actual, n)
	}
	if r.elements.Failed() != nil {
		return 1 // the note
	}
	return n
}

// Elements implements catalog.ElementComputer.
func (k keeper) Elements() string { return k.fan.String() }

// EachComputed implements catalog.ElementComputer.
func (k keeper) EachComputed(body []byte, fn func(query.Doc)) error {
	if k.fan.IsZero() {
		fn(query.Doc{Body: body})
		return nil
	}
	r := k.readers.Get().(*reader)
	defer k.readers.Put(r)
	r.pace = query.Pace{}
	_ = r.elements.Each(query.Doc{Body: body}, func(doc query.Doc) error {
		if r.only == nil || r.only.Match(doc) {
			fn(doc)
		}
		return r.pace.Err()
	})
	return r.elements.Failed()
}

// eachCounted is eachElement for those of which the condition of the index is true.
func (r *reader) eachCounted(body []byte, fn func(query.Doc) error) error {
	if r.only == nil {
		return r.eachElement(body, fn)
	}
	return r.eachElement(body, func(doc query.Doc) error {
		matches := r.only.Match(doc)
		if err := r.pace.Err(); err != nil || !matches {
			return err
		}
		return fn(doc)
	})
}

// eachElement calls fn with each element of a document, or with the document if there is no fan-out.
func (r *reader) eachElement(body []byte, fn func(query.Doc) error) error {
	if r.elements == nil {
		return fn(query.Doc{Body: body})
	}
	return r.elements.Each(query.Doc{Body: body}, fn)
}

// failed returns why the function has failed that gives the elements, or nil.
func (r *reader) failed() error {
	if r.elements == nil {
		return nil
	}
	return r.elements.Failed()
}

// given are the shares that the elements of a document have given so far to a group.
type given struct {
	share
	last int // the number of the element that has given last
}

// eachOfElements is keeper.each of a fan-out: what several elements give to one group is one share.
func (r *reader) eachOfElements(body []byte, fn func(key, value []byte)) (failed catalog.Failures, err error) {
	var all []*given
	byGroup := make(map[string]*given)
	element, shares := 0, 0
	r.pace = query.Pace{}
	defer r.forget()
	err = r.eachCounted(body, func(doc query.Doc) error {
		element++
		combinations, err := r.shares.Begin(doc)
		if err == nil {
			err = r.sum()
		}
		if err != nil {
			return err
		}
		r.note(&failed)
		if shares += combinations; shares > maxShares {
			return &query.LimitError{What: "groups of the elements of one document", Limit: maxShares, Actual: shares}
		}
		return r.shares.Each(func(members []query.Value) error {
			var s share
			s.setMembers(r.key[:0], members, combinations > 1)
			r.key = s.key
			name := s.name()
			g := byGroup[name]
			if g == nil {
				g = &given{share: share{key: bytes.Clone(s.key), sums: make([]query.SumShare, len(r.sums))}}
				for _, member := range s.long {
					g.long = append(g.long, bytes.Clone(member))
				}
				byGroup[name], all = g, append(all, g)
			}
			if g.last != element { // several of its values are equal: counted already
				g.last = element
				g.add(r.sums)
			}
			return nil
		})
	})
	if err != nil {
		return failed, err
	}
	failed.Add(0, r.k.fan, r.elements.Failed())
	for _, g := range all {
		r.value = g.appendValue(r.value[:0])
		fn(g.key, r.value)
	}
	return failed, nil
}

// name identifies the group of a share.
func (s *share) name() string {
	name := slices.Clone(s.key)
	for _, member := range s.long {
		name = appendBytes(name, member)
	}
	return string(name)
}

// add adds what one element gives.
func (s *share) add(sums []query.SumShare) {
	s.elements++
	for i := range sums {
		to, from := &s.sums[i], &sums[i]
		to.Count += from.Count
		for j, limb := range from.Limbs {
			to.Limbs[j] += limb
		}
		for _, number := range from.Others {
			to.Others = append(to.Others, bytes.Clone(number))
		}
	}
}
