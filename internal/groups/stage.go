package groups

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// The keys of an index, behind its number:
//
//	67 group i         numbers of storage.Tx.Add. i is 00: how many documents, or elements, the group has, and of its first sum the
//	                   count and the limbs; 01 to 07: count and limbs of a further sum
//	6d id 00           what a document has added: for each of its shares uvarint length, key, uvarint length, value
//	72 group id 00     the value of a share of which the numbers of its group do not have all
//	72 group id 00 h   the same of a share with 02; h is the SHA-256 of its value
//	ff id 00           the note of a document for which an expression fails: see package catalog
//
// A note is also in the record 6d of its document, behind the shares, with the key ff.
//
// Part of the on-disk format. Must not change.
const (
	keyGroup  = 'g'
	keyMember = 'm'
	keyRest   = 'r'
)

// appendKey appends the beginning of a key.
func (k keeper) appendKey(dst []byte, kind byte) []byte {
	return append(format.AppendIndexPrefix(dst, k.ix.Number), kind)
}

func (k keeper) memberKey(folded string) []byte {
	return append(append(k.appendKey(nil, keyMember), folded...), 0)
}

// restKey returns the key of the record of a share that has one.
func (k keeper) restKey(group, value []byte, folded string) []byte {
	key := append(append(append(k.appendKey(nil, keyRest), group...), folded...), 0)
	if value[0]&flagLong != 0 {
		hash := sha256.Sum256(value)
		key = append(key, hash[:]...)
	}
	return key
}

// groupKeys is how many keys a group has.
func (k keeper) groupKeys() int { return max(1, len(k.sums)) }

// numbers returns what a share adds to key i of its group: nothing if it has records only.
func (s *share) numbers(dst []int64, i int) []int64 {
	if dst = dst[:0]; s == nil || s.long != nil {
		return dst
	}
	if i == 0 {
		dst = append(dst, s.elements)
	}
	if i < len(s.sums) {
		sum := &s.sums[i]
		dst = append(append(dst, sum.Count), sum.Limbs[:]...)
	}
	return dst
}

// stored is a share as it is stored.
type stored struct {
	share
	value []byte
}

// Stage implements catalog.Stager.
func (k keeper) Stage(tx storage.Tx, folded string, given []catalog.Entry) error {
	before, err := catalog.ValueAt(tx, k.memberKey(folded))
	if err != nil {
		return err
	}
	return k.stage(tx, folded, before, given)
}

// StageNew implements catalog.NewStager.
func (k keeper) StageNew(tx storage.Tx, folded string, given []catalog.Entry) error {
	return fill(k, tx, folded, given)
}

// Fill implements catalog.Tabler.
func (k keeper) Fill(s catalog.Staging, folded []byte, given []catalog.Entry) error {
	return fill(k, s, folded, given)
}

// fill is Stage for a document of which nothing is staged.
func fill[ID string | []byte](k keeper, s catalog.Staging, folded ID, given []catalog.Entry) error {
	if len(given) == 0 {
		return nil
	}
	f := k.fillers.Get().(*filler)
	defer k.fillers.Put(f)
	f.value = f.value[:0]
	for i := range given {
		group, value := given[i].Given()
		f.value = appendBytes(appendBytes(f.value, group), value)
		if note, is := given[i].Note(); is {
			s.Set(catalog.AppendErrorKey(nil, k.ix.Number, string(folded)), note, nil)
			continue
		}
		if err := k.decodeInto(&f.share, group, value); err != nil {
			return err
		}
		if isRest(value) {
			s.Set(k.restKey(group, value, string(folded)), value, nil)
		}
		k.stageGroup(s, &f.numbers, nil, &f.share)
	}
	f.numbers.key = append(append(append(format.AppendIndexPrefix(f.numbers.key[:0], k.ix.Number), keyMember), folded...), 0)
	s.Set(f.numbers.key, f.value, nil)
	return nil
}

// filler is the memory of a call of fill, or of stage.
type filler struct {
	value   []byte
	share   share
	numbers numbers
}

