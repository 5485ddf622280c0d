package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/query"
)

// CreateCommand returns the command that creates an index.
func CreateCommand(collection string, ix *index.Index) string {
	fields := shellWord(strings.Join(ix.Fields, ","))
	if strings.HasPrefix(ix.Fields[0], "-") {
		fields = "-- " + fields
	}
	return fmt.Sprintf("jay index create %s %s", shellWord(collection), fields)
}

// shellWord returns s as one word for a shell.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/.,_@-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Suggestion returns an index that would save the query a scan, or nil.
func (r *Run) Suggestion() *index.Index {
	if !r.plan.IsScan() || r.q.From == "" || r.q.NoIndex || r.plan.Chosen {
		return nil
	}
	ix := &index.Index{}
	add := func(f query.Field, descending bool) {
		text := catalog.FieldText(f)
		if f.Date > query.DateInstant { // no index holds parts of dates
			return
		}
		if f.Meta != query.MetaNone || len(ix.Fields) >= catalog.MaxFields || slices.Contains(ix.Fields, text) || slices.Contains(ix.Fields, "-"+text) {
			return
		}
		if descending {
			text = "-" + text
		}
		ix.Fields = append(ix.Fields, text)
	}
	var ranges []query.Field
	for _, e := range r.plan.Conjuncts {
		switch e := e.(type) {
		case query.Compare:
			if e.Op == query.Equal {
				add(e.Field, false)
			} else {
				ranges = append(ranges, e.Field)
			}
		case query.In:
			if len(e.Values) <= plan.MaxRanges {
				add(e.Field, false)
			}
		case query.Between:
			ranges = append(ranges, e.Field)
		case query.StartsWith:
			ranges = append(ranges, e.Field)
		}
	}
	// An index serves the order or bounds a range, seldom both. With a limit the
	// order is the better of the two.
	ranges = slices.DeleteFunc(ranges, func(f query.Field) bool { return f.Meta != query.MetaNone || f.Date > query.DateInstant })
	if orders := r.indexableOrders(); len(orders) > 0 && (r.q.HasLimit || len(ranges) == 0) {
		for _, o := range orders {
			add(o.Field, o.Descending)
		}
	} else if len(ranges) > 0 {
		add(ranges[0], false)
	}
	if len(ix.Fields) == 0 {
		return nil
	}
	return ix
}

// indexableOrders returns the orders of the query if an index could have them,
// else none.
func (r *Run) indexableOrders() []query.Order {
	if len(r.q.OrderBy) == 0 || IsGrouped(r.q) {
		return nil
	}
	orders := r.plan.Orders
	if slices.ContainsFunc(orders, func(o query.Order) bool {
		return o.As != query.CastNone || o.Field.Meta != query.MetaNone || o.Field.Date > query.DateInstant
	}) {
		return nil
	}
	return orders
}

func (r *Run) suggestionText() string {
	if ix := r.Suggestion(); ix != nil {
		return "; " + CreateCommand(r.q.From, ix) + " would help"
	}
	return ""
}
