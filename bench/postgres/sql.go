package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connections are those of each process of each contender.
const connections = 64

// withSchema returns the address of a store in a schema.
func withSchema(url, schema string) string {
	if strings.Contains(url, "?") {
		return url + "&jay_schema=" + schema
	}
	return url + "?jay_schema=" + schema
}

// dropSchemas removes what the contenders have made.
func dropSchemas(url, schema string) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	for _, name := range contenders {
		_, failed := c.Exec(ctx, "drop schema if exists "+schema+"_"+name+" cascade")
		err = errors.Join(err, failed)
	}
	return errors.Join(err, c.Close(ctx))
}

// sqlStore is what the contenders without Jay have in common.
type sqlStore struct {
	schema string
	pool   *pgxpool.Pool
}

// connect opens the pool; what names a schema is not a parameter of the server.
func (s *sqlStore) connect(ctx context.Context, url string) error {
	if s.pool != nil {
		return nil
	}
	bare, schema, _ := strings.Cut(url, "jay_schema=")
	config, err := pgxpool.ParseConfig(strings.TrimRight(bare, "?&"))
	if err != nil {
		return err
	}
	config.MaxConns = connections
	config.ConnConfig.RuntimeParams["search_path"] = schema
	s.schema = schema
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	return err
}

func (s *sqlStore) execute(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// count reads all rows of a query, and returns how many there are.
func (s *sqlStore) count(ctx context.Context, sql string, args ...any) (n int, err error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	return counted(rows)
}

// counted reads the rows of an ID and a body, and returns how many there are.
func counted(rows pgx.Rows) (n int, err error) {
	defer rows.Close()
	for rows.Next() {
		var id, body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

func (s *sqlStore) close() error {
	if s.pool != nil {
		s.pool.Close()
	}
	return nil
}

// clientStore does with the client alone what Jay does: rows of documents, changes, counters and entries of an index, in SERIALIZABLE transactions.
type clientStore struct {
	sqlStore
	url string
}

// parts are the rows of a counter: with one, any two transactions would conflict.
const parts = 64

func (s *clientStore) open(ctx context.Context) error { return s.connect(ctx, s.url) }

func (s *clientStore) prepare(ctx context.Context, documents int) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	err := s.execute(ctx,
		"create schema "+s.schema,
		"create table docs (id bytea primary key, body bytea not null)",
		"create table changes (etag bigserial primary key, id bytea not null)",
		"create table counts (collection text, part integer, n bigint not null, primary key (collection, part))",
		"create table entries (bucket bigint, id bytea, primary key (bucket, id))",
		fmt.Sprintf("insert into counts select 'Orders', part, 0 from generate_series(0, %d) part", parts-1))
	if err != nil {
		return err
	}
	return errors.Join(s.load(ctx, documents, idOf), s.execute(ctx, "analyze docs", "analyze entries"))
}

// load inserts documents, a thousand in a transaction.
func (s *clientStore) load(ctx context.Context, n int, id func(int) string) error {
	for begin := 0; begin < n; begin += 1000 {
		var keys, bodies [][]byte
		var buckets []int64
		for i := begin; i < min(n, begin+1000); i++ {
			keys, bodies, buckets = append(keys, []byte(id(i))), append(bodies, body(i)), append(buckets, int64(i/perBucket))
		}
		err := s.serializably(ctx, func(b *pgx.Batch) {
			b.Queue("select id from docs where id = any($1)", keys)
		}, func(b *pgx.Batch) {
			b.Queue("insert into docs select unnest($1::bytea[]), unnest($2::bytea[])", keys, bodies)
			b.Queue("insert into changes (id) select unnest($1::bytea[])", keys)
			b.Queue("insert into entries select unnest($1::bigint[]), unnest($2::bytea[])", buckets, keys)
			b.Queue("update counts set n = n + $1 where collection = 'Orders' and part = 0", len(keys))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// serializably makes a transaction of two round trips, again while it conflicts with another one.
func (s *clientStore) serializably(ctx context.Context, reads, writes func(*pgx.Batch)) error {
	for {
		err := s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
			var first pgx.Batch
			first.Queue("begin isolation level serializable")
			reads(&first)
			err := c.SendBatch(ctx, &first).Close()
			if err == nil {
				var second pgx.Batch
				writes(&second)
				second.Queue("commit")
				err = c.SendBatch(ctx, &second).Close()
			}
			if err != nil && c.Conn().PgConn().TxStatus() != 'I' {
				_, failed := c.Exec(ctx, "rollback")
				err = errors.Join(err, failed)
			}
			return err
		})
		var refused *pgconn.PgError
		if errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01") {
			continue
		}
		return err
	}
}

func (s *clientStore) insert(ctx context.Context, id string, body []byte) error {
	part := 0
	for _, c := range []byte(id) {
		part = (part*31 + int(c)) % parts
	}
	return s.serializably(ctx, func(b *pgx.Batch) {
		b.Queue("select exists (select from docs where id = $1)", []byte(id))
	}, func(b *pgx.Batch) {
		b.Queue("insert into docs values ($1, $2)", []byte(id), body)
		b.Queue("insert into changes (id) values ($1)", []byte(id))
		b.Queue("insert into entries values ($1, $2)", -1-part, []byte(id))
		b.Queue("update counts set n = n + 1 where collection = 'Orders' and part = $1", part)
	})
}

func (s *clientStore) get(ctx context.Context, id string) error {
	var body []byte
	return s.pool.QueryRow(ctx, "select body from docs where id = $1", []byte(id)).Scan(&body)
}

func (s *clientStore) scan(ctx context.Context) (int, error) {
	return s.count(ctx, "select id, body from docs where id >= 'orders/' and id < 'orders0' order by id")
}

func (s *clientStore) query(ctx context.Context, bucket int) (int, error) {
	return s.count(ctx, "select id, body from entries join docs using (id) where bucket = $1 and id < 'orders0' and id >= 'orders/' order by id", bucket)
}

func (s *clientStore) view(ctx context.Context, bucket int) (n int, err error) {
	var ids [][]byte
	err = s.serializably(ctx, func(b *pgx.Batch) {
		b.Queue("select id from entries where bucket = $1 and id < 'orders0' and id >= 'orders/' order by id", bucket).Query(func(rows pgx.Rows) (err error) {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
			return err
		})
	}, func(b *pgx.Batch) {
		b.Queue("select id, body from docs where id = any($1)", ids).Query(func(rows pgx.Rows) (err error) {
			n, err = counted(rows)
			return err
		})
	})
	return n, err
}

func (s *clientStore) bulk(ctx context.Context, prefix string, n int) error {
	return s.load(ctx, n, func(i int) string { return fmt.Sprint(prefix, i) })
}

// jsonbStore is a table of jsonb with an index on a field.
type jsonbStore struct {
	sqlStore
	url string
}

func (s *jsonbStore) open(ctx context.Context) error { return s.connect(ctx, s.url) }

func (s *jsonbStore) prepare(ctx context.Context, documents int) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	err := s.execute(ctx,
		"create schema "+s.schema,
		"create table orders (id text primary key, body jsonb not null)",
		"create index on orders (((body->>'Bucket')::bigint))",
		"create table new (like orders including all)")
	if err != nil {
		return err
	}
	return errors.Join(s.load(ctx, "orders", documents, idOf), s.execute(ctx, "analyze orders"))
}

func (s *jsonbStore) load(ctx context.Context, table string, n int, id func(int) string) error {
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{table}, []string{"id", "body"}, pgx.CopyFromSlice(n, func(i int) ([]any, error) { return []any{id(i), body(i)}, nil }))
	return err
}

func (s *jsonbStore) insert(ctx context.Context, id string, body []byte) error {
	_, err := s.pool.Exec(ctx, "insert into new values ($1, $2)", id, body)
	return err
}

func (s *jsonbStore) get(ctx context.Context, id string) error {
	var body []byte
	return s.pool.QueryRow(ctx, "select body from orders where id = $1", id).Scan(&body)
}

func (s *jsonbStore) scan(ctx context.Context) (int, error) {
	return s.count(ctx, "select id, body from orders order by id")
}

func (s *jsonbStore) query(ctx context.Context, bucket int) (int, error) {
	return s.count(ctx, "select id, body from orders where (body->>'Bucket')::bigint = $1 order by id", bucket)
}

func (s *jsonbStore) view(ctx context.Context, bucket int) (int, error) { return s.query(ctx, bucket) }

func (s *jsonbStore) bulk(ctx context.Context, prefix string, n int) error {
	return s.load(ctx, "new", n, func(i int) string { return fmt.Sprint(prefix, i) })
}
