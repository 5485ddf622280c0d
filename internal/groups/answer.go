package groups

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// answer is how the index answers one query.
type answer struct {
	k       keeper
	members []int // for each field of the group by, the member of the index
	sums    []int // for each column, the sum of the index, or -1
	ranges  []catalog.GroupRange
	matcher *query.Matcher // of the conditions, on rows of the members; nil for none
	columns []query.Column // of these rows
	present bool           // see catalog.GroupQuestion

	groups *query.Groups
	keys   int64
	body   []byte // scratch
	picked []query.Value
	given  []query.SumShare
}

// AnswerGroups implements catalog.GroupAnswerer. It answers groups by all members of the index, or by some of them, and
// conditions on members. If a document may be in several groups, only those by all members and without a condition are
// right: a condition is on the document, and not on one of its groups, and a document counts once in a group.
func (k keeper) AnswerGroups(q *catalog.GroupQuestion) *catalog.GroupAnswer {
	conditions, ok := k.beyondOnly(q.Conditions)
	if !ok || q.Each.String() != k.fan.String() {
		return nil
	}
	a := &answer{k: k, ranges: q.Ranges, present: q.Present}
	used := make([]bool, len(k.members))
	for _, f := range q.GroupBy {
		at := indexOf(k.members, f)
		if at < 0 {
			return nil
		}
		used[at] = true
		a.members = append(a.members, at)
	}
	if q.Several && (slices.Contains(used, false) || len(conditions) > 0) {
		return nil
	}
	if q.Several && !q.OfGroups { // the condition of a partial index bounds a member, and its documents are in other groups, too
		a.ranges = nil
	}
	for _, c := range q.Columns {
		at := -1
		switch c.Func {
		case query.FuncNone, query.FuncCount:
		case query.FuncSum, query.FuncAvg:
			if at = indexOf(k.sums, c.Field); at < 0 {
				return nil
			}
		default:
			return nil
		}
		a.sums = append(a.sums, at)
	}
	if !a.compile(conditions) {
		return nil
	}
	return &catalog.GroupAnswer{Text: a.text(), Read: a.read}
}

// beyondOnly returns the conditions that are not those of the option "only", and false if one of these is not there.
func (k keeper) beyondOnly(conditions []query.Expr) (others []query.Expr, ok bool) {
	if k.only == nil {
		return conditions, true
	}
	mine := make(map[string]bool)
	for _, e := range query.Conjuncts(k.only) {
		mine[query.FormatCondition(e)] = false
	}
	for _, e := range conditions {
		text := query.FormatCondition(e)
		if _, is := mine[text]; is {
			mine[text] = true
		} else {
			others = append(others, e)
		}
	}
	for _, there := range mine {
		if !there {
			return nil, false
		}
	}
	return others, true
}

func indexOf(fields []query.Field, f query.Field) int {
	return slices.IndexFunc(fields, func(g query.Field) bool { return g.String() == f.String() })
}

// text says how the index answers.
func (a *answer) text() string {
	what := "kept counts"
	if slices.ContainsFunc(a.sums, func(at int) bool { return at >= 0 }) {
		what = "kept counts and sums"
	}
	if len(a.ranges) > 0 {
		what += fmt.Sprintf(", %d ranges of groups", len(a.ranges))
		what = strings.Replace(what, ", 1 ranges", ", one range", 1)
	}
	return what
}

// compile makes the matcher of conditions on members. It returns false for one that looks at something else.
func (a *answer) compile(conditions []query.Expr) bool {
	if len(conditions) == 0 {
		return true
	}
	columns := make([]query.Column, len(a.k.members))
	for i, f := range a.k.members {
		name := fmt.Sprint("m", i)
		path, err := jsonpath.Parse(name)
		if err != nil {
			return false
		}
		columns[i] = query.Column{Name: name, Field: query.Field{Path: path}}
		if f.Date == query.DateInstant {
			columns[i].Field.Date = f.Date
		}
	}
	var all query.And
	for _, e := range conditions {
		e, ok := query.OfMembers(e, func(f query.Field) (query.Field, bool) {
			at := indexOf(a.k.members, f)
			if at < 0 {
				return f, false
			}
			return columns[at].Field, true
		})
		if !ok {
			return false
		}
		all = append(all, e)
	}
	m, err := query.Compile(all)
	if err != nil {
		return false // the scan says why
	}
	a.matcher, a.columns = m, columns
	return true
}

