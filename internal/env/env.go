// Package env is what every part of an open database shares: the storage engine, the
// rules of IDs, the clock, the limits, and the life of the handle, from the gate that
// calls enter to what Close has to release.
//
// The verbs of package jay and its background workers enter the gate; nothing below
// them does.
package env

import (
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Env is an open database, as its parts see it. The exported fields are set before the
// first call enters and do not change.
type Env struct {
	Dir             string
	Engine          storage.Engine
	Rules           ids.Rules
	FoldedSeparator string
	Node            uint64 // the number under which this database writes
	Origins         Origins

	Synced        bool // writes are acknowledged when they are on disk
	Limits        metadata.Limits
	MaxQueryBytes int
	Now           func() time.Time // the user's: never called under a lock
	Rand          io.Reader        // the user's, or nil
	Logger        *slog.Logger     // or nil

	Loans   Loans
	gate    callGate
	handles handles
}

// New returns an Env whose gate is open.
func New() *Env {
	e := new(Env)
	e.gate.init()
	return e
}

// Random returns the source of random bytes.
func (e *Env) Random() io.Reader {
	if e.Rand != nil {
		return e.Rand
	}
	return rand.Reader
}
