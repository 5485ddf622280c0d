package builder

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/spelling"
	"github.com/jaydb/jay/query"
)

// Check returns the error of what the query was made of, or ids.ErrUsage for one that was
// not made by a method.
func (q Definition) Check() error {
	if q.Err == nil && q.Via == nil {
		return fmt.Errorf("%w: this Query is a zero value: Collection.Query, DB.Query, DB.RQL and QueryOf make one", ids.ErrUsage)
	}
	return q.Err
}

// complete returns the query in the form in which it is run.
func (q Definition) complete() (Definition, error) {
	if err := q.Check(); err != nil {
		return q, err
	}
	if err := q.resolveEach(); err != nil {
		return q, err
	}
	if err := q.resolveGroups(); err != nil {
		return q, err
	}
	if err := q.checkNames(); err != nil {
		return q, err
	}
	if err := q.checkIncludes(); err != nil {
		return q, err
	}
	q, err := q.dated()
	if err != nil || q.cursor == "" {
		return q, err
	}
	if err := q.checkPaging(); err != nil {
		return q, err
	}
	if len(q.Query.OrderBy) == 0 && q.Query.Index == "" {
		q.OrderBy([]string{"id()"})
	}
	q.Query.Offset = 0
	q.run.After, err = exec.ParseCursor(q.cursor, &q.Query)
	return q, err
}

// resolveEach makes what was added to the text of a query with each ask of its elements, too.
func (q *Definition) resolveEach() error {
	if q.Query.Each.IsZero() {
		return nil
	}
	err := q.Query.ResolveEach()
	if err == nil && q.having.expr != nil {
		q.having.expr, err = q.Query.Each.Condition(q.having.expr)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return nil
}

// checkNames refuses members that the documents of a typed collection never have.
func (q Definition) checkNames() error {
	if q.Mapping == nil || q.Mapping.AnyField {
		return nil
	}
	check := membersOf(q.Mapping, errs.ErrQuery)
	if err := query.EachField(q.Query.Where, check); err != nil {
		return err
	}
	if err := query.EachField(q.Query.Having, check); err != nil {
		return err
	}
	for _, f := range q.Query.GroupBy {
		if err := check(f); err != nil {
			return err
		}
	}
	for _, c := range q.Query.Select {
		if err := check(c.Field); err != nil {
			return err
		}
		if c.Field.By != nil {
			if err := check(*c.Field.By); err != nil {
				return err
			}
		}
	}
	for _, o := range q.Query.OrderBy {
		if err := check(o.Field); err != nil {
			return err
		}
	}
	for i := range q.Query.Suggests {
		if err := check(q.Query.Suggests[i].Field); err != nil {
			return err
		}
	}
	for i := range q.Query.Highlights {
		if err := check(q.Query.Highlights[i].Field); err != nil {
			return err
		}
	}
	for _, p := range q.Query.Include {
		if err := checkMember(q.Mapping, p, errs.ErrQuery); err != nil {
			return err
		}
	}
	return nil
}

// membersOf returns a function that checks the members of a field, or of an expression. Its errors are of a kind.
func membersOf(m *codec.Mapping, kind error) func(f query.Field) error {
	member := func(f query.Field) error {
		if f.Meta != query.MetaNone || f.Path.IsZero() {
			return nil
		}
		return checkMember(m, f.Path, kind)
	}
	return func(f query.Field) error {
		if f.Expression == nil {
			return member(f)
		}
		for _, operand := range f.Expression.Fields() {
			if err := member(operand); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkMember returns an error of a kind for a path that leads nowhere in the JSON of a type.
func checkMember(m *codec.Mapping, p jsonpath.Path, kind error) error {
	if m.Members.Has(p.String()) {
		return nil
	}
	names := make([]string, 0, 8)
	for i := range p.Len() {
		if step := p.At(i); step.Kind == jsonpath.Member {
			names = append(names, step.Name)
		}
	}
	u := m.FindMember(names)
	if u == nil {
		m.Members.Add(p.String())
		return nil
	}
	what := fmt.Sprintf("the JSON of %s has no member %q", u.Type, errs.Shorten(u.Name))
	hint := ""
	near := u.ByField[u.Name]
	for _, name := range u.Names {
		if near == "" && strings.EqualFold(name, u.Name) {
			near = name
		}
	}
	if near == "" || !slices.Contains(u.Names, near) {
		near = spelling.Nearest(u.Name, u.Names)
	}
	switch {
	case u.Instead != "":
		hint = ": it holds metadata, which is " + u.Instead
	case u.Dropped || near == "" && strings.EqualFold(u.Name, "id"):
		hint = ": the ID is id(), the version @metadata.@change-vector"
	case near != "":
		hint = fmt.Sprintf(": did you mean %q?", near)
	case u.Type.Kind() != reflect.Struct:
		hint = ", and no members at all"
	}
	return fmt.Errorf("%w: %s%s (option AnyField allows it)", kind, what, hint)
}

// checkIncludes refuses a query whose includes could not arrive.
func (q Definition) checkIncludes() error {
	if !q.Shows && (len(q.Query.Highlights) > 0 || q.Query.Explanations) {
		return fmt.Errorf("%w: %s has no place for highlights and explanations: ask for rows, with Rows", errs.ErrQuery, q.Answers)
	}
	if q.Arrive != nil || len(q.Query.Include) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s has no place for what the query includes: ask for rows, with Rows, or for entities of a session, with QueryOf", errs.ErrQuery, q.Answers)
}

// checkPaging refuses a query whose answers have no position to continue from.
func (q Definition) checkPaging() error {
	if exec.IsGrouped(&q.Query) || q.Query.IsDistinct() {
		return fmt.Errorf("%w: groups and distinct rows have no cursor: use Skip", errs.ErrQuery)
	}
	if q.Query.Fused {
		return fmt.Errorf("%w: rank.fuse() has no cursor, as each write may change the ranks of all answers: use Skip", errs.ErrQuery)
	}
	return nil
}
