package engine

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// extract is a field in SQL. An index is used where the same text stands.
func extract(field string) string { return "json_extract(body, '$." + field + "')" }

// CreateIndexes implements Querier: with an expression index for each field,
// and ANALYZE, as its planner knows little without.
func (e *sqliteEngine) CreateIndexes() error {
	for _, ix := range Indexes {
		_, err := e.writer.Exec(fmt.Sprintf("CREATE INDEX IF NOT EXISTS orders_%s ON orders(%s)", ix.Name, extract(ix.Field)))
		if err != nil {
			return err
		}
	}
	_, err := e.writer.Exec("ANALYZE")
	return err
}

// prepared returns the statement that selects columns by q, prepared once for
// each shape, and its arguments.
func (e *sqliteEngine) prepared(columns string, q *Query) (*sql.Stmt, []any, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "SELECT %s FROM orders WHERE %s", columns, extract(q.Field))
	arguments := []any{q.Equal}
	if q.Equal != nil {
		text.WriteString(" = ?")
	} else {
		text.WriteString(" BETWEEN ? AND ?")
		arguments = []any{q.From, q.To}
	}
	if q.Descending {
		fmt.Fprintf(&text, " ORDER BY %s DESC", extract(q.Field))
	}
	if q.Limit > 0 {
		text.WriteString(" LIMIT ?")
		arguments = append(arguments, q.Limit)
	}
	if statement, ok := e.queries[text.String()]; ok {
		return statement, arguments, nil
	}
	statement, err := e.reader.Prepare(text.String())
	if err != nil {
		return nil, nil, err
	}
	if e.queries == nil {
		e.queries = make(map[string]*sql.Stmt)
	}
	e.queries[text.String()] = statement
	return statement, arguments, nil
}

// Query implements Querier.
func (e *sqliteEngine) Query(q Query, fn Visit) error {
	statement, arguments, err := e.prepared("id, json(body)", &q)
	if err != nil {
		return err
	}
	rows, err := statement.Query(arguments...)
	if err != nil {
		return err
	}
	return visit(rows, fn)
}

// visit calls fn with rows of an ID and a body, and closes them.
func visit(rows *sql.Rows, fn Visit) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	var raw sql.RawBytes
	id := func() string { return string(raw) }
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&raw, &body); err != nil {
			return err
		}
		if err := fn(id, body); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Count implements Querier.
func (e *sqliteEngine) Count(q Query) (n int, err error) {
	statement, arguments, err := e.prepared("count(*)", &q)
	if err != nil {
		return 0, err
	}
	err = statement.QueryRow(arguments...).Scan(&n)
	return n, err
}

// Groups implements Grouper.
func (e *sqliteEngine) Groups(by, sum string) (groups map[string]Group, err error) {
	rows, err := e.reader.Query(fmt.Sprintf("SELECT %s, count(*), sum(%s) FROM orders GROUP BY 1", extract(by), extract(sum)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	groups = make(map[string]Group)
	for rows.Next() {
		var name string
		var g Group
		if err := rows.Scan(&name, &g.Documents, &g.Sum); err != nil {
			return nil, err
		}
		groups[name] = g
	}
	return groups, rows.Err()
}
