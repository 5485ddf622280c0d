package groups

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// EndsName is the name of the kind that has documents, or the elements of arrays, in the order of a value, behind the members of their groups, so that least and
// greatest values, and the first and the last ones in an order, are at the ends of groups. Part of the on-disk format. Must not change.
const EndsName = "ends"

// optionValues is an option of the kind. Part of the on-disk format. Must not change.
const optionValues = "values"

// maxValues is how many values an entry has: one, or that of an order and one.
const maxValues = 2

// EndsKind is the kind. Its entries, behind the number of the index, are
//
//	members values id 00 →        a part of query.AppendMember for each
//	ff id 00                      the note of a document for which an expression fails: see package catalog
//
// Elements that are equal in all of these have one entry. An element that has several combinations of values, an array as a value, or one
// that is too long for its part, has none, and the index has catalog.FlagCut from then on, with which it answers nothing.
//
// Part of the on-disk format. Must not change.
var EndsKind = catalog.Kind{
	Open:  openEnds,
	Field: parseField,
	Options: []catalog.Option{optionOfElements(), optionOfFunction(), {
		Name:  optionValues,
		Rule:  "a field or an expression, whose least and greatest values are found, or two, separated by a comma: an order, and what is found first and last in it",
		Check: canonicalValues,
	}, optionOfOnly(), catalog.Strictness()},
}

// ends is the Keeper of an index of the kind.
type ends struct {
	k  keeper // its members are those of groups, and the values
	by int    // how many are those of groups
}

// openEnds is catalog.Kind.Open.
func openEnds(ix *catalog.Index) (catalog.Keeper, error) {
	k, err := openKeeper(ix, EndsName, optionValues)
	if err != nil {
		return nil, err
	}
	n := ends{by: len(k.members)}
	if k.members, k.sums = append(k.members, k.sums...), nil; n.by > 0 {
		err = k.setReaders()
	}
	n.k = k
	return n, err
}

// canonicalValues is the Check of the option.
func canonicalValues(text string) (canonical string, ok bool) {
	if text = strings.TrimSpace(text); text == none {
		return text, false
	}
	fields, ok := parseFields(text, parseValue)
	if !ok || len(fields) > maxValues {
		return text, false
	}
	return fieldsText(fields), true
}

// parseValue is parseField with a blank around the text.
func parseValue(text string) (query.Field, error) { return parseField(strings.TrimSpace(text)) }

// Computed implements catalog.Computer.
func (n ends) Computed() []query.Field { return n.k.Computed() }

// EachComputed implements catalog.ElementComputer.
func (n ends) EachComputed(body []byte, fn func(query.Doc)) error { return n.k.EachComputed(body, fn) }

// LoadedFields implements catalog.Loader.
func (n ends) LoadedFields() (query.Each, []query.Field) { return n.k.LoadedFields() }

// Elements implements catalog.ElementComputer.
func (n ends) Elements() string { return n.k.Elements() }

// Count implements catalog.Keeper: an entry for each element.
func (n ends) Count(d *catalog.Document) (count int) {
	r := n.k.readers.Get().(*reader)
	defer n.k.readers.Put(r)
	_ = r.eachElement(d.Body, func(query.Doc) error { count++; return nil })
	if r.failed() != nil {
		return 1 // the note
	}
	return count
}

// Bytes implements catalog.Keeper.
func (n ends) Bytes(d *catalog.Document, count int, p catalog.Precision) int {
	if p == catalog.Roughly {
		return (count + 1) * (catalog.EntryBytes + len(n.k.members)*query.MaxKey)
	}
	total := catalog.EntryBytes // of the note of an error
	_, _, err := n.each(d.Body, func(key []byte) { total += catalog.EntryBytes + len(key) })
	if err != nil {
		return total // Extract returns it
	}
	return total
}

// IsNarrow implements catalog.Narrow.
func (n ends) IsNarrow() bool { return n.k.IsNarrow() }

// Extract implements catalog.Keeper.
func (n ends) Extract(d *catalog.Document, e *catalog.Entries) error {
	failed, whole, err := n.each(d.Body, func(key []byte) { e.Add(d, key, nil) })
	if err != nil {
		return &metadata.Error{Rule: fmt.Sprintf("what the index %q keeps of a document can be computed", n.k.ix.Info.Name), Detail: err.Error()}
	}
	if !whole {
		e.Mark(d, catalog.FlagCut)
	}
	return e.NoteFailures(d, &failed)
}

// each calls fn with the key of each element, which is valid until fn returns. It returns which expressions have failed, and whether the keys have
// all of the elements.
func (n ends) each(body []byte, fn func(key []byte)) (failed catalog.Failures, whole bool, err error) {
	r := n.k.readers.Get().(*reader)
	defer n.k.readers.Put(r)
	whole, r.pace = true, query.Pace{}
	err = r.eachCounted(body, func(doc query.Doc) error {
		combinations, err := r.shares.Begin(doc)
		if err != nil {
			return err
		}
		r.note(&failed)
		if combinations != 1 {
			whole = false
			return nil
		}
		return r.shares.Each(func(values []query.Value) error {
			r.key = r.key[:0]
			for _, v := range values {
				var all bool
				r.key, all = query.AppendMember(r.key, v)
				if !all || v.Kind() == query.KindArray {
					whole = false
					return nil
				}
			}
			fn(r.key)
			return nil
		})
	})
	failed.Add(0, n.k.fan, r.failed())
	return failed, whole, err
}

