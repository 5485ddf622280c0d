package groups

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// What is counted of an index has a name that begins as its key does: the number at a place of a group's key weighs what
// it is, and a record weighs 1.

// groupFact is the name of number j at key i of a group.
func groupFact(group []byte, i, j int) []byte {
	return append(append([]byte{keyGroup}, group...), byte(i), byte(j))
}

// memberFact is the name of a share in the record of its document.
func memberFact(folded string, group, value []byte) []byte {
	return append(appendBytes(append(append([]byte{keyMember}, folded...), 0), group), value...)
}

// restFact is the name of a record of a share, by its key behind the number of the index.
func restFact(key, value []byte) []byte { return append(bytes.Clone(key), value...) }

// GivenFacts implements catalog.Stager.
func (k keeper) GivenFacts(folded string, e *catalog.Entry, add func(fact []byte, weight int64) error) error {
	group, value := e.Given()
	if note, is := e.Note(); is {
		if err := add(memberFact(folded, group, note), 1); err != nil {
			return err
		}
		return add(restFact(catalog.AppendErrorKey(nil, k.ix.Number, folded)[5:], note), 1)
	}
	s, err := k.decode(group, value)
	if err != nil {
		return err
	}
	if err := add(memberFact(folded, group, value), 1); err != nil {
		return err
	}
	if isRest(value) {
		if err := add(restFact(k.restKey(group, value, folded)[5:], value), 1); err != nil {
			return err
		}
	}
	for i := range k.groupKeys() {
		for j, n := range s.numbers(nil, i) {
			if n == 0 {
				continue
			}
			if err := add(groupFact(group, i, j), n); err != nil {
				return err
			}
		}
	}
	return nil
}

// StoredFacts implements catalog.Stager.
func (k keeper) StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	bad := fmt.Errorf("key %x, value %x, of groups: %w", key, value, errs.ErrCorrupt)
	if len(key) < 7 {
		return bad
	}
	switch key[5] {
	case keyGroup:
		group, numbers, i, err := k.groupAt(key, value, nil)
		if err != nil {
			return err
		}
		for j, n := range numbers {
			if n == 0 {
				continue
			}
			if err := add(groupFact(group, i, j), n); err != nil {
				return err
			}
		}
		return nil
	case keyMember:
		list, note, err := k.sharesIn(value)
		folded, ok := catalog.CutID(key)
		if err != nil || len(list) == 0 && note == nil || !ok {
			return bad
		}
		if note != nil {
			if err := add(memberFact(string(folded), []byte{format.SpaceErrors}, note), 1); err != nil {
				return err
			}
		}
		for i := range list {
			if err := add(memberFact(string(folded), list[i].key, list[i].value), 1); err != nil {
				return err
			}
		}
		return nil
	case format.SpaceErrors:
		if _, err := catalog.ErrorID(key); err != nil || !k.ix.Errors || !catalog.IsNoteValue(value) {
			return bad
		}
		return add(restFact(key[5:], value), 1)
	case keyRest:
		if _, _, err := k.restAt(key, value); err != nil {
			return err
		}
		return add(restFact(key[5:], value), 1)
	}
	return bad
}

// groupAt decodes a key of a group and its numbers, which it writes into the memory of scratch.
func (k keeper) groupAt(key, value []byte, scratch []int64) (group []byte, numbers []int64, i int, err error) {
	numbers = scratch[:0]
	group, rest, ok := k.cutKey(key[6:])
	if ok = ok && len(rest) == 1 && len(value)%8 == 0 && len(value) > 0; ok {
		i = int(rest[0])
	}
	most := 1 + limbs
	if i == 0 && len(k.sums) == 0 {
		most = 1
	} else if i == 0 {
		most++
	}
	if !ok || i >= k.groupKeys() || len(value) > 8*most {
		return nil, nil, 0, fmt.Errorf("key %x, value %x, of groups: %w", key, value, errs.ErrCorrupt)
	}
	for ; len(value) > 0; value = value[8:] {
		numbers = append(numbers, int64(binary.BigEndian.Uint64(value)))
	}
	return group, numbers, i, nil
}

// restAt decodes the record of a share, and returns the folded ID of its document.
func (k keeper) restAt(key, value []byte) (s share, folded []byte, err error) {
	bad := fmt.Errorf("key %x, value %x, of groups: %w", key, value, errs.ErrCorrupt)
	group, rest, ok := k.cutKey(key[6:])
	if !ok || len(value) == 0 || !isRest(value) {
		return s, nil, bad
	}
	folded, _, ok = bytes.Cut(rest, []byte{0})
	if s, err = k.decode(group, value); err != nil {
		return s, nil, err
	}
	if !ok || !bytes.Equal(key, k.restKey(group, value, string(folded))) {
		return s, nil, bad
	}
	return s, folded, nil
}

// Describe implements catalog.Keeper.
func (k keeper) Describe(key []byte) string {
	if len(key) < 7 {
		return "one of its keys"
	}
	switch key[5] {
	case format.SpaceErrors:
		return catalog.DescribeError(key)
	case keyMember:
		return fmt.Sprintf("what document %.100q has added", key[6:len(key)-1])
	case keyGroup, keyRest:
		group, rest, ok := k.cutKey(key[6:])
		if !ok {
			break
		}
		text := []byte{'['}
		s := share{key: group}
		for i, v := range k.membersOf(&s) {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, fmt.Sprintf("%.60s", v)...)
		}
		text = append(text, ']')
		if key[5] == keyGroup {
			return "numbers of the group " + string(text)
		}
		folded, _, _ := bytes.Cut(rest, []byte{0})
		return fmt.Sprintf("what document %.100q has given to the group %s", folded, text)
	}
	return catalog.Hex(key)
}
