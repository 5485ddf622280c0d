package computed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
)

// Child is an index of which the answers of a map come.
type Child struct {
	Of         string // the map, and its member if it has several
	Collection string
	Index      index.Index // without a name
}

// Options of the kinds of indexes that children have.
const (
	optionSums   = "sums"
	optionValues = "values"
	optionEach   = "each"
	optionFunc   = "function"
	optionOnly   = "only"
	optionStrict = "strict"
)

// Children returns the indexes that keep the answers of the maps, and why some maps or members have none: what they give is computed
// from documents.
func (d *Definition) Children() (children []Child, without []string) {
	for i := range d.maps {
		p := &d.maps[i]
		of := fmt.Sprint("map ", i+1)
		switch {
		case p.collection == "":
			without = append(without, of+": it is of all documents, and an index is of one collection")
		case d.reduce == nil && !p.each.IsZero():
			without = append(without, of+": elements have no order that an index keeps")
		case d.reduce == nil:
			more, why := d.ordered(i, of)
			children, without = append(children, more...), append(without, why...)
		default:
			more, why := d.grouped(i, of)
			children, without = append(children, more...), append(without, why...)
		}
	}
	return children, without
}

// grouped returns the indexes of a map with groups, and why some functions have none: one of the kind groups for counts, sums and averages, and
// an ordered one for each other function, which has its value at an end of each group; one of the kind ends for elements.
func (d *Definition) grouped(i int, of string) (children []Child, without []string) {
	p := &d.maps[i]
	ix, why := d.kept(i)
	if why != "" {
		return nil, []string{of + ": " + why}
	}
	added := false
	for _, c := range d.reduce.columns {
		if c.Func == query.FuncCount || c.Func == query.FuncSum || c.Func == query.FuncAvg {
			added = true
			continue
		}
		end, why := d.end(i, c)
		if why != "" {
			without = append(without, of+": "+c.Name+" is computed when it is asked for: "+why)
			continue
		}
		if !slices.ContainsFunc(children, func(other Child) bool {
			return slices.Equal(other.Index.Fields, end.Fields) && maps.Equal(other.Index.Options, end.Options)
		}) {
			children = append(children, Child{Of: of + ", " + c.Name, Collection: p.collection, Index: end})
		}
	}
	if added || len(children) != 1 { // one ordered index has the groups, too
		children = append([]Child{{Of: of, Collection: p.collection, Index: ix}}, children...)
	}
	return children, without
}

// end returns the ordered index that has a column at an end of each group of a map, or why there is none.
func (d *Definition) end(i int, c query.Column) (ix index.Index, why string) {
	p := &d.maps[i]
	if !p.each.IsZero() {
		return d.endOfElements(i, c)
	}
	var fields []query.Field
	for _, at := range d.reduce.by {
		fields = append(fields, p.fields[at])
	}
	f, err := query.Substitute(c.Field, func(f query.Field) (query.Field, error) { return d.member(i, f) })
	if err != nil {
		return ix, err.Error()
	}
	if f.By != nil {
		fields = append(fields, *f.By)
	}
	for _, f := range append(fields, f) {
		switch {
		case f.IsConstant():
			return ix, "one of the members is a constant"
		case f.Meta != query.MetaNone && f.Expression == nil:
			return ix, fmt.Sprintf("%s is no field of the body", f)
		}
		text := fieldText(f)
		if slices.Contains(ix.Fields, text) {
			return ix, fmt.Sprintf("%s is twice among its members and what it has of them", f)
		}
		ix.Fields = append(ix.Fields, text)
		if d.Declared.Strict && f.Expression != nil {
			ix.Options = map[string]string{optionStrict: "yes"}
		}
	}
	if p.where != nil {
		ix.Where = query.FormatCondition(p.where)
	}
	return ix, ""
}

