package builder

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// Select makes answers of a type of columns. It reports whether the type takes
// their JSON as it is, or the value of a single one.
func (q *Definition) Select(columns []string, t reflect.Type) (raw, single bool) {
	q.Answers, q.Shows, q.Progress = t, false, nil
	if !q.Tracked {
		q.Arrive = nil
	}
	q.Query.Select = nil
	raw = t == reflect.TypeFor[json.RawMessage]()
	single = !raw && isSingle(t)
	if err := q.parseColumns(columns); err != nil {
		q.fail(err)
		return raw, single
	}
	if single && len(columns) > 1 {
		q.fail(fmt.Errorf("%w: a %s holds one column, not %d", errs.ErrQuery, t, len(columns)))
	}
	if raw || single {
		return raw, single
	}
	nameID(q.Query.Select, t)
	for _, c := range q.Query.Select {
		if codec.LacksMember(t, c.Name) {
			q.fail(fmt.Errorf("%w: %s has no field for the column %q: add one, or name the column like a field, with \"as\"", errs.ErrQuery, t, errs.Shorten(c.Name)))
		}
	}
	return raw, single
}

func (q *Definition) parseColumns(columns []string) error {
	if err := checkList(len(columns)); err != nil {
		return err
	}
	if len(columns) == 0 {
		return fmt.Errorf("%w: Select without columns", errs.ErrQuery)
	}
	parsed := make([]query.Column, 0, len(columns))
	for _, text := range columns {
		c, err := parseColumn(&q.Query, text)
		if err != nil {
			return err
		}
		parsed = append(parsed, c)
	}
	q.Query.Select = parsed
	return nil
}

// DecodeColumns decodes the columns of a row, or the value of the single one, into v.
func DecodeColumns(r *exec.Row, single bool, v any) error {
	value := r.JSON
	if single {
		for _, member := range jsonpath.Members(r.JSON) {
			value = member
		}
	}
	if err := json.Unmarshal(value, v); err != nil {
		return &metadata.DecodeError{Err: fmt.Errorf("%.100s: %w", r.JSON, err)}
	}
	return nil
}

// isSingle reports whether a type takes the value of one column, and no object of
// columns: text, a number, a boolean, a list, time.Time.
func isSingle(t reflect.Type) bool {
	t = codec.Pointed(t)
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return false
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Interface:
		return false
	}
	return true
}

// nameID gives the column id() the name of the field of a struct that takes an ID,
// unless it was given another or the field has a column.
func nameID(columns []query.Column, t reflect.Type) {
	if t = codec.Pointed(t); t.Kind() != reflect.Struct {
		return
	}
	name := codec.IDName(t)
	if name == "" || slices.ContainsFunc(columns, func(c query.Column) bool { return c.Name == name }) {
		return
	}
	for i, c := range columns {
		if c.Field.Meta == query.MetaID && c.Func == query.FuncNone && c.Name == "id()" {
			columns[i].Name = name
			return
		}
	}
}
