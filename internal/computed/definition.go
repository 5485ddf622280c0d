// Package computed decides what a computed index means: which queries of documents a query of the index is, which
// indexes keep its answers, and what it makes of single documents. It reads and stores nothing.
package computed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/spelling"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// Bounds of a declaration.
const (
	MaxName    = 128 // bytes
	MaxMaps    = 16  // twice as many while a collection is renamed
	MaxMembers = 32  // of a map, and of a result
	MaxGroupBy = 8
	MaxText    = 8 << 10  // bytes of one expression or condition
	MaxBytes   = 64 << 10 // of all names and texts
)

// Definition is a computed index whose declaration has been parsed. It is immutable.
type Definition struct {
	Declared index.Computed // in canonical form

	maps    []part
	members []string // of the maps
	reduce  *reduction
}

// part is one map.
type part struct {
	collection string
	each       query.Each
	where      query.Expr    // nil for none
	fields     []query.Field // parallel to members
	created    []query.Created
}

// reduction is how entries become groups.
type reduction struct {
	by      []int          // positions of members
	columns []query.Column // the aggregates, of members
	results []query.Column // of rows with the members of by, and with the columns
}

// LoadedPaths returns the paths in documents that lead through references to others, of all maps: see query.LoadedPaths.
func (d *Definition) LoadedPaths() (paths []jsonpath.Path, err error) {
	for i := range d.maps {
		p := &d.maps[i]
		some, err := query.LoadedPaths(p.each, append(query.Fields(p.where), p.fields...))
		if err != nil {
			return nil, fmt.Errorf("%w: computed index %q: map %d: %w", errs.ErrIndex, errs.Shorten(d.Declared.Name), i+1, err)
		}
		paths = append(paths, some...)
	}
	return paths, nil
}

// Parse checks a declaration, and returns what it means.
func Parse(c index.Computed) (*Definition, error) {
	d := &Definition{}
	if err := d.parse(c); err != nil {
		return nil, fmt.Errorf("%w: computed index %q: %w", errs.ErrIndex, errs.Shorten(c.Name), err)
	}
	return d, nil
}

func (d *Definition) parse(c index.Computed) error {
	c.Name = strings.TrimSpace(c.Name)
	if c.Name == "" || len(c.Name) > MaxName || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("its name has 1 to %d bytes, and no control characters", MaxName)
	}
	if len(c.Maps) == 0 || len(c.Maps) > 2*MaxMaps {
		return fmt.Errorf("it has %d maps, and must have 1 to %d", len(c.Maps), MaxMaps)
	}
	if n := size(&c); n > MaxBytes {
		return fmt.Errorf("its names and expressions have %d bytes, and %d are the most", n, MaxBytes)
	}
	c.Maps = slices.Clone(c.Maps)
	for i := range c.Maps {
		if err := d.parseMap(&c.Maps[i]); err != nil {
			return fmt.Errorf("map %d: %w", i+1, err)
		}
	}
	if c.Reduce != nil && d.creates() {
		return fmt.Errorf("fields() has no meaning with a reduce, whose members are named")
	}
	if c.Reduce != nil {
		r := *c.Reduce
		if err := d.parseReduce(&r); err != nil {
			return fmt.Errorf("reduce: %w", err)
		}
		c.Reduce = &r
	}
	d.Declared = c
	return nil
}

// size counts the bytes of names and texts.
func size(c *index.Computed) (n int) {
	members := func(list []index.Member) {
		for _, m := range list {
			n += len(m.Name) + len(m.Expression)
		}
	}
	for _, m := range c.Maps {
		n += len(m.Collection) + len(m.Function) + len(m.Version) + len(m.Each) + len(m.As) + len(m.Where)
		members(m.Select)
	}
	if c.Reduce != nil {
		for _, name := range c.Reduce.GroupBy {
			n += len(name)
		}
		members(c.Reduce.Select)
	}
	return n + len(c.Name)
}

