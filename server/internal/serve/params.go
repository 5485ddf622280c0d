package serve

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxParams bounds the parameters of a URL.
const maxParams = 4096

// Params are the parameters of a URL, in their order.
type Params []param

type param struct{ name, value string }

// parseParams reads the query of a URL. Empty parts, as in "?&id=a", are skipped, and so is a
// second question mark, as in "??&id=a", which RavenDB's client for Python sends.
func parseParams(raw string) (Params, error) {
	var ps Params
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" || part == "?" {
			continue
		}
		if len(ps) == maxParams {
			return nil, BadRequest("the URL has more than %d parameters", maxParams)
		}
		name, value, _ := strings.Cut(part, "=")
		p := param{}
		var err error
		if p.name, err = url.QueryUnescape(name); err == nil {
			p.value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, BadRequest("the URL has an invalid escape in %.100q", part)
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// ParseRawParams parses a query whose values are not escaped. An '&' that no name of names
// follows belongs to the value before it.
func ParseRawParams(raw string, names []string) (Params, error) {
	var ps Params
	for part := range strings.SplitSeq(raw, "&") {
		name, value, found := strings.Cut(part, "=")
		if !found || !slices.Contains(names, name) {
			if len(ps) > 0 {
				ps[len(ps)-1].value += "&" + part
			} else if part != "" {
				return nil, BadRequest("the parameter %.100q is not one of %v", name, names)
			}
			continue
		}
		ps = append(ps, param{name, value})
	}
	for i := range ps {
		value, err := url.PathUnescape(ps[i].value)
		if err != nil {
			return nil, BadRequest("the URL has an invalid escape in %.100q", ps[i].value)
		}
		ps[i].value = value
	}
	return ps, nil
}

// Find returns the first value of a parameter.
func (ps Params) Find(name string) (value string, found bool) {
	for _, p := range ps {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// Get returns the first value of a parameter, or "".
func (ps Params) Get(name string) string {
	value, _ := ps.Find(name)
	return value
}

// Every returns the values of a parameter.
func (ps Params) Every(name string) []string {
	var out []string
	for _, p := range ps {
		if p.name == name {
			out = append(out, p.value)
		}
	}
	return out
}

// All returns the values of a parameter that are not empty.
func (ps Params) All(name string) []string {
	var out []string
	for _, p := range ps {
		if p.name == name && p.value != "" {
			out = append(out, p.value)
		}
	}
	return out
}

// Flag reports whether a parameter is true.
func (ps Params) Flag(name string) (bool, error) {
	value, found := ps.Find(name)
	switch {
	case !found || strings.EqualFold(value, "false"):
		return false, nil
	case strings.EqualFold(value, "true"):
		return true, nil
	}
	return false, BadRequest("%s must be true or false, not %.100q", name, value)
}

// Number returns a parameter that is a whole number, or the value of otherwise if it is
// absent or empty.
func (ps Params) Number(name string, otherwise int64) (int64, error) {
	value := ps.Get(name)
	if value == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, BadRequest("%s must be a whole number, not %.100q", name, value)
	}
	return n, nil
}

// Count is like number for a parameter that must not be negative.
func (ps Params) Count(name string, otherwise int) (int, error) {
	n, err := ps.Number(name, int64(otherwise))
	if err == nil && (n < 0 || n > 1<<31-1) {
		err = BadRequest("%s must be between 0 and %d, not %d", name, 1<<31-1, n)
	}
	return int(n), err
}

// Page returns the requested part of a list: all of it without parameters.
func (ps Params) Page() (start, size int, err error) {
	if start, err = ps.Count("start", 0); err == nil {
		size, err = ps.Count("pageSize", math.MaxInt32)
	}
	return start, size, err
}
