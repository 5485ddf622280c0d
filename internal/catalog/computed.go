package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// A computed index is a declaration in the record of indexes, and no more. Its parts, the indexes that keep its answers, follow from
// the declaration: settle compares what the declarations want with what is there, in the commit of each change of the record, adds the parts
// that are missing, and begins to drop those that no declaration wants. So there is no state between the two, and a part is an ordinary
// index to all that builds, maintains, verifies and drops indexes.

// MaxComputed bounds the computed indexes of a database.
const MaxComputed = 64

// PartPrefix begins the names of the parts of computed indexes, such as "computed:Orders/ByProduct:17". The number is never used twice,
// so no name is. No other index gets such a name; an older version may have given it to one, which is no part. Part of the on-disk
// format. Must not change.
const PartPrefix = "computed:"

// ComputedEntry is the record of a computed index. Part of the on-disk format.
type ComputedEntry struct {
	Declared json.RawMessage `json:"declared"`       // an index.Computed, in canonical form
	Next     json.RawMessage `json:"next,omitempty"` // another one, which takes its place when its parts are ready
}

// Computed is a computed index that is open. It is immutable.
type Computed struct {
	Declared *computed.Definition // nil if Unknown
	Next     *computed.Definition // that takes its place when its parts are ready, or nil
	Name     string
	Unknown  error // why this version does not understand the declaration
}

// open opens the record of a computed index. One that this version does not understand cannot be queried, and is kept with its parts.
func (e ComputedEntry) open() *Computed {
	c := new(Computed)
	var named struct {
		Name string `json:"name"`
	}
	if c.Unknown = json.Unmarshal(e.Declared, &named); c.Unknown != nil {
		return c
	}
	c.Name = named.Name
	if c.Declared, c.Unknown = parseComputed(e.Declared); c.Unknown == nil && len(e.Next) > 0 {
		c.Next, c.Unknown = parseComputed(e.Next)
	}
	if c.Unknown != nil {
		c.Declared, c.Next = nil, nil
	}
	return c
}

func parseComputed(text json.RawMessage) (*computed.Definition, error) {
	var c index.Computed
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	return computed.Parse(c)
}

// entry is the record of an open one.
func (c *Computed) entry() ComputedEntry {
	e := ComputedEntry{Declared: declaredText(c.Declared.Declared)}
	if c.Next != nil {
		e.Next = declaredText(c.Next.Declared)
	}
	return e
}

func declaredText(c index.Computed) json.RawMessage {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts always marshal
	}
	return text
}

// definitions returns the declarations of a computed index: of one that is being replaced, both.
func (c *Computed) definitions() (all []*computed.Definition) {
	for _, d := range []*computed.Definition{c.Declared, c.Next} {
		if d != nil {
			all = append(all, d)
		}
	}
	return all
}

// FindComputed returns the computed index of a name, or nil.
func (c *Catalog) FindComputed(name string) *Computed {
	return findComputed(c.Computed, name)
}

// KnownComputed returns the computed index of a name, or an error that is missing if there is none, or this version does not understand it.
func (c *Catalog) KnownComputed(name string, missing error) (*Computed, error) {
	found := c.FindComputed(name)
	switch {
	case found == nil:
		return nil, fmt.Errorf("%w: there is no computed index %q", missing, errs.Shorten(name))
	case found.Unknown != nil:
		return nil, fmt.Errorf("%w: computed index %q: this version does not understand its declaration: %w", missing, found.Name, found.Unknown)
	}
	return found, nil
}

func findComputed(all []*Computed, name string) *Computed {
	i := slices.IndexFunc(all, func(one *Computed) bool { return format.FoldName(one.Name) == format.FoldName(name) })
	if i < 0 {
		return nil
	}
	return all[i]
}

// PartsOf returns the indexes that are parts of a declaration of a computed index.
func (c *Catalog) PartsOf(d *computed.Definition) (parts []*Index) {
	wanted, _ := Parts(d)
	for _, ix := range c.All {
		if ix.Part && ix.Info.State != index.Dropping && slices.ContainsFunc(wanted, func(p computed.Child) bool { return isPart(p, d.Declared.Name, &ix.Info) }) {
			parts = append(parts, ix)
		}
	}
	return parts
}

