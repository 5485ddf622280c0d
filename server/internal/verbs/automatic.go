package verbs

import (
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// Automatic returns the indexes that queries have made (jay.Options.AutoIndexes), each name once, in the order of their
// names in RavenDB's notation.
func Automatic(c *serve.Call) (list []jay.IndexInfo, err error) {
	all, err := c.DB.Indexes(c.Ctx, "")
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(ix jay.IndexInfo) bool { return !ix.Automatic })
	slices.SortStableFunc(all, func(a, b jay.IndexInfo) int { return strings.Compare(AutomaticName(a), AutomaticName(b)) })
	return slices.CompactFunc(all, func(a, b jay.IndexInfo) bool { return AutomaticName(a) == AutomaticName(b) }), nil
}

// AutomaticName returns the name of an automatic index as RavenDB makes it: Auto/Users/ByAgeAndName.
func AutomaticName(ix jay.IndexInfo) string {
	var fields []string
	for _, f := range AutomaticFields(ix) {
		fields = append(fields, strings.Map(func(r rune) rune {
			if r == '.' || r == '[' || r == ']' || r == ' ' {
				return '_'
			}
			return r
		}, f))
	}
	slices.Sort(fields)
	return "Auto/" + ix.Collection + "/By" + strings.Join(fields, "And")
}

// AutomaticFields returns the fields of an index, without directions and dates.
func AutomaticFields(ix jay.IndexInfo) (fields []string) {
	for _, f := range ix.Fields {
		f = strings.TrimPrefix(f, "-")
		for _, as := range []string{" as date", " as utc"} {
			f = strings.TrimSuffix(f, as)
		}
		if !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	return fields
}

// FindAutomatic returns the automatic index that a name in RavenDB's notation names, or nil.
func FindAutomatic(c *serve.Call, name string) (*jay.IndexInfo, error) {
	if !strings.HasPrefix(strings.ToLower(name), "auto/") {
		return nil, nil
	}
	list, err := Automatic(c)
	if err != nil {
		return nil, err
	}
	for _, ix := range list {
		if strings.EqualFold(AutomaticName(ix), name) {
			return &ix, nil
		}
	}
	return nil, nil
}
