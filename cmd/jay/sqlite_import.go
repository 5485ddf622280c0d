//go:build !nosqlite

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
	"github.com/jaydb/jay/transfer/smuggler"
)

// sqliteColumns are the columns of a table that jay export has written.
var sqliteColumns = []string{"id", "collection", "metadata", "body"}

const (
	sqliteMagic      = "SQLite format 3\x00"
	maxSQLiteColumns = 2000 // as SQLite's own default
)

// sqliteOptions selects what is imported from a SQLite file.
type sqliteOptions struct {
	table, idColumn, jsonColumn string
	idPrefix, collection        string
	maxBytes                    int
}

// sqliteSource reads the rows of a table.
type sqliteSource struct {
	db      *sql.DB
	conn    *sql.Conn
	rows    *sql.Rows
	options sqliteOptions

	columns []string
	isJSON  []bool // by declared type
	own     bool   // the columns are sqliteColumns
	cells   []sqliteCell
	number  int64
	raw     []byte
	text    []byte
}

// sqliteCell is a value.
type sqliteCell struct {
	kind  string // of SQLite's typeof
	value any    // a text and a blob as bytes
}

// Scan takes a value as the driver has it.
func (c *sqliteCell) Scan(from any) error {
	switch v := from.(type) {
	case nil:
		c.kind, c.value = "null", nil
	case int64:
		c.kind, c.value = "integer", v
	case float64:
		c.kind, c.value = "real", v
	case string:
		c.kind, c.value = "text", []byte(v)
	case []byte:
		c.kind, c.value = "blob", slices.Clone(v)
	default:
		return fmt.Errorf("%w: a value is a %T, which is no type of SQLite", jay.ErrInvalidDocument, from)
	}
	return nil
}

// sqliteURI returns the URI of a file.
func sqliteURI(name string, parameters string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: parameters}
	return u.String(), nil
}

// loadSQLite imports a table.
func (c *importCommand) loadSQLite(ctx context.Context, im *smuggler.Importer, in smuggler.Input, bar *progress) error {
	format := *sqliteFormat
	size := int64(0)
	format.Open = func(ctx context.Context, in smuggler.Input, o *smuggler.ImportOptions) (smuggler.Source, error) {
		info, err := os.Stat(in.Path)
		if err == nil && c.MaxInput > 0 && info.Size() > c.MaxInput {
			err = errInputTooLarge(c.MaxInput)
		}
		if err != nil {
			return nil, err
		}
		size = info.Size()
		return openSQLite(ctx, in.Path, sqliteOptions{c.Table, o.IDColumn, c.JSONColumn, o.IDPrefix, o.Collection, o.MaxBytes})
	}
	err := im.Load(ctx, &format, in)
	bar.add(int(size))
	if usage, is := errors.AsType[usageError](err); is {
		return usage
	}
	return err
}

// openSQLite opens a table for reading.
func openSQLite(ctx context.Context, name string, o sqliteOptions) (_ *sqliteSource, err error) {
	if err := checkSQLite(name); err != nil {
		return nil, err
	}
	uri, err := sqliteURI(name, "mode=ro&_pragma=trusted_schema(0)&_pragma=query_only(1)&_pragma=cache_size(-8000)&_pragma=mmap_size(0)")
	if err != nil {
		return nil, err
	}
	s := &sqliteSource{options: o}
	defer func() {
		if err != nil {
			err = andThen(fmt.Errorf("SQLite: %w", err), s.Close())
		}
	}()
	if s.db, err = sql.Open("sqlite", uri); err != nil {
		return nil, err
	}
	s.db.SetMaxOpenConns(1)
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, err
	}
	// No value of the file is larger than a document may be.
	if _, err = sqlite.Limit(s.conn, sqlite3.SQLITE_LIMIT_LENGTH, max(o.maxBytes, 1<<20)); err != nil {
		return nil, err
	}
	var encoding string
	if err = s.conn.QueryRowContext(ctx, "PRAGMA encoding").Scan(&encoding); err != nil {
		return nil, err
	}
	if encoding != "UTF-8" { // texts are read as the bytes that they are
		err = fmt.Errorf("%w: the texts of the database must be in UTF-8, they are in %s", jay.ErrInvalidDocument, encoding)
		return nil, err
	}
	table, err := s.table(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.describe(ctx, table); err != nil {
		return nil, err
	}
	// An expression has no declared type, in which the driver would read a time or a
	// boolean. It is one for each column: SQLite bounds those of a result as those of a table.
	var query strings.Builder
	query.WriteString("SELECT ")
	for i, name := range s.columns {
		if i > 0 {
			query.WriteString(", ")
		}
		query.WriteString("+" + quoteSQL(name))
	}
	query.WriteString(" FROM " + quoteSQL(table))
	s.rows, err = s.conn.QueryContext(ctx, query.String())
	return s, err
}

