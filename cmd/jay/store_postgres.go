//go:build !nopostgres

package main

import (
	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/sqlkv"
)

// useEngine sets the engine of a store on a server, and returns the name of the store as messages have it.
func useEngine(o *jay.Options, name string) (shown string, err error) {
	d := new(sqlkv.Driver)
	o.Engine = d
	return d.Shown(name), nil
}