// OwnerOf returns the name of the computed index whose part has this name, folded; "" if it is the name of no part.
func OwnerOf(name string) string {
	name, is := strings.CutPrefix(format.FoldName(name), PartPrefix)
	if !is {
		return ""
	}
	return name[:max(strings.LastIndexByte(name, ':'), 0)]
}

// isPart reports whether an index that is a part is this one, of the computed index of a name.
func isPart(p computed.Child, name string, info *index.Info) bool {
	return OwnerOf(info.Name) == format.FoldName(name) && format.FoldName(p.Collection) == format.FoldName(info.Collection) && IsSame(p.Index, info.Index)
}

// Parts returns the indexes that keep the answers of a computed index, in canonical form and without names, and why some of its maps or
// members have none.
func Parts(d *computed.Definition) (parts []computed.Child, without []string) {
	children, without := d.Children()
	for _, child := range children {
		ix := child.Index
		ix.Name = PartPrefix
		ix, err := Canonical(ix, child.Collection)
		if missing := (*index.FunctionError)(nil); errors.As(err, &missing) {
			err = nil // the parts are the same in a program that lacks the function
		}
		if err != nil {
			without = append(without, child.Of+": "+reasonOf(err))
			continue
		}
		if ix.Name, child.Index = "", ix; !slices.ContainsFunc(parts, func(p computed.Child) bool {
			return format.FoldName(p.Collection) == format.FoldName(child.Collection) && IsSame(p.Index, ix)
		}) {
			parts = append(parts, child)
		}
	}
	return parts, without
}

// reasonOf returns why an index is refused, without its name.
func reasonOf(err error) string {
	if of := (*index.OptionError)(nil); errors.As(err, &of) {
		return of.Rule
	}
	return strings.TrimPrefix(err.Error(), errs.ErrIndex.Error()+": ")
}

// CanonicalComputed validates a declaration of a computed index.
func CanonicalComputed(c index.Computed) (*computed.Definition, error) {
	d, err := computed.Parse(c)
	if err != nil {
		return nil, err
	}
	if err := d.Missing(); err != nil {
		return nil, err
	}
	_, without := Parts(d)
	switch {
	case len(c.Maps) > computed.MaxMaps:
		return nil, fmt.Errorf("%w: computed index %q: it has %d maps, and must have 1 to %d", errs.ErrIndex, errs.Shorten(c.Name), len(c.Maps), computed.MaxMaps)
	case c.Strict && len(without) > 0:
		return nil, fmt.Errorf("%w: computed index %q: strict refuses documents by what is kept of them, and not all is kept: %s", errs.ErrIndex, errs.Shorten(c.Name), strings.Join(without, "; "))
	}
	return d, nil
}

// IsSameComputed reports whether two declarations are the same, whatever the case of their names.
func IsSameComputed(a, b *computed.Definition) bool {
	x, y := a.Declared, b.Declared
	x.Name, y.Name = "", ""
	return string(declaredText(x)) == string(declaredText(y))
}

// openAll opens the computed indexes of a record.
func (r *Record) openAll() []*Computed {
	all := make([]*Computed, len(r.Computed))
	for i, e := range r.Computed {
		all[i] = e.open()
	}
	return all
}

// setComputed makes computed indexes those of the record. Of one that is unknown the record stays.
func (r *Record) setComputed(all []*Computed) {
	old := r.Computed
	r.Computed = nil
	for _, c := range all {
		if c.Unknown == nil {
			r.Computed = append(r.Computed, c.entry())
			continue
		}
		for _, e := range old {
			if e.open().Name == c.Name {
				r.Computed = append(r.Computed, e)
				break
			}
		}
	}
}

