package sqlkv

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/storage"
)

// record is the row of table store.
type record struct {
	layout   int
	id       []byte
	features string
	created  bool
}

func (s *statements) record(ctx context.Context, c rower) (r record, err error) {
	err = c.QueryRow(ctx, s.store).Scan(&r.layout, &r.id, &r.features, &r.created)
	return r, err
}

// connect makes a connection for transactions that may stand still for as long as idle says.
func (o *options) connect(ctx context.Context, config *pgx.ConnConfig, idle time.Duration) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := o.set(ctx, c, idle); err != nil {
		c.Close(ctx)
		return nil, err
	}
	return c, nil
}

// set makes the settings of a new connection. The server ends a statement only when the client has
// stopped to wait for it: so a process that stands still, or is cut off, does not hold a lock for
// longer.
func (o *options) set(ctx context.Context, c *pgx.Conn, idle time.Duration) error {
	settings := append([]string{
		fmt.Sprintf("set statement_timeout = %d", (o.timeout + time.Second).Milliseconds()),
		fmt.Sprintf("set lock_timeout = %d", max(1, (o.timeout/2).Milliseconds())),
		fmt.Sprintf("set idle_in_transaction_session_timeout = %d", idle.Milliseconds()),
	}, o.settings...)
	_, err := c.PgConn().Exec(ctx, strings.Join(settings, ";")).ReadAll()
	return err
}

// same returns an ErrOtherStore if the connection leads to another store than the one that was opened.
func (e *Engine) same(ctx context.Context, c *pgx.Conn) error {
	r, err := e.sql.record(ctx, c)
	if err != nil {
		return err
	}
	if !bytes.Equal(r.id, e.id) {
		return &Error{Address: e.address.String(), Kind: ErrOtherStore,
			Cause: fmt.Errorf("it has the ID %x, and the one that was opened has %x", r.id, e.id),
			Do:    "see where the address leads, and open the database anew"}
	}
	return nil
}

// checkServer returns an ErrProfile if the server is none of the profile.
func (o *options) checkServer(ctx context.Context, a address, c *pgx.Conn) error {
	var version, fsync string
	if err := c.QueryRow(ctx, "select version()").Scan(&version); err != nil {
		return a.explain(err)
	}
	wrong := !strings.Contains(version, o.version)
	if o.profile == Postgres {
		major, _ := strconv.Atoi(strings.FieldsFunc(c.PgConn().ParameterStatus("server_version")+".", func(r rune) bool { return r < '0' || '9' < r })[0])
		wrong = wrong || major < 13 || strings.Contains(version, profiles[Yugabyte].version)
	}
	if wrong {
		return &Error{Address: a.String(), Kind: ErrProfile,
			Cause: fmt.Errorf("it is %q, and the profile is %v", version, o.profile),
			Do:    "set Driver.Profile; of PostgreSQL 13 is the oldest"}
	}
	if o.profile != Postgres {
		return nil
	}
	if err := c.QueryRow(ctx, "show fsync").Scan(&fsync); err != nil {
		return a.explain(err)
	}
	if fsync == "off" {
		o.log.Warn("jay: the server runs with fsync off: when its machine fails, the store can lose commits, or be damaged", "store", a.String())
	}
	return nil
}

// find returns the record of the store at an address. It makes the store if there is none, unless it must exist.
func (o *options) find(ctx context.Context, a address, c *pgx.Conn, s *statements, mustExist bool) (record, error) {
	for attempt := 0; ; attempt++ {
		tables, err := tablesIn(ctx, c, a.schema)
		if err != nil {
			return record{}, a.explain(err)
		}
		switch {
		case tables["store"] && tables["kv"] && tables["commits"]:
			r, err := s.record(ctx, c)
			if err != nil {
				return record{}, a.explain(err)
			}
			return r, o.checkRecord(ctx, a, c, r)
		case len(tables) > 0:
			return record{}, &Error{Address: a.String(), Kind: storage.ErrNotDatabase,
				Cause: fmt.Errorf("the schema has tables, and not those of a store"), Do: "name another schema by " + schemaParameter}
		case mustExist:
			return record{}, &Error{Address: a.String(), Kind: storage.ErrNoDatabase,
				Cause: fmt.Errorf("the schema has no tables"), Do: "check the address and " + schemaParameter}
		}
		err = o.create(ctx, c, s)
		if code := state(err); attempt < 5 && (code == "23505" || code == "42P07" || code == "42P06" || code == "40001") {
			continue // another process makes it at the same time
		}
		if err != nil {
			return record{}, a.explain(err)
		}
	}
}

// tablesIn returns the names of all tables of a schema.
func tablesIn(ctx context.Context, c rower, schema string) (map[string]bool, error) {
	rows, err := c.Query(ctx, "select c.relname::text from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f')", schema)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	tables := make(map[string]bool)
	for _, name := range names {
		tables[name] = true
	}
	return tables, err
}

// create makes the tables of a new store, all of them or none.
func (o *options) create(ctx context.Context, c *pgx.Conn, s *statements) error {
	id := make([]byte, 16)
	rand.Read(id)
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		for _, sql := range s.create {
			var args []any
			if strings.Contains(sql, "$1") {
				args = []any{layout, id}
			}
			if _, err := tx.Exec(ctx, sql, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkRecord returns an error for a store that this program does not know, or cannot write.
func (o *options) checkRecord(ctx context.Context, a address, c *pgx.Conn, r record) error {
	if r.layout != layout {
		return &Error{Address: a.String(), Kind: storage.ErrNewerFormat,
			Cause: fmt.Errorf("its tables have layout %d, and this program knows %d", r.layout, layout), Do: "use the newer version of the program that made it"}
	}
	if _, err := o.parseFeatures(r.features); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	if o.readOnly {
		return nil
	}
	var refuses string
	if err := c.QueryRow(ctx, "show transaction_read_only").Scan(&refuses); err != nil {
		return a.explain(err)
	}
	if refuses == "on" {
		return &Error{Address: a.String(), Kind: storage.ErrNotWritable, Do: reasons["25006"].do}
	}
	return nil
}

// formatFeatures returns the features of a store as its record has them: each with its number and its name.
//
// Part of the on-disk format. Must not change.
func formatFeatures(features []storage.Feature) string {
	var parts []string
	for _, f := range features {
		parts = append(parts, fmt.Sprintf("%d %s", f.Format, f.Name))
	}
	return strings.Join(parts, ",")
}

// parseFeatures is the reverse. It returns a *storage.FormatError if there are some that are not known.
func (o *options) parseFeatures(text string) (storage.FeatureSet, error) {
	var needs storage.Needs
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		number, name, _ := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return 0, &storage.FormatError{What: "database", Newest: o.known.Newest(), Features: []string{part}}
		}
		needs.Add(o.known, storage.Feature{Format: n, Name: name})
	}
	return needs.Features, needs.Err()
}
