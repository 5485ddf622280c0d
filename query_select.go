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
	out := Query[R]{via: q.via, tracked: q.tracked, m: q.m, q: q.q, size: q.size, having: q.having, text: q.text, err: q.err, run: q.run, cursor: q.cursor}
	out.q.Select = nil
	if err := checkList(len(columns)); err != nil {
		return out.fail(err)
	}
	for _, text := range columns {
		c, err := parseColumn(&q.q, text)
		if err != nil {
			return out.fail(err)
		}
		out.q.Select = append(out.q.Select, c)
	}
	if len(columns) == 0 {
		return out.fail(fmt.Errorf("%w: Select without columns", ErrQuery))
	}
	if q.tracked {
		out.arrive = q.arrive
	}
	raw := reflect.TypeFor[R]() == reflect.TypeFor[json.RawMessage]()
	single := !raw && isSingle(reflect.TypeFor[R]())
	if single && len(columns) > 1 {
		return out.fail(fmt.Errorf("%w: a %s holds one column, not %d", ErrQuery, reflect.TypeFor[R](), len(columns)))
	}
	if !raw && !single {
		nameID(out.q.Select, reflect.TypeFor[R]())
		for _, c := range out.q.Select {
			if codec.LacksMember(reflect.TypeFor[R](), c.Name) {
				return out.fail(fmt.Errorf("%w: %s has no field for the column %q: add one, or name the column like a field, with \"as\"", ErrQuery, reflect.TypeFor[R](), errs.Shorten(c.Name)))
			}
		}
	}
	out.decode = func(r *exec.Row) (*R, error) {
		v := new(R)
		if raw {
			*any(v).(*json.RawMessage) = r.JSON
			return v, nil
		}
		value := r.JSON
		if single {
			for _, member := range jsonpath.Members(r.JSON) {
				value = member
			}
		}
		if err := json.Unmarshal(value, v); err != nil {
			return nil, &DecodeError{Err: fmt.Errorf("%.100s: %w", r.JSON, err)}
		}
		return v, nil
	}
	return out
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
