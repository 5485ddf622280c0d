package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/metadata"
)

// Canonical validates a declaration and returns it in canonical form.
func Canonical(ix index.Index, collection string) (index.Index, error) {
	if err := metadata.CheckCollection(collection); err != nil || collection == "" {
		return ix, errs.First(err, fmt.Errorf("%w: an index needs a collection", errs.ErrIndex))
	}
	kind, known := kindOf(ix.Kind)
	if !known {
		return ix, &index.KindError{Index: ix.Name, Collection: collection, Kind: ix.Kind, Known: knownKinds()}
	}
	if len(ix.Fields) == 0 || len(ix.Fields) > MaxFields {
		return ix, fmt.Errorf("%w: an index has 1 to %d fields, not %d", errs.ErrIndex, MaxFields, len(ix.Fields))
	}
	fields := make([]string, len(ix.Fields))
	seen := make(map[string]bool)
	for i, text := range ix.Fields {
		f, err := kind.parseField(strings.TrimSpace(text))
		if err != nil {
			return ix, fmt.Errorf("%w: %w", errs.ErrIndex, err)
		}
		if kind.Field == nil && isOutside(f.path) {
			return ix, fmt.Errorf("%w: %s is no field of the body, and cannot be indexed; orders and ranges by id() and @metadata.@etag need no index", errs.ErrIndex, f.Text)
		}
		if seen[f.Text] {
			return ix, fmt.Errorf("%w: field %s is there twice", errs.ErrIndex, f.Text)
		}
		seen[f.Text] = true
		fields[i] = f.Text
		if f.Descending {
			fields[i] = "-" + f.Text
		}
	}
	ix.Fields = fields
	ix.Where = strings.TrimSpace(ix.Where)
	if ix.Name = strings.TrimSpace(ix.Name); ix.Name == "" {
		ix.Name = DefaultName(fields, ix.Where)
	}
	if len(ix.Name) > MaxName || strings.ContainsFunc(ix.Name, func(r rune) bool { return r < ' ' }) {
		return ix, fmt.Errorf("%w: the name %q has more than %d bytes or control characters", errs.ErrIndex, errs.Shorten(ix.Name), MaxName)
	}
	var err error
	if ix.Options, err = kind.canonical(ix, collection); err != nil {
		return ix, err
	}
	opened, err := Open(RecordEntry{Info: index.Info{Index: ix, Collection: collection}})
	if err == nil {
		err = opened.Unknown
	}
	return ix, err
}

// isOutside reports whether a path leads to what is kept beside the body.
func isOutside(p jsonpath.Path) bool {
	return !p.IsZero() && (p.At(0).Name == "id()" || p.At(0).Name == "@metadata")
}

// DefaultName returns the name of an index that is declared without one.
func DefaultName(fields []string, where string) string {
	name := strings.Join(fields, ",")
	if where != "" {
		name += " where " + where
	}
	return Cut(name, MaxName)
}

// Cut returns s, shortened to at most n bytes of valid UTF-8.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// IsSame reports whether two declarations describe the same index, whatever their
// names.
func IsSame(ix, other index.Index) bool {
	return slices.Equal(ix.Fields, other.Fields) && ix.Unique == other.Unique && ix.Where == other.Where && ix.Kind == other.Kind && maps.Equal(ix.Options, other.Options)
}
