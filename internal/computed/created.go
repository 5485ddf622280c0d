package computed

import (
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Fields that maps create by names in documents are asked for as members are. A condition on one becomes a condition on an element of the array that
// has its name and its value. Nothing is kept of the names: an ordered index on the values finds candidates.

// creates reports whether a map creates fields, so that conditions may name any.
func (d *Definition) creates() bool {
	return slices.ContainsFunc(d.maps, func(p part) bool { return len(p.created) > 0 })
}

// conditionOf returns a condition on entries as one on the documents of a map.
func (d *Definition) conditionOf(i int, e query.Expr) (query.Expr, error) {
	ofDocument := func(f query.Field) (query.Field, error) { return d.member(i, f) }
	if !d.creates() {
		return substituted(e, ofDocument)
	}
	return query.MapConditions(e, func(e query.Expr) (query.Expr, error) {
		name, err := d.createdIn(e)
		switch {
		case err != nil:
			return nil, err
		case name == "":
			return substituted(e, ofDocument)
		}
		return d.createdCondition(i, name, e)
	})
}

// substituted returns a condition on members as one on what they are. A member that is read as a date is compared with instants.
func substituted(e query.Expr, fn func(query.Field) (query.Field, error)) (query.Expr, error) {
	e, err := query.SubstituteCondition(e, fn)
	if err != nil {
		return nil, err
	}
	return query.MapConditions(e, func(e query.Expr) (query.Expr, error) { return query.MapOperands(e, query.Dated, query.DatedFields) })
}

// createdIn returns the name of the created field that a condition is on; "" for one on members.
func (d *Definition) createdIn(e query.Expr) (name string, err error) {
	others := false
	for _, f := range query.Fields(e) {
		for _, f := range f.Operands() {
			root := f.Path.Root()
			switch {
			case f.Meta != query.MetaNone || slices.Contains(d.members, root) || f.Path.Loads():
				others = true
			case name != "" && name != root:
				return "", fmt.Errorf("%s has two fields that the map creates: a condition is on one of them", query.FormatCondition(e))
			default:
				name = root
			}
		}
	}
	if name != "" && others {
		return "", fmt.Errorf("%s has the field %q, which the map creates, and another one: a condition is on one of them", query.FormatCondition(e), errs.Shorten(name))
	}
	return name, nil
}

// createdCondition returns a condition on a created field as one on the documents of a map.
func (d *Definition) createdCondition(i int, name string, e query.Expr) (query.Expr, error) {
	if in, is := e.(query.In); is && in.All { // each value may be of another element
		var all query.And
		for _, v := range in.Values {
			one, err := d.createdCondition(i, name, query.In{Field: in.Field, Values: []query.Value{v}, Fold: in.Fold})
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	}
	var some query.Or
	for _, c := range d.maps[i].created {
		value, err := substituted(e, func(f query.Field) (query.Field, error) { return into(c.Value, f) })
		if err != nil {
			return nil, err
		}
		some = append(some, c.Condition(name, value))
	}
	if len(some) == 1 {
		return some[0], nil
	}
	return some, nil
}

// ordersCreated returns the ordered indexes on the values of created fields, and why some have none.
func (d *Definition) ordersCreated(i int, of, where string) (children []Child, without []string) {
	p := &d.maps[i]
	for _, c := range p.created {
		f, err := query.Within(c.Path, c.Value)
		if err != nil || c.Value.Expression != nil {
			without = append(without, fmt.Sprintf("%s, %s: the value is computed", of, c))
			continue
		}
		ix := Child{Of: of + ", " + c.String(), Collection: p.collection}
		ix.Index.Fields, ix.Index.Where = []string{fieldText(f)}, where
		children = append(children, ix)
	}
	return children, without
}