// numbers is the memory of calls of stageGroup.
type numbers struct {
	key                   []byte
	before, after, deltas [storage.MaxNumbers]int64
}

// stage is Stage for a document whose record is before, nil for none.
func (k keeper) stage(tx catalog.Staging, folded string, before []byte, given []catalog.Entry) error {
	mine := k.memberKey(folded)
	var value []byte
	for i := range given {
		group, share := given[i].Given()
		value = appendBytes(appendBytes(value, group), share)
	}
	if bytes.Equal(before, value) {
		return nil
	}
	old, oldNote, err := k.sharesIn(before)
	if err != nil {
		return fmt.Errorf("what %q has added: %w", folded, err)
	}
	now, note, err := k.sharesIn(value)
	if err != nil {
		return err
	}
	switch {
	case bytes.Equal(oldNote, note):
	case note == nil:
		tx.Delete(catalog.AppendErrorKey(nil, k.ix.Number, folded))
	default:
		tx.Set(catalog.AppendErrorKey(nil, k.ix.Number, folded), note, nil)
	}
	for i := range old {
		if isRest(old[i].value) {
			tx.Delete(k.restKey(old[i].key, old[i].value, folded))
		}
	}
	for i := range now {
		if isRest(now[i].value) {
			tx.Set(k.restKey(now[i].key, now[i].value, folded), now[i].value, nil)
		}
	}
	if value == nil {
		tx.Delete(mine)
	} else {
		tx.Set(mine, value, nil)
	}
	f := k.fillers.Get().(*filler)
	defer k.fillers.Put(f)
	for len(old) > 0 || len(now) > 0 { // both are sorted by group
		var from, to *share
		order := compareFirst(old, now)
		if order <= 0 {
			from, old = &old[0].share, old[1:]
		}
		if order >= 0 {
			to, now = &now[0].share, now[1:]
		}
		k.stageGroup(tx, &f.numbers, from, to)
	}
	return nil
}

// compareFirst compares the groups of the first shares of two lists, of which one has some. What is not there comes last.
func compareFirst(old, now []stored) int {
	switch {
	case len(old) == 0:
		return 1
	case len(now) == 0:
		return -1
	}
	return bytes.Compare(old[0].key, now[0].key)
}

// stageGroup stages that a document has given one share to a group, nil for none, and now gives another one.
func (k keeper) stageGroup(tx catalog.Staging, n *numbers, from, to *share) {
	group := to
	if to == nil {
		group = from
	}
	for i := range k.groupKeys() {
		n.deltas = [storage.MaxNumbers]int64{}
		most := 0
		for j, number := range from.numbers(n.before[:0], i) {
			n.deltas[j] -= number
		}
		for j, number := range to.numbers(n.after[:0], i) {
			n.deltas[j] += number
		}
		for j, number := range n.deltas {
			if number != 0 {
				most = j + 1
			}
		}
		if most > 0 {
			n.key = append(append(append(format.AppendIndexPrefix(n.key[:0], k.ix.Number), keyGroup), group.key...), byte(i))
			tx.Add(n.key, n.deltas[:most]...)
		}
	}
}

// sharesIn returns what a document has added, and its note, nil for none, in the memory of value.
func (k keeper) sharesIn(value []byte) (list []stored, note []byte, err error) {
	bad := func() error { return fmt.Errorf("the shares %x: %w", value, errs.ErrCorrupt) }
	d := decoder{rest: value}
	for len(d.rest) > 0 {
		group, share := d.bytes(), d.bytes()
		if k.ix.Errors && len(group) == 1 && group[0] == format.SpaceErrors {
			if d.bad || len(d.rest) > 0 || !catalog.IsNoteValue(share) {
				return nil, nil, bad()
			}
			return list, share, nil
		}
		if _, rest, ok := k.cutKey(group); d.bad || !ok || len(rest) > 0 {
			return nil, nil, bad()
		}
		s, err := k.decode(group, share)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, stored{s, share})
	}
	return list, nil, nil
}
