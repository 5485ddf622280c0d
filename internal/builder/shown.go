package builder

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Highlight adds a highlight of a field; a length and a count of 0 are the usual ones.
func (q *Definition) Highlight(field string, h query.Highlight) {
	f, err := parseField(field)
	if err == nil {
		h.Field, h.Length, h.Count = f, cmp.Or(h.Length, query.UsualFragment), cmp.Or(h.Count, query.UsualFragments)
		if err = h.Check(); err == nil {
			err = q.Query.AddHighlight(h)
		}
	}
	if err != nil {
		q.fail(fmt.Errorf("%w: highlight: %w", errs.ErrQuery, err))
	}
}

// Suggest returns words of an index that are spelled nearly as a word, or that complete it.
func (q Definition) Suggest(ctx context.Context, field, word string, complete bool, o query.SuggestOptions) ([]query.Suggestion, error) {
	f, err := parseField(field)
	if err != nil {
		return nil, err
	}
	if len(q.Query.Suggests) > 0 || q.cursor != "" || q.Query.HasLimit || q.Query.Offset > 0 {
		return nil, fmt.Errorf("%w: the query asks for words already, or has a page: SuggestOptions.Size is for that", errs.ErrQuery)
	}
	q.Query.Suggests = []query.Suggest{{Name: field, Field: f, Words: []string{word}, Complete: complete, Options: o}}
	found := []query.Suggestion{}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return nil, fmt.Errorf("suggest: %w", err)
		}
		if found, err = query.ParseSuggestions(row.JSON); err != nil {
			return nil, fmt.Errorf("suggest: %w", err)
		}
	}
	return found, nil
}

// AppendMembers appends highlights and an explanation to the JSON of an answer, an object.
func AppendMembers(object []byte, highlights map[string][]string, e *query.Explanation) ([]byte, error) {
	open := bytes.TrimRight(bytes.TrimSuffix(bytes.TrimSpace(object), []byte{'}'}), " \t\r\n")
	out := bytes.Clone(open)
	add := func(name string, v any) error {
		raw, err := plainJSON(v)
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), `":`...), raw...)
		return nil
	}
	if highlights != nil {
		if err := add("@highlights", highlights); err != nil {
			return nil, err
		}
	}
	if e != nil {
		if err := add("@explanation", e); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// plainJSON returns the JSON of a value, in which < and > are as they are: whoever encodes the answer decides.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
