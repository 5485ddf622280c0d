package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// entryGroups makes groups of the entries of an index, as plan.Along says.
//
// Where the entries of a group follow one another, a group is complete at the first entry of the next one, and its row can be given. There
// is an exception: missing and null are two values of the index and one of groups. So the groups with one of the two are held
// until the walk has left both.
type entryGroups struct {
	*plan.Along
	r       *Run
	path    *plan.Path
	walk    *indexSource
	groups  *query.Groups
	addOwn  func(query.Doc) error // adds a document of the transaction to groups
	present bool                  // entries without a value of the first field of the group by do not count
	matcher *query.Matcher        // of what the ranges do not decide; nil for nothing
	cover   *plan.Cover           // of what matcher looks at
	hidden  map[string]bool       // by folded ID: their entries do not count
	last    int                   // fields of an entry that are looked at

	prefix   []byte // of the entries of the current group; nil before the first
	nullFrom int    // where its first member begins that is missing or null; below 0 for none
	chosen   bool   // the current group is that of groups
	run      []byte // of the entries of which one is enough, if some can be left out
	steps    int    // entries of run
	found    bool   // one of them counts
	placed   bool   // the iterator is at the next entry already
	starts   [catalog.MaxFields + 1]int

	extremes []extreme // of the current group
	fields   []int     // Columns without those of extremes

	members, values []query.Value // scratch, and so is the rest
	memory          []byte
	id              []byte

	ready   [][]query.Value // complete groups
	ended   bool
	charged int // the most bytes of groups that were paid for
}

// skipAfter is how many entries of a kind, of which one is enough, are walked over before the others are jumped over: a jump costs
// about as much as they do.
const skipAfter = 32

// newEntryGroups returns what makes groups of the entries that walk yields, by a plan of a query, which are those of the run or of a part
// of it.
func newEntryGroups(r *Run, pl *plan.Plan, q *query.Query, walk *indexSource, groups *query.Groups) (*entryGroups, error) {
	e := &entryGroups{Along: pl.Along, r: r, path: pl.Access[0], walk: walk, groups: groups, addOwn: groups.Add, last: max(pl.Along.Members, pl.Along.Skip)}
	for _, i := range e.Columns {
		e.last = max(e.last, i+1)
	}
	columns, _, err := q.GroupColumns()
	if err != nil {
		return nil, err
	}
	e.fields = slices.Clone(e.Columns)
	for i, field := range e.Columns {
		if fn := columns[i].Func; fn == query.FuncMin || fn == query.FuncMax {
			e.fields[i] = -1
			e.extremes = append(e.extremes, extreme{column: i, field: field, least: (fn == query.FuncMin) != e.path.Index.Fields[field].Descending})
		} else if fn == query.FuncFirst || fn == query.FuncLast {
			e.fields[i] = -1
			e.extremes = append(e.extremes, extreme{column: i, field: field, picked: true, least: (fn == query.FuncFirst) != e.path.Index.Fields[field].Descending})
			e.last = max(e.last, field+2)
		}
	}
	e.members, e.values = make([]query.Value, len(e.Keys)), make([]query.Value, len(e.Columns))
	if pl.Residual != nil {
		if e.matcher, err = query.Compile(pl.Residual, queryOptions(r.env)...); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		e.matcher.SetPace(&r.pace)
		e.cover = plan.NewCover(new(query.Query), true, e.path.Index, pl.Residual)
	}
	e.hidden, err = r.hidden()
	return e, err
}

// streams reports whether groups are given when they are complete.
func (e *entryGroups) streams() bool {
	return e.Streams && len(e.r.q.GroupBy) > 0 && len(e.r.overlay.Own) == 0 && (e.Ordered || len(e.r.q.OrderBy) == 0)
}

// answers returns the rows of groups for which keep is true, each as soon as its group is complete.
func (e *entryGroups) answers(keep func(row []query.Value) bool) (answers, error) {
	var sorter *query.RowSorter
	if len(e.r.q.OrderBy) > 0 {
		var err error
		if sorter, err = query.NewRowSorter(e.r.q.OrderBy, e.r.q.Select); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
	}
	shown := rowMaker{columns: e.r.q.Select}
	return func(ctx context.Context) (*Row, error) {
		for {
			for len(e.ready) > 0 {
				row := e.ready[0]
				e.ready = e.ready[1:]
				if !e.r.pace.Spend(groupWork) {
					return nil, e.r.pace.Err()
				}
				if keep(row) {
					return shown.of(row), nil
				}
			}
			if e.ended {
				return nil, nil
			}
			more, err := e.step(ctx, func() { e.complete(sorter) })
			if err != nil {
				return nil, err
			}
			if !more {
				e.ended = true
				e.complete(sorter)
			}
		}
	}, nil
}

// complete gives the groups that have all their documents.
func (e *entryGroups) complete(sorter *query.RowSorter) {
	e.ready = slices.Collect(e.groups.Rows())
	e.groups.Reset()
	if sorter != nil && len(e.ready) > 1 { // missing and null are not in the order of the fields that follow
		slices.SortStableFunc(e.ready, sorter.Compare)
	}
}

