package contended

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3", without which it is not there
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/jaydb/jay"
)

// errRefused is what a store returns for a transaction that it gave up.
var errRefused = errors.New("the store gave the transaction up")

// order is a document of about 550 bytes.
type order struct {
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

var pad = strings.Repeat("x", 530)

func encode(n int) []byte {
	body, err := json.Marshal(order{n, pad})
	if err != nil {
		panic(err) // a constant type
	}
	return body
}

// next returns a document that has counted one more.
func next(body []byte) ([]byte, error) {
	var o order
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	o.N++
	return json.Marshal(&o)
}

func counter(body []byte) (int, error) {
	var o order
	err := json.Unmarshal(body, &o)
	return o.N, err
}

func name(doc int) string { return fmt.Sprintf("orders/%d", doc) }

// store is an open store with its documents.
type store interface {
	count(doc int) error // in a transaction of its own
	counted(doc int) (int, error)
	close() error
}

// maker opens a store.
type maker struct {
	name, notes string
	peer        bool // another system, whose transactions run a function of the program's
	open        func(dir string, goroutines, docs int) (store, error)
}

func makers() []maker {
	all := []maker{
		{name: "jay", notes: "DB.Update with Retry(10)", open: openJay(false)},
		{name: "jay-patch", notes: "DB.Patch with Increment", open: openJay(true)},
		{name: "bbolt", peer: true, notes: "DB.Update: one writer at a time, each with its own sync", open: openBbolt(false)},
		{name: "bbolt-batch", peer: true, notes: "DB.Batch with MaxBatchSize = goroutines: those that come together share a transaction", open: openBbolt(true)},
	}
	for _, driver := range []string{"sqlite3", "sqlite"} {
		if !slices.Contains(sql.Drivers(), driver) || !works(driver) {
			continue
		}
		module := map[string]string{"sqlite3": "mattn/go-sqlite3", "sqlite": "modernc.org/sqlite"}[driver]
		return append(all,
			maker{name: "sqlite", peer: true, notes: module + ", WAL, synchronous=FULL, BEGIN IMMEDIATE, busy_timeout 60 s, a connection for each goroutine", open: openSQLite(driver, false)},
			maker{name: "sqlite-one", peer: true, notes: "the same with one connection, for which goroutines queue in database/sql", open: openSQLite(driver, true)})
	}
	return all
}

// works reports whether a driver was built with what it needs.
func works(driver string) bool {
	db, err := sql.Open(driver, ":memory:")
	if err != nil {
		return false
	}
	err = db.Ping()
	return errors.Join(err, db.Close()) == nil
}

type jayStore struct {
	db    *jay.DB
	patch bool
}

func openJay(patch bool) func(string, int, int) (store, error) {
	return func(dir string, _, docs int) (store, error) {
		db, err := jay.Open(filepath.Join(dir, "jay"), nil)
		if err != nil {
			return nil, err
		}
		for doc := range docs {
			if _, err := db.Put(context.Background(), name(doc), encode(0), jay.InCollection("Orders")); err != nil {
				return nil, errors.Join(err, db.Close())
			}
		}
		return &jayStore{db, patch}, nil
	}
}

func (s *jayStore) count(doc int) error {
	ctx, id := context.Background(), name(doc)
	if s.patch {
		_, err := s.db.Patch(ctx, id, jay.Increment("n", 1))
		return err
	}
	err := s.db.Update(ctx, func(tx *jay.Tx) error {
		found, err := tx.Get(ctx, id)
		if err != nil {
			return err
		}
		body, err := next(found.Body())
		if err != nil {
			return err
		}
		_, err = tx.Put(ctx, id, body, jay.InCollection("Orders"))
		return err
	}, jay.Retry(10))
	if errors.Is(err, jay.ErrConflict) {
		return errRefused
	}
	return err
}

func (s *jayStore) counted(doc int) (int, error) {
	found, err := s.db.Get(context.Background(), name(doc))
	if err != nil {
		return 0, err
	}
	return counter(found.Body())
}

func (s *jayStore) close() error { return s.db.Close() }

var bucket = []byte("orders")

type bboltStore struct {
	db    *bbolt.DB
	batch bool
}

func openBbolt(batch bool) func(string, int, int) (store, error) {
	return func(dir string, goroutines, docs int) (store, error) {
		db, err := bbolt.Open(filepath.Join(dir, "bolt.db"), 0o644, nil)
		if err != nil {
			return nil, err
		}
		db.MaxBatchSize = goroutines
		err = db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket(bucket)
			for doc := range docs {
				if err == nil {
					err = b.Put([]byte(name(doc)), encode(0))
				}
			}
			return err
		})
		if err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return &bboltStore{db, batch}, nil
	}
}

func (s *bboltStore) count(doc int) error {
	id := []byte(name(doc))
	run := s.db.Update
	if s.batch {
		run = s.db.Batch
	}
	return run(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		body, err := next(b.Get(id))
		if err != nil {
			return err
		}
		return b.Put(id, body)
	})
}

func (s *bboltStore) counted(doc int) (n int, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		n, err = counter(tx.Bucket(bucket).Get([]byte(name(doc))))
		return err
	})
	return n, err
}

func (s *bboltStore) close() error { return s.db.Close() }

type sqliteStore struct {
	db *sql.DB
}

func openSQLite(driver string, one bool) func(string, int, int) (store, error) {
	return func(dir string, goroutines, docs int) (store, error) {
		if one {
			goroutines = 1
		}
		address := "file:" + filepath.Join(dir, "sqlite.db") + "?_txlock=immediate&"
		if driver == "sqlite3" {
			address += "_journal_mode=wal&_synchronous=2&_busy_timeout=60000"
		} else {
			address += "_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(2)"
		}
		db, err := sql.Open(driver, address)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(goroutines)
		db.SetMaxIdleConns(goroutines)
		s := &sqliteStore{db}
		if err := s.fill(docs); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return s, nil
	}
}

func (s *sqliteStore) fill(docs int) error {
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "60000"} {
		var got string
		if err := s.db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			return fmt.Errorf("pragma %s is %q, not %q: %w", pragma, got, want, errors.Join(err, errors.New("the driver did not take it")))
		}
	}
	if _, err := s.db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID"); err != nil {
		return err
	}
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	for doc := range docs {
		if _, err := tx.Exec("INSERT INTO orders VALUES (?, ?)", name(doc), encode(0)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (s *sqliteStore) count(doc int) error {
	err := s.increment(name(doc))
	if err != nil && (strings.Contains(err.Error(), "locked") || strings.Contains(err.Error(), "SQLITE_BUSY")) {
		return errRefused
	}
	return err
}

// increment runs a transaction. Begin is BEGIN IMMEDIATE: see _txlock.
func (s *sqliteStore) increment(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var body []byte
	err = tx.QueryRow("SELECT body FROM orders WHERE id = ?", id).Scan(&body)
	if err == nil {
		body, err = next(body)
	}
	if err == nil {
		_, err = tx.Exec("UPDATE orders SET body = ? WHERE id = ?", body, id)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *sqliteStore) counted(doc int) (int, error) {
	var body []byte
	if err := s.db.QueryRow("SELECT body FROM orders WHERE id = ?", name(doc)).Scan(&body); err != nil {
		return 0, err
	}
	return counter(body)
}

func (s *sqliteStore) close() error { return s.db.Close() }
