package builder

import "github.com/jaydb/jay/query"

// Place is true if a place that the field reaches lies so to a shape, or the mistake in that.
func Place(field string, r query.Relation, s query.Shape, err error) Condition {
	if err != nil {
		return refused(err)
	}
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	return checked(query.Place{Field: f, Relation: r, Shape: s})
}
