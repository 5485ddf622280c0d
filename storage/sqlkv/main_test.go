package sqlkv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

var ctx = context.Background()

// server is the server that most tests share.
var server *pgtest.Server

func TestMain(m *testing.M) {
	var err error
	switch server, err = pgtest.Start(); {
	case errors.Is(err, pgtest.ErrNone):
		fmt.Println("skipped:", err)
		os.Exit(0)
	case err != nil:
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

var schemas atomic.Int64

// newName returns the name of a store of its own, which is removed at the end of the test.
func newName(t testing.TB) string {
	t.Helper()
	schema := fmt.Sprintf("t%d_%d", os.Getpid(), schemas.Add(1))
	t.Cleanup(func() {
		for _, s := range []string{schema, schema + "_unfinished"} {
			execute(t, "drop schema if exists "+s+" cascade")
		}
	})
	return server.URL("jay_schema=" + schema)
}

// schemaOf returns the schema in a name.
func schemaOf(name string) string {
	_, schema, _ := strings.Cut(name, "jay_schema=")
	return schema
}

// execute runs a statement on the shared server.
func execute(t testing.TB, sql string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, sql, args...); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, d *sqlkv.Driver, name string) storage.Engine {
	t.Helper()
	e, err := d.Open(name, storage.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func put(e storage.Engine, key, value string) error {
	return e.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set([]byte(key), []byte(value), nil)
		return nil
	})
}

// get returns the value at key, or "absent".
func get(t testing.TB, r storage.Reader, key string) string {
	t.Helper()
	value, closer, err := r.Get([]byte(key))
	if errors.Is(err, storage.ErrNotFound) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return string(value)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// holdLock takes the lock of a store, as a process does that hangs while it commits.
func holdLock(t testing.TB, name string) (release func()) {
	t.Helper()
	c, err := pgx.Connect(ctx, server.URL())
	must(t, err)
	_, err = c.Exec(ctx, "begin")
	must(t, err)
	_, err = c.Exec(ctx, "select 1 from "+schemaOf(name)+".store for update")
	must(t, err)
	return func() { must(t, c.Close(ctx)) }
}

func itoa(n int) string { return strconv.Itoa(n) }

// count returns the number that a statement returns.
func count(t testing.TB, sql string) (n int) {
	t.Helper()
	c, err := pgx.Connect(ctx, server.URL())
	must(t, err)
	defer c.Close(ctx)
	must(t, c.QueryRow(ctx, sql).Scan(&n))
	return n
}

// eventually waits until done, for a minute at most.
func eventually(t testing.TB, done func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it does not happen")
		}
	}
}
