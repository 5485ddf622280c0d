package groups

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// reader finds the shares of one document after another. It is not safe for concurrent use.
type reader struct {
	k      keeper
	shares *query.Shares
	sums   []query.SumShare
	key    []byte
	value  []byte

	elements *query.Elements // nil without a fan-out
	only     *query.Matcher  // of the elements; nil for none
	pace     query.Pace      // of only: it bounds what its expressions compute
}

func (k keeper) newReader() *reader {
	shares, err := query.NewShares(k.members, k.sums)
	if err != nil {
		panic(fmt.Sprintf("jay: index %q: %v", k.ix.Info.Name, err)) // open has made one
	}
	r := &reader{k: k, shares: shares, sums: make([]query.SumShare, len(k.sums))}
	if k.fan.IsZero() {
		return r
	}
	r.elements = query.NewElements(k.fan)
	if k.only != nil {
		if r.only, err = query.Compile(k.only); err != nil {
			panic(fmt.Sprintf("jay: index %q: %v", k.ix.Info.Name, err)) // likewise
		}
		r.only.SetPace(&r.pace)
	}
	return r
}

// Count implements catalog.Keeper: an entry for each combination of members, at most; of each element of a fan-out.
func (k keeper) Count(d *catalog.Document) int {
	if !k.fan.IsZero() {
		return k.countElements(d.Body)
	}
	if bytes.IndexByte(d.Body, '[') < 0 {
		return 1 // there is no array, so no member has several values
	}
	r := k.readers.Get().(*reader)
	defer k.readers.Put(r)
	n, err := r.shares.Begin(query.Doc{Body: d.Body})
	if large := (*query.LimitError)(nil); errors.As(err, &large) && large.Limit > 1 {
		return max(large.Actual, n)
	}
	return max(n, 1)
}

// Bytes implements catalog.Keeper.
func (k keeper) Bytes(d *catalog.Document, count int, p catalog.Precision) int {
	const varint = 10
	if p == catalog.Roughly {
		return (count + 1) * (catalog.EntryBytes + len(k.members)*query.MaxKey + 1 + len(k.sums)*(2+limbs)*varint + 2*len(d.Body))
	}
	total := 0
	if k.computed != nil {
		total += catalog.EntryBytes // of the note of an error
	}
	if _, err := k.each(d.Body, func(key, value []byte) { total += catalog.EntryBytes + len(key) + len(value) }); err != nil {
		return total // Extract returns it
	}
	return total
}

// Extract implements catalog.Keeper. The entries are the shares of the document.
func (k keeper) Extract(d *catalog.Document, e *catalog.Entries) error {
	failed, err := k.each(d.Body, func(key, value []byte) { e.Add(d, key, value) })
	if err == nil {
		return e.NoteFailures(d, &failed)
	}
	invalid := &metadata.Error{Rule: fmt.Sprintf("what the index %q keeps of a document can be computed", k.ix.Info.Name), Detail: err.Error()}
	if large := (*query.LimitError)(nil); errors.As(err, &large) {
		invalid.Limit, invalid.Actual = large.Limit, large.Actual
	}
	return invalid
}

// each calls fn with the key and the value of each share of a document. Both are valid until fn returns. One group may come several
// times, with the same value. It returns which expressions have failed.
func (k keeper) each(body []byte, fn func(key, value []byte)) (failed catalog.Failures, err error) {
	r := k.readers.Get().(*reader)
	defer k.readers.Put(r)
	if r.elements != nil {
		return r.eachOfElements(body, fn)
	}
	combinations, err := r.shares.Begin(query.Doc{Body: body})
	if err != nil {
		return failed, err
	}
	s := share{elements: 1, sums: r.sums}
	if err := r.sum(); err != nil {
		return failed, err
	}
	err = r.shares.Each(func(members []query.Value) error {
		s.setMembers(r.key[:0], members, combinations > 1)
		r.key, r.value = s.key, s.appendValue(r.value[:0])
		fn(r.key, r.value)
		return nil
	})
	r.forget()
	r.note(&failed)
	return failed, err
}

// note adds the expressions that have failed for the present document, or element.
func (r *reader) note(failed *catalog.Failures) {
	for _, i := range r.k.computed {
		failed.Add(i, r.k.field(i), r.shares.Failed(i))
	}
}

// sum sets the sums to those of the present document.
func (r *reader) sum() error {
	for i := range r.sums {
		sum := &r.sums[i]
		*sum = query.SumShare{Others: sum.Others[:0]}
		if err := r.shares.Numbers(i, func(number query.Value) {
			if sum.Limbs.Add(number) {
				sum.Count++
			} else {
				sum.Others = append(sum.Others, number.Raw())
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// forget lets go of what the sums have of the document.
func (r *reader) forget() {
	for i := range r.sums {
		clear(r.sums[i].Others[:cap(r.sums[i].Others)])
	}
}

// setMembers sets the key, in the memory of key, and the long members. If the document is in several combinations, a missing member
// counts as null: they are one group, and are kept apart for conditions, which do not use groups of such documents.
func (s *share) setMembers(key []byte, members []query.Value, several bool) {
	s.key, s.long = key, nil
	for i, v := range members {
		if several && v.IsMissing() {
			v = null
		}
		var whole bool
		if s.key, whole = query.AppendMember(s.key, v); !whole {
			if s.long == nil {
				s.long = make([][]byte, len(members))
			}
			s.long[i] = v.Raw()
		}
	}
}

// field returns a member, or a sum behind them.
func (k keeper) field(i int) query.Field {
	if i < len(k.members) {
		return k.members[i]
	}
	return k.sums[i-len(k.members)]
}

var null = query.ValueOf([]byte("null"))