// checkSQLite returns an error if a file is no SQLite database.
func checkSQLite(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, len(sqliteMagic))
	if _, err := io.ReadFull(f, magic); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if string(magic) != sqliteMagic {
		return fmt.Errorf("%w: it is no SQLite database: it does not begin with %q", jay.ErrInvalidDocument, sqliteMagic[:15])
	}
	return nil
}

// quoteSQL quotes a name.
func quoteSQL(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// table returns the table to read: the requested one, or the only one.
func (s *sqliteSource) table(ctx context.Context) (string, error) {
	rows, err := s.conn.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name LIMIT 1000")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", err
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	asked := s.options.table
	if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, asked) }); i >= 0 {
		return names[i], nil
	}
	switch {
	case asked != "":
		return "", fmt.Errorf("%w: there is no table %q; %s", jay.ErrInvalidDocument, asked, listed(names))
	case len(names) != 1:
		return "", usageError{text: "a SQLite file with several tables, or none, needs --table; " + listed(names)}
	}
	return names[0], nil
}

// listed names a few tables.
func listed(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	rest := ""
	if len(names) > 10 {
		names, rest = names[:10], ", …"
	}
	return "it has " + strings.Join(names, ", ") + rest
}

// describe reads the columns of a table.
func (s *sqliteSource) describe(ctx context.Context, table string) error {
	rows, err := s.conn.QueryContext(ctx, "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1", table)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, declared string
		if err := rows.Scan(&name, &declared); err != nil {
			return err
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("%w: the name of column %d is no UTF-8", jay.ErrInvalidDocument, len(s.columns)+1)
		}
		s.columns = append(s.columns, name)
		s.isJSON = append(s.isJSON, strings.Contains(strings.ToUpper(declared), "JSON"))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(s.columns) == 0 || len(s.columns) > maxSQLiteColumns {
		return fmt.Errorf("%w: a table has 1 to %d columns, %q has %d", jay.ErrInvalidDocument, maxSQLiteColumns, table, len(s.columns))
	}
	for _, name := range []string{s.options.idColumn, s.options.jsonColumn} {
		if name != "" && !slices.Contains(s.columns, name) {
			return fmt.Errorf("%w: table %q has no column %q; it has %.300s", jay.ErrInvalidDocument, table, name, strings.Join(s.columns, ", "))
		}
	}
	s.own = s.options.idColumn == "" && s.options.jsonColumn == "" && slices.Equal(s.columns, sqliteColumns)
	if s.own {
		s.options.idColumn, s.options.jsonColumn = "id", "body"
	}
	s.cells = make([]sqliteCell, len(s.columns))
	return nil
}

// Next implements smuggler.Source.
func (s *sqliteSource) Next() (smuggler.Record, error) {
	v := smuggler.Record{Number: s.number + 1, Offset: -1, Converted: true}
	if !s.rows.Next() {
		err := s.rows.Err()
		if err == nil {
			return v, io.EOF
		}
		return v, &smuggler.FinalError{Err: fmt.Errorf("SQLite: %w", err)}
	}
	s.number++
	targets := make([]any, 0, len(s.cells))
	for i := range s.cells {
		targets = append(targets, &s.cells[i])
	}
	if err := s.rows.Scan(targets...); err != nil {
		return v, &smuggler.FinalError{Err: fmt.Errorf("SQLite: %w", err)}
	}
	if err := s.document(); err != nil {
		return v, err
	}
	v.Text = s.text
	return v, nil
}