// partBytes returns how many bytes the parts of a key have, below 0 if it has others.
func (n ends) partBytes(key []byte) int {
	if len(key) > format.IndexPrefix && key[format.IndexPrefix] == format.SpaceErrors {
		return 1
	}
	rest, ok := key[min(len(key), format.IndexPrefix):], true
	for range n.k.members {
		if rest, ok = query.SkipKey(rest); !ok {
			return -1
		}
	}
	return len(key) - len(rest) - format.IndexPrefix
}

// AppendID implements catalog.Decoder.
func (n ends) AppendID(dst, key, value []byte) ([]byte, error) {
	bytes := n.partBytes(key)
	_, folded, err := catalog.EntryKey(key, bytes)
	if err == nil && (catalog.IsError(key) && !(n.k.ix.Errors && catalog.IsNoteValue(value)) || !catalog.IsError(key) && len(value) > 0) {
		err = fmt.Errorf("index entry %x, value %x: %w", key, value, errs.ErrCorrupt)
	}
	return append(dst, folded...), err
}

// Describe implements catalog.Keeper.
func (n ends) Describe(key []byte) string {
	if catalog.IsError(key) {
		return catalog.DescribeError(key)
	}
	bytes := n.partBytes(key)
	part, folded, err := catalog.EntryKey(key, bytes)
	if err != nil || bytes < 0 {
		return catalog.Hex(key)
	}
	var texts []string
	for _, v := range n.k.membersOf(&share{key: part}) {
		texts = append(texts, fmt.Sprintf("%.60s", v))
	}
	return fmt.Sprintf("[%s] of document %.100q", strings.Join(texts, ","), folded)
}

// answerEnds is how the index answers one query.
type answerEnds struct {
	answer
	n       ends
	columns []query.Column
	own     *query.Matcher // of all conditions, on elements of documents that are not in the index; nil for none
	filter  *query.Matcher // of the index, on documents; nil for none
}

// AnswerGroups implements catalog.GroupAnswerer. It answers groups by all members, with the ends of the values and their distinct ones.
func (n ends) AnswerGroups(q *catalog.GroupQuestion) *catalog.GroupAnswer {
	conditions, ok := n.k.beyondOnly(q.Conditions)
	if !ok || q.Cut || q.Present || q.Each.String() != n.k.fan.String() || len(q.GroupBy) != n.by {
		return nil
	}
	a := &answerEnds{answer: answer{k: n.k, ranges: q.Ranges}, n: n, columns: q.Columns}
	for _, f := range q.GroupBy {
		at := indexOf(n.k.members[:n.by], f)
		if at < 0 || slices.Contains(a.members, at) {
			return nil
		}
		a.members = append(a.members, at)
	}
	for _, c := range q.Columns {
		if !n.has(c) {
			return nil
		}
	}
	a.k.members = n.k.members[:n.by]
	if !a.compile(conditions) {
		return nil
	}
	var err error
	if all := slices.Concat(conditions, query.Conjuncts(n.k.only)); len(all) > 0 {
		if a.own, err = query.Compile(query.And(all)); err != nil {
			return nil // the scan says why
		}
	}
	if n.k.ix.Filter != nil {
		if a.filter, err = query.Compile(n.k.ix.Filter); err != nil {
			return nil
		}
	}
	return &catalog.GroupAnswer{Text: a.text(), Read: a.read}
}

// has reports whether the index has a column of groups.
func (n ends) has(c query.Column) bool {
	values := n.k.members[n.by:]
	switch c.Func {
	case query.FuncNone:
		return true
	case query.FuncMin, query.FuncMax, query.FuncCountDistinct, query.FuncListDistinct:
		return c.Field.String() == values[0].String()
	case query.FuncFirst, query.FuncLast:
		f := c.Field
		f.By = nil
		return len(values) == maxValues && c.Field.By.String() == values[0].String() && f.String() == values[1].String()
	}
	return false
}

// text says how the index answers.
func (a *answerEnds) text() string {
	what := "the ends of each group"
	if a.counts() {
		what = "each value of each group"
	}
	if len(a.ranges) > 0 {
		what += fmt.Sprintf(", in %d of its ranges", len(a.ranges))
	}
	return what
}

// counts reports whether a column needs each of the distinct values.
func (a *answerEnds) counts() bool { return slices.ContainsFunc(a.columns, isDistinct) }

// isDistinct reports whether a column is of the distinct values of a group.
func isDistinct(c query.Column) bool {
	return c.Func == query.FuncCountDistinct || c.Func == query.FuncListDistinct
}
