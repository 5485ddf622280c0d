package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Path is an access path: key ranges of one index.
type Path struct {
	Index    *catalog.Index
	flags    byte
	Ranges   []KeyRange // of whole keys, in rising order
	Equal    int        // leading fields that are bound to single values
	bounded  bool       // a further field is bound to a range
	used     []int      // the conjuncts that the ranges implement
	exact    []int      // those of them that the ranges decide exactly, without a check on the document
	estimate int        // entries in the ranges, up to a bound
	more     bool       // there are more than estimate
	covers   bool       // the entries have all that the query looks at, apart from what the ranges decide
}

// addPath adds the path of an index, if the conjuncts bind its fields or the order
// uses it.
func (p *planner) addPath(ix *catalog.Index) error {
	if !p.appliesTo(ix.Fields[0]) && !p.covers(&Path{Index: ix}) {
		return nil // saves reading its flags
	}
	flags, err := catalog.ReadFlags(p.snapshot, ix.Number)
	if err != nil {
		return err
	}

	// Bind the fields of the index from the first on. A field can follow only fields
	// that are bound to single values: behind a range the keys are not in its order.
	a := &Path{Index: ix, flags: flags}
	prefixes := []KeyRange{{Lo: format.AppendIndexPrefix(nil, ix.Number)}}
	for i, f := range ix.Fields {
		bound := p.bind(f, flags)
		if bound == nil || len(prefixes)*len(bound.ranges) > MaxRanges {
			break
		}
		extended := extend(prefixes, bound.ranges)
		point := bound.point
		// Texts that are equal but for case are neighbours, and not one value. The lookup of
		// the variants that exist is worth its keys if fields follow, or the order of IDs.
		if bound.equal && !point && (i+1 < len(ix.Fields) || p.idOrder()) {
			variants, err := p.caseVariants(extended)
			if err != nil {
				return err
			}
			if variants != nil {
				extended, point = variants, true
			}
		}
		prefixes = extended
		a.used = append(a.used, bound.used...)
		if !bound.recheck {
			a.exact = append(a.exact, bound.used...)
		}
		if !point {
			a.bounded = true
			break
		}
		a.Equal++
	}

	// Ranges that several values of a list share must not be walked twice.
	for _, r := range prefixes {
		if r.Hi == nil {
			r.Hi = format.PrefixEnd(r.Lo)
		}
		a.Ranges = append(a.Ranges, r)
	}
	slices.SortFunc(a.Ranges, func(x, y KeyRange) int { return bytes.Compare(x.Lo, y.Lo) })
	a.Ranges = slices.CompactFunc(a.Ranges, func(x, y KeyRange) bool { return bytes.Equal(x.Lo, y.Lo) && bytes.Equal(x.Hi, y.Hi) })
	a.covers = p.covers(a)
	if len(a.used) > 0 || p.orderBy(a) != orderNone || a.replacesScan() {
		p.paths = append(p.paths, a)
	}
	return nil
}

// replacesScan reports whether walking over the whole index gives what a scan
// gives, each document once.
func (a *Path) replacesScan() bool { return a.covers && a.flags&catalog.FlagMultiple == 0 }

// Binds reports whether the path binds a field to one value.
func (a *Path) Binds(field query.Field) bool {
	for i, f := range a.Index.Fields {
		if i < a.Equal && f.Is(field) {
			return true
		}
	}
	return false
}

// IsMinMax reports whether the query asks only for the minimum and the maximum of
// the field by which the entries of the path are ordered.
func (a *Path) IsMinMax(q *query.Query) bool {
	if len(q.GroupBy) > 0 || q.Having != nil || a.flags&(catalog.FlagMultiple|catalog.FlagCut) != 0 || a.Equal >= len(a.Index.Fields) {
		return false
	}
	return !slices.ContainsFunc(q.Select, func(c query.Column) bool {
		return c.Func != query.FuncMin && c.Func != query.FuncMax || !a.Index.Fields[a.Equal].Is(c.Field)
	})
}

// MayRepeat reports whether the ranges may lead to one document twice.
func (a *Path) MayRepeat() bool {
	return a.flags&catalog.FlagMultiple != 0 && (len(a.Ranges) > 1 || len(a.Index.Fields) > 1 || !a.isPoints())
}

// isPoints reports whether each range holds the entries of one value, so that no
// document is in it twice.
func (a *Path) isPoints() bool { return a.Equal == len(a.Index.Fields) && !a.bounded }

// String describes a path, for Explain.
func (a *Path) String() string {
	text := fmt.Sprintf("index %q", a.Index.Info.Name)
	if len(a.used) == 0 {
		return text + ", all of it"
	}
	if len(a.Ranges) == 1 {
		return text + ", one range"
	}
	return fmt.Sprintf("%s, %d ranges", text, len(a.Ranges))
}

// maxCaseVariants is how many case variants of equal texts a path distinguishes.
const maxCaseVariants = 16

// caseVariants replaces ranges of texts that are equal but for case by one range for
// each variant that the index has, usually one. Then the fields after it can be
// bound, and the order of the index used. It returns nil if there are many
// variants.
func (p *planner) caseVariants(ranges []KeyRange) ([]KeyRange, error) {
	out := []KeyRange{}
	for _, r := range ranges {
		if r.Hi == nil {
			out = append(out, r) // the value has no case variants
			continue
		}
		it, err := p.snapshot.Iterate(r.Lo, r.Hi)
		if err != nil {
			return nil, err
		}
		few := true
		for ok := it.First(); ok && few; ok = it.SeekGE(format.PrefixEnd(out[len(out)-1].Lo)) {
			p.keys++
			rest, found := query.SkipKey(it.Key()[r.at:])
			if !found {
				return nil, errors.Join(fmt.Errorf("index entry %x: %w", it.Key(), storage.ErrCorrupt), it.Close())
			}
			out = append(out, KeyRange{Lo: bytes.Clone(it.Key()[:len(it.Key())-len(rest)])})
			few = len(out) <= maxCaseVariants
		}
		if err := errs.First(it.Error(), it.Close()); err != nil || !few {
			return nil, err
		}
	}
	return out, nil
}

// extend appends ranges of one field to those of the fields before it.
func extend(prefixes []KeyRange, ranges []query.KeyRange) []KeyRange {
	out := make([]KeyRange, 0, len(prefixes)*len(ranges))
	for _, prefix := range prefixes {
		for _, r := range ranges {
			lo := append(bytes.Clone(prefix.Lo), r.Lo...)
			hi := append(bytes.Clone(prefix.Lo), r.Hi...)
			if isPoint(r) {
				hi = nil // everything after Lo: kept open for the next field
			}
			out = append(out, KeyRange{Lo: lo, Hi: hi, at: len(prefix.Lo)})
		}
	}
	return out
}
