package patch

import (
	"encoding/json"
	"fmt"
)

// carried is the JSON of an edit. Values are texts of JSON, so that no encoder on the way rewrites their bytes.
type carried struct {
	Verb       string   `json:"verb"`
	Path       string   `json:"path,omitempty"`
	Name       string   `json:"name,omitempty"`
	Amount     string   `json:"amount,omitempty"`
	Values     []string `json:"values,omitempty"`
	Operations string   `json:"operations,omitempty"` // a JSON Patch
	Strict     bool     `json:"strict,omitempty"`
}

// MarshalJSON returns the edit as an object, from which UnmarshalJSON makes an equivalent edit. It
// returns the error of the arguments of the edit (Err). It returns an *Error for an edit of
// RemoveWhere, whose condition may be any Go value.
func (e Edit) MarshalJSON() ([]byte, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	if e.where != nil {
		return nil, &Error{Rule: "an edit with a condition is none that JSON holds", Detail: e.String()}
	}
	c := carried{Verb: e.verb, Name: e.name, Amount: string(e.amount.text), Strict: e.strict}
	if !e.path.IsZero() {
		c.Path = e.path.String()
	}
	for _, value := range e.values {
		c.Values = append(c.Values, string(value))
	}
	if e.verb == verbOperations {
		c.Operations = string(appendOperations(nil, e.ops))
	}
	return json.Marshal(c)
}

// appendOperations appends a JSON Patch.
func appendOperations(dst []byte, ops []operation) []byte {
	dst = append(dst, '[')
	for i, op := range ops {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, `{"op":%s,"path":%s`, quoted(op.kind), quoted(op.path.text))
		switch op.kind {
		case "move", "copy":
			dst = fmt.Appendf(dst, `,"from":%s`, quoted(op.from.text))
		case "add", "replace", "test":
			dst = fmt.Appendf(dst, `,"value":%s`, op.value)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// quoted returns a text as JSON.
func quoted(text string) []byte {
	raw, _ := json.Marshal(text) // a text always has one
	return raw
}

// UnmarshalJSON sets e to the edit of an object that MarshalJSON has returned. It returns an *Error
// for an object of another form, and for arguments that the constructor of the edit refuses. Then e
// is unchanged.
func (e *Edit) UnmarshalJSON(text []byte) error {
	var c carried
	if err := json.Unmarshal(text, &c); err != nil {
		return &Error{Rule: "the JSON of an edit must be an object of its members", Detail: fmt.Sprintf("%.200s", err)}
	}
	made, err := c.edit()
	if err != nil {
		return err
	}
	if err := made.Err(); err != nil {
		return err
	}
	*e = made
	return nil
}

// edit returns the edit that c describes.
func (c *carried) edit() (e Edit, err error) {
	values := make([]any, len(c.Values))
	for i, text := range c.Values {
		values[i] = json.RawMessage(text)
	}
	one := func(n int) error {
		if len(values) != n {
			return &Error{Rule: fmt.Sprintf("the JSON of an edit must have %d values", n), Path: c.Path, Detail: fmt.Sprintf("%s has %d", c.Verb, len(values))}
		}
		return nil
	}
	switch c.Verb {
	case verbSet:
		if err := one(1); err != nil {
			return e, err
		}
		e = Set(c.Path, values[0])
	case verbUnset:
		e = Unset(c.Path)
	case verbIncrement:
		e = Increment(c.Path, json.Number(c.Amount))
	case verbAppend:
		e = Append(c.Path, values...)
	case verbAddToSet:
		e = AddToSet(c.Path, values...)
	case verbRemove:
		e = Remove(c.Path, values...)
	case verbPopFirst:
		e = PopFirst(c.Path)
	case verbPopLast:
		e = PopLast(c.Path)
	case verbRename:
		e = Rename(c.Path, c.Name)
	case verbMerge:
		if err := one(1); err != nil {
			return e, err
		}
		e = Merge([]byte(c.Values[0]))
	case verbOperations:
		e = JSONPatch([]byte(c.Operations))
	default:
		return e, &Error{Rule: "the JSON of an edit must name one that there is", Detail: fmt.Sprintf("%.60q", c.Verb)}
	}
	if c.Strict {
		e = Strict(e)
	}
	return e, nil
}