// parseMap parses a map, and makes it canonical.
func (d *Definition) parseMap(m *index.Map) (err error) {
	if err := metadata.CheckCollection(m.Collection); err != nil {
		return err
	}
	p := part{collection: m.Collection}
	if p.each, err = parseEach(m); err != nil {
		return fmt.Errorf("each: %w", err)
	}
	if p.where, err = parseWhere(m, p.each); err != nil {
		return fmt.Errorf("where: %w", err)
	}
	if len(m.Select) == 0 || len(m.Select) > MaxMembers {
		return fmt.Errorf("it selects %d members, and must select 1 to %d", len(m.Select), MaxMembers)
	}
	m.Select = slices.Clone(m.Select)
	fields := make(map[string]query.Field)
	var names []string
	for i := range m.Select {
		one := &m.Select[i]
		if created, err := p.create(one, m.Select[:i]); err != nil {
			return fmt.Errorf("member %q: %w", errs.Shorten(one.Name), err)
		} else if created {
			continue
		}
		f, err := parseMember(one, query.ParseMember)
		if _, found := fields[one.Name]; err == nil && found {
			err = fmt.Errorf("a second member of this name")
		}
		if err == nil {
			f, err = p.each.Field(f)
		}
		if err != nil {
			return fmt.Errorf("member %q: %w", errs.Shorten(one.Name), err)
		}
		fields[one.Name], names = f, append(names, one.Name)
	}
	if len(d.maps) == 0 {
		d.members = names
	}
	for _, name := range d.members {
		f, found := fields[name]
		if !found {
			return fmt.Errorf("it has no member %q, which the first map has", errs.Shorten(name))
		}
		p.fields = append(p.fields, f)
	}
	for _, name := range names {
		if !slices.Contains(d.members, name) {
			return fmt.Errorf("it has a member %q, which the first map has not", errs.Shorten(name))
		}
	}
	d.maps = append(d.maps, p)
	return nil
}

// create parses a member that stands for created fields, behind others. It reports whether it is one.
func (p *part) create(m *index.Member, before []index.Member) (bool, error) {
	if len(m.Expression) > MaxText {
		return false, nil // parseMember refuses it
	}
	c, is, err := query.ParseCreated(strings.TrimSpace(m.Expression))
	if !is {
		return false, nil
	}
	switch {
	case err != nil:
		return false, err
	case m.Name == "" || len(m.Name) > query.MaxName:
		return false, fmt.Errorf("a name has 1 to %d bytes", query.MaxName)
	case slices.ContainsFunc(before, func(other index.Member) bool { return other.Name == m.Name }):
		return false, fmt.Errorf("a second member of this name")
	}
	m.Expression = c.String()
	p.created = append(p.created, c)
	return true, nil
}

// parseEach parses the fan-out of a map, and makes it canonical.
func parseEach(m *index.Map) (e query.Each, err error) {
	m.Each = strings.TrimSpace(m.Each)
	switch {
	case m.Function != "" || m.Version != "":
		return parseFunction(m)
	case m.Each == "" && m.As == "":
		return e, nil
	case m.Each == "" || m.As == "":
		return e, fmt.Errorf("each and as belong together: the path of an array, and the name of its elements")
	}
	path, err := query.ParseExpression(m.Each)
	if err != nil {
		return e, err
	}
	m.Each = path.String()
	return query.ParseEach(m.Each + " as '" + strings.ReplaceAll(m.As, "'", "''") + "'")
}

// parseFunction parses the function of a map, which gives the elements. Whether the program has registered it is no matter.
func parseFunction(m *index.Map) (query.Each, error) {
	e := query.Each{Function: m.Function, Version: m.Version, As: m.As}
	if m.Function == "" || m.Version == "" || m.As == "" || m.Each != "" {
		return e, fmt.Errorf("function, version and as belong together, and take the place of each: the name of a Go function, its version, and the name of its entries")
	}
	parsed, err := query.ParseEach(e.String())
	if err == nil && parsed.String() != e.String() {
		err = fmt.Errorf("%s is not understood as it is written", e)
	}
	return e, err
}