// Declare adds a computed index to the record. With replace it takes the place of another one of the name once its parts are ready. It
// reports whether the record was changed.
func (r *Record) Declare(d *computed.Definition, replace bool) (changed bool, err error) {
	all := r.openAll()
	c := findComputed(all, d.Declared.Name)
	switch {
	case c == nil && len(all) >= MaxComputed:
		return false, fmt.Errorf("%w: there are %d computed indexes, the most there can be", errs.ErrIndex, MaxComputed)
	case c == nil:
		r.Computed = append(slices.Clone(r.Computed), (&Computed{Declared: d}).entry())
		return true, nil
	case c.Unknown != nil:
		return false, fmt.Errorf("%w: there is one of this name, and this version does not understand its declaration: %w", errs.ErrIndexExists, c.Unknown)
	case IsSameComputed(c.Declared, d):
		if !replace || c.Next == nil {
			return false, nil
		}
		c.Next = nil // it stays as it is
	case c.Next != nil && IsSameComputed(c.Next, d):
		return false, nil
	case !replace:
		return false, fmt.Errorf("%w: it is %s", errs.ErrIndexExists, errs.Shorten(c.Declared.String()))
	default:
		same := *d
		same.Declared.Name = c.Name
		c.Next = &same
	}
	r.setComputed(all)
	return true, nil
}

// RemoveComputed removes the computed index of a name. It reports whether there was one.
func (r *Record) RemoveComputed(name string) bool {
	n := len(r.Computed)
	r.Computed = slices.DeleteFunc(slices.Clone(r.Computed), func(e ComputedEntry) bool { return format.FoldName(e.open().Name) == format.FoldName(name) })
	return len(r.Computed) < n
}

// RemoveComputedOf removes the computed indexes all of whose maps are of a collection.
func (r *Record) RemoveComputedOf(collection string) (changed bool) {
	for _, c := range r.openAll() {
		if c.Unknown == nil && isOfOnly(c.Declared, collection) && (c.Next == nil || isOfOnly(c.Next, collection)) {
			changed = r.RemoveComputed(c.Name) || changed
		}
	}
	return changed
}

func isOfOnly(d *computed.Definition, collection string) bool {
	return !slices.ContainsFunc(d.Declared.Maps, func(m index.Map) bool { return format.FoldName(m.Collection) != format.FoldName(collection) })
}

// Retarget makes the maps of one collection those of another one, or adds the latter if both is set: see computed.Retargeted. What is
// declared takes effect when its parts are ready.
func (r *Record) Retarget(from, to string, both bool) (changed bool, err error) {
	all := r.openAll()
	for _, c := range all {
		if c.Unknown != nil {
			continue
		}
		d := c.Declared
		if c.Next != nil {
			d = c.Next
		}
		declared, is := computed.Retargeted(d.Declared, from, to, both)
		if !is {
			continue
		}
		if both && !computed.CanRetarget(d.Declared, from, to) {
			return false, fmt.Errorf("%w: the computed index %q has maps of both collections, and they differ", errs.ErrIndexExists, c.Name)
		}
		if c.Next, err = computed.Parse(declared); err != nil {
			return false, err
		}
		changed = true
	}
	if changed {
		r.setComputed(all)
	}
	return changed, nil
}

