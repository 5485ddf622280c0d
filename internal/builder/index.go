package builder

import (
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// CheckIndex refuses an index of a typed collection if a field or the condition names a member that the JSON of the type does not have: the index would be empty.
// It does not report what cannot be parsed: declaring the index does. It checks neither the options nor, with the option "each", the fields, which are then members
// of elements.
func CheckIndex(m *codec.Mapping, x index.Index) error {
	if m.AnyField {
		return nil
	}
	check := func(place, text string) func(f query.Field) error {
		members := membersOf(m, fmt.Errorf("%w %q, %s %q", errs.ErrIndex, x.Name, place, text))
		return func(f query.Field) error {
			if f.Loads() || f.IsOfElement() {
				return nil
			}
			return members(f)
		}
	}
	fields := x.Fields
	if x.Options["each"] != "" {
		fields = nil
	}
	for _, text := range fields {
		f, err := catalog.QueryField(text)
		if err != nil {
			continue
		}
		if err := check("field", text)(f); err != nil {
			return err
		}
	}
	condition, err := query.ParseCondition(x.Where, nil)
	if x.Where == "" || err != nil {
		return nil
	}
	return query.EachField(condition, check("condition", x.Where))
}
