// Package env is what every part of an open database shares: the storage engine,
// the ID rules, the clock, the limits, and the lifecycle of the handle, from the
// lifecycle lock that calls enter to the handles that Close releases.
//
// Only the methods of package jay and its background workers call Enter; no package
// below them does.
package env

import (
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/room"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Env is an open database, as its parts see it. The exported fields are set before
// the first call enters and do not change afterwards.
type Env struct {
	Dir             string
	Engine          storage.Engine
	Rules           ids.Rules
	FoldedSeparator string
	Node            uint64 // the node number under which this database writes
	Origins         Origins

	Synced        bool // writes are acknowledged when they are on disk
	ExactExpiry   bool // a document that has expired is as if it were deleted
	Limits        metadata.Limits
	MaxQueryBytes int
	Now           func() time.Time // the user's clock: never called under a lock
	Rand          io.Reader        // the user's source, or nil
	Logger        *slog.Logger     // or nil
	Room          *room.Room       // on the disk; nil if it does not matter

	Pins    Pins
	gate    callGate
	handles handles
}

// New returns an Env that calls can enter.
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