// settle makes the parts in the record those that the computed indexes want, after any other change. A declaration whose parts are ready takes
// the place of the one that it replaces; parts that are wanted are to be built; those that are not begin to be dropped.
func (r *Record) settle() error {
	if len(r.Computed) == 0 && !slices.ContainsFunc(r.Indexes, func(e RecordEntry) bool { return e.Part }) {
		return nil
	}
	all := r.openAll()
	replaced := false
	for _, c := range all {
		if c.Next != nil && r.hasReady(c.Next) {
			c.Declared, c.Next, replaced = c.Next, nil, true
		}
	}
	if replaced {
		r.setComputed(all)
	}
	r.dropParts(all)
	for _, c := range all {
		for _, d := range c.definitions() {
			if err := r.addParts(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// part returns the record of a part of a declaration, or nil.
func (r *Record) part(p computed.Child, d *computed.Definition) *RecordEntry {
	i := slices.IndexFunc(r.Indexes, func(e RecordEntry) bool {
		return e.Part && e.State != index.Dropping && isPart(p, d.Declared.Name, &e.Info)
	})
	if i < 0 {
		return nil
	}
	return &r.Indexes[i]
}

// hasReady reports whether all parts of a declaration are ready.
func (r *Record) hasReady(d *computed.Definition) bool {
	wanted, _ := Parts(d)
	return !slices.ContainsFunc(wanted, func(p computed.Child) bool {
		e := r.part(p, d)
		return e == nil || e.State != index.Ready
	})
}

// dropParts begins to drop the parts that no computed index wants. Those of one that this version does not understand stay.
func (r *Record) dropParts(all []*Computed) {
	wanted := make(map[uint32]bool)
	for _, c := range all {
		if c.Unknown != nil && c.Name == "" {
			return
		}
		for _, d := range c.definitions() {
			parts, _ := Parts(d)
			for _, p := range parts {
				if e := r.part(p, d); e != nil {
					wanted[e.Number] = true
				}
			}
		}
	}
	for i := range r.Indexes {
		e := &r.Indexes[i]
		if !e.Part || wanted[e.Number] || e.State == index.Dropping {
			continue
		}
		if c := findComputed(all, OwnerOf(e.Name)); c == nil || c.Unknown == nil {
			e.State = index.Dropping
		}
	}
}

// addParts adds the parts of a declaration that are missing, to be built.
func (r *Record) addParts(d *computed.Definition) error {
	wanted, _ := Parts(d)
	for _, p := range wanted {
		if r.part(p, d) != nil {
			continue
		}
		if kept, _ := r.Count(format.FoldName(p.Collection)); kept >= MaxPerCollection {
			return fmt.Errorf("%w: %s has %d indexes already, the most there can be", errs.ErrIndex, p.Collection, MaxPerCollection)
		}
		ix := p.Index
		for {
			ix.Name = fmt.Sprintf("%s%s:%d", PartPrefix, d.Declared.Name, r.Next)
			if !slices.ContainsFunc(r.Indexes, func(e RecordEntry) bool { return format.FoldName(e.Name) == format.FoldName(ix.Name) }) {
				break
			}
			r.Next++
		}
		r.Indexes = append(r.Indexes, RecordEntry{Number: r.Next, Part: true, Notes: ix.Kind != "", Info: index.Info{Index: ix, Collection: p.Collection, State: index.Building}})
		r.Next++
	}
	return nil
}

// withdraw removes the declarations that want a part, which documents refuse or somebody drops: without it there is no index.
func (r *Record) withdraw(part *RecordEntry) {
	all := r.openAll()
	c := findComputed(all, OwnerOf(part.Name))
	if c == nil || c.Unknown != nil {
		return
	}
	wants := func(d *computed.Definition) bool {
		parts, _ := Parts(d)
		return slices.ContainsFunc(parts, func(p computed.Child) bool { return r.part(p, d) == part })
	}
	if wants(c.Declared) {
		r.RemoveComputed(c.Name)
		return
	}
	if c.Next != nil && wants(c.Next) {
		c.Next = nil
		r.setComputed(all)
	}
}

// Lacks says what is not as this version would have it of computed indexes and their parts. Queries answer rightly all the same: without a part, from
// documents.
func (r *Record) Lacks() (all []string) {
	for _, c := range r.openAll() {
		if c.Unknown != nil {
			all = append(all, fmt.Sprintf("computed index %q: this version does not understand its declaration: %v", c.Name, c.Unknown))
		}
	}
	settled := r.Clone()
	if err := settled.settle(); err != nil {
		return append(all, fmt.Sprintf("the parts of computed indexes: %v", err))
	}
	for i, e := range settled.Indexes {
		switch {
		case i >= len(r.Indexes):
			all = append(all, fmt.Sprintf("index %q of %s, a part of a computed index, is missing: it is built when an index is declared or dropped", e.Name, e.Collection))
		case e.State != r.Indexes[i].State:
			all = append(all, fmt.Sprintf("index %q of %s is a part of no computed index: it is dropped when an index is declared or dropped", e.Name, e.Collection))
		}
	}
	return all
}
