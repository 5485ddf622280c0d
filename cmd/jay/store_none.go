//go:build nopostgres

package main

import "github.com/jaydb/jay"

// useEngine refuses stores on servers.
func useEngine(*jay.Options, string) (shown string, err error) {
	return "a store on a server", errLeftOut{part: "the engine on PostgreSQL", tag: "nopostgres"}
}
