package sqlkv_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jaydb/jay"
)

// body is a document of some 300 bytes.
func body(n int64) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":"Ada Lovelace","number":%d,"city":"London","text":"%0200d"}`, n, n))
}

// spread calls fn b.N times, from so many goroutines.
func spread(b *testing.B, goroutines int, fn func(n int64) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range goroutines {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				if err := fn(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkInsert inserts documents, each durable when its call returns: by Jay, and by the client alone, which does in one
// transaction what an insert of Jay does: it looks whether the ID is there, and writes the document, its change, and
// a counter of its collection.
func BenchmarkInsert(b *testing.B) {
	for _, goroutines := range []int{1, 32, 128} {
		b.Run(fmt.Sprintf("jay/%d", goroutines), func(b *testing.B) {
			db := database(b, newName(b))
			defer db.Close()
			spread(b, goroutines, func(n int64) error {
				_, err := db.Store(ctx, "Users", body(n))
				return err
			})
		})
		for _, isolation := range []string{"serializable", "read committed"} {
			b.Run(fmt.Sprintf("client, %s/%d", isolation, goroutines), func(b *testing.B) {
				insert := bare(b, isolation, min(goroutines, 64))
				spread(b, goroutines, insert)
			})
		}
	}
}

// bare returns a function that inserts without Jay.
func bare(b *testing.B, isolation string, connections int) func(n int64) error {
	schema := schemaOf(newName(b))
	for _, sql := range []string{
		"create schema " + schema,
		"create table " + schema + ".docs (id bytea primary key, body bytea not null)",
		"create table " + schema + ".changes (etag bigserial primary key, id bytea not null)",
		"create table " + schema + ".counts (collection text, part integer, n bigint not null, primary key (collection, part))",
		"insert into " + schema + ".counts select 'Users', part, 0 from generate_series(0, 63) part",
	} {
		execute(b, sql)
	}
	config, err := pgxpool.ParseConfig(server.URL())
	must(b, err)
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(b, err)
	b.Cleanup(pool.Close)
	return func(n int64) error {
		id := fmt.Appendf(nil, "users/%d", n)
		for {
			err := func() error {
				c, err := pool.Acquire(ctx)
				if err != nil {
					return err
				}
				defer c.Release()
				var found bool
				var batch pgx.Batch
				batch.Queue("begin isolation level " + isolation)
				batch.Queue("select exists (select from "+schema+".docs where id = $1)", id)
				answers := c.SendBatch(ctx, &batch)
				_, err = answers.Exec()
				if err == nil {
					err = answers.QueryRow().Scan(&found)
				}
				if closed := answers.Close(); err == nil {
					err = closed
				}
				if err == nil {
					batch = pgx.Batch{}
					batch.Queue("insert into "+schema+".docs values ($1, $2)", id, []byte(body(n)))
					batch.Queue("insert into "+schema+".changes (id) values ($1)", id)
					batch.Queue("update "+schema+".counts set n = n + 1 where collection = 'Users' and part = $1", n%64)
					batch.Queue("commit")
					err = c.SendBatch(ctx, &batch).Close()
				}
				if err != nil {
					c.Exec(ctx, "rollback")
				}
				return err
			}()
			if state, ok := err.(interface{ SQLState() string }); ok && state.SQLState() == "40001" {
				continue
			}
			return err
		}
	}
}

// BenchmarkGet reads documents by their IDs.
func BenchmarkGet(b *testing.B) {
	db := database(b, newName(b))
	defer db.Close()
	var ids []string
	var batch jay.Batch
	for n := range 1000 {
		id := fmt.Sprintf("users/%d", n)
		ids = append(ids, id)
		batch.Put(id, body(int64(n)))
	}
	_, err := db.Apply(ctx, &batch)
	must(b, err)
	for _, goroutines := range []int{1, 16} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			spread(b, goroutines, func(n int64) error {
				_, err := db.Get(ctx, ids[n%1000])
				return err
			})
		})
	}
}
