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
}

func (k keeper) newReader() *reader {
	shares, err := query.NewShares(k.members, k.sums)
	if err != nil {
		panic(fmt.Sprintf("jay: index %q: %v", k.ix.Info.Name, err)) // open has made one
	}
	return &reader{k: k, shares: shares, sums: make([]query.SumShare, len(k.sums))}
}

// Count implements catalog.Keeper: an entry for each combination of members.
func (k keeper) Count(d *catalog.Document) int {
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
	combinations, err := r.shares.Begin(query.Doc{Body: body})
	if err != nil {
		return failed, err
	}
	s := share{sums: r.sums}
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
			return failed, err
		}
	}
	err = r.shares.Each(func(members []query.Value) error {
		s.key, s.long = r.key[:0], nil
		for i, v := range members {
			if combinations > 1 && v.IsMissing() {
				// Missing and null are one group. They are kept apart for conditions, which do not use groups of
				// such documents.
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
		r.key, r.value = s.key, s.appendValue(r.value[:0])
		fn(r.key, r.value)
		return nil
	})
	for i := range r.sums {
		clear(r.sums[i].Others[:cap(r.sums[i].Others)]) // they would keep the document in memory
	}
	for _, i := range k.computed {
		failed.Add(i, k.field(i), r.shares.Failed(i))
	}
	return failed, err
}

// field returns a member, or a sum behind them.
func (k keeper) field(i int) query.Field {
	if i < len(k.members) {
		return k.members[i]
	}
	return k.sums[i-len(k.members)]
}

var null = query.ValueOf([]byte("null"))
