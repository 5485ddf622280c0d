// Package onpostgres lets a test program that imports it run on PostgreSQL, with JAY_ENGINE=postgres: see jaytest.Engines. The server is one that
// the program starts, or that JAY_SQL_URL names. Each store has a schema of its own, which is dropped when the test has ended.
package onpostgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

func init() { jaytest.Engines["postgres"] = newDriver }

// The server ends with the process.
var server = sync.OnceValues(pgtest.Start)

var drivers atomic.Int64

func newDriver() storage.Driver {
	return &driver{prefix: fmt.Sprintf("t%d_%d_", os.Getpid(), drivers.Add(1)), open: make(map[string]int)}
}

// driver opens stores on the server, each in a schema of its own.
type driver struct {
	sqlkv.Driver
	prefix string

	mu      sync.Mutex
	open    map[string]int // the engines of each schema that was opened or prepared. Guarded by mu.
	dropped bool           // a schema goes when its last engine is closed. Guarded by mu.
}

// locate returns the address and the schema of the store that tests know by a name. The schema is "" if the name is an address.
func (d *driver) locate(name string) (address, schema string, err error) {
	s, err := server()
	if err != nil || strings.HasPrefix(name, "postgres") {
		return name, "", err
	}
	schema = d.prefix + strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
	return s.URL("jay_schema=" + schema), schema, nil
}

// Open implements storage.Driver.
func (d *driver) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	address, schema, err := d.locate(name)
	if err != nil {
		return nil, err
	}
	if schema == "" {
		return d.Driver.Open(address, o)
	}
	d.mu.Lock()
	d.open[schema]++
	d.mu.Unlock()
	e, err := d.Driver.Open(address, o)
	if err != nil {
		return nil, errors.Join(err, d.closed(schema))
	}
	return &engine{Engine: e.(*sqlkv.Engine), closed: sync.OnceValue(func() error { return d.closed(schema) })}, nil
}

// engine is an engine of the driver. It has all methods of its kind, those that are optional for an engine among them.
type engine struct {
	*sqlkv.Engine
	closed func() error
}

// Close implements storage.Engine.
func (e *engine) Close() error { return errors.Join(e.Engine.Close(), e.closed()) }

// Prepare implements storage.Driver.
func (d *driver) Prepare(name string) (storage.NewStore, error) {
	address, schema, err := d.locate(name)
	if err != nil {
		return nil, err
	}
	if schema != "" {
		d.mu.Lock()
		d.open[schema] += 0
		d.mu.Unlock()
	}
	return d.Driver.Prepare(address)
}

// closed notes that an engine of a schema was closed.
func (d *driver) closed(schema string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[schema]--
	return d.dropUnused()
}

// Drop removes the stores that the driver has opened, each as soon as no engine has it open.
func (d *driver) Drop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropped = true
	return d.dropUnused()
}

// dropUnused drops the schemas that no engine has open, if Drop was called. d.mu is held.
func (d *driver) dropUnused() error {
	if !d.dropped {
		return nil
	}
	var statements []string
	for schema, engines := range d.open {
		if engines == 0 {
			statements = append(statements, "drop schema if exists "+schema+" cascade; drop schema if exists "+schema+"_unfinished cascade")
			delete(d.open, schema)
		}
	}
	if len(statements) == 0 {
		return nil
	}
	s, err := server()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, "set client_min_messages = warning; "+strings.Join(statements, "; "))
	return errors.Join(err, c.Close(ctx))
}