// endOfElements is end for the elements of an array: an index of the kind ends.
func (d *Definition) endOfElements(i int, c query.Column) (ix index.Index, why string) {
	if c.Func == query.FuncList {
		return ix, "elements that are alike are in an index once: list(distinct ...) has them once, too"
	}
	p := &d.maps[i]
	ix = index.Index{Kind: "ends", Options: make(map[string]string)}
	setElements(&ix, p.each)
	computes := false
	for _, at := range d.reduce.by {
		ix.Fields = append(ix.Fields, p.fields[at].String())
		computes = computes || p.fields[at].Expression != nil
	}
	f, err := query.Substitute(c.Field, func(f query.Field) (query.Field, error) { return d.member(i, f) })
	if err != nil {
		return ix, err.Error()
	}
	values := []query.Field{f}
	if f.By != nil {
		values[0].By = nil
		values = slices.Insert(values, 0, *f.By)
	}
	var texts []string
	for _, f := range values {
		texts = append(texts, f.String())
		computes = computes || f.Expression != nil
	}
	ix.Options[optionValues] = strings.Join(texts, ", ")
	if p.where != nil {
		ix.Options[optionOnly] = query.FormatCondition(p.where)
	}
	if d.Declared.Strict && (computes || p.each.IsFunction()) {
		ix.Options[optionStrict] = "yes"
	}
	return ix, ""
}

// setElements sets the option of an index that says which elements count, if it is of elements.
func setElements(ix *index.Index, each query.Each) {
	switch {
	case each.IsFunction():
		ix.Options[optionFunc] = each.String()
	case !each.IsZero():
		ix.Options[optionEach] = each.String()
	}
}

// kept returns the index of the kind groups that keeps the counts and sums of the groups of a map, or why there is none.
func (d *Definition) kept(i int) (ix index.Index, why string) {
	p := &d.maps[i]
	ix = index.Index{Kind: "groups", Options: make(map[string]string)}
	computes := false
	for _, at := range d.reduce.by {
		ix.Fields = append(ix.Fields, p.fields[at].String())
		computes = computes || p.fields[at].Expression != nil
	}
	var sums []string
	for _, c := range d.reduce.columns {
		if c.Func != query.FuncSum && c.Func != query.FuncAvg {
			continue
		}
		f, err := query.Substitute(c.Field, func(f query.Field) (query.Field, error) { return d.member(i, f) })
		if err != nil {
			return ix, err.Error()
		}
		if text := f.String(); !slices.Contains(sums, text) {
			sums = append(sums, text)
			computes = computes || f.Expression != nil
		}
	}
	if len(sums) > 0 {
		ix.Options[optionSums] = strings.Join(sums, ", ")
	}
	switch {
	case p.where == nil:
	case p.each.IsZero():
		ix.Where = query.FormatCondition(p.where)
	default:
		ix.Options[optionOnly] = query.FormatCondition(p.where)
	}
	setElements(&ix, p.each)
	if d.Declared.Strict && (computes || p.each.IsFunction()) {
		ix.Options[optionStrict] = "yes"
	}
	return ix, ""
}

// ordered returns the ordered indexes of a map without groups, one for each member, and why some members have none.
func (d *Definition) ordered(i int, of string) (children []Child, without []string) {
	p := &d.maps[i]
	where := ""
	if p.where != nil {
		where = query.FormatCondition(p.where)
	}
	var seen []string
	for n, f := range p.fields {
		of := of + ", member " + d.members[n]
		switch {
		case f.IsConstant(), f.Meta == query.MetaID:
			continue
		case f.Meta != query.MetaNone && f.Expression == nil:
			without = append(without, fmt.Sprintf("%s: %s is no field of the body", of, f))
			continue
		}
		ix := index.Index{Fields: []string{fieldText(f)}, Where: where}
		if d.Declared.Strict && f.Expression != nil {
			ix.Options = map[string]string{optionStrict: "yes"}
		}
		if !slices.Contains(seen, ix.Fields[0]) {
			seen = append(seen, ix.Fields[0])
			children = append(children, Child{Of: of, Collection: p.collection, Index: ix})
		}
	}
	more, why := d.ordersCreated(i, of, where)
	return append(children, more...), append(without, why...)
}

// fieldText returns the text of a field of an ordered index.
func fieldText(f query.Field) string {
	switch {
	case f.Expression != nil || f.Date > query.DateInstant:
		return f.String()
	case f.UTC:
		return f.Path.String() + " as utc"
	case f.Date == query.DateInstant:
		return f.Path.String() + " as date"
	}
	return f.Path.String()
}