// document makes the document of a row.
func (s *sqliteSource) document() error {
	s.text = append(s.text[:0], '{')
	var metadata []byte
	say := func(key string, text []byte) {
		if len(metadata) > 0 {
			metadata = append(metadata, ',')
		}
		metadata = append(append(append(metadata, key...), ':'), text...)
	}
	collection := s.options.collection
	id := []byte(nil)
	for i := range s.cells {
		name, cell := s.columns[i], &s.cells[i]
		switch {
		case name == s.options.idColumn:
			switch cell.kind {
			case "text", "blob":
				id, _ = cell.value.([]byte)
			case "integer":
				id = fmt.Append(nil, cell.value)
			case "null":
			default:
				return s.bad(i, "an ID is a text or a whole number")
			}
		case s.own && name == "collection":
			text, _ := cell.value.([]byte)
			if collection = string(text); cell.kind == "null" || collection == "" {
				collection = "@empty"
			}
		case s.own && name == "metadata":
			text, _ := cell.value.([]byte)
			if cell.kind == "null" {
				continue
			}
			if object, ok := members(text); !ok {
				return s.bad(i, "metadata must be a JSON object")
			} else if len(object) > 0 {
				if len(metadata) > 0 {
					metadata = append(metadata, ',')
				}
				metadata = append(metadata, object...)
			}
		case name == s.options.jsonColumn:
			text, _ := cell.value.([]byte)
			object, ok := members(text)
			if !ok {
				return s.bad(i, "a document must be a JSON object")
			}
			if len(s.text) > 1 && len(object) > 0 {
				s.text = append(s.text, ',')
			}
			s.text = append(s.text, object...)
		case s.options.jsonColumn != "":
		default:
			if err := s.field(i); err != nil {
				return err
			}
		}
	}
	if len(id) > 0 {
		if !utf8.Valid(id) {
			return s.bad(slices.Index(s.columns, s.options.idColumn), "an ID must be UTF-8")
		}
		say(`"@id"`, transfer.AppendString(nil, s.options.idPrefix+string(id)))
		if collection != "" {
			say(`"@collection"`, transfer.AppendString(nil, collection))
		}
	}
	if len(metadata) > 0 {
		if len(s.text) > 1 {
			s.text = append(s.text, ',')
		}
		s.text = append(append(append(s.text, `"@metadata":{`...), metadata...), '}')
	}
	s.text = append(s.text, '}')
	return nil
}

// members returns what is between the braces of a JSON object.
func members(text []byte) ([]byte, bool) {
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != '{' || !json.Valid(text) {
		return nil, false
	}
	return bytes.TrimSpace(text[1 : len(text)-1]), true
}

// field appends a column as a field.
func (s *sqliteSource) field(i int) error {
	cell := &s.cells[i]
	if len(s.text) > 1 {
		s.text = append(s.text, ',')
	}
	s.text = append(transfer.AppendString(s.text, s.columns[i]), ':')
	switch v := cell.value.(type) {
	case nil:
		s.text = append(s.text, "null"...)
	case int64:
		s.text = strconv.AppendInt(s.text, v, 10)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return s.bad(i, "a number must be one that JSON has")
		}
		s.text = appendFloat(s.text, v)
	case []byte:
		switch {
		case cell.kind == "blob":
			s.text = append(s.text, '"')
			s.text = base64.StdEncoding.AppendEncode(s.text, v)
			s.text = append(s.text, '"')
		case s.isJSON[i]:
			if !json.Valid(v) {
				return s.bad(i, "a column of JSON must hold JSON")
			}
			s.text = append(s.text, v...)
		case !utf8.Valid(v):
			return s.bad(i, "a text must be UTF-8")
		default:
			s.text = transfer.AppendString(s.text, v)
		}
	default:
		return s.bad(i, "a value must be one of SQLite's types")
	}
	return nil
}

// appendFloat appends a number as short as it can be, and with a point or an exponent, as
// SQLite shows a real.
func appendFloat(dst []byte, f float64) []byte {
	start := len(dst)
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if !strings.ContainsAny(string(dst[start:]), ".e") {
		dst = append(dst, '.', '0')
	}
	return dst
}

// bad is the error of a cell. The row is kept as an array of its cells.
func (s *sqliteSource) bad(i int, rule string) error {
	cells := make([]any, len(s.cells))
	for j, cell := range s.cells {
		switch v := cell.value.(type) {
		case []byte:
			if cell.kind == "text" {
				cells[j] = string(v)
			} else {
				cells[j] = v // base64
			}
		case float64:
			if cells[j] = v; math.IsInf(v, 0) || math.IsNaN(v) {
				cells[j] = fmt.Sprint(v)
			}
		default:
			cells[j] = v
		}
	}
	raw, err := json.Marshal(cells)
	if err != nil {
		return err
	}
	s.raw = raw
	return &smuggler.ConvertedError{DocumentError: jay.DocumentError{Rule: rule, Detail: fmt.Sprintf("column %q", s.columns[i])}}
}

// Skip implements smuggler.Source.
func (s *sqliteSource) Skip(w io.Writer) error {
	_, err := w.Write(s.raw)
	return err
}

// Close ends the reading.
func (s *sqliteSource) Close() error {
	var errs []error
	if s.rows != nil {
		errs = append(errs, s.rows.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}
