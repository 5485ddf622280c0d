package storage

import "fmt"

// MemoryError is returned for an operation that found too little memory. It is an ErrMemory.
type MemoryError struct {
	What   string // that was to be done, such as "query"
	Wanted int64  // bytes that it asked for
	Held   int64  // bytes that it had
	Used   int64  // bytes that all work had
	Most   int64  // bytes that all work may have
}

// MemoryOfDatabase is MemoryError.What when Open finds too little memory for the caches of a
// database.
const MemoryOfDatabase = "database"

// Error has the numbers, and says what to do.
func (e *MemoryError) Error() string {
	if e.What == MemoryOfDatabase {
		return fmt.Sprintf("%v: the caches of the database need %d bytes, and other databases that share the memory (Options.Memory) have %d of %d: close one, or raise the bound", ErrMemory, e.Wanted, e.Used, e.Most)
	}
	if e.Held+e.Wanted > e.Most {
		return fmt.Sprintf("%v: the %s has %d bytes and needs %d more, and all work may have %d, a share of Options.MaxMemory: raise it, or ask for less at a time", ErrMemory, e.What, e.Held, e.Wanted, e.Most)
	}
	return fmt.Sprintf("%v: the %s has %d bytes and needs %d more, and all work has %d of %d, a share of Options.MaxMemory: try again when other work has ended, or raise it", ErrMemory, e.What, e.Held, e.Wanted, e.Used, e.Most)
}

// Unwrap returns ErrMemory.
func (e *MemoryError) Unwrap() error { return ErrMemory }
