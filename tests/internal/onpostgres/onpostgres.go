// Package onpostgres lets a test program that imports it run on PostgreSQL, with JAY_ENGINE=postgres: see jaytest.Engines.
package onpostgres

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

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
	return &driver{prefix: fmt.Sprintf("t%d_%d_", os.Getpid(), drivers.Add(1))}
}

// driver opens stores on the server, each in a schema of its own.
type driver struct {
	sqlkv.Driver
	prefix string
}

// address returns the address of the store that tests know by a name.
func (d *driver) address(name string) (string, error) {
	s, err := server()
	if err != nil || strings.HasPrefix(name, "postgres") {
		return name, err
	}
	schema := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
	return s.URL("jay_schema=" + d.prefix + schema), nil
}

// Open implements storage.Driver.
func (d *driver) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	address, err := d.address(name)
	if err != nil {
		return nil, err
	}
	return d.Driver.Open(address, o)
}

// Prepare implements storage.Driver.
func (d *driver) Prepare(name string) (storage.NewStore, error) {
	address, err := d.address(name)
	if err != nil {
		return nil, err
	}
	return d.Driver.Prepare(address)
}
