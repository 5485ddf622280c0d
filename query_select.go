package jay

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
	"github.com/jaydb/jay/query"
)

// Select asks for columns instead of whole documents, as values of R: a struct, a map or
// json.RawMessage, or for one column its value: a string, a number, a time, a slice.
// Without another name, id() goes into the field of a struct that takes an ID. A column is a path, "id()" or one of
// count(), sum(path), avg(path), min(path) and max(path); "Total as Sum" gives
// it another name. A name that is a keyword of RQL stands in quotes: "month('from')". A
// struct must have a field for each column. Functions make one answer of all documents, or one of each
// group of GroupBy.
func Select[R, T any](q Query[T], columns ...string) Query[R] {
	out := Query[R]{def: q.def}
	raw, single := out.def.selectColumns(columns, reflect.TypeFor[R]())
	out.decode = func(r *exec.Row) (*R, error) {
		v := new(R)
		if raw {
			*any(v).(*json.RawMessage) = r.JSON
			return v, nil
		}
		if err := decodeColumns(r, single, v); err != nil {
			return nil, err
		}
		return v, nil
	}
	return out
}

// selectColumns makes answers of a type of columns. It reports whether the type takes
// their JSON as it is, or the value of a single one.
func (q *definition) selectColumns(columns []string, t reflect.Type) (raw, single bool) {
	q.answers, q.progress = t, nil
	if !q.tracked {
		q.arrive = nil
	}
	q.q.Select = nil
	raw = t == reflect.TypeFor[json.RawMessage]()
	single = !raw && isSingle(t)
	if err := q.parseColumns(columns); err != nil {
		q.fail(err)
		return raw, single
	}
	if single && len(columns) > 1 {
		q.fail(fmt.Errorf("%w: a %s holds one column, not %d", ErrQuery, t, len(columns)))
	}
	if raw || single {
		return raw, single
	}
	nameID(q.q.Select, t)
	for _, c := range q.q.Select {
		if codec.LacksMember(t, c.Name) {
			q.fail(fmt.Errorf("%w: %s has no field for the column %q: add one, or name the column like a field, with \"as\"", ErrQuery, t, errs.Shorten(c.Name)))
		}
	}
	return raw, single
}

func (q *definition) parseColumns(columns []string) error {
	if err := checkList(len(columns)); err != nil {
		return err
	}
	if len(columns) == 0 {
		return fmt.Errorf("%w: Select without columns", ErrQuery)
	}
	parsed := make([]query.Column, 0, len(columns))
	for _, text := range columns {
		c, err := parseColumn(&q.q, text)
		if err != nil {
			return err
		}
		parsed = append(parsed, c)
	}
	q.q.Select = parsed
	return nil
}

// decodeColumns decodes the columns of a row, or the value of the single one, into v.
func decodeColumns(r *exec.Row, single bool, v any) error {
	value := r.JSON
	if single {
		for _, member := range jsonpath.Members(r.JSON) {
			value = member
		}
	}
	if err := json.Unmarshal(value, v); err != nil {
		return &DecodeError{Err: fmt.Errorf("%.100s: %w", r.JSON, err)}
	}
	return nil
}

// isSingle reports whether a type takes the value of one column, and no object of
// columns: text, a number, a boolean, a list, time.Time.
func isSingle(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
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
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
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
