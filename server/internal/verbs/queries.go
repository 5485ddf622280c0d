package verbs

import (
	"encoding/json"
	"math"
	"regexp"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// QueryPage is a part of the results of a query; nil is from the first on, or to the last.
type QueryPage struct{ Start, PageSize *int }

// Check refuses negative numbers.
func (p QueryPage) Check() error {
	for name, n := range map[string]*int{"Start": p.Start, "PageSize": p.PageSize} {
		if n != nil && *n < 0 {
			return serve.BadRequest("%s must not be negative: %d", name, *n)
		}
	}
	return nil
}

// Of limits a query to the page.
func (p QueryPage) Of(q jay.Query[jay.Row]) jay.Query[jay.Row] {
	if p.Start != nil && *p.Start > 0 {
		q = q.Skip(*p.Start)
	}
	if p.PageSize != nil && *p.PageSize < math.MaxInt32 {
		q = q.Limit(*p.PageSize)
	}
	return q
}

// More returns the page with one more result, if it is bounded. That one shows whether results follow the page.
func (p QueryPage) More() QueryPage {
	if p.PageSize != nil && *p.PageSize > 0 && *p.PageSize < math.MaxInt32 {
		n := *p.PageSize + 1
		p.PageSize = &n
	}
	return p
}

// Full reports whether n results are all that the page has room for.
func (p QueryPage) Full(n int) bool { return p.PageSize != nil && n >= *p.PageSize }

// Total returns how many results a query has on all pages, if n are on this one and none follows it. known is false if that cannot be told: an empty page
// may begin after the last result, and a page of size 0 shows nothing.
func (p QueryPage) Total(n int) (total int64, known bool) {
	if p.Start != nil && *p.Start > 0 {
		return int64(*p.Start) + int64(n), n > 0
	}
	return int64(n), n > 0 || !p.Full(0)
}

// Parameters returns the values of the parameters that the query uses: clients may send
// others. Numbers keep all their digits.
func Parameters(c *serve.Call, query string, given map[string]json.RawMessage) (map[string]any, error) {
	used := make(map[string]bool)
	for _, name := range parameterName.FindAllString(query, -1) {
		used[name[1:]] = true
	}
	out := make(map[string]any)
	for name, text := range given {
		if !used[name] {
			continue
		}
		n, err := serve.AnyBytes(text)
		if err == nil {
			err = c.Take(n)
		}
		if err != nil {
			return nil, err
		}
		var value any
		if err := serve.DecodeNumbers(text, &value); err != nil {
			return nil, serve.BadRequest("the parameter %.100q is not JSON: %v", name, err)
		}
		out[name] = value
	}
	return out, nil
}

// parameterName matches the parameters in a query.
var parameterName = regexp.MustCompile(`\$[\pL_][\pL\pN_]*`)

// PageWords matches every query with a page in its text. A false match costs only a count.
var PageWords = regexp.MustCompile(`(?i)limit|offset`)