// matches reports whether the conditions are true of the documents with these members.
func (a *answer) matches(members []query.Value) bool {
	if a.matcher == nil {
		return true
	}
	a.body = append(a.body[:0], '{')
	for i, v := range members {
		if v.IsMissing() {
			continue
		}
		if len(a.body) > 1 {
			a.body = append(a.body, ',')
		}
		a.body = append(jsonpath.AppendQuoted(a.body, a.columns[i].Name), ':')
		if v.Kind() == query.KindArray { // it was an element: at the end of a path it would stand for its own
			a.body = append(v.AppendJSON(append(a.body, '[')), ']')
		} else {
			a.body = v.AppendJSON(a.body)
		}
	}
	a.body = append(a.body, '}')
	return a.matcher.Match(query.Doc{Body: a.body})
}

// give adds what documents of a group with these members give, if the conditions are true of them.
func (a *answer) give(members []query.Value, documents int64, sums []query.SumShare) error {
	if !a.matches(members) {
		return nil
	}
	a.picked = a.picked[:0]
	for _, at := range a.members {
		if a.present && members[at].IsMissing() {
			return nil
		}
		a.picked = append(a.picked, members[at])
	}
	a.given = a.given[:0]
	for _, at := range a.sums {
		var s query.SumShare
		if at >= 0 {
			s = sums[at]
		}
		a.given = append(a.given, s)
	}
	return a.groups.AddShare(a.picked, query.Share{Documents: documents, Sums: a.given})
}

// tally is what a group has, or what a query sees of it beside that.
type tally struct {
	documents int64
	sums      []query.SumShare // without others
}

// add adds numbers of key i, as share.numbers returns them, times so often.
func (t *tally) add(i int, numbers []int64, times int64) {
	if i == 0 && len(numbers) > 0 {
		t.documents += times * numbers[0]
		numbers = numbers[1:]
	}
	for j, n := range numbers {
		if j == 0 {
			t.sums[i].Count += times * n
		} else {
			t.sums[i].Limbs[j-1] += times * n
		}
	}
}

func (k keeper) newTally() *tally { return &tally{sums: make([]query.SumShare, len(k.sums))} }

// read is catalog.GroupAnswer.Read.
func (a *answer) read(r storage.Reader, changes catalog.GroupChanges, groups *query.Groups) (keys int64, err error) {
	a.groups, a.keys = groups, 0
	beside, err := a.beside(r, changes)
	if err != nil {
		return a.keys, err
	}
	if err := a.walk(r, keyRest, func(key, value []byte) error { return a.rest(key, value, changes.Hidden) }); err != nil {
		return a.keys, err
	}
	if err := a.walkGroups(r, beside); err != nil {
		return a.keys, err
	}
	for key, t := range beside { // groups that the index does not have, or that were not read, as no condition on them is true
		if !a.inRanges([]byte(key)) {
			continue
		}
		if err := a.giveGroup([]byte(key), t); err != nil {
			return a.keys, err
		}
	}
	return a.keys, nil
}

// inRanges reports whether a group is in the ranges that are read.
func (a *answer) inRanges(group []byte) bool {
	return a.ranges == nil || slices.ContainsFunc(a.ranges, func(r catalog.GroupRange) bool {
		if r.Hi == nil {
			return bytes.HasPrefix(group, r.Lo)
		}
		return bytes.Compare(group, r.Lo) >= 0 && bytes.Compare(group, r.Hi) < 0
	})
}

