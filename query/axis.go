package query

import (
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
)

// axis is a part of a group by that has several values in one document independently of
// the others: one field, or the fields whose paths begin alike. If these go through an
// array, each of its elements has values for all of them: grouping by Lines[].Product and
// Lines[].Quantity makes a group of each line, and not of each product with each quantity.
type axis struct {
	fields []int     // indexes in the group by
	values int       // number of values in the present document
	rows   [][]Value // these values, each with one for every field of the group by; nil for those of the Reader
}

// axesOf returns the axes of a group by, and the index of the axis of each field.
func axesOf(groupBy []Field) (axes []axis, axisOf []int) {
	for i, f := range groupBy {
		at := slices.IndexFunc(axes, func(a axis) bool { return beginAlike(groupBy[a.fields[0]], f) })
		if at < 0 {
			at, axes = len(axes), append(axes, axis{})
		}
		axes[at].fields = append(axes[at].fields, i)
		axisOf = append(axisOf, at)
	}
	return axes, axisOf
}

// BeginAlike reports whether two fields of a group by begin alike, so that they have the values of
// each element where their paths go through an array.
func BeginAlike(groupBy []Field) bool {
	axes, _ := axesOf(groupBy)
	return len(axes) < len(groupBy)
}

// beginAlike reports whether the paths of two fields have the same first step.
func beginAlike(f, other Field) bool {
	return f.Meta == other.Meta && (f.Meta == MetaNone || f.Meta == MetaCustom || f.Meta == MetaElement) && f.Path.At(0) == other.Path.At(0)
}

// lay finds the values of an axis in the present document, and returns how many there are.
func (g *Groups) lay(a *axis) (n int, err error) {
	a.values, a.rows = 1, nil
	arrays := false
	for _, i := range a.fields {
		if g.reader.Many(i) {
			return 0, &LimitError{"groups of one document", maxGroupsPerDocument, maxHeldValues}
		}
		a.values = max(a.values, len(g.reader.Values(i)))
		arrays = arrays || g.reader.fields[i].array
	}
	if len(a.fields) == 1 || !arrays {
		return a.values, nil
	}
	at := make([]position, len(a.fields))
	for n, i := range a.fields {
		at[n] = position{field: i, path: g.reader.fields[i].field.Path}
	}
	object := g.reader.sourceOf(g.reader.fields[a.fields[0]].field).json
	if a.rows, err = g.unfold(object, at); err != nil {
		return 0, err
	}
	if len(a.rows) == 0 { // nothing is there
		a.rows = [][]Value{make([]Value, g.by)}
	}
	a.values = len(a.rows)
	return a.values, nil
}

// position is a place on the path of a field.
type position struct {
	field    int
	path     jsonpath.Path
	step     int  // the next one
	unfolded bool // the value is an element of the array at the end of the path
}

// unfold returns the values of fields that go on from a value, one row for each element
// of the arrays on their way. Fields that part do so in all combinations. A row has a
// missing value for a field that leads nowhere, and there is none if all do.
func (g *Groups) unfold(value []byte, at []position) (rows [][]Value, err error) {
	if !g.pace.Spend(1 + len(value)) {
		return nil, g.pace.Err()
	}
	kind := jsonpath.KindOf(value)
	for len(at) > 0 {
		var part [][]Value
		var alike, others []position
		for _, p := range at {
			if p.way(kind) == at[0].way(kind) {
				alike = append(alike, p)
			} else {
				others = append(others, p)
			}
		}
		switch way := at[0].way(kind); way.kind {
		case wayEnds:
			part = g.leaf(value, alike)
		case wayElements:
			for i := range alike {
				if p := &alike[i]; p.step == p.path.Len() {
					p.unfolded = true
				} else if p.path.At(p.step).Kind == jsonpath.Every {
					p.step++
				}
			}
			for _, element := range jsonpath.Elements(value) {
				below, err := g.unfold(element, slices.Clone(alike))
				if err != nil {
					return nil, err
				}
				if part = append(part, below...); len(part) > maxGroupsPerDocument {
					return nil, &LimitError{"groups of one document", maxGroupsPerDocument, len(part)}
				}
			}
		case wayStep:
			for i := range alike {
				alike[i].step++
			}
			if below, found := take(value, way.step); found {
				if part, err = g.unfold(below, alike); err != nil {
					return nil, err
				}
			}
		}
		if rows, err = cross(rows, part); err != nil {
			return nil, err
		}
		at = others
	}
	return rows, nil
}

// way is how a path goes on from a value.
type way struct {
	kind wayKind
	step jsonpath.Step // of wayStep
}

type wayKind uint8

const (
	wayNone     wayKind = iota // nowhere
	wayEnds                    // the value is what the path reaches
	wayElements                // to each element
	wayStep                    // to a member or to an element
)

// way returns how the path goes on from a value of a kind. As in a Reader, an array stands
// for its elements at the end of a path, and before a member.
func (p position) way(kind jsonpath.Kind) way {
	if p.step == p.path.Len() {
		if kind == jsonpath.Array && !p.unfolded {
			return way{kind: wayElements}
		}
		return way{kind: wayEnds}
	}
	step := p.path.At(p.step)
	switch {
	case kind == jsonpath.Array && step.Kind != jsonpath.Index:
		return way{kind: wayElements}
	case kind == jsonpath.Array, kind == jsonpath.Object && step.Kind == jsonpath.Member:
		return way{kind: wayStep, step: step}
	}
	return way{}
}

// take returns the member or the element that a step leads to.
func take(value []byte, step jsonpath.Step) (raw []byte, found bool) {
	if step.Kind == jsonpath.Member {
		return jsonpath.FindMember(value, step.Name)
	}
	for i, element := range jsonpath.Elements(value) {
		if i == step.Index {
			return element, true
		}
	}
	return nil, false
}

// leaf returns a row with the value of fields that end at it, if any has one.
func (g *Groups) leaf(raw []byte, at []position) [][]Value {
	row, found := make([]Value, g.by), false
	for _, p := range at {
		v := ValueOf(raw)
		if field := &g.reader.fields[p.field].field; field.Date != DateNone {
			v, _, _ = field.dated(nil, v)
		}
		row[p.field] = v
		found = found || !v.IsMissing()
	}
	if !found {
		return nil
	}
	return [][]Value{row}
}

// cross returns all combinations of rows that have values for different fields. No rows
// count as one without values.
func cross(rows, others [][]Value) ([][]Value, error) {
	if len(rows) == 0 || len(others) == 0 {
		return append(rows, others...), nil
	}
	if n := len(rows) * len(others); n > maxGroupsPerDocument {
		return nil, &LimitError{"groups of one document", maxGroupsPerDocument, n}
	}
	var all [][]Value
	for _, other := range others {
		for _, row := range rows {
			row = slices.Clone(row)
			for i, v := range other {
				if !v.IsMissing() {
					row[i] = v
				}
			}
			all = append(all, row)
		}
	}
	return all, nil
}
