package builder

import (
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// keyText is the only field of a GroupBy.
const keyText = "key()"

// parseField parses a field as the builder takes it, or a function of groups.
func parseField(text string) (query.Field, error) {
	if path, as := catalog.CutDate(text); as != "" {
		f, err := parseField(path)
		switch {
		case err != nil:
		case f.Meta != query.MetaNone && f.Meta != query.MetaLastModified || f.Date != query.DateNone:
			err = fmt.Errorf("%w: %s is no date", errs.ErrQuery, errs.Shorten(path))
		}
		f.Date, f.UTC = query.DateInstant, as == catalog.AsUTC
		return f, err
	}
	if f, isPart, err := parsePart(text); isPart {
		return f, err
	}
	if strings.EqualFold(text, "id()") {
		return query.Field{Meta: query.MetaID}, nil
	}
	if strings.EqualFold(text, "score()") {
		return query.Field{Meta: query.MetaScore}, nil
	}
	if strings.HasSuffix(text, ")") {
		c, err := parseColumn(new(query.Query), text)
		if err != nil {
			return query.Field{}, err
		}
		c.Field.Func = c.Func
		return c.Field, nil
	}
	p, err := jsonpath.Parse(text)
	if err != nil {
		if f, err := query.ParseExpression(text); err == nil && f.Expression != nil { // Price * Quantity is no path
			return f, nil
		}
		return query.Field{}, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	f, err := query.NewField(p)
	if err != nil {
		return query.Field{}, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return f, nil
}

// parsePart parses a part of a date, such as month(At). It reports whether text is
// one.
func parsePart(text string) (f query.Field, isPart bool, err error) {
	name, rest, found := strings.Cut(text, "(")
	path, closed := strings.CutSuffix(rest, ")")
	if !found || !closed {
		return f, false, nil
	}
	d := query.DateNone
	switch strings.ToLower(name) {
	case "year":
		d = query.DateYear
	case "month":
		d = query.DateMonth
	case "day":
		d = query.DateDay
	case "hour":
		d = query.DateHour
	}
	if d == query.DateNone {
		return f, false, nil
	}
	path, zone := cutZone(path)
	if f, err = parseField(path); err != nil {
		return f, true, err
	}
	if zone != "" {
		if f.Zone, err = query.LoadZone(zone[1 : len(zone)-1]); err != nil {
			return f, true, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
	}
	if f.Date != query.DateNone && !(f.UTC && f.Date == query.DateInstant) || f.Meta != query.MetaNone && f.Meta != query.MetaLastModified {
		return f, true, fmt.Errorf("%w: %s is no date", errs.ErrQuery, errs.Shorten(path))
	}
	f.Date = d
	return f, true, nil
}

// cutZone cuts the time zone, in its quotes, off the arguments of a part of a date: At, 'Europe/Zurich'. A comma in a quoted name of
// a member has no quote right behind it.
func cutZone(arguments string) (path, zone string) {
	i := strings.LastIndexByte(arguments, ',')
	if i < 0 {
		return arguments, ""
	}
	zone = strings.TrimSpace(arguments[i+1:])
	if len(zone) < 2 || zone[0] != '\'' && zone[0] != '"' || zone[len(zone)-1] != zone[0] {
		return arguments, ""
	}
	return strings.TrimSpace(arguments[:i]), zone
}

// parseColumn reads a column of a query as RQL writes it.
func parseColumn(of *query.Query, text string) (query.Column, error) {
	from := "from '@all_docs' "
	if name, _, found := strings.Cut(text, "("); found && strings.EqualFold(strings.TrimSpace(name), "key") {
		for i, f := range of.GroupBy {
			from += [...]string{"group by ", ", "}[min(i, 1)] + f.String() + " "
		}
	}
	q, err := query.Parse(from+"select "+text, nil)
	if err != nil {
		return query.Column{}, fmt.Errorf("%w: column %q: %w", errs.ErrQuery, errs.Shorten(text), err)
	}
	if len(q.Select) != 1 || q.Distinct || q.HasLimit || q.Offset > 0 || q.IncludesMore() {
		return query.Column{}, fmt.Errorf("%w: %q is not one column", errs.ErrQuery, errs.Shorten(text))
	}
	return q.Select[0], nil
}
