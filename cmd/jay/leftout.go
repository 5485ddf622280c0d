//go:build nosqlite || nomember || nopostgres || noetcd

package main

import "fmt"

// errLeftOut is the error of a request for a part of the command that this build is without.
type errLeftOut struct{ part, tag string }

// Error says which build has the part.
func (e errLeftOut) Error() string {
	return fmt.Sprintf("this jay was built without %s: build it without the tag %s", e.part, e.tag)
}
