package groups

import (
	"bytes"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// read is catalog.GroupAnswer.Read.
func (a *answerEnds) read(r storage.Reader, changes catalog.GroupChanges, groups *query.Groups) (keys int64, err error) {
	w := &endsWalk{a: a, hidden: changes.Hidden, groups: groups, values: make([]query.Value, len(a.columns))}
	prefix := format.AppendIndexPrefix(nil, a.k.ix.Number)
	ranges := a.answer.ranges
	if ranges == nil {
		ranges = []catalog.GroupRange{{Hi: []byte{format.SpaceErrors}}}
	}
	if err := eachRange(prefix, ranges, func(lo, hi []byte) error { return w.walk(r, lo, hi) }); err != nil {
		return w.keys, err
	}
	return w.keys, a.addOwn(changes.Bodies, groups)
}

// addOwn adds the elements of documents that are not in the index.
func (a *answerEnds) addOwn(bodies [][]byte, groups *query.Groups) error {
	each := func(doc query.Doc, fn func(query.Doc) error) error { return fn(doc) }
	if !a.k.fan.IsZero() {
		each = query.NewElements(a.k.fan).Each
	}
	var pace query.Pace
	for _, m := range []*query.Matcher{a.own, a.filter} {
		if m != nil {
			m.SetPace(&pace)
		}
	}
	for _, body := range bodies {
		doc := query.Doc{Body: body}
		if a.filter != nil && !a.filter.Match(doc) {
			if err := pace.Err(); err != nil {
				return err
			}
			continue
		}
		err := each(doc, func(doc query.Doc) error {
			if a.own != nil && !a.own.Match(doc) {
				return pace.Err()
			}
			return groups.Add(doc)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endsWalk walks over the entries of an index, from group to group.
type endsWalk struct {
	a      *answerEnds
	it     storage.Iterator
	hidden map[string]bool // by folded ID: their entries do not count
	groups *query.Groups
	keys   int64

	members, picked []query.Value // of the current group
	values          []query.Value // scratch, parallel to the columns
}

// walk adds the groups of a range of keys.
func (w *endsWalk) walk(r storage.Reader, lo, hi []byte) (err error) {
	if w.it, err = r.Iterate(lo, hi); err != nil {
		return err
	}
	defer func() { err = errs.First(err, w.it.Close()) }()
	for ok := w.it.First(); ok; {
		w.keys++
		group, err := w.skip(w.it.Key(), format.IndexPrefix, w.a.n.by)
		if err != nil {
			return err
		}
		group = bytes.Clone(group)
		if w.members = w.a.k.membersOf(&share{key: group[format.IndexPrefix:]}); w.a.matches(w.members) {
			if err := w.group(group); err != nil {
				return err
			}
		}
		w.keys++
		ok = w.it.SeekGE(format.PrefixEnd(group))
	}
	return w.it.Error()
}

// skip returns the beginning of a key with so many parts behind those that end at a position.
func (w *endsWalk) skip(key []byte, at, parts int) ([]byte, error) {
	rest, ok := key[min(at, len(key)):], true
	for range parts {
		if rest, ok = query.SkipKey(rest); !ok {
			return nil, fmt.Errorf("index entry %x: %w", key, errs.ErrCorrupt)
		}
	}
	return key[:len(key)-len(rest)], nil
}

// counts reports whether the entry under the iterator counts.
func (w *endsWalk) counts() (bool, error) {
	w.keys++
	if len(w.hidden) == 0 {
		return true, nil
	}
	folded, err := w.a.n.AppendID(nil, w.it.Key(), w.it.Value())
	return !w.hidden[string(folded)], err
}

// group adds a group, whose keys begin with a prefix and to the first of which the iterator leads, if one of its entries counts.
func (w *endsWalk) group(prefix []byte) error {
	least, found, err := w.least(prefix)
	if err != nil || !found {
		return err
	}
	w.picked = w.picked[:0]
	for _, at := range w.a.answer.members {
		w.picked = append(w.picked, w.members[at])
	}
	w.groups.Choose(w.picked)
	if err := w.groups.AddEntry(w.values); err != nil || least == nil {
		return err
	}
	greatest, err := w.greatest(prefix)
	if err != nil {
		return err
	}
	for i, c := range w.a.columns {
		end := least
		if c.Func == query.FuncMax || c.Func == query.FuncLast {
			end = greatest
		}
		if err := w.addEnd(i, c, end[len(prefix):]); err != nil {
			return err
		}
	}
	if w.a.counts() {
		return w.distinct(prefix, least)
	}
	return nil
}

// addEnd adds the parts at an end of a group to a column that takes one.
func (w *endsWalk) addEnd(i int, c query.Column, parts []byte) error {
	value, memory, rest, ok := query.DecodeKeyAt(nil, parts)
	if !ok {
		return fmt.Errorf("parts of an index entry %x: %w", parts, errs.ErrCorrupt)
	}
	switch c.Func {
	case query.FuncMin, query.FuncMax:
		return w.groups.AddExtreme(i, value)
	case query.FuncFirst, query.FuncLast:
		of, _, _, ok := query.DecodeKeyAt(memory, rest)
		if !ok {
			return fmt.Errorf("parts of an index entry %x: %w", parts, errs.ErrCorrupt)
		}
		return w.groups.AddOrdered(i, value, of)
	}
	return nil
}

// least returns the first key of a group that counts and has a value, nil for none, and whether any key counts.
func (w *endsWalk) least(prefix []byte) (key []byte, found bool, err error) {
	for ok := true; ok && bytes.HasPrefix(w.it.Key(), prefix); {
		counts, err := w.counts()
		if err != nil {
			return nil, false, err
		}
		missing := query.IsMissingPart(w.it.Key()[len(prefix):])
		switch {
		case counts && !missing:
			return bytes.Clone(w.it.Key()), true, nil
		case counts: // the others without a value say no more
			found = true
			part, err := w.skip(w.it.Key(), len(prefix), 1)
			if err != nil {
				return nil, false, err
			}
			ok = w.it.SeekGE(format.PrefixEnd(bytes.Clone(part)))
		default:
			ok = w.it.Next()
		}
	}
	return nil, found, w.it.Error()
}

// greatest returns the last key of a group that counts and has a value. There is one.
func (w *endsWalk) greatest(prefix []byte) ([]byte, error) {
	for ok := w.it.SeekLT(format.PrefixEnd(prefix)); ok && bytes.HasPrefix(w.it.Key(), prefix); ok = w.it.Prev() {
		counts, err := w.counts()
		if counts || err != nil {
			return bytes.Clone(w.it.Key()), err
		}
	}
	return nil, errs.First(w.it.Error(), fmt.Errorf("the last entry of group %x of index %q: %w", prefix, w.a.k.ix.Info.Name, errs.ErrCorrupt))
}

// distinct adds each value of a group once, from the least one on.
func (w *endsWalk) distinct(prefix, least []byte) error {
	defer clear(w.values)
	for ok := w.it.SeekGE(least); ok && bytes.HasPrefix(w.it.Key(), prefix); {
		counts, err := w.counts()
		if err != nil {
			return err
		}
		if !counts {
			ok = w.it.Next()
			continue
		}
		part, err := w.skip(w.it.Key(), len(prefix), 1)
		if err != nil {
			return err
		}
		part = bytes.Clone(part)
		value, _, _, _ := query.DecodeKeyAt(nil, part[len(prefix):])
		for i, c := range w.a.columns {
			if isDistinct(c) {
				w.values[i] = value
			}
		}
		if err := w.groups.AddEntry(w.values); err != nil {
			return err
		}
		ok = w.it.SeekGE(format.PrefixEnd(part))
	}
	return w.it.Error()
}