// parseWhere parses the condition of a map, and makes it canonical.
func parseWhere(m *index.Map, each query.Each) (query.Expr, error) {
	if m.Where = strings.TrimSpace(m.Where); m.Where == "" {
		return nil, nil
	}
	if len(m.Where) > MaxText {
		return nil, fmt.Errorf("it has %d bytes, and %d are the most", len(m.Where), MaxText)
	}
	where, err := query.ParseCondition(m.Where, nil)
	if err != nil {
		return nil, err
	}
	m.Where = query.FormatCondition(where)
	if where, err = each.Condition(where); err != nil {
		return nil, err
	}
	_, err = query.Compile(where)
	return where, err
}

// parseMember parses a member by parse, and makes it canonical.
func parseMember(m *index.Member, parse func(string) (query.Field, error)) (query.Field, error) {
	if m.Name == "" || len(m.Name) > query.MaxName {
		return query.Field{}, fmt.Errorf("a name has 1 to %d bytes", query.MaxName)
	}
	text := strings.TrimSpace(m.Expression)
	if len(text) > MaxText {
		return query.Field{}, fmt.Errorf("its expression has %d bytes, and %d are the most", len(text), MaxText)
	}
	if text == "" {
		f, err := memberField(m.Name)
		m.Expression = ""
		return f, err
	}
	f, err := parse(text)
	if err == nil {
		m.Expression = f.String()
	}
	return f, err
}

// memberField returns the field that is the member of a name.
func memberField(name string) (query.Field, error) {
	path, err := jsonpath.Parse(string(jsonpath.AppendMember(nil, name)))
	return query.Field{Path: path}, err
}

// parseReduce parses the reduce, and makes it canonical.
func (d *Definition) parseReduce(r *index.Reduce) error {
	if len(r.GroupBy) == 0 || len(r.GroupBy) > MaxGroupBy {
		return fmt.Errorf("it groups by %d members, and must group by 1 to %d", len(r.GroupBy), MaxGroupBy)
	}
	red := &reduction{}
	for i, name := range r.GroupBy {
		at := slices.Index(d.members, name)
		if at < 0 {
			return fmt.Errorf("groupBy: %w", d.unknown(name, d.members))
		}
		if slices.Contains(r.GroupBy[:i], name) {
			return fmt.Errorf("groupBy has %q twice", errs.Shorten(name))
		}
		red.by = append(red.by, at)
	}
	if len(r.Select) == 0 || len(r.Select) > MaxMembers {
		return fmt.Errorf("it selects %d members, and must select 1 to %d", len(r.Select), MaxMembers)
	}
	r.Select = slices.Clone(r.Select)
	for i := range r.Select {
		m := &r.Select[i]
		text := strings.TrimSpace(m.Expression)
		f, err := parseMember(m, func(text string) (query.Field, error) { return query.ParseReduction(text, &red.columns) })
		m.Expression = text // what was parsed has members in the place of functions, and is written otherwise
		if err == nil {
			err = d.checkResult(f, r.GroupBy, red.columns)
		}
		if err == nil && slices.ContainsFunc(red.results, func(c query.Column) bool { return c.Name == m.Name }) {
			err = fmt.Errorf("a second member of this name")
		}
		if err != nil {
			return fmt.Errorf("member %q: %w", errs.Shorten(m.Name), err)
		}
		red.results = append(red.results, query.Column{Name: m.Name, Field: f})
	}
	for _, c := range red.columns {
		if slices.Contains(r.GroupBy, c.Name) {
			return fmt.Errorf("a member of groupBy is named %q, as one of its functions is", errs.Shorten(c.Name))
		}
		if c.Func == query.FuncCount {
			continue
		}
		if _, err := query.Substitute(c.Field, func(f query.Field) (query.Field, error) { return d.member(0, f) }); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	d.reduce = red
	return nil
}

// checkResult refuses a member of a result that is neither one of groupBy nor computed of these and of functions.
func (d *Definition) checkResult(f query.Field, by []string, columns []query.Column) error {
	_, err := query.Substitute(f, func(f query.Field) (query.Field, error) {
		name := f.Path.Root()
		if f.Meta != query.MetaNone || !slices.Contains(by, name) && !slices.ContainsFunc(columns, func(c query.Column) bool { return c.Name == name }) {
			return f, fmt.Errorf("%s is not the same for all entries of a group: name a member of groupBy, or one of count(), sum(), avg(), min(), max(), first(), last() and list()", f)
		}
		return f, nil
	})
	return err
}

// unknown is the error of a member that is not there.
func (d *Definition) unknown(name string, names []string) error {
	hint := ""
	if near := spelling.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(": did you mean %q?", near)
	}
	return fmt.Errorf("there is no member %q%s", errs.Shorten(name), hint)
}