// beside returns by group what the query sees beside the numbers of groups: without the documents that are hidden, and with
// those that are not in the index. What such a document gives to the rest is given here.
func (a *answer) beside(r storage.Reader, changes catalog.GroupChanges) (map[string]*tally, error) {
	found := make(map[string]*tally)
	add := func(s *share, times int64) {
		if s.long != nil {
			return
		}
		t := found[string(s.key)]
		if t == nil {
			t = a.k.newTally()
			found[string(s.key)] = t
		}
		for i := range a.k.groupKeys() {
			t.add(i, s.numbers(nil, i), times)
		}
	}
	for folded := range changes.Hidden {
		value, err := catalog.ValueAt(r, a.k.memberKey(folded))
		if err != nil {
			return nil, err
		}
		a.keys++
		list, _, err := a.k.sharesIn(value)
		if err != nil {
			return nil, fmt.Errorf("what %q has added: %w", folded, err)
		}
		for i := range list {
			add(&list[i].share, -1)
		}
	}
	if len(changes.Bodies) == 0 {
		return found, nil
	}
	only := catalog.Only(a.k.ix)
	for _, body := range changes.Bodies {
		entries, err := only.Extract(body, nil)
		if err != nil {
			return nil, err
		}
		for i := range entries.List {
			if _, is := entries.List[i].Note(); is {
				continue
			}
			group, value := entries.List[i].Given()
			s, err := a.k.decode(group, value)
			if err != nil {
				return nil, err
			}
			add(&s, 1)
			if isRest(value) {
				if err := a.giveRest(&s); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}

// rest gives what the record of a share has.
func (a *answer) rest(key, value []byte, hidden map[string]bool) error {
	s, folded, err := a.k.restAt(key, value)
	if err != nil || hidden[string(folded)] {
		return err
	}
	return a.giveRest(&s)
}

// giveRest gives what the numbers of its group do not have of a share.
func (a *answer) giveRest(s *share) error {
	documents := s.elements
	if s.long == nil { // the numbers have the rest of it
		documents = 0
		for i := range s.sums {
			s.sums[i].Count, s.sums[i].Limbs = 0, query.Limbs{}
		}
	}
	return a.give(a.k.membersOf(s), documents, s.sums)
}

// walkGroups gives the groups of the index, with what is beside them, which it removes.
func (a *answer) walkGroups(r storage.Reader, beside map[string]*tally) error {
	var group []byte // the current one; nil before the first
	var t *tally
	var numbers []int64 // of a key
	own := a.k.newTally()
	end := func() error {
		if t == nil {
			return nil
		}
		delete(beside, string(group))
		return a.giveGroup(group, t)
	}
	err := a.walk(r, keyGroup, func(key, value []byte) error {
		next, decoded, i, err := a.k.groupAt(key, value, numbers)
		if err != nil {
			return err
		}
		numbers = decoded
		if t == nil || !bytes.Equal(next, group) {
			if err := end(); err != nil {
				return err
			}
			group = append(group[:0], next...)
			if t = beside[string(group)]; t == nil {
				t = own
				t.documents = 0
				clear(t.sums)
			}
		}
		t.add(i, numbers, 1)
		return nil
	})
	if err != nil {
		return err
	}
	return end()
}

// giveGroup gives a group that the query sees, and nothing if it has no document.
func (a *answer) giveGroup(group []byte, t *tally) error {
	switch {
	case t.documents < 0:
		return fmt.Errorf("group %x of index %q has %d documents: %w", group, a.k.ix.Info.Name, t.documents, errs.ErrCorrupt)
	case t.documents == 0:
		return nil
	}
	return a.give(a.k.membersOf(&share{key: group}), t.documents, t.sums)
}

// walk calls fn with the keys of a kind that are in the ranges, ascending and each once.
func (a *answer) walk(r storage.Reader, kind byte, fn func(key, value []byte) error) error {
	prefix := a.k.appendKey(nil, kind)
	if a.ranges == nil {
		return a.walkRange(r, prefix, format.PrefixEnd(prefix), fn)
	}
	return eachRange(prefix, a.ranges, func(lo, hi []byte) error { return a.walkRange(r, lo, hi, fn) })
}

// eachRange calls fn with the bounds of ranges behind a prefix, ascending, without what an earlier one has, until it returns an error.
func eachRange(prefix []byte, ranges []catalog.GroupRange, fn func(lo, hi []byte) error) error {
	var last []byte // the end of what fn has been called with
	for _, one := range ranges {
		lo, hi := slices.Concat(prefix, one.Lo), slices.Concat(prefix, one.Hi)
		if one.Hi == nil {
			hi = format.PrefixEnd(lo)
		}
		if bytes.Compare(lo, last) < 0 {
			lo = last
		}
		if bytes.Compare(lo, hi) >= 0 {
			continue
		}
		if err := fn(lo, hi); err != nil {
			return err
		}
		last = hi
	}
	return nil
}

func (a *answer) walkRange(r storage.Reader, lo, hi []byte, fn func(key, value []byte) error) (err error) {
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		a.keys++
		if err := fn(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}
