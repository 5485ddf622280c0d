// Package parts gives checks that live in packages of their own, and packages standby and backups, the parts of an open
// database. Nothing else calls it.
package parts

import (
	"reflect"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/internal/write"
)

// Package jay sets these.
var (
	// Of returns the parts of a *jay.DB.
	Of func(db any) *core.Database

	// Keys returns the encryption keys that a *jay.DB was opened with; nil for none.
	Keys func(db any) sealed.Keys

	// Ops returns the writes of a *jay.Batch.
	Ops func(batch any) []*write.Op

	// Mapping returns how a *jay.DB maps t to a collection of this name; "" is the one of the conventions.
	Mapping func(db any, t reflect.Type, name string) (*codec.Mapping, error)
)
