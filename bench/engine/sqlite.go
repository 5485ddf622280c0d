package engine

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/jaydb/jay/bench/fixture"
)

// What both drivers of SQLite have in common.
const (
	sqliteSynced   = "journal_mode=WAL, synchronous=FULL"
	sqliteUnsynced = "journal_mode=WAL, synchronous=OFF: in the operating system's cache"
	sqliteNotes    = "Table (id TEXT PRIMARY KEY, body BLOB), the body as JSONB, written by jsonb(?) and read by json(body). " +
		"Prepared statements by way of database/sql; one connection that writes, up to four that read, cache_size as large as the others' cache in each. " +
		"INSERT fails for an ID that is there. Queries: an index on json_extract(body, '$.field') for each field, and ANALYZE after a load."
)

// sqliteReaders is the number of connections for reading.
const sqliteReaders = 4

var sqliteQueries = []string{
	"INSERT INTO orders (id, body) VALUES (?, jsonb(?))",
	"UPDATE orders SET body = jsonb(?2) WHERE id = ?1",
	"DELETE FROM orders WHERE id = ?",
	"SELECT json(body) FROM orders WHERE id = ?",
	"SELECT id, json(body) FROM orders",
	"SELECT id, json(body) FROM orders WHERE id >= ? AND id < ?",
}

// sqliteEngine is SQLite with one table.
type sqliteEngine struct {
	writer, reader *sql.DB
	// The statements of sqliteQueries, in their order.
	insert, update, delete, get, scan, scanPrefix *sql.Stmt

	queries map[string]*sql.Stmt // by their text; of the one goroutine that queries
}

// openSQLite opens the database by that driver. address makes the data source
// name of a file with pragmas, which every driver writes in its own way.
func openSQLite(driver string, address func(file string, pragmas [][2]string) string, s Settings) (Engine, error) {
	synchronous := "0" // OFF
	if s.Synced {
		synchronous = "2" // FULL
	}
	pragmas := [][2]string{
		{"journal_mode", "wal"},
		{"synchronous", synchronous},
		{"cache_size", fmt.Sprint(-s.CacheBytes >> 10)}, // negative: KiB
		{"busy_timeout", "10000"},
	}
	e := &sqliteEngine{}
	if err := e.open(driver, address(filepath.Join(s.Dir, "sqlite.db"), pragmas), pragmas); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *sqliteEngine) open(driver, name string, pragmas [][2]string) (err error) {
	if e.writer, err = sql.Open(driver, name); err != nil {
		return err
	}
	e.writer.SetMaxOpenConns(1)
	if e.reader, err = sql.Open(driver, name); err != nil {
		return err
	}
	e.reader.SetMaxOpenConns(sqliteReaders)
	e.reader.SetMaxIdleConns(sqliteReaders)
	if err := e.checkPragmas(pragmas); err != nil {
		return err
	}
	if _, err := e.writer.Exec("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, body BLOB)"); err != nil {
		return err
	}
	for i, statement := range []**sql.Stmt{&e.insert, &e.update, &e.delete, &e.get, &e.scan, &e.scanPrefix} {
		db := e.writer
		if i > 2 {
			db = e.reader
		}
		if *statement, err = db.Prepare(sqliteQueries[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkPragmas makes sure that the driver has understood all pragmas: one that
// it doesn't know is passed over in silence.
func (e *sqliteEngine) checkPragmas(pragmas [][2]string) error {
	for _, p := range pragmas {
		var got string
		if err := e.writer.QueryRow("PRAGMA " + p[0]).Scan(&got); err != nil {
			return err
		}
		if got != p[1] {
			return fmt.Errorf("pragma %s is %s, not %s", p[0], got, p[1])
		}
	}
	return nil
}

// address writes a data source name with one parameter for each pragma.
func address(file string, pragmas [][2]string, parameter func(name, value string) (string, string)) string {
	values := url.Values{"_txlock": {"immediate"}}
	for _, p := range pragmas {
		name, value := parameter(p[0], p[1])
		values.Add(name, value)
	}
	return "file:" + file + "?" + values.Encode()
}

// batch runs statement for each of n documents in one transaction.
func (e *sqliteEngine) batch(statement *sql.Stmt, n int, arguments func(i int) []any) error {
	tx, err := e.writer.Begin()
	if err != nil {
		return err
	}
	inTx := tx.Stmt(statement)
	for i := range n {
		if _, err := inTx.Exec(arguments(i)...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// Insert implements Engine.
func (e *sqliteEngine) Insert(docs []Doc) error {
	return e.batch(e.insert, len(docs), func(i int) []any { return []any{docs[i].Text, string(docs[i].Body)} })
}

// InsertOne implements Engine.
func (e *sqliteEngine) InsertOne(doc Doc) error {
	_, err := e.insert.Exec(doc.Text, string(doc.Body))
	return err
}

// Update implements Engine.
func (e *sqliteEngine) Update(docs []Doc) error {
	return e.batch(e.update, len(docs), func(i int) []any { return []any{docs[i].Text, string(docs[i].Body)} })
}

// UpdateOne implements Engine.
func (e *sqliteEngine) UpdateOne(doc Doc) error {
	_, err := e.update.Exec(doc.Text, string(doc.Body))
	return err
}

// Delete implements Engine.
func (e *sqliteEngine) Delete(keys []Key) error {
	return e.batch(e.delete, len(keys), func(i int) []any { return []any{keys[i].Text} })
}

// DeleteOne implements Engine.
func (e *sqliteEngine) DeleteOne(key Key) error {
	_, err := e.delete.Exec(key.Text)
	return err
}

// Get implements Engine.
func (e *sqliteEngine) Get(key Key) (body []byte, err error) {
	err = e.get.QueryRow(key.Text).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	return body, err
}

// GetTyped implements Engine.
func (e *sqliteEngine) GetTyped(key Key, into *fixture.Order) error { return decode(e, key, into) }

// Scan implements Engine.
func (e *sqliteEngine) Scan(prefix string, fn Visit) (err error) {
	var rows *sql.Rows
	if prefix == "" {
		rows, err = e.scan.Query()
	} else {
		rows, err = e.scanPrefix.Query(prefix, string(successor(prefix)))
	}
	if err != nil {
		return err
	}
	return visit(rows, fn)
}

// Rest implements Engine.
func (e *sqliteEngine) Rest() error {
	_, err := e.writer.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// Close implements Engine. Connections close their statements.
func (e *sqliteEngine) Close() error {
	var errs []error
	for _, db := range []*sql.DB{e.reader, e.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