// Retargeted returns the declaration with the maps of one collection made those of another one, or with them in addition if
// both is set. It reports whether anything is otherwise. A map that is there twice is there once.
func Retargeted(c index.Computed, from, to string, both bool) (index.Computed, bool) {
	var maps []index.Map
	add := func(m index.Map) {
		if !slices.ContainsFunc(maps, func(other index.Map) bool { return isSameMap(m, other) }) {
			maps = append(maps, m)
		}
	}
	changed := false
	for _, m := range c.Maps {
		moved := m
		if format.FoldName(m.Collection) == format.FoldName(from) {
			moved.Collection, changed = to, true
			if both {
				add(m)
			}
		}
		add(moved)
	}
	if changed = changed && !slices.EqualFunc(maps, c.Maps, isSameMap); changed {
		c.Maps = maps
	}
	return c, changed
}

// CanRetarget reports whether the maps of two collections can become those of one: what one has for a document the other has, too, or
// only one has any.
func CanRetarget(c index.Computed, from, to string) bool {
	var of, other []index.Map
	for _, m := range c.Maps {
		switch format.FoldName(m.Collection) {
		case format.FoldName(from):
			m.Collection = to
			of = append(of, m)
		case format.FoldName(to):
			other = append(other, m)
		}
	}
	return len(of) == 0 || !slices.ContainsFunc(other, func(m index.Map) bool {
		return !slices.ContainsFunc(of, func(n index.Map) bool { return isSameMap(m, n) })
	})
}

func isSameMap(a, b index.Map) bool {
	return format.FoldName(a.Collection) == format.FoldName(b.Collection) && a.Each == b.Each && a.Function == b.Function && a.Version == b.Version && a.As == b.As && a.Where == b.Where && slices.Equal(a.Select, b.Select)
}

// Missing returns an error for the first function of the maps that the program has not registered, or nil.
func (d *Definition) Missing() error {
	for _, p := range d.maps {
		if p.each.Check() != nil {
			return &index.FunctionError{Index: d.Declared.Name, Collection: p.collection, Function: p.each.Function, Version: p.each.Version}
		}
	}
	return nil
}

// Results returns the names of the members of a result.
func (d *Definition) Results() []string {
	if d.reduce == nil {
		return slices.Clone(d.members)
	}
	names := make([]string, len(d.reduce.results))
	for i, c := range d.reduce.results {
		names[i] = c.Name
	}
	return names
}

// Collections returns the collections of its maps, folded, each once; "" is all documents.
func (d *Definition) Collections() (folded []string) {
	for _, p := range d.maps {
		if name := format.FoldName(p.collection); !slices.Contains(folded, name) {
			folded = append(folded, name)
		}
	}
	return folded
}

// String describes the index as its algebra.
func (d *Definition) String() string {
	var b strings.Builder
	for i, m := range d.Declared.Maps {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString("map ")
		if m.Collection == "" {
			b.WriteString("all documents")
		} else {
			b.WriteString(m.Collection)
		}
		if !d.maps[i].each.IsZero() {
			b.WriteString(" each " + d.maps[i].each.String())
		}
		if m.Where != "" {
			b.WriteString(" where " + m.Where)
		}
		b.WriteString(" select " + membersText(m.Select))
	}
	if r := d.Declared.Reduce; r != nil {
		b.WriteString("; reduce by " + strings.Join(r.GroupBy, ", ") + " select " + membersText(r.Select))
	}
	return b.String()
}

func membersText(members []index.Member) string {
	texts := make([]string, len(members))
	for i, m := range members {
		if texts[i] = m.Name; m.Expression != "" && m.Expression != m.Name {
			texts[i] = m.Expression + " as " + m.Name
		}
	}
	return strings.Join(texts, ", ")
}