// collect adds all entries, and the transaction's own documents.
func (e *entryGroups) collect(ctx context.Context) error {
	for {
		more, err := e.step(ctx, nil)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	for {
		doc, err := e.r.nextOwn()
		if doc == nil || err != nil {
			return err
		}
		if err := e.addOwn(e.r.doc(doc)); err != nil {
			return e.failed(string(doc.ID()), err)
		}
		if err := e.pay(); err != nil {
			return err
		}
	}
}

// pay pays for what the groups take.
func (e *entryGroups) pay() error {
	grown := e.groups.Bytes() - e.charged
	if grown <= 0 {
		return nil
	}
	e.charged += grown
	return e.r.payer.Pay(grown)
}

// failed returns the error for a document that cannot be added.
func (e *entryGroups) failed(id string, err error) error {
	if err == e.r.pace.Err() {
		return err
	}
	return fmt.Errorf("%w: document %q: %w", errs.ErrQuery, id, err)
}

// step adds the next entry, and returns false at the end. It calls complete, if that is not nil, when all groups so far are complete.
func (e *entryGroups) step(ctx context.Context, complete func()) (more bool, err error) {
	if !e.placed {
		if more, err = e.walk.advance(ctx, e.r); !more || err != nil {
			return false, errs.First(err, e.leave())
		}
	}
	e.placed = false
	key := e.walk.it.Key()
	if e.prefix == nil || !bytes.HasPrefix(key, e.prefix) {
		if err := e.leave(); err != nil {
			return false, err
		}
		if complete != nil && e.prefix != nil && !e.holds(key) {
			complete()
		}
		if err := e.enter(key); err != nil {
			return false, err
		}
	}
	if e.Skip >= 0 && (e.run == nil || !bytes.HasPrefix(key, e.run)) {
		if err := e.parse(key); err != nil {
			return false, err
		}
		e.run, e.steps, e.found = append(e.run[:0], key[:e.starts[e.Skip]]...), 0, false
	}
	counts, err := e.add()
	if err != nil {
		return false, err
	}
	if e.steps++; e.Skip < 0 {
		return true, nil
	}
	e.found = e.found || counts && (!e.Ends || !e.followsMissing(key))
	if e.found && e.steps >= skipAfter {
		return true, e.skip()
	}
	return true, nil
}

// holds reports whether key may belong to a group whose rows were not given yet.
func (e *entryGroups) holds(key []byte) bool {
	return e.nullFrom >= 0 && bytes.HasPrefix(key, e.prefix[:e.nullFrom]) && query.IsNullPart(key[e.nullFrom:])
}

// parse finds where the parts of a key begin.
func (e *entryGroups) parse(key []byte) error {
	e.starts[0] = format.IndexPrefix
	for i := range e.last {
		rest, ok := query.SkipKey(key[e.starts[i]:])
		if !ok {
			return fmt.Errorf("index entry %x: %w", key, errs.ErrCorrupt)
		}
		e.starts[i+1] = len(key) - len(rest)
	}
	return nil
}

// leave adds the extremes of the current group.
func (e *entryGroups) leave() error {
	for i := range e.extremes {
		x := &e.extremes[i]
		if len(x.part) == 0 {
			continue
		}
		err := x.addTo(e.groups)
		if x.part = x.part[:0]; err != nil && (err == e.r.pace.Err() || errors.Is(err, errs.ErrCorrupt)) {
			return err
		} else if err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
	}
	return e.pay()
}

// enter makes the group of an entry the current one.
func (e *entryGroups) enter(key []byte) error {
	if err := e.parse(key); err != nil {
		return err
	}
	e.prefix, e.nullFrom, e.chosen = append(e.prefix[:0], key[:e.starts[e.Members]]...), -1, false
	for i := e.Members - 1; i >= 0; i-- {
		if query.IsNullPart(key[e.starts[i]:]) {
			e.nullFrom = e.starts[i]
		}
	}
	return nil
}

// add adds the entry under the iterator to its group, if it counts.
func (e *entryGroups) add() (counts bool, err error) {
	key, value := e.walk.it.Key(), e.walk.it.Value()
	e.r.pace.Spend(len(key))
	if e.present && query.IsMissingPart(key[e.starts[e.Keys[0]]:]) {
		return false, e.r.pace.Err()
	}
	if e.hidden != nil || e.matcher != nil || e.Alike {
		if e.id, err = e.path.Index.AppendDecodedID(e.id[:0], key, value); err != nil || e.hidden[string(e.id)] {
			return false, err
		}
	}
	if e.Alike && plan.NotCovering(value) { // there may have been an array
		return e.read(func(doc query.Doc) error { return e.groups.Add(doc) })
	}
	if e.matcher != nil {
		if h, body, covered := e.cover.Document(key, value, e.id); covered {
			e.r.meta.folded, e.r.meta.header = e.id, h
			counts = e.matcher.Match(query.Doc{Body: body, Meta: &e.r.meta})
		} else if counts, err = e.read(nil); err != nil {
			return false, err
		}
		if !counts || e.r.pace.Err() != nil {
			return false, e.r.pace.Err()
		}
	}
	if err := e.addValues(key); err != nil {
		if errors.Is(err, errs.ErrCorrupt) {
			return false, err
		}
		e.id, _ = e.path.Index.AppendDecodedID(e.id[:0], key, value)
		return false, e.failed(string(e.id), err)
	}
	return true, e.pay()
}

// read reads the document of e.id. It reports whether it has the condition, and then calls add with it, if add is not nil.
func (e *entryGroups) read(add func(query.Doc) error) (counts bool, err error) {
	e.r.stats.uncovered++
	var failed error
	_, err = e.r.fetch(string(e.id), func(folded []byte, h *metadata.Header, body []byte) bool {
		e.r.meta.folded, e.r.meta.header = folded, h
		doc := query.Doc{Body: body, Meta: &e.r.meta}
		if counts = e.matcher == nil || e.matcher.Match(doc); counts && add != nil {
			failed = add(doc)
		}
		return false
	})
	if failed != nil {
		return false, e.failed(string(e.id), failed)
	}
	if err != nil {
		return false, e.walk.broken(string(e.id), err)
	}
	if err := e.r.pace.Err(); err != nil {
		return false, err
	}
	return counts, e.pay()
}

// addValues adds the values of an entry to the current group.
func (e *entryGroups) addValues(key []byte) error {
	for i := e.Members; i < e.last; i++ {
		rest, ok := query.SkipKey(key[e.starts[i]:])
		if !ok {
			return fmt.Errorf("index entry %x: %w", key, errs.ErrCorrupt)
		}
		e.starts[i+1] = len(key) - len(rest)
	}
	var ok bool
	e.memory = e.memory[:0]
	if !e.chosen {
		for i, field := range e.Keys {
			if e.members[i], e.memory, _, ok = query.DecodeKeyAt(e.memory, key[e.starts[field]:]); !ok {
				return fmt.Errorf("index entry %x: %w", key, errs.ErrCorrupt)
			}
		}
		e.groups.Choose(e.members)
		e.chosen = true
	}
	for i := range e.extremes {
		x := &e.extremes[i]
		x.meet(key[e.starts[x.field]:e.starts[x.field+x.parts()]])
	}
	for i, field := range e.fields {
		if field < 0 {
			continue
		}
		if e.values[i], e.memory, _, ok = query.DecodeKeyAt(e.memory, key[e.starts[field]:]); !ok {
			return fmt.Errorf("index entry %x: %w", key, errs.ErrCorrupt)
		}
	}
	return e.groups.AddEntry(e.values)
}

// followsMissing reports whether an entry has no value of the field that follows the members.
func (e *entryGroups) followsMissing(key []byte) bool {
	return query.IsMissingPart(key[len(e.prefix):])
}

// skip goes on behind the entries of which one is enough. If the ends of the group are asked for, it adds the one at the other end.
func (e *entryGroups) skip() error {
	if e.Ends {
		if err := e.addEnd(); err != nil {
			return err
		}
	}
	var ok bool
	if e.r.plan.Reverse {
		ok = e.walk.it.SeekLT(e.run)
	} else {
		ok = e.walk.it.SeekGE(format.PrefixEnd(e.run))
	}
	e.r.stats.keys++
	if e.placed = ok; ok {
		return nil
	}
	err := e.walk.stop()
	e.walk.ranges = e.walk.ranges[1:]
	return err
}

// addEnd adds the entry at the other end of the group, seen in the direction of the walk, that counts and has a value. There
// is one, as one was found.
func (e *entryGroups) addEnd() error {
	it, jumped := e.walk.it, false
	ok := e.toEnd(e.run)
	for ok && bytes.HasPrefix(it.Key(), e.run) {
		e.r.stats.keys++
		if e.followsMissing(it.Key()) && !jumped {
			jumped = true
			rest, _ := query.SkipKey(it.Key()[len(e.prefix):])
			ok = e.fromEnd(bytes.Clone(it.Key()[:len(it.Key())-len(rest)]))
			continue
		}
		if counts, err := e.add(); counts || err != nil {
			return err
		}
		if !e.r.pace.Spend(groupWork) {
			return e.r.pace.Err()
		}
		if e.r.plan.Reverse {
			ok = it.Next()
		} else {
			ok = it.Prev()
		}
	}
	return it.Error()
}

// toEnd moves to the entry with a prefix that is the last one in the direction of the walk.
func (e *entryGroups) toEnd(prefix []byte) bool {
	if e.r.plan.Reverse {
		return e.walk.it.SeekGE(later(prefix, e.walk.ranges[0].Lo))
	}
	end := format.PrefixEnd(prefix)
	if hi := e.walk.ranges[0].Hi; hi != nil && bytes.Compare(hi, end) < 0 {
		end = hi
	}
	return e.walk.it.SeekLT(end)
}

// fromEnd moves from the end of a group over all entries with a prefix.
func (e *entryGroups) fromEnd(prefix []byte) bool {
	if e.r.plan.Reverse {
		return e.walk.it.SeekGE(format.PrefixEnd(prefix))
	}
	return e.walk.it.SeekLT(prefix)
}
