package server

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxParams bounds the parameters of a URL.
const maxParams = 4096

// params are the parameters of a URL, in their order.
type params []param

type param struct{ name, value string }

// parseParams reads the query of a URL. Empty parts, as in "?&id=a", are skipped.
func parseParams(raw string) (params, error) {
	var ps params
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		if len(ps) == maxParams {
			return nil, badRequest("the URL has more than %d parameters", maxParams)
		}
		name, value, _ := strings.Cut(part, "=")
		p := param{}
		var err error
		if p.name, err = url.QueryUnescape(name); err == nil {
			p.value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, badRequest("the URL has an invalid escape in %.100q", part)
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// writeParams are the parameters of PUT and DELETE of a document. The Go client does not
// escape them like others: a plus sign is not a blank, and the ID may contain '&' and '='.
var writeParams = []string{"id", raftParam}

// parseWriteParams reads the query of a PUT or DELETE of a document.
func parseWriteParams(raw string) (params, error) { return parseRawParams(raw, writeParams) }

// parseRawParams parses a query whose values are not escaped. An '&' that no name of names
// follows belongs to the value before it.
func parseRawParams(raw string, names []string) (params, error) {
	var ps params
	for part := range strings.SplitSeq(raw, "&") {
		name, value, found := strings.Cut(part, "=")
		if !found || !slices.Contains(names, name) {
			if len(ps) > 0 {
				ps[len(ps)-1].value += "&" + part
			} else if part != "" {
				return nil, badRequest("the parameter %.100q is not one of %v", name, names)
			}
			continue
		}
		ps = append(ps, param{name, value})
	}
	for i := range ps {
		value, err := url.PathUnescape(ps[i].value)
		if err != nil {
			return nil, badRequest("the URL has an invalid escape in %.100q", ps[i].value)
		}
		ps[i].value = value
	}
	return ps, nil
}

// find returns the first value of a parameter.
func (ps params) find(name string) (value string, found bool) {
	for _, p := range ps {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// get returns the first value of a parameter, or "".
func (ps params) get(name string) string {
	value, _ := ps.find(name)
	return value
}

// all returns the values of a parameter that are not empty.
func (ps params) all(name string) []string {
	var out []string
	for _, p := range ps {
		if p.name == name && p.value != "" {
			out = append(out, p.value)
		}
	}
	return out
}

// flag reports whether a parameter is true.
func (ps params) flag(name string) (bool, error) {
	value, found := ps.find(name)
	switch {
	case !found || strings.EqualFold(value, "false"):
		return false, nil
	case strings.EqualFold(value, "true"):
		return true, nil
	}
	return false, badRequest("%s must be true or false, not %.100q", name, value)
}

// number returns a parameter that is a whole number, or the value of otherwise if it is
// absent or empty.
func (ps params) number(name string, otherwise int64) (int64, error) {
	value := ps.get(name)
	if value == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, badRequest("%s must be a whole number, not %.100q", name, value)
	}
	return n, nil
}

// count is like number for a parameter that must not be negative.
func (ps params) count(name string, otherwise int) (int, error) {
	n, err := ps.number(name, int64(otherwise))
	if err == nil && (n < 0 || n > 1<<31-1) {
		err = badRequest("%s must be between 0 and %d, not %d", name, 1<<31-1, n)
	}
	return int(n), err
}

// page returns the requested part of a list: all of it without parameters.
func (ps params) page() (start, size int, err error) {
	if start, err = ps.count("start", 0); err == nil {
		size, err = ps.count("pageSize", math.MaxInt32)
	}
	return start, size, err
}
