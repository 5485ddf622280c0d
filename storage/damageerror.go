package storage

import (
	"fmt"
	"strings"
)

// DamageError describes a directory that Open refuses, because it lacks data that the engine has
// written and synced. It is an ErrCorrupt. No file was changed.
type DamageError struct {
	Dir     string // as Open was given it
	File    string // name of the file in Dir
	Offset  int64  // of the damage in the file; -1 if the file is missing or has another length
	Problem string // what is wrong
	Loss    string // what opening without it would lose; empty for nothing
	Remedy  string // what to do, if the remedy is not to restore a backup or to repair
}

// Error names the file, the place, the loss of opening it anyway, and what to do: the Remedy, or
// the command that saves the rest into a new directory.
func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", ErrCorrupt, e.File)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %s; ", e.Problem)
	if e.Loss == "" {
		b.WriteString("nothing that was stored is known to be lost")
	} else {
		fmt.Fprintf(&b, "going on loses %s", e.Loss)
	}
	b.WriteString("; nothing was changed; ")
	if e.Remedy != "" {
		b.WriteString(e.Remedy)
	} else {
		fmt.Fprintf(&b, "restore a backup, or save what is left with: jay repair %s NEWDIR", e.Dir)
	}
	return b.String()
}

// Unwrap returns ErrCorrupt.
func (e *DamageError) Unwrap() error { return ErrCorrupt }
