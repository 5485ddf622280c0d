package standby

import (
	"context"
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage"
)

// driver opens the engine of a standby for its readers: for them it is a shared store, to which the source writes.
type driver struct{ engine storage.Engine }

// Open implements storage.Driver.
func (d driver) Open(string, storage.OpenOptions) (storage.Engine, error) {
	return reading{d.engine, d.engine.(storage.CommitWatcher)}, nil
}

// Prepare implements storage.Driver.
func (driver) Prepare(string) (storage.NewStore, error) { return nil, errWrite }

var errWrite = fmt.Errorf("%w: the database follows another one, which alone writes: jay.Promote or jay promote makes it one that can be written: %w", jay.ErrStandby, jay.ErrReadOnly)

// reading is the engine of a standby as its readers have it. Others can follow it.
type reading struct {
	storage.Engine
	storage.CommitWatcher
}

// Shared implements storage.Engine.
func (reading) Shared() bool { return true }

// Update implements storage.Engine.
func (reading) Update(context.Context, bool, func(storage.Tx) error) error { return errWrite }

// StartSequence implements storage.Engine: readers draw no numbers.
func (reading) StartSequence(uint64) {}

// Close implements storage.Engine: the engine stays open for the next readers.
func (reading) Close() error { return nil }
