package query

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Loads reports whether the field belongs to a loaded document, or is computed from one.
func (f Field) Loads() bool {
	if f.By != nil && f.By.Loads() {
		return true
	}
	if f.Expression != nil {
		return slices.ContainsFunc(f.Expression.Fields(), Field.Loads)
	}
	return f.Path.Loads()
}

// LoadsIn reports whether a condition refers to a loaded document. For most conditions it allocates
// nothing, because every query calls it.
func LoadsIn(e Expr) bool {
	switch e := e.(type) {
	case nil:
		return false
	case And:
		return slices.ContainsFunc(e, LoadsIn)
	case Or:
		return slices.ContainsFunc(e, LoadsIn)
	case Not:
		return LoadsIn(e.Expr)
	case Boost:
		return LoadsIn(e.Expr)
	case Compare, Between, In, StartsWith, EndsWith, Contains, Exists: // they have one field
		f, _ := fieldOf(e)
		return f.Loads()
	default:
		return slices.ContainsFunc(Fields(e), Field.Loads)
	}
}

// loads reports whether the query looks at a document that is loaded.
func (q *Query) loads() bool {
	return LoadsIn(q.Where) || slices.ContainsFunc(q.GroupBy, Field.Loads) ||
		slices.ContainsFunc(q.Select, func(c Column) bool { return c.Field.Loads() }) ||
		slices.ContainsFunc(q.OrderBy, func(o Order) bool { return o.Field.Loads() }) ||
		slices.ContainsFunc(q.Facets, func(f Facet) bool { return f.Field.Loads() })
}

// LoadedPaths returns the paths in fields that lead through references, in the body of a document
// with the fan-out each. It returns ErrCondition if a reference cannot be followed: a field whose
// value is an object with loaded values in it would differ from the stored value, and the elements
// of a Go function refer to nothing.
func LoadedPaths(each Each, fields []Field) (paths []jsonpath.Path, err error) {
	all := plainFields(nil, fields)
	for i, f := range all {
		if f.Meta == MetaElement && !each.IsFunction() {
			if all[i].Path, err = each.pathOf(f); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrCondition, err)
			}
			f.Path = all[i].Path
		}
		if !f.Path.Loads() {
			continue
		}
		if each.IsFunction() {
			return nil, fmt.Errorf("%w: %s: with a Go function nothing is loaded", ErrCondition, f)
		}
		paths = append(paths, all[i].Path)
	}
	if paths == nil {
		return nil, nil
	}
	if each.Path.Loads() {
		return nil, fmt.Errorf("%w: each %s: the elements of a loaded document are none of the document", ErrCondition, each)
	}
	for i, f := range all {
		if f.Meta != MetaNone && f.Meta != MetaElement || isDocument(all[i].Path) {
			continue
		}
		for _, p := range paths {
			if isAround(all[i].Path, p) {
				return nil, fmt.Errorf("%w: %s is around the reference of %s: name the members of it that are wanted", ErrCondition, f, loadString(p))
			}
		}
	}
	return paths, nil
}

// isDocument reports whether a path leads to a loaded document, of which only the type is asked.
func isDocument(path jsonpath.Path) bool { return !path.IsZero() && path.At(path.Len()-1).IsLoad() }

// isAround reports whether the value at a path holds a reference of another one.
func isAround(path, of jsonpath.Path) bool {
	at := membersOf(path)
	for i := range of.Len() {
		if !of.At(i).IsLoad() {
			continue
		}
		to := membersOf(of.Prefix(i))
		if len(at) <= len(to) && slices.Equal(at, to[:len(at)]) {
			return true
		}
	}
	return false
}

// membersOf returns the names of the member steps of a path.
func membersOf(path jsonpath.Path) (names []string) {
	for i := range path.Len() {
		if s := path.At(i); s.Kind == jsonpath.Member {
			names = append(names, s.Name)
		}
	}
	return names
}

// plainFields appends the fields of which others are computed.
func plainFields(to, fields []Field) []Field {
	for _, f := range fields {
		if f.By != nil {
			to = plainFields(to, []Field{*f.By})
			f.By = nil
		}
		if f.Expression != nil {
			to = plainFields(to, f.Expression.Fields())
		} else if !f.isZero() {
			to = append(to, f)
		}
	}
	return to
}

// Loads returns the paths of the query that lead through references: see LoadedPaths.
func (q *Query) Loads() ([]jsonpath.Path, error) {
	if q.Index != "" || !q.loads() && !q.Each.Path.Loads() {
		return nil, nil
	}
	fields := slices.Clone(q.GroupBy)
	for _, c := range q.Select {
		fields = append(fields, c.Field)
	}
	for _, o := range q.OrderBy {
		fields = append(fields, o.Field)
	}
	fields = append(fields, Fields(q.Where)...)
	for _, f := range q.Facets {
		fields = append(fields, f.Field)
	}
	return LoadedPaths(q.Each, fields)
}

// errLoads is the error of a load where there is no other document.
var errLoads = errors.New("load() is for queries and indexes, which have other documents: a single document is decided by itself")

// CheckSingle returns ErrCondition for a condition that refers to a loaded document, which one
// document is not enough to decide.
func CheckSingle(e Expr) error {
	for _, f := range Fields(e) {
		if f.Loads() {
			return fmt.Errorf("%w: %s: %w", ErrCondition, f, errLoads)
		}
	}
	return nil
}
